//! Records the programs of a running server into a folder, each into a cassette of its own.
//!
//! A cassette of several programs would not replay all of them if they got different answers to the same request, which is normal
//! in a server that runs for long.

use std::fmt;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ptc_runtime::log::{self, Level};
use ptc_runtime::schedule::ClientKey;
use ptc_runtime::upstream::UpstreamError;
use ptc_runtime::upstream::intercept::{CallAnswer, InterceptedCall, Interception, Interceptor, ProgramInterceptor};

use crate::calls::{self, Observed};
use crate::private_file;
use crate::scrub::Rules;
use crate::warnings::RepeatedWarning;
use crate::writer::{Job, Writer};

/// The limits of a folder of recordings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FolderLimits {
    /// Maximum number of files. The oldest are removed.
    pub files: usize,
    /// Maximum bytes of all files together. The oldest are removed, and a program whose file would have more is not recorded.
    pub bytes: u64,
}

/// Maximum bytes of the calls in memory: those of all programs that run, and those that wait to be written.
const MAX_HELD_BYTES: u64 = 64 << 20;
/// Maximum number of programs that wait to be written.
const MAX_WAITING: usize = 1024;
/// How long a server that ends waits for its last recordings.
const FINISH_TIMEOUT: Duration = Duration::from_secs(10);
/// How much of this time it waits for programs that still run. They were cancelled before, so that they are about to end.
const RUNNING_TIMEOUT: Duration = Duration::from_secs(2);
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Records the calls of each program into a file of a folder. The files are cassettes.
///
/// A thread of its own converts and writes the calls, because programs end on threads that others wait for. A server waits for it when it
/// ends; an embedding program calls [`Interceptor::finish`].
pub struct RecordingFolder {
    folder: Arc<Folder>,
    writer: SyncSender<Job>,
}

/// What the recordings of all programs share.
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
    pub(crate) limits: FolderLimits,
    pub(crate) rules: Rules,
    /// Programs whose calls are not in a file.
    pub(crate) unrecorded: RepeatedWarning,
    /// Programs with requests that a rule made equal.
    pub(crate) merged: RepeatedWarning,
    /// The bytes of the calls in memory.
    held: AtomicU64,
    /// The number of programs that run.
    running: AtomicUsize,
}

/// The calls of one program.
struct Recording {
    folder: Arc<Folder>,
    writer: SyncSender<Job>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    calls: Vec<Observed>,
    /// The bytes of `calls`.
    bytes: u64,
    /// The bytes of calls that are being copied.
    incoming: u64,
    /// Whether there was no memory for a call. No call is kept then: a program cannot be replayed with a part of its calls.
    has_lost: bool,
    /// The number of calls that were not kept.
    lost: u64,
}

impl RecordingFolder {
    /// Uses a folder, which is created if it does not exist. Files of earlier processes count, and files that they did not complete are
    /// removed. `rules` select what is replaced.
    ///
    /// # Errors
    ///
    /// The folder cannot be created or listed, or no thread can be started.
    pub fn open(path: &Path, limits: FolderLimits, rules: Rules) -> io::Result<RecordingFolder> {
        // Only the owner may read the data of programs.
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        private_file::remove_leftovers(path)?;
        let folder = Arc::new(Folder::new(path, limits, rules));
        let (sender, jobs) = mpsc::sync_channel(MAX_WAITING);
        let writer = Writer::new(Arc::clone(&folder))?;
        thread::Builder::new().name("recording".to_owned()).spawn(move || writer.run(&jobs))?;
        Ok(RecordingFolder { folder, writer: sender })
    }

    /// Waits until everything is written, or until the deadline. Returns whether it is.
    fn is_written_until(&self, deadline: Instant) -> bool {
        let (reporter, report) = mpsc::channel();
        let mut job = Job::Report(reporter);
        loop {
            job = match self.writer.try_send(job) {
                Ok(()) => return report.recv_timeout(deadline.saturating_duration_since(Instant::now())).is_ok(),
                Err(TrySendError::Full(job)) if Instant::now() < deadline => job,
                Err(_) => return false,
            };
            thread::sleep(POLL_INTERVAL);
        }
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
        folder.running.fetch_add(1, Ordering::Relaxed);
        Arc::new(Recording { folder, writer, state: Mutex::default() })
    }

