//! Calls of the embedding program's own tools against their signatures. Wording is that of the runtime, which checks every call again
//! with the values that it then has.
//!
//! Apart from [`check`](crate::check), so that a server without own tools links nothing of signatures.

use ptc_lisp::signature::{Findings, Mode, Signature, underscored};
use ptc_lisp::{ErrorKind, HostToolCall, Program};

use crate::{Finding, FindingKind, MAX_FINDINGS};

/// A tool of the embedding program, `(tool/NAME …)`.
#[derive(Debug, Clone, Copy)]
pub struct HostTool<'a> {
    /// Its name; hyphens and underscores are the same.
    pub name: &'a str,
    /// What it takes and gives.
    pub signature: &'a Signature,
    /// How much is insisted on.
    pub mode: Mode,
}

/// What is wrong with the calls of own tools in a program, in the order of its text. Only what is written out is looked at.
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

/// What is said of arguments (`what` is `tool`) or a `result` that do not match: a line for each mismatch.
pub fn refused(name: &str, what: &str, mismatches: &Findings) -> String {
    format!("tool/{name}: {what} validation errors:\n{mismatches}")
}

/// The hint beside it.
pub fn declared(signature: &Signature) -> String {
    format!("its signature is {}", signature.for_programs())
}
