//! Upstream clients against real peers: child processes over pipes, servers over sockets.
//!
//! The child process is this test binary, started with `PTC_PEER` set: see [`peer`].

#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stderr, reason = "a test panics on any error")]

mod discovery;
mod drift;
mod exchange;
mod faults;
mod forward_proxy;
mod http;
mod http_sse;
mod login;
mod login_discovery;
mod oauth;
mod openapi;
mod pages;
mod parallel;
mod peer;
mod proxy;
mod rate_limit;
#[cfg(target_os = "linux")]
mod sandbox;
mod stdio;
mod tls;
mod tunnel;
mod web;
mod world;
