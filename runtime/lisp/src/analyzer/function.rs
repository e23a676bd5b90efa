//! Analyses functions: parameters, arities, `#()`, and captures.

use std::sync::Arc;

use super::scope::{Captures, Scope, Siblings};
use super::{Analysed, Analyzer, Target};
use crate::error::{Error, ErrorKind, Span};
use crate::form::{Form, FormKind};
use crate::ir::{ArityIr, Capture, GroupIr, Ir, MemberIr, Op};

/// Maximum parameters of one function. Captured values and locals do not count.
const MAX_PARAMETERS: usize = 64;

/// The placeholders that `#()` accepts.
const NAMES: [&str; 20] = [
    "%1", "%2", "%3", "%4", "%5", "%6", "%7", "%8", "%9", "%10", "%11", "%12", "%13", "%14", "%15", "%16", "%17", "%18", "%19",
    "%20",
];

/// A function in source form: parameters and body of each arity.
pub(crate) struct Written<'s> {
    pub(crate) name: Option<&'s str>,
    pub(crate) doc: Option<Arc<str>>,
    pub(crate) span: Span,
    pub(crate) arities: Vec<(Form<'s>, Vec<Form<'s>>)>,
}

impl<'s> Analyzer<'s> {
    /// Splits `[params] body…` or `([params] body…) …` into arities.
    pub(crate) fn arities(
        &mut self,
        of: &str,
        span: Span,
        parts: Vec<Form<'s>>,
    ) -> Result<Vec<(Form<'s>, Vec<Form<'s>>)>, Error> {
        let head = if of == "defn" { "defn name" } else { of };
        let usage = format!("write ({head} [a b] …), or ({head} ([a] …) ([a b] …))");
        let mut parts = parts.into_iter();
        match parts.next() {
            Some(first) if matches!(first.kind, FormKind::Vector(_)) => Ok(vec![(first, parts.collect())]),
            Some(first) if matches!(first.kind, FormKind::List(_)) => {
                let mut arities = Vec::new();
                for part in std::iter::once(first).chain(parts) {
                    let place = part.span;
                    let FormKind::List(inner) = part.kind else {
                        return Err(self
                            .invalid(place, format!("expected an arity, found {}", part.description()))
                            .with_hint(usage));
                    };
                    let mut inner = inner.into_iter();
                    match inner.next() {
                        Some(params) if matches!(params.kind, FormKind::Vector(_)) => arities.push((params, inner.collect())),
                        _ => return Err(self.invalid(place, "an arity starts with a vector of parameters").with_hint(usage)),
                    }
                }
                Ok(arities)
            }
            Some(other) => {
                let message = format!("{of} needs a vector of parameters, found {}", other.description());
                Err(self.invalid(other.span, message).with_hint(usage))
            }
            None => Err(self.invalid(span, format!("{of} needs a vector of parameters")).with_hint(usage)),
        }
    }

    /// Analyses a function that can call itself by its own name.
    pub(crate) fn function(&mut self, written: Written<'s>) -> Analysed {
        let span = written.span;
        let group = self.group(vec![written], false)?;
        Ok(Ir::new(span, Op::Fn(Box::new(group))))
    }

    /// Analyses a function that `def` binds. Its name refers to the global, so that its own calls see a later `def`.
    pub(crate) fn defined(&mut self, mut written: Written<'s>) -> Analysed {
        let (span, name) = (written.span, written.name.take().map(Arc::from));
        let mut group = self.group(vec![written], false)?;
        for member in &mut group.members {
            member.name.clone_from(&name);
        }
        Ok(Ir::new(span, Op::Fn(Box::new(group))))
    }

