//! Compiles IR to closures. Each closure is specialized for its operands, so that no decision is made at run time that can be
//! made here.

use std::sync::Arc;

use super::argument::{Argument, Condition, comparison_holds};
use super::call::{Arguments, call_closure, not_callable};
use super::fused::copy;
use super::iterate::{Turn, comprehension};
use super::looping::{recur, repeat};
use super::operators::{fused_builtin, is_core, truth};
use super::{Arity, Closure, Code, Frame, Group, Member, access, call_value, discard};
use crate::Value;
use crate::builtins::Builtin;
use crate::collection::Map;
use crate::error::{ErrorKind, Span};
use crate::ir::{ArityIr, Capture, GroupIr, Ir, Local, Op, Step};
use crate::machine::{Machine, Raised};
use crate::metered;

/// Compiles an expression.
pub(crate) fn compile(ir: &Ir) -> Code {
    let span = ir.span;
    match &ir.op {
        Op::Const(value) => constant(value.clone()),
        Op::Local(local) => read(*local),
        Op::Capture(index) => {
            let index = *index;
            Box::new(move |_, f| Ok(copy(f.this.capture(index))))
        }
        Op::This => Box::new(|_, f| Ok(Value::Closure(Arc::clone(f.this)))),
        Op::Sibling(member) => {
            let member = *member;
            Box::new(move |_, f| Ok(Value::Closure(Arc::new(f.this.sibling(member)))))
        }
        Op::Global { index, fallback } => global(*index, *fallback, span),
        Op::Context(key) => {
            let key = key.clone();
            Box::new(move |m, _| Ok(m.context(&key)))
        }
        Op::History(back) => {
            let back = *back;
            Box::new(move |m, _| Ok(m.history(back)))
        }
        Op::Vector(parts) => {
            let parts = all(parts);
            Box::new(move |m, f| Ok(Value::vector(evaluate(&parts, m, f)?)))
        }
        Op::Map(parts) => {
            let written = parts.iter().step_by(2).all(|key| matches!(key.op, Op::Const(_)));
            map_literal(all(parts), written)
        }
        Op::Set(parts) => {
            let parts = all(parts);
            Box::new(move |m, f| {
                let members = evaluate(&parts, m, f)?;
                metered::set(m, members).map(Value::Set)
            })
        }
        Op::If(parts) => {
            let [test, then, otherwise] = &**parts;
            branch(Condition::from_ir(test), compile(then), compile(otherwise))
        }
        Op::And(parts) => chain(parts, false),
        Op::Or(parts) => chain(parts, true),
        Op::Do(parts) => sequence(parts),
        Op::Let { bindings, body } => bind(bindings, body),
        Op::Loop { first, inits, body } => repeat(*first, inits, body, span),
        Op::Recur { first, args } => recur(*first, args),
        Op::Fn(group) => function(group),
        Op::LetFn { slots, group, body } => letfn(slots, group, body),
        Op::Call { f, args } => call(f, args, span),
        Op::Builtin { row, args } => builtin(row, args, span),
        Op::Def { index, value, once } => define(*index, value.as_deref(), *once),
        Op::Case(ir) => case(&ir.subject, &ir.table, &ir.arms),
        Op::For { steps, collect } => comprehension(steps.iter().map(turn).collect(), weight(ir), *collect),
        Op::Nth(from, index) => access::nth(*from, *index, span),
        Op::Rest(from, skipped) => access::rest(*from, *skipped, span),
        Op::Key { from, key, default } => access::key(*from, key.clone(), default.as_deref().map(compile), span),
        Op::Named(from) => access::named(*from, span),
        Op::Fault { fault, .. } => {
            let (kind, message, hint) = (fault.kind, fault.message.clone(), fault.hint.clone());
            Box::new(move |m, _| {
                let mut fault = crate::machine::Fault::new(kind, message.clone());
                fault.hint.clone_from(&hint);
                let raised = m.raise_fault(fault);
                Err(m.at(raised, span))
            })
        }
        #[cfg(feature = "coverage")]
        Op::Probe { counters, body } => {
            let (counters, body) = (counters.clone().into_boxed_slice(), compile(body));
            Box::new(move |m, f| {
                counters.iter().for_each(crate::coverage::Counter::increment);
                body(m, f)
            })
        }
    }
}

