//! Truncated printed lines: a mark at the end of a line counts the omitted characters.

use std::fmt::Write;

const BEGIN: &str = "… ";
const END: &str = " characters cut; a value that is returned can hold more";

/// Maximum bytes of a mark.
pub const MAX_CUT_MARK: usize = BEGIN.len() + END.len() + 20;

/// Appends the mark of a line that was truncated by `chars` characters.
pub fn push_cut_mark(line: &mut String, chars: usize) {
    let _ = write!(line, "{BEGIN}{chars}{END}");
}

/// Splits a line into its text and the number of omitted characters from its mark, or 0 without a mark.
pub fn split_cut_mark(line: &str) -> (&str, usize) {
    let parts = line.strip_suffix(END).and_then(|line| line.rsplit_once(BEGIN));
    match parts.and_then(|(kept, chars)| Some((kept, chars.parse().ok()?))) {
        Some(parts) => parts,
        None => (line, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_mark_round_trips() {
        let mut line = "a… b".to_owned();
        assert_eq!(split_cut_mark(&line), ("a… b", 0));
        push_cut_mark(&mut line, 1_234);
        assert_eq!(line, "a… b… 1234 characters cut; a value that is returned can hold more");
        assert_eq!(split_cut_mark(&line), ("a… b", 1_234));
        let mut longest = String::new();
        push_cut_mark(&mut longest, usize::MAX);
        assert!(longest.len() <= MAX_CUT_MARK);
    }
}