    /// Analyses functions that share one list of captures. With `together` (`letfn`) they can call each other.
    pub(crate) fn group(&mut self, written: Vec<Written<'s>>, together: bool) -> Result<GroupIr, Error> {
        let siblings = Siblings::new(written.iter().filter(|_| together).filter_map(|w| w.name));
        let mut captures = Captures::default();
        let mut members = Vec::with_capacity(written.len());
        for function in written {
            let mut arities: Vec<ArityIr> = Vec::with_capacity(function.arities.len());
            for (params, body) in function.arities {
                let own_name = if together { None } else { function.name };
                let mut scope = Scope::new(own_name, siblings.clone());
                scope.set_captures(std::mem::take(&mut captures));
                self.scopes.push(scope);
                let arity = self.arity(&params, body);
                captures = self.scopes.pop().map(Scope::into_captures).unwrap_or_default();
                let arity = arity?;
                if arities.iter().any(|other| other.fixed == arity.fixed && other.variadic == arity.variadic) {
                    return Err(
                        self.invalid(params.span, format!("two arities take the same number of arguments, {}", arity.fixed))
                    );
                }
                if arity.variadic && arities.iter().any(|other| other.variadic) {
                    return Err(self.invalid(params.span, "only one arity can take any number of arguments"));
                }
                arities.push(arity);
            }
            arities.sort_by_key(|arity| (arity.variadic, arity.fixed));
            members.push(MemberIr { name: function.name.map(Arc::from), span: function.span, doc: function.doc, arities });
        }
        Ok(self.numbered(captures.into_list(), members))
    }

    /// Makes the next group of the program and gives it the next number.
    fn numbered(&mut self, captures: Vec<Capture>, members: Vec<MemberIr>) -> GroupIr {
        let number = self.groups;
        self.groups += 1;
        GroupIr { source: Arc::clone(self.shared_source), number, captures, members }
    }

    fn arity(&mut self, params: &Form<'s>, body: Vec<Form<'s>>) -> Result<ArityIr, Error> {
        let FormKind::Vector(patterns) = &params.kind else { return Err(self.internal(params.span)) };
        let span = params.span;
        let rest = patterns.iter().position(|pattern| pattern.symbol() == Some("&"));
        let fixed = rest.unwrap_or(patterns.len());
        if rest.is_some_and(|at| patterns.len() != at + 2) {
            return Err(self.invalid(span, "& must be followed by exactly one name"));
        }
        if fixed > MAX_PARAMETERS {
            return Err(self.error(
                ErrorKind::InvalidForm,
                span,
                format!("a function takes at most {MAX_PARAMETERS} parameters"),
            ));
        }
        let count = fixed as u32 + u32::from(rest.is_some());
        for _ in 0..count {
            self.slot();
        }
        let mut bindings = Vec::new();
        let fixed_patterns = patterns.iter().take(fixed);
        let rest_pattern = rest.and_then(|at| patterns.get(at + 1));
        for (slot, pattern) in (0..).zip(fixed_patterns.chain(rest_pattern)) {
            if slot as usize == fixed && matches!(pattern.kind, FormKind::Map(_)) {
                let named = Ir::new(pattern.span, Op::Named(crate::ir::Local::new(slot)));
                self.bind(pattern.clone(), named, &mut bindings)?;
            } else {
                self.bind_slot(pattern.clone(), slot, &mut bindings)?;
            }
        }
        self.retarget(Some(Target { first: 0, count, function: true }));
        if let [first, _, ..] = body.as_slice()
            && let FormKind::Map(parts) = &first.kind
            && parts.iter().step_by(2).any(|key| matches!(key.keyword(), Some("pre" | "post")))
        {
            let error = self.invalid(first.span, ":pre and :post conditions are not supported");
            return Err(error.with_hint("write (assert (pos? x) \"x must be positive\") in the body"));
        }
        let mut body = self.body(span, body, true)?;
        if !bindings.is_empty() {
            body = Ir::new(span, Op::Let { bindings, body: Box::new(body) });
        }
        if recurs(&body) {
            body = Ir::new(span, Op::Loop { first: 0, inits: Vec::new(), body: Box::new(body) });
        }
        let arglist =
            self.source.get(span.start as usize..span.end as usize).filter(|text| text.starts_with('[')).unwrap_or("[…]");
        Ok(ArityIr { arglist: arglist.into(), fixed: fixed as u32, variadic: rest.is_some(), slots: self.scope().size(), body })
    }

