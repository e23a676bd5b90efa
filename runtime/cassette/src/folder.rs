//! Records the programs of a running server into a folder, each into a cassette of its own.
//!
//! A cassette of several programs would not replay all of them if they got different answers to the same request, which is normal
//! in a server that runs for long.

use std::collections::VecDeque;
use std::fmt;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ptc_runtime::log::{self, Level};
use ptc_runtime::schedule::ClientKey;
use ptc_runtime::upstream::UpstreamError;
use ptc_runtime::upstream::intercept::{CallAnswer, InterceptedCall, Interception, Interceptor, ProgramInterceptor};

use crate::Cassette;
use crate::calls::{self, Calls};
use crate::private_file;
use crate::scrub::{Replacements, Rule};

/// Prefix and suffix of the names of the files.
const PREFIX: &str = "ptc-";
const SUFFIX: &str = ".cassette.json";

/// The limits of a folder of recordings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FolderLimits {
    /// Maximum number of files. The oldest are removed.
    pub files: usize,
    /// Maximum bytes of all files together. The oldest are removed, and a program with more is not recorded.
    pub bytes: u64,
}

/// Maximum bytes of the calls in memory: those of all programs that run, and those that wait to be written.
const MAX_HELD_BYTES: u64 = 64 << 20;
/// How long a server that ends waits for its last recordings.
const FINISH_TIMEOUT: Duration = Duration::from_secs(10);

/// Records the calls of each program into a file of a folder. The files are cassettes.
///
/// A thread of its own converts and writes the calls, because programs end on threads that others wait for. A server waits for it when it
/// ends; an embedding program calls [`Interceptor::finish`].
pub struct RecordingFolder {
    folder: Arc<Folder>,
    writer: Sender<Job>,
}

struct Folder {
    path: PathBuf,
    limits: FolderLimits,
    rules: Vec<Rule>,
    /// The bytes of the calls in memory.
    held: AtomicU64,
}

/// The calls of one program.
struct Recording {
    folder: Arc<Folder>,
    writer: Sender<Job>,
    calls: Calls,
    /// The bytes of its calls in memory.
    held: AtomicU64,
    /// The limit in bytes that its calls exceed, or zero.
    exceeded: AtomicU64,
}

/// What the writing thread does next.
enum Job {
    /// Writes the calls of a program. Contains their bytes in memory.
    Write(Calls, u64),
    /// Reports that everything before is written.
    Report(Sender<()>),
}

/// The state of the writing thread.
struct Writer {
    folder: Arc<Folder>,
    next: u64,
    /// The names of the files with their bytes, the oldest first.
    files: VecDeque<(String, u64)>,
}

impl RecordingFolder {
    /// Uses a folder, which is created if it does not exist. Files of earlier processes count. `rules` select what is replaced.
    ///
    /// # Errors
    ///
    /// The folder cannot be created or listed, or no thread can be started.
    pub fn open(path: &Path, limits: FolderLimits, rules: Vec<Rule>) -> io::Result<RecordingFolder> {
        // Only the owner may read the data of programs.
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        let mut files = Vec::new();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let name = entry.file_name().into_string().ok().filter(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX));
            // Another process may have removed it.
            let bytes = entry.metadata().map(|file| file.len());
            files.extend(name.zip(bytes.ok()));
        }
        // The names begin with the time, so that the oldest is the first.
        files.sort();
        let folder = Arc::new(Folder { path: path.to_owned(), limits, rules, held: AtomicU64::default() });
        let (writer, jobs) = mpsc::channel();
        let state = Writer { folder: Arc::clone(&folder), next: 0, files: files.into() };
        thread::Builder::new().name("recording".to_owned()).spawn(move || state.run(&jobs))?;
        Ok(RecordingFolder { folder, writer })
    }
}

impl fmt::Debug for RecordingFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RecordingFolder").field(&self.folder.path).finish()
    }
}

impl Interceptor for RecordingFolder {
    fn is_offline(&self) -> bool {
        false
    }

    fn begin(&self, _: &ClientKey) -> Arc<dyn ProgramInterceptor> {
        let (folder, writer) = (Arc::clone(&self.folder), self.writer.clone());
        Arc::new(Recording {
            folder,
            writer,
            calls: Calls::default(),
            held: AtomicU64::default(),
            exceeded: AtomicU64::default(),
        })
    }

