//! Translates Java's regular expression syntax (`java.util.regex.Pattern`) to the engines' syntax.

use std::fmt::Write;

use super::case::CaseFolding;
use super::{ESCAPE, PatternError, explain};

/// A pattern in the engines' syntax, and its requirements for an engine.
#[derive(Default)]
pub(super) struct Translated {
    /// The pattern.
    pub text: String,
    /// Whether it contains look-around, back-references, atomic groups or possessive quantifiers, which need the backtracker.
    pub backtracks: bool,
    /// Whether it contains a `$` or `\Z`, which also match before a line break at the end of the text.
    pub before_last_break: bool,
    /// The patterns inside its look-behinds.
    pub behind: Vec<String>,
    /// Members of its ranges whose other case was looked up. Above [`MAX_CASE_LOOKUPS`] the translation is incomplete.
    pub case_lookups: usize,
    /// Where a multi-line `^` occurs.
    pub line_anchors: LineAnchors,
    /// The first construct that an engine accepts and Java does not.
    pub refused: Option<PatternError>,
}

impl Translated {
    /// Records an error. The first one is reported.
    fn refuse(&mut self, why: PatternError) {
        self.refused.get_or_insert(why);
    }
}

/// Where multi-line `^` occurs in a pattern. In Java, `^` never matches after a trailing line terminator.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum LineAnchors {
    #[default]
    None,
    /// Once, at the beginning of the pattern.
    Leading,
    Inner,
}

/// The item before a quantifier.
#[derive(Clone, Copy)]
enum QuantifierTarget {
    /// An item that matches text, or nothing.
    Other,
    /// A zero-width assertion that begins at this byte of the translation. One of the parsers does not accept a quantifier after
    /// it.
    Assertion(usize),
    Quantifier,
    /// A lazy or possessive quantifier, as in `a+?`.
    Modified,
}

/// Maximum number of case look-ups for the members of ranges of one pattern.
pub(super) const MAX_CASE_LOOKUPS: usize = 32_768;

/// Flags of one group whose meaning differs between the syntaxes.
#[derive(Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each letter is a switch of its own")]
struct Flags {
    /// `(?m)`: `$` matches at every line's end.
    lines: bool,
    /// `(?s)`: `.` matches line breaks too.
    breaks: bool,
    /// `(?x)`: white space and comments are skipped.
    spaced: bool,
    /// `(?U)`: `\d \w \s` match all of Unicode.
    unicode: bool,
    /// `(?i)`: case is ignored.
    ignores_case: bool,
    /// `(?u)`: case folding applies to all letters.
    all_letters: bool,
    /// If the group is a look-around, the byte of its bracket in the translation.
    looks: Option<usize>,
    /// The group is a look-behind.
    behind: bool,
}

impl Flags {
    const NONE: Flags = Flags {
        lines: false,
        breaks: false,
        spaced: false,
        unicode: false,
        ignores_case: false,
        all_letters: false,
        looks: None,
        behind: false,
    };

    /// Flags that change `self` back to the flags of the enclosing group. One of the parsers does not restore them.
    fn back_to(self, around: Flags) -> String {
        let letters = [('m', self.lines, around.lines), ('s', self.breaks, around.breaks), ('x', self.spaced, around.spaced)];
        let changed =
            |to: bool| letters.iter().filter(move |(_, now, then)| now != then && *then == to).map(|(letter, ..)| *letter);
        let (on, off): (String, String) = (changed(true).collect(), changed(false).collect());
        match (on.is_empty(), off.is_empty()) {
            (true, true) => String::new(),
            (_, true) => format!("(?{on})"),
            _ => format!("(?{on}-{off})"),
        }
    }

    fn case_folding(self) -> CaseFolding {
        match (self.ignores_case, self.all_letters || self.unicode) {
            (false, _) => CaseFolding::None,
            (true, false) => CaseFolding::Ascii,
            (true, true) => CaseFolding::All,
        }
    }
}

