//! Destructuring: a pattern becomes slots that are filled one after the other.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::{Analyzer, read};
use crate::Value;
use crate::error::{Error, ErrorKind, Span};
use crate::form::{Form, FormKind};
use crate::ir::{Ir, Local, Op};

/// Slots with the expressions that fill them.
pub(crate) type Bindings = Vec<(u32, Ir)>;

impl<'s> Analyzer<'s> {
    /// Binds the names of `pattern` to parts of `value`, and appends the slots to `out`.
    pub(crate) fn bind(&mut self, pattern: Form<'s>, value: Ir, out: &mut Bindings) -> Result<(), Error> {
        let slot = self.slot();
        out.push((slot, value));
        self.bind_slot(pattern, slot, out)
    }

    /// Binds the names of `pattern` to parts of the value in `slot`.
    pub(crate) fn bind_slot(&mut self, pattern: Form<'s>, slot: u32, out: &mut Bindings) -> Result<(), Error> {
        let span = pattern.span;
        self.step(span)?;
        match pattern.kind {
            FormKind::Symbol(name) => self.bind_name(name, slot, span),
            FormKind::Vector(parts) => self.bind_items(parts, slot, out),
            FormKind::Map(parts) => self.bind_keys(parts, slot, span, out),
            other => {
                let found = Form::new(span, other).description();
                let error =
                    self.error(ErrorKind::UnsupportedPattern, span, format!("expected a name or a pattern, found {found}"));
                Err(error.with_hint("patterns are name, [a b & rest], {:keys [a b]}, {name :key}"))
            }
        }
    }

    fn bind_name(&mut self, name: &'s str, slot: u32, span: Span) -> Result<(), Error> {
        if name.len() > 1 && name.contains('/') {
            return Err(self.invalid(span, format!("{name} cannot be bound: a local name has no namespace")));
        }
        if name.starts_with('%') {
            return Err(self.error(ErrorKind::InvalidPlaceholder, span, format!("{name} cannot be bound")));
        }
        self.name(name, slot);
        Ok(())
    }

    fn bind_items(&mut self, parts: Vec<Form<'s>>, slot: u32, out: &mut Bindings) -> Result<(), Error> {
        let mut index = 0;
        let mut ended = false;
        let mut parts = parts.into_iter();
        while let Some(part) = parts.next() {
            let span = part.span;
            if ended && part.keyword() != Some("as") {
                let found = part.description();
                let error = self.invalid(span, format!("only :as can follow what & binds, found {found}"));
                return Err(error.with_hint("write [a b & rest], or [a b & rest :as all]"));
            }
            if part.symbol() == Some("&") {
                let Some(rest) = parts.next() else {
                    let error = self.invalid(span, "& must be followed by the name of what is left");
                    return Err(error.with_hint("write [a b & rest]"));
                };
                ended = true;
                let op = Op::Rest(Local::new(slot), index);
                let target = self.slot();
                out.push((target, Ir::new(rest.span, op)));
                if matches!(rest.kind, FormKind::Map(_)) {
                    let named = Ir::new(rest.span, Op::Named(Local::new(target)));
                    self.bind(rest, named, out)?;
                } else {
                    self.bind_slot(rest, target, out)?;
                }
            } else if part.keyword() == Some("as") {
                let Some(whole) = parts.next() else {
                    return Err(self.invalid(span, ":as must be followed by a name"));
                };
                self.bind_slot(whole, slot, out)?;
            } else {
                let op = Op::Nth(Local::new(slot), index);
                self.bind(part, Ir::new(span, op), out)?;
                index += 1;
            }
        }
        // An empty pattern still requires a value that can be destructured.
        Ok(())
    }

    fn bind_keys(&mut self, parts: Vec<Form<'s>>, slot: u32, span: Span, out: &mut Bindings) -> Result<(), Error> {
        let mut entries = pairs(parts);
        let mut defaults = match entries.iter().position(|(key, _)| key.keyword() == Some("or")) {
            Some(at) => self.defaults(entries.remove(at).1)?,
            None => Defaults::default(),
        };
        for (left, right) in entries {
            let place = left.span;
            match left.keyword() {
                Some("as") => self.bind_slot(right, slot, out)?,
                Some(kind @ ("keys" | "strs" | "syms")) => {
                    let FormKind::Vector(names) = right.kind else {
                        let error = self.invalid(right.span, format!(":{kind} must be followed by a vector of names"));
                        return Err(error.with_hint(format!("write {{:{kind} [a b]}}")));
                    };
                    for name in names {
                        let Some(text) = name.symbol().or_else(|| name.keyword()) else {
                            return Err(self.invalid(name.span, format!("expected a name, found {}", name.description())));
                        };
                        let key = match kind {
                            "syms" => Value::Symbol(text.into()),
                            _ => self.text(text, kind == "keys"),
                        };
                        self.bind_key(&Form::new(name.span, FormKind::Symbol(text)), key, slot, &mut defaults, out)?;
                    }
                }
                Some(other) => {
                    let error =
                        self.error(ErrorKind::UnsupportedPattern, place, format!(":{other} is not supported in a pattern"));
                    return Err(error.with_hint("use :keys, :strs, :syms, :or, :as, or {name :key}"));
                }
                None => {
                    let key = match right.kind {
                        FormKind::Nil
                        | FormKind::Bool(_)
                        | FormKind::Int(_)
                        | FormKind::BigInt(_)
                        | FormKind::Double(_)
                        | FormKind::String(_)
                        | FormKind::Keyword(_) => self.constant(right.kind, right.span)?,
                        FormKind::Quote(form) => self.quoted_constant(*form)?,
                        FormKind::List(mut parts) if is_quote(&parts) => self.quoted_constant(parts.remove(1))?,
                        kind @ (FormKind::Vector(_) | FormKind::Map(_) | FormKind::Set(_)) if is_constant(&kind) => {
                            self.quoted_constant(Form::new(right.span, kind))?
                        }
                        other => {
                            let found = Form::new(right.span, other).description();
                            let message =
                                format!("expected a constant key such as :name, \"name\", true or 'name, found {found}");
                            let error = self.error(ErrorKind::UnsupportedPattern, right.span, message);
                            return Err(error.with_hint("a key that is computed is looked up with (get m key)"));
                        }
                    };
                    self.bind_key(&left, key, slot, &mut defaults, out)?;
                }
            }
        }
        if let Some(name) = defaults.unused() {
            let message = format!(":or gives a default to {name}, which the pattern does not bind");
            return Err(self.invalid(span, message));
        }
        Ok(())
    }

