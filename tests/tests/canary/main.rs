//! Secrets that upstreams echo are in nothing that `ptc-compile` writes or says, and in nothing that leaves a binary that it built.

mod binary;
mod compiler;
#[path = "../../../runtime/tests/server/echoing.rs"]
#[expect(clippy::indexing_slicing, reason = "a test stops where an answer lacks what it looks at")]
mod echoing;
#[path = "../redis/mod.rs"]
#[expect(dead_code, reason = "what it can do and these tests do not need")]
mod redis;
#[path = "../../../runtime/tests/upstreams/web.rs"]
#[expect(dead_code, clippy::unwrap_used, reason = "what it can do and these tests do not need")]
mod web;
