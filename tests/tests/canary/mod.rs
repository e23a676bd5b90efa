//! Tests that secrets which upstreams echo are neither in files and messages of `ptc-compile` nor in any output of a built
//! binary.

mod binary;
mod callers;
mod compiler;
#[path = "../../../runtime/tests/server/echoing.rs"]
#[expect(clippy::indexing_slicing, reason = "a test stops where an answer lacks what it looks at")]
mod echoing;
