//! How an MCP upstream is reached, as the lock file has it. Tools that were listed at another address are not those of this one.

use ptc_secrets::heuristics::{REDACTED, SecretCandidate, scan_argument, scan_query};

use crate::config::model::{McpStdio, Transport};
use crate::diag::quoted;
use crate::json::Json;

/// The command or the URL of an upstream, without secrets: values that may be secret are replaced, and of `env` only the names
/// are kept. Limits and the sandbox do not belong to it, because a server offers the same tools under others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address(Json);

impl Address {
    /// Returns the address of an MCP upstream. `None` for OpenAPI services, whose document is pinned with its source.
    pub fn from_transport(transport: &Transport) -> Option<Address> {
        match transport {
            Transport::McpStdio(stdio) => Some(Address(command(stdio))),
            Transport::McpHttp(http) => {
                let url = &http.url.value;
                Some(Address(Json::object().with("url", Json::string(masked(url, scan_query(url))))))
            }
            Transport::OpenApi(_) => None,
        }
    }

    /// Reads an address from a lock file. Returns `None` if the value is not an object.
    pub(super) fn from_json(json: Json) -> Option<Address> {
        matches!(json, Json::Object(_)).then(|| Address(json.sorted()))
    }

    /// Returns the address as the lock file has it.
    pub(super) fn to_json(&self) -> Json {
        self.0.clone()
    }

    /// Describes the first difference between the address that was locked and this one, as the end of a sentence.
    pub fn difference(&self, locked: &Address) -> Option<String> {
        let keys = self.0.members().iter().chain(locked.0.members()).map(|(key, _)| key);
        let key = keys.into_iter().find(|key| self.0.get(key) != locked.0.get(key))?;
        let (now, was) = (self.0.get(key), locked.0.get(key));
        let (now, was) = match (now, was) {
            // Of lists, the elements that differ are enough.
            (Some(Json::Array(now)), Some(Json::Array(was))) => {
                let at = now.iter().zip(was).take_while(|(now, was)| now == was).count();
                (now.get(at), was.get(at))
            }
            pair => pair,
        };
        let shown = |value: &Json| value.as_str().map_or_else(|| value.canonical(), quoted);
        Some(match (now, was) {
            (Some(now), Some(was)) => format!("has {} in `{key}`, the lock file has {}", shown(now), shown(was)),
            (Some(now), None) => format!("has {} in `{key}`, which the lock file does not have", shown(now)),
            (None, was) => format!("lacks {} in `{key}`, which the lock file has", was.map(shown).unwrap_or_default()),
        })
    }
}

fn command(stdio: &McpStdio) -> Json {
    let mut before = "";
    let mut args = Vec::new();
    for arg in &stdio.args {
        args.push(Json::string(masked(arg, scan_argument(before, arg))));
        before = arg;
    }
    let env = stdio.env.keys().map(|name| Json::string(name.as_str())).collect();
    let command = Json::object().with("command", Json::string(&*stdio.command.value)).with("args", Json::Array(args));
    let command = command.with("env", Json::Array(env));
    let command = match &stdio.cd {
        Some(cd) => command.with("cd", Json::string(&*cd.value)),
        None => command,
    };
    command.sorted()
}

/// Returns a text with its possible secrets replaced. A secret that changes is no other address.
fn masked(text: &str, secrets: impl IntoIterator<Item = SecretCandidate>) -> String {
    let mut out = String::new();
    let mut at = 0;
    for SecretCandidate { range, .. } in secrets {
        out.push_str(text.get(at..range.start).unwrap_or_default());
        out.push_str(REDACTED);
        at = range.end;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}