/// Rewrites the constructs that the two syntaxes spell differently; everything else passes through.
///
/// Java's classes are ASCII unless asked otherwise: `\d \w \s \b`. `\Q…\E` quotes, `\h` is horizontal white space, `\R` any line
/// break, `\Z` the end before a final line break, `\e` escape, `\0n` an octal character, `(?<name>…)` a named group, `a++` gives
/// nothing back, `\cA` is a control character.
pub(super) fn java(source: &str) -> Translated {
    let mut made = Translated { text: String::with_capacity(source.len() + 16), ..Translated::default() };
    let mut rest = source.chars().peekable();
    // Number of open brackets. Inside a class some escapes are written without brackets of their own.
    let mut class = 0usize;
    let (mut flags, mut outer) = (Flags::NONE, Vec::new());
    let mut before = QuantifierTarget::Other;
    while let Some(c) = rest.next() {
        let begun = made.text.len();
        let prior = std::mem::replace(&mut before, QuantifierTarget::Other);
        match c {
            '\\' => {
                if class == 0 && matches!(rest.peek(), Some('b' | 'B' | 'A' | 'z' | 'Z')) {
                    before = QuantifierTarget::Assertion(begun);
                }
                escape(&mut rest, flags, class > 0, &mut made);
            }
            '[' => {
                class += 1;
                made.text.push('[');
                if class > 1 && rest.next_if_eq(&':').is_some() {
                    // The engines take `[:alpha:]` for letters, with the colon escaped as well.
                    made.text.push_str(r"\x{3A}-\x{3A}");
                }
                if rest.peek() == Some(&'^') {
                    made.text.push('^');
                    rest.next();
                }
                if rest.peek() == Some(&']') {
                    // Java takes a bracket in first place as the end; the engines take it as a member, as does common usage.
                    made.text.push_str(r"\]");
                    rest.next();
                }
            }
            ']' if class > 0 => {
                class -= 1;
                made.text.push(']');
            }
            '~' | '-' if class > 0 && rest.peek() == Some(&c) => {
                // `--` and `~~` are set operations to the engines only.
                made.text.push('\\');
                made.text.push(c);
            }
            '&' if class > 0 && rest.next_if_eq(&'&').is_some() => made.text.push_str("&&"),
            _ if class > 0 && flags.spaced && c.is_whitespace() => {}
            _ if class > 0 => member(c, &mut rest, flags.case_folding(), &mut made),
            '(' => group(&mut rest, &mut flags, &mut outer, &mut made),
            ')' => {
                if let Some(bracket) = flags.looks {
                    before = QuantifierTarget::Assertion(bracket);
                    let inner = made.text.get(bracket + "(?<=".len()..).filter(|_| flags.behind);
                    made.behind.extend(inner.map(str::to_owned));
                }
                let around = outer.pop().unwrap_or(flags);
                made.text.push_str(&flags.back_to(around));
                flags = around;
                made.text.push(')');
            }
            // Drop comments: one would hide the text that is appended to the pattern.
            '#' if flags.spaced => while rest.next().is_some_and(|c| c != '\n') {},
            '^' => {
                before = QuantifierTarget::Assertion(begun);
                if flags.lines {
                    let first = made.line_anchors == LineAnchors::None && is_flags(&made.text);
                    made.line_anchors = if first { LineAnchors::Leading } else { LineAnchors::Inner };
                }
                made.text.push('^');
            }
            '$' => {
                before = QuantifierTarget::Assertion(begun);
                made.before_last_break |= !flags.lines;
                made.text.push('$');
            }
            '*' | '+' | '?' | '{' => before = quantifier(c, prior, &mut rest, &mut made),
            _ => flags.case_folding().write(c, false, &mut made.text),
        }
    }
    made
}

/// Whether the translation so far is empty or contains only flags.
fn is_flags(translated: &str) -> bool {
    let inner = translated.strip_prefix("(?").and_then(|rest| rest.strip_suffix(')'));
    translated.is_empty() || inner.is_some_and(|letters| letters.chars().all(|c| c == '-' || c.is_ascii_alphabetic()))
}

