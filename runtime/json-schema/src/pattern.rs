//! Patterns of JSON Schema.

use regex::{Regex, RegexBuilder};

/// Maximum bytes of a compiled pattern.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// Compiles a pattern of ECMA-262, the dialect of JSON Schema. Its matches are not anchored.
///
/// # Errors
///
/// Returns an error for syntax that `regex` does not support, such as look-around, and for a pattern that compiles to more than 1
/// MiB.
pub fn pattern_of(text: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(&translated(text)).size_limit(MAX_PATTERN_BYTES).build()
}

/// Translates a pattern for `regex`. In ECMA-262, digits and word characters are ASCII.
fn translated(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('d') => out.push_str("[0-9]"),
            Some('D') => out.push_str("[^0-9]"),
            Some('w') => out.push_str("[0-9A-Za-z_]"),
            Some('W') => out.push_str("[^0-9A-Za-z_]"),
            // Patterns of ECMA-262 often escape the slash, which has no special meaning to `regex`.
            Some('/') => out.push('/'),
            Some(other) => out.extend(['\\', other]),
            None => out.push('\\'),
        }
    }
    out
}
