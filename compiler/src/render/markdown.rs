//! Escapes texts of upstreams for Markdown. Nothing in them may become markup: rustdoc runs code blocks as tests and follows links,
//! and a forge also turns mentions and references into links and notifications.

use std::ops::Range;

use super::literal::shown;
use crate::diag::text::on_one_line;
use crate::lower::text::one_line;

/// Characters that begin markup anywhere in a line.
const ANYWHERE: &[char] = &['\\', '`', '*', '_', '[', ']', '<', '>', '&', '~', '|'];

/// Returns prose on one line, escaped so that it reads as written.
pub(super) fn text(prose: &str) -> String {
    let line = shown(&one_line(prose, usize::MAX / 4));
    let mut out = String::with_capacity(line.len());
    // `- a`, `+ a`, `# a`, `1. a`, `1) a` and `===` begin blocks, but only at the start of a line.
    let bullet = line.find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
    for (at, c) in line.char_indices() {
        let begins_block = at == bullet && (matches!(c, '.' | ')') && at > 0 || matches!(c, '-' | '+' | '=' | '#') && at == 0);
        if begins_block || ANYWHERE.contains(&c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Returns a name or a value as inline code.
pub(crate) fn code(name: &str) -> String {
    let line = shown(&one_line(name, usize::MAX / 4));
    let longest = line.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    match line.as_str() {
        "" => "nothing".to_owned(),
        // Without the spaces, a backtick at either end would be part of the fence.
        line if line.starts_with('`') || line.ends_with('`') => format!("{fence} {line} {fence}"),
        line => format!("{fence}{line}{fence}"),
    }
}

/// Returns a message, which has names in backticks, as Markdown for a forge. Names become inline code, and so does everything that
/// is not a plain word, because only there neither markup nor mentions, references and addresses have a meaning.
pub(crate) fn sentence(message: &str) -> String {
    let line = on_one_line(message);
    let mut out = Spans::default();
    let mut rest: &str = &line;
    while let Some(next) = next_code(rest) {
        out.words(rest.get(..next.start).unwrap_or_default());
        match rest.get(next.clone()).and_then(|found| found.strip_prefix('`')) {
            Some(name) => out.name(name.strip_suffix('`').unwrap_or(name)),
            None => out.expression(rest.get(next.clone()).unwrap_or_default()),
        }
        rest = rest.get(next.end..).unwrap_or_default();
    }
    out.words(rest);
    out.finish()
}

/// Returns the range of the first name in backticks, or of the first expression in brackets. A name or an expression without its closing
/// character counts only if the text was truncated there, which `…` shows.
fn next_code(text: &str) -> Option<Range<usize>> {
    let mut is_start = true;
    for (at, c) in text.char_indices() {
        let rest = text.get(at..)?;
        let len = match c {
            '`' => rest.get(1..)?.find('`').map(|end| end + 2).or_else(|| rest.ends_with('…').then_some(rest.len())),
            '{' | '[' => expression_len(rest),
            // Most parentheses are around words and names.
            '(' if is_start && !rest.starts_with("(`") && !is_plain(rest.split(' ').next()?) => expression_len(rest),
            _ => None,
        };
        if let Some(len) = len {
            return Some(at..at + len);
        }
        is_start = c == ' ';
    }
    None
}

/// Returns the length of the expression that a text starts with, with the punctuation behind it.
fn expression_len(text: &str) -> Option<usize> {
    let (mut depth, mut is_string, mut is_escaped) = (0_usize, false, false);
    let is_word_end = |rest: &str| rest.trim_start_matches([',', ';', '.', ':', ')']).chars().next().is_none_or(|c| c == ' ');
    for (at, c) in text.char_indices() {
        let end = at + c.len_utf8();
        match c {
            '…' if text.get(end..).is_some_and(is_word_end) => return Some(end),
            _ if std::mem::take(&mut is_escaped) => {}
            '\\' => is_escaped = true,
            '"' => is_string = !is_string,
            '{' | '[' | '(' if !is_string => depth += 1,
            '}' | ']' | ')' if !is_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && !is_escaped {
            // What follows without a space belongs to the same span.
            let rest = text.get(end..)?;
            return Some(end + rest.find([' ', '`']).unwrap_or(rest.len()));
        }
    }
    None
}

/// Writes words and inline code.
#[derive(Default)]
struct Spans {
    out: String,
    /// Words that are not plain, and form one span.
    unsafe_words: Vec<String>,
    /// Whether there is a space before the next part.
    has_space: bool,
    /// Whether there is a space before `unsafe_words`.
    starts_with_space: bool,
}

impl Spans {
    fn words(&mut self, piece: &str) {
        for (at, word) in piece.split(' ').enumerate() {
            self.has_space |= at > 0;
            if word.is_empty() {
                continue;
            }
            if is_plain(word) {
                self.flush();
                self.append(word);
                continue;
            }
            if self.unsafe_words.is_empty() {
                self.starts_with_space = self.has_space;
            }
            self.unsafe_words.push(word.to_owned());
            self.has_space = false;
        }
    }

    /// Adds an expression, which is never divided.
    fn expression(&mut self, text: &str) {
        if self.unsafe_words.is_empty() {
            self.starts_with_space = self.has_space;
        }
        match self.unsafe_words.last_mut() {
            Some(last) if !self.has_space => last.push_str(text),
            _ => self.unsafe_words.push(text.to_owned()),
        }
        self.has_space = false;
    }

    fn name(&mut self, name: &str) {
        self.flush();
        self.append(&code(if name.trim().is_empty() { "``" } else { name }));
    }

    /// Writes the words that are not plain as one span.
    fn flush(&mut self) {
        if !self.unsafe_words.is_empty() {
            let words = std::mem::take(&mut self.unsafe_words).join(" ");
            let has_space = std::mem::replace(&mut self.has_space, self.starts_with_space);
            self.append(&code(&words));
            self.has_space = has_space;
        }
    }

    fn append(&mut self, text: &str) {
        // Adjacent backticks of two spans would be one fence.
        let joins_fences = self.out.ends_with('`') && text.starts_with('`');
        if (self.has_space || joins_fences) && !self.out.is_empty() {
            self.out.push(' ');
        }
        self.has_space = false;
        self.out.push_str(text);
    }

    fn finish(mut self) -> String {
        self.flush();
        self.out
    }
}

/// Whether a word, with the punctuation around it, is only a word in every dialect of Markdown.
fn is_plain(word: &str) -> bool {
    let core = word.trim_start_matches(['"', '\'', '(']);
    let core = core.trim_end_matches(['"', '\'', ')', ',', ';', '.', ':', '?', '!', '…']);
    let is_word = |part: &str| !part.is_empty() && part.chars().all(char::is_alphabetic);
    // `GH-1` is a reference, so that a word has either letters or digits.
    core.is_empty() || core == "→" || core.bytes().all(|byte| byte.is_ascii_digit()) || core.split(['-', '\'', '’']).all(is_word)
}

#[cfg(test)]
mod tests {
    use super::{code, sentence, text};

    #[test]
    fn sentence_contains_only_plain_words_and_inline_code() {
        for (message, expected) in [
            ("`a` now has `maximum` 50 for `n`, which was 100", "`a` now has `maximum` 50 for `n`, which was 100"),
            ("answers {:count integer?}, which was any", "answers `{:count integer?},` which was any"),
            ("says \"Ask @octocat about #12.\"", "says \"Ask `@octocat` about `#12.\"`"),
            (
                "see https://evil.example www.evil.example a@b.example GH-1",
                "see `https://evil.example www.evil.example a@b.example GH-1`",
            ),
            ("[a](b) <img> :tada: $x$ **b** _i_ ~s~ a|b", "`[a](b) <img> :tada: $x$ **b** _i_ ~s~ a|b`"),
            // Backticks of a name end the name, and what follows is still code.
            ("`a` @octocat `b` is gone", "`a` `@octocat` `b` is gone"),
            ("`a``b` c", "`a` `b` c"),
            // An expression is one span, whatever it has in its strings and wherever it was truncated.
            ("found a map {\"a\" \"some more words\"}, not nil", "found a map `{\"a\" \"some more words\"},` not nil"),
            ("found [\"use `x` now]\"] at `y`", "found ``[\"use `x` now]\"]`` at `y`"),
            ("answers {:kind name :by…, which was {:at string}", "answers `{:kind name :by…`, which was `{:at string}`"),
            ("(+ a xs): bad (`a` of `b`)", "`(+ a xs):` bad (`a` of `b`)"),
            ("reads `some name…", "reads `some name…`"),
            ("an open [ or { b", "an open `[` or `{` b"),
            ("an open ` @octocat", "an open `` ` @octocat ``"),
            ("``", "``` `` ```"),
            ("a\n# b\u{202e}", "`a\\n# b\\u{202e}`"),
        ] {
            assert_eq!(sentence(message), expected);
        }
    }

    #[test]
    fn prose_is_escaped_as_plain_text() {
        for (prose, expected) in [
            ("Lists pets, and says how many.", "Lists pets, and says how many."),
            ("See [all](https://evil.example) `x` <b>", r"See \[all\](https://evil.example) \`x\` \<b\>"),
            ("```\npanic!()\n```", r"\`\`\` panic!() \`\`\`"),
            ("    indented\n\n    code", "indented code"),
            ("- a", r"\- a"),
            ("# a", r"\# a"),
            ("12. a", r"12\. a"),
            ("a - b = 1. c", "a - b = 1. c"),
            ("\u{202e}turned", "⟨U+202E⟩turned"),
        ] {
            assert_eq!(text(prose), expected);
        }
    }

    #[test]
    fn code_cannot_be_closed_by_its_text() {
        for (name, expected) in
            [("get-pet", "`get-pet`"), ("a`b", "``a`b``"), ("`a", "`` `a ``"), ("a\n```\nb", "````a ``` b````"), ("", "nothing")]
        {
            assert_eq!(code(name), expected);
        }
    }
}
