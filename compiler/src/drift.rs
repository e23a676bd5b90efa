//! Compares two locks and reports each change of a pinned tool as one finding.
//!
//! A change is an error if calls that worked may be refused or do more harm than before, a warning if programs may misinterpret a
//! tool, and a note if everything that worked still works.
//!
//! - [`callers`]: the stored programs that call a tool.
//! - [`cause`]: the changes of a tool, and which of them can be the cause of what a program does.
//! - `input`: compares the inside of arguments.
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
pub mod markdown;
pub mod removed;
pub mod report;
mod request;
pub mod severity;
mod summary;

use std::collections::{BTreeMap, BTreeSet};

use ptc_catalog::{Annotations, Effect, HttpTransport};

use crate::config::model::{Config, Upstream};
use crate::diag::{Code, Diagnostic, Diagnostics, Subject, quoted};
use crate::ir::{Arg, Tool};
use crate::json::Json;
use crate::json_schema::PROSE;
use crate::lock::read::Places;
use crate::lock::security::SchemeKind;
use crate::lock::{Lock, LockedTool, LockedUpstream, Observed};
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
            (Some(before), Some(after)) => tool_changes(name, tool, before, after),
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

/// Returns all differences between two definitions of one tool.
fn tool_changes(server: &str, name: &str, before: &LockedTool, after: &LockedTool) -> Vec<Change> {
    let mut out = Vec::new();
    out.extend(credential_change(before, after).map(|what| Change::new(Code::RequestChanged, what)));
    if before.digest != after.digest {
        out.extend(definition_changes(server, name, before, after));
    }
    out.extend(observed_change(before, after).map(|what| Change::new(Code::ObservedChanged, what)));
    out
}

/// Describes a change of the shape that was observed in answers. The number of answers does not count.
fn observed_change(before: &LockedTool, after: &LockedTool) -> Option<String> {
    let shown = |observed: &Observed| lower::text::one_line(&lower::shape::shape(&observed.schema), lower::text::ARGUMENT);
    match (&before.observed, &after.observed) {
        (None, None) => None,
        (None, Some(now)) => Some(format!("was observed to answer {}", shown(now))),
        (Some(_), None) => Some("has another request, so that what was observed of its answers is dropped".to_owned()),
        (Some(was), Some(now)) if was.schema == now.schema => None,
        (Some(was), Some(now)) => {
            let (was, now) = (shown(was), shown(now));
            Some(if was == now {
                "was observed to answer in another shape".to_owned()
            } else {
                format!("was observed to answer {now}, which was {was}")
            })
        }
    }
}

/// Describes a change of the credentials that calls of an operation need. Names of schemes and scopes do not count, nor does any
/// order.
fn credential_change(before: &LockedTool, after: &LockedTool) -> Option<&'static str> {
    let (was, now) = (needed_credentials(before), needed_credentials(after));
    match (was.is_empty(), now.is_empty()) {
        _ if was == now => None,
        (true, _) => Some("now needs credentials"),
        (_, true) => Some("needs no credentials any more"),
        _ => Some("needs other credentials"),
    }
}

/// Returns the alternatives that an operation needs, or none if calls without credentials are accepted.
fn needed_credentials(tool: &LockedTool) -> BTreeSet<BTreeSet<&SchemeKind>> {
    let any_of = tool.security.as_ref().and_then(|security| security.any_of.as_deref()).unwrap_or_default();
    let any_of: BTreeSet<_> = any_of.iter().map(|all_of| all_of.iter().map(|scheme| &scheme.kind).collect()).collect();
    if any_of.iter().any(BTreeSet::is_empty) { BTreeSet::new() } else { any_of }
}

fn definition_changes(server: &str, name: &str, before: &LockedTool, after: &LockedTool) -> Vec<Change> {
    let (old, new) = (lower::tool(server, name, before), lower::tool(server, name, after));
    let mut out = Vec::new();
    let takes_any = input::takes_any_argument(after.definition.get("inputSchema"));
    let reported = arguments(&old, &new, takes_any, &mut out);
    schemas(&before.definition, &after.definition, &reported, &mut out);
    annotations(old.annotations, new.annotations, &mut out);
    let said = |tool: &LockedTool| tool.definition.get("description").and_then(Json::as_str).unwrap_or_default().to_owned();
    let (said_before, said_after) = (said(before), said(after));
    if said_before != said_after {
        out.push(Change::new(Code::DescriptionChanged, format!("{SAYS}{}", replaced(&said_before, &said_after))));
    }
    if out.is_empty() {
        out.push(Change::new(
            Code::DefinitionChanged,
            format!("differs in {}", differing(&before.definition, &after.definition)),
        ));
    }
    out
}

