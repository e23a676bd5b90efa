//! Parses text to forms.
//!
//! The reader keeps its own stack of open brackets, so that deeply nested text does not overflow the native stack. Nesting is
//! still limited to [`MAX_NESTING`], since later passes walk the forms recursively.

mod number;
mod scan;
mod string;
mod token;

use crate::deadline::Deadline;
use crate::error::{Error, ErrorKind, Position, Span};
use crate::form::{Form, FormKind};
use scan::Scanner;
pub(crate) use scan::is_keyword_name;
pub use token::{Token, TokenKind, tokens};

/// Maximum number of brackets and prefixes that are open at once.
pub const MAX_NESTING: usize = 256;

/// Parses every form of a program.
///
/// # Errors
///
/// Returns the first error of the text.
pub fn read(source: &str) -> Result<Vec<Form<'_>>, Error> {
    read_until(source, &Deadline::none())
}

/// Parses every form of a program. Fails once the deadline has passed.
///
/// # Errors
///
/// Returns the first error of the text, or the error of the deadline.
pub fn read_until<'s>(source: &'s str, deadline: &Deadline) -> Result<Vec<Form<'s>>, Error> {
    if u32::try_from(source.len()).is_err() {
        let span = Span::new(0, 0);
        return Err(Error::at(ErrorKind::ParseError, "the program is larger than 4 GiB", source, span));
    }
    Reader { scan: Scanner::new(source), open: Vec::new(), forms: Vec::new() }.program(deadline)
}

/// A construct that is open and waits for its forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bracket {
    List,
    Vector,
    Map,
    Set,
    ShortFn,
    /// `'`: applies to one form.
    Quote,
    /// `#_`: drops one form.
    Discard,
}

impl Bracket {
    fn close(self) -> u8 {
        match self {
            Bracket::List | Bracket::ShortFn => b')',
            Bracket::Vector => b']',
            Bracket::Map | Bracket::Set => b'}',
            Bracket::Quote | Bracket::Discard => 0,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Bracket::List => "(",
            Bracket::Vector => "[",
            Bracket::Map => "{",
            Bracket::Set => "#{",
            Bracket::ShortFn => "#(",
            Bracket::Quote => "'",
            Bracket::Discard => "#_",
        }
    }

    fn is_prefix(self) -> bool {
        matches!(self, Bracket::Quote | Bracket::Discard)
    }
}

struct Open {
    bracket: Bracket,
    at: usize,
    /// Index of its first form in the stack of forms.
    first: usize,
}

struct Reader<'s> {
    scan: Scanner<'s>,
    open: Vec<Open>,
    /// Stack of the forms of all open brackets.
    forms: Vec<Form<'s>>,
}

