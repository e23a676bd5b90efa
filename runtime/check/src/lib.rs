//! Checks a program against a catalog before it runs: what its text alone proves about its upstream calls.
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
//! [`check`] looks at each call, and for results that are taken for their values or for lists, and is cheap: it runs before every program. [`review`]
//! also compares what is done with results with their schemas, and is for people.
//!
//! - `call`: one call in the text against the catalog.
//! - [`argument`]: one argument against its row and its schema.
//! - [`argument_names`]: the names of a call's arguments.
//! - `bounds`: the bounds that an argument's schema sets.
//! - `integers`: which doubles are sent as integers.
//! - `input_schema`: the input schemas of tools, decoded once.
//! - `flow`: where results go, and what is taken out of them.
//! - `output`: paths into results against output schemas.
//! - [`cost`]: how many calls there can be, and what they may change.
//! - `missing`: keys that a run looked up in answers, against output schemas.
//! - `call_hint`: the call to write where a program uses the name of a tool in another way.
//! - [`host_tools`]: calls of the embedding program's own tools.
//! - [`paging`]: reading all pages of a list.

#![forbid(unsafe_code)]

pub mod argument;
pub mod argument_names;
mod bounds;
mod call;
mod call_hint;
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
use ptc_lisp::{Deadline, Error, ErrorKind, Program, Span, ToolCallSite, sorting};

pub use bounds::pattern_of;
pub use call::{requires_server, requires_tool};
pub use call_hint::add_call_hint;
pub use cost::{Cost, Effects};
pub use host_tools::HostTool;
pub use meant_tool::meant_tool;
pub use missing::keys_not_found;

/// Functions that call their first argument once for each item of their last.
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

/// Functions that call their first argument once for each item of their last, as its second argument.
const EACH_SECOND: &[&str] = &["keep-indexed", "map-indexed", "reduce", "reductions"];

/// Findings about one program. With more than these the program is to be written anew, and each of them costs a search for near names.
pub const MAX_FINDINGS: usize = 100;

/// Something that is, or seems, wrong with a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What sort of thing it is.
    pub kind: FindingKind,
    /// What is wrong.
    pub message: String,
    /// What to do, where that is known.
    pub hint: Option<String>,
    /// What is wrong of the call, or what is done with its result.
    pub span: Span,
}

/// What sort of thing a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FindingKind {
    /// The call fails whenever it is made, with an error of this kind.
    Fails(ErrorKind),
    /// The call is likely not meant so.
    Suspicious,
    /// The output schema of the tool has nothing at the place that is read. Upstreams keep to their schemas or not, so this is never
    /// certain.
    UnknownPath,
    /// A result is taken for its value, or for a list: of all that results have, nothing is read.
    ResultUsedAsValue,
    /// A function of lists gets a result, which is a map of two or more keys whatever the tool gives.
    ResultUsedAsList,
    /// The value of a result is used, and nothing asks whether there is one.
    Unchecked,
}

impl Finding {
    /// Whether it is wrong whatever the upstream answers. Otherwise it may be meant so.
    pub fn is_certain(&self) -> bool {
        matches!(self.kind, FindingKind::Fails(_) | FindingKind::ResultUsedAsValue)
    }

    /// The finding as the error that ends the program, at its place in `source`.
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

/// What is known of a program without running it.
#[derive(Debug)]
pub struct Review {
    /// What is or seems wrong with it, in the order of its text.
    pub findings: Vec<Finding>,
    /// How often it calls, and with what effect.
    pub cost: Cost,
}

/// What is wrong with the upstream calls of a program, in the order of its text. Only what is written out is looked at: a name
/// that is computed is left to the run.
pub fn check(program: &Program, catalog: &Catalog) -> Vec<Finding> {
    look::<false>(program, catalog, &Deadline::none())
}

/// [`check`] within a time limit.
///
/// # Errors
///
/// [`ErrorKind::Timeout`] or [`ErrorKind::Cancelled`] once the deadline has passed.
pub fn check_until(program: &Program, catalog: &Catalog, deadline: &Deadline) -> Result<Vec<Finding>, Error> {
    let findings = look::<false>(program, catalog, deadline);
    deadline.check()?;
    Ok(findings)
}

/// The same, and what becomes of the results: places that output schemas do not have, values that are used without a look at `:ok`,
/// and what the program costs.
pub fn review(program: &Program, catalog: &Catalog) -> Review {
    Review { findings: look::<true>(program, catalog, &Deadline::none()), cost: cost::of(program, catalog) }
}

/// A literal key that the output schema of a tool does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingKey {
    /// What is wrong, with the nearest key.
    pub finding: Finding,
    /// Whether the schema refuses keys that it does not name: then the key cannot be there.
    pub is_closed: bool,
}

/// The literal keys that a program reads and that the output schemas of its tools do not have: also behind `let`, destructuring,
/// threading and functions that it defines. None where no tool that it names declares an output schema; any part of them once the
/// deadline has passed.
pub fn missing_keys(program: &Program, catalog: &Catalog, deadline: &Deadline) -> Vec<MissingKey> {
    let sites = program.tool_calls();
    if !sites.iter().any(|site| tool_of(site, catalog).is_some_and(output::has_schema)) {
        return Vec::new();
    }
    flow::missing_keys(program, catalog, &sites, deadline)
}

/// The findings, at most [`MAX_FINDINGS`] about calls; any part of them once the deadline has passed.
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
        let mut by_name = Vec::new();
        for site in &sites {
            if by_name.len() >= MAX_FINDINGS {
                break;
            }
            call::check(program, site, catalog, &mut by_name);
        }
        by_name.retain(|finding| !findings.contains(finding));
        // A condition may ask for the very value that would be wrong.
        findings.extend(by_name.into_iter().map(|finding| Finding { kind: FindingKind::Suspicious, ..finding }));
    }
    if !sites.is_empty() {
        flow::follow::<ALL>(program, catalog, &sites, &mut findings, deadline);
        sorting::by_key(&mut findings, |finding| finding.span);
    }
    findings
}

/// The tool that a call names, where it names one that there is.
fn tool_of(site: &ToolCallSite, catalog: &Catalog) -> Option<&'static Tool> {
    catalog.upstream(site.server.as_ref()?)?.tool(site.tool.as_ref()?)
}
