//! Checks a program against a catalog before it runs: what its text alone proves about its upstream calls.
//!
//! ```
//! use ptc_catalog::Catalog;
//! use ptc_lisp::Program;
//!
//! let program = Program::compile(r#"(tool/call {:server "files" :tool "read"})"#)?;
//! let findings = ptc_check::check(&program, &Catalog::EMPTY);
//! assert_eq!(findings[0].message, "no upstream 'files' configured");
//! # Ok::<(), ptc_lisp::Error>(())
//! ```
//!
//! - `call`: one call in the text against the catalog.
//! - `near`: near names, for suggestions.

#![forbid(unsafe_code)]

mod call;
mod near;

use ptc_catalog::Catalog;
use ptc_lisp::{Error, ErrorKind, Program, Span};

pub use near::near_name;

/// Something that is, or seems, wrong with a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The kind of error that the program would end with.
    pub kind: ErrorKind,
    /// What is wrong.
    pub message: String,
    /// What to do, where that is known.
    pub hint: Option<String>,
    /// The call.
    pub span: Span,
    /// Whether the call fails whenever it is made. Otherwise it may be meant so.
    pub certain: bool,
}

impl Finding {
    /// The finding as the error that ends the program, at its place in `source`.
    pub fn into_error(self, source: &str) -> Error {
        let error = Error::at(self.kind, self.message, source, self.span);
        match self.hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }
}

/// What is wrong with the upstream calls of a program, in the order of its text. Only what is written out is looked at: a name
/// that is computed is left to the run.
pub fn check(program: &Program, catalog: &Catalog) -> Vec<Finding> {
    let mut findings = Vec::new();
    for site in program.tool_calls() {
        call::check(&site, catalog, &mut findings);
    }
    findings
}
