//! Reads the parameters of an operation.

use openapiv3::{Parameter, PathStyle, QueryStyle};

use super::context::Context;
use super::faults::Faults;
use super::reference::References;
use super::secret_parameter::Sender;
use super::select::Candidate;
use super::{effect, response, schema};
use crate::config::model::Override;
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

/// What an operation sends beside its path.
pub(super) struct Parameters {
    pub(super) sent: Vec<Sent>,
    /// Place and name of required parameters that carry credentials, which are assumed to be sent.
    pub(super) credentials: Vec<(&'static str, String)>,
}

/// Header parameters that OpenAPI requires to be ignored, because other parts of a document describe them.
const IGNORED_HEADERS: [&str; 3] = ["accept", "content-type", "authorization"];

/// Headers that the client sets by itself. It does not decompress answers.
const CLIENT_HEADERS: [&str; 12] = [
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];

/// Returns every parameter of an operation that can be sent, those of its path item first. A parameter of the operation replaces
/// one of the path item with the same name and location.
pub(super) fn all<'a>(
    context: Context<'a, '_>,
    candidate: &Candidate<'a>,
    overriding: Option<&Override>,
    faults: &mut Faults,
    notes: &mut Vec<Diagnostic>,
) -> Parameters {
    let references = context.references;
    let mut nodes: Vec<(&str, &str, &'a Node)> = Vec::new();
    for level in [candidate.item, candidate.operation] {
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
    if effect::of(candidate, overriding).is_write() {
        nodes.retain(|(name, place, _)| !context.credentials.is_idempotency_key(place, name));
    }
    let mut parameters = Parameters { sent: Vec::new(), credentials: Vec::new() };
    for (_, _, node) in nodes {
        let read = one(context, node, candidate.path, overriding, faults, notes);
        match faults.keep(read) {
            Some(Read::Sent(sent)) => parameters.sent.push(*sent),
            Some(Read::Credential(place, name)) => parameters.credentials.push((place, name)),
            Some(Read::LeftOut) | None => {}
        }
    }
    tell_apart(&mut parameters.sent);
    parameters
}

/// Renames a parameter to `NAME_query`, `NAME_header` or `NAME_cookie` if an earlier place has a parameter with the same name, since
/// arguments share one namespace.
fn tell_apart(params: &mut [Sent]) {
    let mut names: Vec<String> = params.iter().map(|param| param.name.clone()).collect();
    for place in ["query", "header", "cookie"] {
        for at in 0..params.len() {
            let is_here = |param: &Sent| param.wire.get("in").and_then(Json::as_str) == Some(place);
            let Some(param) = params.get_mut(at).filter(|param| is_here(param)) else { continue };
            if names.iter().filter(|name| **name == param.name).count() < 2 {
                continue;
            }
            let mut renamed = format!("{}_{place}", param.name);
            while names.contains(&renamed) {
                renamed.push('_');
            }
            param.wire.set("arg", Json::string(&*renamed));
            if let Some(name) = names.get_mut(at) {
                name.clone_from(&renamed);
            }
            param.name = renamed;
        }
    }
}

/// What becomes of a parameter.
enum Read {
    Sent(Box<Sent>),
    LeftOut,
    /// A required credential that the entry is assumed to send, with its place and name.
    Credential(&'static str, String),
}

fn one<'a>(
    context: Context<'a, '_>,
    node: &'a Node,
    template: &str,
    overriding: Option<&Override>,
    faults: &mut Faults,
    notes: &mut Vec<Diagnostic>,
) -> Result<Read, Diagnostic> {
    let references = context.references;
    let place = node.place(references.file);
    let fault = |message: String| Diagnostic::new(Code::BadParameter, message).at(place.clone(), "");
    let parameter = typed(node, "").map_err(|error| unread(references, node, &error))?;
    let data = parameter.parameter_data_ref();
    let name = data.name.clone();
    if name.contains(char::is_control) {
        return Err(fault(format!("the name of a parameter is one line of text, this is {name:?}")));
    }
    let left_out = |why: String| Diagnostic::new(Code::ParameterLeftOut, why).at(place.clone(), "");
    let (kind, style, default_explode, allow_reserved) = match &parameter {
        Parameter::Header { .. } => {
            if IGNORED_HEADERS.iter().any(|ignored| name.eq_ignore_ascii_case(ignored)) {
                return Ok(Read::LeftOut);
            }
            if CLIENT_HEADERS.iter().any(|own| name.eq_ignore_ascii_case(own)) {
                notes.push(left_out(format!("the header parameter `{name}` is left out, because the client sets this header")));
                return Ok(Read::LeftOut);
            }
            ("header", "simple", false, false)
        }
        Parameter::Cookie { .. } => ("cookie", "form", true, false),
        Parameter::Path { style, .. } => {
            if !template.contains(&format!("{{{name}}}")) {
                notes.push(left_out(format!("the path parameter `{name}` is not in the path `{template}` and left out")));
                return Ok(Read::LeftOut);
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
    if matches!(kind, "header" | "cookie") && !is_token(&name) {
        let message = format!("{} is not a valid name of a {kind}", quoted(&name));
        if required {
            return Err(fault(message));
        }
        notes.push(left_out(format!("{message}, so that the parameter is left out")));
        return Ok(Read::LeftOut);
    }
    match context.credentials.sender(kind, &name, overriding) {
        Sender::Program => {}
        Sender::Entry => return Ok(Read::LeftOut),
        Sender::Missing if !required => {
            notes.push(left_out(format!(
                "the {kind} parameter `{name}` carries a secret and is left out, because `auth` does not send it"
            )));
            return Ok(Read::LeftOut);
        }
        Sender::Missing if context.credentials.are_assumed => return Ok(Read::Credential(kind, name)),
        Sender::Missing => {
            let message = format!("the {kind} parameter `{name}` is required and carries a secret, and `auth` does not send it");
            return Err(Diagnostic::new(Code::SecretParameter, message).at(place.clone(), "").hint(secret_hint(kind, &name)));
        }
    }
    let mut style = style;
    let mut described = node.get("schema");
    if let (None, Some(content)) = (described, node.get("content")) {
        let Some(media) = content.members().iter().find(|m| response::json_rank(&m.key).is_some()) else {
            let types = quoted_list(content.members().iter().map(|m| &*m.key));
            if required {
                return Err(fault(format!("the parameter `{name}` is written as {types}, and calls write JSON only")));
            }
            notes.push(left_out(format!("the parameter `{name}` is written as {types}, optional and left out")));
            return Ok(Read::LeftOut);
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
    Ok(Read::Sent(Box::new(Sent { name, required, schema, wire })))
}

/// Whether a text is a `token` of RFC 9110, as names of headers and cookies are.
fn is_token(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c))
}

fn secret_hint(kind: &str, name: &str) -> String {
    let by_override = format!("`\"secret_args\": [{name:?}]` in its override lets programs pass it");
    if kind == "header" {
        format!("add `{{\"scheme\": \"api_key\", \"header\": {name:?}, \"binding\": …}}` to `auth`; {by_override}")
    } else {
        by_override
    }
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
