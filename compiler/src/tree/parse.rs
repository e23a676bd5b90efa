//! Parses JSON text into [`Node`]s from the tokens of `jsonc-parser`.
//!
//! The tree of `jsonc-parser` itself is not used, for three reasons: this parser recovers from a fault such as a missing comma,
//! so that one run shows all faults; it copies each string once, straight into the tree; and it names every departure from JSON
//! in a message that helps the author.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use jsonc_parser::tokens::Token;
use jsonc_parser::{Scanner, ScannerOptions};

use super::{Member, Node, Tree, too_large};
use crate::diag::{Code, Diagnostic, Diagnostics, Severity, quoted};
use crate::source::{FileId, MAX_BYTES, Sources, Span};

/// Maximum nesting of arrays and objects. Functions that walk a tree may recurse this deep.
pub const MAX_DEPTH: usize = 192;

/// Number of faults after which the rest of a text is skipped, since further faults are likely follow-up errors.
const MAX_FAULTS: usize = 20;

/// Objects of up to this many members are searched for duplicate keys by comparing all pairs.
const SMALL_OBJECT: usize = 16;

/// Extensions to strict JSON that a text may use.
#[derive(Debug, Clone, Copy)]
pub struct Syntax {
    /// Allows `//` and `/* */` comments.
    pub comments: bool,
    /// Allows a comma after the last member or element.
    pub trailing_commas: bool,
    /// Severity of a repeated key. The last one counts in any case.
    pub duplicate_keys: Severity,
}

impl Syntax {
    /// For hand-written configs: comments and trailing commas are allowed.
    pub const CONFIG: Syntax = Syntax { comments: true, trailing_commas: true, duplicate_keys: Severity::Error };
    /// For hand-written files that must be plain JSON.
    pub const STRICT: Syntax = Syntax { comments: false, trailing_commas: false, duplicate_keys: Severity::Error };
    /// For generated and published files: strict, but a repeated key is only a warning.
    pub const DOCUMENT: Syntax = Syntax { comments: false, trailing_commas: false, duplicate_keys: Severity::Warning };
}

/// Parses a config. See [`parse_as`].
pub fn parse(sources: &Sources, file: FileId, diagnostics: &mut Diagnostics) -> Option<Node> {
    parse_as(sources, file, Syntax::CONFIG, diagnostics)
}

/// Parses a file of `sources` as JSON.
///
/// Reports all faults that can be distinguished. Returns the tree if the parser recovered from every fault without losing a value
/// (a missing comma, a repeated key). Otherwise returns `None`, after reporting at least one error.
pub fn parse_as(sources: &Sources, file: FileId, syntax: Syntax, diagnostics: &mut Diagnostics) -> Option<Node> {
    let text = &sources.get(file).text;
    if text.len() > MAX_BYTES {
        diagnostics.push(too_large(&sources.get(file).path));
        return None;
    }
    let mut parser = Parser {
        scanner: Scanner::new(text, &ScannerOptions::default()),
        text,
        base: 0,
        file,
        syntax,
        diagnostics,
        token: None,
        range: 0..0,
        last_end: 0,
        faults: 0,
        first: 0,
        lossy: false,
    };
    let node = parser.document().ok();
    if parser.lossy { None } else { node }
}

/// Parsing cannot continue; the reason has been reported.
struct GiveUp;

type Parsed<T> = Result<T, GiveUp>;

struct Parser<'a> {
    scanner: Scanner<'a>,
    text: &'a str,
    /// Offset in `text` where the scanner started.
    base: u32,
    file: FileId,
    syntax: Syntax,
    diagnostics: &'a mut Diagnostics,
    token: Option<Token<'a>>,
    /// Byte range of `token`; empty at the end of the text.
    range: Range<u32>,
    /// End offset of the token before `token`.
    last_end: u32,
    faults: usize,
    /// Start offset of the first token.
    first: u32,
    /// Whether a value was skipped, so that the tree is incomplete.
    lossy: bool,
}