/// The steps that a run of a piece of code is charged, apart from the loops and calls in it. They are estimated by the length of
/// its text, since the body of a loop may be as long as the program.
pub(super) fn weight(ir: &Ir) -> u32 {
    1 + (ir.span.end - ir.span.start) / BYTES_A_STEP
}

/// Bytes of the program's text that are charged as one step.
const BYTES_A_STEP: u32 = 256;

fn branch(condition: Condition, then: Code, otherwise: Code) -> Code {
    match condition {
        Condition::Test(test) => Box::new(move |m, f| if test(m, f)? { then(m, f) } else { otherwise(m, f) }),
        Condition::SlotInt { slot, int, orders, otherwise: test } => Box::new(move |m, f| {
            let truth = match f.slots.get(slot) {
                Some(Value::Int(i)) => comparison_holds(*i, int, orders),
                _ => test(m, f)?,
            };
            if truth { then(m, f) } else { otherwise(m, f) }
        }),
    }
}

pub(super) fn all(parts: &[Ir]) -> Box<[Code]> {
    parts.iter().map(compile).collect()
}

#[inline]
fn evaluate(parts: &[Code], m: &mut Machine, f: &mut Frame<'_>) -> Result<Vec<Value>, Raised> {
    let mut values = Vec::with_capacity(parts.len());
    for part in parts {
        values.push(part(m, f)?);
    }
    Ok(values)
}

pub(super) fn constant(value: Value) -> Code {
    match value {
        Value::Nil => Box::new(|_, _| Ok(Value::Nil)),
        Value::Int(i) => Box::new(move |_, _| Ok(Value::Int(i))),
        other => Box::new(move |_, _| Ok(other.clone())),
    }
}

fn read(local: Local) -> Code {
    let slot = local.slot as usize;
    if local.last { Box::new(move |_, f| Ok(f.take(slot))) } else { Box::new(move |_, f| Ok(copy(f.slots.get(slot)))) }
}

fn global(index: u32, fallback: Option<&'static Builtin>, span: Span) -> Code {
    Box::new(move |m, f| lookup(m, f, index, fallback, span))
}

fn lookup(m: &mut Machine, f: &Frame<'_>, index: u32, fallback: Option<&'static Builtin>, span: Span) -> Result<Value, Raised> {
    if let Some(value) = f.globals.get(index) {
        return Ok(value);
    }
    if let Some(row) = fallback {
        return Ok(Value::Builtin(row));
    }
    let name = f.globals.name(index);
    let raised =
        m.raise_with_hint(ErrorKind::UnboundVar, format!("'{name}' is used before it is defined"), "move its def or defn up");
    Err(m.at(raised, span))
}

/// Compiles a map literal. If all keys are `written` out, a keyword and a string of one name are two keys.
fn map_literal(parts: Box<[Code]>, written: bool) -> Code {
    Box::new(move |m, f| {
        let mut entries = Vec::with_capacity(parts.len() / 2);
        let mut parts = parts.iter();
        while let (Some(key), Some(value)) = (parts.next(), parts.next()) {
            entries.push((key(m, f)?, value(m, f)?));
        }
        let map = if written { metered::map_of_exact_keys(m, entries) } else { metered::map(m, entries) };
        map.map(Value::Map)
    })
}

/// Compiles `and` and `or`, which stop at the first part whose truthiness is `until`.
fn chain(parts: &[Ir], until: bool) -> Code {
    let mut parts: Vec<Code> = parts.iter().map(compile).collect();
    let last = parts.pop().unwrap_or_else(|| constant(Value::Nil));
    let parts = parts.into_boxed_slice();
    Box::new(move |m, f| {
        for part in &parts {
            let value = part(m, f)?;
            if value.is_truthy() == until {
                return Ok(value);
            }
        }
        last(m, f)
    })
}

fn sequence(parts: &[Ir]) -> Code {
    let mut parts: Vec<Code> = parts.iter().map(compile).collect();
    let last = parts.pop().unwrap_or_else(|| constant(Value::Nil));
    let parts = parts.into_boxed_slice();
    Box::new(move |m, f| {
        for part in &parts {
            discard(part(m, f)?);
        }
        last(m, f)
    })
}

