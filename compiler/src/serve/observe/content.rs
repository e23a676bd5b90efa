//! What texts hold: JSON, lines of JSON, CSV, or a table or a block of JSON in Markdown.
//!
//! Programs still receive a text. Only its description says what it holds. Prose must not be described as data, and data must not
//! be taken for names, so that a text whose form is doubtful is only a text.

mod csv;
mod markdown;

use super::names;
use super::shape::{Member, Object, Shape};
use crate::json::Json;

/// Maximum size in bytes of a text that is examined.
const MAX_BYTES: usize = 1 << 20;

/// Maximum number of columns of a table.
const MAX_COLUMNS: usize = 100;

/// The content of texts, with the shape of what they hold. A table is a list of objects by the headings of its columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) media_type: MediaType,
    pub(super) shape: Box<Shape>,
}

/// The media type of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MediaType {
    Json,
    /// An object on each line, also known as NDJSON.
    JsonLines,
    Csv,
    /// A table of Markdown.
    Markdown,
    /// JSON in the only code block of Markdown that a fence encloses.
    MarkdownJson,
}

impl MediaType {
    const ALL: [MediaType; 5] =
        [MediaType::Json, MediaType::JsonLines, MediaType::Csv, MediaType::Markdown, MediaType::MarkdownJson];

    pub(super) fn name(self) -> &'static str {
        match self {
            MediaType::Json => "application/json",
            MediaType::JsonLines => "application/x-ndjson",
            MediaType::Csv => "text/csv",
            MediaType::Markdown => "text/markdown",
            MediaType::MarkdownJson => "text/markdown; fence=json",
        }
    }

    pub(super) fn find(name: &str) -> Option<MediaType> {
        MediaType::ALL.into_iter().find(|known| known.name() == name)
    }
}

impl Content {
    /// Returns the content of a text, whose shape has at most `depth` levels. `None` for other texts.
    pub(super) fn of(text: &str, depth: usize) -> Option<Content> {
        if text.len() > MAX_BYTES || depth == 0 {
            return None;
        }
        let found = |media_type, shape| Content { media_type, shape: Box::new(shape) };
        let table = |media_type, columns: Vec<String>| found(media_type, table(&columns));
        let json = |media_type, value: &Json| found(media_type, Shape::within(value, depth - 1));
        let begin = text.trim_start();
        if begin.starts_with(['{', '['])
            && let Some(value) = Json::parse(text)
        {
            return Some(json(MediaType::Json, &value));
        }
        if begin.starts_with('{')
            && let Some(values) = json_lines(text)
        {
            return Some(json(MediaType::JsonLines, &values));
        }
        match markdown::block(text) {
            Some(markdown::Block::Table(columns)) => Some(table(MediaType::Markdown, columns)),
            Some(markdown::Block::Json(value)) => Some(json(MediaType::MarkdownJson, &value)),
            None => csv::headings(text).map(|columns| table(MediaType::Csv, columns)),
        }
    }

    /// Returns the content that both have. `None` if they have different kinds.
    pub(super) fn merged(self, other: Content) -> Option<Content> {
        let (mut all, other) = match (self.media_type, other.media_type) {
            (MediaType::Json, MediaType::JsonLines) => (self.into_lines()?, other),
            (MediaType::JsonLines, MediaType::Json) => (self, other.into_lines()?),
            (one, another) if one == another => (self, other),
            _ => return None,
        };
        all.shape.merge(*other.shape);
        Some(all)
    }

    /// Returns texts of one object each as texts with lines: a text with one line is JSON too. `None` for other values.
    fn into_lines(self) -> Option<Content> {
        let is_object = *self.shape == Shape { object: self.shape.object.clone(), ..Shape::default() };
        let lines = Shape { list: Some(self.shape), ..Shape::default() };
        is_object.then(|| Content { media_type: MediaType::JsonLines, shape: Box::new(lines) })
    }
}

/// Returns the objects on the lines of a text. `None` if there are fewer than two, or anything else.
fn json_lines(text: &str) -> Option<Json> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let objects = lines.map(|line| Json::parse(line).filter(|value| matches!(value, Json::Object(_))));
    let objects = objects.collect::<Option<Vec<Json>>>()?;
    (objects.len() >= 2).then_some(Json::Array(objects))
}

/// Returns the shape of a table.
fn table(columns: &[String]) -> Shape {
    let mut row = Object { seen: 1, ..Object::default() };
    for column in columns {
        row.members.insert(column.clone(), Member { seen: 1, shape: Shape::text() });
    }
    let rows = Shape { object: Some(row), ..Shape::default() };
    Shape { list: Some(Box::new(rows)), ..Shape::default() }
}

