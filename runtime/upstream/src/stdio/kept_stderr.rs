//! Keeps the beginning and the end of a child's standard error, for messages about its end.

use std::collections::VecDeque;

use crate::fault::excerpt;

/// Number of bytes that are kept of the beginning, and of the end.
const FIRST_BYTES: usize = 1024;
const LAST_BYTES: usize = 8 * 1024;
/// Maximum number of bytes of a line in the excerpt.
const MAX_LINE_BYTES: usize = 300;
/// Number of lines of the end in the excerpt.
const LAST_LINES: usize = 3;
/// Words that occur in the line which names the error, in the output of common runtimes.
const ERROR_WORDS: [&str; 6] = ["error", "exception", "panicked", "fatal", "cannot", "not found"];

/// The beginning and the end of a child's standard error, redacted.
#[derive(Debug, Default)]
pub(super) struct KeptStderr {
    first: Vec<u8>,
    last: VecDeque<u8>,
    omitted: bool,
}

impl KeptStderr {
    /// Appends redacted output.
    pub(super) fn push(&mut self, part: &[u8]) {
        let (first, rest) = part.split_at(part.len().min(FIRST_BYTES - self.first.len()));
        self.first.extend(first);
        self.last.extend(rest);
        let excess = self.last.len().saturating_sub(LAST_BYTES);
        self.omitted |= excess > 0;
        self.last.drain(..excess);
    }

    /// Returns the first line, the line that names the error, and the last lines, as far as they differ. The lines are truncated,
    /// and the omitted lines between them are shown as `…`.
    pub(super) fn excerpt(&self) -> String {
        let mut bytes = self.first.clone();
        if self.omitted {
            bytes.push(b'\n');
        }
        bytes.extend(&self.last);
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().map(without_margin).filter(|line| !line.trim().is_empty()).collect();
        let names_error = |line: &&str| {
            let lower = line.to_ascii_lowercase();
            ERROR_WORDS.iter().any(|word| lower.contains(word))
        };
        // Indented lines are frames of a stack or parts of a structure.
        let is_indented = |line: &str| line.starts_with([' ', '\t']);
        let error = lines.iter().rposition(|line| !is_indented(line) && names_error(line));
        let mut shown = vec![0];
        shown.extend(lines.len().saturating_sub(LAST_LINES)..lines.len());
        shown.extend(error);
        shown.sort_unstable();
        shown.dedup();
        let mut text = String::new();
        let mut next = 0;
        for at in shown {
            let Some(line) = lines.get(at) else { continue };
            text.push_str(if at == 0 {
                ""
            } else if at == next {
                " | "
            } else {
                " | … | "
            });
            text.push_str(&excerpt(line.trim(), MAX_LINE_BYTES));
            next = at + 1;
        }
        text
    }
}

/// Returns a line without the margin (`|`, or `+----`) that Python draws around the errors of an exception group.
fn without_margin(line: &str) -> &str {
    let bare = line.trim_start();
    if let Some(text) = bare.strip_prefix("| ") {
        text
    } else if let Some(text) = bare.strip_prefix("+ ") {
        text
    } else if bare.starts_with("+-") && bare.chars().all(|c| "+- ".contains(c) || c.is_ascii_digit()) {
        ""
    } else {
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excerpt_of(text: &str) -> String {
        let mut kept = KeptStderr::default();
        text.as_bytes().chunks(100).for_each(|part| kept.push(part));
        kept.excerpt()
    }

    #[test]
    fn excerpt_has_first_error_and_last_lines() {
        let node = "node:internal/modules/cjs/loader:1228\n  throw err;\n  ^\n\nError: Cannot find module '/x.js'\n    at Error (a.js:1)\n{\n  code: 'MODULE_NOT_FOUND'\n}\n";
        assert_eq!(
            excerpt_of(node),
            "node:internal/modules/cjs/loader:1228 | … | Error: Cannot find module '/x.js' | … | { | code: 'MODULE_NOT_FOUND' | }"
        );
        let python = "Traceback (most recent call last):\n  File \"x\", line 1\nModuleNotFoundError: No module named 'x'\n";
        assert_eq!(
            excerpt_of(python),
            "Traceback (most recent call last): | File \"x\", line 1 | ModuleNotFoundError: No module named 'x'"
        );
        let group = "  + Exception Group Traceback (most recent call last):\n  |   File \"x\", line 1, in <module>\n  | ExceptionGroup: \
                     unhandled errors in a TaskGroup (1 sub-exception)\n  +-+---------------- 1 ----------------\n    | Traceback (most \
                     recent call last):\n    |   File \"y\", line 2, in call\n    | ConnectionError: refused\n    +----------\n";
        assert_eq!(
            excerpt_of(group),
            "Exception Group Traceback (most recent call last): | … | Traceback (most recent call last): | File \"y\", line 2, in call | ConnectionError: refused"
        );
        assert_eq!(excerpt_of("out of cheese\n"), "out of cheese");
        assert_eq!(excerpt_of("one\ntwo\n"), "one | two");
        assert_eq!(excerpt_of(""), "");
    }

    #[test]
    fn excerpt_of_long_output_is_bounded() {
        let text = format!("first\n{}Error: disk full\n{}last\n", "noise\n".repeat(10_000), "  frame\n".repeat(500));
        assert_eq!(excerpt_of(&text), "first | … | Error: disk full | … | frame | frame | last");
        assert!(excerpt_of(&"error ".repeat(100_000)).len() < 4 * MAX_LINE_BYTES);
    }
}
