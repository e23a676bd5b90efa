//! Converts one operation into a tool definition.

use super::argument::Sent;
use super::candidate::Candidate;
use super::context::Context;
use super::faults::Faults;
use super::parameter::{self, Parameters};
use super::reference::References;
use super::{body, defaults, effect, response, security, server};
use crate::config::model::Override;
use crate::config::operation_name as name;
use crate::diag::{Code, Diagnostic, quoted, suggest};
use crate::http_token::is_token;
use crate::json::Json;
use crate::json_schema::Schema;
use crate::lock::security::{Scheme, Security};
use crate::source::Span;
use crate::tool_name;
use crate::tree::{Node, Tree};

/// An operation as a tool.
pub(super) struct Defined {
    /// The exposed name.
    pub(super) exposed: String,
    pub(super) definition: Json,
    /// The credentials that calls need.
    pub(super) security: Security,
    /// What an entry must say to include it, beside its exact name.
    pub(super) needs: Vec<String>,
}

/// Returns the definition of an operation, or every reason why the operation cannot be a tool, the most important first.
pub(super) fn definition<'a>(
    context: Context<'a, '_>,
    candidate: &Candidate<'a>,
    by_pattern: bool,
    overriding: Option<&Override>,
    notes: &mut Vec<Diagnostic>,
) -> Result<Defined, Vec<Diagnostic>> {
    let references = context.references;
    let operation = candidate.operation;
    if !matches!(operation.value, Tree::Object(_)) {
        let message = format!("an operation is an object, found {}", operation.kind());
        return Err(vec![Diagnostic::new(Code::NotOpenApi, message).at(operation.place(references.file), "")]);
    }
    let mut faults = Faults::default();
    extensions(references, operation, &mut faults);
    refuse(references, candidate, by_pattern, overriding, &mut faults);
    let before = faults.count();
    let Parameters { sent: params, credentials, by_entry } = parameter::all(context, candidate, overriding, &mut faults, notes);
    // If a parameter cannot be read, it may be the one that the template misses, so the template is not checked.
    if faults.count() == before {
        check_template(references, candidate, &params, &mut faults);
    }
    let mut body = body::read(context, candidate, by_pattern, overriding, &mut faults);
    body.tell_apart(&params);
    let params: Vec<Sent> = params.into_iter().chain(std::mem::take(&mut body.args)).collect();
    let unread = faults.count() > before;
    let path = server::path(context, candidate, &mut faults);
    let path = faults.keep(path);
    let success = response::success(references, operation, &mut faults);
    let mut defaults = defaults::read(references, operation, overriding, &params, unread, &mut faults);
    let exposed = faults.keep(exposed_name(references, candidate, overriding));
    let id = candidate.name();
    let (0, Some(path), Some(success), Some(exposed)) = (faults.count(), path, success, exposed) else {
        return Err(faults.into_list());
    };
    notes.extend(faults.take_notes());

    let mut properties = Json::object();
    let mut required = Vec::new();
    let mut wires = Vec::new();
    for param in params {
        if let Some(only) = only_value(&param).filter(|_| defaults.get(&param.name).is_none()) {
            defaults.set(&*param.name, only);
        }
        let default = defaults.get(&param.name).cloned();
        if param.required && default.is_none() {
            required.push(Json::string(&*param.name));
        }
        let mut schema = param.schema;
        if let Some(default) = default {
            schema.set("default", default);
        }
        properties.set(param.name, schema);
        wires.push(param.wire);
    }
    let input = hoist_definitions(
        body.definitions.unwrap_or_else(Json::object),
        Json::object()
            .with("type", Json::string("object"))
            .with("properties", properties)
            .with("required", Json::Array(required))
            .with("additionalProperties", Json::Bool(false)),
    );
    let mut ptc = Json::object()
        .with("operationId", Json::string(id))
        .with("method", Json::string(candidate.method))
        .with("path", Json::string(path))
        .with("params", Json::Array(wires));
    if !defaults.members().is_empty() {
        ptc.set("defaultArgs", defaults);
    }
    if let Some(paging) = overriding.and_then(|overriding| overriding.paging.as_ref()) {
        ptc.set("paging", paging.value.clone());
    }
    if let Some(time) = overriding.and_then(|overriding| overriding.call_timeout_ms) {
        ptc.set("callTimeoutMs", Json::Number(time.to_string()));
    }
    if success.has_links {
        ptc.set("linkHeader", Json::Bool(true));
    }
    let is_deprecated = operation.get("deprecated").and_then(Node::as_bool) == Some(true);
    if is_deprecated {
        ptc.set("deprecated", Json::Bool(true));
    }
    let list = |texts: &[String]| Json::Array(texts.iter().map(|text| Json::string(&**text)).collect());
    if !body.media.is_empty() {
        ptc.set("body", Json::string(&*body.media));
        if body.required {
            ptc.set("bodyRequired", Json::Bool(true));
        }
        if !body.needs.is_empty() {
            ptc.set("bodyNeeds", list(&body.needs));
        }
    }
    if success.types != ["application/json"] {
        ptc.set("types", list(&success.types));
    }
    if !success.headers.is_empty() {
        ptc.set("headers", list(&success.headers));
    }
    if success.cut {
        ptc.set("outputSchemaCut", Json::Bool(true));
    }
    let said = |key| operation.get(key).and_then(Node::as_str).filter(|t| !t.trim().is_empty());
    let description =
        overriding.and_then(|o| o.description.as_deref()).or_else(|| said("description")).or_else(|| said("summary"));
    let mut definition = Json::object()
        .with("name", Json::string(&*exposed))
        .with("inputSchema", input)
        .with("outputSchema", success.schema)
        .with("annotations", effect::annotations(candidate, overriding))
        .with("_ptc", ptc);
    if let Some(title) = said("summary").filter(|s| Some(*s) != description) {
        definition.set("title", Json::string(title));
    }
    if let Some(description) = description {
        definition.set("description", Json::string(description));
    }
    let mut needs = Vec::new();
    if is_deprecated {
        needs.push("its exact name, since it is deprecated".to_owned());
    }
    if !effect::classify(candidate, overriding).is_read() {
        needs.push("`allow_writes` and its exact name".to_owned());
    }
    for (place, name) in credentials {
        needs.push(format!("the {place} parameter {} from `auth`, or in `secret_args` of its override", quoted(&name)));
    }
    let security = Security { any_of: security::any_of(references, operation), sent: by_entry };
    let is_performable = |all_of: &Vec<Scheme>| all_of.iter().all(|scheme| security::is_supported(&scheme.kind));
    if security.any_of.as_ref().is_some_and(|any_of| !any_of.iter().any(is_performable)) {
        needs.push("a proxy that authenticates, since its scheme is not supported".to_owned());
    }
    Ok(Defined { exposed, definition, security, needs })
}

