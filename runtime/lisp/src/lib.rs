//! PTC-Lisp.
#![forbid(unsafe_code)]

pub mod builtins;
pub mod collection;
pub mod error;
pub mod eval;
pub mod host;
pub mod json;
pub mod limits;
pub mod machine;
pub mod number;
pub mod order;
pub mod pattern;
pub mod print;
pub mod value;

pub use error::{ErrorKind, Span};
pub use value::{Kind, Value};
