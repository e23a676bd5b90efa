//! Reads the parameters of an operation.

use openapiv3::{Parameter, PathStyle, QueryStyle};
use ptc_catalog::RequestKind;

use super::argument::Sent;
use super::candidate::Candidate;
use super::context::Context;
use super::faults::Faults;
use super::reference::{References, contents};
use super::secret_parameter::Sender;
use super::{body, effect, response, schema};
use crate::config::model::Override;
use crate::diag::{Code, Diagnostic, quoted, quoted_list};
use crate::http_token::is_token;
use crate::json::Json;
use crate::source::Span;
use crate::tree::{Node, Tree};

/// What an operation sends beside its path.
pub(super) struct Parameters {
    pub(super) sent: Vec<Sent>,
    /// Place and name of required parameters that carry credentials, which are assumed to be sent.
    pub(super) credentials: Vec<(&'static str, String)>,
    /// Place and name of parameters that the entry sends.
    pub(super) by_entry: Vec<(String, String)>,
}

/// Header parameters that OpenAPI requires to be ignored, because other parts of a document describe them.
const IGNORED_HEADERS: [&str; 3] = ["accept", "content-type", "authorization"];

/// Headers that the client sets by itself. It does not decompress answers.
const CLIENT_HEADERS: [&str; 13] = [
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
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
    if effect::classify(candidate, overriding).is_write() {
        nodes.retain(|(name, place, _)| !context.credentials.is_idempotency_key(place, name));
    }
    let mut parameters = Parameters { sent: Vec::new(), credentials: Vec::new(), by_entry: Vec::new() };
    for (_, _, node) in nodes {
        let read = if node.get("in").and_then(Node::as_str) == Some("querystring") {
            querystring(context, node, overriding, faults, notes, &mut parameters)
        } else {
            one(context, node, candidate.path, overriding, faults, notes, &mut parameters)
        };
        faults.keep(read);
    }
    tell_apart(&mut parameters.sent);
    parameters
}

/// Renames a parameter to `NAME_query`, `NAME_header` or `NAME_cookie` if an earlier place has a parameter with the same name,
/// since arguments share one namespace.
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

fn one<'a>(
    context: Context<'a, '_>,
    node: &'a Node,
    template: &str,
    overriding: Option<&Override>,
    faults: &mut Faults,
    notes: &mut Vec<Diagnostic>,
    out: &mut Parameters,
) -> Result<(), Diagnostic> {
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
                return Ok(());
            }
            if CLIENT_HEADERS.iter().any(|own| name.eq_ignore_ascii_case(own)) {
                notes.push(left_out(format!("the header parameter `{name}` is left out, because the client sets this header")));
                return Ok(());
            }
            ("header", "simple", false, false)
        }
        Parameter::Cookie { .. } if has_cookie_style(node) => ("cookie", "cookie", true, false),
        Parameter::Cookie { .. } => ("cookie", "form", true, false),
        Parameter::Path { style, .. } => {
            if !template.contains(&format!("{{{name}}}")) {
                notes.push(left_out(format!("the path parameter `{name}` is not in the path `{template}` and left out")));
                return Ok(());
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
        return Ok(());
    }
    if !is_argument(context, (kind, &name), required, &place, overriding, notes, out)? {
        return Ok(());
    }
    let mut style = style;
    let mut described = node.get("schema");
    let mut example = response::stated_example(references, node);
    if described.is_none() && node.get("content").is_some() {
        let contents = contents(node);
        let Some(media) = contents.iter().find(|content| response::json_rank(content.media_type).is_some()) else {
            let types = quoted_list(contents.iter().map(|content| content.media_type));
            if required {
                return Err(fault(format!("the parameter `{name}` is written as {types}, and calls write JSON only")));
            }
            notes.push(left_out(format!("the parameter `{name}` is written as {types}, optional and left out")));
            return Ok(());
        };
        style = "json";
        let media = references.resolve(media.value)?;
        described = media.get("schema");
        example = example.or_else(|| response::stated_example(references, media));
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
    } else if let Some(example) = example {
        body::add_example(&mut schema, Json::from(example));
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
    out.sent.push(Sent { name, required, schema, wire });
    Ok(())
}

/// Whether a parameter is an argument of the program. Notes one that the entry sends, and a secret that the entry should send.
fn is_argument(
    context: Context<'_, '_>,
    (kind, name): (&'static str, &str),
    required: bool,
    place: &Span,
    overriding: Option<&Override>,
    notes: &mut Vec<Diagnostic>,
    out: &mut Parameters,
) -> Result<bool, Diagnostic> {
    match context.credentials.sender(kind, name, overriding) {
        Sender::Program => return Ok(true),
        Sender::Entry => out.by_entry.push((kind.to_owned(), name.to_owned())),
        Sender::Missing if !required => {
            let message =
                format!("the {kind} parameter `{name}` carries a secret and is left out, because `auth` does not send it");
            notes.push(Diagnostic::new(Code::ParameterLeftOut, message).at(place.clone(), ""));
        }
        Sender::Missing if context.credentials.are_assumed => out.credentials.push((kind, name.to_owned())),
        Sender::Missing => {
            let message = format!("the {kind} parameter `{name}` is required and carries a secret, and `auth` does not send it");
            return Err(Diagnostic::new(Code::SecretParameter, message).at(place.clone(), "").hint(secret_hint(kind, name)));
        }
    }
    Ok(false)
}

/// Reads a parameter that is the whole query string (OpenAPI 3.2). The members of a form are arguments like other query
/// parameters. Otherwise the argument is sent as JSON or as text.
fn querystring<'a>(
    context: Context<'a, '_>,
    node: &'a Node,
    overriding: Option<&Override>,
    faults: &mut Faults,
    notes: &mut Vec<Diagnostic>,
    out: &mut Parameters,
) -> Result<(), Diagnostic> {
    let references = context.references;
    let contents = contents(node);
    let Some(content) = contents.iter().min_by_key(|content| RequestKind::from_media_type(content.media_type)) else {
        let message = "a parameter in `querystring` needs a media type under `content`";
        return Err(Diagnostic::new(Code::BadParameter, message).at(node.place(references.file), ""));
    };
    let Some(content) = references.resolve_content(*content, faults) else { return Ok(()) };
    let name = node.get("name").and_then(Node::as_str).unwrap_or("querystring");
    let required = node.get("required").and_then(Node::as_bool) == Some(true);
    let kind = RequestKind::from_media_type(content.media_type);
    let mut schema = match content.value.get("schema") {
        Some(schema) if matches!(kind, RequestKind::Json | RequestKind::Form) => schema::argument(references, schema, faults),
        _ => Json::object(),
    };
    if kind == RequestKind::Form
        && let Some(body) = body::members(&schema, &content, required, kind)
    {
        let place = node.place(references.file);
        for mut sent in body.args {
            if !is_argument(context, ("query", &sent.name), sent.required, &place, overriding, notes, out)? {
                continue;
            }
            sent.wire.set("in", Json::string("query"));
            if let Some(definitions) = &body.definitions {
                sent.schema.set("$defs", definitions.clone());
            }
            out.sent.push(sent);
        }
        return Ok(());
    }
    let (style, explode) = match kind {
        RequestKind::Json => ("json", false),
        RequestKind::Form => ("form", true),
        _ => ("form", false),
    };
    if !matches!(kind, RequestKind::Json | RequestKind::Form) {
        schema.set("type", Json::string("string"));
    }
    if let Some(prose) = node.get("description").and_then(Node::as_str) {
        schema.set("description", Json::string(prose));
    }
    let wire = Json::object().with("name", Json::string("")).with("in", Json::string("query"));
    let wire = wire.with("style", Json::string(style)).with("explode", Json::Bool(explode)).with("arg", Json::string(name));
    out.sent.push(Sent { name: name.to_owned(), required, schema, wire });
    Ok(())
}

/// Whether a parameter has the style `cookie` of OpenAPI 3.2.
fn has_cookie_style(node: &Node) -> bool {
    let text = |key| node.get(key).and_then(Node::as_str);
    text("in") == Some("cookie") && text("style") == Some("cookie")
}

fn secret_hint(kind: &str, name: &str) -> String {
    format!(
        "add `{{\"scheme\": \"api_key\", \"in\": \"{kind}\", \"name\": {name:?}, \"binding\": …}}` to `auth`; \
         `\"secret_args\": [{name:?}]` in its override lets programs pass it"
    )
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
        let Some(value) = node.get(key).filter(|_| key != "style" || !has_cookie_style(node)) else { continue };
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