fn bind(bindings: &[(u32, Ir)], body: &Ir) -> Code {
    let body = compile(body);
    if let [(slot, value)] = bindings {
        let (slot, value) = (*slot as usize, compile(value));
        return Box::new(move |m, f| {
            let value = value(m, f)?;
            f.set(slot, value);
            body(m, f)
        });
    }
    let bindings: Box<[(usize, Code)]> = bindings.iter().map(|(slot, value)| (*slot as usize, compile(value))).collect();
    Box::new(move |m, f| {
        for (slot, value) in &bindings {
            let value = value(m, f)?;
            f.set(*slot, value);
        }
        body(m, f)
    })
}

/// Compiles the code of a group, and returns it with its captures.
pub(crate) fn group(group: &GroupIr) -> Option<(Arc<Group>, Box<[Capture]>)> {
    let arity = |arity: &ArityIr| Arity {
        arglist: Arc::clone(&arity.arglist),
        fixed: arity.fixed as usize,
        variadic: arity.variadic,
        slots: arity.slots as usize,
        weight: weight(&arity.body),
        body: compile(&arity.body),
    };
    let members = group.members.iter().filter_map(|member| {
        let mut arities = member.arities.iter().map(arity);
        Some(Member {
            name: member.name.clone(),
            doc: member.doc.clone(),
            span: member.span,
            first: arities.next()?,
            others: arities.collect(),
        })
    });
    Some((Arc::new(Group::new(group, members)?), group.captures.clone().into_boxed_slice()))
}

fn capture(sources: &[Capture], f: &mut Frame<'_>) -> Option<Arc<[Value]>> {
    if sources.is_empty() {
        return None;
    }
    let take = |source: &Capture| match *source {
        Capture::Local(Local { slot, last: true }) => f.take(slot as usize),
        Capture::Local(Local { slot, last: false }) => copy(f.slots.get(slot as usize)),
        Capture::Capture(index) => copy(f.this.capture(index)),
        Capture::This => Value::Closure(Arc::clone(f.this)),
        Capture::Sibling(member) => Value::Closure(Arc::new(f.this.sibling(member))),
    };
    Some(sources.iter().map(take).collect())
}

fn function(ir: &GroupIr) -> Code {
    let Some((group, sources)) = group(ir) else { return constant(Value::Nil) };
    if sources.is_empty() {
        // It captures nothing, so that all instances are equal and one is enough.
        return constant(Value::Closure(Arc::new(Closure::new(group, 0, None))));
    }
    Box::new(move |_, f| Ok(Value::Closure(Arc::new(Closure::new(Arc::clone(&group), 0, capture(&sources, f))))))
}

fn letfn(slots: &[u32], ir: &GroupIr, body: &Ir) -> Code {
    let Some((group, sources)) = group(ir) else { return compile(body) };
    let slots: Box<[usize]> = slots.iter().map(|slot| *slot as usize).collect();
    let body = compile(body);
    Box::new(move |m, f| {
        let captures = capture(&sources, f);
        for (member, slot) in (0..).zip(&slots) {
            let closure = Closure::new(Arc::clone(&group), member, captures.clone());
            f.set(*slot, Value::Closure(Arc::new(closure)));
        }
        body(m, f)
    })
}

fn define(index: u32, value: Option<&Ir>, once: bool) -> Code {
    let value = value.map(compile);
    Box::new(move |m, f| {
        if !(once && f.globals.is_bound(index))
            && let Some(value) = &value
        {
            let value = value(m, f)?;
            f.globals.set(index, value);
        }
        Ok(Value::Var(f.globals.name(index).into()))
    })
}

fn case(subject: &Ir, table: &[(Value, u32)], arms: &[Ir]) -> Code {
    let subject = compile(subject);
    let mut arms: Vec<Code> = arms.iter().map(compile).collect();
    let default = arms.pop().unwrap_or_else(|| constant(Value::Nil));
    let table = Map::from_entries(table.iter().map(|(value, arm)| (value.clone(), Value::Int(i64::from(*arm)))).collect());
    Box::new(move |m, f| {
        let value = subject(m, f)?;
        let arm = table.get(&value).and_then(Value::as_int).and_then(|arm| arms.get(arm as usize));
        arm.unwrap_or(&default)(m, f)
    })
}

fn turn(step: &Step) -> Turn {
    match step {
        Step::Each(slot, items) => Turn::Each(*slot as usize, compile(items), items.span),
        Step::Bind(slot, value) => Turn::Bind(*slot as usize, compile(value)),
        Step::When(test) => Turn::When(truth(test)),
        Step::While(test) => Turn::While(truth(test)),
        Step::Body(body) => Turn::Body(compile(body)),
    }
}

