//! Evaluates discovery forms on the catalog: `(tool/servers)`, `(dir …)`, `(doc …)`, `(meta …)`, `(apropos …)`.
//!
//! - `question`: parses a form and checks its reference.
//! - `search`: finds tools by words of their names, descriptions and arguments.
//!
//! An invalid form is a fault of the program. An answer that is too large is `nil`; a list that is too large is truncated to
//! whole entries.

mod question;
mod search;

pub(crate) use question::{Question, subjects};
pub(crate) use search::LazyIndex;

use std::borrow::Cow;

use ptc_catalog::{Catalog, Tool, Upstream};
use ptc_lisp::{Value, json};

use ptc_secrets::Redactor;

/// The data from which questions are answered.
pub(crate) struct View<'v> {
    /// What the caller may see.
    pub(crate) catalog: &'static Catalog,
    /// Everything, to which the search index belongs.
    pub(crate) whole: &'static Catalog,
    /// Whether the tools of an upstream were not fetched yet.
    pub(crate) is_unlisted: &'v dyn Fn(&str) -> bool,
    pub(crate) redactor: &'v Redactor,
    pub(crate) index: &'v LazyIndex,
    /// Maximum bytes of an answer, as JSON.
    pub(crate) max_bytes: usize,
}

impl Question {
    /// Answers the question.
    pub(crate) fn answer(&self, view: &View<'_>) -> Value {
        let &View { catalog, whole, is_unlisted, redactor, index, max_bytes } = view;
        match self {
            Question::Servers => servers(view),
            Question::Dir { upstream, limit, offset } => {
                let tools = upstream.tools.iter().skip(*offset).take(*limit);
                list(tools.map(|tool| line(upstream, tool)), redactor, max_bytes)
            }
            Question::Apropos { words, limit, load } => {
                let found = search::search_visible(catalog, whole, index, words, *limit);
                // An upstream whose tools were not fetched yet may have matching tools.
                let unlisted =
                    search::upstreams(catalog, words).into_iter().filter(|upstream| !load && is_unlisted(upstream.name));
                let lines = found.into_iter().map(|(upstream, tool)| line(upstream, tool)).chain(unlisted.map(hint));
                list(lines.take(*limit), redactor, max_bytes)
            }
            Question::Doc { tool } => {
                let doc = redactor.redact_str(tool.doc);
                if json_len(&doc) > max_bytes { Value::nil() } else { Value::string(doc) }
            }
            Question::Meta { upstream, tool } => meta(upstream, tool, redactor, max_bytes),
        }
    }
}

fn servers(view: &View<'_>) -> Value {
    let mut left = view.max_bytes.saturating_sub(2);
    let mut entries = Vec::new();
    for upstream in view.catalog.upstreams {
        let description = view.redactor.redact_str(upstream.description);
        let unlisted = (view.is_unlisted)(upstream.name);
        // This is more than the keys and the short values of an entry take.
        let bytes = 96 + json_len(upstream.name) + json_len(&description);
        let Some(rest) = left.checked_sub(bytes) else { break };
        left = rest;
        entries.push(Value::map([
            (Value::string("name"), Value::string(upstream.name)),
            (Value::string("description"), Value::string(description)),
            (Value::string("tool_count"), Value::int(upstream.tools.len() as i64)),
            (Value::string("catalog_loaded"), Value::bool(!unlisted)),
        ]));
    }
    Value::vector(entries)
}

/// Returns the placeholder for the tools of an upstream that were not fetched yet.
fn hint(upstream: &Upstream) -> String {
    let described = if upstream.description.is_empty() { String::new() } else { format!(" - {}", upstream.description) };
    format!("{}{described} (tools not listed yet; next: (dir \"{}\"))", upstream.name, upstream.name)
}

/// Formats a tool as `server/tool - description`.
fn line(upstream: &Upstream, tool: &Tool) -> String {
    if tool.description.is_empty() {
        format!("{}/{}", upstream.name, tool.name)
    } else {
        format!("{}/{} - {}", upstream.name, tool.name, tool.description)
    }
}

/// Returns the lines that fit.
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

/// Returns the upstream's definition of a tool, with `server` and the documented spelling of the schemas' keys.
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
