//! Records undeclared arguments of open tools whose names are similar to declared ones.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::fault::excerpt;
use crate::request::Call;

/// Maximum number of recorded names, since a program may compute names.
const MAX_NAMES: usize = 20;
/// Maximum characters of a name in a note.
const MAX_NAME: usize = 60;

/// A tool, and the name of an argument.
type Key = (String, String);

/// The sent names, each with the similar declared name and the number of calls.
#[derive(Debug, Default)]
pub(super) struct Misspelt(Mutex<BTreeMap<Key, (&'static str, u64)>>);

impl Misspelt {
    /// Examines the arguments of a call before it is sent.
    pub(super) fn see(&self, call: &Call<'_>) {
        for (name, near) in call.misspelt() {
            let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let key = (format!("{}/{}", call.upstream.name, call.tool.name), excerpt(name, MAX_NAME).into_owned());
            if seen.len() < MAX_NAMES || seen.contains_key(&key) {
                seen.entry(key).or_insert((near, 0)).1 += 1;
            }
        }
    }

    /// Returns a sentence for each name.
    pub(super) fn notes(&self) -> Vec<String> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let note = |((tool, name), (near, calls)): (&Key, &(&str, u64))| {
            let calls = if *calls == 1 { "1 call".to_owned() } else { format!("{calls} calls") };
            format!(
                "{tool} does not declare the argument '{name}' ({calls}): did you mean '{near}'? The upstream may have ignored it"
            )
        };
        seen.iter().map(note).collect()
    }
}
