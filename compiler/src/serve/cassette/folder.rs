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
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ptc_runtime::log::{self, Level};
use ptc_runtime::schedule::ClientKey;
use ptc_runtime::upstream::UpstreamError;
use ptc_runtime::upstream::intercept::{CallAnswer, InterceptedCall, Interception, Interceptor, ProgramInterceptor};

use super::Cassette;
use super::calls::{self, Calls};
use super::scrub::{Replacements, Rule};
use crate::serve::private_file;

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

/// Records the calls of each program into a file of a folder. The files are cassettes.
pub struct RecordingFolder(Arc<Folder>);

struct Folder {
    path: PathBuf,
    limits: FolderLimits,
    rules: Vec<Rule>,
    next: AtomicU64,
    /// The names of the files with their bytes, the oldest first.
    files: Mutex<VecDeque<(String, u64)>>,
}

/// The calls of one program.
struct Recording {
    folder: Arc<Folder>,
    calls: Calls,
    bytes: AtomicU64,
}

impl RecordingFolder {
    /// Uses a folder, which is created if it does not exist. Files of earlier processes count. `rules` select what is replaced.
    ///
    /// # Errors
    ///
    /// The folder cannot be created or listed.
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
        let files = Mutex::new(files.into());
        Ok(RecordingFolder(Arc::new(Folder { path: path.to_owned(), limits, rules, next: AtomicU64::default(), files })))
    }
}

impl fmt::Debug for RecordingFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RecordingFolder").field(&self.0.path).finish()
    }
}

impl Interceptor for RecordingFolder {
    fn is_offline(&self) -> bool {
        false
    }

    fn begin(&self, _: &ClientKey) -> Arc<dyn ProgramInterceptor> {
        Arc::new(Recording { folder: Arc::clone(&self.0), calls: Calls::default(), bytes: AtomicU64::default() })
    }
}

impl ProgramInterceptor for Recording {
    fn answer(&self, _: &InterceptedCall) -> Interception {
        Interception::PassOn
    }

    fn observe(&self, call: &InterceptedCall, outcome: Result<&CallAnswer, &UpstreamError>, _: Duration) {
        let size = calls::size(call, outcome);
        if self.bytes.fetch_add(size, Ordering::Relaxed).saturating_add(size) <= self.folder.limits.bytes {
            self.calls.add(call, outcome, None);
        }
    }
}

impl Drop for Recording {
    /// Writes the file when the program has ended.
    fn drop(&mut self) {
        let replies = self.calls.take();
        let is_too_large = *self.bytes.get_mut() > self.folder.limits.bytes;
        if replies.is_empty() && !is_too_large {
            return;
        }
        let written = if is_too_large { Err(too_large(self.folder.limits)) } else { self.folder.write(replies.into()) };
        if let Err(error) = written {
            let path = self.folder.path.display().to_string();
            log::line(Level::Warn, "a program is not recorded", &[("folder", &path), ("reason", &error.to_string())]);
        }
    }
}

fn too_large(limits: FolderLimits) -> io::Error {
    io::Error::other(format!("its calls have more than {} bytes, the limit of the folder", limits.bytes))
}

impl Folder {
    fn write(&self, mut cassette: Cassette) -> io::Result<()> {
        // A rule that selects nothing in this program may select something in others.
        let _ = cassette.replace(&self.rules, &mut Replacements::default());
        let text = cassette.to_string();
        let bytes = text.len() as u64;
        if bytes > self.limits.bytes {
            return Err(too_large(self.limits));
        }
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{time:016}-{}-{number}{SUFFIX}", std::process::id());
        // Programs that end at the same time write one after the other, so that the folder never has more than its limits.
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        self.make_room(&mut files, bytes);
        private_file::replace(&self.path.join(&name), text.as_bytes())?;
        files.push_back((name, bytes));
        Ok(())
    }

    /// Removes the oldest files until another one with `bytes` fits.
    fn make_room(&self, files: &mut VecDeque<(String, u64)>, bytes: u64) {
        let mut sum: u64 = files.iter().map(|(_, bytes)| bytes).sum();
        while files.len() >= self.limits.files || sum.saturating_add(bytes) > self.limits.bytes {
            let Some((oldest, removed)) = files.pop_front() else { break };
            sum = sum.saturating_sub(removed);
            // Another process may have removed it.
            let _ = fs::remove_file(self.path.join(oldest));
        }
    }
}
