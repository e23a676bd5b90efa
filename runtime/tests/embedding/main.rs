//! The runtime inside another program: engines with tools and upstreams, the protocol of `lisp_eval`, and the example.

#![expect(clippy::unwrap_used, reason = "a test stops where an answer lacks what it looks at")]

mod arguments;
mod engine;
mod examples;
mod protocol;
#[path = "../../examples/service.rs"]
#[expect(dead_code, reason = "its main")]
mod service;
#[cfg(feature = "http")]
#[path = "../upstreams/web.rs"]
#[expect(dead_code, reason = "what it can do and these tests do not need")]
mod web;
