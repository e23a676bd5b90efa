//! Adds the calls of programs that a cassette does not have to its file.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use ptc_runtime::log::{self, Level};

use crate::calls::{Replies, RequestOfTool};
use crate::private_file;
use crate::scrub::{Replaced, Replacements, Rules};
use crate::{Cassette, Reply, Request, merge};

/// The file that receives new calls, and what is replaced in them.
pub(crate) struct Episodes {
    path: PathBuf,
    rules: Rules,
    /// The replacements so far. The lock also makes programs write the file one after the other.
    replacements: Mutex<Replacements>,
}

impl Episodes {
    /// Prepares the additions to `cassette`, which is that of the file `path`.
    pub(crate) fn new(path: PathBuf, rules: Rules, cassette: &Cassette) -> Episodes {
        let replacements = Mutex::new(Replacements::after(cassette, &rules));
        Episodes { path, rules, replacements }
    }

    /// Adds the calls of a program to the file, which is read again, since it may have been edited. Returns the added calls as they
    /// are in the file. If it cannot be written, this is logged, and no calls are added.
    pub(crate) fn add(&self, replies: Replies) -> Cassette {
        let mut replacements = self.replacements.lock().unwrap_or_else(PoisonError::into_inner);
        let plain: BTreeSet<RequestOfTool> = replies.keys().cloned().collect();
        let mut added = Cassette::from(replies);
        // A rule that selects nothing in these calls may select something in others.
        let Replaced { merged, .. } = added.replace(&self.rules.list, &mut replacements);
        for merged in merged {
            self.warn("a recording does not replay its program", &merged.to_string());
        }
        match self.write(&added, &plain) {
            Ok(tools) => {
                for tool in tools {
                    let reason = format!("a rule makes a request of {tool} equal to one of the file that got different answers");
                    self.warn("a recording does not replay its program", &reason);
                }
                added
            }
            Err(error) => {
                self.warn("new calls are not in the cassette", &error.to_string());
                // The next program makes the calls again, and adds them if the file can be written then.
                Cassette::default()
            }
        }
    }

    fn warn(&self, event: &'static str, reason: &str) {
        log::line(Level::Warn, event, &[("file", &self.path.display().to_string()), ("reason", reason)]);
    }

    /// Writes the file. Returns the tools of requests that it has already with different answers. Those that are not `plain`, which rules
    /// have changed, are meant: the others were sent by two programs at the same time.
    fn write(&self, added: &Cassette, plain: &BTreeSet<RequestOfTool>) -> io::Result<BTreeSet<String>> {
        let name = self.path.display().to_string();
        let mut whole = match fs::read_to_string(&self.path) {
            Ok(text) => Cassette::read(&name, &text).map_err(io::Error::other)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Cassette::default(),
            Err(error) => return Err(error),
        };
        let mut merged = BTreeSet::new();
        for (tool, recorded) in &added.tools {
            let Some(known) = whole.tools.get(tool) else { continue };
            let is_merged = |(request, replies): (&Request, &Vec<Reply>)| {
                !plain.contains(&(tool.clone(), request.clone()))
                    && known.requests.get(request).is_some_and(|known| !merge::are_interchangeable(known, replies))
            };
            if recorded.requests.iter().any(is_merged) {
                merged.insert(format!("{}/{}", tool.0, tool.1));
            }
        }
        whole.add(added);
        private_file::replace(&self.path, whole.to_string().as_bytes())?;
        Ok(merged)
    }
}