impl<'a> Parser<'a> {
    fn document(&mut self) -> Parsed<Node> {
        self.advance()?;
        self.first = self.range.start;
        if self.token.is_none() {
            let end = self.range.clone();
            self.fault(
                end,
                "expected a JSON value",
                "nothing here",
                "an empty file is not valid JSON; the smallest object is `{}`",
            )?;
            return Err(GiveUp);
        }
        let is_word = matches!(self.token, Some(Token::Word(_)));
        let node = self.value(0)?;
        // A text that begins with a bare word is not JSON at all, and that has been reported.
        if self.token.is_some() && !is_word {
            let range = self.range.clone();
            self.fault(
                range,
                "expected the end of the file",
                "after the end of the value",
                "a file holds one JSON value; look for a bracket that closes too early",
            )?;
            self.lossy = true;
        }
        Ok(node)
    }

    /// Moves to the next token that is not a comment.
    fn advance(&mut self) -> Parsed<()> {
        self.last_end = self.range.end;
        loop {
            let scanned = self.scanner.scan();
            let range = self.base + self.scanner.token_start() as u32..self.base + self.scanner.token_end() as u32;
            match scanned {
                Ok(Some(Token::CommentLine(_) | Token::CommentBlock(_))) => {
                    if !self.syntax.comments {
                        self.beyond_json(range, "comments are not part of JSON", "remove the comment")?;
                    }
                }
                Ok(token) => {
                    self.token = token;
                    self.range = range;
                    return Ok(());
                }
                Err(error) => {
                    let at = self.base + error.range().start as u32..self.base + error.range().end as u32;
                    return self.unreadable(range.start, at);
                }
            }
        }
    }

