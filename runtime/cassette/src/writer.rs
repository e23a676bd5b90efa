//! The thread that converts the calls of programs and writes them into files.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{SystemTime, UNIX_EPOCH};

use ptc_runtime::log::{self, Level};

use crate::Cassette;
use crate::calls::{self, Observed};
use crate::folder::{Folder, NotRecorded};
use crate::private_file;
use crate::scrub::{Replaced, Replacements, ScrubError};

/// Prefix and suffix of the names of the files.
const PREFIX: &str = "ptc-";
const SUFFIX: &str = ".cassette.json";

/// What the writing thread does next.
pub(crate) enum Job {
    /// Writes the calls of a program. Contains their bytes in memory.
    Write(Vec<Observed>, u64),
    /// Reports that everything before is written.
    Report(Sender<()>),
}

/// The state of the writing thread.
pub(crate) struct Writer {
    folder: Arc<Folder>,
    next: u64,
    /// The names of the files with their bytes, the oldest first.
    files: VecDeque<(String, u64)>,
    /// The positions of the rules that have selected nothing so far. `None` if no program was recorded.
    unused: Option<BTreeSet<usize>>,
}

impl Writer {
    /// Lists the files of a folder.
    pub(crate) fn new(folder: Arc<Folder>) -> io::Result<Writer> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&folder.path)? {
            let entry = entry?;
            let name = entry.file_name().into_string().ok().filter(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX));
            // Another process may have removed it.
            let bytes = entry.metadata().map(|file| file.len());
            files.extend(name.zip(bytes.ok()));
        }
        // The names begin with the time, so that the oldest is the first.
        files.sort();
        Ok(Writer { folder, next: 0, files: files.into(), unused: None })
    }

    /// Writes programs until no recorder is left.
    pub(crate) fn run(mut self, jobs: &Receiver<Job>) {
        for job in jobs {
            match job {
                Job::Write(calls, bytes) => {
                    let number = calls.len() as u64;
                    if let Err(error) = self.write(calls::replies(calls).into(), number) {
                        self.folder.unrecorded.count(number, &error.to_string());
                    }
                    self.folder.release(bytes);
                }
                Job::Report(reporter) => {
                    self.finish();
                    // The server may not wait any more.
                    let _ = reporter.send(());
                }
            }
        }
        self.finish();
    }

    /// Logs what an operator must know at the end.
    fn finish(&mut self) {
        let Folder { rules, unrecorded, merged, .. } = &*self.folder;
        unrecorded.finish();
        merged.finish();
        // A rule that selects nothing in one program may select something in others.
        for rule in self.unused.take().into_iter().flatten().filter_map(|at| rules.list.get(at)) {
            log::line(Level::Warn, "a rule has no effect", &[("reason", &ScrubError::Unused(rule.clone()).to_string())]);
        }
    }

    fn write(&mut self, mut cassette: Cassette, calls: u64) -> io::Result<()> {
        let Folder { path, limits, rules, .. } = &*self.folder;
        let Replaced { unused, merged } = cassette.replace(&rules.list, &mut Replacements::new(rules.key.as_ref()));
        self.unused = Some(match self.unused.take() {
            Some(earlier) => unused.into_iter().filter(|at| earlier.contains(at)).collect(),
            None => unused.into_iter().collect(),
        });
        if let Some(first) = merged.first() {
            self.folder.merged.count(calls, &first.to_string());
        }
        let text = cassette.to_string();
        let bytes = text.len() as u64;
        if bytes > limits.bytes {
            return Err(io::Error::other(NotRecorded::FileLimit(limits.bytes)));
        }
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        let name = format!("{PREFIX}{time:016}-{}-{}{SUFFIX}", std::process::id(), self.next);
        self.next += 1;
        let file = path.join(&name);
        self.make_room(bytes)?;
        private_file::replace(&file, text.as_bytes())?;
        self.files.push_back((name, bytes));
        Ok(())
    }

    /// Removes the oldest files until another one with `bytes` fits.
    fn make_room(&mut self, bytes: u64) -> io::Result<()> {
        let Folder { path, limits, .. } = &*self.folder;
        let mut sum: u64 = self.files.iter().map(|(_, bytes)| bytes).sum();
        while self.files.len() >= limits.files || sum.saturating_add(bytes) > limits.bytes {
            let Some((oldest, removed)) = self.files.front() else { break };
            match fs::remove_file(path.join(oldest)) {
                // Another process may have removed it.
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => sum = sum.saturating_sub(*removed),
            }
            self.files.pop_front();
        }
        Ok(())
    }
}