    fn finish(&self) {
        let start = Instant::now();
        while self.folder.running.load(Ordering::Acquire) > 0 && start.elapsed() < RUNNING_TIMEOUT {
            thread::sleep(POLL_INTERVAL);
        }
        let has_ended = self.folder.running.load(Ordering::Acquire) == 0;
        if !self.is_written_until(start + FINISH_TIMEOUT) || !has_ended {
            log::line(Level::Warn, "some programs are not recorded", &[("folder", &self.folder.path.display().to_string())]);
        }
    }
}

impl ProgramInterceptor for Recording {
    fn answer(&self, _: &InterceptedCall) -> Interception {
        Interception::PassOn
    }

    fn observe(&self, call: &InterceptedCall, outcome: Result<&CallAnswer, &UpstreamError>, _: Duration) {
        let size = calls::size(call, outcome);
        if !self.reserve(size) {
            return;
        }
        // The copy takes long for a large answer, so that it is made without the lock.
        let observed = Observed::new(call, outcome, None);
        let mut state = self.lock();
        state.incoming -= size;
        if state.has_lost {
            state.lost += 1;
            self.folder.release(size);
        } else {
            state.calls.push(observed);
            state.bytes += size;
        }
    }
}

impl Recording {
    /// Reserves the memory of a call. Returns false if it does not fit. Then the program is not recorded, and its calls are dropped.
    fn reserve(&self, size: u64) -> bool {
        let mut state = self.lock();
        if !state.has_lost {
            if self.folder.reserve(size) {
                state.incoming += size;
                return true;
            }
            state.has_lost = true;
            let dropped = std::mem::take(&mut state.calls);
            state.lost += dropped.len() as u64;
            self.folder.release(std::mem::take(&mut state.bytes));
        }
        state.lost += 1;
        false
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Recording {
    /// Has the file written when the program has ended.
    fn drop(&mut self) {
        let State { calls, bytes, has_lost, lost, .. } = std::mem::take(&mut *self.lock());
        if has_lost {
            self.folder.unrecorded.count(lost, &NotRecorded::MemoryLimit.to_string());
        } else if !calls.is_empty() {
            let number = calls.len() as u64;
            if let Err(refused) = self.writer.try_send(Job::Write(calls, bytes)) {
                let reason = match refused {
                    TrySendError::Full(_) => format!("{MAX_WAITING} programs wait to be written"),
                    TrySendError::Disconnected(_) => "the thread that writes recordings has ended".to_owned(),
                };
                self.folder.unrecorded.count(number, &reason);
                self.folder.release(bytes);
            }
        }
        self.folder.running.fetch_sub(1, Ordering::Release);
    }
}

/// The limit that the calls of a program exceed.
#[derive(Debug)]
pub(crate) enum NotRecorded {
    /// That of the calls in memory. Whether the file would fit is not known then, since equal answers are written once.
    MemoryLimit,
    /// That of the folder, which contains its bytes.
    FileLimit(u64),
}

impl fmt::Display for NotRecorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotRecorded::MemoryLimit => write!(f, "the calls in memory would have more than {MAX_HELD_BYTES} bytes"),
            NotRecorded::FileLimit(limit) => {
                write!(f, "its file would have more than {limit} bytes, the limit of --record-max-bytes")
            }
        }
    }
}

impl std::error::Error for NotRecorded {}

impl Folder {
    fn new(path: &Path, limits: FolderLimits, rules: Rules) -> Folder {
        let warning = |events| RepeatedWarning::new(events, path.display().to_string());
        Folder {
            path: path.to_owned(),
            limits,
            rules,
            unrecorded: warning(["a program is not recorded", "programs are not recorded"]),
            merged: warning(["a recording does not replay its program", "recordings do not replay their programs"]),
            held: AtomicU64::default(),
            running: AtomicUsize::default(),
        }
    }

