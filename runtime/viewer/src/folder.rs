//! A folder of trace files. Other processes write to it.

use std::fmt::Write as _;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use litemap::LiteMap;
use ptc_runtime::diagnostics::trace::{DENIAL, PREFIX, SUFFIX, is_name};
use ptc_runtime::digest::short;
use rustix::fs::OFlags;
use serde_json::{Map, Value};

use crate::row;

/// Maximum bytes of a file that are read. A call writes a context, a result and printed lines, each within limits of the server.
const MAX_BYTES: u64 = 32 << 20;

/// The folder, with cached rows of its files.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    seen: Mutex<LiteMap<String, Seen>>,
}

/// A cached row, valid as long as its file is unchanged.
#[derive(Debug, Clone)]
struct Seen {
    stamp: Stamp,
    row: Arc<str>,
    /// The digest of the call's owner.
    owner: Option<Arc<str>>,
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
    /// Number of calls in the folder.
    pub total: usize,
    /// A tag that changes with any row.
    pub tag: String,
}

/// The content of a trace file.
#[derive(Debug)]
pub struct Trace {
    /// Its lines that are JSON objects.
    pub lines: Vec<Map<String, Value>>,
    /// Number of other lines.
    pub unreadable: usize,
    /// Whether the file is longer than the part that was read.
    pub cut: bool,
}

impl Folder {
    /// Uses a folder. Nothing is read yet.
    pub fn new(path: &Path) -> Folder {
        Folder { path: path.to_owned(), seen: Mutex::default() }
    }

    /// Returns at most `most` of the newest calls, of all owners or only of the one with this digest. Only files that are new or have changed are read.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder cannot be listed. Files that cannot be read are omitted.
    pub fn newest(&self, most: usize, only: Option<&str>) -> io::Result<Listing> {
        // Folders, links and pipes with such a name are ignored.
        let files =
            std::fs::read_dir(&self.path)?.filter_map(Result::ok).filter(|entry| entry.file_type().is_ok_and(|it| it.is_file()));
        let names = files.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| is_name(name)).collect();
        // File names start with a timestamp.
        names.sort_unstable();
        let mut total = names.len();
        // The owner of a call is inside its file.
        let names = if only.is_some() { names } else { names.split_off(total.saturating_sub(most)) };
        let mut known = std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner));
        let mut seen: LiteMap<String, Seen> = LiteMap::with_capacity(names.len());
        for name in names {
            // The file may have been removed or replaced.
            let Ok(stamp) = std::fs::symlink_metadata(self.path.join(&name)).and_then(|found| Stamp::from_metadata(&found))
            else {
                continue;
            };
            let row = match known.remove(&name).filter(|seen| seen.stamp == stamp) {
                Some(seen) => seen,
                None => match self.read(&name) {
                    Ok(trace) => {
                        let row = row::from_trace(id(&name), &trace.lines).to_string().into();
                        Seen { stamp, row, owner: trace.owner().map(Into::into) }
                    }
                    Err(_) => continue,
                },
            };
            seen.insert(name, row);
        }
        let mut shown: Vec<_> =
            seen.iter().rev().filter(|(_, seen)| only.is_none_or(|only| seen.owner.as_deref() == Some(only))).collect();
        if only.is_some() {
            total = shown.len();
            shown.truncate(most);
        }
        let mut stamps = total.to_string();
        for (name, seen) in &shown {
            // Writing to a string cannot fail.
            let _ = write!(stamps, "\n{name} {:?}", seen.stamp);
        }
        let rows = shown.into_iter().map(|(_, seen)| Arc::clone(&seen.row)).collect();
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = seen;
        Ok(Listing { rows, total, tag: short(&stamps) })
    }

    /// Returns the call with this id. Returns `None` if there is none, or if it is not of the owner with this digest; the id may
    /// be any text.
    pub fn one(&self, id: &str, only: Option<&str>) -> Option<Trace> {
        let name = format!("{PREFIX}{id}{SUFFIX}");
        let mut trace = is_name(&name).then(|| self.read(&name).ok())??;
        let Some(only) = only else { return Some(trace) };
        trace.lines.iter_mut().for_each(|line| drop(line.remove(DENIAL)));
        (trace.owner() == Some(only)).then_some(trace)
    }

    /// Reads a file. `name` must be the name of a trace, a single path component.
    fn read(&self, name: &str) -> io::Result<Trace> {
        // Links are not followed, since they may lead out of the folder. Opening a pipe without a writer does not block.
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
        let file: File = OpenOptions::new().read(true).custom_flags(flags.cast_signed()).open(self.path.join(name))?;
        Stamp::from_metadata(&file.metadata()?)?;
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

impl Trace {
    /// Returns the digest of the call's owner, which the first line has.
    fn owner(&self) -> Option<&str> {
        self.lines.first()?.get("owner_hash")?.as_str()
    }
}

impl Stamp {
    fn from_metadata(found: &Metadata) -> io::Result<Stamp> {
        if found.is_file() {
            Ok(Stamp { bytes: found.len(), changed: found.modified().ok() })
        } else {
            Err(io::ErrorKind::InvalidInput.into())
        }
    }
}

/// Returns the id of a file in URLs, which is its name without prefix and suffix.
fn id(name: &str) -> &str {
    let name = name.strip_prefix(PREFIX).unwrap_or(name);
    name.strip_suffix(SUFFIX).unwrap_or(name)
}
