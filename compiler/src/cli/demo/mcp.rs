//! The two MCP servers: notes and visits. They support only protocol revisions with a handshake, and reject a probe of the
//! stateless era.

use ptc_runtime::protocol::revision::Era;
use serde_json::{Value, json};

use super::data;
use crate::mcp_server::{McpService, ServerInfo, ToolReply};

#[derive(Clone, Copy)]
pub(super) enum Server {
    Notes,
    Visits,
}

impl McpService for Server {
    fn info(&self) -> ServerInfo<'_> {
        let (name, instructions) = match self {
            Server::Notes => ("quickstart-notes", "Notes of the practice, as plain text."),
            Server::Visits => ("quickstart-visits", "Visits to the practice and what they cost."),
        };
        ServerInfo { name, version: env!("CARGO_PKG_VERSION"), instructions: Some(instructions) }
    }

    fn eras(&self) -> &[Era] {
        &[Era::Handshake]
    }

    fn tools(&self) -> String {
        tools(*self).to_string()
    }

    fn call(&self, tool: &str, arguments: &str) -> ToolReply {
        let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
        match (self, tool) {
            (Server::Notes, "list_notes") => {
                let note = |(name, title, _): &(&str, &str, &str)| json!({ "name": name, "title": title });
                ToolReply::text(data::NOTES.iter().map(note).collect::<Value>().to_string())
            }
            (Server::Notes, "read_note") => {
                let wanted = arguments.get("name").and_then(Value::as_str).unwrap_or_default();
                match data::NOTES.iter().find(|(name, ..)| *name == wanted) {
                    Some((.., body)) => ToolReply::text(*body),
                    None => ToolReply::failure(format!("no note named {wanted:?}")),
                }
            }
            (Server::Visits, "list_visits") => {
                let unpaid_only = arguments.get("unpaid_only").and_then(Value::as_bool).unwrap_or(false);
                ToolReply::structured(json!({ "visits": data::visits(unpaid_only).collect::<Vec<_>>() }).to_string())
            }
            _ => ToolReply::unknown_tool(tool),
        }
    }
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
