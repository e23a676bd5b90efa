//! The observed shapes of tools that declare no output schema.

use std::collections::HashMap;

use ptc_compiler::lock::Lock;
use ptc_compiler::lower;

use crate::answers::declared_output::DeclaredOutput;

/// Shapes by upstream and tool.
#[derive(Default)]
pub(super) struct ObservedShapes(HashMap<(String, String), DeclaredOutput>);

impl ObservedShapes {
    /// Collects the shapes of a lock. A declared schema takes precedence, unless it says nothing about members or items.
    pub(super) fn new(lock: &Lock) -> ObservedShapes {
        let mut found = HashMap::new();
        for (upstream, locked) in &lock.upstreams {
            for (name, tool) in &locked.tools {
                if let (Some(observed), None) = (&tool.observed, lower::declared_output(&tool.definition)) {
                    let shape = DeclaredOutput::from_schema(Some(observed.schema.clone()));
                    found.insert((upstream.clone(), name.clone()), shape);
                }
            }
        }
        ObservedShapes(found)
    }

    /// Returns the shape of a tool.
    pub(super) fn get(&self, upstream: &str, tool: &str) -> Option<&DeclaredOutput> {
        self.0.get(&(upstream.to_owned(), tool.to_owned()))
    }
}
