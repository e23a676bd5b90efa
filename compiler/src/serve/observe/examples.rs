//! Chooses example calls among the calls of programs. Unlike shapes, they have values, so that they are stored only on request.

use std::collections::{BTreeMap, BTreeSet};

use ptc_secrets::heuristics::scan_named;

use crate::checks::lint;
use crate::config::Config;
use crate::json::Json;
use crate::lock::{Lock, LockedTool};
use crate::lower::example;

/// The arguments of answered calls by upstream and tool, the smallest first. Long ones are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct AnsweredArgs(BTreeMap<(String, String), BTreeSet<(usize, String)>>);

/// A tool without an example of its own, and what its calls did to that of the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExampleOutcome {
    /// The lock has another example than before.
    Stored,
    /// The lock has the same example as before, which is as small as every other.
    Kept,
    /// None of the calls can be an example.
    NoneSuitable,
}

impl AnsweredArgs {
    /// Adds the arguments of a call.
    pub(super) fn add(&mut self, upstream: &str, tool: &str, args: &Json) {
        let known = self.0.entry((upstream.to_owned(), tool.to_owned())).or_default();
        let text = args.canonical();
        if matches!(args, Json::Object(_)) && text.len() <= example::MAX_EXAMPLE {
            known.insert((text.len(), text));
        }
    }

    pub(super) fn extend(&mut self, other: AnsweredArgs) {
        for (tool, args) in other.0 {
            self.0.entry(tool).or_default().extend(args);
        }
    }

    /// Iterates over the tools that were called, as upstream and tool.
    pub(super) fn tools(&self) -> impl Iterator<Item = &(String, String)> {
        self.0.keys()
    }

    /// Stores the smallest arguments of each tool that can be its example. See [`super::Observations::apply_examples`].
    pub(super) fn apply(
        &self,
        config: &Config,
        lock: &mut Lock,
        is_example: &dyn Fn(&LockedTool, &Json) -> bool,
    ) -> Vec<(String, String, ExampleOutcome)> {
        let mut outcomes = Vec::new();
        for ((upstream, name), args) in &self.0 {
            let entry = config.upstreams.get(upstream);
            let Some(tool) = lock.upstreams.get_mut(upstream).and_then(|locked| locked.tools.get_mut(name)) else { continue };
            let is_written = entry.is_some_and(|entry| entry.example(name, &tool.definition).is_some());
            if is_written || example::is_stated(&tool.definition) {
                continue;
            }
            let known = tool.example.as_ref().map(Json::canonical).map(|text| (text.len(), text));
            let candidates: BTreeSet<_> = args.iter().chain(&known).collect();
            let can_be =
                |args: &Json| lint::is_presentable(config, args) && !has_named_secret("", args) && is_example(tool, args);
            let chosen = candidates.into_iter().filter_map(|(_, text)| Json::parse(text)).find(can_be);
            let outcome = match chosen {
                None => ExampleOutcome::NoneSuitable,
                Some(chosen) if tool.example.as_ref() == Some(&chosen) => ExampleOutcome::Kept,
                Some(chosen) => {
                    tool.example = Some(chosen);
                    ExampleOutcome::Stored
                }
            };
            outcomes.push((upstream.clone(), name.clone(), outcome));
        }
        outcomes
    }
}

/// Whether a text is likely a secret because of the name of its member.
fn has_named_secret(name: &str, value: &Json) -> bool {
    match value {
        Json::String(text) => scan_named(name, text).is_some_and(|found| found.likely),
        Json::Array(items) => items.iter().any(|item| has_named_secret(name, item)),
        Json::Object(members) => members.iter().any(|(name, value)| has_named_secret(name, value)),
        Json::Null | Json::Bool(_) | Json::Number(_) => false,
    }
}