    /// Reports a token that the scanner could not read. Continues after it if its end is clear, and gives up otherwise.
    fn unreadable(&mut self, start: u32, at: Range<u32>) -> Parsed<()> {
        let rest: &'a str = self.text.get(start as usize..).unwrap_or("");
        if rest.starts_with(['"', '\'']) {
            let line = rest.lines().next().unwrap_or("");
            let Some(length) = closed_length(line) else {
                self.unclosed_string(start)?;
                return Err(GiveUp);
            };
            self.fault(
                at,
                "not a valid escape in a string",
                "here",
                r#"escapes are \" \\ \/ \b \f \n \r \t and \uXXXX; write a backslash itself as \\"#,
            )?;
            // The faults of the string are reported. An empty string in its place has none.
            self.resume(start, length, Token::String(Cow::Borrowed("")));
            self.lossy = true;
            return Ok(());
        }
        // The scanner ends a word only at white space.
        let word = rest.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '$' | '+'))).next().unwrap_or("");
        if !word.is_empty() {
            self.resume(start, word.len(), Token::Word(word));
            return Ok(());
        }
        if rest.starts_with("/*") {
            self.fault(start..start + 2, "a comment is not closed", "opened here", "close it with `*/`")?;
        } else {
            let found = rest.chars().next();
            let hint = match found {
                Some('#') if self.syntax.comments => "a comment is written `// …` or `/* … */`",
                Some('“' | '”' | '„' | '‘' | '’' | '«' | '»') => {
                    "strings are written in straight double quotes, `\"`"
                }
                Some('=') => "a key and its value are joined by `:`",
                Some('<') => "this looks like HTML or XML; only JSON is allowed here",
                _ => "only JSON is allowed here",
            };
            let found = found.map(String::from).unwrap_or_default();
            self.fault(at, &format!("{} is not expected here", quoted(&found)), "", hint)?;
        }
        Err(GiveUp)
    }

    /// Makes `token` the current token and continues scanning after it.
    fn resume(&mut self, start: u32, length: usize, token: Token<'a>) {
        self.base = start + length as u32;
        self.scanner = Scanner::new(self.text.get(self.base as usize..).unwrap_or(""), &ScannerOptions::default());
        self.range = start..self.base;
        self.token = Some(token);
    }

    fn unclosed_string(&mut self, start: u32) -> Parsed<()> {
        let line = self.text.get(start as usize..).and_then(|rest| rest.lines().next()).unwrap_or("");
        let end = start + line.len() as u32;
        self.fault(
            start..end,
            "a string is not closed on its line",
            "opened here",
            r#"close it with `"`; a line break inside a string is written `\n`"#,
        )
    }

    fn value(&mut self, depth: usize) -> Parsed<Node> {
        let range = self.range.clone();
        let value = match self.token.take() {
            Some(Token::OpenBrace) => return self.object(depth),
            Some(Token::OpenBracket) => return self.array(depth),
            Some(Token::String(text)) => Tree::String(self.string(text)?),
            Some(Token::Number(text)) => {
                let number = self.number(text)?;
                self.advance()?;
                return Ok(Node { range: range.start..self.last_end, value: number });
            }
            Some(Token::Boolean(value)) => Tree::Bool(value),
            Some(Token::Null) => Tree::Null,
            Some(Token::Word(word)) => self.word(word)?,
            found => {
                let message = format!("expected a value, found {}", name(found.as_ref()));
                self.fault(range.clone(), &message, "a value is missing", "")?;
                if found.is_none() {
                    return Err(GiveUp);
                }
                // The token found ends this member. It stays current for the caller.
                self.lossy = true;
                self.token = found;
                return Ok(Node { range: range.start..range.start, value: Tree::Null });
            }
        };
        self.advance()?;
        Ok(Node { range, value })
    }

    fn object(&mut self, depth: usize) -> Parsed<Node> {
        let open = self.range.clone();
        self.check_depth(depth)?;
        self.advance()?;
        let mut members: Vec<Member> = Vec::new();
        loop {
            match self.token.take() {
                Some(Token::CloseBrace) => break,
                Some(Token::String(text)) => members.push(self.member(text, depth)?),
                Some(Token::Word(word)) => {
                    let range = self.range.clone();
                    self.fault(range, "keys are written in double quotes", "", "put the key in double quotes")?;
                    members.push(self.member(Cow::Borrowed(word), depth)?);
                }
                Some(Token::Comma) => self.stray_comma()?,
                found => return Err(self.unclosed('}', &open, found.as_ref())),
            }
            self.separator(&Token::CloseBrace)?;
        }
        self.check_duplicates(&members)?;
        let range = open.start..self.range.end;
        self.advance()?;
        members.shrink_to_fit();
        Ok(Node { range, value: Tree::Object(members) })
    }

    fn member(&mut self, key: Cow<'a, str>, depth: usize) -> Parsed<Member> {
        let key_range = self.range.clone();
        let key = self.string(key)?;
        self.advance()?;
        if self.token != Some(Token::Colon) {
            let at = key_range.end..key_range.end;
            self.fault(at, "expected `:` after a key", "a colon is missing", "")?;
            return Err(GiveUp);
        }
        self.advance()?;
        let value = self.value(depth + 1)?;
        Ok(Member { key, key_range, value })
    }

    fn array(&mut self, depth: usize) -> Parsed<Node> {
        let open = self.range.clone();
        self.check_depth(depth)?;
        self.advance()?;
        let mut elements = Vec::new();
        loop {
            match &self.token {
                Some(Token::CloseBracket) => break,
                Some(Token::Comma) => self.stray_comma()?,
                Some(Token::CloseBrace) | None => {
                    let found = self.token.take();
                    return Err(self.unclosed(']', &open, found.as_ref()));
                }
                Some(_) => elements.push(self.value(depth + 1)?),
            }
            self.separator(&Token::CloseBracket)?;
        }
        let range = open.start..self.range.end;
        self.advance()?;
        elements.shrink_to_fit();
        Ok(Node { range, value: Tree::Array(elements) })
    }

    /// Expects a comma or the closing bracket after a member or element.
    fn separator(&mut self, close: &Token<'_>) -> Parsed<()> {
        match &self.token {
            Some(Token::Comma) => {
                let comma = self.range.clone();
                self.advance()?;
                if self.token.as_ref() == Some(close) && !self.syntax.trailing_commas {
                    self.beyond_json(comma, "JSON has no comma after the last value", "remove the comma")?;
                }
                Ok(())
            }
            Some(token) if token == close => Ok(()),
            // The token can start the next member or element, so that only the comma is missing.
            Some(
                Token::String(_)
                | Token::Word(_)
                | Token::Number(_)
                | Token::Boolean(_)
                | Token::Null
                | Token::OpenBrace
                | Token::OpenBracket,
            ) => {
                let at = self.last_end.saturating_sub(1)..self.last_end;
                self.fault(at, "expected `,` before the next value", "a comma is missing after this", "")
            }
            _ => Ok(()),
        }
    }

    /// Reports a comma where a member or element should start. The comma stays the current token, for [`Parser::separator`].
    fn stray_comma(&mut self) -> Parsed<()> {
        let range = self.range.clone();
        self.fault(range, "a comma without a value before it", "", "remove the comma")?;
        self.token = Some(Token::Comma);
        Ok(())
    }

    fn unclosed(&mut self, close: char, open: &Range<u32>, found: Option<&Token<'_>>) -> GiveUp {
        let what = if close == '}' { "object" } else { "array" };
        let at = self.range.clone();
        let message = match found {
            None => format!("the file ends inside an {what}"),
            Some(_) => format!("expected `{close}` or the next value of the {what}, found {}", name(found)),
        };
        let diagnostic = Diagnostic::new(Code::JsonSyntax, message)
            .at(self.place(at), format!("expected `{close}`"))
            .also(self.place(open.clone()), format!("the {what} opens here"));
        self.diagnostics.push(diagnostic);
        GiveUp
    }

    fn string(&mut self, text: Cow<'a, str>) -> Parsed<Box<str>> {
        let range = self.range.clone();
        let raw = self.text.get(range.start as usize..range.end as usize).unwrap_or("");
        if text.is_empty() {
            return Ok(Box::default());
        }
        if raw.starts_with('\'') {
            self.fault(range.clone(), "strings are written in double quotes", "", "replace each `'` with `\"`")?;
        }
        if let Some(at) = raw.bytes().position(|b| b < 0x20) {
            if raw.as_bytes().get(at).is_some_and(|b| matches!(b, b'\n' | b'\r')) {
                self.unclosed_string(range.start)?;
                return Err(GiveUp);
            }
            let at = range.start + at as u32;
            self.fault(at..at + 1, "a control character inside a string", "here", r"write it as an escape, such as `\t`")?;
        }
        if raw.contains('\\')
            && let Some((at, escape)) = json5_escape(raw)
        {
            let at = range.start + at as u32;
            let message = format!("`{escape}` is not an escape of JSON");
            self.fault(at..at + escape.len() as u32, &message, "here", r#"escapes are \" \\ \/ \b \f \n \r \t and \uXXXX"#)?;
        }
        Ok(text.into_owned().into_boxed_str())
    }

    fn number(&mut self, text: &'a str) -> Parsed<Tree> {
        let start = self.range.start as usize;
        let rest = self.text.get(start..).unwrap_or("");
        let whole = rest.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.' | '_'))).next().unwrap_or("");
        // The scanner splits `007` into `0` and `07`, which the author meant as one number.
        if text.trim_start_matches('-').starts_with('0') && whole.len() > text.len() && whole.starts_with(text) {
            self.resume(start as u32, whole.len(), Token::Number(whole));
            let range = self.range.clone();
            self.fault(range, "a number of JSON does not start with zeros", "", "write it without the zeros")?;
            self.lossy = true;
            return Ok(Tree::Number(whole.into()));
        }
        if !is_json_number(text) {
            let range = self.range.clone();
            self.fault(range, "not a number of JSON", "", "write a plain decimal, such as `5000` or `0.5`")?;
            self.lossy = true;
        }
        Ok(Tree::Number(text.into()))
    }

    fn word(&mut self, word: &str) -> Parsed<Tree> {
        let range = self.range.clone();
        let (hint, value) = match word {
            "True" | "TRUE" => ("write `true`", Some(Tree::Bool(true))),
            "False" | "FALSE" => ("write `false`", Some(Tree::Bool(false))),
            "None" | "nil" | "undefined" | "NULL" | "Null" => ("write `null`, or leave the key out", Some(Tree::Null)),
            _ if range.start == self.first => ("the text is JSON, and begins with `{`", None),
            _ => ("a string is written in double quotes", None),
        };
        // The message does not contain the word: it may be a secret without its quotes.
        self.fault(range, "not a value of JSON", "", hint)?;
        self.lossy |= value.is_none();
        Ok(value.unwrap_or(Tree::Null))
    }

    fn check_depth(&mut self, depth: usize) -> Parsed<()> {
        if depth < MAX_DEPTH {
            return Ok(());
        }
        let place = self.place(self.range.clone());
        self.diagnostics.push(
            Diagnostic::new(Code::TooDeep, format!("nested more than {MAX_DEPTH} levels deep")).at(place, "one level too many"),
        );
        Err(GiveUp)
    }

    fn check_duplicates(&mut self, members: &[Member]) -> Parsed<()> {
        if members.len() <= SMALL_OBJECT {
            for (at, member) in members.iter().enumerate() {
                if let Some(first) = members.iter().take(at).find(|earlier| earlier.key == member.key) {
                    self.duplicate(first, member)?;
                }
            }
            return Ok(());
        }
        let mut seen: HashSet<&str> = HashSet::with_capacity(members.len());
        for member in members {
            if !seen.insert(&member.key)
                && let Some(first) = members.iter().find(|earlier| earlier.key == member.key)
            {
                self.duplicate(first, member)?;
            }
        }
        Ok(())
    }

    fn duplicate(&mut self, first: &Member, again: &Member) -> Parsed<()> {
        let mut diagnostic = Diagnostic::new(Code::DuplicateKey, format!("the key {} is given twice", quoted(&again.key)))
            .at(self.place(again.key_range.clone()), "given again here")
            .also(self.place(first.key_range.clone()), "first given here")
            .hint("the last one would count; remove one of the two");
        diagnostic.severity = self.syntax.duplicate_keys;
        self.diagnostics.push(diagnostic);
        if self.syntax.duplicate_keys == Severity::Error { self.count() } else { Ok(()) }
    }

    fn fault(&mut self, range: Range<u32>, message: &str, label: &str, hint: &str) -> Parsed<()> {
        let mut diagnostic = Diagnostic::new(Code::JsonSyntax, message).at(self.place(range), label);
        if !hint.is_empty() {
            diagnostic = diagnostic.hint(hint);
        }
        self.diagnostics.push(diagnostic);
        self.count()
    }

    /// Reports syntax that configs may use and this text may not.
    fn beyond_json(&mut self, range: Range<u32>, message: &str, hint: &str) -> Parsed<()> {
        self.diagnostics.push(Diagnostic::new(Code::BeyondJson, message).at(self.place(range), "").hint(hint));
        self.count()
    }

    fn count(&mut self) -> Parsed<()> {
        self.faults += 1;
        if self.faults < MAX_FAULTS { Ok(()) } else { Err(GiveUp) }
    }

    fn place(&self, range: Range<u32>) -> Span {
        Span { file: self.file, range }
    }
}

