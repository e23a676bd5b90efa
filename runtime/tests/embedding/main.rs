//! The runtime inside another program: engines with tools and upstreams, the protocol of `lisp_eval`, and the example.

#![expect(clippy::unwrap_used, reason = "a test panics if an answer lacks an expected member")]

mod arguments;
mod engine;
mod examples;
mod limits;
mod log;
mod protocol;
#[path = "../../examples/service.rs"]
#[expect(dead_code, reason = "`main` of the example is not called")]
mod service;
mod typed;
#[cfg(feature = "http")]
#[path = "../upstreams/web.rs"]
#[expect(dead_code, reason = "these tests use only part of the module")]
mod web;
