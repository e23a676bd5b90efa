//! Compares two definitions of one tool.

use std::collections::{BTreeMap, BTreeSet};

use ptc_catalog::{Annotations, Effect};

use super::cause::Change;
use super::{SAYS, input, replaced, request, without_annotations};
use crate::diag::{Code, quoted};
use crate::ir::{Arg, Tool};
use crate::json::Json;
use crate::lock::security::SchemeKind;
use crate::lock::{LockedTool, Observed};
use crate::lower;

/// Returns all differences between two definitions of one tool.
pub(super) fn changes(server: &str, name: &str, before: &LockedTool, after: &LockedTool) -> Vec<Change> {
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
