//! Special forms that bind names and make functions: `let`, `loop`, `recur`, `fn`, `letfn`.

use super::control::{next, nil};
use crate::analyzer::{Analysed, Analyzer, Target, Written, read};
use crate::error::{Error, Span};
use crate::form::{Form, FormKind};
use crate::ir::{Ir, Op};

type Parts<'s> = Vec<Form<'s>>;

pub(super) fn let_<'s>(a: &mut Analyzer<'s>, span: Span, mut parts: Parts<'s>, tail: bool) -> Analysed {
    let pairs = a.binding_pairs(parts.remove(0), "let")?;
    let mark = a.enter();
    let mut bindings = Vec::with_capacity(pairs.len());
    for (pattern, value) in pairs {
        let value = a.expr(value, false)?;
        a.bind(pattern, value, &mut bindings)?;
    }
    let body = a.body(span, parts, tail)?;
    a.leave(mark);
    Ok(Ir::new(span, Op::Let { bindings, body: Box::new(body) }))
}

pub(super) fn loop_<'s>(a: &mut Analyzer<'s>, span: Span, mut parts: Parts<'s>, _: bool) -> Analysed {
    let pairs = a.binding_pairs(parts.remove(0), "loop")?;
    let outer = a.enter();
    let simple = pairs.iter().all(|(pattern, _)| pattern.symbol().is_some());
    let count = pairs.len() as u32;
    let mut before = Vec::new();
    let mut inits = Vec::with_capacity(pairs.len());
    let mut patterns = Vec::with_capacity(pairs.len());
    let mut first = 0;
    if simple {
        // Each name is bound in its slot before the next value is analysed.
        for (index, (pattern, value)) in pairs.into_iter().enumerate() {
            let value = a.expr(value, false)?;
            let slot = a.slot();
            if index == 0 {
                first = slot;
            }
            a.bind_slot(pattern, slot, &mut before)?;
            inits.push(value);
        }
    } else {
        // The initial values are destructured once before the loop, since later ones may use the names.
        let mut starts = Vec::with_capacity(pairs.len());
        for (pattern, value) in pairs {
            let value = a.expr(value, false)?;
            let slot = a.slot();
            before.push((slot, value));
            a.bind_slot(pattern.clone(), slot, &mut before)?;
            starts.push(slot);
            patterns.push(pattern);
        }
        for (index, start) in starts.into_iter().enumerate() {
            let slot = a.slot();
            if index == 0 {
                first = slot;
            }
            inits.push(read(span, start));
        }
    }
    if count == 0 {
        // Slots before the first slot of a loop count as read again by every iteration.
        first = a.slot();
    }
    let mut inner = Vec::new();
    for (slot, pattern) in (first..).zip(patterns) {
        a.bind_slot(pattern, slot, &mut inner)?;
    }
    let around = a.retarget(Some(Target { first, count, function: false }));
    let mut body = a.body(span, parts, true)?;
    a.retarget(around);
    a.leave(outer);
    if !inner.is_empty() {
        body = Ir::new(span, Op::Let { bindings: inner, body: Box::new(body) });
    }
    let looped = Ir::new(span, Op::Loop { first, inits, body: Box::new(body) });
    Ok(if before.is_empty() { looped } else { Ir::new(span, Op::Let { bindings: before, body: Box::new(looped) }) })
}

pub(super) fn recur<'s>(a: &mut Analyzer<'s>, span: Span, parts: Parts<'s>, tail: bool) -> Analysed {
    let Some(target) = a.target().filter(|_| tail) else {
        let error = a.invalid(span, "recur must be in tail position: its value is the value of the loop or function");
        return Err(error.with_hint("make it the last thing that the loop does, or use reduce"));
    };
    if parts.len() != target.count as usize {
        let of = if target.function { "function" } else { "loop" };
        let error = a.error(
            crate::ErrorKind::InvalidArity,
            span,
            format!("recur got {} values for a {of} that binds {}", parts.len(), target.count),
        );
        return Err(error.with_hint(format!("give every name of the {of} its next value, in their order")));
    }
    let args = a.exprs(parts)?;
    Ok(Ir::new(span, Op::Recur { first: target.first, args }))
}

pub(super) fn fn_<'s>(a: &mut Analyzer<'s>, span: Span, parts: Parts<'s>, _: bool) -> Analysed {
    let mut parts = parts.into_iter().peekable();
    let name = parts.next_if(|part| part.symbol().is_some()).and_then(|part| part.symbol());
    let arities = a.arities("fn", span, parts.collect())?;
    a.function(Written { name, doc: None, span, arities })
}

pub(super) fn letfn<'s>(a: &mut Analyzer<'s>, span: Span, mut parts: Parts<'s>, tail: bool) -> Analysed {
    let bindings = parts.remove(0);
    let place = bindings.span;
    let FormKind::Vector(functions) = bindings.kind else {
        return Err(a.invalid(place, "letfn needs a vector of functions").with_hint("write (letfn [(f [x] …) (g [y] …)] …)"));
    };
    let mut written = Vec::with_capacity(functions.len());
    for function in functions {
        written.push(named(a, function)?);
    }
    let names: Vec<Option<&'s str>> = written.iter().map(|w| w.name).collect();
    let group = a.group(written, true)?;
    let mark = a.enter();
    let mut slots = Vec::with_capacity(names.len());
    for name in names {
        let slot = a.slot();
        if let Some(name) = name {
            a.name(name, slot);
        }
        slots.push(slot);
    }
    let body = if parts.is_empty() { nil(span) } else { a.body(span, parts, tail)? };
    a.leave(mark);
    Ok(Ir::new(span, Op::LetFn { slots: slots.into(), group: Box::new(group), body: Box::new(body) }))
}

/// Parses `(name [params] body…)`.
fn named<'s>(a: &mut Analyzer<'s>, form: Form<'s>) -> Result<Written<'s>, Error> {
    let span = form.span;
    let FormKind::List(parts) = form.kind else {
        return Err(a.invalid(span, format!("expected a function (name [x] …), found {}", form.description())));
    };
    let mut parts = parts.into_iter();
    let head = next(a, span, &mut parts)?;
    let Some(name) = head.symbol() else {
        return Err(a.invalid(head.span, format!("expected the name of a function, found {}", head.description())));
    };
    let arities = a.arities(name, span, parts.collect())?;
    Ok(Written { name: Some(name), doc: None, span, arities })
}
