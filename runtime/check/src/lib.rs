//! Static checks of a program against a catalog: findings about upstream calls that follow from the text alone.
//!
//! ```
//! use ptc_catalog::Catalog;
//! use ptc_lisp::Program;
//!
//! let program = Program::compile(r#"(tool/call {:server "files" :tool "read"})"#)?;
//! let findings = ptc_check::check(&program, &Catalog::EMPTY);
//! assert_eq!(findings[0].message, "no upstream 'files' configured");
//! assert!(findings[0].is_certain());
//! # Ok::<(), ptc_lisp::Error>(())
//! ```
//!
//! [`check`] examines each call, and whether results are used as their values or as lists. It is cheap and runs before every
//! program. [`review`] also compares uses of results with output schemas, and is meant for people.
//!
//! - `call`: checks one call in the text against the catalog.
//! - `call_options`: what a request says beside the tool and its arguments.
//! - `called_tools`: lists the tools that a program may call.
//! - `computed`: finds calls that cannot be checked, since their names or arguments are computed.
//! - `context`: finds what a program reads of its context.
//! - [`argument`]: checks one argument against its row and its schema.
//! - [`argument_names`]: checks the names of a call's arguments.
//! - `bounds`: checks the constraints of an argument's schema.
//! - `integers`: decides which doubles are encoded as integers.
//! - `input_schema`: decodes the input schemas of tools once.
//! - `flow`: follows the results of calls through a program.
//! - `output`: checks paths in results against output schemas.
//! - [`cost`]: bounds the number of calls and their effects.
//! - `missing`: checks keys that a run looked up in vain against output schemas.
//! - `call_hint`: suggests the call for a tool's name that is used as a function or variable.
//! - [`host_tools`]: checks calls of the embedding program's own tools.
//! - [`paging`]: reading all pages of a list.

#![forbid(unsafe_code)]

pub mod argument;
pub mod argument_names;
mod bounds;
mod call;
mod call_hint;
mod call_options;
mod called_tools;
mod computed;
mod context;
pub mod cost;
mod flow;
pub mod host_tools;
mod input_schema;
mod integers;
mod meant_tool;
mod missing;
mod output;
pub mod paging;

use ptc_catalog::{Catalog, Tool};
use ptc_lisp::{Deadline, Error, ErrorKind, Program, Span, ToolCallSite};

pub use call::{CallSpans, requires_server, requires_tool};
pub use call_hint::add_call_hint;
pub use call_options::{ACCEPT, BODY, IDEMPOTENCY_KEY, OPTIONS, option_fault, option_refusal};
pub use called_tools::{CalledTool, called_tools, called_tools_in_session};
pub use computed::{ComputedCall, calls_without_literal_tool, computed_calls};
pub use context::context_reads;
pub use cost::{Cost, Effects};
pub use host_tools::HostTool;
pub use meant_tool::meant_tool;
pub use missing::keys_not_found;

/// Functions that call their first argument once for each item of their last argument.
const EACH: &[&str] = &[
    "every?",
    "filter",
    "filterv",
    "group-by",
    "keep",
    "map",
    "mapcat",
    "mapv",
    "not-any?",
    "not-every?",
    "pmap",
    "remove",
    "run!",
    "some",
    "sort-by",
];

/// Functions that call their first argument once for each item of their last argument, which is passed as second parameter.
const EACH_SECOND: &[&str] = &["keep-indexed", "map-indexed", "reduce", "reductions"];

/// Maximum number of findings about one program. A program with more has to be rewritten anyway, and each finding costs a search
/// for similar names.
pub const MAX_FINDINGS: usize = 100;

/// The end of the message of a [`FindingKind::UnknownPath`], which says where the knowledge comes from.
pub const BY_OUTPUT_SCHEMA: &str = ", by its output schema";

/// Something that is certainly or possibly wrong with a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The kind of problem.
    pub kind: FindingKind,
    /// What is wrong.
    pub message: String,
    /// What to do, if known.
    pub hint: Option<String>,
    /// Position of the wrong part of a call, or of the use of its result.
    pub span: Span,
}

/// The kind of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FindingKind {
    /// The call always fails with an error of this kind.
    Fails(ErrorKind),
    /// The call is probably a mistake.
    Suspicious,
    /// The output schema of the tool does not have the place that is read. Upstreams may deviate from their schemas, so that this
    /// is never certain.
    UnknownPath,
    /// A result is used as if it were its value or a list: the program reads none of the keys that results have.
    ResultUsedAsValue,
    /// A list function receives a result, which is always a map with at least two keys.
    ResultUsedAsList,
    /// The value of a result is used without a check that the call succeeded.
    Unchecked,
}

impl Finding {
    /// Whether the program is wrong for every answer of the upstream. Other findings may be intended.
    pub fn is_certain(&self) -> bool {
        matches!(self.kind, FindingKind::Fails(_) | FindingKind::ResultUsedAsValue)
    }

    /// Converts the finding to the error that ends the program, with its position in `source`.
    pub fn into_error(self, source: &str) -> Error {
        let kind = match self.kind {
            FindingKind::Fails(kind) => kind,
            FindingKind::Suspicious
            | FindingKind::UnknownPath
            | FindingKind::ResultUsedAsValue
            | FindingKind::ResultUsedAsList
            | FindingKind::Unchecked => ErrorKind::ToolError,
        };
        let error = Error::at(kind, self.message, source, self.span);
        match self.hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }
}

