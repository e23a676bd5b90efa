//! Parses signatures.

use super::{Field, MAX_DEPTH, PRIMITIVES, Signature, Type, underscored};
use crate::error::{Error, ErrorKind, Span};

/// Unsupported type names that authors often guess, with hints.
const GUESSED: &[(&str, &str)] = &[
    ("list", "a list is written [:any], or with the type of its items: [:int]"),
    ("array", "a list is written [:any], or with the type of its items: [:int]"),
    ("vector", "a list is written [:any], or with the type of its items: [:int]"),
    ("tuple", "there are no tuples: name the parts, as in {x :int, y :int}"),
    ("object", "a map is written {field :type}, or :map where its keys are not known"),
    ("integer", "write :int"),
    ("number", "write :float, which takes integers as well, or :int"),
    ("double", "write :float"),
    ("str", "write :string"),
    ("text", "write :string"),
    ("atom", "write :keyword"),
    ("date", "write :datetime for an instant with an offset, or :string"),
    ("null", "a value that may be nil has a ? after its type: :string?"),
    ("nil", "a value that may be nil has a ? after its type: :string?"),
];

const TYPES: &str = "types are :string :int :float :bool :keyword :datetime :any :map, [:type] and {field :type}";

pub(super) fn signature(text: &str) -> Result<Signature, Error> {
    let mut parser = Parser { text, at: 0, depth: 0 };
    parser.blank();
    let signature = match parser.peek() {
        None => return Err(parser.expected("a signature", "write the type of the result, or (name :type) -> :type")),
        Some('(') => {
            let params = parser.fields('(', ')')?;
            parser.blank();
            if !parser.eat("->") {
                return Err(parser.expected("'->'", "after the parameters write -> and the type of the result"));
            }
            Signature { params, output: parser.of_type()? }
        }
        Some('-') if parser.rest().starts_with("->") => {
            return Err(parser.expected("a signature", "without parameters write () -> :type, or the type alone"));
        }
        Some(_) => Signature::of_output(parser.of_type()?),
    };
    parser.blank();
    match parser.peek() {
        None => Ok(signature),
        Some('?') => Err(parser.expected("the end of the signature", "one ? after a type is enough")),
        Some('-') => {
            Err(parser.expected("the end of the signature", "write parameters in round brackets: (name :type) -> :type"))
        }
        Some(_) => {
            Err(parser.expected("the end of the signature", "several values are a map with named fields: {a :int, b :int}"))
        }
    }
}

pub(super) fn is_name(name: &str) -> bool {
    name.starts_with(starts_name) && name.chars().all(continues_name)
}

fn starts_name(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

fn continues_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

struct Parser<'s> {
    text: &'s str,
    at: usize,
    depth: u32,
}

impl<'s> Parser<'s> {
    fn rest(&self) -> &'s str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn blank(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn word(&mut self, part: fn(char) -> bool) -> &'s str {
        let rest = self.rest();
        let word = rest.get(..rest.find(|c| !part(c)).unwrap_or(rest.len())).unwrap_or("");
        self.at += word.len();
        word
    }

    fn error(&self, start: usize, message: String, hint: impl Into<String>) -> Error {
        let end = (self.at.max(start + 1)).min(self.text.len().max(start));
        Error::at(ErrorKind::ParseError, message, self.text, Span::new(start as u32, end as u32)).with_hint(hint)
    }

    fn expected(&self, what: &str, hint: impl Into<String>) -> Error {
        let message = match self.peek() {
            None => format!("expected {what}, got the end of the signature"),
            Some(found) => format!("expected {what}, got '{found}'"),
        };
        self.error(self.at, message, hint)
    }

