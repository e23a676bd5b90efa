//! `loop` and `recur`: turns without growth of the native stack.

use super::compile::{all, compile, constant};
use super::operators::is_core;
use super::{Code, Frame};
use crate::Value;
use crate::ir::{Ir, Op};
use crate::machine::{Machine, Raised};

pub(super) fn repeat(first: u32, inits: &[Ir], body: &Ir) -> Code {
    let (first, inits, body) = (first as usize, all(inits), compile(body));
    Box::new(move |m, f| {
        for (slot, init) in (first..).zip(&inits) {
            let value = init(m, f)?;
            f.set(slot, value);
        }
        let mut turns = 0;
        loop {
            match body(m, f) {
                // No fault: recur.
                Err(_) if m.fault.is_none() => {
                    turns += 1;
                    m.turn(turns)?;
                }
                done => return done,
            }
        }
    })
}

pub(super) fn recur(first: u32, args: &[Ir]) -> Code {
    let first = first as usize;
    let mut args: Vec<Next> = args.iter().map(Next::of).collect();
    match args.len() {
        1 => {
            let Some(only) = args.pop() else { return constant(Value::Nil) };
            Box::new(move |m, f| {
                let value = only.get(m, f)?;
                f.set(first, value);
                Err(Raised)
            })
        }
        2 => {
            let (Some(second), Some(one)) = (args.pop(), args.pop()) else { return constant(Value::Nil) };
            Box::new(move |m, f| {
                let a = one.get(m, f)?;
                let b = second.get(m, f)?;
                f.set(first, a);
                f.set(first + 1, b);
                Err(Raised)
            })
        }
        3 => {
            let (Some(third), Some(second), Some(one)) = (args.pop(), args.pop(), args.pop()) else {
                return constant(Value::Nil);
            };
            Box::new(move |m, f| {
                let a = one.get(m, f)?;
                let b = second.get(m, f)?;
                let c = third.get(m, f)?;
                f.set(first, a);
                f.set(first + 1, b);
                f.set(first + 2, c);
                Err(Raised)
            })
        }
        _ => Box::new(move |m, f| {
            let mut values = Vec::with_capacity(args.len());
            for arg in &args {
                values.push(arg.get(m, f)?);
            }
            for (slot, value) in (first..).zip(values) {
                f.set(slot, value);
            }
            Err(Raised)
        }),
    }
}

/// The next value of a loop's name. Counting on and summing up need no call where integers do.
enum Next {
    /// A slot and a constant.
    AddInt(usize, i64, Code),
    /// Two slots.
    Add(usize, usize, Code),
    Code(Code),
}

impl Next {
    fn of(ir: &Ir) -> Next {
        let code = compile(ir);
        let Op::Builtin { row, args } = &ir.op else { return Next::Code(code) };
        if !is_core(row) {
            return Next::Code(code);
        }
        let slot = |ir: &Ir| match &ir.op {
            Op::Local(local) => Some(local.slot as usize),
            _ => None,
        };
        let int = |ir: &Ir| match &ir.op {
            Op::Const(Value::Int(i)) => Some(*i),
            _ => None,
        };
        let by = match (row.name, args.as_slice()) {
            ("inc", [_]) => Some(1),
            ("dec", [_]) => Some(-1),
            ("+", [_, b]) => int(b),
            ("-", [_, b]) => int(b).and_then(i64::checked_neg),
            _ => None,
        };
        let slots = (args.first().and_then(slot), args.get(1).and_then(slot));
        match (by, slots, row.name) {
            (Some(by), (Some(a), _), _) => Next::AddInt(a, by, code),
            (None, (Some(a), Some(b)), "+") if args.len() == 2 => Next::Add(a, b, code),
            _ => Next::Code(code),
        }
    }

    #[inline]
    fn get(&self, m: &mut Machine, f: &mut Frame<'_>) -> Result<Value, Raised> {
        let code = match self {
            Next::AddInt(slot, by, code) => {
                if let Some(Value::Int(i)) = f.slots.get(*slot)
                    && let Some(sum) = i.checked_add(*by)
                {
                    return Ok(Value::Int(sum));
                }
                code
            }
            Next::Add(a, b, code) => {
                if let (Some(Value::Int(p)), Some(Value::Int(q))) = (f.slots.get(*a), f.slots.get(*b))
                    && let Some(sum) = p.checked_add(*q)
                {
                    return Ok(Value::Int(sum));
                }
                code
            }
            Next::Code(code) => code,
        };
        code(m, f)
    }
}
