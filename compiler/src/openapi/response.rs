//! What an operation answers.

use super::reference::References;
use super::schema;
use crate::diag::{Code, Diagnostic};
use crate::ir::Json;
use crate::tree::Node;

/// The shape of a successful answer.
pub(super) struct Success {
    /// JSON Schema of the payload.
    pub(super) schema: Json,
    /// Whether its depth was cut.
    pub(super) cut: bool,
}

/// The JSON answer of the lowest success status, or nothing for an empty `204`.
pub(super) fn success(references: References<'_>, operation: &Node) -> Result<Success, Diagnostic> {
    let file = references.file;
    let Some(responses) = operation.get("responses") else {
        return Err(Diagnostic::new(Code::NoJsonResponse, "the operation does not say what it answers")
            .at(operation.place(file), "no `responses`"));
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
        let response = references.resolve(response)?;
        let content = response.get("content").map(Node::members).unwrap_or_default();
        let mut json: Vec<_> = content.iter().filter(|m| is_json(&m.key)).collect();
        json.sort_by_key(|m| essence(&m.key) != "application/json");
        if let Some(media) = json.first() {
            let Some(node) = media.value.get("schema") else { return Ok(Success { schema: Json::object(), cut: false }) };
            let (schema, cut) = schema::result(references, node)?;
            return Ok(Success { schema, cut });
        }
        empty |= *status == "204" && content.is_empty();
        if content.is_empty() {
            found.push(format!("{status} without content"));
        } else {
            found.push(format!("{status} with {}", super::quoted_list(content.iter().map(|m| &*m.key))));
        }
    }
    if empty {
        return Ok(Success { schema: Json::object().with("type", Json::string("null")), cut: false });
    }
    let message = match found.as_slice() {
        [] => "the operation has no success answer".to_owned(),
        found => format!("the operation answers {}, never JSON", found.join(", ")),
    };
    Err(Diagnostic::new(Code::NoJsonResponse, message)
        .at(responses.place(file), "")
        .hint("an answer is `application/json`, another `+json` type, or an empty 204"))
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

/// A media type without its parameters.
fn essence(media: &str) -> String {
    media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn is_json(media: &str) -> bool {
    let essence = essence(media);
    essence == "application/json" || (essence.contains('/') && essence.ends_with("+json"))
}
