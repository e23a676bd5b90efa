//! What the turns called, and whether it may have changed something.

use ptc_catalog::Catalog;
use serde::Serialize;

use crate::upstream::CallRecord;
use crate::upstream::fault::excerpt;

/// Bytes of one call's error in an answer.
const ERROR_BYTES: usize = 300;

/// What a tool says of its effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// It changes nothing.
    Read,
    /// It may destroy.
    Write,
    /// Nothing.
    Unknown,
}

/// A call with its turn.
#[derive(Debug, Clone, Serialize)]
pub struct Entry {
    /// The call.
    #[serde(flatten)]
    pub call: CallRecord,
    /// What its tool says of its effects.
    pub effect: Effect,
    /// The program that made it, counted from 1.
    pub turn: u32,
}

/// The calls of a task.
#[derive(Debug, Default)]
pub struct Ledger {
    /// In the order in which they began.
    pub entries: Vec<Entry>,
}

impl Ledger {
    /// Takes the calls of a turn over. What went wrong counts like what went well: it may have begun.
    pub fn add(&mut self, calls: &[CallRecord], turn: u32, catalog: &'static Catalog) {
        self.entries.extend(calls.iter().map(|call| {
            let mut call = call.clone();
            call.error = call.error.map(|error| excerpt(&error, ERROR_BYTES).into_owned());
            Entry { effect: effect(catalog, &call), call, turn }
        }));
    }

    /// Whether something may have been changed, so that no other program may follow.
    pub fn may_have_changed(&self) -> bool {
        self.entries.iter().any(|entry| entry.effect != Effect::Read)
    }

    /// The calls alone.
    pub fn calls(&self) -> Vec<CallRecord> {
        self.entries.iter().map(|entry| entry.call.clone()).collect()
    }
}

fn effect(catalog: &'static Catalog, call: &CallRecord) -> Effect {
    let tool = catalog.upstream(call.server).and_then(|upstream| upstream.tool(&call.tool));
    match tool.map(|tool| (tool.annotations.read_only, tool.annotations.destructive)) {
        Some((Some(true), _)) => Effect::Read,
        Some((_, Some(true))) => Effect::Write,
        _ => Effect::Unknown,
    }
}
