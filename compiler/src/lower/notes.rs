//! Renders notes on the members of a schema: a line for each, with its meaning and its valid values.
//!
//! ```text
//!   :limit - At most this many; 1 to 100; default 20
//!   :filter
//!     :since - format date-time
//!     :status - one of "available" "sold"
//! ```

use std::fmt::Write as _;
use std::ptr;

use super::summary::letters;
use super::text::{self, key, literal, one_line};
use crate::json::Json;
use crate::json_schema::Schema;

/// Maximum number of members of a nested object for which notes are shown.
const MAX_INNER: usize = 20;

/// Maximum number of members of an object two levels down. A larger object has no notes.
const MAX_INNERMOST: usize = 6;

/// Maximum number of schemas followed between a member and its inner members, or between a schema and one of its keywords.
const MAX_DEPTH: usize = 4;

/// Maximum length of one value, pattern or format in characters.
const MAX_VALUE: usize = 80;

/// Bounds that come from the integer types of programming languages, so that they say nothing about a value.
const TYPE_BOUNDS: [&str; 5] = ["9007199254740991", "2147483647", "-9007199254740991", "-2147483648", "9223372036854775807"];

/// Formats that add nothing to the type.
const PLAIN_FORMATS: [&str; 5] = ["int32", "int64", "float", "double", "string"];

/// Whether values are passed to a tool or returned by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Notes cover every rule that can make an argument invalid.
    Argument,
    /// Notes cover the meaning of a value and the listed values.
    Result,
}

impl Side {
    /// Returns the maximum size of all notes together in bytes.
    fn max_bytes(self) -> usize {
        match self {
            Side::Argument => 4_000,
            Side::Result => 1_600,
        }
    }

    /// Returns the levels of detail, the most detailed first. The first that fits is used.
    fn details(self) -> [Detail; 3] {
        match self {
            Side::Argument => [
                Detail { prose: text::ARGUMENT, values: 600 },
                Detail { prose: 80, values: 300 },
                Detail { prose: 0, values: 120 },
            ],
            Side::Result => {
                [Detail { prose: 120, values: 200 }, Detail { prose: 50, values: 120 }, Detail { prose: 0, values: 120 }]
            }
        }
    }
}

/// The level of detail for one member.
#[derive(Debug, Clone, Copy)]
struct Detail {
    /// Maximum length of its description in characters; 0 leaves it out.
    prose: usize,
    /// Maximum size of its `enum` in bytes.
    values: usize,
}

/// Returns the notes on members, each preceded by a line break. Members without a note are left out. If the notes exceed the
/// maximum size of the side, texts become shorter, and then the last members are replaced by their number.
pub fn notes(schema: &Schema<'_>, members: &[(&str, &Json)], side: Side) -> String {
    let mut entries = Vec::new();
    for detail in side.details() {
        let notes = Notes { schema, side, detail };
        entries = members.iter().filter_map(|(name, node)| notes.entry(name, node, &mut Vec::new())).collect();
        if entries.iter().map(String::len).sum::<usize>() <= side.max_bytes() {
            return entries.concat();
        }
    }
    let mut bytes = 0;
    let fit = entries.iter().take_while(|entry| {
        bytes += entry.len();
        bytes <= side.max_bytes()
    });
    let fit = fit.count();
    let mut out = entries.get(..fit).unwrap_or_default().concat();
    let _ = write!(out, "\n  and {} more", entries.len() - fit);
    out
}

/// Returns the members of an object, of the items of a list, or of the values of a map.
pub fn inner_members<'s>(schema: &Schema<'s>, node: &'s Json) -> Vec<(&'s str, &'s Json)> {
    let mut at = node;
    for _ in 0..=MAX_DEPTH {
        let members = schema.members(at);
        if !members.properties.is_empty() {
            return members.properties;
        }
        let inner = ["items", "additionalProperties"].into_iter().find_map(|key| keyword(schema, at, key, 0));
        let Some(inner) = inner else { break };
        at = inner;
    }
    Vec::new()
}

/// Returns a keyword that applies to a value. The keyword is searched in the schema, in the schema that it refers to, in the
/// parts of its `allOf`, and in its only alternative beside `null`.
pub fn keyword<'s>(schema: &Schema<'s>, node: &'s Json, key: &str, depth: usize) -> Option<&'s Json> {
    if depth > MAX_DEPTH || schema.is_exhausted() {
        return None;
    }
    let body = schema.body(node);
    schema.keyword(node, key).or_else(|| schema.keyword(body, key)).or_else(|| {
        let parts = body.get("allOf").map(Json::elements).unwrap_or_default();
        parts.iter().find_map(|part| keyword(schema, part, key, depth + 1))
    })
}

struct Notes<'n, 's> {
    schema: &'n Schema<'s>,
    side: Side,
    detail: Detail,
}

