//! The table of settings: one row gives parsing, defaults, help and the checks of them.
//!
//! - `config`: the config, where it is not compiled in.
//! - `server`: the server, programs, upstreams, answers.
//! - `session`: sessions.
//! - `http`: the HTTP listener.
//! - `diagnostics`: traces and `lisp_debug`.
//! - `agentic`: `lisp_task`.
//! - `terminal`: `repl` on a terminal, where the feature `line-editing` is on.

#[cfg(feature = "agentic")]
mod agentic;
mod config;
mod diagnostics;
mod http;
mod server;
mod session;
#[cfg(feature = "line-editing")]
mod terminal;

use super::flag::Flag;

const GIB: u64 = 1 << 30;
const DAY_MS: u64 = 86_400_000;

/// Every setting, in the order of `--help`.
pub fn flags() -> impl Iterator<Item = &'static Flag> {
    #[cfg(feature = "agentic")]
    let agentic = agentic::ROWS;
    #[cfg(not(feature = "agentic"))]
    let agentic: &[Flag] = &[];
    #[cfg(feature = "line-editing")]
    let terminal = terminal::ROWS;
    #[cfg(not(feature = "line-editing"))]
    let terminal: &[Flag] = &[];
    [config::ROWS, server::ROWS, session::ROWS, http::ROWS, diagnostics::ROWS, agentic, terminal].into_iter().flatten()
}

/// Settings that this binary was built without: the prefix of their flags, the variable of the first of them, and what brings them.
/// Naming one is an error that says so, instead of a guess at a near name.
pub static UNBUILT: &[(&str, &str, &str)] = if cfg!(feature = "agentic") {
    &[]
} else {
    &[("agentic", "PTC_RUNNER_MCP_AGENTIC", "build it with `--agentic` (feature agentic of ptc-runtime)")]
};
