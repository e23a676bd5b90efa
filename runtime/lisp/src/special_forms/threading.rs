//! Threading macros: `->`, `->>`, `as->`, `some->`, `cond->` and their variants.

use super::control::{bounded, branch, next, nil};
use crate::analyzer::{Analysed, Analyzer, builtin_call, read};
use crate::error::{Error, Span};
use crate::form::{Form, FormKind};
use crate::ir::{Ir, Op};

type Parts<'s> = Vec<Form<'s>>;

/// The position of the threaded value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ThreadPosition {
    First,
    Last,
}

/// Inserts `value` into `step`.
fn thread<'s>(step: Form<'s>, value: Form<'s>, position: ThreadPosition) -> Form<'s> {
    let span = step.span;
    let kind = match step.kind {
        FormKind::List(mut parts) if !parts.is_empty() => {
            let at = if position == ThreadPosition::First { 1 } else { parts.len() };
            parts.insert(at, value);
            FormKind::List(parts)
        }
        other => FormKind::List(vec![Form::new(span, other), value]),
    };
    Form::new(span, kind)
}

fn threaded<'s>(a: &mut Analyzer<'s>, span: Span, parts: Parts<'s>, position: ThreadPosition) -> Result<Form<'s>, Error> {
    bounded(a, span, parts.len())?;
    let mut parts = parts.into_iter();
    let first = next(a, span, &mut parts)?;
    parts.try_fold(first, |value, step| {
        if position == ThreadPosition::First && is_function(&step) && !a.is_local("fn") {
            let hint = "put brackets around it, so that it is called: (-> x ((fn [a] …)))";
            return Err(a.invalid(step.span, "-> inserts its value behind fn, where a value is not valid").with_hint(hint));
        }
        Ok(thread(step, value, position))
    })
}

/// Whether the step is `(fn …)`, which is to be called with the value.
fn is_function(step: &Form<'_>) -> bool {
    matches!(&step.kind, FormKind::List(parts) if parts.first().is_some_and(|head| matches!(head.kind, FormKind::Symbol("fn"))))
}

pub(super) fn first<'s>(a: &mut Analyzer<'s>, span: Span, parts: Parts<'s>) -> Result<Form<'s>, Error> {
    threaded(a, span, parts, ThreadPosition::First)
}

pub(super) fn last<'s>(a: &mut Analyzer<'s>, span: Span, parts: Parts<'s>) -> Result<Form<'s>, Error> {
    threaded(a, span, parts, ThreadPosition::Last)
}

pub(super) fn as_<'s>(a: &mut Analyzer<'s>, span: Span, parts: Parts<'s>, tail: bool) -> Analysed {
    let mut parts = parts.into_iter();
    let value = next(a, span, &mut parts)?;
    let value = a.expr(value, false)?;
    let pattern = next(a, span, &mut parts)?;
    let mark = a.enter();
    let mut bindings = Vec::new();
    a.bind(pattern.clone(), value, &mut bindings)?;
    let steps: Vec<Form<'s>> = parts.collect();
    let count = steps.len();
    let mut body = None;
    for (index, step) in steps.into_iter().enumerate() {
        if index + 1 == count {
            body = Some(a.expr(step, tail)?);
        } else {
            let value = a.expr(step, false)?;
            a.bind(pattern.clone(), value, &mut bindings)?;
        }
    }
    let body = match body {
        Some(body) => body,
        None => a.expr(pattern, tail)?,
    };
    a.leave(mark);
    Ok(Ir::new(span, Op::Let { bindings, body: Box::new(body) }))
}

/// The name of the slot of a threaded value. Programs cannot write this name.
const THREADED: &str = "%threaded";

