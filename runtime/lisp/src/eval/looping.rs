//! `loop` and `recur`: iteration without growth of the native stack.

use super::Code;
use super::argument::Argument;
use super::compile::{all, compile, weight};
use crate::error::Span;
use crate::ir::Ir;
use crate::machine::Raised;

pub(super) fn repeat(first: u32, inits: &[Ir], body: &Ir, span: Span) -> Code {
    let (first, inits, weight, body) = (first as usize, all(inits), weight(body), compile(body));
    Box::new(move |m, f| {
        for (slot, init) in (first..).zip(&inits) {
            let value = init(m, f)?;
            f.set(slot, value);
        }
        let mut turns = 0;
        loop {
            match body(m, f) {
                // An error without a fault is `recur`.
                Err(_) if m.fault.is_none() => {
                    turns += 1;
                    m.turn(turns, weight).map_err(|raised| m.at(raised, span))?;
                }
                done => return done,
            }
        }
    })
}

pub(super) fn recur(first: u32, args: &[Ir]) -> Code {
    let first = first as usize;
    match args {
        [only] => {
            let only = Argument::from_ir(only);
            Box::new(move |m, f| {
                let value = only.get(m, f)?;
                f.set(first, value);
                Err(Raised)
            })
        }
        [a, b] => {
            let (a, b) = (Argument::from_ir(a), Argument::from_ir(b));
            Box::new(move |m, f| {
                let a = a.get(m, f)?;
                let b = b.get(m, f)?;
                f.set(first, a);
                f.set(first + 1, b);
                Err(Raised)
            })
        }
        [a, b, c] => {
            let (a, b, c) = (Argument::from_ir(a), Argument::from_ir(b), Argument::from_ir(c));
            Box::new(move |m, f| {
                let a = a.get(m, f)?;
                let b = b.get(m, f)?;
                let c = c.get(m, f)?;
                f.set(first, a);
                f.set(first + 1, b);
                f.set(first + 2, c);
                Err(Raised)
            })
        }
        _ => {
            let args: Box<[Argument]> = args.iter().map(Argument::from_ir).collect();
            Box::new(move |m, f| {
                let mut values = Vec::with_capacity(args.len());
                for arg in &args {
                    values.push(arg.get(m, f)?);
                }
                for (slot, value) in (first..).zip(values) {
                    f.set(slot, value);
                }
                Err(Raised)
            })
        }
    }
}
