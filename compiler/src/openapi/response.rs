//! Reads the successful responses of an operation.

use ptc_catalog::BodyKind;
use ptc_catalog::body_kind::essence;

use super::faults::Faults;
use super::reference::{self, Content, References};
use super::schema;
use crate::diag::{Code, Diagnostic};
use crate::json::Json;
use crate::tree::{Member, Node, Tree};

/// The shape of a successful response.
pub(super) struct Success {
    /// JSON Schema of the payload.
    pub(super) schema: Json,
    /// Whether the schema was cut in depth.
    pub(super) cut: bool,
    /// Whether the response has a `Link` header.
    pub(super) has_links: bool,
    /// The declared media types of all successes, JSON first.
    pub(super) types: Vec<String>,
    /// The declared headers of all successes, in lower case.
    pub(super) headers: Vec<String>,
}

/// Returns what an operation answers if it succeeds. The payload is that of the lowest success status with JSON, or else of the
/// lowest with content. Every answer is accepted where nothing is declared.
pub(super) fn success<'a>(references: References<'a>, operation: &'a Node, faults: &mut Faults) -> Option<Success> {
    let responses = operation.get("responses").filter(|responses| !matches!(responses.value, Tree::Null));
    if let Some(responses) = responses.filter(|responses| !matches!(responses.value, Tree::Object(_))) {
        let message = format!("`responses` is an object of responses, found {}", responses.kind());
        faults.push(Diagnostic::new(Code::NotOpenApi, message).at(responses.place(references.file), ""));
        return None;
    }
    let all = responses.map(Node::members).unwrap_or_default();
    let mut statuses: Vec<(&str, &Node)> =
        all.iter().map(|m| (&*m.key, &m.value)).filter(|(status, _)| rank(status).is_some()).collect();
    statuses.sort_by_key(|(status, _)| (rank(status), *status));
    // `default` describes a success only if no success status is listed.
    if statuses.iter().any(|(status, _)| *status != "default") {
        statuses.retain(|(status, _)| *status != "default");
    }
    let (mut contents, mut headers, mut has_links) = (Vec::new(), Vec::new(), false);
    for (_, response) in &statuses {
        let response = faults.keep(references.resolve(response))?;
        for header in response.get("headers").map(Node::members).unwrap_or_default() {
            let name = header.key.to_ascii_lowercase();
            has_links |= name == "link";
            if !headers.contains(&name) && name.bytes().all(|byte| byte.is_ascii_graphic()) {
                headers.push(name);
            }
        }
        contents.extend(reference::contents(response));
    }
    let is_empty = !statuses.is_empty() && statuses.iter().all(|(status, _)| matches!(*status, "204" | "205"));
    let payload = |content: &Content<'a>| json_rank(content.media_type).filter(|_| !is_file(references, content.value));
    let json = contents.iter().filter(|content| payload(content).is_some()).min_by_key(|content| payload(content));
    let (schema, cut) = match json.or_else(|| contents.first()) {
        None if is_empty => (Json::object().with("type", Json::string("null")), false),
        None => (Json::object(), false),
        Some(content) => body(references, references.resolve_content(*content, faults)?, faults),
    };
    Some(Success { schema, cut, has_links, types: types(&contents), headers })
}

/// Returns the first example of the JSON body of a successful response: that of its media type, or else that of its schema.
pub(super) fn example<'a>(references: References<'a>, operation: &'a Node) -> Option<Json> {
    let responses = operation.get("responses").map(Node::members).unwrap_or_default();
    let mut statuses: Vec<&Member> = responses.iter().filter(|member| rank(&member.key).is_some()).collect();
    statuses.sort_by_key(|member| (rank(&member.key), &*member.key));
    let of_content = |content: &Content<'a>| {
        let media = references.resolve(content.value).ok()?;
        let schema = || references.resolve(media.get("schema")?).ok();
        let listed = || schema()?.get("examples")?.elements()?.first();
        stated_example(references, media).or_else(|| schema()?.get("example")).or_else(listed).map(Json::from)
    };
    statuses.into_iter().find_map(|member| {
        let contents = reference::contents(references.resolve(&member.value).ok()?);
        contents.iter().filter(|content| json_rank(content.media_type).is_some()).find_map(of_content)
    })
}

