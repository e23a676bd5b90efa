//! Java's regular expression syntax in the engines' syntax.

use std::fmt::Write;

/// A pattern in the engines' syntax, and what it asks of an engine.
#[derive(Default)]
pub(super) struct Translated {
    /// The pattern.
    pub text: String,
    /// It looks around, refers back or gives nothing back: only the backtracking engine can do that.
    pub backtracks: bool,
    /// It has a `$` or `\Z`, which also stand before a line break at the end of the text.
    pub before_last_break: bool,
}

/// Flags whose meaning differs between the syntaxes, as they hold in one group.
#[derive(Clone, Copy, Default)]
struct Flags {
    /// `(?m)`: `$` stands at every line's end.
    lines: bool,
    /// `(?x)`: white space and comments are skipped.
    spaced: bool,
    /// `(?U)`: `\d \w \s` know all of Unicode.
    unicode: bool,
}

/// Rewrites what the two syntaxes spell differently; everything else passes through.
///
/// Java's classes are ASCII unless asked otherwise: `\d \w \s \b`. `\Q…\E` quotes, `\h` is horizontal white space, `\R` any line
/// break, `\Z` the end before a final line break, `\e` escape, `\0n` an octal character, `(?<name>…)` a named group, `a++` gives
/// nothing back.
pub(super) fn java(source: &str) -> Translated {
    let mut made = Translated { text: String::with_capacity(source.len() + 16), ..Translated::default() };
    let mut rest = source.chars().peekable();
    // Brackets open: inside a class some escapes are spelled without brackets of their own.
    let mut class = 0usize;
    let (mut flags, mut outer) = (Flags::default(), Vec::new());
    let mut quantified = false;
    while let Some(c) = rest.next() {
        let after_quantifier = std::mem::take(&mut quantified);
        match c {
            '\\' => escape(&mut rest, flags, &mut made),
            '[' => {
                class += 1;
                made.text.push('[');
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
            _ if class > 0 => made.text.push(c),
            '(' => group(&mut rest, &mut flags, &mut outer, &mut made),
            ')' => {
                flags = outer.pop().unwrap_or(flags);
                made.text.push(')');
            }
            // A comment would swallow what is put behind the pattern.
            '#' if flags.spaced => while rest.next().is_some_and(|c| c != '\n') {},
            '$' => {
                made.before_last_break |= !flags.lines;
                made.text.push('$');
            }
            '+' if after_quantifier => {
                made.backtracks = true;
                made.text.push('+');
            }
            '*' | '+' | '?' | '}' => {
                quantified = !after_quantifier;
                made.text.push(c);
            }
            _ => made.text.push(c),
        }
    }
    made
}

/// What follows a backslash. A blank is written as `\x20`, since `(?x)` skips it in a class too.
fn escape(rest: &mut Rest<'_>, flags: Flags, made: &mut Translated) {
    let out = &mut made.text;
    match rest.next() {
        Some('Q') => quoted(rest, out),
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
        Some('R') => out.push_str(r"(?:\r\n|[\n\x0B\f\r\u{85}\u{2028}\u{2029}])"),
        Some('Z') => {
            made.before_last_break = true;
            out.push_str(r"\z");
        }
        Some('e') => out.push_str(r"\x1B"),
        Some('0') => octal(rest, out),
        Some('u') => unicode(rest, out),
        Some(p @ ('p' | 'P')) if rest.peek() == Some(&'{') => property(rest, out, p == 'P'),
        // The engines know these; any other letter would be a fault, and punctuation may be escaped freely.
        Some(other) => {
            made.backtracks |= matches!(other, '1'..='9' | 'k');
            if other.is_ascii_alphanumeric() || other.is_ascii_punctuation() {
                out.push('\\');
            }
            out.push(other);
        }
        None => out.push('\\'),
    }
}

/// What follows `(`: a group, whose flags end with it, or flags for the rest of the group that is open.
fn group(rest: &mut Rest<'_>, flags: &mut Flags, outer: &mut Vec<Flags>, made: &mut Translated) {
    made.text.push('(');
    outer.push(*flags);
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
        made.backtracks |= letters.is_empty() && matches!(about, (Some('=' | '!' | '>'), _) | (Some('<'), Some('=' | '!')));
        return;
    }
    *rest = ahead;
    let mut on = true;
    let mut kept = String::new();
    for letter in letters.chars() {
        match letter {
            '-' => on = false,
            'm' => flags.lines = on,
            'x' => flags.spaced = on,
            'U' => flags.unicode = on,
            _ => {}
        }
        // The engines know line breaks and the case of all letters anyway, and `U` means something else to them.
        if !matches!(letter, 'd' | 'u' | 'U') {
            kept.push(letter);
        }
    }
    let kept = kept.strip_suffix('-').unwrap_or(&kept);
    if end == Some(':') {
        made.text.push('?');
        made.text.push_str(kept);
        made.text.push(':');
    } else if kept.is_empty() {
        outer.pop();
        made.text.pop();
    } else {
        outer.pop();
        made.text.push('?');
        made.text.push_str(kept);
        made.text.push(')');
    }
}

type Rest<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn quoted(rest: &mut Rest<'_>, out: &mut String) {
    while let Some(c) = rest.next() {
        if c == '\\' && rest.peek() == Some(&'E') {
            rest.next();
            return;
        }
        if c.is_ascii_punctuation() {
            out.push('\\');
        }
        out.push(c);
    }
}

fn octal(rest: &mut Rest<'_>, out: &mut String) {
    let mut code = 0;
    for _ in 0..3 {
        match rest.peek().and_then(|c| c.to_digit(8)) {
            Some(digit) if code * 8 + digit <= 0o377 => {
                code = code * 8 + digit;
                rest.next();
            }
            _ => break,
        }
    }
    let _ = write!(out, r"\x{{{code:X}}}");
}

fn unicode(rest: &mut Rest<'_>, out: &mut String) {
    out.push_str(r"\u{");
    for _ in 0..4 {
        match rest.peek() {
            Some(c) if c.is_ascii_hexdigit() => {
                out.push(*c);
                rest.next();
            }
            _ => break,
        }
    }
    out.push('}');
}

fn property(rest: &mut Rest<'_>, out: &mut String, negated: bool) {
    rest.next();
    let name: String = rest.by_ref().take_while(|c| *c != '}').collect();
    out.push_str(&posix(&name, negated));
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
            let name = name.strip_prefix("Is").unwrap_or(name);
            return format!(r"\{}{{{name}}}", if negated { 'P' } else { 'p' });
        }
    };
    format!("[{}{ascii}]", if negated { "^" } else { "" })
}
