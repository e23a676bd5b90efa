//! Compares the calls of a program with those that a case expects.

use std::num::NonZeroU32;

use ptc_compiler::json::Json;
use ptc_text::join_limited;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::injection::SeenCall;

/// Maximum number of calls that a report lists.
const LISTED: usize = 10;

/// An expected call.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExpectedCall {
    /// The upstream.
    server: String,
    /// The tool.
    tool: String,
    /// The arguments. Without this member, any are accepted.
    args: Option<Value>,
    /// How often the call is made. Without this member, once.
    times: Option<NonZeroU32>,
}

/// One expected call, with its arguments as canonical text.
struct Wanted<'c> {
    call: &'c ExpectedCall,
    args: Option<String>,
}

impl Wanted<'_> {
    fn is(&self, seen: &SeenCall) -> bool {
        let is_tool = seen.key.upstream == self.call.server && seen.key.tool == self.call.tool;
        is_tool && self.args.as_ref().is_none_or(|args| seen.args == *args)
    }

    fn text(&self) -> String {
        let ExpectedCall { server, tool, .. } = self.call;
        format!("{server}/{tool} {}", self.args.as_deref().unwrap_or("with any arguments"))
    }
}

fn text(seen: &SeenCall) -> String {
    format!("{}/{} {}", seen.key.upstream, seen.key.tool, seen.key.request)
}

/// Returns the expected calls with repetitions, without more of these than `most`, since others would be missing anyway.
fn expanded(expected: &[ExpectedCall], most: usize) -> Vec<Wanted<'_>> {
    let mut wanted = Vec::new();
    for call in expected {
        let args = call.args.as_ref().map(|args| Json::from(args).canonical());
        let times = call.times.map_or(1, |times| times.get() as usize).min(most);
        wanted.extend((0..times).map(|_| Wanted { call, args: args.clone() }));
    }
    wanted
}

/// Returns the expected calls that were not made and the calls that are not expected, as texts. `None` if there are neither.
pub(super) fn in_any_order(expected: &[ExpectedCall], calls: &[SeenCall]) -> Option<(String, String)> {
    let mut others: Vec<&SeenCall> = calls.iter().collect();
    let mut missing = Vec::new();
    // Calls with given arguments take their calls first, since any call matches the others.
    let wanted = expanded(expected, calls.len() + LISTED);
    let (exact, any): (Vec<_>, Vec<_>) = wanted.into_iter().partition(|wanted| wanted.args.is_some());
    for wanted in exact.into_iter().chain(any) {
        match others.iter().position(|seen| wanted.is(seen)) {
            Some(at) => drop(others.remove(at)),
            None => missing.push(wanted.text()),
        }
    }
    if missing.is_empty() && others.is_empty() {
        return None;
    }
    let shown = |calls: Vec<String>| {
        if calls.is_empty() { "no further call".to_owned() } else { join_limited(&calls, "; ", LISTED) }
    };
    Some((shown(missing), shown(others.into_iter().map(text).collect())))
}

/// Returns the first expected call that differs, with the call in its place, as texts. `None` if all are equal.
pub(super) fn in_order(expected: &[ExpectedCall], calls: &[SeenCall]) -> Option<(String, String)> {
    let wanted = expanded(expected, calls.len() + 1);
    let count = wanted.len().max(calls.len());
    let differs = |at: &usize| match (wanted.get(*at), calls.get(*at)) {
        (Some(wanted), Some(seen)) => !wanted.is(seen),
        _ => true,
    };
    let at = (0..count).find(differs)?;
    let shown = |call: Option<String>| match call {
        Some(call) => format!("call {}: {call}", at + 1),
        None => format!("no call {}", at + 1),
    };
    Some((shown(wanted.get(at).map(Wanted::text)), shown(calls.get(at).map(text))))
}
