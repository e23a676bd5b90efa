//! Generates texts that match a regular expression. `regex-syntax` parses it; the caller checks the text against the schema.

use fastrand::Rng;
use regex_syntax::hir::{Class, Hir, HirKind};

/// Repetitions beyond the minimum.
const MAX_MORE: u32 = 3;
/// Maximum characters of a text.
const MAX_CHARS: usize = 10_000;

/// Returns a text that matches the pattern. `None` if its syntax is not that of `regex`, or if it matches no text that is made so.
pub(crate) fn text(pattern: &str, rng: &mut Rng) -> Option<String> {
    // Patterns are those of ECMA-262, whose classes differ.
    let translated = ptc_runtime::schema::pattern_of(pattern).ok()?;
    let hir = regex_syntax::parse(translated.as_str()).ok()?;
    let mut out = String::new();
    append(&hir, rng, &mut out)?;
    Some(out)
}

fn append(hir: &Hir, rng: &mut Rng, out: &mut String) -> Option<()> {
    if out.len() > MAX_CHARS {
        return None;
    }
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => out.push_str(std::str::from_utf8(&literal.0).ok()?),
        HirKind::Class(Class::Unicode(class)) => {
            let ranges = class.ranges();
            let ascii: Vec<(char, char)> = ranges
                .iter()
                .filter(|range| range.start() <= '~')
                .map(|range| (range.start().max(' '), range.end().min('~')))
                .collect();
            let all: Vec<(char, char)> = ranges.iter().map(|range| (range.start(), range.end())).collect();
            // Texts beyond ASCII are some of the texts, where the class has them.
            let choices = if ascii.is_empty() || rng.u8(..4) == 0 { &all } else { &ascii };
            let (start, end) = choices.get(rng.usize(..choices.len().max(1)))?;
            out.push(if start <= end { rng.char(*start..=*end) } else { *end });
        }
        HirKind::Class(Class::Bytes(class)) => {
            let range = class.ranges().first()?;
            out.push(char::from(range.start()));
        }
        HirKind::Repetition(repetition) => {
            let most = repetition.max.unwrap_or(u32::MAX).min(repetition.min.saturating_add(MAX_MORE));
            for _ in 0..rng.u32(repetition.min..=most.max(repetition.min)) {
                append(&repetition.sub, rng, out)?;
            }
        }
        HirKind::Capture(capture) => append(&capture.sub, rng, out)?,
        HirKind::Concat(parts) => parts.iter().try_for_each(|part| append(part, rng, out))?,
        HirKind::Alternation(parts) => append(parts.get(rng.usize(..parts.len().max(1)))?, rng, out)?,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_match_their_pattern() {
        let mut rng = Rng::with_seed(1);
        for pattern in ["^[A-Z]{2}-\\d{3}$", "a|bc+", "^\\p{L}+$", "x*(?:yz)?"] {
            let is_match = ptc_runtime::schema::pattern_of(pattern).expect("a pattern");
            for _ in 0..50 {
                let text = text(pattern, &mut rng).expect("a text");
                assert!(is_match.is_match(&text), "{pattern} {text}");
            }
        }
        assert_eq!(text("(?<!a)b", &mut rng), None);
    }
}
