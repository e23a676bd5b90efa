//! The state of a session between calls.

use std::collections::VecDeque;

use ptc_lisp::{Bindings, Value, print};
use serde::Serialize;

use super::Fault;
use crate::settings::StateLimits;
use ptc_engine::evaluation::{CalledTools, Evaluation, PriorState};
use ptc_text::truncate_utf8;

/// Number of recent results: `*1 *2 *3`.
const MAX_RESULTS: usize = 3;
/// Size in bytes of the preview that replaces a result too large to store.
const PREVIEW_BYTES: usize = 512;

/// Definitions, recent results and histories.
#[derive(Debug, Clone, Default)]
pub struct SessionState {
    /// The definitions of `def` and `defn`.
    pub bindings: Bindings,
    /// `*1 *2 *3`, newest first.
    pub results: Vec<Value>,
    /// Printed lines.
    pub prints: Log,
    /// Calls of upstream tools, as JSON.
    pub upstream_calls: Log,
    /// Tools whose answers the session has received.
    pub called: CalledTools,
}

/// The most recent entries, limited in number and bytes.
#[derive(Debug, Clone, Default)]
pub struct Log {
    entries: VecDeque<String>,
    bytes: usize,
}

/// How much of its limits a session uses.
#[derive(Debug, Serialize)]
pub struct Usage {
    memory_bytes: usize,
    binding_count: usize,
    history_bytes: usize,
    history_count: usize,
    print_bytes: usize,
    print_entries: usize,
    tool_call_bytes: usize,
    tool_call_entries: usize,
    upstream_call_bytes: usize,
    upstream_call_entries: usize,
}

impl SessionState {
    /// Returns the state after a successful evaluation, with the names that it defined or changed.
    ///
    /// # Errors
    ///
    /// Returns [`Fault::Limit`] if a binding, the number of bindings or all bindings together exceed a limit.
    pub fn updated_by(&self, evaluation: &Evaluation, limits: &StateLimits) -> Result<(SessionState, Vec<String>), Fault> {
        let (mut kept, changed) = self
            .with_values(evaluation, limits)
            .map_err(|why| Fault::Limit(format!("{why}; nothing of this evaluation was kept. lisp_session_forget makes room")))?;
        for line in &evaluation.prints {
            kept.prints.push(line.clone(), limits.max_print_entries, limits.max_print_bytes);
        }
        Ok((kept, changed))
    }

    /// Returns the state with the definitions, the result and the calls of a successful evaluation, and the names that it defined
    /// or changed.
    ///
    /// # Errors
    ///
    /// Returns a sentence if a binding, the number of bindings or all bindings together exceed a limit.
    pub fn with_values(&self, evaluation: &Evaluation, limits: &StateLimits) -> Result<(SessionState, Vec<String>), String> {
        let bindings = evaluation.bindings.clone();
        let changed: Vec<String> = bindings.changes(&self.bindings).map(|(name, _)| name.to_owned()).collect();
        for name in &changed {
            let bytes = bindings.get(name).map_or(0, bytes_of);
            if bytes > limits.max_binding_bytes {
                let most = limits.max_binding_bytes;
                return Err(format!("the binding `{name}` takes {bytes} bytes, one may take {most}"));
            }
        }
        if bindings.len() > limits.max_bindings {
            return Err(format!("{} bindings, a session may have {}", bindings.len(), limits.max_bindings));
        }
        let bytes = bindings.bytes();
        if bytes > limits.max_memory_bytes {
            return Err(format!("the bindings take {bytes} bytes, a session may keep {}", limits.max_memory_bytes));
        }
        let mut kept = SessionState { bindings, ..self.clone() };
        if let Some(value) = &evaluation.value {
            kept.results.insert(0, recent(value, limits.max_history_entry_bytes));
            kept.results.truncate(MAX_RESULTS);
        }
        kept.called.add(evaluation.calls.as_deref().unwrap_or_default());
        for call in evaluation.calls.iter().flatten() {
            let record = serde_json::to_string(call).unwrap_or_default();
            kept.upstream_calls.push(record, limits.max_upstream_call_entries, limits.max_upstream_call_bytes);
        }
        Ok((kept, changed))
    }

