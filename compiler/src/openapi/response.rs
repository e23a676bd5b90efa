//! Reads the successful response of an operation.

use super::faults::Faults;
use super::reference::References;
use super::schema;
use crate::diag::{Code, Diagnostic, quoted_list};
use crate::ir::Json;
use crate::tree::Node;

/// The shape of a successful response.
pub(super) struct Success {
    /// JSON Schema of the payload.
    pub(super) schema: Json,
    /// Whether the schema was cut in depth.
    pub(super) cut: bool,
    /// Whether the response has a `Link` header.
    pub(super) has_links: bool,
}

/// Returns the JSON response of the lowest success status, or an empty payload for an empty `204`. Returns `None` if there is
/// neither.
pub(super) fn success<'a>(references: References<'a>, operation: &'a Node, faults: &mut Faults) -> Option<Success> {
    let file = references.file;
    let Some(responses) = operation.get("responses") else {
        faults.push(
            Diagnostic::new(Code::NoJsonResponse, "the operation does not say what it answers")
                .at(operation.place(file), "no `responses`"),
        );
        return None;
    };
    let mut statuses: Vec<(&str, &Node)> =
        responses.members().iter().map(|m| (&*m.key, &m.value)).filter(|(status, _)| rank(status).is_some()).collect();
    statuses.sort_by_key(|(status, _)| (rank(status), *status));
    // `default` describes a success only if no success status is listed.
    if statuses.iter().any(|(status, _)| *status != "default") {
        statuses.retain(|(status, _)| *status != "default");
    }
    let mut found = Vec::new();
    let mut empty = false;
    for (status, response) in &statuses {
        let response = faults.keep(references.resolve(response))?;
        let headers = response.get("headers").map(Node::members).unwrap_or_default();
        let has_links = headers.iter().any(|header| header.key.eq_ignore_ascii_case("link"));
        let content = response.get("content").map(Node::members).unwrap_or_default();
        let json = content
            .iter()
            .filter_map(|m| Some((json_rank(&m.key)?, m)))
            .filter(|(rank, m)| *rank < RANGE || !is_file(references, &m.value))
            .min_by_key(|(rank, _)| *rank);
        if let Some((_, media)) = json {
            let Some(node) = media.value.get("schema") else {
                return Some(Success { schema: Json::object(), cut: false, has_links });
            };
            let (schema, cut) = schema::result(references, node, faults);
            return Some(Success { schema, cut, has_links });
        }
        empty |= *status == "204" && content.is_empty();
        if content.is_empty() {
            found.push(format!("{status} without content"));
        } else {
            let file = if content.iter().any(|m| is_file(references, &m.value)) { "a file as " } else { "" };
            found.push(format!("{status} with {file}{}", quoted_list(content.iter().map(|m| &*m.key))));
        }
    }
    if empty {
        return Some(Success { schema: Json::object().with("type", Json::string("null")), cut: false, has_links: false });
    }
    let message = match found.as_slice() {
        [] => "the operation has no success answer".to_owned(),
        found => format!("the operation answers {}, never JSON", found.join(", ")),
    };
    faults.push(
        Diagnostic::new(Code::NoJsonResponse, message)
            .at(responses.place(file), "")
            .hint("an answer is `application/json`, another `+json` type, `*/*`, or an empty 204"),
    );
    None
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

/// Returns a media type in lower case without its parameters.
fn essence(media: &str) -> String {
    media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Ranks a media type by how specifically it means JSON, the lowest first. Returns `None` for a type that excludes JSON. A range
/// does not determine the type for a client that accepts JSON; the runtime parses the response as JSON or fails.
pub(super) fn json_rank(media: &str) -> Option<u8> {
    match essence(media).as_str() {
        "application/json" => Some(0),
        suffixed if suffixed.contains('/') && suffixed.ends_with("+json") => Some(1),
        "application/*" | "*/*" => Some(RANGE),
        _ => None,
    }
}

/// The rank of a media range.
const RANGE: u8 = 2;

/// Whether a schema describes a file, which OpenAPI 3.0 writes as a string of format `binary`.
fn is_file<'a>(references: References<'a>, media: &'a Node) -> bool {
    let schema = media.get("schema").and_then(|schema| references.resolve(schema).ok());
    schema.and_then(|schema| schema.get("format")).and_then(Node::as_str) == Some("binary")
}
