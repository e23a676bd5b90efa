//! Branches: the variants of `if`, and `cond`, `case`, `condp`, `and`, `or`, `do`.

use crate::Value;
use crate::analyzer::{Analysed, Analyzer, builtin_call, read};
use crate::error::{Error, Span};
use crate::form::{Form, FormKind};
use crate::ir::{CaseIr, Ir, Op};

type Parts<'s> = Vec<Form<'s>>;

/// Returns the next part of a form whose number of parts was checked before.
pub(super) fn next<'s>(a: &Analyzer<'s>, span: Span, parts: &mut impl Iterator<Item = Form<'s>>) -> Result<Form<'s>, Error> {
    parts.next().ok_or_else(|| a.internal(span))
}

/// Maximum parts of a form that expands to nested forms, one per part.
const MAX_PARTS: usize = 500;

pub(super) fn bounded(a: &Analyzer<'_>, span: Span, parts: usize) -> Result<(), Error> {
    if parts <= MAX_PARTS {
        return Ok(());
    }
    let error = a.invalid(span, format!("a form of this kind takes at most {MAX_PARTS} parts, found {parts}"));
    Err(error.with_hint("take it apart with def, or look the values up in a map"))
}

pub(super) fn nil(span: Span) -> Ir {
    Ir::new(span, Op::Const(Value::Nil))
}

pub(super) fn branch(span: Span, test: Ir, then: Ir, otherwise: Ir) -> Ir {
    Ir::new(span, Op::If(Box::new([test, then, otherwise])))
}

fn nil_test(a: &Analyzer<'_>, span: Span, value: Ir) -> Analysed {
    let row = a.builtin("nil?").ok_or_else(|| a.internal(span))?;
    Ok(Ir::new(span, builtin_call(row, vec![value])))
}

pub(super) fn if_<'s>(a: &mut Analyzer<'s>, span: Span, parts: Parts<'s>, tail: bool) -> Analysed {
    let mut parts = parts.into_iter();
    let test = next(a, span, &mut parts)?;
    let test = a.expr(test, false)?;
    let then = next(a, span, &mut parts)?;
    let then = a.expr(then, tail)?;
    let otherwise = match parts.next() {
        Some(form) => a.expr(form, tail)?,
        None => nil(span),
    };
    Ok(branch(span, test, then, otherwise))
}

pub(super) fn if_not<'s>(a: &mut Analyzer<'s>, span: Span, parts: Parts<'s>, tail: bool) -> Analysed {
    let ir = if_(a, span, parts, tail)?;
    let Op::If(parts) = ir.op else { return Err(a.internal(span)) };
    let [test, then, otherwise] = *parts;
    Ok(branch(span, test, otherwise, then))
}

pub(super) fn when<'s>(a: &mut Analyzer<'s>, span: Span, mut parts: Parts<'s>, tail: bool) -> Analysed {
    let test = parts.remove(0);
    let test = a.expr(test, false)?;
    let body = a.body(span, parts, tail)?;
    Ok(branch(span, test, body, nil(span)))
}

pub(super) fn when_not<'s>(a: &mut Analyzer<'s>, span: Span, mut parts: Parts<'s>, tail: bool) -> Analysed {
    let test = parts.remove(0);
    let test = a.expr(test, false)?;
    let body = a.body(span, parts, tail)?;
    Ok(branch(span, test, nil(span), body))
}

/// The test that `if-let` and its variants apply to the bound value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Test {
    Truthy,
    NotNil,
}

fn bound<'s>(a: &mut Analyzer<'s>, span: Span, mut parts: Parts<'s>, tail: bool, test: Test, of: &str, body: bool) -> Analysed {
    let bindings = parts.remove(0);
    let place = bindings.span;
    let mut pairs = a.binding_pairs(bindings, of)?.into_iter();
    let (Some((pattern, value)), None) = (pairs.next(), pairs.next()) else {
        return Err(a.invalid(place, format!("{of} takes exactly one binding")));
    };
    let value = a.expr(value, false)?;
    let mark = a.enter();
    let (slot, tested) = a.fresh(place);
    let tested = match test {
        Test::Truthy => tested,
        Test::NotNil => nil_test(a, place, tested)?,
    };
    // The names are bound for the first branch only.
    let mut inner = Vec::new();
    a.bind_slot(pattern, slot, &mut inner)?;
    let mut rest = parts.into_iter();
    let (then, otherwise) = if body {
        (a.body(span, rest.collect(), tail)?, nil(span))
    } else {
        let then = next(a, span, &mut rest)?;
        let then = a.expr(then, tail)?;
        a.leave(mark);
        let again = a.enter();
        a.slot();
        let otherwise = match rest.next() {
            Some(form) => a.expr(form, tail)?,
            None => nil(span),
        };
        a.leave(again);
        (then, otherwise)
    };
    a.leave(mark);
    let then = if inner.is_empty() { then } else { Ir::new(span, Op::Let { bindings: inner, body: Box::new(then) }) };
    let chosen = match test {
        Test::Truthy => branch(span, tested, then, otherwise),
        Test::NotNil => branch(span, tested, otherwise, then),
    };
    Ok(Ir::new(span, Op::Let { bindings: vec![(slot, value)], body: Box::new(chosen) }))
}

