//! Checks the findings about a text, and renders them in every format.

use ptc_compiler::diag::render::{self, Style};
use ptc_compiler::diag::{Diagnostics, Severity};
use ptc_compiler::source::{FileId, Sources};

pub fn check(sources: &Sources, file: FileId, diagnostics: &Diagnostics) {
    let text = &sources.get(file).text;
    for finding in diagnostics.sorted() {
        assert!(!finding.message.is_empty());
        assert!(finding.primary.is_some() || finding.severity != Severity::Error, "without a position: {finding:?}");
        for label in finding.primary.iter().chain(&finding.secondary) {
            let (start, end) = (label.place.range.start as usize, label.place.range.end as usize);
            assert!(label.place.file == file && text.get(start..end).is_some(), "outside of the text: {finding:?}");
        }
    }
    for masked in diagnostics.masked() {
        assert!(text.get(masked.range.start as usize..masked.range.end as usize).is_some(), "outside of the text: {masked:?}");
    }
    let _ = render::full(sources, diagnostics, Style::Plain);
    let _ = render::short(sources, diagnostics, Style::Plain);
    let _ = render::summary(diagnostics, Style::Plain);
    for line in render::json_lines(sources, diagnostics).lines() {
        serde_json::from_str::<serde_json::Value>(line).expect("a line is JSON");
    }
}