    fn of_type(&mut self) -> Result<Type, Error> {
        self.blank();
        let start = self.at;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let message = format!("types are nested more than {MAX_DEPTH} deep");
            return Err(self.error(start, message, "use :map or [:any] for the inner parts"));
        }
        let found = match self.peek() {
            Some(':') => self.primitive()?,
            Some('[') => self.list()?,
            Some('{') => Type::Fields { fields: self.fields('{', '}')?, closed: false },
            Some(c) if starts_name(c) => {
                let word = self.word(continues_name);
                let hint = if known(word).is_some() { format!("types begin with a colon: :{word}") } else { TYPES.to_owned() };
                return Err(self.error(start, format!("expected a type, got '{word}'"), hint));
            }
            _ => return Err(self.expected("a type", TYPES)),
        };
        self.depth -= 1;
        if !self.eat("?") {
            return Ok(found);
        }
        if self.peek() == Some('?') {
            return Err(self.expected("no second '?'", "one ? after a type is enough"));
        }
        Ok(found.optional())
    }

    fn primitive(&mut self) -> Result<Type, Error> {
        let start = self.at;
        self.eat(":");
        let word = self.word(continues_name);
        if word.is_empty() {
            return Err(self.expected("the name of a type after ':'", TYPES));
        }
        known(word).ok_or_else(|| {
            let guessed = GUESSED.iter().find(|(guess, _)| *guess == word).map(|(_, hint)| (*hint).to_owned());
            let near = || {
                let name = ptc_text::closest_match(word, PRIMITIVES.iter().map(|(name, _)| *name))?;
                Some(format!("did you mean :{name}? {TYPES}"))
            };
            self.error(start, format!("there is no type :{word}"), guessed.or_else(near).unwrap_or_else(|| TYPES.to_owned()))
        })
    }

    fn list(&mut self) -> Result<Type, Error> {
        self.eat("[");
        self.blank();
        if self.peek() == Some(']') {
            return Err(self.expected("the type of the list's items", "a list of anything is [:any]"));
        }
        let item = self.of_type()?;
        self.blank();
        if !self.eat("]") {
            return Err(self.expected("']'", "a list has one type for all of its items; parts with names are a map: {a :int}"));
        }
        Ok(item.listed())
    }

    fn fields(&mut self, open: char, close: char) -> Result<Vec<Field>, Error> {
        let mut fields: Vec<Field> = Vec::new();
        self.at += open.len_utf8();
        self.blank();
        if self.peek() == Some(close) {
            self.at += close.len_utf8();
            return Ok(fields);
        }
        loop {
            self.blank();
            let start = self.at;
            let name = self.name()?;
            if let Some(held) = fields.iter().find(|held| underscored(&held.name) == underscored(name)) {
                let message = format!("'{name}' is repeated: '{}' is declared before it", held.name);
                return Err(self.error(
                    start,
                    message,
                    "hyphens and underscores are the same; give each field a name of its own",
                ));
            }
            fields.push(Field { name: name.to_owned(), of: self.of_type()? });
            self.blank();
            match self.peek() {
                Some(',') => self.at += 1,
                Some(c) if c == close => {
                    self.at += c.len_utf8();
                    return Ok(fields);
                }
                Some('?') => return Err(self.expected(&format!("',' or '{close}'"), "the ? follows its type without a space")),
                Some(c) if starts_name(c) => {
                    return Err(self.expected(&format!("',' or '{close}'"), "fields are separated by commas: a :int, b :int"));
                }
                _ => return Err(self.expected(&format!("',' or '{close}'"), "brackets are closed as they were opened")),
            }
        }
    }

    fn name(&mut self) -> Result<&'s str, Error> {
        match self.peek() {
            Some(c) if starts_name(c) => Ok(self.word(continues_name)),
            Some(':') => Err(self.expected("a name", "a name comes before its type and has no colon: count :int")),
            Some(c) if c == '"' || c.is_ascii_digit() => {
                Err(self.expected("a name", "names are letters, digits, _ and -, and do not begin with a digit"))
            }
            _ => Err(self.expected("a name", "each field is a name and a type: count :int")),
        }
    }
}

fn known(word: &str) -> Option<Type> {
    let word = if word == "boolean" { "bool" } else { word };
    PRIMITIVES.iter().find(|(name, _)| *name == word).map(|(_, found)| found.clone())
}
