//! Infers the shapes of results from the answers of upstreams.
//!
//! Many tools declare no output schema. Their answers show which members objects have, which of them are optional or null, and the
//! formats of strings.
//!
//! - [`Shape`]: what values have in common.
//! - `schema`: a shape as JSON Schema.
//! - `content`: JSON, CSV and tables in texts. `formats`: the formats of strings.
//! - `names`: which texts of answers a shape may contain.
//! - [`Observer`]: observes the calls of programs.

mod content;
mod formats;
mod names;
mod observer;
mod schema;
mod shape;

use std::collections::BTreeMap;

pub use observer::{Observer, content_of};
pub use shape::Shape;

use ptc_cassette::Cassette;

use crate::json::Json;
use crate::lock::{Lock, Observed};

/// The observed answers of some tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observations {
    /// The number of answers, and their shape, by upstream and tool.
    tools: BTreeMap<(String, String), (u64, Shape)>,
}

impl From<&Cassette> for Observations {
    /// Returns what the answers of a cassette show of the shapes of results.
    fn from(cassette: &Cassette) -> Observations {
        let mut all = Observations::default();
        for (upstream, tool, value) in cassette.values() {
            all.add(upstream, tool, &value);
        }
        all
    }
}

impl Observations {
    /// Adds the content of an answer.
    pub fn add(&mut self, upstream: &str, tool: &str, content: &Json) {
        self.add_shape(upstream, tool, Shape::of(content));
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
    }

    /// Extends what a lock has of the tools. Observations of tools that it does not have are ignored. `is_replaced`: whether
    /// earlier observations of these tools are forgotten. Returns the tools with what the lock has now, by upstream and tool.
    pub fn apply(&self, lock: &mut Lock, is_replaced: bool) -> Vec<(String, String, Observed)> {
        let mut changed = Vec::new();
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
}
