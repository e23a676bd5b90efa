//! The upstream calls of all turns, and whether they may have changed something.

use ptc_catalog::{Catalog, EffectKind};
use serde::Serialize;

use crate::upstream::CallRecord;
use crate::upstream::fault::excerpt;

/// Maximum bytes of one call's error in an answer.
const ERROR_BYTES: usize = 300;

/// The effect that a tool declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// The tool changes nothing.
    Read,
    /// The tool may change something.
    Write,
    /// The tool declares no effect.
    Unknown,
}

/// A call with its turn.
#[derive(Debug, Clone, Serialize)]
pub struct Entry {
    /// The call.
    #[serde(flatten)]
    pub call: CallRecord,
    /// The effect that its tool declares.
    pub effect: Effect,
    /// Number of the turn, counted from 1.
    pub turn: u32,
}

/// The calls of a task.
#[derive(Debug, Default)]
pub struct Ledger {
    /// The calls, in the order of their start.
    pub entries: Vec<Entry>,
}

impl Ledger {
    /// Adds the calls of a turn. Failed calls are included, since they may have been executed in part.
    pub fn add(&mut self, calls: &[CallRecord], turn: u32, catalog: &'static Catalog) {
        self.entries.extend(calls.iter().map(|call| {
            let mut call = call.clone();
            call.error = call.error.map(|error| excerpt(&error, ERROR_BYTES).into_owned());
            Entry { effect: effect(catalog, &call), call, turn }
        }));
    }

    /// Whether a call may have changed something, so that no further program may run.
    pub fn may_have_changed(&self) -> bool {
        self.entries.iter().any(|entry| entry.effect != Effect::Read)
    }

    /// Returns the records of the calls.
    pub fn calls(&self) -> Vec<CallRecord> {
        self.entries.iter().map(|entry| entry.call.clone()).collect()
    }
}

fn effect(catalog: &'static Catalog, call: &CallRecord) -> Effect {
    let tool = catalog.upstream(call.server).and_then(|upstream| upstream.tool(&call.tool));
    match tool.map(|tool| tool.effect().kind) {
        Some(EffectKind::Read) => Effect::Read,
        Some(EffectKind::Write) => Effect::Write,
        Some(EffectKind::Unknown) | None => Effect::Unknown,
    }
}
