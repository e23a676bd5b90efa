//! How severe changes of pinned tools are. Reports, findings and `--fail-on` take it from here.
//!
//! A change has the severity of its code. If a program breaks through a tool, changes of the tool that can break programs are
//! errors: the tests of the program show it, or its text reads a removed member that was required. A tool is as severe as its worst
//! change.

use std::collections::BTreeSet;

use super::cause::Change;
use crate::diag::{Code, Diagnostics, Severity};

/// The tools through which programs break, by upstream and exposed name.
#[derive(Debug, Clone, Default)]
pub struct BreakingTools(BTreeSet<(String, String)>);

impl BreakingTools {
    /// Adds the tools that a broken program calls.
    pub fn add(&mut self, tools: &BTreeSet<(String, String)>) {
        self.0.extend(tools.iter().cloned());
    }

    /// Whether a program breaks through a tool.
    pub fn contains(&self, upstream: &str, tool: &str) -> bool {
        self.0.iter().any(|(server, name)| server == upstream && name == tool)
    }

    /// Raises the severity of findings about the changes of these tools.
    pub fn raise(&self, drift: &mut Diagnostics) {
        for finding in drift.iter_mut() {
            if let (Some(upstream), Some(tool)) = (&finding.subject.upstream, &finding.subject.tool) {
                finding.severity = of_change(finding.code, self.contains(upstream, tool));
            }
        }
    }
}

/// Returns the severity of one change. `breaks_program`: whether a program breaks through the tool.
pub fn of_change(code: Code, breaks_program: bool) -> Severity {
    match code {
        Code::InputChanged | Code::OutputChanged | Code::RequestChanged if breaks_program => Severity::Error,
        _ => code.severity(),
    }
}

/// Returns the severity of all changes of a tool together.
pub fn of_tool(changes: &[Change], breaks_program: bool) -> Severity {
    changes.iter().map(|change| of_change(change.code, breaks_program)).max().unwrap_or(Severity::Note)
}
