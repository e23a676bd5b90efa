//! What became of pinned tools: two locks compared, each change one finding.
//!
//! A change is an error where programs that ran may be refused or do more harm than before, a warning where they may
//! understand a tool differently, and a note where nothing that worked is lost.

use std::collections::BTreeSet;

use ptc_catalog::Annotations;

use crate::config::model::{Config, Upstream};
use crate::diag::{Code, Diagnostic, Diagnostics, quoted};
use crate::ir::{Arg, Json, Tool};
use crate::lock::{Lock, LockedTool, LockedUpstream};
use crate::lower;
use crate::lower::schema::Schema;

/// Members of a schema that only say something about it.
const PROSE: [&str; 5] = ["description", "title", "examples", "example", "$comment"];

/// Reports every change of a tool from `old` to `new`, for the upstreams of `config` that both have or that only one has. Tells
/// how many tools changed.
pub fn compare(config: &Config, old: &Lock, new: &Lock, diagnostics: &mut Diagnostics) -> usize {
    let nothing = LockedUpstream::default();
    let mut count = 0;
    for (name, upstream) in &config.upstreams {
        let before = &old.upstreams.get(name).unwrap_or(&nothing).tools;
        let after = &new.upstreams.get(name).unwrap_or(&nothing).tools;
        for tool in before.keys().chain(after.keys()).collect::<BTreeSet<_>>() {
            let changes = match (before.get(tool), after.get(tool)) {
                (None, Some(_)) => vec![(Code::ToolAdded, "is new".to_owned())],
                (Some(_), None) => vec![(Code::ToolRemoved, "is gone".to_owned())],
                (Some(before), Some(after)) => changes(name, tool, before, after),
                (None, None) => Vec::new(),
            };
            count += usize::from(!changes.is_empty());
            for (code, what) in changes {
                diagnostics.push(finding(upstream, code, &format!("{} of {} {what}", quoted(tool), quoted(name))));
            }
        }
    }
    count
}

fn finding(upstream: &Upstream, code: Code, message: &str) -> Diagnostic {
    Diagnostic::new(code, message).at(upstream.place.clone(), "")
}

/// All differences between two definitions of one tool.
fn changes(server: &str, name: &str, before: &LockedTool, after: &LockedTool) -> Vec<(Code, String)> {
    if before.digest == after.digest {
        return Vec::new();
    }
    let (old, new) = (lower::tool(server, name, before), lower::tool(server, name, after));
    let mut out = Vec::new();
    arguments(&old, &new, &mut out);
    schemas(&before.definition, &after.definition, &mut out);
    annotations(old.annotations, new.annotations, &mut out);
    let said = |tool: &LockedTool| tool.definition.get("description").and_then(Json::as_str).unwrap_or_default().to_owned();
    let (said_before, said_after) = (said(before), said(after));
    if said_before != said_after {
        let shown = |text: &str| lower::text::one_line(text, lower::text::SHORT);
        out.push((Code::DescriptionChanged, format!("says \"{}\", which was \"{}\"", shown(&said_after), shown(&said_before))));
    }
    if out.is_empty() {
        out.push((Code::DefinitionChanged, format!("differs in {}", differing(&before.definition, &after.definition))));
    }
    out
}

/// Arguments that are gone, new, or take other values.
fn arguments(old: &Tool, new: &Tool, out: &mut Vec<(Code, String)>) {
    let find = |tool: &Tool, name: &str| tool.args.iter().find(|arg| arg.name == name).cloned();
    for arg in &old.args {
        match find(new, &arg.name) {
            None => out.push((Code::InputBreaking, format!("no longer takes {}", quoted(&arg.name)))),
            Some(now) => argument(arg, &now, out),
        }
    }
    for arg in new.args.iter().filter(|arg| find(old, &arg.name).is_none()) {
        let name = quoted(&arg.name);
        out.push(if arg.required {
            (Code::InputBreaking, format!("needs the new argument {name}"))
        } else {
            (Code::InputWidened, format!("takes the new argument {name}"))
        });
    }
    match (old.closed, new.closed) {
        (false, true) => out.push((Code::InputBreaking, "refuses arguments that it does not name".to_owned())),
        (true, false) => out.push((Code::InputWidened, "takes arguments that it does not name".to_owned())),
        _ => {}
    }
}

