//! The rendering for tools: one JSON object on each line.

use serde::Serialize;

use crate::diag::{Diagnostics, Label};
use crate::source::Sources;

/// One line of output.
#[derive(Serialize)]
struct Line<'a> {
    code: &'static str,
    severity: &'static str,
    message: &'a str,
    title: &'static str,
    /// The primary place; omitted if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<At<'a>>,
    related: Vec<At<'a>>,
    hints: &'a [String],
}

/// A place. Lines and columns start at 1, columns count characters, and the end is exclusive. Byte offsets start at 0.
#[derive(Serialize)]
struct At<'a> {
    path: &'a str,
    line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
    start_byte: u32,
    end_byte: u32,
    label: &'a str,
}

/// Renders each diagnostic as a JSON object on a line of its own, without source text.
pub fn json_lines(sources: &Sources, diagnostics: &Diagnostics) -> String {
    let mut out = String::new();
    for diagnostic in diagnostics.sorted() {
        let line = Line {
            code: diagnostic.code.name(),
            severity: diagnostic.severity.name(),
            message: &diagnostic.message,
            title: diagnostic.code.title(),
            at: diagnostic.primary.as_ref().map(|label| at(sources, label)),
            related: diagnostic.secondary.iter().map(|label| at(sources, label)).collect(),
            hints: &diagnostic.hints,
        };
        if let Ok(text) = serde_json::to_string(&line) {
            out.push_str(&text);
            out.push('\n');
        }
    }
    out
}

fn at<'a>(sources: &'a Sources, label: &'a Label) -> At<'a> {
    let place = &label.place;
    let (line, column) = sources.position(place.file, place.range.start);
    let (end_line, end_column) = sources.position(place.file, place.range.end);
    At {
        path: &sources.get(place.file).path,
        line,
        column,
        end_line,
        end_column,
        start_byte: place.range.start,
        end_byte: place.range.end,
        label: &label.text,
    }
}
