//! An argument of a tool: a parameter or a part of the body of its operation.

use crate::json::Json;

/// A parameter that calls send.
pub(super) struct Sent {
    /// The name of the argument.
    pub(super) name: String,
    pub(super) required: bool,
    /// The schema of the argument.
    pub(super) schema: Json,
    /// The entry in `_ptc.params`.
    pub(super) wire: Json,
}
