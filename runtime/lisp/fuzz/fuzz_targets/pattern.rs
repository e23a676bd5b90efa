//! Compiles arbitrary patterns of Java's syntax. Each one is translated or rejected, and a translated pattern matches in bounded
//! time.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ptc_lisp::pattern::Pattern;

fuzz_target!(|text: &str| {
    let (source, subject) = text.split_once('\n').unwrap_or((text, "aab 12"));
    let Ok(pattern) = Pattern::compile(source) else { return };
    let mut at = 0;
    while let Ok(Some((start, end))) = pattern.range_at(subject, at, &mut || true) {
        assert!(start >= at && end >= start && subject.is_char_boundary(start) && subject.is_char_boundary(end));
        // Advances one character after an empty match.
        at = if end > start { end } else { end + subject.get(end..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8) };
        if at > subject.len() {
            break;
        }
    }
    let _ = pattern.matches(subject, &mut || true);
    let _ = pattern.find_at(subject, 0, &mut || true);
});