/// Returns the only value that a required parameter can have. It is sent without asking.
fn only_value(param: &Sent) -> Option<Json> {
    let schema = Schema::new(&param.schema);
    let listed = || match schema.keyword(&param.schema, "enum")?.elements() {
        [only] => Some(only.clone()),
        _ => None,
    };
    schema.keyword(&param.schema, "const").cloned().or_else(listed).filter(|_| param.required)
}

/// Extensions of an operation that this compiler reads.
const EXTENSIONS: [&str; 2] = ["x-ptc-name", "x-ptc-default-args"];

/// Notes an unknown extension, which is likely misspelt, an extension of the wrong type, which has no effect, and an
/// `operationId` that is not a string.
fn extensions(references: References<'_>, operation: &Node, faults: &mut Faults) {
    if let Some(id) = operation.get("operationId").filter(|id| id.as_str().is_none()) {
        let message = || format!("`operationId` is a text, found {}: the operation goes by its path", id.kind());
        faults.note(id.place(references.file), message);
    }
    for member in operation.members().iter().filter(|member| member.key.starts_with("x-ptc-")) {
        let place = Span { file: references.file, range: member.key_range.clone() };
        if !EXTENSIONS.contains(&&*member.key) {
            faults.note(place, || {
                let hint = suggest::hint(&member.key, "extension", EXTENSIONS).unwrap_or_default();
                format!("{} is not a supported extension: {hint}", quoted(&member.key))
            });
        } else if &*member.key == "x-ptc-name" && member.value.as_str().is_none() {
            let message = format!("`x-ptc-name` is the text of a name, found {}", member.value.kind());
            faults.push(Diagnostic::new(Code::BadName, message).at(member.value.place(references.file), ""));
        }
    }
}

/// Reports an operation with an invalid method, and a deprecated one that a pattern includes.
fn refuse(
    references: References<'_>,
    candidate: &Candidate<'_>,
    by_pattern: bool,
    overriding: Option<&Override>,
    faults: &mut Faults,
) {
    let operation = candidate.operation;
    if !is_token(candidate.method) {
        let message = format!("{} is not a method of HTTP", quoted(candidate.method));
        let place = Span { file: references.file, range: candidate.place.clone() };
        faults.push(Diagnostic::new(Code::NotOpenApi, message).at(place, "of this operation"));
    }
    if let Some(flag) = operation.get("deprecated").filter(|d| d.as_bool() == Some(true))
        && by_pattern
        && !overriding.is_some_and(|o| o.allow_deprecated)
    {
        faults.push(
            Diagnostic::new(Code::PatternLeftOut, "it is deprecated, and only its name includes it")
                .at(flag.place(references.file), ""),
        );
    }
}

