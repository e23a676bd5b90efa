//! Adds a server to the config of an MCP client, and removes it. Comments, order and white space stay.
//!
//! | module | purpose |
//! |---|---|
//! | `json` | edits JSON with comments |
//! | `toml` | edits TOML |

mod json;
mod toml;

use std::fmt;

use crate::clients::{Client, Format};

/// The server that is added or removed.
#[derive(Debug, Clone, Copy)]
pub struct Server<'a> {
    /// The name of its entry.
    pub name: &'a str,
    /// The absolute path of the program.
    pub command: &'a str,
}

/// Why a config cannot be edited.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The text is not valid, with the reason and the line.
    Syntax(String, usize),
    /// A value where servers belong is not an object.
    NotAnObject(String),
    /// The name belongs to another server.
    Taken,
    /// There is no entry of that name.
    NotThere,
    /// The entry is there already.
    Unchanged,
    /// No editor keeps the comments and the order of this format.
    NotEditable,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Syntax(reason, line) => write!(f, "line {line} is not valid: {reason}"),
            Error::NotAnObject(key) => write!(f, "`{key}` is not an object"),
            Error::Taken => f.write_str("another server has this name"),
            Error::NotThere => f.write_str("it has no such entry"),
            Error::Unchanged => f.write_str("it has the entry already"),
            Error::NotEditable => f.write_str("YAML cannot be edited without losing comments"),
        }
    }
}

impl std::error::Error for Error {}

/// Returns the config with the server in it. An empty text is a config that does not exist yet.
///
/// # Errors
///
/// [`Error`] if the config cannot be edited, or has an entry with that name.
pub fn add(client: Client, text: &str, server: Server<'_>) -> Result<String, Error> {
    match client.row().format {
        Format::Json => json::add(client, text, server),
        Format::Toml => toml::add(client, text, server),
        Format::Yaml => Err(Error::NotEditable),
    }
}

/// Returns the config without the server.
///
/// # Errors
///
/// [`Error`] if the config cannot be edited, or has no such entry.
pub fn remove(client: Client, text: &str, server: Server<'_>) -> Result<String, Error> {
    match client.row().format {
        Format::Json => json::remove(client, text, server),
        Format::Toml => toml::remove(client, text, server),
        Format::Yaml => Err(Error::NotEditable),
    }
}

/// Returns the lines that a user adds to a config which cannot be edited.
pub fn lines(client: Client, server: Server<'_>) -> String {
    let mut command = String::new();
    crate::json::quote(server.command, &mut command);
    let mut name = String::new();
    crate::json::quote(server.name, &mut name);
    match client {
        Client::Goose => format!(
            "extensions:\n  {name}:\n    enabled: true\n    type: stdio\n    name: {name}\n    cmd: {command}\n    args: []\n    timeout: 300\n"
        ),
        Client::Continue => format!("mcpServers:\n  - name: {name}\n    command: {command}\n"),
        _ => add(client, "", server).unwrap_or_default(),
    }
}

/// Returns the members of an entry, as the client's own documentation writes them.
fn members(client: Client, server: Server<'_>) -> Vec<(&'static str, &str)> {
    let kind = match client {
        Client::VsCode | Client::ClaudeCode => Some(("type", "stdio")),
        Client::Zed => Some(("source", "custom")),
        _ => None,
    };
    kind.into_iter().chain([("command", server.command)]).collect()
}

/// Returns the keys under which the client keeps its servers.
fn section(client: Client) -> &'static [&'static str] {
    client.row().sections.first().copied().unwrap_or(&[])
}

/// Returns the line of a byte, from 1.
fn line_of(text: &str, byte: usize) -> usize {
    text.get(..byte).unwrap_or(text).matches('\n').count() + 1
}
