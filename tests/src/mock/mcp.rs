//! An MCP server whose tools are data. It supports the protocol revisions with a handshake.
//!
//! The file of a server has `name`, `tables`, `definitions` and `tools`. A tool has the members of its definition, and `answer`,
//! which describes its responses. An `outputSchema` with references gets `definitions` as its `$defs`.

use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use super::answer::{Answer, answer};
use super::{Tables, http, member, read, tables};

/// An MCP server.
#[derive(Debug)]
pub struct Server {
    name: String,
    tables: Tables,
    /// The definitions as `tools/list` returns them.
    listed: Vec<Value>,
    /// The descriptions of their responses.
    answers: Vec<Value>,
}

impl Server {
    /// Reads the server that a file describes.
    pub fn read(path: &Path) -> Server {
        let file = read(path);
        let definitions = file.get("definitions");
        let (mut listed, mut answers) = (Vec::new(), Vec::new());
        for tool in member(&file, "tools").as_array().into_iter().flatten() {
            let mut tool = tool.clone();
            answers.push(member(&tool, "answer").clone());
            tool.as_object_mut().expect("a tool is an object").remove("answer");
            if let (Some(schema), Some(definitions)) = (tool.get_mut("outputSchema"), definitions)
                && schema.to_string().contains("\"$ref\"")
            {
                schema.as_object_mut().expect("a schema is an object").insert("$defs".to_owned(), definitions.clone());
            }
            listed.push(tool);
        }
        let name = member(&file, "name").as_str().unwrap_or_default().to_owned();
        Server { name, tables: tables(file.get("tables").unwrap_or(&Value::Null)), listed, answers }
    }

    /// Answers frames of standard input until it ends.
    ///
    /// # Errors
    ///
    /// Those of standard input and output.
    pub fn serve_stdio(&self) -> std::io::Result<()> {
        let mut out = std::io::stdout().lock();
        for line in std::io::stdin().lock().lines() {
            if let Some(answer) = self.frame(line?.as_bytes()) {
                writeln!(out, "{answer}")?;
                out.flush()?;
            }
        }
        Ok(())
    }

    /// Serves `/mcp` on a free port until the process ends, and returns the port.
    pub fn serve_http(self) -> u16 {
        let server = Arc::new(self);
        http::serve(move |request| match (request.method.as_str(), request.url.as_str()) {
            ("POST", "/mcp") => server.frame(&request.body).map_or((202, String::new()), |answer| (200, answer.to_string())),
            (_, "/mcp") => (405, String::new()),
            _ => (404, String::new()),
        })
    }

    /// Returns the response to a frame, or `None` for a notification.
    fn frame(&self, frame: &[u8]) -> Option<Value> {
        let request: Value = serde_json::from_slice(frame).unwrap_or(Value::Null);
        let id = request.get("id")?.clone();
        let params = request.get("params").unwrap_or(&Value::Null);
        let result = match request.get("method").and_then(Value::as_str).unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": "2025-11-25", "capabilities": { "tools": {} }, "serverInfo": { "name": self.name, "version": "1" },
            }),
            "ping" => json!({}),
            "tools/list" => json!({ "tools": self.listed }),
            "tools/call" => self.call(params),
            other => {
                let error = json!({ "code": -32601, "message": format!("no method {other}") });
                return Some(json!({ "jsonrpc": "2.0", "id": id, "error": error }));
            }
        };
        Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
    }

    fn call(&self, params: &Value) -> Value {
        let name = params.get("name");
        let Some(at) = self.listed.iter().position(|tool| tool.get("name") == name) else {
            return text(&format!("no tool {}", name.unwrap_or(&Value::Null)), true);
        };
        let described = self.answers.get(at).expect("one for each tool");
        match answer(described, params.get("arguments").unwrap_or(&Value::Null), &self.tables) {
            Ok(Answer::Text(body)) => text(&body, false),
            Ok(Answer::Json(value)) => {
                let mut result = text(&value.to_string(), false);
                let has_schema = self.listed.get(at).is_some_and(|tool| tool.get("outputSchema").is_some());
                if has_schema && let Some(result) = result.as_object_mut() {
                    result.insert("structuredContent".to_owned(), value);
                }
                result
            }
            Err(failure) => text(&failure.message, true),
        }
    }
}

fn text(body: &str, is_error: bool) -> Value {
    json!({ "content": [{ "type": "text", "text": body }], "isError": is_error })
}
