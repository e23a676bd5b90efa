//! The rendering for tools: one JSON object on each line.

use serde::Serialize;

use crate::diag::{Diagnostics, Label};
use crate::source::Sources;

/// A finding: a line of `--format json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Finding<'a> {
    /// The code, which `ptc-compile explain` explains.
    code: &'static str,
    /// `error`, `warning` or `note`.
    severity: &'static str,
    /// What is wrong.
    message: &'a str,
    /// The title of the code.
    title: &'static str,
    /// The upstream that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream: Option<&'a str>,
    /// The exposed name of the tool that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<&'a str>,
    /// The operation of an OpenAPI document that it is about: its id, or its method and path.
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<&'a str>,
    /// The change of a pinned tool or upstream in words, without the name of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<&'a str>,
    /// The primary position. Absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<At<'a>>,
    /// Further positions.
    related: Vec<At<'a>>,
    /// Advice, each in a sentence.
    hints: &'a [String],
}

/// A position. Lines and columns start at 1, columns count characters, and the end is exclusive. Byte offsets start at 0.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
struct At<'a> {
    /// The file as it was named on the command line or in the config.
    path: &'a str,
    line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
    start_byte: u32,
    end_byte: u32,
    /// What is at this position. May be empty.
    label: &'a str,
}

/// Renders each diagnostic as a JSON object on a line of its own, without source text.
pub fn json_lines(sources: &Sources, diagnostics: &Diagnostics) -> String {
    let mut out = String::new();
    for diagnostic in diagnostics.sorted() {
        let line = Finding {
            code: diagnostic.code.name(),
            severity: diagnostic.severity.name(),
            message: &diagnostic.message,
            title: diagnostic.code.title(),
            upstream: diagnostic.subject.upstream.as_deref(),
            tool: diagnostic.subject.tool.as_deref(),
            operation: diagnostic.subject.operation.as_deref(),
            change: diagnostic.subject.change.as_deref(),
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
