//! The table of settings: one row gives parsing, defaults, help and the checks of them.
//!
//! - `config`: the config, where it is not compiled in.
//! - `server`: the server, programs, upstreams, answers.
//! - `session`: sessions.
//! - `http`: the HTTP listener.
//! - `diagnostics`: traces and `lisp_debug`.

mod config;
mod diagnostics;
mod http;
mod server;
mod session;

use super::flag::Flag;

const GIB: u64 = 1 << 30;
const DAY_MS: u64 = 86_400_000;

/// Every setting, in the order of `--help`.
pub fn flags() -> impl Iterator<Item = &'static Flag> {
    [config::ROWS, server::ROWS, session::ROWS, http::ROWS, diagnostics::ROWS].into_iter().flatten()
}

/// Settings of PtcRunner 0.12 that a pinned binary of this version does not have, by prefix of their flag. Naming one is an error
/// that says so, instead of a guess at a near name.
pub static ABSENT: &[&str] = &["agentic"];