/// Returns the first example that a media type or a parameter states beside its schema.
pub(super) fn stated_example<'a>(references: References<'a>, node: &'a Node) -> Option<&'a Node> {
    let named = || references.resolve(&node.get("examples")?.members().first()?.value).ok()?.get("value");
    node.get("example").or_else(named)
}

/// Returns the schema of what a program gets of a body, and whether it was cut.
fn body<'a>(references: References<'a>, content: Content<'a>, faults: &mut Faults) -> (Json, bool) {
    let kind = |name: &str| Json::object().with("type", Json::string(name));
    let described = content.value.get("schema");
    match BodyKind::from_media_type(content.media_type) {
        BodyKind::Text => (kind("string"), false),
        BodyKind::List => match item_schema(references, content) {
            None => (kind("array"), false),
            Some(node) => {
                let (mut item, cut) = schema::result(references, node, faults);
                let definitions = item.remove("$defs");
                let list = kind("array").with("items", item);
                (definitions.map_or(list.clone(), |definitions| list.with("$defs", definitions)), cut)
            }
        },
        BodyKind::Bytes => {
            let members =
                Json::object().with("content_type", kind("string")).with("bytes", kind("integer")).with("base64", kind("string"));
            let required = Json::Array(vec![Json::string("content_type"), Json::string("bytes")]);
            (kind("object").with("properties", members).with("required", required), false)
        }
        BodyKind::Json | BodyKind::Unknown if is_file(references, content.value) => (Json::object(), false),
        BodyKind::Json | BodyKind::Unknown => {
            described.map_or_else(|| (Json::object(), false), |node| schema::result(references, node, faults))
        }
    }
}

/// Returns the schema of the values of a stream. Of an event, a program gets the data, which `contentSchema` describes if it is
/// JSON.
fn item_schema<'a>(references: References<'a>, content: Content<'a>) -> Option<&'a Node> {
    let item = content.value.get("itemSchema")?;
    if essence(content.media_type) != "text/event-stream" {
        return Some(item);
    }
    references.resolve(item).ok()?.get("properties")?.get("data")?.get("contentSchema")
}

/// Returns the media types of contents as written, each once: JSON, then the others, then ranges. Without content, any type.
fn types(contents: &[Content<'_>]) -> Vec<String> {
    let is_type = |text: &str| text.contains('/') && text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    let mut types: Vec<&str> = Vec::new();
    for content in contents.iter().map(|content| content.media_type.trim()).filter(|text| is_type(text)) {
        if !types.iter().any(|known| essence(known) == essence(content)) {
            types.push(content);
        }
    }
    if types.is_empty() {
        types = vec!["application/json", "*/*"];
    }
    types.sort_by_key(|text| match BodyKind::from_media_type(text) {
        BodyKind::Json => 0,
        BodyKind::Unknown => 2,
        _ => 1,
    });
    types.into_iter().map(str::to_owned).collect()
}

/// Ranks exact statuses before the range `2XX`, and the range before `default`.
fn rank(status: &str) -> Option<u8> {
    match status.as_bytes() {
        [b'2', b'0'..=b'9', b'0'..=b'9'] => Some(0),
        [b'2', b'X' | b'x', b'X' | b'x'] => Some(1),
        b"default" => Some(2),
        _ => None,
    }
}

/// Ranks a media type by how specifically it means JSON, the lowest first. Returns `None` for a type that excludes JSON. A range
/// does not determine the type for a client that accepts JSON.
pub(super) fn json_rank(media: &str) -> Option<u8> {
    match (essence(media).as_str(), BodyKind::from_media_type(media)) {
        ("application/json", _) => Some(0),
        (_, BodyKind::Json) => Some(1),
        ("application/*" | "*/*", _) => Some(2),
        _ => None,
    }
}

/// Whether a schema describes a file, which OpenAPI 3.0 writes as a string of format `binary`.
fn is_file<'a>(references: References<'a>, media: &'a Node) -> bool {
    let schema = references.resolve(media).ok().and_then(|media| references.resolve(media.get("schema")?).ok());
    schema.and_then(|schema| schema.get("format")).and_then(Node::as_str) == Some("binary")
}
