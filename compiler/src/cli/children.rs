//! Creates the commands of all processes that this program starts, and removes secrets from their environment.

use std::ffi::OsStr;
use std::process::Command;

use ptc_catalog::RESERVED_PREFIX;

/// The variable with the access token on whose behalf upstreams are asked that have no token without a caller. No process inherits it: it is
/// the token of a person, and only this program exchanges it.
pub(crate) const CALLER_VARIABLE: &str = "PTC_RUNNER_MCP_CALLER_TOKEN";

/// Creates the command of a pinned binary, which inherits the settings of servers.
pub(crate) fn server(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env_remove(CALLER_VARIABLE);
    command
}

/// Creates the command of a tool of this machine, such as cargo. It inherits no variable of this program or of servers: they may hold tokens,
/// and tools need none of them.
pub(crate) fn tool(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(RESERVED_PREFIX.as_bytes())) {
        command.env_remove(name);
    }
    command
}

/// Opens a URL in the browser of the desktop. Returns whether that was possible. A browser inherits the whole environment, so that none is
/// started while it has the token of a person.
pub(crate) fn open_browser(url: &str) -> bool {
    std::env::var_os(CALLER_VARIABLE).is_none_or(|token| token.is_empty()) && webbrowser::open(url).is_ok()
}
