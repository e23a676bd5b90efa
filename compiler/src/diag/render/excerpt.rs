//! Excerpts of a source text for display: a few lines around some labels, with secrets masked.

use std::ops::Range;

use crate::diag::{Diagnostics, Label, MASK};
use crate::source::{FileId, Sources, Span};

/// Labels with fewer than this many bytes between them share an excerpt.
const NEAR: u32 = 2_000;

/// Bytes of a line that are shown to each side of its labels. Minified documents are one line of megabytes.
const SIDE: usize = 400;

/// A run of whole lines, or the part around the labels if lines are very long.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Excerpt {
    /// The text to display.
    pub(super) text: String,
    /// Line number of its first line.
    pub(super) line: usize,
    /// Line and column of the first label in the source, both from 1.
    pub(super) start: (usize, usize),
    /// For each label of the group: its byte range in `text`, and its index.
    pub(super) labels: Vec<(Range<usize>, usize)>,
}

/// Returns one excerpt for each group of nearby `labels` (with their indices) in `file`. The group that holds the first label
/// comes first.
pub(super) fn excerpts(sources: &Sources, diagnostics: &Diagnostics, file: FileId, labels: &[(usize, &Label)]) -> Vec<Excerpt> {
    let mut ordered = labels.to_vec();
    ordered.sort_by_key(|(index, label)| (label.place.range.start, *index));
    let mut groups: Vec<Vec<(usize, &Label)>> = Vec::new();
    for entry in ordered {
        match groups.last_mut() {
            Some(group) if is_near(group, entry.1) => group.push(entry),
            _ => groups.push(vec![entry]),
        }
    }
    groups.sort_by_key(|group| group.iter().map(|(index, _)| *index).min());
    groups.iter().map(|group| excerpt(sources, diagnostics, file, group)).collect()
}

fn is_near(group: &[(usize, &Label)], label: &Label) -> bool {
    group.iter().any(|(_, earlier)| label.place.range.start.saturating_sub(earlier.place.range.end) < NEAR)
}

fn excerpt(sources: &Sources, diagnostics: &Diagnostics, file: FileId, group: &[(usize, &Label)]) -> Excerpt {
    let source = &sources.get(file).text;
    let first = group.iter().map(|(_, label)| label.place.range.start).min().unwrap_or(0);
    let last = group.iter().map(|(_, label)| first_line_end(source, &label.place.range)).max().unwrap_or(first as usize);
    let from = line_start(source, first as usize);
    let to = line_end(source, last);
    let secrets: Vec<&Span> = diagnostics.masked().into_iter().filter(|place| place.file == file).collect();
    let masked = Masked::new(source, from..to, &secrets);
    let main = group.iter().min_by_key(|(index, _)| *index).map_or(first, |(_, label)| label.place.range.start);
    Excerpt {
        labels: group
            .iter()
            .map(|(index, label)| {
                let start = masked.start_of(label.place.range.start as usize);
                // A label over several lines is cut to the first: the rest is clear from the source.
                let end = masked.position(first_line_end(source, &label.place.range));
                (start..end.max(start), *index)
            })
            .collect(),
        text: masked.text,
        line: sources.position(file, from as u32).0,
        start: sources.position(file, main),
    }
}

/// Returns the offset at which the first line of a range ends, or the end of the range if that is earlier.
fn first_line_end(source: &str, range: &Range<u32>) -> usize {
    let (start, end) = (range.start as usize, (range.end as usize).min(source.len()));
    match source.get(start..end).and_then(|text| text.find('\n')) {
        Some(at) => start + source.get(start..start + at).map_or(at, |line| line.trim_end().len()),
        None => end,
    }
}

/// Returns the start of a byte's line, or an offset at most [`SIDE`] before the byte.
fn line_start(source: &str, at: usize) -> usize {
    let start = source.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |found| found + 1);
    source.floor_char_boundary(start.max(at.saturating_sub(SIDE)))
}

/// Returns the end of a byte's line, or an offset at most [`SIDE`] after the byte.
fn line_end(source: &str, at: usize) -> usize {
    let end = source.get(at..).and_then(|after| after.find('\n')).map_or(source.len(), |found| at + found);
    source.floor_char_boundary(end.min(at.saturating_add(SIDE)))
}

