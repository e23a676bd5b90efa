//! Finds the operation of a request, and reads its arguments. This is the reverse of how the runtime writes requests
//! (`runtime/upstream/src/openapi`).

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use ptc_catalog::{Operation, Param, Place, RequestKind, Style, Tool, Type, Types, Upstream};
use ptc_compiler::json::Json;
use ptc_compiler::json_schema::Schema;

use crate::http_server::HttpRequest;

/// The operation of a request.
#[derive(Debug)]
pub(super) struct Matched {
    pub(super) tool: &'static Tool,
    pub(super) operation: &'static Operation,
    /// The texts at the parameters of the path, as they were sent.
    path: Vec<(&'static str, String)>,
}

/// Why a request has no operation.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotFound {
    /// No operation has the path.
    Path,
    /// The path has operations, but none of the method.
    Method,
}

/// Finds the operation of a method and a path. Of several, the one with the fewest parameters in its path counts.
pub(super) fn find(upstream: &Upstream, method: &str, path: &str) -> Result<Matched, NotFound> {
    let with_path = |tool: &'static Tool| {
        let operation = tool.operation?;
        let path = matched(path_of(operation), path)?;
        Some(Matched { tool, operation, path })
    };
    let mut has_path = false;
    let found = upstream.tools.all().iter().filter_map(with_path).inspect(|_| has_path = true);
    let found = found.filter(|matched| matched.operation.method == method).min_by_key(|matched| matched.path.len());
    found.ok_or(if has_path { NotFound::Method } else { NotFound::Path })
}

/// Returns the path of an operation without an origin of its own and without a query.
fn path_of(operation: &Operation) -> &'static str {
    let path = operation.path;
    let path = match path.split_once("://") {
        Some((_, rest)) if !path.starts_with('/') => rest.find('/').and_then(|at| rest.get(at..)).unwrap_or("/"),
        _ => path,
    };
    path.split(['?', '#']).next().unwrap_or_default()
}

/// Returns the texts at the parameters of a template, if the path matches it.
fn matched(template: &'static str, path: &str) -> Option<Vec<(&'static str, String)>> {
    let (templates, segments) = (template.split('/'), path.split('/'));
    if templates.clone().count() != segments.clone().count() {
        return None;
    }
    let mut found = Vec::new();
    templates.zip(segments).all(|(template, segment)| match_segment(template, segment, &mut found)).then_some(found)
}

fn match_segment(template: &'static str, segment: &str, found: &mut Vec<(&'static str, String)>) -> bool {
    let Some((before, (name, after))) = template.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    else {
        return decoded(template) == decoded(segment);
    };
    let Some(rest) = segment.strip_prefix(before) else { return false };
    let literal = after.split('{').next().unwrap_or_default();
    let end = if literal.is_empty() || after == literal { rest.len().checked_sub(literal.len()) } else { rest.find(literal) };
    let Some((value, rest)) = end.filter(|end| *end > 0).and_then(|end| rest.split_at_checked(end)) else { return false };
    found.push((name, value.to_owned()));
    match_segment(after, rest, found)
}

fn decoded(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8_lossy()
}

/// Returns the arguments of a request. Members of a multipart body, and objects whose members are parameters, are left out.
pub(super) fn arguments(matched: &Matched, request: &HttpRequest) -> Json {
    let definition = Json::parse(matched.tool.definition).unwrap_or(Json::Null);
    let input = definition.get("inputSchema").cloned().unwrap_or_else(Json::object);
    let schema = Schema::new(&input);
    let properties = schema.members(schema.body(&input));
    let (_, query) = request.url.split_once('?').unwrap_or_default();
    let query = pairs(query);
    let body = Body::read(matched.operation, request);
    let cookies = header(request, "cookie").unwrap_or_default();
    let cookies: Vec<(String, String)> = cookies
        .split(';')
        .filter_map(|pair| pair.trim().split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let mut arguments = Json::object();
    for param in matched.operation.params.iter() {
        let types = Expected::new(&schema, properties.get(param.arg));
        let value = match param.place {
            Place::Path => {
                let found = matched.path.iter().find(|(name, _)| *name == param.name);
                found.and_then(|(_, text)| single(&param, text, types))
            }
            Place::Query => in_pairs(&param, &query, types),
            Place::Header => header(request, param.name).and_then(|text| single(&param, text, types)),
            Place::Cookie => in_pairs(&param, &cookies, types),
            Place::Body => match &body {
                Body::Value(value) if param.name.is_empty() => Some(value.clone()),
                Body::Value(value) => value.get(param.name).cloned(),
                Body::Form(pairs) => in_pairs(&param, pairs, types),
                Body::Other => None,
            },
        };
        if let Some(value) = value {
            arguments.set(param.arg, value);
        }
    }
    arguments
}

/// Returns arguments without those that have a default value, which the runtime sends if a program does not give them.
pub(super) fn without_defaults(operation: &Operation, arguments: &Json) -> Json {
    let mut arguments = arguments.clone();
    for (name, default) in operation.default_args {
        if arguments.get(name).is_some_and(|value| Json::parse(default).is_some_and(|default| *value == default)) {
            arguments.remove(name);
        }
    }
    arguments
}

fn header<'r>(request: &'r HttpRequest, name: &str) -> Option<&'r str> {
    request.headers.get(name)?.to_str().ok()
}

