//! Finds the places of programs that read what an output schema no longer has.

use ptc_catalog::Catalog;
use ptc_check::BY_OUTPUT_SCHEMA;
use ptc_compiler::diag::{Code, Diagnostic, Severity};
use ptc_compiler::drift::removed::removed;
use ptc_compiler::ir::Deployment;
use ptc_compiler::json::Json;
use ptc_compiler::leak;
use ptc_compiler::source::{FileId, Span};
use ptc_lisp::{Deadline, Program};

/// The tools whose output schemas no longer have some members.
pub(super) struct RemovedMembers(Vec<ChangedTool>);

struct ChangedTool {
    /// The upstream and the tool.
    name: (String, String),
    /// Catalogs of this tool: without the removed members, with those that were optional, and with all.
    without: &'static Catalog,
    with_removed_optional: &'static Catalog,
    with_removed: &'static Catalog,
}

/// A read of a removed member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RemovedRead {
    /// The upstream and the tool.
    pub(super) tool: (String, String),
    /// What is missing: `shop/list-orders: the value has no 'total'`.
    pub(super) message: String,
    /// The similar key, or the keys that there are.
    pub(super) hint: Option<String>,
    /// Whether the member was required, so that each answer had it.
    pub(super) was_required: bool,
    pub(super) span: ptc_lisp::Span,
}

impl RemovedMembers {
    /// Compares the output schemas of two deployments.
    pub(super) fn new(old: &Deployment, new: &Deployment) -> RemovedMembers {
        let empty = Deployment { upstreams: Vec::new(), programs: Vec::new(), ..new.clone() };
        let mut found = Vec::new();
        for upstream in &new.upstreams {
            let Some(former) = old.upstreams.iter().find(|former| former.name == upstream.name) else { continue };
            for tool in &upstream.tools {
                let former = former.tools.iter().find(|former| former.name == tool.name && former.digest != tool.digest);
                let definitions =
                    former.and_then(|former| Some((Json::parse(&former.definition)?, Json::parse(&tool.definition)?)));
                let Some((was, is)) = definitions else { continue };
                let (Some(was), Some(output)) = (was.get("outputSchema"), is.get("outputSchema")) else { continue };
                let Some(shapes) = removed(was, output) else { continue };
                let catalog = |shape: Json| {
                    let mut tool = tool.clone();
                    tool.definition = is.clone().with("outputSchema", shape).canonical();
                    let mut upstream = upstream.clone();
                    upstream.tools = vec![tool];
                    let deployment = Deployment { upstreams: vec![upstream], ..empty.clone() };
                    leak::leak_static(&deployment).catalog
                };
                found.push(ChangedTool {
                    name: (upstream.name.clone(), tool.name.clone()),
                    without: catalog(shapes.without),
                    with_removed_optional: catalog(shapes.with_removed_optional),
                    with_removed: catalog(shapes.with_removed),
                });
            }
        }
        RemovedMembers(found)
    }

    /// Returns the reads of removed members in a program, in the order of its text. There are none if it does not compile.
    pub(super) fn reads(&self, program: &str) -> Vec<RemovedRead> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let Ok(program) = Program::compile(program) else { return Vec::new() };
        let missing = |catalog| ptc_check::all_missing_keys(&program, catalog, &Deadline::none());
        let mut found = Vec::new();
        for tool in &self.0 {
            let read = missing(tool.without);
            if read.is_empty() {
                continue;
            }
            let (never, required) = (missing(tool.with_removed), missing(tool.with_removed_optional));
            let is_in = |list: &[ptc_check::MissingKey], finding: &ptc_check::Finding| {
                list.iter().any(|other| other.finding.span == finding.span && other.finding.message == finding.message)
            };
            for finding in read.into_iter().map(|read| read.finding).filter(|finding| !is_in(&never, finding)) {
                found.push(RemovedRead {
                    tool: tool.name.clone(),
                    message: finding.message.strip_suffix(BY_OUTPUT_SCHEMA).unwrap_or(&finding.message).to_owned(),
                    was_required: is_in(&required, &finding),
                    hint: finding.hint,
                    span: finding.span,
                });
            }
        }
        found.sort_by_key(|read| read.span);
        found
    }
}

impl RemovedRead {
    /// Returns the severity: every answer had a required member, so that the program relies on it. Without an optional member it may
    /// do what it always did for such answers.
    pub(super) fn severity(&self) -> Severity {
        if self.was_required { Severity::Error } else { Severity::Warning }
    }

    /// Returns the position in a file.
    pub(super) fn place(&self, file: FileId) -> Span {
        Span { file, range: self.span.start..self.span.end }
    }

    /// Returns the finding about a program, whose name is quoted. `cause` names the changes.
    pub(super) fn finding(&self, program: &str, file: FileId, cause: Option<String>) -> Diagnostic {
        let was = if self.was_required { "required" } else { "optional" };
        let message = format!("{program} reads what the current tools no longer have: {}, which was {was}", self.message);
        let finding = Diagnostic { severity: self.severity(), ..Diagnostic::new(Code::ProgramBreaks, message) };
        let finding = finding.at(self.place(file), "");
        cause.into_iter().chain(self.hint.clone()).fold(finding, Diagnostic::hint)
    }
}
