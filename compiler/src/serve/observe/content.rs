//! What texts hold: JSON, CSV or tables of Markdown.
//!
//! Programs still receive a text. Only its description says what it holds.

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

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
    Csv,
    Markdown,
}

impl MediaType {
    const ALL: [MediaType; 3] = [MediaType::Json, MediaType::Csv, MediaType::Markdown];

    pub(super) fn name(self) -> &'static str {
        match self {
            MediaType::Json => "application/json",
            MediaType::Csv => "text/csv",
            MediaType::Markdown => "text/markdown",
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
        if text.trim_start().starts_with(['{', '[']) {
            return Some(found(MediaType::Json, Shape::within(&Json::parse(text)?, depth - 1)));
        }
        let markdown = markdown_headings(text).map(|columns| table(MediaType::Markdown, columns));
        markdown.or_else(|| csv_headings(text).map(|columns| table(MediaType::Csv, columns)))
    }

    /// Returns the content that both have. `None` if they have different kinds.
    pub(super) fn merged(mut self, other: Content) -> Option<Content> {
        if self.media_type != other.media_type {
            return None;
        }
        self.shape.merge(*other.shape);
        Some(self)
    }
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

/// Returns the headings of the first table of Markdown in a text, with the extension for tables of GitHub.
fn markdown_headings(text: &str) -> Option<Vec<String>> {
    if !text.contains('|') || !text.contains('-') {
        return None;
    }
    let mut headings: Vec<String> = Vec::new();
    let mut is_inside = false;
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::TableHead) => is_inside = true,
            Event::Start(Tag::TableCell) if is_inside => headings.push(String::new()),
            Event::Text(part) | Event::Code(part) if is_inside => {
                if let Some(last) = headings.last_mut() {
                    last.push_str(&part);
                }
            }
            Event::End(TagEnd::TableHead) => break,
            _ => {}
        }
    }
    named(headings)
}

/// Returns the headings of CSV (RFC 4180, also with tabs or semicolons). A header is recognised as by the Sniffer of Python: in a
/// column, all rows below it have a digit and it has none.
fn csv_headings(text: &str) -> Option<Vec<String>> {
    [b',', b'\t', b';'].into_iter().find_map(|delimiter| {
        let rows = csv_rows(text, delimiter)?;
        let (headings, rows) = rows.split_first()?;
        let has_digit = |cell: &str| cell.contains(|c: char| c.is_ascii_digit());
        let is_of_numbers = |(at, heading): (usize, &String)| {
            !has_digit(heading) && !rows.is_empty() && rows.iter().all(|row| row.get(at).is_some_and(|cell| has_digit(cell)))
        };
        let has_header = headings.iter().enumerate().any(is_of_numbers);
        has_header.then(|| named(headings.clone())).flatten()
    })
}

/// Returns the rows of a text. `None` if their numbers of cells differ, or if there is only one column.
fn csv_rows(text: &str, delimiter: u8) -> Option<Vec<Vec<String>>> {
    let first = text.lines().next()?;
    // Most texts are not CSV, which this finds sooner.
    if !first.as_bytes().contains(&delimiter) {
        return None;
    }
    let mut reader: Reader = ReaderBuilder::new().delimiter(delimiter).build();
    // No cell is longer than the text, and the reader writes nothing else.
    let mut cells = vec![0; text.len()];
    let mut ends = [0; MAX_COLUMNS];
    let mut rows: Vec<Vec<String>> = Vec::new();
    let (mut input, mut written, mut ended) = (text.as_bytes(), 0, 0);
    loop {
        let (result, read, wrote, count) = reader.read_record(input, cells.get_mut(written..)?, ends.get_mut(ended..)?);
        (input, written, ended) = (input.get(read..)?, written + wrote, ended + count);
        match result {
            // An empty input ends the last record.
            ReadRecordResult::InputEmpty => {}
            ReadRecordResult::Record => {
                let mut start = 0;
                let row = ends.get(..ended)?.iter().map(|end| {
                    let cell = cells.get(start..*end).map(String::from_utf8_lossy);
                    start = *end;
                    cell.unwrap_or_default().into_owned()
                });
                let row: Vec<String> = row.collect();
                if row.len() < 2 || rows.first().is_some_and(|first| first.len() != row.len()) {
                    return None;
                }
                rows.push(row);
                (written, ended) = (0, 0);
            }
            ReadRecordResult::OutputFull | ReadRecordResult::OutputEndsFull => return None,
            ReadRecordResult::End => return Some(rows),
        }
    }
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
        assert_eq!(described("Here:\n\n| id | Name |\n|---|:--|\n| 1 | Ada |\n"), Some(rows("text/markdown", &["Name", "id"])));
        for other in [
            "",
            "{ not JSON",
            "Hello, Ada\nand, Ken",
            "Ada,Lovelace\nAlan,Turing\n",
            "id,name\n1,Ada,more\n",
            "id,ann@example.com\n1,2\n",
            "a | b\nc - d",
        ] {
            assert_eq!(described(other), None, "{other}");
        }
    }
}
