//! Failed calls of `tool/call`, and whether the program has read their status.
//!
//! The result of a failed call is a map that holds a `FailedCall`. All of its copies hold it too, wherever they are: locals,
//! vectors, other threads, definitions of a session. The program has read the status once it has looked up `:ok`, `:reason` or
//! `:message` (also by `contains?`, destructuring or `select-keys`), or has iterated over all entries: printing, encoding,
//! `keys`, `seq`, or an answer that shows the map. Looking up `:value`, comparing, hashing and nil checks do not count. A map
//! that `assoc`, `dissoc`, `update` or `merge` derives from the result has the status, too.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::collection::Map;
use ptc_text::truncate_utf8;

/// Maximum number of groups by tool and reason. Calls of further tools are counted in one group, so that computed names take
/// bounded memory.
const MAX_GROUPS: usize = 100;

/// Maximum bytes that are stored of a name and of a message.
const MAX_TEXT_BYTES: usize = 500;

/// The failed calls of a run. Clones share one list.
#[derive(Debug, Clone, Default)]
pub struct FailedCalls(Arc<Mutex<Groups>>);

/// Groups by server, tool and reason.
type Groups = BTreeMap<[String; 3], Arc<Group>>;

/// Calls of one tool that failed for the same reason.
#[derive(Debug)]
struct Group {
    /// The message of the first call.
    message: String,
    failed: AtomicU64,
    checked: AtomicU64,
}

/// One failed call.
#[derive(Debug)]
pub(crate) struct FailedCall {
    group: Arc<Group>,
    checked: AtomicBool,
}

impl FailedCall {
    /// Records that the program has read the status.
    #[cold]
    pub(crate) fn check(&self) {
        if !self.checked.swap(true, Ordering::Relaxed) {
            self.group.checked.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Calls of one tool that failed for the same reason and whose status the program has not read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UncheckedCalls {
    /// The name of the upstream.
    pub server: String,
    /// The name of the tool. Both names are empty in the group of further tools.
    pub tool: String,
    /// The documented reason.
    pub reason: String,
    /// The message of one of the calls.
    pub message: String,
    /// Number of calls.
    pub count: u64,
}

impl FailedCalls {
    /// Counts a failed call and marks `result` as its result.
    pub(crate) fn track(&self, mut result: Map, [server, tool, reason, message]: [&str; 4]) -> Map {
        let mut groups = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut key = [server, tool, reason].map(|text| truncate_utf8(text, MAX_TEXT_BYTES).0.to_owned());
        if groups.len() >= MAX_GROUPS && !groups.contains_key(&key) {
            key = ["", "", reason].map(str::to_owned);
        }
        let group = groups.entry(key).or_insert_with(|| {
            let message = truncate_utf8(message, MAX_TEXT_BYTES).0.to_owned();
            Arc::new(Group { message, failed: AtomicU64::new(0), checked: AtomicU64::new(0) })
        });
        group.failed.fetch_add(1, Ordering::Relaxed);
        result.track(Arc::new(FailedCall { group: Arc::clone(group), checked: AtomicBool::new(false) }));
        result
    }

    /// The calls whose status has not been read, sorted by upstream, tool and reason.
    pub fn unchecked(&self) -> Vec<UncheckedCalls> {
        let groups = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let unchecked = groups.iter().map(|([server, tool, reason], group)| UncheckedCalls {
            server: server.clone(),
            tool: tool.clone(),
            reason: reason.clone(),
            message: group.message.clone(),
            count: group.failed.load(Ordering::Relaxed).saturating_sub(group.checked.load(Ordering::Relaxed)),
        });
        unchecked.filter(|calls| calls.count > 0).collect()
    }
}