    /// Reserves memory for a call. Returns false if it does not fit.
    fn reserve(&self, size: u64) -> bool {
        let sum = |held: u64| held.checked_add(size).filter(|sum| *sum <= MAX_HELD_BYTES);
        self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum).is_ok()
    }

    /// Releases the memory of calls.
    pub(crate) fn release(&self, bytes: u64) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::Receiver;

    use ptc_catalog::{McpStdio, Tool, Tools, Transport, Upstream};
    use ptc_runtime::upstream::intercept::CallPayload;

    use super::*;

    static TOOL: Tool = Tool::EMPTY;

    /// Returns a folder whose queue has one place, and what would be written.
    fn folder() -> (Arc<Folder>, SyncSender<Job>, Receiver<Job>) {
        let folder = Folder::new(Path::new(""), FolderLimits { files: 1, bytes: 10_000 }, Rules::default());
        let (sender, jobs) = mpsc::sync_channel(1);
        (Arc::new(folder), sender, jobs)
    }

    fn recording(folder: &Arc<Folder>, writer: &SyncSender<Job>) -> Recording {
        folder.running.fetch_add(1, Ordering::Relaxed);
        Recording { folder: Arc::clone(folder), writer: writer.clone(), state: Mutex::default() }
    }

    fn observe(recording: &Recording, bytes: usize) {
        let transport = Transport::McpStdio(McpStdio::new("x"));
        let upstream = Box::leak(Box::new(Upstream {
            name: "s",
            description: "",
            transport,
            tools: Tools::table(std::slice::from_ref(&TOOL)),
        }));
        let call = InterceptedCall { upstream, tool: &TOOL, arguments: b"{}".to_vec(), accept: None, without_bytes: false };
        let answer = CallAnswer { payload: CallPayload::Text("x".repeat(bytes)), http_status: None, head: None };
        recording.observe(&call, Ok(&answer), Duration::ZERO);
    }

    #[test]
    fn program_whose_calls_do_not_fit_is_counted_and_releases_its_memory() {
        let (folder, writer, jobs) = folder();
        let held = MAX_HELD_BYTES - 10_000;
        folder.held.store(held, Ordering::Relaxed);
        let recording = recording(&folder, &writer);
        observe(&recording, 4_000);
        assert!(folder.held.load(Ordering::Relaxed) > held + 4_000);
        observe(&recording, 7_000);
        assert_eq!(folder.held.load(Ordering::Relaxed), held, "the first call is dropped at once");
        observe(&recording, 1);
        let state = std::mem::take(&mut *recording.lock());
        assert_eq!((state.calls.len(), state.lost, state.has_lost), (0, 3, true));
        drop(recording);
        assert!(jobs.try_recv().is_err() && folder.running.load(Ordering::Relaxed) == 0);
    }

    #[test]
    fn calls_without_text_are_bounded_too() {
        let (folder, writer, _jobs) = folder();
        let programs: Vec<Recording> = (0..4).map(|_| recording(&folder, &writer)).collect();
        let almost_two = 2 * calls::FIXED_BYTES as u64;
        folder.held.store(MAX_HELD_BYTES - almost_two, Ordering::Relaxed);
        for program in &programs {
            observe(program, 0);
        }
        let kept: Vec<usize> = programs.iter().map(|program| program.lock().calls.len()).collect();
        assert_eq!(kept.iter().sum::<usize>(), 1, "{kept:?}");
        assert!(programs.iter().filter(|program| program.lock().has_lost).count() == 3);
    }

    #[test]
    fn message_names_the_limit_that_is_exceeded_also_if_both_are_equal() {
        let [memory, file] = [NotRecorded::MemoryLimit, NotRecorded::FileLimit(MAX_HELD_BYTES)].map(|limit| limit.to_string());
        assert_eq!(memory, "the calls in memory would have more than 67108864 bytes");
        assert_eq!(file, "its file would have more than 67108864 bytes, the limit of --record-max-bytes");
    }

    #[test]
    fn end_of_a_program_does_not_wait_for_the_writer() {
        let (folder, writer, jobs) = folder();
        for _ in 0..3 {
            observe(&recording(&folder, &writer), 1_000);
        }
        // The queue has one place, and nothing is written.
        let Ok(Job::Write(calls, bytes)) = jobs.try_recv() else { panic!("one program is in the queue") };
        assert!(calls.len() == 1 && jobs.try_recv().is_err());
        assert_eq!(folder.held.load(Ordering::Relaxed), bytes, "the memory of the others is released");
    }
}