/// A quantifier, or the lazy or possessive mark of the quantifier before it.
fn quantifier(first: char, prior: QuantifierTarget, rest: &mut Rest<'_>, made: &mut Translated) -> QuantifierTarget {
    match (first, prior) {
        ('+' | '?', QuantifierTarget::Quantifier) => {
            made.backtracks |= first == '+';
            made.text.push(first);
            return QuantifierTarget::Modified;
        }
        (_, QuantifierTarget::Quantifier | QuantifierTarget::Modified) => {
            let message = format!("the quantifier {first} follows another quantifier");
            let hint = "leave one out, group what is repeated, as in (?:a*){2}, or write \\* \\+ \\? \\{ for the character";
            made.refuse(PatternError::new(message, hint));
        }
        (_, QuantifierTarget::Assertion(from)) => {
            made.text.insert_str(from, "(?:");
            made.text.push_str(r"|[^\s\S])");
        }
        (_, QuantifierTarget::Other) => {}
    }
    made.text.push(first);
    if first == '{' {
        if !rest.peek().is_some_and(char::is_ascii_digit) {
            made.refuse(PatternError::new("a { is followed by no count, as in {2} or {0,9}", ESCAPE));
        }
        for c in rest.by_ref() {
            made.text.push(c);
            if c == '}' {
                break;
            }
        }
    }
    QuantifierTarget::Quantifier
}

/// A member of a class that starts with a character: that one, or a range.
fn member(first: char, rest: &mut Rest<'_>, case_folding: CaseFolding, made: &mut Translated) {
    let out = &mut made.text;
    let mut ahead = rest.clone();
    let last = match (ahead.next(), ahead.peek()) {
        (Some('-'), Some('\\')) => {
            ahead.next();
            code_point(&mut ahead)
        }
        (Some('-'), Some(&last)) if !matches!(last, '[' | ']' | '-') => {
            ahead.next();
            Some(last)
        }
        _ => None,
    };
    let Some(last) = last else {
        return written(first, case_folding, true, out);
    };
    *rest = ahead;
    let _ = write!(out, r"\x{{{:X}}}-\x{{{:X}}}", u32::from(first), u32::from(last));
    if made.case_lookups <= MAX_CASE_LOOKUPS {
        made.case_lookups += case_folding.write_range(first, last, out);
    }
}

/// Writes a character that means itself, whatever it means to the engines or under `(?x)`.
fn written(letter: char, case_folding: CaseFolding, in_class: bool, out: &mut String) {
    if letter.is_alphanumeric() {
        case_folding.write(letter, in_class, out);
    } else {
        let _ = write!(out, r"\x{{{:X}}}", u32::from(letter));
    }
}

/// What follows a backslash. A blank is written as `\x20`, since `(?x)` skips it in a class too.
fn escape(rest: &mut Rest<'_>, flags: Flags, in_class: bool, made: &mut Translated) {
    let case_folding = flags.case_folding();
    match code_point(rest) {
        Some(letter) if in_class => return member(letter, rest, case_folding, made),
        Some(letter) => return written(letter, case_folding, false, &mut made.text),
        None => {}
    }
    let out = &mut made.text;
    match rest.next() {
        Some('Q') => quoted(rest, case_folding, in_class, out),
        Some(class @ ('d' | 'D' | 'w' | 'W' | 's' | 'S')) if flags.unicode => {
            out.push('\\');
            out.push(class);
        }
        Some('d') => out.push_str("[0-9]"),
        Some('D') => out.push_str("[^0-9]"),
        Some('w') => out.push_str("[0-9A-Za-z_]"),
        Some('W') => out.push_str("[^0-9A-Za-z_]"),
        Some('s') => out.push_str(r"[\x20\t\n\x0B\f\r]"),
        Some('S') => out.push_str(r"[^\x20\t\n\x0B\f\r]"),
        Some('h') => out.push_str(r"[\x20\t\u{A0}\u{1680}\u{180E}\u{2000}-\u{200A}\u{202F}\u{205F}\u{3000}]"),
        Some('H') => out.push_str(r"[^\x20\t\u{A0}\u{1680}\u{180E}\u{2000}-\u{200A}\u{202F}\u{205F}\u{3000}]"),
        Some('R') => {
            // With a counted repetition `\r\n` is one unit.
            let counted = rest.peek() == Some(&'{');
            made.backtracks |= counted;
            out.push_str(if counted { "(?>" } else { "(?:" });
            out.push_str(r"\r\n|[\n\x0B\f\r\u{85}\u{2028}\u{2029}])");
        }
        Some('Z') => {
            made.before_last_break = true;
            out.push_str(r"\z");
        }
        Some(p @ ('p' | 'P')) => property(rest, flags, out, p == 'P'),
        Some('k') if rest.peek() == Some(&'<') => {
            made.backtracks = true;
            let name: String = rest.by_ref().take_while(|c| *c != '>').collect();
            refer_back(&format!(r"\k{name}>"), case_folding, out);
        }
        Some(first @ '1'..='9') if !in_class => {
            made.backtracks = true;
            let mut number = format!("\\{first}");
            while let Some(digit) = rest.next_if(char::is_ascii_digit) {
                number.push(digit);
            }
            refer_back(&number, case_folding, out);
        }
        Some('v') => out.push_str(r"[\n\x0B\f\r\u{85}\u{2028}\u{2029}]"),
        Some('V') => out.push_str(r"[^\n\x0B\f\r\u{85}\u{2028}\u{2029}]"),
        // One of the engines gives these a meaning.
        Some('G' | 'N' | 'O') => made.refuse(explain("unrecognized escape sequence")),
        Some('u') => {
            let hint = "write \\u00e9, or \\x{1F600} for a code of any length";
            made.refuse(PatternError::new("\\u takes four hexadecimal digits", hint));
        }
        // The engines know these; any other letter is an error.
        Some(other) => {
            out.push('\\');
            out.push(other);
        }
        None => out.push('\\'),
    }
}

