//! Forms, the output of the reader, with their spans. Names and strings without escapes are slices of the text.

use std::borrow::Cow;

use crate::error::Span;

/// A form with its span in the source.
#[derive(Debug, Clone, PartialEq)]
pub struct Form<'s> {
    /// The range of the source text, including brackets.
    pub span: Span,
    /// The kind of the form.
    pub kind: FormKind<'s>,
}

/// The kinds of forms.
#[derive(Debug, Clone, PartialEq)]
pub enum FormKind<'s> {
    /// `nil`
    Nil,
    /// `true`, `false`
    Bool(bool),
    /// An integer of 64 bits.
    Int(i64),
    /// A larger integer, as sign and digits.
    BigInt(&'s str),
    /// A double, `##Inf`, `##-Inf`, `##NaN`.
    Double(f64),
    /// `"text"` or `\c`
    String(Cow<'s, str>),
    /// `:name`, without the colon.
    Keyword(&'s str),
    /// A symbol.
    Symbol(&'s str),
    /// `(…)`
    List(Vec<Form<'s>>),
    /// `[…]`
    Vector(Vec<Form<'s>>),
    /// `{…}`: keys and values in alternation.
    Map(Vec<Form<'s>>),
    /// `#{…}`
    Set(Vec<Form<'s>>),
    /// `#(…)`: the parts of its body, which is a single call.
    ShortFn(Vec<Form<'s>>),
    /// `#"…"`: the pattern as written.
    Regex(&'s str),
    /// `#'name`
    Var(&'s str),
    /// `'form`
    Quote(Box<Form<'s>>),
}

impl<'s> Form<'s> {
    /// Makes a form that the analyzer generates for a span of the text.
    pub fn new(span: Span, kind: FormKind<'s>) -> Self {
        Form { span, kind }
    }

    /// Returns the name of a symbol.
    pub fn symbol(&self) -> Option<&'s str> {
        match self.kind {
            FormKind::Symbol(name) => Some(name),
            _ => None,
        }
    }

    /// Returns the name of a keyword.
    pub fn keyword(&self) -> Option<&'s str> {
        match self.kind {
            FormKind::Keyword(name) => Some(name),
            _ => None,
        }
    }

    /// A name of the form's kind, for messages.
    pub fn description(&self) -> &'static str {
        match self.kind {
            FormKind::Nil => "nil",
            FormKind::Bool(_) => "a boolean",
            FormKind::Int(_) | FormKind::BigInt(_) | FormKind::Double(_) => "a number",
            FormKind::String(_) => "a string",
            FormKind::Keyword(_) => "a keyword",
            FormKind::Symbol(_) => "a name",
            FormKind::List(_) => "a call",
            FormKind::Vector(_) => "a vector",
            FormKind::Map(_) => "a map",
            FormKind::Set(_) => "a set",
            FormKind::ShortFn(_) => "a function",
            FormKind::Regex(_) => "a pattern",
            FormKind::Var(_) => "a var",
            FormKind::Quote(_) => "a quoted form",
        }
    }
}

/// Formats a count as `1 form` or `3 forms`.
pub(crate) fn counted(count: usize) -> String {
    format!("{count} form{}", if count == 1 { "" } else { "s" })
}