    fn bind_key(
        &mut self,
        pattern: &Form<'s>,
        key: Value,
        slot: u32,
        defaults: &mut Defaults<'s>,
        out: &mut Bindings,
    ) -> Result<(), Error> {
        let default = match pattern.symbol().and_then(|name| defaults.take(name)) {
            Some(form) => Some(Box::new(self.expr(form, false)?)),
            None => None,
        };
        let op = Op::Key { from: Local::new(slot), key, default };
        self.bind(pattern.clone(), Ir::new(pattern.span, op), out)
    }

    /// Analyses the defaults of `:or`.
    fn defaults(&mut self, form: Form<'s>) -> Result<Defaults<'s>, Error> {
        let FormKind::Map(parts) = form.kind else {
            return Err(self.invalid(form.span, ":or must be followed by a map of names and defaults"));
        };
        let mut defaults = Defaults::default();
        for (name, default) in pairs(parts) {
            let Some(text) = name.symbol().or_else(|| name.keyword()) else {
                return Err(self.invalid(name.span, format!("expected a name, found {}", name.description())));
            };
            defaults.insert(text, default);
        }
        Ok(defaults)
    }

    /// Returns the pairs of a binding vector.
    pub(crate) fn binding_pairs(&mut self, form: Form<'s>, of: &str) -> Result<Vec<(Form<'s>, Form<'s>)>, Error> {
        let span = form.span;
        // Forms that test the bound value take one pair.
        let pairs_shown = if of.starts_with("if-") || of.starts_with("when-") { "a 1" } else { "a 1 b 2" };
        let shape = format!("write ({of} [{pairs_shown}] …)");
        match form.kind {
            FormKind::Vector(parts) if parts.len() % 2 == 0 => Ok(pairs(parts)),
            FormKind::Vector(parts) => {
                let error =
                    self.invalid(span, format!("{of} needs a value for every name, found {}", crate::form::counted(parts.len())));
                Err(error.with_hint(shape))
            }
            other => {
                let found = Form::new(span, other).description();
                let error = self.invalid(span, format!("{of} needs a vector of bindings, found {found}"));
                Err(error.with_hint(shape))
            }
        }
    }

    /// Allocates a slot and returns it with a read of it.
    pub(crate) fn fresh(&mut self, span: Span) -> (u32, Ir) {
        let slot = self.slot();
        (slot, read(span, slot))
    }
}

/// Whether a list is `(quote x)`.
fn is_quote(parts: &[Form<'_>]) -> bool {
    parts.len() == 2 && parts.first().and_then(Form::symbol) == Some("quote")
}

/// Whether a form is a constant, without any part to evaluate.
fn is_constant(kind: &FormKind<'_>) -> bool {
    match kind {
        FormKind::Vector(parts) | FormKind::Map(parts) | FormKind::Set(parts) => parts.iter().all(|part| is_constant(&part.kind)),
        FormKind::Nil
        | FormKind::Bool(_)
        | FormKind::Int(_)
        | FormKind::BigInt(_)
        | FormKind::Double(_)
        | FormKind::String(_)
        | FormKind::Keyword(_)
        | FormKind::Quote(_) => true,
        _ => false,
    }
}

/// The defaults of a pattern. Each is removed when a name uses it.
#[derive(Default)]
struct Defaults<'s> {
    /// The defaults in the order of the text.
    entries: Vec<(&'s str, Option<Form<'s>>)>,
    /// Index in `entries` of each name. A map, since a pattern may have thousands of defaults.
    index: HashMap<&'s str, usize, RandomState>,
}

impl<'s> Defaults<'s> {
    fn insert(&mut self, name: &'s str, default: Form<'s>) {
        self.index.entry(name).or_insert(self.entries.len());
        self.entries.push((name, Some(default)));
    }

    fn take(&mut self, name: &str) -> Option<Form<'s>> {
        let at = *self.index.get(name)?;
        self.entries.get_mut(at)?.1.take()
    }

    fn unused(&self) -> Option<&'s str> {
        self.entries.iter().find(|(_, default)| default.is_some()).map(|(name, _)| *name)
    }
}

/// Groups parts two by two.
pub(crate) fn pairs<T>(parts: Vec<T>) -> Vec<(T, T)> {
    let mut parts = parts.into_iter();
    let mut out = Vec::with_capacity(parts.len() / 2);
    while let (Some(a), Some(b)) = (parts.next(), parts.next()) {
        out.push((a, b));
    }
    out
}
