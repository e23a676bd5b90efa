//! Tests that secrets which upstreams echo are neither in files and messages of `ptc-compile` nor in any output of a built
//! binary.

mod binary;
mod compiler;
#[path = "../../../runtime/tests/server/echoing.rs"]
#[expect(clippy::indexing_slicing, reason = "a test stops where an answer lacks what it looks at")]
mod echoing;
#[path = "../redis/mod.rs"]
#[expect(dead_code, reason = "these tests do not use all helpers")]
mod redis;
#[path = "../../../runtime/tests/upstreams/web.rs"]
#[expect(dead_code, clippy::unwrap_used, reason = "these tests do not use all helpers")]
mod web;
