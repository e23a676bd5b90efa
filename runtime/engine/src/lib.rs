//! What every call of a program goes through: its MCP messages, its evaluation, and the format of its answer.
//!
//! - [`evaluation`]: the evaluation of a program, from its text to its result.
//! - [`response`]: response profiles, and the JSON of an answer.
//! - [`protocol`]: MCP messages.
//!
//! These modules are a crate of their own because it is optimised for speed, while most of the runtime is optimised for size.

pub mod evaluation;
pub mod protocol;
pub mod response;