/// Returns the headings if they are different names.
fn named(headings: Vec<String>) -> Option<Vec<String>> {
    let is_new = |(at, heading): (usize, &String)| headings.get(..at).is_some_and(|before| !before.contains(heading));
    let are_names = headings.iter().all(|heading| names::is_name(heading)) && headings.iter().enumerate().all(is_new);
    (are_names && (2..=MAX_COLUMNS).contains(&headings.len())).then_some(headings)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(text: &str) -> Option<String> {
        let content = Content::of(text, 4)?;
        Some(format!("{} {}", content.media_type.name(), content.shape.to_schema().canonical()))
    }

    fn rows(media_type: &str, columns: &[&str]) -> String {
        let properties: Vec<String> = columns.iter().map(|name| format!(r#""{name}":{{"type":"string"}}"#)).collect();
        let required: Vec<String> = columns.iter().map(|name| format!(r#""{name}""#)).collect();
        let (properties, required) = (properties.join(","), required.join(","));
        format!(
            r#"{media_type} {{"items":{{"properties":{{{properties}}},"required":[{required}],"type":"object"}},"type":"array"}}"#
        )
    }

    #[test]
    fn json_csv_and_tables_are_recognised_in_texts() {
        assert_eq!(
            described(r#" {"a": 1} "#),
            Some(r#"application/json {"properties":{"a":{"type":"integer"}},"required":["a"],"type":"object"}"#.to_owned())
        );
        assert_eq!(described("id,name\n1,Ada\n2,\"Ken, T\"\n"), Some(rows("text/csv", &["id", "name"])));
        assert_eq!(described("id;size\r\n1;2\r\n"), Some(rows("text/csv", &["id", "size"])));
        assert_eq!(
            described("{\"a\": 1}\n\n{\"a\": 2, \"b\": [\"x\"]}\n"),
            Some(
                r#"application/x-ndjson {"items":{"properties":{"a":{"type":"integer"},"b":{"items":{"type":"string"},"type":"array"}},"required":["a"],"type":"object"},"type":"array"}"#.to_owned()
            )
        );
        let fenced = Some(
            r#"text/markdown; fence=json {"items":{"properties":{"a":{"type":"integer"}},"required":["a"],"type":"object"},"type":"array"}"#
                .to_owned(),
        );
        for text in [
            "```json\n[{\"a\": 1}]\n```",
            "Found 1:\n\n~~~ JSON\n[\n {\"a\": 1}\n]\n~~~\nDone.",
            "[1] of 1\n```\n[{\"a\": 1}]\n```\n",
        ] {
            assert_eq!(described(text), fenced, "{text}");
        }
        assert_eq!(described("Here:\n\n| id | Name |\n|---|:--|\n| 1 | Ada |\n"), Some(rows("text/markdown", &["Name", "id"])));
        for other in [
            "",
            "{ not JSON",
            "Hello, Ada\nand, Ken",
            "Ada,Lovelace\nAlan,Turing\n",
            "id,name\n1,Ada,more\n",
            "id,ann@example.com\n1,2\n",
            "a | b\nc - d",
            "{\"a\": 1}\nand more",
            "{\"a\": 1}\n[2]\n",
            "[1]\n[2]\n",
            // Documentation with an example, or with several, and a block that is not JSON.
            "```json\n{\"a\": 1}\n```\n\n```sh\nls\n```\n",
            "```json\n{not JSON}\n```\n",
            "```js\n[1]\n```\n",
            "```\n12\n```\n",
        ] {
            assert_eq!(described(other), None, "{other}");
        }
    }

    #[test]
    fn text_with_one_line_of_json_is_one_with_lines_too() {
        let [one, list, lines] =
            ["{\"a\": 1}", "[1]", "{\"a\": 2}\n{\"b\": 3}\n"].map(|text| Content::of(text, 4).expect("content"));
        let expected = lines.clone().merged(Content::of("{\"a\": 1}\n{\"a\": 1}\n", 4).expect("content")).expect("content");
        let both = one.clone().merged(lines.clone());
        assert_eq!(both, lines.clone().merged(one));
        assert_eq!(both.expect("content").shape.to_schema(), expected.shape.to_schema());
        assert_eq!(lines.clone().merged(list.clone()), None);
        assert_eq!(list.merged(lines), None);
    }
}
