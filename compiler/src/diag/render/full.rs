//! The full rendering for people: message, place, source text with carets, hints.

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use super::Style;
use super::excerpt::{Excerpt, excerpts};
use crate::diag::text::on_one_line;
use crate::diag::{Diagnostic, Diagnostics, Label, Severity};
use crate::source::{FileId, Sources};

const WIDTH: usize = 120;

/// Renders all diagnostics, with an empty line after each. If the next diagnostic
/// has the same place and the same hints, they are left out.
pub fn full(sources: &Sources, diagnostics: &Diagnostics, style: Style) -> String {
    let renderer = match style {
        Style::Plain => Renderer::plain(),
        Style::Color => Renderer::styled(),
    }
    .term_width(WIDTH);
    let mut out = String::new();
    let sorted = diagnostics.sorted();
    for (at, diagnostic) in sorted.iter().enumerate() {
        let is_repeated =
            sorted.get(at + 1).is_some_and(|next| next.hints == diagnostic.hints && next.primary == diagnostic.primary);
        let hints = if is_repeated { &[] } else { diagnostic.hints.as_slice() };
        for line in
            renderer.render(&[group(sources, diagnostics, diagnostic, hints)]).lines().filter(|line| !is_repeated_origin(line))
        {
            out.push_str(line);
            out.push('\n');
        }
        out.push('\n');
    }
    out
}

/// Whether a line is the renderer's `:::`, which it puts before a snippet without a path. Each place is given by an origin of its
/// own, since the text of a snippet may be cut or masked and its line and column counts would be wrong.
fn is_repeated_origin(line: &str) -> bool {
    let mut bare = String::new();
    for (at, part) in line.split('\u{1b}').enumerate() {
        let text = if at == 0 { part } else { part.split_once('m').map_or("", |(_, text)| text) };
        bare.push_str(text);
    }
    bare.trim() == ":::"
}

fn group<'a>(sources: &'a Sources, diagnostics: &Diagnostics, diagnostic: &'a Diagnostic, hints: &'a [String]) -> Group<'a> {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let mut group = Group::with_title(level.primary_title(on_one_line(&diagnostic.message)).id(diagnostic.code.name()));
    let labels: Vec<&Label> = diagnostic.primary.iter().chain(&diagnostic.secondary).collect();
    let mut files: Vec<FileId> = Vec::new();
    for label in &labels {
        if !files.contains(&label.place.file) {
            files.push(label.place.file);
        }
    }
    for file in files {
        let here: Vec<(usize, &Label)> =
            labels.iter().enumerate().filter(|(_, label)| label.place.file == file).map(|(at, label)| (at, *label)).collect();
        for excerpt in excerpts(sources, diagnostics, file, &here) {
            let (line, column) = excerpt.start;
            group = group.element(Origin::path(sources.get(file).path.as_str()).line(line).char_column(column));
            group = group.element(snippet(excerpt, &labels, diagnostic.primary.is_some()));
        }
    }
    group.elements(hints.iter().map(|hint| Level::HELP.message(on_one_line(hint))))
}

fn snippet<'a>(excerpt: Excerpt, labels: &[&'a Label], has_primary: bool) -> Snippet<'a, Annotation<'a>> {
    let annotations: Vec<Annotation<'a>> = excerpt
        .labels
        .into_iter()
        .map(|(range, index)| {
            let kind = if has_primary && index == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
            let text = labels.get(index).map_or("", |label| &label.text);
            kind.span(range).label((!text.is_empty()).then(|| on_one_line(text)))
        })
        .collect();
    Snippet::source(excerpt.text).line_start(excerpt.line).annotations(annotations)
}