/// Returns the pairs of a query or a form, with decoded names and encoded values.
fn pairs(text: &str) -> Vec<(String, String)> {
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(&name.replace('+', " ")).into_owned(), value.replace('+', "%20"))
    };
    text.split('&').filter(|pair| !pair.is_empty()).map(pair).collect()
}

/// The types that the schema of an argument admits.
#[derive(Clone, Copy)]
struct Expected {
    types: Types,
    /// Those of the items of a list.
    items: Types,
}

impl Expected {
    fn new(schema: &Schema<'_>, node: Option<&Json>) -> Expected {
        let types = |node: Option<&Json>| node.map_or(Types::ANY, |node| schema.types(schema.body(node)));
        let items = node.and_then(|node| schema.keyword(schema.body(node), "items"));
        Expected { types: types(node), items: types(items) }
    }
}

/// Returns the value of an argument that may be several pairs.
fn in_pairs(param: &Param<'_>, pairs: &[(String, String)], expected: Expected) -> Option<Json> {
    if param.style == Style::DeepObject {
        let members = pairs.iter().filter_map(|(name, value)| {
            let key = name.strip_prefix(param.name)?.strip_prefix('[')?.strip_suffix(']')?;
            Some((key.to_owned(), scalar(&decoded(value), Types::ANY)))
        });
        let members: Vec<(String, Json)> = members.collect();
        return (!members.is_empty()).then_some(Json::Object(members));
    }
    let mut values = pairs.iter().filter(|(name, _)| name == param.name).map(|(_, value)| value.as_str()).peekable();
    values.peek()?;
    if param.style != Style::Json && param.explode && has_type(expected.types, Type::Array) {
        return Some(Json::Array(values.map(|value| scalar(&decoded(value), expected.items)).collect()));
    }
    single(param, values.next()?, expected)
}

/// Returns the value of an argument that is one text. `text` is percent-encoded, so that separators in values differ from others.
fn single(param: &Param<'_>, text: &str, expected: Expected) -> Option<Json> {
    let separator = match param.style {
        Style::Json => return Json::parse(&decoded(text)),
        Style::SpaceDelimited => "%20",
        Style::PipeDelimited if text.contains("%7C") => "%7C",
        Style::PipeDelimited => "|",
        _ => ",",
    };
    if has_type(expected.types, Type::Array) && !has_type(expected.types, Type::String) {
        let items = text.split(separator).filter(|item| !item.is_empty());
        return Some(Json::Array(items.map(|item| scalar(&decoded(item), expected.items)).collect()));
    }
    Some(scalar(&decoded(text), expected.types))
}

fn has_type(types: Types, kind: Type) -> bool {
    types.0 & kind as u8 != 0
}

/// Returns the value that a text is, if the types admit it, or else the text.
fn scalar(text: &str, types: Types) -> Json {
    let value = Json::parse(text).filter(|value| !matches!(value, Json::Array(_) | Json::Object(_) | Json::String(_)));
    let is_text = types.0 == Types::ANY.0 && has_type(types, Type::String);
    value.filter(|value| types.admits(value.kind()) && !is_text).unwrap_or_else(|| Json::string(text))
}

/// The body of a request.
enum Body {
    /// The value of JSON, or a text.
    Value(Json),
    /// The pairs of a form.
    Form(Vec<(String, String)>),
    /// A body that is not read, or none.
    Other,
}

impl Body {
    fn read(operation: &Operation, request: &HttpRequest) -> Body {
        let media_type = operation.body.media_type;
        if media_type.is_empty() || request.body.is_empty() {
            return Body::Other;
        }
        let text = String::from_utf8_lossy(&request.body);
        match RequestKind::from_media_type(media_type) {
            RequestKind::Json => Json::parse(&text).map_or(Body::Other, Body::Value),
            RequestKind::Form => Body::Form(pairs(&text)),
            RequestKind::Multipart => Body::Other,
            RequestKind::Text => Body::Value(Json::string(text)),
            RequestKind::Bytes => Body::Value(Json::string(STANDARD.encode(&request.body))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_match_paths_of_their_form() {
        type Case<'a> = (&'static str, &'a str, Option<&'a [(&'a str, &'a str)]>);
        let cases: [Case<'_>; 8] = [
            ("/pets", "/pets", Some(&[])),
            ("/pets", "/pets/", None),
            ("/pets/{id}", "/pets/a%2Fb", Some(&[("id", "a%2Fb")])),
            ("/pets/{id}", "/pets/", None),
            ("/{a}/x/{b}", "/1/x/2", Some(&[("a", "1"), ("b", "2")])),
            ("/f/{name}.{kind}", "/f/report.json", Some(&[("name", "report"), ("kind", "json")])),
            ("/f/{name}.json", "/f/a.b.json", Some(&[("name", "a.b")])),
            ("/a b", "/a%20b", Some(&[])),
        ];
        for (template, path, expected) in cases {
            let found = matched(template, path);
            let found = found.as_ref().map(|found| found.iter().map(|(name, value)| (*name, &**value)).collect::<Vec<_>>());
            assert_eq!(found.as_deref(), expected, "{template} {path}");
        }
    }
}
