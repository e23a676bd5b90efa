//! Checks `example` in overrides against the tools of the lock file.

use crate::config::model::Config;
use crate::diag::{Code, Diagnostic, Diagnostics, Subject};
use crate::lock::Lock;
use crate::lower::example;

/// Reports examples that the schemas of their tools refuse.
pub fn check(config: &Config, lock: &Lock, diagnostics: &mut Diagnostics) {
    for (name, upstream) in &config.upstreams {
        let Some(locked) = lock.upstreams.get(name) else { continue };
        for (key, tool) in &locked.tools {
            let Some(written) = upstream.example(key, &tool.definition) else { continue };
            let Some(fault) = example::fault(&written.value, &tool.definition) else { continue };
            let mut finding = Diagnostic::new(Code::ExampleRefused, format!("{}, so that `doc` does not show it", fault.message))
                .about(Subject::upstream(name).tool(key))
                .at(written.place.clone(), "");
            finding.hints.extend(fault.hint);
            diagnostics.push(finding);
        }
    }
}