fn some<'s>(a: &mut Analyzer<'s>, span: Span, parts: Parts<'s>, tail: bool, position: ThreadPosition) -> Analysed {
    bounded(a, span, parts.len())?;
    let mut parts = parts.into_iter();
    let value = next(a, span, &mut parts)?;
    let value = a.expr(value, false)?;
    let steps: Vec<Form<'s>> = parts.collect();
    let count = steps.len();
    if count == 0 {
        return Ok(value);
    }
    let Some(is_nil) = a.builtin("nil?") else { return Err(a.internal(span)) };
    let mark = a.enter();
    let slot = a.slot();
    a.name(THREADED, slot);
    let mut calls = Vec::with_capacity(count);
    for (index, step) in steps.into_iter().enumerate() {
        let at = step.span;
        let call = thread(step, Form::new(at, FormKind::Symbol(THREADED)), position);
        calls.push((at, a.expr(call, tail && index + 1 == count)?));
    }
    a.leave(mark);
    // Built from the inside out: (let [t v] (if (nil? t) nil (let [t (step t)] …)))
    let mut out: Option<Ir> = None;
    for (at, call) in calls.into_iter().rev() {
        let then = match out {
            None => call,
            Some(rest) => Ir::new(at, Op::Let { bindings: vec![(slot, call)], body: Box::new(rest) }),
        };
        let test = Ir::new(at, builtin_call(is_nil, vec![read(at, slot)]));
        out = Some(branch(at, test, nil(at), then));
    }
    let body = out.ok_or_else(|| a.internal(span))?;
    Ok(Ir::new(span, Op::Let { bindings: vec![(slot, value)], body: Box::new(body) }))
}

pub(super) fn some_first<'s>(a: &mut Analyzer<'s>, span: Span, parts: Parts<'s>, tail: bool) -> Analysed {
    some(a, span, parts, tail, ThreadPosition::First)
}

pub(super) fn some_last<'s>(a: &mut Analyzer<'s>, span: Span, parts: Parts<'s>, tail: bool) -> Analysed {
    some(a, span, parts, tail, ThreadPosition::Last)
}

pub(super) fn doto<'s>(a: &mut Analyzer<'s>, span: Span, parts: Parts<'s>, _: bool) -> Analysed {
    let mut parts = parts.into_iter();
    let value = next(a, span, &mut parts)?;
    let value = a.expr(value, false)?;
    let mark = a.enter();
    let slot = a.slot();
    a.name(THREADED, slot);
    let mut body = Vec::new();
    for step in parts {
        let call = thread(step.clone(), Form::new(step.span, FormKind::Symbol(THREADED)), ThreadPosition::First);
        body.push(a.expr(call, false)?);
    }
    a.leave(mark);
    body.push(read(span, slot));
    let body = Box::new(Ir::new(span, Op::Do(body)));
    Ok(Ir::new(span, Op::Let { bindings: vec![(slot, value)], body }))
}

fn cond<'s>(a: &mut Analyzer<'s>, span: Span, parts: Parts<'s>, position: ThreadPosition) -> Analysed {
    if parts.len().is_multiple_of(2) {
        let error = a.invalid(span, "cond-> needs a step for every test");
        return Err(error.with_hint("write (cond-> value test step test step …)"));
    }
    let mut parts = parts.into_iter();
    let value = next(a, span, &mut parts)?;
    let value = a.expr(value, false)?;
    let mark = a.enter();
    let slot = a.slot();
    let mut bindings = vec![(slot, value)];
    while let (Some(test), Some(step)) = (parts.next(), parts.next()) {
        let at = step.span;
        let test = a.expr(test, false)?;
        let inner = a.enter();
        a.name(THREADED, slot);
        let call = thread(step, Form::new(at, FormKind::Symbol(THREADED)), position);
        let call = a.expr(call, false)?;
        a.leave(inner);
        bindings.push((slot, branch(at, test, call, read(at, slot))));
    }
    a.leave(mark);
    Ok(Ir::new(span, Op::Let { bindings, body: Box::new(read(span, slot)) }))
}

pub(super) fn cond_first<'s>(a: &mut Analyzer<'s>, span: Span, parts: Parts<'s>, _: bool) -> Analysed {
    cond(a, span, parts, ThreadPosition::First)
}

pub(super) fn cond_last<'s>(a: &mut Analyzer<'s>, span: Span, parts: Parts<'s>, _: bool) -> Analysed {
    cond(a, span, parts, ThreadPosition::Last)
}
