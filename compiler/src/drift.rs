//! Compares two locks and reports each change of a pinned tool as one finding.
//!
//! A change is an error if calls that worked may be refused or do more harm than before, a warning if programs may misinterpret a
//! tool, and a note if everything that worked still works.
//!
//! - [`callers`]: the stored programs that call a tool.
//! - [`cause`]: the changes of a tool, and which of them can be the cause of what a program does.
//! - `tool`: compares two definitions of a tool. `input`: the inside of arguments. `keywords`: the keywords of their schemas.
//! - [`markdown`]: the comparison as Markdown, for reviewers.
//! - [`removed`]: members that an output schema no longer has.
//! - [`report`]: the comparison as text, grouped by upstream and tool.
//! - `request`: compares the requests of OpenAPI operations.
//! - [`severity`]: how severe changes are.
//! - `summary`: the sentences of these reports.

mod authorization;
pub mod callers;
pub mod cause;
mod input;
mod keywords;
pub mod markdown;
pub mod removed;
pub mod report;
mod request;
pub mod severity;
mod summary;
mod tool;

pub(crate) use authorization::config_difference;

use std::collections::{BTreeMap, BTreeSet};

use ptc_catalog::HttpTransport;

use crate::config::model::{Config, Upstream};
use crate::diag::{Code, Diagnostic, Diagnostics, Subject, quoted};
use crate::json::Json;
use crate::json_schema::PROSE;
use crate::lock::read::Places;
use crate::lock::{Lock, LockedTool, LockedUpstream};
use crate::lower;
use crate::source::Span;

use cause::Change;
pub use summary::counts;

/// Keywords of a schema whose members are names and not keywords.
const NAME_MAP_KEYWORDS: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];

/// Keywords of a schema whose items have no order.
const SETS: [&str; 3] = ["enum", "required", "type"];

/// The start of a change of a tool's description. Changes of other texts have the same code.
const SAYS: &str = "says ";

/// Numbers of changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Number of tools that changed in any way, without those of new upstreams.
    pub tools: usize,
    /// Number of upstreams whose own description or transport changed.
    pub upstreams: usize,
    /// Number of upstreams that the old lock does not have.
    pub new_upstreams: usize,
}

/// Reports every change from `old` to `new` of a tool or of an upstream's own description, for all upstreams of `config`. An
/// upstream may be in only one of the locks. If `pinned` has the position of a pin in the old lock, it becomes the second
/// position of the finding. `config_path`: the path for
/// the command in the hints; findings without it have no hint.
pub fn compare(
    config: &Config,
    old: &Lock,
    new: &Lock,
    pinned: &Places,
    config_path: Option<&str>,
    diagnostics: &mut Diagnostics,
) -> Count {
    let mut count = Count::default();
    for (name, upstream) in &config.upstreams {
        let found = changes(name, upstream, old.upstreams.get(name), new.upstreams.get(name));
        let finding = |code, message: &str, subject: Subject, pinned: Option<&Span>| {
            let finding = Diagnostic::new(code, message).about(subject).at(upstream.place.clone(), "");
            let finding = match pinned {
                Some(place) => finding.also(place.clone(), "pinned here"),
                None => finding,
            };
            match config_path {
                Some(path) => finding.hint(update_hint(path, name)),
                None => finding,
            }
        };
        count.upstreams += usize::from(old.upstreams.contains_key(name) && found.has_own_changes());
        for what in found.files {
            let message = format!("the document of {} {what}", quoted(name));
            let subject = Subject::upstream(name).change(&message);
            diagnostics.push(finding(Code::DocumentFileChanged, &message, subject, pinned.upstream(name)));
        }
        if let Some(what) = found.transport {
            let message = format!("{} {what}", quoted(name));
            let subject = Subject::upstream(name).change(&what);
            diagnostics.push(finding(Code::TransportChanged, &message, subject, pinned.upstream(name)));
        }
        for (code, what) in found.authorization {
            let message = format!("{} {what}", quoted(name));
            let subject = Subject::upstream(name).change(&what);
            diagnostics.push(finding(code, &message, subject, pinned.upstream(name)));
        }
        for what in [found.server_name, found.instructions].into_iter().flatten() {
            let message = format!("{} {what}", quoted(name));
            let subject = Subject::upstream(name).change(&what);
            diagnostics.push(finding(Code::DescriptionChanged, &message, subject, pinned.upstream(name)));
        }
        if !old.upstreams.contains_key(name) && !found.tools.is_empty() {
            count.new_upstreams += 1;
            let what = summary::new_upstream(found.tools.len());
            let message = format!("{} {what}", quoted(name));
            diagnostics.push(finding(Code::ToolAdded, &message, Subject::upstream(name).change(&what), None));
            continue;
        }
        count.tools += found.tools.len();
        for (tool, changes) in found.tools {
            let operation = [new, old].iter().find_map(|lock| operation_of(lock.upstreams.get(name)?.tools.get(&tool)?));
            let subject = Subject { operation, ..Subject::upstream(name).tool(&tool) };
            for Change { code, what, .. } in changes {
                let message = format!("{} of {} {what}", quoted(&tool), quoted(name));
                diagnostics.push(finding(code, &message, subject.clone().change(&what), pinned.tool(name, &tool)));
            }
        }
    }
    count
}