/// The results of a static review.
#[derive(Debug)]
pub struct Review {
    /// The findings, in the order of the text.
    pub findings: Vec<Finding>,
    /// The number of calls and their effects.
    pub cost: Cost,
}

/// Returns findings about the upstream calls of a program, in the order of the text. Only literal names are examined; computed
/// names are checked at run time.
pub fn check(program: &Program, catalog: &Catalog) -> Vec<Finding> {
    look::<false>(program, catalog, &Deadline::none())
}

/// Like [`check`], within a time limit.
///
/// # Errors
///
/// Returns [`ErrorKind::Timeout`] or [`ErrorKind::Cancelled`] once the deadline has passed.
pub fn check_until(program: &Program, catalog: &Catalog, deadline: &Deadline) -> Result<Vec<Finding>, Error> {
    let findings = look::<false>(program, catalog, deadline);
    deadline.check()?;
    Ok(findings)
}

/// Like [`check`], but also reports places that output schemas lack and values that are used without a check of `:ok`, and
/// computes the cost.
pub fn review(program: &Program, catalog: &Catalog) -> Review {
    Review { findings: look::<true>(program, catalog, &Deadline::none()), cost: cost::estimate(program, catalog) }
}

/// A literal key that the output schema of a tool lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingKey {
    /// The finding, which names the most similar key.
    pub finding: Finding,
    /// Whether the schema excludes undeclared keys, so that the key cannot be present.
    pub is_closed: bool,
}

/// Returns the literal keys that a program reads and that the output schemas of its tools lack. Reads are followed through `let`,
/// destructuring, threading, and functions that the program defines. The result is empty if no called tool declares an output
/// schema. It may be incomplete once the deadline has passed.
pub fn missing_keys(program: &Program, catalog: &Catalog, deadline: &Deadline) -> Vec<MissingKey> {
    let sites = program.tool_calls();
    if !sites.iter().any(|site| tool_of(site, catalog).is_some_and(output::has_schema)) {
        return Vec::new();
    }
    flow::missing_keys(program, catalog, &sites, deadline, false)
}

/// Like [`missing_keys`], and also follows functions that are passed by name, combinations of functions, and loops. These reads are for
/// reports: an engine must not refuse a program because of them, since engines without this feature run it.
#[cfg(feature = "function-values")]
pub fn all_missing_keys(program: &Program, catalog: &Catalog, deadline: &Deadline) -> Vec<MissingKey> {
    flow::missing_keys(program, catalog, &program.tool_calls(), deadline, true)
}

/// Returns the findings, at most [`MAX_FINDINGS`] about calls. They may be incomplete once the deadline has passed.
fn look<const ALL: bool>(program: &Program, catalog: &Catalog, deadline: &Deadline) -> Vec<Finding> {
    let mut sites = program.tool_calls();
    let mut findings = Vec::new();
    for site in &sites {
        if deadline.is_passed() || findings.len() >= MAX_FINDINGS {
            break;
        }
        call::check(program, site, catalog, &mut findings);
    }
    if ALL {
        sites = program.tool_calls_by_name();
        let mut by_name = found_by_name(program, &sites, catalog);
        by_name.retain(|finding| !findings.contains(finding));
        // The program may have tested for just this value, so that the finding is not certain.
        findings.extend(by_name.into_iter().map(|finding| Finding { kind: FindingKind::Suspicious, ..finding }));
    }
    if !sites.is_empty() {
        sites.retain(|site| site.call.is_none());
        flow::follow::<ALL>(program, catalog, &sites, &mut findings, deadline);
        findings.sort_by_key(|finding| finding.span);
    }
    findings
}

/// Returns the findings about calls, whose names count as the literals that they are bound to.
fn found_by_name(program: &Program, sites: &[ToolCallSite], catalog: &Catalog) -> Vec<Finding> {
    let mut as_written: Vec<(Span, Finding)> = Vec::new();
    let mut followed: Vec<Finding> = Vec::new();
    let (written, in_calls): (Vec<_>, Vec<_>) = sites.iter().partition(|site| site.call.is_none());
    for site in written.into_iter().chain(in_calls) {
        if as_written.len() + followed.len() >= MAX_FINDINGS {
            break;
        }
        let mut found = Vec::new();
        call::check(program, site, catalog, &mut found);
        if site.call.is_none() {
            as_written.extend(found.into_iter().map(|finding| (site.span, finding)));
            continue;
        }
        // A fault that does not depend on the arguments of a function is found again in each call of the function.
        let is_known = |finding: &Finding| {
            followed.contains(finding)
                || as_written.iter().any(|(span, known)| *span == site.span && known.message == finding.message)
        };
        found.retain(|finding| !is_known(finding));
        followed.extend(found);
    }
    as_written.into_iter().map(|(_, finding)| finding).chain(followed).collect()
}

/// Returns the tool that a call names, if it exists.
fn tool_of(site: &ToolCallSite, catalog: &Catalog) -> Option<&'static Tool> {
    catalog.upstream(site.server.as_ref()?)?.tool(site.tool.as_ref()?)
}
