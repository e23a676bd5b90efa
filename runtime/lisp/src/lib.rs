//! PTC-Lisp.
#![forbid(unsafe_code)]

mod analyzer;
pub mod builtins;
pub mod collection;
mod convert;
pub mod error;
pub mod eval;
pub mod form;
pub mod host;
pub mod ir;
pub mod json;
pub mod limits;
pub mod machine;
pub mod number;
pub mod order;
mod parallel;
pub mod pattern;
pub mod print;
mod program;
pub mod reader;
mod run;
pub mod special;
pub mod value;

pub use error::{Error, ErrorKind, Position, Span};
pub use host::Host;
pub use limits::{Cancel, Limits};
pub use program::{Program, ToolCallSite};
pub use run::{Outcome, Run, STACK_BYTES, STACK_SLACK_BYTES};
pub use value::{Kind, Value};
