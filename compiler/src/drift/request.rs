//! Compares the requests of an OpenAPI operation, which are in the member `_ptc` of its definition.
//!
//! Every member is compared. A member that this module does not know counts as a changed request, because it may affect calls.

use std::collections::{BTreeMap, BTreeSet};

use super::cause::Change;
use crate::diag::{Code, quoted};
use crate::json::Json;
use crate::lower::text::one_line;

/// Maximum length in characters of a value in a message.
const SHOWN: usize = 80;

/// Reports how the requests of two definitions differ.
pub(super) fn compare(before: &Json, after: &Json, out: &mut Vec<Change>) {
    let (Some(was), Some(now)) = (before.get("_ptc"), after.get("_ptc")) else { return };
    let keys: BTreeSet<&str> = was.members().iter().chain(now.members()).map(|(key, _)| key.as_str()).collect();
    for key in keys.into_iter().filter(|key| was.get(key) != now.get(key)) {
        match key {
            "params" => params(was, now, out),
            "bodyNeeds" => needs(before, after, out),
            "defaultArgs" => defaults(before, after, out),
            _ => out.extend(member(key, was.get(key), now.get(key))),
        }
    }
}

/// Describes the change of one member with its code. Returns `None` if it is reported elsewhere or affects nothing.
fn member(key: &str, was: Option<&Json>, now: Option<&Json>) -> Option<Change> {
    let shown = |value: Option<&Json>| match value {
        Some(Json::String(text)) => quoted(text),
        Some(value) => quoted(&one_line(&value.canonical(), SHOWN)),
        None => "nothing".to_owned(),
    };
    let replaced = |verb: &str| format!("{verb} {}, which was {}", shown(now), shown(was));
    let (code, what) = match (key, was, now) {
        ("operationId", None, _) => (Code::DefinitionChanged, format!("can be called as {} too", shown(now))),
        ("operationId", _, None) => (Code::OperationRenamed, format!("cannot be called as {} any more", shown(was))),
        ("operationId", ..) => {
            (Code::OperationRenamed, format!("cannot be called as {} any more, but as {}", shown(was), shown(now)))
        }
        ("path", ..) => (Code::RequestChanged, replaced("is requested at")),
        ("method", ..) => (Code::RequestChanged, replaced("is requested with")),
        ("body", None, _) => (Code::RequestChanged, format!("now sends a body as {}", shown(now))),
        ("body", _, None) => (Code::RequestChanged, format!("no longer sends a body as {}", shown(was))),
        ("body", ..) => (Code::RequestChanged, replaced("sends its body as")),
        ("bodyRequired", _, None) => (Code::RequestChanged, "sends no body without arguments for it".to_owned()),
        ("bodyRequired", ..) => (Code::RequestChanged, "sends a body also without arguments for it".to_owned()),
        ("callTimeoutMs", ..) => (Code::RequestChanged, replaced("has the time limit in milliseconds")),
        ("paging", ..) => (Code::RequestChanged, "reads the pages of its list differently".to_owned()),
        ("linkHeader", _, None) => (Code::OutputChanged, "no longer answers with links to further pages".to_owned()),
        ("linkHeader", ..) => (Code::OutputChanged, "answers with links to further pages".to_owned()),
        ("types", ..) => (Code::OutputChanged, replaced("answers with the media types")),
        ("headers", ..) => (Code::OutputChanged, replaced("answers with the headers")),
        ("deprecated", _, None) => (Code::DefinitionChanged, "is not deprecated any more".to_owned()),
        ("deprecated", ..) => (Code::DefinitionChanged, "is deprecated".to_owned()),
        // The schema of the answer is compared as such.
        ("outputSchemaCut", ..) => return None,
        _ => (Code::RequestChanged, replaced(&format!("has {} of its request as", quoted(key)))),
    };
    Some(Change::new(code, what))
}

/// Reports parameters that are sent in another way. Added and removed parameters are reported as arguments.
fn params(was: &Json, now: &Json, out: &mut Vec<Change>) {
    let [known, current] = [was, now].map(|ptc| {
        let params = ptc.get("params").map(Json::elements).unwrap_or_default().iter();
        let named = params.filter_map(|param| Some((param.get("arg").or_else(|| param.get("name"))?.as_str()?, param)));
        named.collect::<BTreeMap<&str, &Json>>()
    });
    let differing = current.iter().filter(|(name, param)| known.get(*name).is_some_and(|was| was != *param));
    let of = |name: &str| Change::new(Code::RequestChanged, format!("sends {} differently", quoted(name))).passing(name);
    out.extend(differing.map(|(name, _)| of(name)));
}

/// Reports arguments that calls with a body need. Arguments that all calls need are reported as arguments.
fn needs(before: &Json, after: &Json, out: &mut Vec<Change>) {
    let [(was, was_required), (now, now_required)] = [before, after].map(|definition| {
        let needs = definition.get("_ptc").and_then(|ptc| ptc.get("bodyNeeds"));
        (texts(needs), texts(definition.get("inputSchema").and_then(|schema| schema.get("required"))))
    });
    for name in now.difference(&was).filter(|name| !was_required.contains(*name)) {
        out.push(Change::new(Code::InputBreaking, format!("now requires {} with a body", quoted(name))).lacking(name));
    }
    let has_argument = |name: &str| argument(after, name).is_some();
    for name in was.difference(&now).filter(|name| !now_required.contains(*name) && has_argument(name)) {
        out.push(Change::new(Code::InputWidened, format!("no longer requires {} with a body", quoted(name))));
    }
}

/// Reports defaults that the schemas of the arguments do not show, where they are reported as arguments.
fn defaults(before: &Json, after: &Json, out: &mut Vec<Change>) {
    let [was, now] = [before, after].map(|definition| {
        let defaults = definition.get("_ptc").and_then(|ptc| ptc.get("defaultArgs"));
        let members = defaults.map(Json::members).unwrap_or_default().iter();
        members.map(|(name, value)| (name.as_str(), value)).collect::<BTreeMap<&str, &Json>>()
    });
    let names: BTreeSet<&str> = was.keys().chain(now.keys()).copied().collect();
    for name in names.into_iter().filter(|name| was.get(name) != now.get(name)) {
        let in_schema = |definition| argument(definition, name).map(|schema| schema.get("default"));
        if in_schema(before) == in_schema(after) {
            let sent = now.get(name).map_or_else(|| "nothing".to_owned(), |value| one_line(&value.canonical(), SHOWN));
            let what = format!("sends {sent} for {} by default", quoted(name));
            out.push(Change::new(Code::RequestChanged, what).lacking(name));
        }
    }
}

/// Returns the schema of an argument.
fn argument<'j>(definition: &'j Json, name: &str) -> Option<&'j Json> {
    definition.get("inputSchema")?.get("properties")?.get(name)
}

fn texts(list: Option<&Json>) -> BTreeSet<&str> {
    list.map(Json::elements).unwrap_or_default().iter().filter_map(Json::as_str).collect()
}
