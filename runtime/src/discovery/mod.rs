//! Discovery forms from the frozen catalog: `(tool/servers)`, `(dir …)`, `(doc …)`, `(meta …)`, `(apropos …)`.
//!
//! - `question`: reading a form: its reference and its options.
//! - `search`: finding tools by words of their names, descriptions and arguments.
//!
//! A wrong form is a fault of the program; an answer too large to give is `nil`, a list too large is cut entry by entry.

mod question;
mod search;

pub(crate) use question::Question;

use std::borrow::Cow;

use ptc_catalog::{Catalog, Tool, Upstream};
use ptc_lisp::{Value, json};

use crate::secrets::Redactor;

impl Question<'_> {
    /// The answer, of at most `max_bytes` as JSON.
    pub(crate) fn answer(&self, catalog: &'static Catalog, redactor: &Redactor, max_bytes: usize) -> Value {
        match self {
            Question::Servers => Value::vector(catalog.upstreams.iter().map(|upstream| server(upstream, redactor)).collect()),
            Question::Dir { upstream, limit, offset } => {
                let tools = upstream.tools.iter().skip(*offset).take(*limit);
                list(tools.map(|tool| line(upstream, tool)), redactor, max_bytes)
            }
            Question::Apropos { query, limit } => {
                let found = search::search(catalog, query, *limit);
                list(found.into_iter().map(|(upstream, tool)| line(upstream, tool)), redactor, max_bytes)
            }
            Question::Doc { tool } => {
                let doc = redactor.redact_str(tool.doc);
                if json_len(&doc) > max_bytes { Value::nil() } else { Value::string(doc) }
            }
            Question::Meta { upstream, tool } => meta(upstream, tool, redactor, max_bytes),
        }
    }
}

fn server(upstream: &'static Upstream, redactor: &Redactor) -> Value {
    Value::map([
        (Value::string("name"), Value::string(upstream.name)),
        (Value::string("description"), Value::string(redactor.redact_str(upstream.description))),
        (Value::string("tool_count"), Value::int(upstream.tools.len() as i64)),
        (Value::string("catalog_loaded"), Value::bool(true)),
    ])
}

/// `server/tool - description`
fn line(upstream: &Upstream, tool: &Tool) -> String {
    if tool.description.is_empty() {
        format!("{}/{}", upstream.name, tool.name)
    } else {
        format!("{}/{} - {}", upstream.name, tool.name, tool.description)
    }
}

/// The lines that fit.
fn list(lines: impl Iterator<Item = String>, redactor: &Redactor, max_bytes: usize) -> Value {
    let mut left = max_bytes.saturating_sub(2);
    let mut entries = Vec::new();
    for line in lines {
        let line = redactor.redact_string(line);
        let Some(rest) = left.checked_sub(json_len(&line) + 1) else { break };
        left = rest;
        entries.push(Value::string(line));
    }
    Value::vector(entries)
}

fn json_len(text: &str) -> usize {
    let escapes = text.bytes().map(|byte| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 1,
        0..0x20 => 5,
        _ => 0,
    });
    text.len() + 2 + escapes.sum::<usize>()
}

/// The definition as the upstream gave it, with `server` and the documented spelling of the schemas' keys.
fn meta(upstream: &'static Upstream, tool: &'static Tool, redactor: &Redactor, max_bytes: usize) -> Value {
    if tool.definition.len() > max_bytes {
        return Value::nil();
    }
    let definition = redactor.redact_bytes(tool.definition.as_bytes().to_vec());
    let Ok(definition) = json::decode(&definition) else { return Value::nil() };
    let mut entries: Vec<(Value, Value)> = Vec::new();
    for (key, value) in definition.entries().into_iter().flatten() {
        let name = match key.as_name().unwrap_or_default() {
            "inputSchema" => Cow::Borrowed("input_schema"),
            "outputSchema" => Cow::Borrowed("output_schema"),
            "name" | "server" => continue,
            other => Cow::Borrowed(other),
        };
        entries.push((Value::string(name), value.clone()));
    }
    entries.push((Value::string("server"), Value::string(upstream.name)));
    entries.push((Value::string("name"), Value::string(tool.name)));
    if let Some(operation) = tool.operation
        && definition.get("_ptc").is_none()
    {
        let provenance = Value::map([(Value::string("operationId"), Value::string(operation.id))]);
        entries.push((Value::string("_ptc"), provenance));
    }
    Value::map(entries)
}
