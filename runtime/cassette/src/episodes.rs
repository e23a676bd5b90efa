//! Adds the calls of programs that a cassette does not have to its file.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use ptc_runtime::log::{self, Level};

use crate::Cassette;
use crate::calls::Replies;
use crate::private_file;
use crate::scrub::{Replaced, Replacements, Rule};

/// The file that receives new calls, and what is replaced in them.
pub(crate) struct Episodes {
    path: PathBuf,
    rules: Vec<Rule>,
    /// The replacements so far. The lock also makes programs write the file one after the other.
    replacements: Mutex<Replacements>,
}

impl Episodes {
    /// Prepares the additions to `cassette`, which is that of the file `path`.
    pub(crate) fn new(path: PathBuf, rules: Vec<Rule>, cassette: &Cassette) -> Episodes {
        let replacements = Mutex::new(Replacements::after(cassette, &rules));
        Episodes { path, rules, replacements }
    }

    /// Adds the calls of a program to the file, which is read again, since it may have been edited. Returns the added calls as they
    /// are in the file. If it cannot be written, this is logged, and no calls are added.
    pub(crate) fn add(&self, replies: Replies) -> Cassette {
        let mut replacements = self.replacements.lock().unwrap_or_else(PoisonError::into_inner);
        let mut added = Cassette::from(replies);
        // A rule that selects nothing in these calls may select something in others.
        let Replaced { merged, .. } = added.replace(&self.rules, &mut replacements);
        for merged in merged {
            let path = self.path.display().to_string();
            log::line(
                Level::Warn,
                "a recording does not replay its program",
                &[("file", &path), ("reason", &merged.to_string())],
            );
        }
        if let Err(error) = self.write(&added) {
            let (path, reason) = (self.path.display().to_string(), error.to_string());
            log::line(Level::Warn, "new calls are not in the cassette", &[("file", &path), ("reason", &reason)]);
            // The next program makes the calls again, and adds them if the file can be written then.
            return Cassette::default();
        }
        added
    }

    fn write(&self, added: &Cassette) -> io::Result<()> {
        let name = self.path.display().to_string();
        let mut whole = match fs::read_to_string(&self.path) {
            Ok(text) => Cassette::read(&name, &text).map_err(io::Error::other)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Cassette::default(),
            Err(error) => return Err(error),
        };
        whole.add(added);
        private_file::replace(&self.path, whole.to_string().as_bytes())
    }
}