pub(super) fn if_let<'s>(a: &mut Analyzer<'s>, span: Span, parts: Parts<'s>, tail: bool) -> Analysed {
    bound(a, span, parts, tail, Test::Truthy, "if-let", false)
}

pub(super) fn if_some<'s>(a: &mut Analyzer<'s>, span: Span, parts: Parts<'s>, tail: bool) -> Analysed {
    bound(a, span, parts, tail, Test::NotNil, "if-some", false)
}

pub(super) fn when_let<'s>(a: &mut Analyzer<'s>, span: Span, parts: Parts<'s>, tail: bool) -> Analysed {
    bound(a, span, parts, tail, Test::Truthy, "when-let", true)
}

pub(super) fn when_some<'s>(a: &mut Analyzer<'s>, span: Span, parts: Parts<'s>, tail: bool) -> Analysed {
    bound(a, span, parts, tail, Test::NotNil, "when-some", true)
}

pub(super) fn when_first<'s>(a: &mut Analyzer<'s>, span: Span, mut parts: Parts<'s>, tail: bool) -> Analysed {
    let bindings = parts.remove(0);
    let place = bindings.span;
    let mut pairs = a.binding_pairs(bindings, "when-first")?.into_iter();
    let (Some((pattern, value)), None) = (pairs.next(), pairs.next()) else {
        return Err(a.invalid(place, "when-first takes exactly one binding"));
    };
    let value = a.expr(value, false)?;
    let (Some(seq), Some(first)) = (a.builtin("seq"), a.builtin("first")) else { return Err(a.internal(span)) };
    let mark = a.enter();
    let (slot, tested) = a.fresh(place);
    let mut inner = Vec::new();
    let item = Ir::new(place, builtin_call(first, vec![read(place, slot)]));
    a.bind(pattern, item, &mut inner)?;
    let body = a.body(span, parts, tail)?;
    a.leave(mark);
    let then = Ir::new(span, Op::Let { bindings: inner, body: Box::new(body) });
    let chosen = branch(span, tested, then, nil(span));
    let value = Ir::new(place, builtin_call(seq, vec![value]));
    Ok(Ir::new(span, Op::Let { bindings: vec![(slot, value)], body: Box::new(chosen) }))
}

pub(super) fn cond<'s>(a: &mut Analyzer<'s>, span: Span, parts: Parts<'s>, tail: bool) -> Analysed {
    if parts.len() % 2 == 1 {
        let error = a.invalid(span, format!("cond needs a result for every test, found {}", crate::form::counted(parts.len())));
        return Err(error.with_hint("write (cond test result … :else result)"));
    }
    bounded(a, span, parts.len())?;
    let mut clauses = Vec::with_capacity(parts.len() / 2);
    let mut parts = parts.into_iter();
    while let (Some(test), Some(result)) = (parts.next(), parts.next()) {
        let place = test.span;
        clauses.push((place, a.expr(test, false)?, a.expr(result, tail)?));
    }
    let mut out = nil(span);
    for (place, test, result) in clauses.into_iter().rev() {
        let always = matches!(&test.op, Op::Const(value) if value.is_truthy());
        out = if always { result } else { branch(place, test, result, out) };
    }
    Ok(out)
}

