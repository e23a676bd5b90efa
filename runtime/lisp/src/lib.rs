//! PTC-Lisp.
#![forbid(unsafe_code)]
pub mod error;
pub mod host;
pub mod limits;
pub mod machine;
pub use error::{ErrorKind, Span};
/// A value.
#[derive(Debug)]
pub struct Value;
impl Value {
    /// nil
    pub fn nil() -> Value {
        Value
    }
    /// vector
    pub fn vector(_: Vec<Value>) -> Value {
        Value
    }
}
