//! Literals: constants, collections of constants, quoted names.

use super::{Analysed, Analyzer};
use crate::Value;
use crate::error::{Error, ErrorKind, Span};
use crate::form::{Form, FormKind};
use crate::ir::{Ir, Op};
use crate::pattern::Pattern;

/// Maximum total weight of the regexes of one program. All of them together compile in a few milliseconds and take a few
/// megabytes.
const MAX_REGEXES: u32 = 128;

/// Makes a collection of parts that are evaluated at run time. [`Build`] makes one of constant values.
type Make = fn(Vec<Ir>) -> Op;
type Build = fn(Vec<Value>) -> Value;

impl<'s> Analyzer<'s> {
    /// Returns the value of a form that needs no evaluation.
    pub(super) fn constant(&mut self, kind: FormKind<'s>, span: Span) -> Result<Value, Error> {
        Ok(match kind {
            FormKind::Nil => Value::Nil,
            FormKind::Bool(b) => Value::bool(b),
            FormKind::Int(i) => Value::Int(i),
            FormKind::BigInt(digits) => match digits.trim_start_matches('+').parse() {
                Ok(number) => Value::big(number),
                Err(_) => return Err(self.internal(span)),
            },
            FormKind::Double(d) => Value::double(d),
            FormKind::String(std::borrow::Cow::Borrowed(text)) => self.text(text, false),
            FormKind::String(std::borrow::Cow::Owned(text)) => Value::from(text),
            FormKind::Keyword(name) => self.text(name, true),
            FormKind::Regex(pattern) => self.regex(pattern, span)?,
            _ => return Err(self.internal(span)),
        })
    }

    /// Compiles a regex. This happens before the run and its limits begin, so that the total weight per program is limited.
    fn regex(&mut self, source: &'s str, span: Span) -> Result<Value, Error> {
        if let Some(known) = self.regexes.get(source) {
            return Ok(known.clone());
        }
        let regex = match Pattern::compile(source) {
            Ok(regex) => regex,
            Err(why) => {
                let error = self.error(ErrorKind::ParseError, span, format!("the pattern is not valid: {why}"));
                return Err(error.with_hint(why.hint));
            }
        };
        self.regex_weight += regex.weight();
        if self.regex_weight > MAX_REGEXES {
            let message = format!("a program has at most {MAX_REGEXES} different regexes, and few of them large");
            let error = self.error(ErrorKind::ParseError, span, message);
            return Err(error.with_hint("join several with |, or make them where they are needed with (re-pattern s)"));
        }
        let value = Value::Regex(std::sync::Arc::new(regex));
        self.regexes.insert(source, value.clone());
        Ok(value)
    }

    /// Returns one shared value for all uses of a text, since key comparison checks addresses first.
    pub(crate) fn text(&mut self, text: &'s str, keyword: bool) -> Value {
        let make = || if keyword { Value::keyword(text) } else { Value::string(text) };
        self.texts.entry((text, keyword)).or_insert_with(make).clone()
    }

    /// Analyses `[…]`, `{…}` or `#{…}`. If all parts are constants, the collection is one too.
    pub(super) fn collection(&mut self, form: Form<'s>) -> Analysed {
        let span = form.span;
        self.depth += 1;
        let (parts, unique, make, build): (_, Option<usize>, Make, Build) = match form.kind {
            FormKind::Vector(parts) => (parts, None, Op::Vector, Value::vector),
            FormKind::Map(parts) => (parts, Some(2), Op::Map, pairs),
            FormKind::Set(parts) => (parts, Some(1), Op::Set, Value::set),
            _ => return Err(self.internal(span)),
        };
        let parts = self.exprs(parts)?;
        self.depth -= 1;
        if let Some((key, at)) = unique.and_then(|step| repeated(parts.iter().step_by(step))) {
            let what = if unique == Some(1) { "member" } else { "key" };
            let error = self.invalid(at, format!("the {what} {} is repeated", crate::print::preview_line(key, 60)));
            return Err(error.with_hint("remove one of the two; those that are computed may repeat, and the last one holds"));
        }
        let op = if parts.iter().all(|part| matches!(part.op, Op::Const(_))) {
            let values = parts.into_iter().map(|part| match part.op {
                Op::Const(value) => value,
                _ => Value::Nil,
            });
            Op::Const(build(values.collect()))
        } else {
            make(parts)
        };
        Ok(Ir::new(span, op))
    }

    /// Analyses `'name`, `'[a b]` or `'(1 2)` as data. A list becomes a vector.
    pub(crate) fn quote(&mut self, form: Form<'s>) -> Analysed {
        let span = form.span;
        let value = self.quoted(form)?;
        Ok(Ir::new(span, Op::Const(value)))
    }

    /// Returns a test of `case`, which is a constant and is not evaluated.
    pub(crate) fn quoted_constant(&mut self, form: Form<'s>) -> Result<Value, Error> {
        self.quoted(form)
    }

    fn quoted(&mut self, form: Form<'s>) -> Result<Value, Error> {
        let span = form.span;
        let mut all = |forms: Vec<Form<'s>>| forms.into_iter().map(|form| self.quoted(form)).collect::<Result<Vec<_>, _>>();
        Ok(match form.kind {
            FormKind::Symbol(name) => Value::Symbol(name.into()),
            FormKind::List(forms) | FormKind::Vector(forms) => Value::vector(all(forms)?),
            FormKind::Map(forms) => pairs(all(forms)?),
            FormKind::Set(forms) => Value::set(all(forms)?),
            FormKind::Quote(inner) => self.quoted(*inner)?,
            FormKind::Var(name) => Value::Var(name.into()),
            FormKind::ShortFn(_) => return Err(self.invalid(span, "a function cannot be quoted")),
            other => self.constant(other, span)?,
        })
    }
}

/// Returns the first constant that equals an earlier one, and its span.
#[expect(clippy::mutable_key_type, reason = "the mutable parts of a function do not affect its order")]
fn repeated<'a>(keys: impl Iterator<Item = &'a Ir>) -> Option<(&'a Value, Span)> {
    let mut seen = std::collections::BTreeSet::new();
    keys.filter_map(|key| match &key.op {
        Op::Const(value) => Some((value, key.span)),
        _ => None,
    })
    .find(|(value, _)| !seen.insert(*value))
}

fn pairs(values: Vec<Value>) -> Value {
    let mut values = values.into_iter();
    let mut entries = Vec::with_capacity(values.len() / 2);
    while let (Some(key), Some(value)) = (values.next(), values.next()) {
        entries.push((key, value));
    }
    Value::map(entries)
}