    /// Returns the size in bytes.
    pub fn bytes(&self) -> usize {
        let results: usize = self.results.iter().map(Value::heap_bytes).sum();
        self.bindings.bytes() + results + self.prints.bytes + self.upstream_calls.bytes
    }

    /// Returns the initial state of the next evaluation.
    pub fn prior_state(&self) -> PriorState {
        PriorState { bindings: self.bindings.clone(), results: self.results.clone(), called: self.called.clone(), is_kept: true }
    }

    /// Returns the names that have a value, in alphabetical order.
    pub fn names(&self) -> Vec<String> {
        self.bindings.iter().map(|(name, _)| name.to_owned()).collect()
    }

    /// Returns how much of its limits it uses.
    pub fn usage(&self) -> Usage {
        Usage {
            memory_bytes: self.bindings.bytes(),
            binding_count: self.bindings.len(),
            history_bytes: self.results.iter().map(Value::heap_bytes).sum(),
            history_count: self.results.len(),
            print_bytes: self.prints.bytes,
            print_entries: self.prints.entries.len(),
            // A server has no application tools: their history stays empty.
            tool_call_bytes: 0,
            tool_call_entries: 0,
            upstream_call_bytes: self.upstream_calls.bytes,
            upstream_call_entries: self.upstream_calls.entries.len(),
        }
    }
}

impl Log {
    /// Creates a log of these entries, which must be within its limits.
    pub fn from_entries(entries: Vec<String>) -> Log {
        Log { bytes: entries.iter().map(String::len).sum(), entries: entries.into() }
    }

    /// Appends an entry and drops the oldest ones above the limits. An entry longer than `most_bytes` is not stored.
    pub fn push(&mut self, entry: String, most: usize, most_bytes: usize) {
        if entry.len() > most_bytes {
            return;
        }
        self.bytes += entry.len();
        self.entries.push_back(entry);
        while self.entries.len() > most || self.bytes > most_bytes {
            let Some(oldest) = self.entries.pop_front() else { break };
            self.bytes -= oldest.len();
        }
    }

    /// Iterates over the entries from the oldest to the newest.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(String::as_str)
    }

    /// Whether it has no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// Returns the bytes of a binding's value.
pub(super) fn bytes_of(value: &Value) -> usize {
    size_of::<Value>() + value.heap_bytes()
}

/// Returns the stored form of a result. A result that is too large is replaced with a map that says so, or with nil if even that
/// does not fit.
fn recent(value: &Value, most: usize) -> Value {
    let bytes = value.heap_bytes();
    if bytes <= most {
        return value.clone();
    }
    let marker = |shown: usize| {
        let print::Preview { text, .. } = print::preview(value, PREVIEW_BYTES);
        let (text, _) = truncate_utf8(&text, shown);
        let members = [
            ("lisp_session_preview", Value::bool(true)),
            ("bytes", Value::int(i64::try_from(bytes).unwrap_or(i64::MAX))),
            ("max_bytes", Value::int(i64::try_from(most).unwrap_or(i64::MAX))),
            ("preview", Value::string(text)),
        ];
        Value::map(members.map(|(name, value)| (Value::keyword(name), value)))
    };
    let fitting = [PREVIEW_BYTES, PREVIEW_BYTES / 4, 0].into_iter().map(marker).find(|marker| marker.heap_bytes() <= most);
    fitting.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_retains_the_newest_entries() {
        let mut log = Log::default();
        for entry in ["aa", "bb", "cc", "dddd", "too long"] {
            log.push(entry.to_owned(), 3, 7);
        }
        assert_eq!(log.iter().collect::<Vec<_>>(), ["cc", "dddd"]);
        assert_eq!(log.bytes, 6);
    }

    #[test]
    fn large_result_is_replaced_by_a_marker() {
        let large = Value::string("x".repeat(5_000));
        assert_eq!(recent(&large, 10_000), large);
        let get = |marker: &Value, name: &str| match marker {
            Value::Map(members) => members.get(&Value::keyword(name)).cloned(),
            _ => None,
        };
        for most in [2_000, 600, 10] {
            let marker = recent(&large, most);
            assert!(marker.heap_bytes() <= most, "{most}: {}", marker.heap_bytes());
            assert_eq!(get(&marker, "lisp_session_preview"), (most > 10).then(|| Value::bool(true)), "{most}");
            assert_eq!(recent(&marker, most), marker, "it fits as it is");
        }
    }
}