/// Returns the `operationId` of a tool of an OpenAPI document.
fn operation_of(tool: &LockedTool) -> Option<String> {
    tool.definition.get("_ptc")?.get("operationId").and_then(Json::as_str).map(str::to_owned)
}

/// Returns the hint for a stale pin: the command that renews it.
pub fn update_hint(config_path: &str, upstream: &str) -> String {
    format!("`ptc-compile update {config_path} {upstream}` pins the change; review the lock file and commit it")
}

/// All changes of one upstream. A lock is stale exactly if there are any: the digest of a document and the version of a server
/// may differ without a change.
#[derive(Debug, Default)]
pub struct Changes {
    /// The change of the agreed transport of a server over HTTP, as part of a sentence.
    pub transport: Option<String>,
    /// Changes of the authorization server that the upstream names, as parts of sentences.
    pub authorization: Vec<(Code, String)>,
    /// The change of the server's name, as part of a sentence.
    pub server_name: Option<String>,
    /// The change of the server's instructions, as part of a sentence.
    pub instructions: Option<String>,
    /// Changes of its tools, by exposed name. No list is empty.
    pub tools: BTreeMap<String, Vec<Change>>,
    /// The changed tools through which programs break, as their tests or their texts show.
    pub breaking: BTreeSet<String>,
    /// The files of its document that differ, if the document has several and tools changed.
    pub files: Vec<String>,
}

impl Changes {
    /// Whether there are no changes.
    pub fn is_empty(&self) -> bool {
        !self.has_own_changes() && self.tools.is_empty()
    }

    /// Whether the upstream itself changed, and not only its tools.
    fn has_own_changes(&self) -> bool {
        self.transport.is_some() || !self.authorization.is_empty() || self.has_other_server_info()
    }

    /// Whether the server describes itself in another way.
    pub fn has_other_server_info(&self) -> bool {
        self.server_name.is_some() || self.instructions.is_some()
    }
}

/// Returns all changes of an upstream with this entry of the config. It may be in only one of the locks.
pub fn changes(name: &str, entry: &Upstream, old: Option<&LockedUpstream>, new: Option<&LockedUpstream>) -> Changes {
    let mut found = Changes::default();
    if let (Some(before), Some(after)) = (old, new) {
        found.transport = transport_change(before, after);
        let name = |locked: &LockedUpstream| locked.server.as_ref().map(|server| server.name.clone()).unwrap_or_default();
        found.server_name = text_change("calls itself", &name(before), &name(after));
        let instructions = |locked: &LockedUpstream| locked.instructions.clone().unwrap_or_default();
        found.instructions = text_change("says of itself", &instructions(before), &instructions(after));
    }
    let nothing = LockedUpstream::default();
    let (before, after) = (old.unwrap_or(&nothing), new.unwrap_or(&nothing));
    found.authorization = authorization::changes(entry, before, after);
    found.tools = changes_of_tools(name, old, new);
    if !found.tools.is_empty() {
        found.files = document_changes(old, new);
    }
    found
}

