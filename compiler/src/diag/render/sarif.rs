//! The rendering for code scanning: one SARIF 2.1.0 log.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::diag::{Code, Diagnostic, Diagnostics, Label, Severity};
use crate::source::Sources;

/// Renders all diagnostics as an indented log with one run. It lists only rules that have results, and no source text.
pub fn sarif(sources: &Sources, diagnostics: &Diagnostics) -> String {
    let found = diagnostics.sorted();
    let codes: BTreeSet<Code> = found.iter().map(|diagnostic| diagnostic.code).collect();
    let rules: Vec<Value> = codes
        .iter()
        .map(|code| {
            json!({
                "id": code.name(),
                "shortDescription": { "text": code.title() },
                "defaultConfiguration": { "level": level(code.severity()) },
            })
        })
        .collect();
    let results: Vec<Value> = found
        .iter()
        .map(|diagnostic| {
            let mut text = diagnostic.message.clone();
            for hint in &diagnostic.hints {
                text.push_str("\nhelp: ");
                text.push_str(hint);
            }
            json!({
                "ruleId": diagnostic.code.name(),
                "level": level(diagnostic.severity),
                "message": { "text": text },
                "locations": locations(sources, diagnostic),
                "properties": properties(diagnostic),
                "relatedLocations": diagnostic.secondary.iter().map(|label| location(sources, label)).collect::<Vec<_>>(),
            })
        })
        .collect();
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "ptc-compile", "semanticVersion": crate::VERSION, "rules": rules } },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    });
    format!("{log:#}\n")
}

/// Returns the place of a diagnostic, with the tool or operation that it is about as a logical location.
fn locations(sources: &Sources, diagnostic: &Diagnostic) -> Vec<Value> {
    let mut places: Vec<Value> = diagnostic.primary.iter().map(|label| location(sources, label)).collect();
    let subject = &diagnostic.subject;
    let logical = subject.tool.as_ref().or(subject.operation.as_ref()).zip(subject.upstream.as_ref()).map(
        |(name, upstream)| json!([{ "name": name, "fullyQualifiedName": format!("{upstream}/{name}"), "kind": "function" }]),
    );
    if let (Some(logical), Some(Value::Object(place))) = (logical, places.first_mut()) {
        place.insert("logicalLocations".to_owned(), logical);
    }
    places
}

/// Returns the severity, and what the diagnostic is about, as members of their own.
fn properties(diagnostic: &Diagnostic) -> Value {
    let mut members: Map<String, Value> =
        diagnostic.subject.fields().map(|(name, value)| (name.to_owned(), Value::from(value))).collect();
    members.insert("severity".to_owned(), Value::from(diagnostic.severity.name()));
    Value::Object(members)
}

fn level(severity: Severity) -> &'static str {
    severity.name()
}

fn location(sources: &Sources, label: &Label) -> Value {
    let place = &label.place;
    let (line, column) = sources.position(place.file, place.range.start);
    let (end_line, end_column) = sources.position(place.file, place.range.end);
    let mut location = json!({
        "physicalLocation": {
            "artifactLocation": { "uri": uri(&sources.get(place.file).path) },
            "region": { "startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column },
        },
    });
    if let (false, Value::Object(location)) = (label.text.is_empty(), &mut location) {
        location.insert("message".to_owned(), json!({ "text": label.text }));
    }
    location
}

/// Converts a path into a URI reference relative to the working directory of the run.
fn uri(path: &str) -> String {
    path.replace('\\', "/").replace('%', "%25").replace(' ', "%20").replace('#', "%23").replace('?', "%3F")
}
