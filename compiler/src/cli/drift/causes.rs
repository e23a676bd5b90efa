//! The changes through which programs break, and the calls that they refuse.

use std::collections::BTreeSet;

use ptc_catalog::Catalog;
use ptc_check::FindingKind;
use ptc_compiler::diag::quoted;
use ptc_compiler::drift::cause::{Cause, Change};
use ptc_compiler::drift::changes_of_tools;
use ptc_compiler::lock::Lock;
use ptc_lisp::{Program, Span};
use ptc_text::join_limited;

use crate::call_sites::{CallSite, call_sites};

/// Maximum number of changes that a finding names.
const MAX_CHANGES: usize = 8;

/// A change of a tool that breaks a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CauseOfBreak {
    /// The upstream and the tool.
    tool: (String, String),
    pub(super) change: Change,
}

/// Returns the changes of a tool that can be the cause. `passed` are the names of the arguments of the call, or `None` if these names
/// are unknown.
pub(super) fn causes(
    [old, new]: [&Lock; 2],
    tool: &(String, String),
    cause: Cause,
    passed: Option<&BTreeSet<String>>,
) -> Vec<CauseOfBreak> {
    let (upstream, name) = tool;
    let [old, new] = [old, new].map(|lock| lock.upstreams.get(upstream));
    let changes = changes_of_tools(upstream, old, new).remove(name).unwrap_or_default();
    let found = cause.changes(&changes, passed).into_iter();
    found.map(|change| CauseOfBreak { tool: tool.clone(), change: change.clone() }).collect()
}

/// Names all causes in one sentence, since some formats show only the first hint of a finding. `None` if there are none.
pub(super) fn sentence(causes: &[CauseOfBreak]) -> Option<String> {
    let is_new = |at: usize, cause: &CauseOfBreak| causes.get(..at).is_some_and(|before| !before.contains(cause));
    let different: Vec<&CauseOfBreak> =
        causes.iter().enumerate().filter(|(at, cause)| is_new(*at, cause)).map(|(_, cause)| cause).collect();
    let clauses = different.iter().enumerate().map(|(at, cause)| {
        let is_continued = at.checked_sub(1).and_then(|at| different.get(at)).is_some_and(|before| before.tool == cause.tool);
        let (upstream, tool) = &cause.tool;
        let what = &cause.change.what;
        if is_continued { what.clone() } else { format!("{} of {} {what}", quoted(tool), quoted(upstream)) }
    });
    (!different.is_empty()).then(|| join_limited(clauses, "; ", MAX_CHANGES))
}

/// A call that only the current tools refuse.
pub(super) struct RefusedCall {
    pub(super) span: Span,
    /// Why it is refused.
    pub(super) message: String,
    pub(super) site: CallSite,
}

/// Returns the calls of a program that only the current tools refuse, in the order of its text.
pub(super) fn refused_calls(source: &str, [old, new]: [&'static Catalog; 2]) -> Vec<RefusedCall> {
    let Ok(program) = Program::compile(source) else { return Vec::new() };
    let refusals = |catalog| {
        let findings = ptc_check::check(&program, catalog).into_iter();
        findings.filter(|finding| matches!(finding.kind, FindingKind::Fails(_))).collect::<Vec<_>>()
    };
    let (before, sites) = (refusals(old), call_sites(source, [old, new]));
    let new_ones = refusals(new).into_iter().filter(|finding| !before.iter().any(|other| other.span == finding.span));
    new_ones
        .filter_map(|finding| {
            let site = CallSite::around(&sites, finding.span)?.clone();
            Some(RefusedCall { span: finding.span, message: finding.message, site })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use ptc_compiler::drift::cause::Cause;
    use ptc_compiler::json::Json;
    use ptc_compiler::lock::{Lock, LockedTool, LockedUpstream};

    use super::{causes, sentence};

    fn lock(tools: &[(&str, String)]) -> Lock {
        let mut upstream = LockedUpstream::default();
        for (name, properties) in tools {
            let schema = format!(r#"{{"type":"object","additionalProperties":false,"properties":{{{properties}}}}}"#);
            let definition = Json::parse(&format!(r#"{{"name":"{name}","inputSchema":{schema}}}"#)).expect("JSON");
            upstream.tools.insert((*name).to_owned(), LockedTool::new(definition));
        }
        let mut lock = Lock::default();
        lock.upstreams.insert("s".to_owned(), upstream);
        lock
    }

    #[test]
    fn all_causes_are_named_once_and_within_a_limit() {
        let names = |count: usize| (0..count).map(|at| format!(r#""a{at}":{{}}"#)).collect::<Vec<_>>().join(",");
        let old = lock(&[("get", names(3)), ("list", names(20))]);
        let new = lock(&[("get", names(1)), ("list", String::new())]);
        let of = |tool: &str| causes([&old, &new], &("s".to_owned(), tool.to_owned()), Cause::Refusal, None);
        let few = [of("get"), of("get")].concat();
        assert_eq!(sentence(&few).as_deref(), Some("`get` of `s` no longer takes `a1`; no longer takes `a2`"));
        let both = sentence(&[of("get"), of("list")].concat()).expect("causes");
        assert!(both.contains("; no longer takes `a2`; `list` of `s` no longer takes `a0`; "), "{both}");
        assert!(both.ends_with("; and 14 more"), "{both}");
        assert_eq!(sentence(&[]), None);
    }
}