pub(super) fn condp<'s>(a: &mut Analyzer<'s>, span: Span, parts: Parts<'s>, tail: bool) -> Analysed {
    bounded(a, span, parts.len())?;
    let mut parts = parts.into_iter().peekable();
    let pred = next(a, span, &mut parts)?;
    let place = pred.span;
    let builtin = pred.symbol().filter(|name| !a.is_bound(name)).and_then(|name| a.builtin(name));
    let pred = a.expr(pred, false)?;
    let subject = next(a, span, &mut parts)?;
    let subject = a.expr(subject, false)?;
    let mark = a.enter();
    let pred_slot = a.slot();
    let subject_slot = a.slot();
    let mut clauses = Vec::new();
    let mut out = nil(span);
    while let Some(test) = parts.next() {
        let place = test.span;
        if parts.next_if(|part| part.keyword() == Some(">>")).is_some() {
            let Some(f) = parts.next() else {
                return Err(a.invalid(place, ":>> must be followed by a function"));
            };
            let (test, f) = (a.expr(test, false)?, a.expr(f, false)?);
            clauses.push((place, test, f, Some(a.slot())));
            continue;
        }
        match parts.next() {
            None => out = a.expr(test, tail)?,
            Some(result) => {
                let test = a.expr(test, false)?;
                clauses.push((place, test, a.expr(result, tail)?, None));
            }
        }
    }
    a.leave(mark);
    for (place, test, result, held) in clauses.into_iter().rev() {
        let args = vec![test, read(place, subject_slot)];
        let op = match builtin {
            Some(row) => builtin_call(row, args),
            None => Op::Call { f: Box::new(read(place, pred_slot)), args },
        };
        let call = Ir::new(place, op);
        out = match held {
            None => branch(place, call, result, out),
            Some(slot) => {
                let result = Ir::new(place, Op::Call { f: Box::new(result), args: vec![read(place, slot)] });
                let body = Box::new(branch(place, read(place, slot), result, out));
                Ir::new(place, Op::Let { bindings: vec![(slot, call)], body })
            }
        };
    }
    let pred = if builtin.is_some() { nil(place) } else { pred };
    Ok(Ir::new(span, Op::Let { bindings: vec![(pred_slot, pred), (subject_slot, subject)], body: Box::new(out) }))
}

#[expect(clippy::mutable_key_type, reason = "the mutable parts of a function do not affect its order")]
pub(super) fn case<'s>(a: &mut Analyzer<'s>, span: Span, parts: Parts<'s>, tail: bool) -> Analysed {
    let mut parts = parts.into_iter();
    let subject = next(a, span, &mut parts)?;
    let subject = a.expr(subject, false)?;
    let mut table: Vec<(Value, u32)> = Vec::new();
    let mut tested = std::collections::BTreeSet::new();
    let mut arms = Vec::new();
    let mut default = None;
    while let Some(test) = parts.next() {
        let Some(result) = parts.next() else {
            default = Some(a.expr(test, tail)?);
            break;
        };
        let arm = arms.len() as u32;
        let tests = match test.kind {
            FormKind::List(tests) => tests,
            _ => vec![test],
        };
        for test in tests {
            let place = test.span;
            let constant = a.quoted_constant(test)?;
            if !tested.insert(constant.clone()) {
                let text = crate::print::readable(&constant);
                return Err(a.invalid(place, format!("case tests {text} twice")));
            }
            table.push((constant, arm));
        }
        arms.push(a.expr(result, tail)?);
    }
    arms.push(default.unwrap_or_else(|| nil(span)));
    Ok(Ir::new(span, Op::Case(Box::new(CaseIr { subject, table, arms }))))
}

pub(super) fn and<'s>(a: &mut Analyzer<'s>, span: Span, parts: Parts<'s>, tail: bool) -> Analysed {
    chain(a, span, parts, tail, Value::True, Op::And)
}

pub(super) fn or<'s>(a: &mut Analyzer<'s>, span: Span, parts: Parts<'s>, tail: bool) -> Analysed {
    chain(a, span, parts, tail, Value::Nil, Op::Or)
}

fn chain<'s>(a: &mut Analyzer<'s>, span: Span, parts: Parts<'s>, tail: bool, empty: Value, make: fn(Vec<Ir>) -> Op) -> Analysed {
    let count = parts.len();
    let mut all = Vec::with_capacity(count);
    for (index, form) in parts.into_iter().enumerate() {
        all.push(a.expr(form, tail && index + 1 == count)?);
    }
    let op = match count {
        0 => Op::Const(empty),
        1 => return all.pop().ok_or_else(|| a.internal(span)),
        _ => make(all),
    };
    Ok(Ir::new(span, op))
}

pub(super) fn do_<'s>(a: &mut Analyzer<'s>, span: Span, parts: Parts<'s>, tail: bool) -> Analysed {
    a.body(span, parts, tail)
}

#[expect(clippy::unnecessary_wraps, reason = "the type of all special forms")]
pub(super) fn comment<'s>(_: &mut Analyzer<'s>, span: Span, _: Parts<'s>, _: bool) -> Analysed {
    Ok(nil(span))
}

pub(super) fn quote<'s>(a: &mut Analyzer<'s>, span: Span, mut parts: Parts<'s>, _: bool) -> Analysed {
    let Some(form) = parts.pop() else { return Err(a.internal(span)) };
    a.quote(form)
}
