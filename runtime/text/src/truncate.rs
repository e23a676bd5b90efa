//! Truncation at character boundaries.

/// Returns the longest prefix of at most `most` bytes that ends at a character boundary, and whether anything was omitted.
///
/// ```
/// assert_eq!(ptc_text::truncate_utf8("añb", 2), ("a", true));
/// assert_eq!(ptc_text::truncate_utf8("añb", 4), ("añb", false));
/// ```
pub fn truncate_utf8(text: &str, most: usize) -> (&str, bool) {
    let end = text.floor_char_boundary(most);
    (text.get(..end).unwrap_or(text), end < text.len())
}
