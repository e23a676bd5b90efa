//! Checks calls of the embedding program's own tools against their signatures. The wording is that of the runtime, which checks
//! every call again with its actual values.
//!
//! This is separate from [`check`](crate::check), so that servers without such tools do not link the signature parser.

use ptc_lisp::signature::{Findings, Mode, Signature, underscored};
use ptc_lisp::{ErrorKind, HostToolCall, Program};

use crate::{Finding, FindingKind, MAX_FINDINGS};

/// A tool of the embedding program, called as `(tool/NAME …)`.
#[derive(Debug, Clone, Copy)]
pub struct HostTool<'a> {
    /// The name. Hyphens and underscores are equivalent.
    pub name: &'a str,
    /// The types of its arguments and result.
    pub signature: &'a Signature,
    /// How strictly arguments are checked.
    pub mode: Mode,
}

/// Returns findings about the calls of own tools in a program, in the order of the text. Only literal arguments are examined.
pub fn check(program: &Program, tools: &[HostTool<'_>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for site in program.host_tool_calls() {
        if findings.len() >= MAX_FINDINGS {
            break;
        }
        look(&site, tools, &mut findings);
    }
    findings
}

fn look(site: &HostToolCall, tools: &[HostTool<'_>], findings: &mut Vec<Finding>) {
    let Some(args) = &site.args else { return };
    let wanted = underscored(&site.name);
    let Some(tool) = tools.iter().find(|tool| underscored(tool.name) == wanted) else { return };
    let Err(mismatches) = tool.signature.check_written(args, tool.mode) else { return };
    findings.push(Finding {
        kind: FindingKind::Fails(ErrorKind::ToolError),
        message: refused(tool.name, "tool", &mismatches),
        hint: Some(declared(tool.signature)),
        span: site.span,
    });
}

/// Formats mismatches of arguments (`what` is `tool`) or of a `result`, one per line.
pub fn refused(name: &str, what: &str, mismatches: &Findings) -> String {
    format!("tool/{name}: {what} validation errors:\n{mismatches}")
}

/// Formats the hint that belongs to [`refused`].
pub fn declared(signature: &Signature) -> String {
    format!("its signature is {}", signature.for_programs())
}