fn call(f: &Ir, args: &[Ir], span: Span) -> Code {
    if let (Op::Const(key @ Value::Keyword(_)), [from]) = (&f.op, args)
        && let Some(row) = crate::analyzer::builtin("get")
    {
        return key_access(from, key, row, span);
    }
    match args {
        [a] => call_of(f, [Argument::from_ir(a)], span),
        [a, b] => call_of(f, [Argument::from_ir(a), Argument::from_ir(b)], span),
        [a, b, c] => call_of(f, [Argument::from_ir(a), Argument::from_ir(b), Argument::from_ir(c)], span),
        _ => call_of(f, args.iter().map(Argument::from_ir).collect::<Box<[Argument]>>(), span),
    }
}

/// Compiles a call with a common number of arguments, so that they are evaluated without a loop.
fn call_of<A: Arguments>(f: &Ir, args: A, span: Span) -> Code {
    match &f.op {
        Op::Global { index, fallback } => {
            let (index, fallback) = (*index, *fallback);
            Box::new(move |m, f| {
                let globals = f.globals;
                if let Some(Value::Closure(closure)) = globals.function(index) {
                    return call_closure(m, f, closure, &args).map_err(|raised| m.push_frame(raised, closure, span));
                }
                let callee = lookup(m, f, index, fallback, span)?;
                apply(m, f, &callee, &args, span)
            })
        }
        Op::This => Box::new(move |m, f| {
            let this = f.this;
            call_closure(m, f, this, &args).map_err(|raised| m.push_frame(raised, this, span))
        }),
        Op::Const(value) => {
            let value = value.clone();
            Box::new(move |m, f| apply(m, f, &value, &args, span))
        }
        _ => {
            let callee = compile(f);
            Box::new(move |m, f| {
                let callee = callee(m, f)?;
                apply(m, f, &callee, &args, span)
            })
        }
    }
}

fn apply<A: Arguments>(m: &mut Machine, f: &mut Frame<'_>, callee: &Value, args: &A, span: Span) -> Result<Value, Raised> {
    match callee {
        Value::Closure(closure) => call_closure(m, f, closure, args).map_err(|raised| m.push_frame(raised, closure, span)),
        Value::Nil | Value::True | Value::False | Value::Int(_) | Value::Double(_) | Value::BigInt(_) | Value::Str(_) => {
            let raised = not_callable(m, callee);
            Err(m.at(raised, span))
        }
        _ => {
            let mut values = Vec::with_capacity(args.as_ref().len());
            for arg in args.as_ref() {
                values.push(arg.get(m, f)?);
            }
            call_value(m, callee, &mut values).map_err(|raised| m.at(raised, span))
        }
    }
}

pub(super) fn key_access(from: &Ir, key: &Value, row: &'static Builtin, span: Span) -> Code {
    match &from.op {
        Op::Local(local) => access::key_of_slot(local.slot as usize, key.clone(), row, span),
        _ => access::key_of(compile(from), key.clone(), row, span),
    }
}

fn builtin(row: &'static Builtin, args: &[Ir], span: Span) -> Code {
    if is_core(row)
        && let Some(code) = fused_builtin(row, args, span)
    {
        return code;
    }
    let run = row.run;
    match args {
        [] => Box::new(move |m, _| run(m, &mut []).map_err(|raised| m.at(raised, span))),
        [a] => {
            let a = Argument::from_ir(a);
            Box::new(move |m, f| {
                let mut args = [a.get(m, f)?];
                run(m, &mut args).map_err(|raised| m.at(raised, span))
            })
        }
        [a, b] => {
            let (a, b) = (Argument::from_ir(a), Argument::from_ir(b));
            Box::new(move |m, f| {
                let mut args = [a.get(m, f)?, b.get(m, f)?];
                run(m, &mut args).map_err(|raised| m.at(raised, span))
            })
        }
        [a, b, c] => {
            let (a, b, c) = (Argument::from_ir(a), Argument::from_ir(b), Argument::from_ir(c));
            Box::new(move |m, f| {
                let mut args = [a.get(m, f)?, b.get(m, f)?, c.get(m, f)?];
                run(m, &mut args).map_err(|raised| m.at(raised, span))
            })
        }
        _ => {
            let args = all(args);
            Box::new(move |m, f| {
                let mut values = evaluate(&args, m, f)?;
                run(m, &mut values).map_err(|raised| m.at(raised, span))
            })
        }
    }
}
