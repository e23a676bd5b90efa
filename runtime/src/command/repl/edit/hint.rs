//! Hints about the arguments of the form around the cursor.

use super::known::Known;
use super::place::{At, Place, text_of};

/// Maximum length of a hint in characters.
const MAX_LEN: usize = 80;

/// Returns a hint to show after the cursor, which is at the end of `text`. It has the form of a comment, so that it is not
/// mistaken for typed text.
pub(super) fn hint(known: &Known, text: &str) -> Option<String> {
    let place = Place::of_end(text)?;
    let parts = match place.tool_call() {
        Some(call) => match call.at {
            At::Map => vec!["{:server :tool :args}".to_owned()],
            At::ArgKey(given) => {
                let missing = known.args(call.server, call.tool).filter(|arg| !given.iter().any(|key| text_of(key) == arg.name));
                missing.map(|arg| format!("{}{} {}", arg.name, if arg.required { "" } else { "?" }, arg.label)).collect()
            }
            At::ArgValue(name) => {
                let arg = known.args(call.server, call.tool).find(|arg| arg.name == text_of(name));
                arg.map(|arg| arg.label.to_owned()).into_iter().collect()
            }
            At::Key(_) | At::Server | At::Tool => Vec::new(),
        },
        None => known.arglists(place.called()?),
    };
    if parts.is_empty() {
        return None;
    }
    let mut shown = parts.join("  ");
    if let Some((end, _)) = shown.char_indices().nth(MAX_LEN) {
        shown.truncate(end);
        shown.push('…');
    }
    Some(format!("  ; {shown}"))
}
