//! Checks the examples of overrides and of the lock file against the tools of the lock file.

use crate::config::model::{Config, Upstream};
use crate::diag::{Code, Diagnostic, Diagnostics, Subject, quoted};
use crate::lock::{Lock, LockedTool};
use crate::lower::example::{self, Example};

/// Advice for an example of the lock file, which people do not write.
const RECORD: &str = "`ptc-compile observe` with `--replace` and `--examples` stores another one";

/// A tool with its example call.
#[derive(Debug, Clone, Copy)]
pub struct ToolExample<'a> {
    upstream: &'a str,
    entry: &'a Upstream,
    name: &'a str,
    /// The tool.
    pub tool: &'a LockedTool,
    /// The example.
    pub example: Example<'a>,
}

impl ToolExample<'_> {
    /// Returns the finding that the example is refused. `message` and `hint` must not contain its values, which may be secrets.
    pub fn finding(&self, message: &str, hint: Option<String>) -> Diagnostic {
        let about = Subject::upstream(self.upstream).tool(self.name);
        let (message, place) = if let Some(place) = self.example.place {
            (message.to_owned(), place)
        } else {
            let tool = format!("{} of {}", quoted(self.name), quoted(self.upstream));
            (format!("the lock file has an example of {tool}: {message}"), &self.entry.place)
        };
        let mut finding = Diagnostic::new(Code::ExampleRefused, message).about(about).at(place.clone(), "");
        finding.hints.extend(hint.or_else(|| self.example.place.is_none().then(|| RECORD.to_owned())));
        finding
    }
}

/// Iterates over the example calls of all tools.
pub fn examples<'a>(config: &'a Config, lock: &'a Lock) -> impl Iterator<Item = ToolExample<'a>> {
    let locked = config.upstreams.iter().filter_map(|(name, entry)| Some((name, entry, lock.upstreams.get(name)?)));
    locked.flat_map(|(upstream, entry, locked)| {
        locked.tools.iter().filter_map(move |(name, tool)| {
            let example = example::of_tool(Some(entry), name, tool)?;
            Some(ToolExample { upstream, entry, name, tool, example })
        })
    })
}

/// Reports examples that the schemas of their tools refuse.
pub fn check(config: &Config, lock: &Lock, diagnostics: &mut Diagnostics) {
    for found in examples(config, lock) {
        if let Some(fault) = example::fault(found.example.args, &found.tool.definition) {
            diagnostics.push(found.finding(&format!("{}, so that `doc` does not show it", fault.message), fault.hint));
        }
    }
}