/// Checks that every `{variable}` of the path is a declared path parameter.
fn check_template(references: References<'_>, candidate: &Candidate<'_>, params: &[Sent], faults: &mut Faults) {
    let place = Span { file: references.file, range: candidate.place.clone() };
    if candidate.path.split('{').skip(1).any(|rest| !rest.contains('}')) {
        let message = format!("the path `{}` has a `{{` without its `}}`", candidate.path);
        faults.push(Diagnostic::new(Code::PathTemplate, message).at(place.clone(), "of this operation"));
    }
    for variable in variables(candidate.path) {
        let declared = params.iter().any(|p| p.name == variable && p.wire.get("in").and_then(Json::as_str) == Some("path"));
        if !declared {
            let message =
                format!("the path `{}` has the variable `{variable}`, which no path parameter declares", candidate.path);
            faults.push(Diagnostic::new(Code::PathTemplate, message).at(place.clone(), "of this operation"));
        }
    }
}

/// Iterates over the names between braces.
fn variables(template: &str) -> impl Iterator<Item = &str> {
    template.split('{').skip(1).filter_map(|rest| rest.split_once('}').map(|(name, _)| name))
}

/// Returns the normalised name from the override, `x-ptc-name`, `operationId`, or method and path, whichever comes first.
pub(super) fn exposed_name(
    references: References<'_>,
    candidate: &Candidate<'_>,
    overriding: Option<&Override>,
) -> Result<String, Diagnostic> {
    let extension = candidate.operation.get("x-ptc-name");
    let here = Span { file: references.file, range: candidate.place.clone() };
    let chosen = overriding.and_then(|o| o.name.as_ref()).map(|name| (name.value.as_str(), name.place.clone()));
    let chosen = chosen.or_else(|| extension.and_then(|node| Some((node.as_str()?, node.place(references.file)))));
    let (exposed, place) = if let Some((name, place)) = chosen {
        let exposed = name::kebab(name);
        // A name chosen for this compiler must obey the rule; ids of published documents cannot be changed, so they need not.
        if let Some(reason) = tool_name::fault(&exposed).filter(|_| !exposed.is_empty()) {
            let message = format!("{} cannot be the name of a tool: {reason}", quoted(name));
            return Err(Diagnostic::new(Code::BadName, message).at(place, "").hint("choose another `name`"));
        }
        (exposed, place)
    } else if let Some(id) = candidate.id.map(name::kebab).filter(|id| !id.is_empty()) {
        (id, here)
    } else {
        (name::of_path(candidate.method, candidate.path), here)
    };
    if exposed.is_empty() {
        return Err(Diagnostic::new(Code::BadName, "nothing of the name can be exposed: it has no letter and no digit")
            .at(place, "")
            .hint("give the operation a `name` in `operation_overrides`"));
    }
    Ok(exposed)
}

/// Moves the `$defs` of single arguments, and those that members of the body share, to the root of the input schema, where
/// `#/$defs/…` points.
fn hoist_definitions(shared: Json, mut input: Json) -> Json {
    let mut all = shared;
    if let Some(Json::Object(properties)) = input.get_mut("properties") {
        for (_, schema) in properties.iter_mut() {
            if let Some(Json::Object(defs)) = schema.remove("$defs") {
                for (name, def) in defs {
                    // Arguments of one operation come from one document, so equal names with different content are rare. They
                    // occur because the walk numbers names in the order of use, which can differ between two arguments.
                    let mut free = name.clone();
                    while all.get(&free).is_some_and(|known| *known != def) {
                        free.push('_');
                    }
                    if free != name {
                        rename(schema, &name, &free);
                    }
                    all.set(free, def);
                }
            }
        }
    }
    if !all.members().is_empty() {
        input.set("$defs", all);
    }
    input
}

/// Redirects every `$ref` from one definition to another.
fn rename(node: &mut Json, from: &str, to: &str) {
    match node {
        Json::Object(members) => {
            for (key, value) in members {
                match value {
                    Json::String(text) if key == "$ref" && *text == format!("#/$defs/{from}") => *text = format!("#/$defs/{to}"),
                    value => rename(value, from, to),
                }
            }
        }
        Json::Array(items) => items.iter_mut().for_each(|item| rename(item, from, to)),
        _ => {}
    }
}
