//! Java's regular expression syntax in the engines' syntax.

use std::fmt::Write;

/// Rewrites what the two syntaxes spell differently; everything else passes through.
///
/// Java's classes are ASCII unless asked otherwise: `\d \w \s \b`. `\Q…\E` quotes, `\h` is horizontal white space, `\R` any line
/// break, `\Z` the end before a final line break, `\e` escape, `\0n` an octal character, `(?<name>…)` a named group.
pub(super) fn java(source: &str) -> String {
    let mut out = String::with_capacity(source.len() + 16);
    let mut rest = source.chars().peekable();
    // Brackets open: inside a class some escapes are spelled without brackets of their own.
    let mut class = 0usize;
    while let Some(c) = rest.next() {
        match c {
            '\\' => match rest.next() {
                Some('Q') => quoted(&mut rest, &mut out),
                Some('d') => out.push_str("[0-9]"),
                Some('D') => out.push_str("[^0-9]"),
                Some('w') => out.push_str("[0-9A-Za-z_]"),
                Some('W') => out.push_str("[^0-9A-Za-z_]"),
                Some('s') => out.push_str(r"[ \t\n\x0B\f\r]"),
                Some('S') => out.push_str(r"[^ \t\n\x0B\f\r]"),
                Some('h') => out.push_str(r"[ \t\u{A0}\u{1680}\u{180E}\u{2000}-\u{200A}\u{202F}\u{205F}\u{3000}]"),
                Some('H') => out.push_str(r"[^ \t\u{A0}\u{1680}\u{180E}\u{2000}-\u{200A}\u{202F}\u{205F}\u{3000}]"),
                Some('R') => out.push_str(r"(?:\r\n|[\n\x0B\f\r\u{85}\u{2028}\u{2029}])"),
                Some('Z') => out.push_str(r"(?:(?:\r\n|[\n\r\u{85}\u{2028}\u{2029}])?\z)"),
                Some('e') => out.push_str(r"\x1B"),
                Some('0') => octal(&mut rest, &mut out),
                Some('u') => unicode(&mut rest, &mut out),
                Some(p @ ('p' | 'P')) if rest.peek() == Some(&'{') => property(&mut rest, &mut out, p == 'P'),
                // The engines know these; any other letter would be a fault, and punctuation may be escaped freely.
                Some(other) => {
                    if !other.is_ascii_alphanumeric() && !other.is_ascii_punctuation() {
                        out.push(other);
                    } else {
                        out.push('\\');
                        out.push(other);
                    }
                }
                None => out.push('\\'),
            },
            '[' => {
                class += 1;
                out.push('[');
                if rest.peek() == Some(&'^') {
                    out.push('^');
                    rest.next();
                }
                if rest.peek() == Some(&']') {
                    // Java takes a bracket in first place as the end; the engines take it as a member, as does common usage.
                    out.push_str(r"\]");
                    rest.next();
                }
            }
            ']' if class > 0 => {
                class -= 1;
                out.push(']');
            }
            '~' | '-' if class > 0 && rest.peek() == Some(&c) => {
                // `--` and `~~` are set operations to the engines only.
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
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
        "Space" => r" \t\n\x0B\f\r",
        "Blank" => r" \t",
        "XDigit" => "0-9A-Fa-f",
        "Cntrl" => r"\x00-\x1F\x7F",
        "Graph" => "!-~",
        "Print" => " -~",
        "ASCII" => r"\x00-\x7F",
        _ => {
            let name = name.strip_prefix("Is").unwrap_or(name);
            return format!(r"\{}{{{name}}}", if negated { 'P' } else { 'p' });
        }
    };
    format!("[{}{ascii}]", if negated { "^" } else { "" })
}