/// Returns the changes of an upstream's tools by exposed name. No list is empty.
pub fn changes_of_tools(name: &str, old: Option<&LockedUpstream>, new: Option<&LockedUpstream>) -> BTreeMap<String, Vec<Change>> {
    let mut found = BTreeMap::new();
    let nothing = LockedUpstream::default();
    let (before, after) = (&old.unwrap_or(&nothing).tools, &new.unwrap_or(&nothing).tools);
    for tool in before.keys().chain(after.keys()).collect::<BTreeSet<_>>() {
        let changes = match (before.get(tool), after.get(tool)) {
            (None, Some(_)) => vec![Change::new(Code::ToolAdded, "is new")],
            (Some(_), None) => vec![Change::new(Code::ToolRemoved, "is gone")],
            (Some(before), Some(after)) => tool::changes(name, tool, before, after),
            (None, None) => Vec::new(),
        };
        if !changes.is_empty() {
            found.insert(tool.clone(), changes);
        }
    }
    found
}

/// Describes a change of the agreed transport of a server over HTTP. A lock file without one was written by a compiler that knew only
/// Streamable HTTP.
fn transport_change(before: &LockedUpstream, after: &LockedUpstream) -> Option<String> {
    let agreed = |locked: &LockedUpstream| {
        locked.http_transport.or(match locked.transport.as_str() {
            "mcp_http" => Some(HttpTransport::Streamable),
            "mcp_sse" => Some(HttpTransport::Sse),
            _ => None,
        })
    };
    let shown = |transport: HttpTransport| match transport {
        HttpTransport::Streamable => "Streamable HTTP",
        HttpTransport::Sse => "HTTP+SSE",
    };
    let (was, now) = (agreed(before)?, agreed(after)?);
    (was != now).then(|| format!("is reached over {}, which was {}", shown(now), shown(was)))
}

/// Returns which further files of a document differ, and whether its first file does if there are any.
fn document_changes(old: Option<&LockedUpstream>, new: Option<&LockedUpstream>) -> Vec<String> {
    let document = |upstream: Option<&LockedUpstream>| upstream.and_then(|upstream| upstream.document.clone());
    let (Some(before), Some(after)) = (document(old), document(new)) else { return Vec::new() };
    let names: BTreeSet<&String> = before.files.keys().chain(after.files.keys()).collect();
    let mut out = Vec::new();
    if !names.is_empty() && before.digest != after.digest {
        out.push("has another first file".to_owned());
    }
    for name in names {
        match (before.files.get(name), after.files.get(name)) {
            (Some(was), Some(now)) if was == now => {}
            (Some(_), Some(_)) => out.push(format!("has another file {}", quoted(name))),
            (None, _) => out.push(format!("now has the file {}", quoted(name))),
            (_, None) => out.push(format!("no longer has the file {}", quoted(name))),
        }
    }
    out
}

/// Describes the change of a text, if it has changed.
fn text_change(verb: &str, was: &str, now: &str) -> Option<String> {
    (was != now).then(|| format!("{verb} {}", replaced(was, now)))
}

/// Describes a text and its predecessor for a sentence.
fn replaced(was: &str, now: &str) -> String {
    let shown = |text: &str| lower::text::one_line(text, lower::text::SHORT);
    format!("\"{}\", which was \"{}\"", shown(now), shown(was))
}

/// Returns a schema without descriptions and dialect, and with unordered lists sorted. Names of properties are not keywords, so that a
/// property called `description` is kept.
pub(crate) fn without_annotations(schema: &Json) -> Json {
    fn walk(node: &Json, is_names: bool) -> Json {
        match node {
            Json::Object(members) => Json::Object(
                members
                    .iter()
                    .filter(|(key, _)| is_names || key != "$schema" && !PROSE.contains(&key.as_str()))
                    .map(|(key, value)| {
                        let names = !is_names && NAME_MAP_KEYWORDS.contains(&key.as_str());
                        let value = walk(value, names);
                        (key.clone(), if !is_names && SETS.contains(&key.as_str()) { ordered(value) } else { value })
                    })
                    .collect(),
            ),
            Json::Array(items) => Json::Array(items.iter().map(|item| walk(item, false)).collect()),
            other => other.clone(),
        }
    }
    walk(schema, false)
}

fn ordered(list: Json) -> Json {
    let Json::Array(mut items) = list else { return list };
    items.sort_by_cached_key(Json::canonical);
    Json::Array(items)
}
