//! Runs `operations DOCUMENT`, which lists the operations that can be included, and why the others cannot.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use ptc_catalog::effect::is_safe;
use ptc_compiler::diag::Diagnostics;
use ptc_compiler::diag::text::on_one_line;
use ptc_compiler::files;
use ptc_compiler::openapi::{self, Listed, Text, Wanted};
use ptc_compiler::source::Sources;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::command_args::Operations;
use crate::console::Console;
use crate::shared_args::Format;
use crate::{Failure, Status, load};

/// Lists the operations of a document that pass the filters.
pub(crate) fn run(args: &Operations, console: &Console) -> Result<Status, Failure> {
    let mut sources = Sources::default();
    let mut diagnostics = Diagnostics::default();
    let text = Text::new(args.document.display().to_string(), load::read_text(Path::new(&args.document))?);
    let path = text.path.clone();
    let mut reader = |wanted: &Wanted<'_>| files::read(Path::new("."), wanted);
    let mut part = |name: &str, max_bytes| openapi::read_part(&mut reader, &path, name, max_bytes);
    let listed = openapi::list(&mut sources, text, args.base_url.as_deref(), &mut diagnostics, &mut part);
    let Some(listed) = listed else {
        return Ok(console.findings(&sources, &diagnostics).at_least_findings());
    };
    let all = listed.len();
    let shown: Vec<&Listed> = listed.iter().filter(|operation| passes(args, operation)).collect();
    let text = match args.messages.format() {
        format if format.is_for_tools() => shown.iter().map(|operation| line(&sources, operation)).collect(),
        format => table(&shown, format == Format::Full),
    };
    console.data(&text);
    if !args.messages.format().is_for_tools() {
        let usable = shown.iter().filter(|operation| operation.outcome.is_ok()).count();
        console.message(&format!("{usable} of {} shown can be included; {all} in the document\n", shown.len()));
    }
    Ok(Status::Clean)
}

fn passes(args: &Operations, operation: &Listed) -> bool {
    let has = |text: &str, part: &str| text.to_lowercase().contains(&part.to_lowercase());
    let named = |part: &String| {
        let id = operation.id.as_deref().unwrap_or("");
        has(id, part) || has(&operation.path, part) || has(&operation.summary, part)
    };
    (is_safe(&operation.method) || args.all_methods)
        && args.tag.as_ref().is_none_or(|tag| operation.tags.contains(tag))
        && args.path.as_ref().is_none_or(|prefix| operation.path.starts_with(prefix.as_str()))
        && args.matching.as_ref().is_none_or(named)
        && !(args.refused && operation.outcome.is_ok())
        && !(args.usable && operation.outcome.is_err())
}

/// Formats one line for each operation: the entry for `include_operations`, and its tool name or the reasons against it.
fn table(operations: &[&Listed], with_summary: bool) -> String {
    let entry = |operation: &Listed| {
        let entry = operation.id.clone().unwrap_or_else(|| format!("{} {}", operation.method, operation.path));
        on_one_line(&entry).into_owned()
    };
    let width = operations.iter().map(|operation| entry(operation).chars().count()).max().unwrap_or(0).min(48);
    let mut text = String::new();
    for operation in operations {
        // Writing to a string cannot fail.
        let _ = write!(text, "{:<width$}  ", entry(operation));
        match &operation.outcome {
            Ok(name) => {
                let _ = write!(text, "as {name}");
                if !operation.needs.is_empty() {
                    let _ = write!(text, " (needs {})", on_one_line(&operation.needs.join("; ")));
                }
                if with_summary && !operation.summary.is_empty() {
                    let _ = write!(text, ": {}", on_one_line(&operation.summary));
                }
            }
            Err(faults) => {
                let told: Vec<String> = faults.iter().map(|fault| format!("{} {}", fault.code.name(), fault.message)).collect();
                let _ = write!(text, "no: {}", on_one_line(&told.join("; ")));
            }
        }
        text.push('\n');
    }
    text
}

/// An operation of a document: a line of `operations --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct OperationLine<'a> {
    method: &'a str,
    path: &'a str,
    #[serde(rename = "operationId")]
    operation_id: Option<&'a str>,
    tags: &'a [String],
    summary: &'a str,
    /// The name of the tool, if the operation can be included.
    name: Option<&'a str>,
    /// What the config must contain to include the operation.
    needs: &'a [String],
    /// The line of the operation in the document, from 1.
    line: usize,
    /// How its list is paged, in the form of `paging` in the config.
    paging: Option<BTreeMap<&'static str, String>>,
    /// Why the operation cannot be included.
    faults: Vec<OperationFault<'a>>,
}

/// A reason why an operation cannot be included.
#[derive(Debug, Serialize, JsonSchema)]
struct OperationFault<'a> {
    code: &'static str,
    message: &'a str,
    line: Option<usize>,
    column: Option<usize>,
}

fn line(sources: &Sources, operation: &Listed) -> String {
    let faults = operation.outcome.as_ref().err().into_iter().flatten().map(|fault| {
        let at = fault.primary.as_ref().map(|label| sources.position(label.place.file, label.place.range.start));
        OperationFault { code: fault.code.name(), message: &fault.message, line: at.map(|p| p.0), column: at.map(|p| p.1) }
    });
    let line = OperationLine {
        method: &operation.method,
        path: &operation.path,
        operation_id: operation.id.as_deref(),
        tags: &operation.tags,
        summary: &operation.summary,
        name: operation.outcome.as_deref().ok(),
        needs: &operation.needs,
        line: sources.position(operation.place.file, operation.place.range.start).0,
        paging: operation.paging.as_ref().map(|paging| paging.members().into_iter().collect()),
        faults: faults.collect(),
    };
    format!("{}\n", json!(line))
}