impl<'s> Reader<'s> {
    fn program(mut self, deadline: &Deadline) -> Result<Vec<Form<'s>>, Error> {
        loop {
            if deadline.step() {
                deadline.check()?;
            }
            self.scan.skip_blank();
            let Some(byte) = self.scan.peek() else { break };
            let start = self.scan.at;
            match byte {
                b'(' => self.enter(Bracket::List, 1)?,
                b'[' => self.enter(Bracket::Vector, 1)?,
                b'{' => self.enter(Bracket::Map, 1)?,
                b')' | b']' | b'}' => self.leave(byte)?,
                b'\'' => self.enter(Bracket::Quote, 1)?,
                b'#' => self.dispatch()?,
                b'"' => {
                    let text = self.scan.string()?;
                    self.push(start, FormKind::String(text));
                }
                b'\\' => {
                    let text = self.scan.character()?;
                    self.push(start, FormKind::String(text));
                }
                b':' => {
                    let name = self.scan.keyword()?;
                    self.push(start, FormKind::Keyword(name));
                }
                b'@' | b'^' | b'`' | b'~' => {
                    let what = char::from(byte);
                    let hint = match byte {
                        b'@' => "there are no atoms or refs; use let, loop or reduce",
                        b'^' => "there is no metadata; leave it out",
                        _ => "there are no macros; write a function",
                    };
                    return Err(self.scan.error(format!("'{what}' is not supported"), start, start + 1).with_hint(hint));
                }
                _ => {
                    let kind = self.scan.atom()?;
                    self.push(start, kind);
                }
            }
        }
        match self.open.last() {
            None => Ok(self.forms),
            Some(open) => Err(self.unclosed(open)),
        }
    }

    fn dispatch(&mut self) -> Result<(), Error> {
        let start = self.scan.at;
        match self.scan.peek_at(1) {
            Some(b'{') => self.enter(Bracket::Set, 2),
            Some(b'(') => {
                if let Some(outer) = self.open.iter().find(|open| open.bracket == Bracket::ShortFn) {
                    let outer = Position::at_offset(self.scan.source, outer.at as u32);
                    let error = self.scan.error("#() cannot be nested in another #()", start, start + 2);
                    return Err(error.with_hint(format!("write one of them as (fn [x] …); the outer one opened at {outer}")));
                }
                self.enter(Bracket::ShortFn, 2)
            }
            Some(b'"') => {
                let pattern = self.scan.regex()?;
                self.push(start, FormKind::Regex(pattern));
                Ok(())
            }
            Some(b'_') => self.enter(Bracket::Discard, 2),
            Some(b'\'') => {
                let name = self.scan.var()?;
                self.push(start, FormKind::Var(name));
                Ok(())
            }
            Some(b'#') => {
                let value = self.scan.special_number()?;
                self.push(start, FormKind::Double(value));
                Ok(())
            }
            Some(b'?') => {
                let error = self.scan.error("reader conditionals are not supported", start, start + 2);
                Err(error.with_hint("write only the :clj branch"))
            }
            _ => {
                let end = self.scan.token_end(start + 1);
                let error = self.scan.error("'#' must be followed by { ( \" _ ' or #", start, end);
                Err(error.with_hint(match self.scan.source.get(start + 1..end) {
                    Some("inst") => "there are no tagged values: write (Instant/parse \"2024-01-31T12:00:00Z\")",
                    Some(_) if end > start + 1 => "there are no tagged values: write the value without its tag",
                    _ => "a set is #{1 2}, a function #(+ % 1), a pattern #\"a+\"",
                }))
            }
        }
    }

    fn enter(&mut self, bracket: Bracket, width: usize) -> Result<(), Error> {
        let at = self.scan.at;
        if self.open.len() >= MAX_NESTING {
            let message = format!("forms are nested deeper than {MAX_NESTING} levels");
            return Err(self.scan.error(message, at, at + width).with_hint("give inner parts a name with def or let"));
        }
        self.open.push(Open { bracket, at, first: self.forms.len() });
        self.scan.at += width;
        Ok(())
    }

    fn leave(&mut self, byte: u8) -> Result<(), Error> {
        let at = self.scan.at;
        let closes = char::from(byte);
        let Some(open) = self.open.last() else {
            let error = self.scan.error(format!("'{closes}' closes nothing"), at, at + 1);
            return Err(error.with_hint("remove it, or add the bracket that it should close"));
        };
        let bracket = open.bracket;
        // Finding a line reads all of the text before it, so that it is done only to report an error.
        let opened = || Position::at_offset(self.scan.source, open.at as u32);
        if bracket.is_prefix() {
            let message = format!("'{}' at {} is followed by no form", bracket.text(), opened());
            return Err(self.scan.error(message, at, at + 1));
        }
        if bracket.close() != byte {
            let (found, wanted, opened) = (bracket.text(), char::from(bracket.close()), opened());
            let error = self.scan.error(format!("'{closes}' cannot close '{found}' opened at {opened}"), at, at + 1);
            return Err(error.with_hint(format!("close it with '{wanted}' first")));
        }
        let (start, first) = (open.at, open.first);
        self.open.pop();
        self.scan.at += 1;
        let items = self.forms.split_off(first);
        let kind = match bracket {
            Bracket::List => FormKind::List(items),
            Bracket::Vector => FormKind::Vector(items),
            Bracket::Map if items.len() % 2 == 1 => {
                let error = self.scan.error("a map needs a value for every key", start, self.scan.at);
                let count = items.len();
                return Err(error.with_hint(format!("found {}, which is odd", crate::form::counted(count))));
            }
            Bracket::Map => FormKind::Map(items),
            Bracket::Set => FormKind::Set(items),
            _ => FormKind::ShortFn(items),
        };
        self.push(start, kind);
        Ok(())
    }

    /// Pushes a form, and closes the prefixes that waited for it.
    fn push(&mut self, start: usize, kind: FormKind<'s>) {
        let end = self.scan.at;
        let mut form = Form::new(Span::new(start as u32, end as u32), kind);
        while let Some(open) = self.open.last().filter(|open| open.bracket.is_prefix()) {
            let (bracket, at) = (open.bracket, open.at);
            self.open.pop();
            if bracket == Bracket::Discard {
                return;
            }
            form = Form::new(Span::new(at as u32, end as u32), FormKind::Quote(Box::new(form)));
        }
        self.forms.push(form);
    }

    fn unclosed(&self, open: &Open) -> Error {
        let opened = Position::at_offset(self.scan.source, open.at as u32);
        let text = open.bracket.text();
        let at = open.at;
        if open.bracket.is_prefix() {
            return self.scan.error(format!("'{text}' is followed by no form"), at, at + text.len());
        }
        let missing: String =
            self.open.iter().rev().filter(|o| !o.bracket.is_prefix()).take(20).map(|o| char::from(o.bracket.close())).collect();
        let message = format!("'{text}' opened at {opened} is never closed");
        self.scan.error(message, at, at + text.len()).with_hint(format!("the program ends here; missing: {missing}"))
    }
}
