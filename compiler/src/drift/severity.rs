//! How severe changes of pinned tools are. Reports, findings and `--fail-on` take it from here.
//!
//! A change has the severity of its code. A tool is as severe as its worst change. What else makes a change severe, such as
//! programs that break through it, belongs in [`of_tool`].

use crate::diag::{Code, Severity};

/// Returns the severity of one change.
pub fn of_change(code: Code) -> Severity {
    code.severity()
}

/// Returns the severity of all changes of a tool together.
pub fn of_tool(changes: &[(Code, String)]) -> Severity {
    changes.iter().map(|(code, _)| of_change(*code)).max().unwrap_or(Severity::Note)
}