impl<'s> Notes<'_, 's> {
    /// Returns the line of one member and those of its inner members. `around` has the members that enclose it.
    fn entry(&self, name: &str, node: &'s Json, around: &mut Vec<&'s Json>) -> Option<String> {
        let body = self.schema.body(node);
        if self.schema.is_root(body) || around.iter().any(|outer| ptr::eq(*outer, body)) {
            return None;
        }
        let inner = if around.len() > 1 { Vec::new() } else { inner_members(self.schema, node) };
        let shown = if around.is_empty() || inner.len() <= MAX_INNERMOST { MAX_INNER } else { 0 };
        around.push(body);
        let mut below: String = inner.iter().take(shown).filter_map(|(name, node)| self.entry(name, node, around)).collect();
        around.pop();
        let indent = "  ".repeat(around.len() + 1);
        if !below.is_empty() && inner.len() > shown {
            let _ = write!(below, "\n{indent}  and {} more", inner.len() - shown);
        }
        let note = self.note(name, node);
        match (note.is_empty(), below.is_empty()) {
            (true, true) => None,
            (true, false) => Some(format!("\n{indent}{}{below}", key(name))),
            (false, _) => Some(format!("\n{indent}{} - {note}{below}", key(name))),
        }
    }

    /// Returns the meaning of a member, and its rules.
    fn note(&self, name: &str, node: &'s Json) -> String {
        let rules = self.rules(node, 0).join("; ");
        let prose = self.keyword(node, "description").and_then(Json::as_str);
        let prose = prose.filter(|prose| letters(prose) != letters(name)).map(|prose| one_line(prose, self.detail.prose));
        match prose.filter(|prose| !prose.is_empty() && prose != "…") {
            None => rules,
            Some(prose) if rules.is_empty() => prose,
            Some(prose) => format!("{}; {rules}", prose.trim_end_matches(['.', ';', ' '])),
        }
    }

    /// Returns the rules for a value beside its type, and its default.
    fn rules(&self, node: &'s Json, depth: usize) -> Vec<String> {
        let mut rules = Vec::new();
        rules.extend(self.values(node));
        let format = self.keyword(node, "format").and_then(Json::as_str).filter(|format| !PLAIN_FORMATS.contains(format));
        rules.extend(format.map(|format| format!("format {}", one_line(format, MAX_VALUE))));
        if self.side == Side::Argument {
            if let Some(pattern) = self.keyword(node, "pattern").and_then(Json::as_str) {
                rules.push(format!("matches {}", one_line(pattern, MAX_VALUE)));
            }
            rules.extend(self.bounds(node));
        }
        let items = self.keyword(node, "items").filter(|_| depth < MAX_DEPTH);
        let of_items = items.map(|items| self.rules(items, depth + 1)).unwrap_or_default();
        if !of_items.is_empty() {
            rules.push(format!("each {}", of_items.join(", ")));
        }
        let default = self.keyword(node, "default").filter(|value| self.side == Side::Argument && **value != Json::Null);
        rules.extend(default.map(|value| format!("default {}", one_line(&literal(value), MAX_VALUE))));
        rules
    }

    /// Returns the values of an `enum`, up to the maximum size.
    fn values(&self, node: &'s Json) -> Option<String> {
        let values = self.keyword(node, "enum")?.elements();
        let mut text = "one of".to_owned();
        for (at, value) in values.iter().enumerate() {
            let value = one_line(&literal(value), MAX_VALUE);
            if at > 0 && text.len() + value.len() > self.detail.values {
                let _ = write!(text, " and {} more", values.len() - at);
                break;
            }
            text.push(' ');
            text.push_str(&value);
        }
        (!values.is_empty()).then_some(text)
    }

    /// Returns the bounds of numbers, lengths and counts.
    fn bounds(&self, node: &'s Json) -> Vec<String> {
        let number = |key: &str| match self.keyword(node, key) {
            Some(Json::Number(text)) if !TYPE_BOUNDS.contains(&text.as_str()) => Some(text.as_str()),
            _ => None,
        };
        let mut bounds = Vec::new();
        let (mut least, mut most) = (number("minimum"), number("maximum"));
        let (mut above, mut below) = (number("exclusiveMinimum"), number("exclusiveMaximum"));
        // In draft 4, which OpenAPI 3.0 uses, a boolean declares that the bound itself is excluded.
        let is_left_out = |key: &str| self.keyword(node, key).and_then(Json::as_bool) == Some(true);
        if is_left_out("exclusiveMinimum") {
            above = least.take();
        }
        if is_left_out("exclusiveMaximum") {
            below = most.take();
        }
        bounds.extend(range(least, most, ""));
        bounds.extend(above.map(|bound| format!("greater than {bound}")));
        bounds.extend(below.map(|bound| format!("less than {bound}")));
        bounds.extend(number("multipleOf").filter(|step| *step != "1").map(|step| format!("a multiple of {step}")));
        bounds.extend(match (number("minLength"), number("maxLength")) {
            (Some("1"), None) => Some("not empty".to_owned()),
            (least, most) => range(least.filter(|least| *least != "0"), most, " characters"),
        });
        bounds.extend(match (number("minItems"), number("maxItems")) {
            (Some("1"), None) => Some("not empty".to_owned()),
            (least, most) => range(least.filter(|least| *least != "0"), most, " items"),
        });
        if self.keyword(node, "uniqueItems").and_then(Json::as_bool) == Some(true) {
            bounds.push("unique items".to_owned());
        }
        bounds
    }

    fn keyword(&self, node: &'s Json, key: &str) -> Option<&'s Json> {
        keyword(self.schema, node, key, 0)
    }
}

fn range(least: Option<&str>, most: Option<&str>, unit: &str) -> Option<String> {
    match (least, most) {
        (None, None) => None,
        (Some(least), None) => Some(format!("at least {least}{unit}")),
        (None, Some(most)) => Some(format!("at most {most}{unit}")),
        (Some(least), Some(most)) if least == most => Some(format!("exactly {least}{unit}")),
        (Some(least), Some(most)) => Some(format!("{least} to {most}{unit}")),
    }
}
