//! Reads the parameters of an operation.

use openapiv3::{Parameter, PathStyle, QueryStyle};

use super::faults::Faults;
use super::reference::References;
use super::{response, schema};
use crate::diag::{Code, Diagnostic, quoted, quoted_list};
use crate::ir::Json;
use crate::tree::{Node, Tree};

/// A parameter that calls send.
pub(super) struct Sent {
    /// The name of the argument.
    pub(super) name: String,
    pub(super) required: bool,
    /// The schema of the argument.
    pub(super) schema: Json,
    /// The entry in `_ptc.params`.
    pub(super) wire: Json,
}

/// Header parameters that OpenAPI requires to be ignored, because other parts of a document describe them.
const IGNORED_HEADERS: [&str; 3] = ["accept", "content-type", "authorization"];

/// Returns every parameter of an operation that can be sent, those of its path item first. A parameter of the operation replaces
/// one of the path item with the same name and location.
pub(super) fn all<'a>(
    references: References<'a>,
    item: &'a Node,
    operation: &'a Node,
    template: &str,
    faults: &mut Faults,
    notes: &mut Vec<Diagnostic>,
) -> Vec<Sent> {
    let mut nodes: Vec<(&str, &str, &'a Node)> = Vec::new();
    for level in [item, operation] {
        let mut here = Vec::new();
        let parameters = level.get("parameters");
        if let Some(node) = parameters.filter(|node| node.elements().is_none() && !matches!(node.value, Tree::Null)) {
            let message = format!("`parameters` is a list, found {}", node.kind());
            faults.push(Diagnostic::new(Code::BadParameter, message).at(node.place(references.file), ""));
        }
        for node in parameters.and_then(Node::elements).unwrap_or_default() {
            let Some(node) = faults.keep(references.resolve(node)) else { continue };
            let text = |key| node.get(key).and_then(Node::as_str);
            let (Some(name), Some(place)) = (text("name"), text("in")) else {
                faults.push(
                    Diagnostic::new(Code::BadParameter, "a parameter needs `name` and `in`").at(node.place(references.file), ""),
                );
                continue;
            };
            if here.contains(&(name, place)) {
                let message = || format!("the {place} parameter {} is declared twice; the last one counts", quoted(name));
                faults.note(node.place(references.file), message);
            }
            here.push((name, place));
            match nodes.iter_mut().find(|(n, p, _)| *n == name && *p == place) {
                Some(known) => known.2 = node,
                None => nodes.push((name, place, node)),
            }
        }
    }
    let mut out: Vec<Sent> = Vec::new();
    for (_, _, node) in nodes {
        let sent = one(references, node, template, faults, notes);
        let Some(sent) = faults.keep(sent).flatten() else { continue };
        out.push(sent);
    }
    tell_apart(&mut out);
    out
}

/// Renames a query parameter to `NAME_query` if a path parameter has the same name, since arguments share one namespace.
fn tell_apart(params: &mut [Sent]) {
    let names: Vec<String> = params.iter().map(|param| param.name.clone()).collect();
    for param in params.iter_mut().filter(|param| param.wire.get("in").and_then(Json::as_str) == Some("query")) {
        if names.iter().filter(|name| **name == param.name).count() > 1 {
            param.name.push_str("_query");
            while names.contains(&param.name) {
                param.name.push('_');
            }
            param.wire.set("arg", Json::string(&*param.name));
        }
    }
}

fn one<'a>(
    references: References<'a>,
    node: &'a Node,
    template: &str,
    faults: &mut Faults,
    notes: &mut Vec<Diagnostic>,
) -> Result<Option<Sent>, Diagnostic> {
    let place = node.place(references.file);
    let fault = |message: String| Diagnostic::new(Code::BadParameter, message).at(place.clone(), "");
    let parameter = typed(node, "").map_err(|error| unread(references, node, &error))?;
    let data = parameter.parameter_data_ref();
    let name = data.name.clone();
    if name.contains(char::is_control) {
        return Err(fault(format!("the name of a parameter is one line of text, this is {name:?}")));
    }
    let left_out = |what: &str| {
        Diagnostic::new(Code::ParameterLeftOut, format!("{what} `{name}` is optional and left out")).at(place.clone(), "")
    };
    let (kind, style, default_explode, allow_reserved) = match &parameter {
        Parameter::Header { .. } | Parameter::Cookie { .. } => {
            let header = matches!(parameter, Parameter::Header { .. });
            if header && IGNORED_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
                return Ok(None);
            }
            let what = if header { "the header parameter" } else { "the cookie parameter" };
            if data.required {
                return Err(Diagnostic::new(Code::HeaderParameter, format!("{what} `{name}` is required, and calls send none"))
                    .at(place.clone(), "")
                    .hint("a fixed value can be sent by `static_headers`, a secret by `auth`, once the document does not require it here"));
            }
            notes.push(left_out(what));
            return Ok(None);
        }
        Parameter::Path { style, .. } => {
            if !template.contains(&format!("{{{name}}}")) {
                notes.push(
                    Diagnostic::new(
                        Code::ParameterLeftOut,
                        format!("the path parameter `{name}` is not in the path `{template}` and left out"),
                    )
                    .at(place.clone(), ""),
                );
                return Ok(None);
            }
            let style = match style {
                PathStyle::Simple => "simple",
                PathStyle::Label => "label",
                PathStyle::Matrix => "matrix",
            };
            ("path", style, false, false)
        }
        Parameter::Query { style, allow_reserved, .. } => {
            let style = match style {
                QueryStyle::Form => "form",
                QueryStyle::SpaceDelimited => "spaceDelimited",
                QueryStyle::PipeDelimited => "pipeDelimited",
                QueryStyle::DeepObject => "deepObject",
            };
            ("query", style, matches!(style, "form" | "deepObject"), *allow_reserved)
        }
    };
    let required = data.required || kind == "path";
    let mut style = style;
    let mut described = node.get("schema");
    if let (None, Some(content)) = (described, node.get("content")) {
        let Some(media) = content.members().iter().find(|m| response::json_rank(&m.key).is_some()) else {
            let types = quoted_list(content.members().iter().map(|m| &*m.key));
            if required {
                return Err(fault(format!("the parameter `{name}` is written as {types}, and calls write JSON only")));
            }
            let message = format!("the parameter `{name}` is written as {types}, optional and left out");
            notes.push(Diagnostic::new(Code::ParameterLeftOut, message).at(place.clone(), ""));
            return Ok(None);
        };
        style = "json";
        described = media.value.get("schema");
    }
    let mut schema = described.map_or_else(Json::object, |schema| schema::argument(references, schema, faults));
    if schema == Json::Bool(true) {
        schema = Json::object();
    }
    if let Some(prose) = node.get("description").and_then(Node::as_str) {
        schema.set("description", Json::string(prose));
    }
    if let (Some(example), None) = (node.get("example"), schema.get("examples")) {
        schema.set("examples", Json::Array(vec![Json::from(example)]));
    }
    if data.deprecated == Some(true) {
        schema.set("deprecated", Json::Bool(true));
    }
    let mut wire = Json::object()
        .with("name", Json::string(&*name))
        .with("in", Json::string(kind))
        .with("style", Json::string(style))
        .with("explode", Json::Bool(data.explode.unwrap_or(default_explode)));
    if allow_reserved {
        wire.set("allowReserved", Json::Bool(true));
    }
    Ok(Some(Sent { name, required, schema, wire }))
}

