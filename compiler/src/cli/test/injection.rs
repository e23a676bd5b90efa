//! Changes the answers of upstreams in one run of a program, and notes the calls with the answers that they got.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Mutex, PoisonError};

use ptc_catalog::Tool;
use ptc_compiler::serve::cassette::{request_args, request_text};
use ptc_runtime::upstream::intercept::{InterceptedCall, Interception};

use crate::answers::Outcome;

/// A call of a program. Equal requests are numbered, so that the key of a call does not depend on the order in which parallel calls
/// start.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct CallKey {
    /// The upstream.
    pub(super) upstream: &'static str,
    /// The tool.
    pub(super) tool: &'static str,
    /// The request as canonical text: the arguments, `:accept` and `:body`.
    pub(super) request: String,
    /// The number among equal requests, from 1 on.
    pub(super) index: usize,
}

impl fmt::Display for CallKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CallKey { upstream, tool, request, index } = self;
        write!(f, "{upstream}/{tool} {request}")?;
        if *index > 1 { write!(f, ", call {index} with these arguments") } else { Ok(()) }
    }
}

/// A call with its answer.
#[derive(Debug, Clone)]
pub(super) struct SeenCall {
    pub(super) key: CallKey,
    /// The arguments as canonical JSON.
    pub(super) args: String,
    pub(super) tool: &'static Tool,
    pub(super) outcome: Outcome,
}

/// Determines the answers of a run.
pub(super) trait Answers: Send + Sync {
    /// Returns the answer to a call. `recorded` is that of the cassette, if it has one. `None` ends the program.
    fn answer(&self, key: &CallKey, tool: &'static Tool, recorded: Option<Outcome>) -> Option<Outcome>;
}

/// The answers as they were recorded.
pub(super) struct AsRecorded;

impl Answers for AsRecorded {
    fn answer(&self, _: &CallKey, _: &'static Tool, recorded: Option<Outcome>) -> Option<Outcome> {
        recorded
    }
}

/// The recorded answers, of which some are replaced.
pub(super) struct Replaced {
    /// The replaced answers.
    pub(super) answers: BTreeMap<CallKey, Outcome>,
    /// The answers to requests that the cassette lacks, by upstream and tool.
    pub(super) others: OtherAnswers,
}

/// Answers to requests that the cassette lacks, by upstream and tool. A changed answer often leads to other requests.
pub(super) type OtherAnswers = BTreeMap<(&'static str, &'static str), Outcome>;

impl Answers for Replaced {
    fn answer(&self, key: &CallKey, _: &'static Tool, recorded: Option<Outcome>) -> Option<Outcome> {
        let replaced = self.answers.get(key).cloned();
        replaced.or(recorded).or_else(|| self.others.get(&(key.upstream, key.tool)).cloned())
    }
}

/// The answers of one run, and its calls so far.
pub(super) struct Injection {
    answers: Box<dyn Answers>,
    seen: Mutex<Seen>,
}

/// The calls of a run.
#[derive(Debug, Default)]
pub(super) struct Seen {
    counts: HashMap<(&'static str, &'static str, String), usize>,
    /// The answered calls, in the order of their start.
    pub(super) calls: Vec<SeenCall>,
    /// The first call without an answer.
    pub(super) unanswered: Option<String>,
}

impl Injection {
    pub(super) fn new(answers: impl Answers + 'static) -> Injection {
        Injection { answers: Box::new(answers), seen: Mutex::default() }
    }

    /// Answers a call. `recorded` is the decision of the cassette.
    pub(super) fn answer(&self, call: &InterceptedCall, recorded: Interception) -> Interception {
        let mut key = CallKey { upstream: call.upstream.name, tool: call.tool.name, request: request_text(call), index: 1 };
        {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            let count = seen.counts.entry((key.upstream, key.tool, key.request.clone())).or_default();
            *count += 1;
            key.index = *count;
        }
        let (recorded, refusal) = match recorded {
            Interception::Answer(outcome) | Interception::AnswerAfter(_, outcome) => (Some(outcome), Interception::PassOn),
            other => (None, other),
        };
        let answer = self.answers.answer(&key, call.tool, recorded);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(outcome) = answer else {
            seen.unanswered.get_or_insert_with(|| key.to_string());
            return refusal;
        };
        seen.calls.push(SeenCall { key, args: request_args(call), tool: call.tool, outcome: outcome.clone() });
        Interception::Answer(outcome)
    }

    /// Returns the calls.
    pub(super) fn seen(&self) -> Seen {
        std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
