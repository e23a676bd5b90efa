//! Answers of upstreams that no upstream gave: generated from output schemas, or recorded ones with a fault.
//!
//! | module | purpose |
//! |---|---|
//! | `generate`, `patterns` | answers that match an output schema, from a seed |
//! | `faults` | the faults of upstreams, and the answers with each of them |
//! | `paths`, `pages` | changes at a path of an answer; the announcement of a further page |
//! | `content`, `declared_output` | the content of an answer; the output schema of its tool |
//!
//! `test --faults` and `test --properties` run programs with these answers, and `mock` serves them.

pub(crate) mod content;
pub(crate) mod declared_output;
pub(crate) mod faults;
mod filled;
pub(crate) mod generate;
pub(crate) mod pages;
mod paths;
mod patterns;

use ptc_runtime::upstream::UpstreamError;
use ptc_runtime::upstream::intercept::CallAnswer;

/// The answer to a call, or its failure.
pub(crate) type Outcome = Result<CallAnswer, UpstreamError>;