/// A part of a source with its secrets replaced, and a mapping of source offsets to offsets in the result.
struct Masked {
    text: String,
    from: usize,
    to: usize,
    /// For each masked range: its bytes in the source, and the end of its mask in `text`.
    masks: Vec<(Range<usize>, usize)>,
}

impl Masked {
    /// Creates the masked text of `part`. `secrets` must be ordered by place.
    fn new(source: &str, part: Range<usize>, secrets: &[&Span]) -> Self {
        let mut masked = Masked { text: String::new(), from: part.start, to: part.end, masks: Vec::new() };
        let mut at = part.start;
        for secret in secrets {
            let start = source.floor_char_boundary((secret.range.start as usize).max(at));
            let end = source.floor_char_boundary((secret.range.end as usize).min(part.end));
            if start < end {
                masked.text.push_str(source.get(at..start).unwrap_or(""));
                masked.text.push_str(MASK);
                masked.masks.push((start..end, masked.text.len()));
                at = end;
            }
        }
        masked.text.push_str(source.get(at..part.end).unwrap_or(""));
        masked
    }

    /// Returns the offset in `text` of a byte of the source. A byte inside a secret maps to the end of its mask.
    fn position(&self, byte: usize) -> usize {
        let byte = byte.clamp(self.from, self.to);
        match self.masks.iter().rev().find(|(range, _)| byte > range.start) {
            None => byte - self.from,
            Some((range, end)) => end + byte.saturating_sub(range.end),
        }
    }

    /// Like [`Masked::position`], but for the first byte of a label: a byte inside a secret maps to the start of its mask.
    fn start_of(&self, byte: usize) -> usize {
        let inside = self.masks.iter().find(|(range, _)| range.contains(&byte));
        inside.map_or_else(|| self.position(byte), |(_, end)| end - MASK.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(file: FileId, range: Range<u32>) -> Label {
        Label { place: Span { file, range }, text: Box::default() }
    }

    #[test]
    fn secret_is_masked_and_labels_are_shifted() {
        let mut sources = Sources::default();
        let text = "{\n  \"value\": \"hunter2-ümlaut\", \"x\": 1\n}\n";
        let file = sources.add("c.json", text);
        let secret = text.find("hunter2").map(|at| at as u32).unwrap();
        let x = text.find("\"x\"").map(|at| at as u32).unwrap();
        let mut diagnostics = Diagnostics::default();
        diagnostics.mask(Span { file, range: secret..secret + "hunter2-ümlaut".len() as u32 });
        let label = label(file, x..x + 3);
        let found = excerpts(&sources, &diagnostics, file, &[(0, &label)]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].text, "  \"value\": \"********\", \"x\": 1");
        assert_eq!(&found[0].text[found[0].labels[0].0.clone()], "\"x\"");
        assert_eq!((found[0].line, found[0].start), (2, (2, 30)));
    }

    #[test]
    fn label_on_the_secret_itself_covers_the_mask() {
        let mut sources = Sources::default();
        let file = sources.add("c.json", "[\"secret\"]");
        let mut diagnostics = Diagnostics::default();
        diagnostics.mask(Span { file, range: 2..8 });
        let label = label(file, 1..9);
        let found = excerpts(&sources, &diagnostics, file, &[(0, &label)]);
        assert_eq!(&found[0].text[found[0].labels[0].0.clone()], "\"********\"");
    }

    #[test]
    fn only_the_labelled_part_of_a_long_line_is_shown() {
        let mut sources = Sources::default();
        let text = format!("[{}\"here\"{}]", "1,".repeat(100_000), ",1".repeat(100_000));
        let file = sources.add("long.json", text);
        let label = label(file, 200_001..200_007);
        let found = excerpts(&sources, &Diagnostics::default(), file, &[(0, &label)]);
        assert!(found[0].text.len() < 1_000);
        assert_eq!(&found[0].text[found[0].labels[0].0.clone()], "\"here\"");
        assert_eq!(found[0].start, (1, 200_002));
    }
}