/// Members of a parameter besides its name that the types of `openapiv3` parse.
const TYPED: [&str; 6] = ["in", "required", "deprecated", "style", "explode", "allowReserved"];

/// Returns the diagnostic for a parameter that cannot be parsed. It points at the member without which parsing succeeds.
fn unread(references: References<'_>, node: &Node, error: &serde_json::Error) -> Diagnostic {
    let message = error.to_string();
    let expected = message.split_once("expected ").map_or(message.as_str(), |(_, expected)| expected);
    // The location of a parameter decides which styles are valid.
    let place_is_wrong = |key: &str| key == "in" && message.contains("`query`");
    let wrong = TYPED.into_iter().find(|key| place_is_wrong(key) || typed(node, key).is_ok());
    let (key, value) = match wrong.and_then(|key| Some((key, node.get(key)?))) {
        Some(found) => found,
        None => ("in", node),
    };
    let is_word = expected.starts_with("one of");
    let found = value.as_str().filter(|_| is_word).map_or_else(|| value.kind().to_owned(), quoted);
    let message = format!("`{key}` of a parameter is {expected}; found {found}");
    Diagnostic::new(Code::BadParameter, message).at(value.place(references.file), "")
}

/// Parses the parameter with the types of `openapiv3`, without its schema and examples, which differ between versions of OpenAPI,
/// and without the member `without`.
fn typed(node: &Node, without: &str) -> Result<Parameter, serde_json::Error> {
    use serde_json::{Map, Value};
    let mut head = Map::new();
    for key in ["name"].into_iter().chain(TYPED).filter(|key| *key != without) {
        let Some(value) = node.get(key) else { continue };
        let value = match (value.as_str(), value.as_bool()) {
            (Some(text), _) => Value::from(text),
            (_, Some(flag)) => Value::from(flag),
            _ => Value::from(value.kind()),
        };
        head.insert(key.to_owned(), value);
    }
    head.insert("schema".to_owned(), Value::Object(Map::new()));
    serde_json::from_value(Value::Object(head))
}
