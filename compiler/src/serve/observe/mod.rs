//! Infers the shapes of results from the answers of upstreams.
//!
//! Many tools declare no output schema. Their answers show which members objects have, which of them are optional or null, and the
//! formats of strings.
//!
//! - [`Shape`]: what values have in common.
//! - `schema`: a shape as JSON Schema.
//! - `content`: JSON, CSV and tables in texts. `formats`: the formats of strings.
//! - `names`: which texts of answers a shape may contain.
//! - `examples`: example calls among the calls of programs.
//! - [`Observer`]: observes the calls of programs.

mod content;
mod examples;
mod formats;
mod names;
mod observer;
mod schema;
mod shape;

use std::collections::BTreeMap;

pub use examples::ExampleOutcome;
pub use observer::{Observer, content_of};
pub use shape::Shape;

use ptc_cassette::Cassette;

use crate::config::Config;
use crate::json::Json;
use crate::lock::{Lock, LockedTool, Observed};
use examples::AnsweredArgs;

/// The observed answers of some tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observations {
    /// The number of answers, and their shape, by upstream and tool.
    tools: BTreeMap<(String, String), (u64, Shape)>,
    /// The arguments of the calls, among which example calls are chosen.
    args: AnsweredArgs,
}

impl From<&Cassette> for Observations {
    /// Returns what the answers of a cassette show of the shapes of results, and the arguments of its calls.
    fn from(cassette: &Cassette) -> Observations {
        let mut all = Observations::default();
        for (upstream, tool, value) in cassette.values() {
            all.add(upstream, tool, &value);
        }
        for (upstream, tool, args) in cassette.answered_args() {
            all.add_args(upstream, tool, &args);
        }
        all
    }
}

impl Observations {
    /// Adds the content of an answer.
    pub fn add(&mut self, upstream: &str, tool: &str, content: &Json) {
        self.add_shape(upstream, tool, Shape::of(content));
    }

    /// Adds the arguments of an answered call.
    pub fn add_args(&mut self, upstream: &str, tool: &str, args: &Json) {
        self.args.add(upstream, tool, args);
    }

    fn add_shape(&mut self, upstream: &str, tool: &str, shape: Shape) {
        let (answers, known) = self.tools.entry((upstream.to_owned(), tool.to_owned())).or_default();
        *answers = answers.saturating_add(1);
        known.merge(shape);
    }

    /// Adds other observations.
    pub fn extend(&mut self, other: Observations) {
        for (tool, (count, shape)) in other.tools {
            let (answers, known) = self.tools.entry(tool).or_default();
            *answers = answers.saturating_add(count);
            known.merge(shape);
        }
        self.args.extend(other.args);
    }

    /// Extends what a lock has of the tools. Observations of tools that it does not have are ignored. `is_replaced`: whether
    /// earlier observations of these tools are forgotten, with their examples. Returns the tools with what the lock has now, by upstream and tool.
    pub fn apply(&self, lock: &mut Lock, is_replaced: bool) -> Vec<(String, String, Observed)> {
        let mut changed = Vec::new();
        for (upstream, tool) in self.tools.keys().chain(self.args.tools()).filter(|_| is_replaced) {
            if let Some(locked) = lock.upstreams.get_mut(upstream).and_then(|locked| locked.tools.get_mut(tool)) {
                locked.example = None;
            }
        }
        for ((upstream, tool), (answers, shape)) in &self.tools {
            let Some(locked) = lock.upstreams.get_mut(upstream).and_then(|locked| locked.tools.get_mut(tool)) else { continue };
            let (mut answers, mut shape) = (*answers, shape.clone());
            if let Some(known) = locked.observed.take().filter(|_| !is_replaced) {
                answers = answers.saturating_add(known.answers);
                shape.merge(Shape::from_schema(&known.schema));
            }
            let observed = Observed { answers, schema: shape.to_schema().sorted() };
            locked.observed = Some(observed.clone());
            changed.push((upstream.clone(), tool.clone(), observed));
        }
        changed
    }

    /// Stores an example of each tool that was called, that is in the lock, and that has no example in the config or in its definition: the
    /// smallest arguments of its answered calls and of the earlier example that `is_example` accepts. Arguments that were redacted,
    /// that look like secrets or like an attack, or that are longer than [`MAX_EXAMPLE`](crate::lower::example::MAX_EXAMPLE)
    /// bytes are not used. Returns these tools with what happened, by upstream and tool.
    pub fn apply_examples(
        &self,
        config: &Config,
        lock: &mut Lock,
        is_example: &dyn Fn(&LockedTool, &Json) -> bool,
    ) -> Vec<(String, String, ExampleOutcome)> {
        self.args.apply(config, lock, is_example)
    }
}
