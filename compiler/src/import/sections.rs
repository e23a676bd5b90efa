//! Finds the servers in the config of a client, and determines the client.

use std::ops::Range;

use super::Input;
use crate::clients::{CLIENTS, Client};
use crate::diag::{Code, Diagnostic, Diagnostics, quoted};
use crate::source::{Sources, Span};
use crate::tree::{Node, Tree};

/// The servers of a config.
pub(super) struct Found {
    pub(super) client: Client,
    pub(super) root: Node,
    pub(super) sections: Vec<Section>,
}

/// A list or an object of servers.
pub(super) struct Section {
    pub(super) node: Node,
    /// The folder of the project that the section is for.
    pub(super) project: Option<String>,
}

impl Section {
    /// Returns the entries: the name of each, the position of the name, and the entry.
    pub(super) fn entries(&self) -> Vec<(String, Range<u32>, &Node)> {
        let named = self.node.members().iter().map(|member| (member.key.to_string(), member.key_range.clone(), &member.value));
        let listed = self.node.elements().unwrap_or(&[]).iter().map(|element| {
            let name = element.get("name").filter(|name| name.as_str().is_some());
            let place = name.map_or_else(|| element.range.start..element.range.start + 1, |name| name.range.clone());
            (name.and_then(Node::as_str).unwrap_or("server").to_owned(), place, element)
        });
        named.chain(listed).collect()
    }
}

impl Found {
    /// Whether a list of the client switches an entry off: `mcp.allowed` and `mcp.excluded` of Gemini CLI, and lists of
    /// Claude Code.
    pub(super) fn switched_off(&self, name: &str) -> bool {
        let names = |list: &Node| list.elements().unwrap_or(&[]).iter().any(|element| element.as_str() == Some(name));
        let of = |key: &str| self.root.get("mcp").and_then(|mcp| mcp.get(key));
        let excluded = of("excluded").is_some_and(names) || self.root.get("disabledMcpServers").is_some_and(names);
        excluded || of("allowed").is_some_and(|allowed| !names(allowed))
    }
}

/// Finds the sections of a config. Reports a config without any.
pub(super) fn find(sources: &Sources, input: &Input, root: Node, diagnostics: &mut Diagnostics) -> Option<Found> {
    let path = &sources.get(input.file).path;
    let known = input.client.or_else(|| Client::of_path(path));
    let of = |client: Client| {
        let found: Vec<Section> = client.row().sections.iter().flat_map(|path| at(&root, path, None)).collect();
        (!found.is_empty()).then_some((client, found))
    };
    let guessed = || by_content(&root).and_then(of);
    let found = match input.client {
        Some(client) => of(client),
        None => known.and_then(of).or_else(guessed).or_else(|| CLIENTS.iter().find_map(|row| of(row.client))),
    };
    let Some((client, sections)) = found else {
        if input.is_optional {
            return None;
        }
        let keys: Vec<String> = input.client.map_or_else(
            || CLIENTS.iter().flat_map(|row| row.sections).map(|path| path.join(".")).collect(),
            |client| client.row().sections.iter().map(|path| path.join(".")).collect(),
        );
        let mut unique: Vec<String> = Vec::new();
        keys.into_iter().map(|key| quoted(&key)).for_each(|key| {
            if !unique.contains(&key) {
                unique.push(key);
            }
        });
        let place = Span { file: input.file, range: root.range.start..root.range.start };
        let what = input
            .client
            .map_or("no servers of a known client".to_owned(), |client| format!("no servers of {}", client.row().label));
        let diagnostic = Diagnostic::new(Code::UnknownClientConfig, format!("{} has {what}", quoted(path)))
            .at(place, "")
            .hint(format!("servers are an object or a list under {}", unique.join(", ")));
        diagnostics.push(diagnostic);
        return None;
    };
    Some(Found { client, root, sections })
}

/// Returns the sections at a path of keys. `*` is any key, which is the folder of a project.
fn at(node: &Node, path: &[&str], project: Option<&str>) -> Vec<Section> {
    let Some((key, rest)) = path.split_first() else {
        let is_section = match &node.value {
            Tree::Object(members) => {
                members.is_empty() || members.iter().any(|member| matches!(member.value.value, Tree::Object(_)))
            }
            Tree::Array(_) => true,
            _ => false,
        };
        let section = Section { node: node.clone(), project: project.map(str::to_owned) };
        return is_section.then_some(section).into_iter().collect();
    };
    if *key == "*" {
        return node.members().iter().flat_map(|member| at(&member.value, rest, Some(&member.key))).collect();
    }
    node.get(key).into_iter().flat_map(|inner| at(inner, rest, project)).collect()
}

/// Returns the client whose keys the entries have, for a file of any name with `mcpServers`.
fn by_content(root: &Node) -> Option<Client> {
    let servers = root.get("mcpServers")?;
    if servers.elements().is_some() {
        return Some(Client::Continue);
    }
    let has = |keys: &[&str]| servers.members().iter().any(|entry| keys.iter().any(|key| entry.value.get(key).is_some()));
    [
        (Client::Windsurf, &["serverUrl", "disabledTools"][..]),
        (Client::Gemini, &["httpUrl", "includeTools", "excludeTools", "trust"]),
        (Client::ClaudeCode, &["type", "headersHelper"]),
        (Client::Cursor, &["url", "envFile"]),
    ]
    .into_iter()
    .find(|(_, keys)| has(keys))
    .map(|(client, _)| client)
}
