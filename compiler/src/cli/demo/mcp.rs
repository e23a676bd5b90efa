//! The two MCP servers: notes and visits. They support only protocol revisions with a handshake, and reject a probe of the
//! stateless era.

use serde_json::{Value, json};
use tiny_http::Method;

use super::data;
use super::http::{Answer, Asked};

const REVISIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

#[derive(Clone, Copy)]
pub(super) enum Server {
    Notes,
    Visits,
}

/// Returns the response to one frame, or `None` for a notification.
pub(super) fn answer(server: Server, frame: &[u8]) -> Option<Value> {
    let Ok(request) = serde_json::from_slice::<Value>(frame) else {
        return Some(json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32700, "message": "parse error" } }));
    };
    let id = request.get("id")?.clone();
    let params = request.get("params").unwrap_or(&Value::Null);
    let answered = match request.get("method").and_then(Value::as_str) {
        Some("initialize") => Ok(initialize(server, params)),
        Some("ping") => Ok(json!({})),
        Some("tools/list") => Ok(json!({ "tools": tools(server) })),
        Some("tools/call") => call(server, params),
        Some(other) => Err((-32601, format!("no method {other}"))),
        None => Err((-32600, "no method".to_owned())),
    };
    Some(match answered {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err((code, message)) => json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } }),
    })
}

/// Handles Streamable HTTP without streams and without sessions.
pub(super) fn over_http(asked: &Asked) -> Answer {
    match (&asked.method, asked.url.as_str()) {
        (Method::Post, "/mcp") => match answer(Server::Visits, &asked.body) {
            Some(value) => (200, value.to_string()),
            None => (202, String::new()),
        },
        (_, "/mcp") => (405, String::new()),
        _ => (404, String::new()),
    }
}

fn initialize(server: Server, params: &Value) -> Value {
    let asked = params.get("protocolVersion").and_then(Value::as_str);
    let revision = REVISIONS.into_iter().find(|r| Some(*r) == asked).unwrap_or(REVISIONS[0]);
    let (name, instructions) = match server {
        Server::Notes => ("quickstart-notes", "Notes of the practice, as plain text."),
        Server::Visits => ("quickstart-visits", "Visits to the practice and what they cost."),
    };
    json!({
        "protocolVersion": revision,
        "capabilities": { "tools": {} },
        "serverInfo": { "name": name, "version": env!("CARGO_PKG_VERSION") },
        "instructions": instructions,
    })
}

fn tools(server: Server) -> Value {
    let read_only = json!({ "readOnlyHint": true, "openWorldHint": false });
    match server {
        Server::Notes => json!([
            {
                "name": "list_notes",
                "title": "List notes",
                "description": "Names and titles of all notes.",
                "inputSchema": { "type": "object", "properties": {}, "additionalProperties": false },
                "annotations": read_only,
            },
            {
                "name": "read_note",
                "title": "Read a note",
                "description": "The text of one note.",
                "inputSchema": {
                    "type": "object",
                    "properties": { "name": { "type": "string", "description": "A name from list_notes." } },
                    "required": ["name"],
                    "additionalProperties": false,
                },
                "annotations": read_only,
            },
        ]),
        Server::Visits => json!([{
            "name": "list_visits",
            "title": "List visits",
            "description": "Visits of all pets in the order of their numbers, with what each cost and whether it is paid.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "unpaid_only": { "type": "boolean", "default": false, "description": "Leave paid visits out." },
                },
                "additionalProperties": false,
            },
            "outputSchema": {
                "type": "object",
                "properties": {
                    "visits": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {
                                "number": { "type": "integer" },
                                "pet_id": { "type": "integer" },
                                "date": { "type": "string", "format": "date" },
                                "reason": { "type": "string" },
                                "vet": { "type": "string" },
                                "amount": { "type": "integer", "description": "Euro." },
                                "paid": { "type": "boolean" },
                            },
                            "required": ["number", "pet_id", "date", "reason", "vet", "amount", "paid"],
                        },
                    },
                },
                "required": ["visits"],
            },
            "annotations": read_only,
        }]),
    }
}

fn call(server: Server, params: &Value) -> Result<Value, (i32, String)> {
    let name = params.get("name").and_then(Value::as_str).unwrap_or_default();
    let arguments = params.get("arguments").unwrap_or(&Value::Null);
    match (server, name) {
        (Server::Notes, "list_notes") => {
            let notes: Vec<_> = data::NOTES.iter().map(|(name, title, _)| json!({ "name": name, "title": title })).collect();
            Ok(text(&json!(notes).to_string(), false))
        }
        (Server::Notes, "read_note") => {
            let wanted = arguments.get("name").and_then(Value::as_str).unwrap_or_default();
            Ok(match data::NOTES.iter().find(|(name, ..)| *name == wanted) {
                Some((.., body)) => text(body, false),
                None => text(&format!("no note named {wanted:?}"), true),
            })
        }
        (Server::Visits, "list_visits") => {
            let unpaid_only = arguments.get("unpaid_only").and_then(Value::as_bool).unwrap_or(false);
            let structured = json!({ "visits": data::visits(unpaid_only).collect::<Vec<_>>() });
            let mut result = text(&structured.to_string(), false);
            if let Some(object) = result.as_object_mut() {
                object.insert("structuredContent".to_owned(), structured);
            }
            Ok(result)
        }
        _ => Err((-32602, format!("no tool {name:?}"))),
    }
}

fn text(body: &str, is_error: bool) -> Value {
    json!({ "content": [{ "type": "text", "text": body }], "isError": is_error })
}
