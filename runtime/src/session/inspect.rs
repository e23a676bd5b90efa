//! The content of `lisp_session_inspect`. The texts are written for a model: names and shapes first, values only as previews.

use ptc_lisp::{Kind, Value, print};
use ptc_text::join_limited;
use serde_json::{Map, Value as Json, json};

use super::SessionState;
use super::state::bytes_of;
use crate::settings::SessionLimits;

/// Maximum bytes of the preview of one value.
const PREVIEW_BYTES: usize = 120;
/// Maximum number of bindings that the overview and the limits name.
const SHOWN: usize = 50;

/// A view of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// A summary of all parts.
    Overview,
    /// The bindings.
    Memory,
    /// Printed lines.
    Prints,
    /// Calls of tools.
    ToolCalls,
    /// `*1 *2 *3`.
    History,
    /// Limits and their usage.
    Limits,
}

impl View {
    /// Every view with its name.
    pub const ALL: [(&'static str, View); 6] = [
        ("overview", View::Overview),
        ("memory", View::Memory),
        ("prints", View::Prints),
        ("tool_calls", View::ToolCalls),
        ("history", View::History),
        ("limits", View::Limits),
    ];

    /// Returns the members of an answer for this view. Their strings are not redacted yet.
    pub fn show(self, kept: &SessionState, limits: &SessionLimits) -> Map<String, Json> {
        let mut shown = Map::new();
        let mut put = |name: &str, value: Json| drop(shown.insert(name.to_owned(), value));
        let text = match self {
            View::Overview => {
                put("usage", json!(kept.usage()));
                [memory(kept), history(kept), prints(kept), calls(kept)].join("\n\n")
            }
            View::Memory => {
                put("stored_keys", json!(kept.names()));
                put("usage", json!(kept.usage()));
                memory(kept)
            }
            View::Prints => {
                put("prints", kept.prints.iter().collect());
                prints(kept)
            }
            View::ToolCalls => {
                put("tool_calls", json!([]));
                put(
                    "upstream_calls",
                    kept.upstream_calls.iter().filter_map(|call| serde_json::from_str::<Json>(call).ok()).collect(),
                );
                calls(kept)
            }
            View::History => {
                let entry = |(at, value): (usize, &Value)| {
                    let preview = print::preview(value, PREVIEW_BYTES);
                    json!({ "name": format!("*{}", at + 1), "preview": preview.text, "truncated": preview.truncated })
                };
                put("history", kept.results.iter().enumerate().map(entry).collect());
                history(kept)
            }
            View::Limits => {
                put("limits", limits.told());
                put("usage", json!(kept.usage()));
                let mut largest: Vec<(usize, &str)> = kept.bindings.iter().map(|(name, value)| (bytes_of(value), name)).collect();
                largest.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(b.1)));
                let largest = largest.into_iter().take(SHOWN).map(|(bytes, name)| json!({ "name": name, "bytes": bytes }));
                put("top_bindings", largest.collect());
                format!("{} of {} bytes of bindings", kept.bindings.bytes(), limits.kept.max_memory_bytes)
            }
        };
        put("text", json!(text));
        shown
    }
}

fn memory(kept: &SessionState) -> String {
    if kept.bindings.is_empty() {
        return "no bindings".to_owned();
    }
    let lines = kept.bindings.iter().map(|(name, value)| format!("{name}: {}", shape(value)));
    format!("bindings:\n{}", join_limited(lines, "\n", SHOWN))
}

/// Describes type and size of a value. A short value is included.
fn shape(value: &Value) -> String {
    let preview = print::preview(value, PREVIEW_BYTES);
    match (value.kind(), value.len()) {
        (Kind::Function, _) => "function".to_owned(),
        (kind, Some(entries)) if preview.truncated => format!("{} of {entries}", kind.described()),
        (kind, _) if preview.truncated => kind.described().to_owned(),
        _ => preview.text,
    }
}

fn history(kept: &SessionState) -> String {
    if kept.results.is_empty() {
        return "no results yet".to_owned();
    }
    let lines = kept.results.iter().enumerate();
    let lines: Vec<String> =
        lines.map(|(at, value)| format!("*{}: {}", at + 1, print::preview(value, PREVIEW_BYTES).text)).collect();
    lines.join("\n")
}

fn prints(kept: &SessionState) -> String {
    if kept.prints.is_empty() {
        return "nothing printed".to_owned();
    }
    format!("printed:\n{}", kept.prints.iter().collect::<Vec<_>>().join("\n"))
}

fn calls(kept: &SessionState) -> String {
    if kept.upstream_calls.is_empty() {
        "no tool calls".to_owned()
    } else {
        match kept.upstream_calls.iter().count() {
            1 => "1 upstream call".to_owned(),
            calls => format!("{calls} upstream calls"),
        }
    }
}
