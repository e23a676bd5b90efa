//! A folder of trace files, as somebody else writes it.

use std::fmt::Write as _;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use litemap::LiteMap;
use rustix::fs::OFlags;
use serde_json::{Map, Value};

use super::row;
use crate::diagnostics::trace::{PREFIX, SUFFIX, is_name};
use crate::digest::short;

/// Bytes of a file that are read. A call leaves a context, a result and prints, each within limits of the server.
const MAX_BYTES: u64 = 32 << 20;

/// The folder, with what is known of its files.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    seen: Mutex<LiteMap<String, Seen>>,
}

/// A row that holds as long as its file stays as it was.
#[derive(Debug, Clone)]
struct Seen {
    stamp: Stamp,
    row: Arc<str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    changed: Option<SystemTime>,
}

/// The newest calls.
#[derive(Debug)]
pub struct Listing {
    /// Rows as JSON, newest first.
    pub rows: Vec<Arc<str>>,
    /// Files that there are.
    pub total: usize,
    /// Changes with any row.
    pub tag: String,
}

/// A file.
#[derive(Debug)]
pub struct Trace {
    /// Its lines that are JSON objects.
    pub lines: Vec<Map<String, Value>>,
    /// How many others it has.
    pub unreadable: usize,
    /// Whether it goes on past what is read.
    pub cut: bool,
}

impl Folder {
    /// Nothing is read yet.
    pub fn new(path: &Path) -> Folder {
        Folder { path: path.to_owned(), seen: Mutex::default() }
    }

    /// The newest calls, so many at most. Only files that are new or have changed are read.
    pub fn newest(&self, most: usize) -> io::Result<Listing> {
        // Folders, links and pipes of such a name are no calls, and are not counted.
        let files =
            std::fs::read_dir(&self.path)?.filter_map(Result::ok).filter(|entry| entry.file_type().is_ok_and(|it| it.is_file()));
        let names = files.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| is_name(name)).collect();
        // They begin with their time.
        names.sort_unstable();
        let total = names.len();
        let names = names.split_off(total.saturating_sub(most));
        let mut known = std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner));
        let mut seen: LiteMap<String, Seen> = LiteMap::with_capacity(names.len());
        let mut stamps = total.to_string();
        for name in names {
            // It may have gone meanwhile, or be no file.
            let Ok(stamp) = std::fs::symlink_metadata(self.path.join(&name)).and_then(|found| Stamp::of(&found)) else {
                continue;
            };
            let row = match known.remove(&name).filter(|seen| seen.stamp == stamp) {
                Some(seen) => seen.row,
                None => match self.read(&name) {
                    Ok(trace) => row::of(id(&name), &trace.lines).to_string().into(),
                    Err(_) => continue,
                },
            };
            // Writing to a string cannot fail.
            let _ = write!(stamps, "\n{name} {stamp:?}");
            seen.insert(name, Seen { stamp, row });
        }
        let rows = seen.values().rev().map(|seen| Arc::clone(&seen.row)).collect();
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = seen;
        Ok(Listing { rows, total, tag: short(&stamps) })
    }

    /// The call of that id; `None` where there is none, whatever the id is.
    pub fn one(&self, id: &str) -> Option<Trace> {
        let name = format!("{PREFIX}{id}{SUFFIX}");
        is_name(&name).then(|| self.read(&name).ok())?
    }

    /// `name` is that of a trace: one component, without anything that leads elsewhere.
    fn read(&self, name: &str) -> io::Result<Trace> {
        // No link out of the folder is followed, and a pipe with nobody behind it does not hold this thread up.
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
        let file: File = OpenOptions::new().read(true).custom_flags(flags.cast_signed()).open(self.path.join(name))?;
        Stamp::of(&file.metadata()?)?;
        let mut bytes = Vec::new();
        let read = file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
        let cut = read as u64 > MAX_BYTES;
        let mut trace = Trace { lines: Vec::new(), unreadable: 0, cut };
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
            match serde_json::from_slice(line) {
                Ok(Value::Object(members)) => trace.lines.push(members),
                _ => trace.unreadable += 1,
            }
        }
        Ok(trace)
    }
}

impl Stamp {
    fn of(found: &Metadata) -> io::Result<Stamp> {
        if found.is_file() {
            Ok(Stamp { bytes: found.len(), changed: found.modified().ok() })
        } else {
            Err(io::ErrorKind::InvalidInput.into())
        }
    }
}

/// What stands for a file in URLs: its name without what all have.
fn id(name: &str) -> &str {
    let name = name.strip_prefix(PREFIX).unwrap_or(name);
    name.strip_suffix(SUFFIX).unwrap_or(name)
}