    /// Analyses `#(+ % 1)`. The parameters are derived from its placeholders.
    pub(super) fn short_fn(&mut self, parts: Vec<Form<'s>>, span: Span) -> Analysed {
        let mut used = Placeholders::default();
        for part in &parts {
            used.find(part).map_err(|place| {
                let name = self.source.get(place.start as usize..place.end as usize).unwrap_or("%");
                let error = self.error(ErrorKind::InvalidPlaceholder, place, format!("{name} is not a placeholder"));
                error.with_hint("placeholders are %, %1 to %20 and %&")
            })?;
        }
        self.scopes.push(Scope::new(None, Siblings::default()));
        for name in NAMES.iter().take(used.highest as usize) {
            let slot = self.slot();
            self.scope().name(name, slot);
            if *name == "%1" {
                self.scope().name("%", slot);
            }
        }
        if used.rest {
            let slot = self.slot();
            self.scope().name("%&", slot);
        }
        let count = used.highest + u32::from(used.rest);
        self.retarget(Some(Target { first: 0, count, function: true }));
        let call = if parts.is_empty() { Ok(Ir::new(span, Op::Const(crate::Value::Nil))) } else { self.short_body(parts, span) };
        let scope = self.scopes.pop();
        let (slots, captures) = scope.map_or((0, Vec::new()), |scope| (scope.size(), scope.into_captures().into_list()));
        let mut body = call?;
        if recurs(&body) {
            body = Ir::new(span, Op::Loop { first: 0, inits: Vec::new(), body: Box::new(body) });
        }
        let mut arglist: Vec<&str> = NAMES.iter().take(used.highest as usize).copied().collect();
        if used.rest {
            arglist.extend(["&", "%&"]);
        }
        let arglist = format!("[{}]", arglist.join(" ")).into();
        let arity = ArityIr { arglist, fixed: used.highest, variadic: used.rest, slots, body };
        let member = MemberIr { name: None, span, doc: None, arities: vec![arity] };
        Ok(Ir::new(span, Op::Fn(Box::new(self.numbered(captures, vec![member])))))
    }

    /// Analyses the body of `#()`. A single form that is not callable is the result itself: `#(42)` returns 42.
    fn short_body(&mut self, mut parts: Vec<Form<'s>>, span: Span) -> Analysed {
        let literal = |form: &Form<'_>| {
            matches!(
                form.kind,
                FormKind::Int(_)
                    | FormKind::Double(_)
                    | FormKind::BigInt(_)
                    | FormKind::String(_)
                    | FormKind::Bool(_)
                    | FormKind::Nil
            )
        };
        if parts.len() == 1 && parts.first().is_some_and(literal) {
            let only = parts.remove(0);
            return self.expr(only, false);
        }
        let inner = Span::new(span.start + 1, span.end);
        self.expr(Form::new(inner, FormKind::List(parts)), true)
    }
}

/// The placeholders that a `#()` uses.
#[derive(Default)]
struct Placeholders {
    highest: u32,
    rest: bool,
}

impl Placeholders {
    /// Collects the placeholders of a form. `Err` is the span of a name that starts with `%` and is not a placeholder.
    fn find(&mut self, form: &Form<'_>) -> Result<(), Span> {
        match &form.kind {
            FormKind::Symbol("%") => self.highest = self.highest.max(1),
            FormKind::Symbol("%&") => self.rest = true,
            FormKind::Symbol(name) if name.starts_with('%') => {
                let number = name.get(1..).and_then(|digits| digits.parse().ok()).filter(|n| (1..=20).contains(n));
                self.highest = self.highest.max(number.ok_or(form.span)?);
            }
            FormKind::List(parts) | FormKind::Vector(parts) | FormKind::Map(parts) | FormKind::Set(parts) => {
                parts.iter().try_for_each(|part| self.find(part))?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// Whether a body contains a `recur` to the function. Only tail positions are searched.
fn recurs(body: &Ir) -> bool {
    match &body.op {
        Op::Recur { .. } => true,
        Op::If(parts) => parts.iter().skip(1).any(recurs),
        Op::Do(parts) | Op::And(parts) | Op::Or(parts) => parts.last().is_some_and(recurs),
        Op::Let { body, .. } | Op::LetFn { body, .. } => recurs(body),
        Op::Case(case) => case.arms.iter().any(recurs),
        _ => false,
    }
}