fn name(token: Option<&Token<'_>>) -> String {
    match token {
        None => "the end of the file".to_owned(),
        Some(Token::String(_)) => "a string".to_owned(),
        Some(Token::Word(_)) => "a word without quotes".to_owned(),
        Some(Token::Number(_)) => "a number".to_owned(),
        Some(token) => format!("`{}`", token.as_str().escape_debug()),
    }
}

/// Returns the length in bytes of the string at the start of a line, including its quotes, or `None` if the string is not closed.
fn closed_length(line: &str) -> Option<usize> {
    let quote = line.chars().next()?;
    let mut escaped = false;
    for (at, c) in line.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// Whether a number that the lenient scanner accepted is valid JSON.
fn is_json_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    digits.starts_with(|c: char| c.is_ascii_digit())
        && !digits.contains(['x', 'X'])
        && !digits.split(['e', 'E']).next().unwrap_or("").ends_with('.')
}

/// Returns the first escape in a quoted string that the lenient scanner accepted and JSON does not allow, with its offset.
fn json5_escape(raw: &str) -> Option<(usize, &str)> {
    let mut from = 0;
    while let Some(found) = raw.get(from..)?.find('\\') {
        let at = from + found;
        let after = raw.get(at + 1..)?.chars().next()?;
        if !matches!(after, '"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' | 'u') {
            return Some((at, raw.get(at..at + 1 + after.len_utf8())?));
        }
        from = at + 1 + after.len_utf8();
    }
    None
}