/// The text after `(`: a group, whose flags end with it, or flags for the rest of the enclosing group.
fn group(rest: &mut Rest<'_>, flags: &mut Flags, outer: &mut Vec<Flags>, made: &mut Translated) {
    made.text.push('(');
    outer.push(*flags);
    let within = (flags.looks.take(), std::mem::take(&mut flags.behind));
    let bracket = made.text.len() - 1;
    let mut ahead = rest.clone();
    if ahead.next() != Some('?') {
        return;
    }
    let mut letters = String::new();
    let end = loop {
        match ahead.next() {
            Some(letter) if letter == '-' || letter.is_ascii_alphabetic() => letters.push(letter),
            end => break end,
        }
    };
    if !matches!(end, Some(')' | ':')) {
        let about = (end, ahead.peek().copied());
        flags.behind = letters.is_empty() && end == Some('<') && matches!(about.1, Some('=' | '!'));
        flags.looks = (flags.behind || letters.is_empty() && matches!(end, Some('=' | '!'))).then_some(bracket);
        made.backtracks |= letters.is_empty() && matches!(about, (Some('=' | '!' | '>'), _) | (Some('<'), Some('=' | '!')));
        if end == Some('<') && !matches!(about.1, Some('=' | '!')) {
            made.text.extend(rest.by_ref().take_while(|c| *c != '>'));
            made.text.push('>');
        }
        return;
    }
    *rest = ahead;
    let mut on = true;
    let mut kept = String::new();
    for letter in letters.chars() {
        match letter {
            '-' => on = false,
            'm' => flags.lines = on,
            's' => flags.breaks = on,
            'x' => flags.spaced = on,
            'U' => flags.unicode = on,
            'i' => flags.ignores_case = on,
            'u' => flags.all_letters = on,
            _ => {}
        }
        // The engines recognise line breaks anyway, case is expanded, and `U` has another meaning for them.
        if !matches!(letter, 'd' | 'i' | 'u' | 'U') {
            kept.push(letter);
        }
    }
    let kept = kept.strip_suffix('-').unwrap_or(&kept);
    if end == Some(':') {
        made.text.push('?');
        made.text.push_str(kept);
        made.text.push(':');
    } else if kept.is_empty() {
        (flags.looks, flags.behind) = within;
        outer.pop();
        made.text.pop();
    } else {
        (flags.looks, flags.behind) = within;
        outer.pop();
        made.text.push('?');
        made.text.push_str(kept);
        made.text.push(')');
    }
}

type Rest<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn quoted(rest: &mut Rest<'_>, case_folding: CaseFolding, in_class: bool, out: &mut String) {
    while let Some(c) = rest.next() {
        if c == '\\' && rest.peek() == Some(&'E') {
            rest.next();
            return;
        }
        if c.is_ascii_punctuation() {
            out.push('\\');
        }
        case_folding.write(c, in_class, out);
    }
}

/// A back-reference. The backtracker ignores case there itself.
fn refer_back(group: &str, case_folding: CaseFolding, out: &mut String) {
    let _ = if case_folding == CaseFolding::None { write!(out, "(?:{group})") } else { write!(out, "(?i:{group})") };
}

