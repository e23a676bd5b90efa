//! What an operation answers.

use super::faults::Faults;
use super::reference::References;
use super::schema;
use crate::diag::{Code, Diagnostic, quoted_list};
use crate::ir::Json;
use crate::tree::Node;

/// The shape of a successful answer.
pub(super) struct Success {
    /// JSON Schema of the payload.
    pub(super) schema: Json,
    /// Whether its depth was cut.
    pub(super) cut: bool,
    /// Whether it comes with a `Link` header.
    pub(super) has_links: bool,
}

/// The JSON answer of the lowest success status, or nothing for an empty `204`; `None` where there is neither.
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
    // `default` speaks of success only where nothing else does.
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

/// Exact statuses before the range, the range before `default`.
fn rank(status: &str) -> Option<u8> {
    match status.as_bytes() {
        [b'2', b'0'..=b'9', b'0'..=b'9'] => Some(0),
        [b'2', b'X' | b'x', b'X' | b'x'] => Some(1),
        b"default" => Some(2),
        _ => None,
    }
}

/// A media type without its parameters, in lower case.
fn essence(media: &str) -> String {
    media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// How well a media type stands for JSON, the best first; `None` for one that rules JSON out. A range leaves open what the
/// service sends to a client that accepts JSON: the runtime reads the answer as JSON or refuses it.
pub(super) fn json_rank(media: &str) -> Option<u8> {
    match essence(media).as_str() {
        "application/json" => Some(0),
        suffixed if suffixed.contains('/') && suffixed.ends_with("+json") => Some(1),
        "application/*" | "*/*" => Some(RANGE),
        _ => None,
    }
}

/// Rank of a media range.
const RANGE: u8 = 2;

/// Whether a schema says that the answer is a file: what OpenAPI 3.0 writes as a binary string.
fn is_file<'a>(references: References<'a>, media: &'a Node) -> bool {
    let schema = media.get("schema").and_then(|schema| references.resolve(schema).ok());
    schema.and_then(|schema| schema.get("format")).and_then(Node::as_str) == Some("binary")
}
