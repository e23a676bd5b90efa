//! The table of settings. Parsing, defaults, help and checks are derived from its rows.
//!
//! - `config`: the config of a server that is not compiled.
//! - `replay`, `record`: recorded answers, with the feature `interception`.
//! - `server`: the server, programs, upstreams, answers.
//! - `session`: sessions.
//! - `http`: the HTTP listener. `oauth`: its access tokens, with the feature `http-oauth`.
//! - `diagnostics`: traces and `lisp_debug`.
//! - `agentic`: `lisp_task`. `proxy`: the proxy of its model and of the collector.
//! - `terminal`: `repl` on a terminal, with the feature `line-editing`.

#[cfg(feature = "agentic")]
mod agentic;
mod config;
mod diagnostics;
mod http;
#[cfg(feature = "http-oauth")]
mod oauth;
#[cfg(feature = "proxy")]
mod proxy;
#[cfg(feature = "interception")]
mod record;
#[cfg(feature = "interception")]
mod replay;
mod server;
mod session;
#[cfg(feature = "line-editing")]
mod terminal;

use std::path::Path;

use ptc_text::closest_match;
use zeroize::Zeroizing;

use super::feature::{LinkedParts, how_to_enable};
use super::flag::Flag;

/// Returns the text of a file with one secret, without trailing white space. `None` if the file cannot be read.
fn file_text(path: &str) -> Option<Zeroizing<String>> {
    let bytes = crate::secrets::read_file(Path::new(path)).ok()?;
    std::str::from_utf8(&bytes).ok().map(|text| Zeroizing::new(text.trim_end().to_owned()))
}

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const DAY_MS: u64 = 86_400_000;

/// Iterates over all settings in the order of `--help`.
pub fn flags() -> impl Iterator<Item = &'static Flag> {
    #[cfg(feature = "agentic")]
    let agentic = agentic::ROWS;
    #[cfg(not(feature = "agentic"))]
    let agentic: &[Flag] = &[];
    #[cfg(feature = "proxy")]
    let proxy = proxy::ROWS;
    #[cfg(not(feature = "proxy"))]
    let proxy: &[Flag] = &[];
    #[cfg(feature = "interception")]
    let (replay, record) = (replay::ROWS, record::ROWS);
    #[cfg(not(feature = "interception"))]
    let (replay, record): (&[Flag], &[Flag]) = (&[], &[]);
    #[cfg(feature = "line-editing")]
    let terminal = terminal::ROWS;
    #[cfg(not(feature = "line-editing"))]
    let terminal: &[Flag] = &[];
    #[cfg(feature = "http-oauth")]
    let oauth = oauth::ROWS;
    #[cfg(not(feature = "http-oauth"))]
    let oauth: &[Flag] = &[];
    [config::ROWS, replay, server::ROWS, proxy, session::ROWS, http::ROWS, oauth, diagnostics::ROWS, record, agentic, terminal]
        .into_iter()
        .flatten()
}

/// A group of settings that a binary may have been built without.
pub struct Optional {
    /// Prefix of their flags.
    pub prefix: &'static str,
    /// Environment variable of the first one.
    pub env: &'static str,
    /// The feature that provides them.
    feature: &'static str,
}

static OPTIONAL: [Optional; 6] = [
    Optional { prefix: "agentic", env: "PTC_RUNNER_MCP_AGENTIC", feature: "agentic" },
    Optional { prefix: "http-oauth", env: "PTC_RUNNER_MCP_HTTP_OAUTH_ISSUER", feature: "http-oauth" },
    Optional { prefix: "record", env: "PTC_RUNNER_MCP_RECORD_DIR", feature: "recording" },
    Optional { prefix: "upstreams", env: "PTC_RUNNER_MCP_REPLAY", feature: "recording" },
    Optional { prefix: "color", env: "PTC_RUNNER_MCP_COLOR", feature: "line-editing" },
    Optional { prefix: "no-history", env: "PTC_RUNNER_MCP_NO_HISTORY", feature: "line-editing" },
];

/// Iterates over the groups of settings that a binary with these parts was built without, with instructions to enable them. The use
/// of such a setting is an error with these instructions instead of a suggestion of a similar name.
pub fn disabled_settings(linked: LinkedParts) -> impl Iterator<Item = (&'static Optional, String)> {
    // A part that is not linked may still have its rows, if another package of the same build enables their feature.
    let absent = OPTIONAL.iter().filter(|optional| !flags().any(|flag| flag.env == optional.env));
    absent.filter_map(move |optional| Some((optional, how_to_enable(optional.feature, linked)?)))
}

/// Prefix of the environment variables of settings.
const VARIABLE: &str = "PTC_RUNNER_MCP_";

/// Returns a warning for each variable that has the prefix but is not a setting. A misspelt setting would have no effect
/// otherwise.
pub fn unknown_env_vars(variables: impl Iterator<Item = String>, linked: LinkedParts) -> Vec<String> {
    let own = |flag: &'static Flag| flag.env.strip_prefix(VARIABLE);
    let unknown = variables.filter_map(|variable| {
        let name = variable.strip_prefix(VARIABLE)?;
        let is_disabled = disabled_settings(linked).any(|(optional, _)| variable.starts_with(optional.env));
        if is_disabled || flags().filter_map(own).any(|known| known == name) {
            return None;
        }
        Some(match closest_match(name, flags().filter_map(own)) {
            Some(near) => format!("{variable} is not a setting; did you mean {VARIABLE}{near}?"),
            None => format!("{variable} is not a setting; --help names the variable of each"),
        })
    });
    let mut unknown: Vec<String> = unknown.collect();
    unknown.sort();
    unknown
}

/// Documented flags of the REPL that are synonyms of server settings.
pub const REPL_NAMES: [(&str, &str); 2] =
    [("max-tool-calls", "max-upstream-calls-per-program"), ("max-catalog-ops", "max-catalog-ops-per-program")];

/// Documented variables of the REPL, which take precedence over those of the server.
pub const REPL_VARIABLES: [(&str, &str); 1] = [("PTC_RUNNER_UPSTREAMS", "PTC_RUNNER_MCP_UPSTREAMS")];