/// The character that an escape means: by its code, one of the controls, or punctuation that means itself.
fn code_point(rest: &mut Rest<'_>) -> Option<char> {
    let mut ahead = rest.clone();
    let digits = |ahead: &mut Rest<'_>, radix: u32, most: u32| {
        let (mut code, mut count) = (0_u32, 0);
        while count < most
            && let Some(digit) = ahead.peek().and_then(|c| c.to_digit(radix))
        {
            // A fourth octal digit, or one that leads beyond a byte, is a character of its own.
            if radix == 8 && code * 8 + digit > 0o377 {
                break;
            }
            code = code.saturating_mul(radix).saturating_add(digit);
            count += 1;
            ahead.next();
        }
        (count > 0).then_some(code)
    };
    let code = match ahead.next()? {
        't' => Some(0x09),
        'n' => Some(0x0A),
        'f' => Some(0x0C),
        'r' => Some(0x0D),
        'a' => Some(0x07),
        'e' => Some(0x1B),
        punctuation if !punctuation.is_ascii_alphanumeric() => Some(u32::from(punctuation)),
        '0' => digits(&mut ahead, 8, 3),
        'u' => digits(&mut ahead, 16, 4),
        'x' if ahead.next_if_eq(&'{').is_some() => {
            let code = digits(&mut ahead, 16, 8);
            ahead.next_if_eq(&'}').and(code)
        }
        'x' => digits(&mut ahead, 16, 2),
        'c' => ahead.next().filter(char::is_ascii).map(|letter| u32::from(letter) ^ 64),
        _ => None,
    };
    let found = char::from_u32(code?)?;
    *rest = ahead;
    Some(found)
}

fn property(rest: &mut Rest<'_>, flags: Flags, out: &mut String, negated: bool) {
    let name: String = match rest.next() {
        Some('{') => rest.by_ref().take_while(|c| *c != '}').collect(),
        letter => letter.into_iter().collect(),
    };
    let name = match name.as_str() {
        "Lower" | "Upper" if flags.case_folding() != CaseFolding::None => "Alpha",
        // Letters that have a case.
        "Lu" | "Ll" | "Lt" | "IsLu" | "IsLl" | "IsLt" if flags.case_folding() != CaseFolding::None => "LC",
        name => name,
    };
    match unicode(name).filter(|_| flags.unicode) {
        Some(members) => {
            let _ = write!(out, "[{}{members}]", if negated { "^" } else { "" });
        }
        None => out.push_str(&posix(name, negated)),
    }
}

/// The meaning of a POSIX class under `(?U)`.
fn unicode(name: &str) -> Option<&'static str> {
    Some(match name {
        "Lower" => r"\p{Lowercase}",
        "Upper" => r"\p{Uppercase}",
        "Alpha" => r"\p{Alphabetic}",
        "Digit" => r"\p{Nd}",
        "Alnum" => r"\p{Alphabetic}\p{Nd}",
        "Punct" => r"\p{P}",
        "Space" => r"\p{White_Space}",
        _ => return None,
    })
}

fn posix(name: &str, negated: bool) -> String {
    let ascii = match name {
        "Lower" => "a-z",
        "Upper" => "A-Z",
        "Alpha" => "A-Za-z",
        "Digit" => "0-9",
        "Alnum" => "0-9A-Za-z",
        "Punct" => r"!-/:-@\[-`{-~",
        "Space" => r"\x20\t\n\x0B\f\r",
        "Blank" => r"\x20\t",
        "XDigit" => "0-9A-Fa-f",
        "Cntrl" => r"\x00-\x1F\x7F",
        "Graph" => "!-~",
        "Print" => r"\x20-~",
        "ASCII" => r"\x00-\x7F",
        _ => {
            let name = match name {
                "javaLowerCase" => "Lowercase",
                "javaUpperCase" => "Uppercase",
                "javaAlphabetic" => "Alphabetic",
                "javaLetter" => "L",
                "javaDigit" => "Nd",
                _ => name.strip_prefix("Is").unwrap_or(name),
            };
            return format!(r"\{}{{{name}}}", if negated { 'P' } else { 'p' });
        }
    };
    format!("[{}{ascii}]", if negated { "^" } else { "" })
}