fn argument(old: &Arg, new: &Arg, out: &mut Vec<(Code, String)>) {
    let name = quoted(&new.name);
    match (old.required, new.required) {
        (false, true) => out.push((Code::InputBreaking, format!("now requires {name}"))),
        (true, false) => out.push((Code::InputWidened, format!("no longer requires {name}"))),
        _ => {}
    }
    let lost = ptc_catalog::Type::ALL.iter().any(|(kind, _)| old.types.admits(*kind) && !new.types.admits(*kind));
    let won = ptc_catalog::Type::ALL.iter().any(|(kind, _)| new.types.admits(*kind) && !old.types.admits(*kind));
    if lost {
        out.push((Code::InputBreaking, format!("takes {} for {name}, which was {}", new.label, old.label)));
    } else if won {
        out.push((Code::InputWidened, format!("takes {} for {name}, which was {}", new.label, old.label)));
    }
    // No list is every value.
    let refused: Vec<&str> = match (old.allowed.as_slice(), new.allowed.as_slice()) {
        (_, []) => Vec::new(),
        ([], _) => vec!["all but a few values"],
        (before, now) => before.iter().filter(|value| !now.contains(value)).map(String::as_str).collect(),
    };
    let admitted = match (old.allowed.as_slice(), new.allowed.as_slice()) {
        ([], _) => false,
        (_, []) => true,
        (before, now) => now.iter().any(|value| !before.contains(value)),
    };
    if !refused.is_empty() {
        out.push((Code::InputBreaking, format!("refuses {} for {name}", refused.join(", "))));
    } else if admitted {
        out.push((Code::InputWidened, format!("takes more values for {name}")));
    }
}

/// What the schemas say beyond names, types and lists of values.
fn schemas(before: &Json, after: &Json, out: &mut Vec<(Code, String)>) {
    let bare = |definition: &Json, key| definition.get(key).map(bare);
    if out.is_empty() && bare(before, "inputSchema") != bare(after, "inputSchema") {
        let names: Vec<String> = changed_properties(before, after).into_iter().map(|name| quoted(&name)).collect();
        let what = if names.is_empty() { "its arguments".to_owned() } else { names.join(", ") };
        out.push((Code::InputChanged, format!("bounds {what} differently")));
    } else if before.get("inputSchema") != after.get("inputSchema") && out.is_empty() {
        out.push((Code::DescriptionChanged, "describes its arguments differently".to_owned()));
    }
    if bare(before, "outputSchema") != bare(after, "outputSchema") {
        out.push((Code::OutputChanged, "answers in another shape".to_owned()));
    }
    let request = |definition: &Json| definition.get("_ptc").map(|ptc| (ptc.get("path").cloned(), ptc.get("params").cloned()));
    if request(before) != request(after) {
        out.push((Code::RequestChanged, "is requested differently".to_owned()));
    }
}

fn changed_properties(before: &Json, after: &Json) -> Vec<String> {
    let members = |definition: &Json| {
        let input = definition.get("inputSchema").cloned().unwrap_or_else(Json::object);
        let members = Schema::new(&input).members(&input);
        members.properties.iter().map(|(name, schema)| ((*name).to_owned(), bare(schema))).collect::<Vec<_>>()
    };
    let before = members(before);
    members(after).into_iter().filter(|member| !before.contains(member)).map(|(name, _)| name).collect()
}

/// A schema without prose. Names of properties are not keywords, so that one called `description` stays.
fn bare(schema: &Json) -> Json {
    fn walk(node: &Json, is_names: bool) -> Json {
        match node {
            Json::Object(members) => Json::Object(
                members
                    .iter()
                    .filter(|(key, _)| is_names || !PROSE.contains(&key.as_str()))
                    .map(|(key, value)| {
                        let names =
                            !is_names && matches!(key.as_str(), "properties" | "patternProperties" | "$defs" | "definitions");
                        (key.clone(), walk(value, names))
                    })
                    .collect(),
            ),
            Json::Array(items) => Json::Array(items.iter().map(|item| walk(item, false)).collect()),
            other => other.clone(),
        }
    }
    walk(schema, false)
}

/// What a tool says of its effects.
fn annotations(before: Annotations, after: Annotations, out: &mut Vec<(Code, String)>) {
    // The protocol's defaults: a tool may destroy unless it says otherwise.
    let is_harmless = |said: Annotations| said.read_only == Some(true) || said.destructive == Some(false);
    if is_harmless(before) && !is_harmless(after) {
        out.push((Code::BecameDestructive, "no longer says that it is harmless: it may change or destroy things".to_owned()));
    } else if before != after {
        let flags = [
            ("readOnlyHint", before.read_only, after.read_only),
            ("destructiveHint", before.destructive, after.destructive),
            ("idempotentHint", before.idempotent, after.idempotent),
            ("openWorldHint", before.open_world, after.open_world),
        ];
        let shown = |flag: Option<bool>| flag.map_or_else(|| "unsaid".to_owned(), |flag| flag.to_string());
        let changed: Vec<String> = flags
            .into_iter()
            .filter(|(_, before, after)| before != after)
            .map(|(name, before, after)| format!("`{name}` {}, which was {}", shown(after), shown(before)))
            .collect();
        out.push((Code::AnnotationChanged, format!("now has {}", changed.join(", "))));
    }
}

/// The members in which two definitions differ.
fn differing(before: &Json, after: &Json) -> String {
    let keys: BTreeSet<&str> = before.members().iter().chain(after.members()).map(|(key, _)| key.as_str()).collect();
    let names: Vec<String> = keys.into_iter().filter(|key| before.get(key) != after.get(key)).map(quoted).collect();
    names.join(", ")
}
