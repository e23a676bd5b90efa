//! Iteration over collections: `for`, `doseq`, `dotimes`.

use super::control::{bounded, nil};
use crate::Value;
use crate::analyzer::{Analysed, Analyzer, builtin_call};
use crate::error::Span;
use crate::form::{Form, FormKind};
use crate::ir::{Ir, Op, Step};

type Parts<'s> = Vec<Form<'s>>;

pub(super) fn for_<'s>(a: &mut Analyzer<'s>, span: Span, parts: Parts<'s>, _: bool) -> Analysed {
    comprehension(a, span, parts, "for", true)
}

pub(super) fn doseq<'s>(a: &mut Analyzer<'s>, span: Span, parts: Parts<'s>, _: bool) -> Analysed {
    comprehension(a, span, parts, "doseq", false)
}

fn comprehension<'s>(a: &mut Analyzer<'s>, span: Span, mut parts: Parts<'s>, of: &str, collect: bool) -> Analysed {
    let bindings = parts.remove(0);
    let place = bindings.span;
    let modified = matches!(&bindings.kind, FormKind::Vector(parts) if parts.iter().any(|part| part.keyword() == Some("let")));
    let pairs = a.binding_pairs(bindings, of).map_err(|error| {
        if modified {
            error.with_hint(format!("the names of :let have a vector of their own: ({of} [x xs :let [y (f x)]] …)"))
        } else {
            error
        }
    })?;
    if pairs.first().is_some_and(|(first, _)| first.keyword().is_some()) {
        return Err(a.invalid(place, format!("{of} starts with a name and a collection")));
    }
    let mark = a.enter();
    let mut steps = Vec::new();
    for (left, right) in pairs {
        match left.keyword() {
            None => {
                let items = a.expr(right, false)?;
                let slot = a.slot();
                steps.push(Step::Each(slot, items));
                let mut inner = Vec::new();
                a.bind_slot(left, slot, &mut inner)?;
                steps.extend(inner.into_iter().map(|(slot, ir)| Step::Bind(slot, ir)));
            }
            Some("when") => {
                let test = a.expr(right, false)?;
                steps.push(Step::When(test));
            }
            Some("while") => {
                let test = a.expr(right, false)?;
                steps.push(Step::While(test));
            }
            Some("let") => {
                let mut inner = Vec::new();
                for (pattern, value) in a.binding_pairs(right, ":let")? {
                    let value = a.expr(value, false)?;
                    a.bind(pattern, value, &mut inner)?;
                }
                steps.extend(inner.into_iter().map(|(slot, ir)| Step::Bind(slot, ir)));
            }
            Some(other) => {
                let error = a.invalid(left.span, format!("{of} does not know :{other}"));
                return Err(error.with_hint("use :when, :while or :let"));
            }
        }
    }
    // Each clause is evaluated inside of the one before it.
    bounded(a, place, steps.len())?;
    let body = a.body(span, parts, false)?;
    steps.push(Step::Body(body));
    a.leave(mark);
    Ok(Ir::new(span, Op::For { steps, collect }))
}

pub(super) fn dotimes<'s>(a: &mut Analyzer<'s>, span: Span, mut parts: Parts<'s>, _: bool) -> Analysed {
    let bindings = parts.remove(0);
    let place = bindings.span;
    let mut pairs = a.binding_pairs(bindings, "dotimes")?.into_iter();
    let (Some((name, count)), None) = (pairs.next(), pairs.next()) else {
        return Err(a.invalid(place, "dotimes takes exactly one binding"));
    };
    if !matches!(name.kind, FormKind::Symbol(_)) {
        return Err(a.invalid(name.span, format!("dotimes needs a name, found {}", name.description())));
    }
    let (Some(less), Some(inc)) = (a.builtin("<"), a.builtin("inc")) else { return Err(a.internal(span)) };
    let count = a.expr(count, false)?;
    let mark = a.enter();
    let (limit, limit_read) = a.fresh(place);
    let (slot, index) = a.fresh(place);
    let mut bindings = Vec::new();
    a.bind_slot(name, slot, &mut bindings)?;
    let mut body = vec![a.body(span, parts, false)?];
    let (_, again) = (slot, Ir::new(place, builtin_call(inc, vec![crate::analyzer::read(place, slot)])));
    body.push(Ir::new(span, Op::Recur { first: slot, args: vec![again] }));
    a.leave(mark);
    let test = Ir::new(place, builtin_call(less, vec![index, limit_read]));
    let turn = super::control::branch(span, test, Ir::new(span, Op::Do(body)), nil(span));
    let start = Ir::new(place, Op::Const(Value::Int(0)));
    let looped = Ir::new(span, Op::Loop { first: slot, inits: vec![start], body: Box::new(turn) });
    Ok(Ir::new(span, Op::Let { bindings: vec![(limit, count)], body: Box::new(looped) }))
}