    fn finish(&self) {
        let (reporter, report) = mpsc::channel();
        let is_written = self.writer.send(Job::Report(reporter)).is_ok() && report.recv_timeout(FINISH_TIMEOUT).is_ok();
        if !is_written {
            log::line(Level::Warn, "some programs are not recorded", &[("folder", &self.folder.path.display().to_string())]);
        }
    }
}

impl ProgramInterceptor for Recording {
    fn answer(&self, _: &InterceptedCall) -> Interception {
        Interception::PassOn
    }

    fn observe(&self, call: &InterceptedCall, outcome: Result<&CallAnswer, &UpstreamError>, _: Duration) {
        if self.exceeded.load(Ordering::Relaxed) > 0 {
            return;
        }
        let size = calls::size(call, outcome);
        let own = self.held.fetch_add(size, Ordering::Relaxed).saturating_add(size);
        let all = self.folder.held.fetch_add(size, Ordering::Relaxed).saturating_add(size);
        let exceeded = [(own, self.folder.limits.bytes), (all, MAX_HELD_BYTES)].into_iter().find(|(bytes, limit)| bytes > limit);
        match exceeded {
            None => self.calls.add(call, outcome, None),
            Some((_, limit)) => self.exceeded.store(limit, Ordering::Relaxed),
        }
    }
}

impl Drop for Recording {
    /// Has the file written when the program has ended.
    fn drop(&mut self) {
        let held = *self.held.get_mut();
        let exceeded = *self.exceeded.get_mut();
        if exceeded == 0 && !self.calls.is_empty() {
            let job = Job::Write(std::mem::take(&mut self.calls), held);
            if self.writer.send(job).is_ok() {
                return;
            }
            self.folder.warn("the thread that writes recordings has ended");
        } else if exceeded > 0 {
            self.folder.warn(&too_large(exceeded).to_string());
        }
        self.folder.held.fetch_sub(held, Ordering::Relaxed);
    }
}

fn too_large(limit: u64) -> io::Error {
    io::Error::other(format!("its calls have more than {limit} bytes, the limit of the folder"))
}

impl Folder {
    fn warn(&self, reason: &str) {
        let path = self.path.display().to_string();
        log::line(Level::Warn, "a program is not recorded", &[("folder", &path), ("reason", reason)]);
    }
}

impl Writer {
    fn run(mut self, jobs: &Receiver<Job>) {
        for job in jobs {
            match job {
                Job::Write(calls, held) => {
                    if let Err(error) = self.write(calls.take().into()) {
                        self.folder.warn(&error.to_string());
                    }
                    self.folder.held.fetch_sub(held, Ordering::Relaxed);
                }
                // The server may not wait any more.
                Job::Report(reporter) => drop(reporter.send(())),
            }
        }
    }

    fn write(&mut self, mut cassette: Cassette) -> io::Result<()> {
        let Folder { path, limits, rules, .. } = &*self.folder;
        // A rule that selects nothing in this program may select something in others.
        let _ = cassette.replace(rules, &mut Replacements::default());
        let text = cassette.to_string();
        let bytes = text.len() as u64;
        if bytes > limits.bytes {
            return Err(too_large(limits.bytes));
        }
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        let name = format!("{PREFIX}{time:016}-{}-{}{SUFFIX}", std::process::id(), self.next);
        self.next += 1;
        let file = path.join(&name);
        self.make_room(bytes);
        private_file::replace(&file, text.as_bytes())?;
        self.files.push_back((name, bytes));
        Ok(())
    }

    /// Removes the oldest files until another one with `bytes` fits.
    fn make_room(&mut self, bytes: u64) {
        let Folder { path, limits, .. } = &*self.folder;
        let mut sum: u64 = self.files.iter().map(|(_, bytes)| bytes).sum();
        while self.files.len() >= limits.files || sum.saturating_add(bytes) > limits.bytes {
            let Some((oldest, removed)) = self.files.pop_front() else { break };
            sum = sum.saturating_sub(removed);
            // Another process may have removed it.
            let _ = fs::remove_file(path.join(oldest));
        }
    }
}
