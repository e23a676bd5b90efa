//! Parses TOML into [`Node`]s from the document of `toml_edit`, for configs of MCP clients.
//!
//! The result is JSON: dates become strings, and numbers keep their text.

use std::ops::Range;

use toml_edit::{Document, Item, Key, TableLike, Value};

use super::parse::MAX_DEPTH;
use super::{Member, Node, Tree, too_large};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::source::{FileId, MAX_BYTES, Sources, Span};

/// Parses a file of `sources` as TOML. Stops at the first fault and reports it.
pub fn parse_toml(sources: &Sources, file: FileId, diagnostics: &mut Diagnostics) -> Option<Node> {
    let text = sources.get(file).text.as_str();
    if text.len() > MAX_BYTES {
        diagnostics.push(too_large(&sources.get(file).path));
        return None;
    }
    match Document::parse(text) {
        Ok(document) => {
            let reader = Reader { text };
            let range = 0..text.len() as u32;
            let root = reader.table(document.as_table(), range, 0);
            if root.is_none() {
                let place = Span { file, range: 0..0 };
                let message = format!("tables are nested deeper than {MAX_DEPTH} levels");
                diagnostics.push(Diagnostic::new(Code::TooDeep, message).at(place, "in this file"));
            }
            root
        }
        Err(error) => {
            let range = error.span().unwrap_or_default();
            let place = Span { file, range: range.start as u32..range.end as u32 };
            let message = error.message().lines().next().unwrap_or_default();
            diagnostics.push(Diagnostic::new(Code::TomlSyntax, format!("not valid TOML: {message}")).at(place, "here"));
            None
        }
    }
}

struct Reader<'a> {
    text: &'a str,
}

impl Reader<'_> {
    /// Converts a table. Returns `None` if it is nested too deeply. `place` is its position where the document has none.
    fn table(&self, table: &dyn TableLike, place: Range<u32>, depth: usize) -> Option<Node> {
        if depth >= MAX_DEPTH {
            return None;
        }
        let mut members = Vec::new();
        for (name, item) in table.iter() {
            let key_range = table.get_key_value(name).and_then(|(key, _)| Key::span(key)).map_or(place.clone(), span);
            let value = self.item(item, key_range.clone(), depth + 1)?;
            members.push(Member { key: name.into(), key_range, value });
        }
        Some(Node { range: place, value: Tree::Object(members) })
    }

    fn item(&self, item: &Item, place: Range<u32>, depth: usize) -> Option<Node> {
        let range = item.span().map_or(place, span);
        match item {
            Item::None => Some(Node { range, value: Tree::Null }),
            Item::Value(value) => self.value(value, range, depth),
            Item::Table(table) => self.table(table, range, depth),
            Item::ArrayOfTables(tables) => {
                let elements = tables.iter().map(|table| self.table(table, table.span().map_or(range.clone(), span), depth + 1));
                let elements = elements.collect::<Option<Vec<Node>>>()?;
                Some(Node { range, value: Tree::Array(elements) })
            }
        }
    }

    fn value(&self, value: &Value, place: Range<u32>, depth: usize) -> Option<Node> {
        if depth >= MAX_DEPTH {
            return None;
        }
        let range = value.span().map_or(place, span);
        let written = || self.text.get(range.start as usize..range.end as usize).unwrap_or_default().trim();
        let tree = match value {
            Value::String(text) => Tree::String(text.value().as_str().into()),
            Value::Boolean(value) => Tree::Bool(*value.value()),
            Value::Integer(number) => Tree::Number(number.value().to_string().into()),
            Value::Float(number) if number.value().is_finite() => Tree::Number(number.value().to_string().into()),
            Value::Float(_) | Value::Datetime(_) => Tree::String(written().into()),
            Value::Array(elements) => {
                let elements = elements.iter().map(|element| self.value(element, range.clone(), depth + 1));
                Tree::Array(elements.collect::<Option<Vec<Node>>>()?)
            }
            Value::InlineTable(table) => return self.table(table, range, depth),
        };
        Some(Node { range, value: tree })
    }
}

fn span(range: Range<usize>) -> Range<u32> {
    range.start as u32..range.end as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Json;

    fn read(text: &str) -> (Option<Node>, Diagnostics) {
        let mut sources = Sources::default();
        let mut diagnostics = Diagnostics::default();
        let file = sources.add("a.toml", text);
        (parse_toml(&sources, file, &mut diagnostics), diagnostics)
    }

    #[test]
    fn toml_is_read_as_json_with_equal_values() {
        let text =
            "a = 1_000\nb.c = 'x'\n[t.u]\nl = [1, \"two\", { k = true }]\nd = 2026-01-02\n[[s]]\nf = 1.5\n[[s]]\nf = inf\n";
        let (node, diagnostics) = read(text);
        assert_eq!(diagnostics.worst(), None);
        let json =
            r#"{"a":1000,"b":{"c":"x"},"s":[{"f":1.5},{"f":"inf"}],"t":{"u":{"d":"2026-01-02","l":[1,"two",{"k":true}]}}}"#;
        assert_eq!(node.map(|node| Json::from(&node).canonical()).as_deref(), Some(json));
    }

    #[test]
    fn positions_are_byte_offsets() {
        let text = "ä = 1\n".replace('ä', "\"ä\"") + "[mcp.one]\ncommand = 'größe'\n";
        let (node, _) = read(&text);
        let node = node.expect("it can be read");
        let command = node.get("mcp").and_then(|n| n.get("one")).and_then(|n| n.get("command")).expect("it is there");
        assert_eq!(&text[command.range.start as usize..command.range.end as usize], "'größe'");
    }

    #[test]
    fn fault_is_reported_at_its_position() {
        let (node, diagnostics) = read("a = 1\nb = \n");
        assert!(node.is_none());
        assert_eq!(diagnostics.sorted().first().map(|d| d.code), Some(Code::TomlSyntax));
    }
}