/// Reports removed and new arguments, and changed types. Returns the arguments whose types are reported. `takes_any`:
/// whether the new schema takes every argument, so that none is refused.
fn arguments<'t>(old: &'t Tool, new: &'t Tool, takes_any: bool, out: &mut Vec<Change>) -> BTreeSet<&'t str> {
    let mut reported = BTreeSet::new();
    let by_name = |tool: &'t Tool| tool.args.iter().map(|arg| (arg.name.as_str(), arg)).collect::<BTreeMap<_, _>>();
    let (before, now) = (by_name(old), by_name(new));
    for arg in &old.args {
        match now.get(arg.name.as_str()) {
            None if takes_any => {
                let what = format!("no longer describes {}, and takes any arguments", quoted(&arg.name));
                out.push(Change::new(Code::InputChanged, what).passing(&arg.name));
            }
            None => {
                let what = format!("no longer takes {}", quoted(&arg.name));
                out.push(Change::new(Code::InputBreaking, what).passing(&arg.name));
            }
            Some(now) => {
                if argument(arg, now, out) {
                    reported.insert(arg.name.as_str());
                }
            }
        }
    }
    for arg in new.args.iter().filter(|arg| !before.contains_key(arg.name.as_str())) {
        let name = quoted(&arg.name);
        out.push(if arg.required {
            Change::new(Code::InputBreaking, format!("needs the new argument {name}")).lacking(&arg.name)
        } else {
            Change::new(Code::InputWidened, format!("takes the new argument {name}"))
        });
    }
    match (old.closed, new.closed) {
        (false, true) => {
            let change = Change::new(Code::InputBreaking, "refuses arguments that it does not name");
            out.push(change.passing_others(new.args.iter().map(|arg| arg.name.as_str())));
        }
        (true, false) => out.push(Change::new(Code::InputWidened, "takes arguments that it does not name")),
        _ => {}
    }
    reported
}

/// Reports changes of one argument. Returns whether a change of its types or values is reported.
fn argument(old: &Arg, new: &Arg, out: &mut Vec<Change>) -> bool {
    let name = quoted(&new.name);
    match (old.required, new.required) {
        (false, true) => {
            out.push(Change::new(Code::InputBreaking, format!("now requires {name}")).lacking(&new.name));
        }
        (true, false) => out.push(Change::new(Code::InputWidened, format!("no longer requires {name}"))),
        _ => {}
    }
    input::kinds(&new.name, old, new, out)
}

/// Compares the schemas beyond names, types and enumerations of arguments. `reported`: arguments already covered by another
/// finding.
fn schemas(before: &Json, after: &Json, reported: &BTreeSet<&str>, out: &mut Vec<Change>) {
    let nothing = Json::object();
    let [old, new] = [before, after].map(|definition| definition.get("inputSchema").unwrap_or(&nothing));
    input::compare(old, new, reported, out);
    if before.get("outputSchema").map(without_annotations) != after.get("outputSchema").map(without_annotations) {
        out.push(Change::new(Code::OutputChanged, shape(before, after)));
    }
    request::compare(before, after, out);
}

/// Describes how the results of a tool differ.
fn shape(before: &Json, after: &Json) -> String {
    let shown = |definition: &Json| {
        let shape = definition.get("outputSchema").map_or_else(|| "any".to_owned(), lower::shape::shape);
        lower::text::one_line(&shape, lower::text::ARGUMENT)
    };
    let (was, now) = (shown(before), shown(after));
    // Shapes omit bounds, and are truncated, so different schemas can have equal shapes.
    if was == now { "answers in another shape".to_owned() } else { format!("answers {now}, which was {was}") }
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

/// Reports changes of a tool's declared effects.
fn annotations(before: Annotations, after: Annotations, out: &mut Vec<Change>) {
    let may_destroy = |declared| Effect::new(declared, None).may_destroy();
    if may_destroy(after) && !may_destroy(before) {
        out.push(Change::new(
            Code::BecameDestructive,
            "no longer says that it is harmless: it may change or destroy things".to_owned(),
        ));
    } else if before != after {
        let flags = [
            ("readOnlyHint", before.read_only, after.read_only),
            ("destructiveHint", before.destructive, after.destructive),
            ("idempotentHint", before.idempotent, after.idempotent),
            ("openWorldHint", before.open_world, after.open_world),
        ];
        let changed: Vec<String> = flags
            .into_iter()
            .filter_map(|(name, before, after)| match (before, after) {
                (Some(before), None) => Some(format!("no longer declares `{name}`, which was {before}")),
                (None, Some(after)) => Some(format!("now declares `{name}` {after}")),
                (Some(before), Some(after)) if before != after => {
                    Some(format!("now declares `{name}` {after}, which was {before}"))
                }
                _ => None,
            })
            .collect();
        out.push(Change::new(Code::AnnotationChanged, changed.join(", ")));
    }
}

/// Returns the names of the members in which two definitions differ.
fn differing(before: &Json, after: &Json) -> String {
    let keys: BTreeSet<&str> = before.members().iter().chain(after.members()).map(|(key, _)| key.as_str()).collect();
    let names: Vec<String> = keys.into_iter().filter(|key| before.get(key) != after.get(key)).map(quoted).collect();
    names.join(", ")
}
