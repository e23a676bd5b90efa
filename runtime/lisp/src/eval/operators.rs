//! Builtins that are specialized for their operands instead of being called.

use super::compile::{compile, constant, key_access};
use super::fused::{self, Any, Int, Slot, Source};
use super::{Code, Test, access, discard};
use crate::Value;
use crate::builtins::Builtin;
use crate::error::Span;
use crate::ir::{Ir, Op};

/// Calls `$make::<$op, _, _>(a, b, …)` with the types of the operands.
macro_rules! with_operands {
    ($make:path, $op:ty, $a:expr, $b:expr, $($rest:expr),*) => {
        match (operand($a), operand($b)) {
            (Operand::Slot(a), Operand::Slot(b)) => $make(Slot(a), Slot(b), $($rest),*),
            (Operand::Slot(a), Operand::Int(b)) => $make(Slot(a), Int(b), $($rest),*),
            (Operand::Slot(a), Operand::Any(b)) => $make(Slot(a), Any(b), $($rest),*),
            (Operand::Any(a), Operand::Slot(b)) => $make(Any(a), Slot(b), $($rest),*),
            (Operand::Any(a), Operand::Int(b)) => $make(Any(a), Int(b), $($rest),*),
            (Operand::Any(a), Operand::Any(b)) => $make(Any(a), Any(b), $($rest),*),
            (Operand::Int(a), Operand::Slot(b)) => $make(Int(a), Slot(b), $($rest),*),
            (Operand::Int(a), Operand::Any(b)) => $make(Int(a), Any(b), $($rest),*),
            (Operand::Int(a), Operand::Int(b)) => $make(Int(a), Any(constant(Value::Int(b))), $($rest),*),
        }
    };
}

/// Compiles a comparison, either for a branch or for its value.
macro_rules! comparisons {
    ($row:expr, $a:expr, $b:expr, $span:expr, $make:ident) => {
        match $row.name {
            "<" => Some(with_operands!(comparing::less::$make, fused::Less, $a, $b, $row, $span)),
            "<=" => Some(with_operands!(comparing::less_or_equal::$make, fused::LessOrEqual, $a, $b, $row, $span)),
            ">" => Some(with_operands!(comparing::greater::$make, fused::Greater, $a, $b, $row, $span)),
            ">=" => Some(with_operands!(comparing::greater_or_equal::$make, fused::GreaterOrEqual, $a, $b, $row, $span)),
            "=" => Some(with_operands!(comparing::equal::$make, fused::Equal, $a, $b, $row, $span)),
            "not=" => Some(with_operands!(comparing::not_equal::$make, fused::NotEqual, $a, $b, $row, $span)),
            _ => None,
        }
    };
}

pub(super) fn is_core(row: &Builtin) -> bool {
    row.namespace == "clojure.core"
}

/// Returns the specialized code of a call, if it has one.
pub(super) fn fused_builtin(row: &'static Builtin, args: &[Ir], span: Span) -> Option<Code> {
    match (row.name, args) {
        ("+", [a, b]) => Some(with_operands!(add, fused::Add, a, b, row, false, span)),
        ("-", [a, b]) => Some(with_operands!(subtract, fused::Subtract, a, b, row, false, span)),
        ("*", [a, b]) => Some(with_operands!(multiply, fused::Multiply, a, b, row, false, span)),
        ("inc", [a]) => Some(match operand(a) {
            Operand::Slot(a) => add(Slot(a), Int(1), row, true, span),
            Operand::Int(a) => add(Int(a), Int(1), row, true, span),
            Operand::Any(a) => add(Any(a), Int(1), row, true, span),
        }),
        ("dec", [a]) => Some(match operand(a) {
            Operand::Slot(a) => subtract(Slot(a), Int(1), row, true, span),
            Operand::Int(a) => subtract(Int(a), Int(1), row, true, span),
            Operand::Any(a) => subtract(Any(a), Int(1), row, true, span),
        }),
        ("get", [from, Ir { op: Op::Const(key), .. }]) if key.as_name().is_some() => Some(key_access(from, key, row, span)),
        ("get", [Ir { op: Op::Local(from), .. }, Ir { op: Op::Local(key), .. }]) if from.slot != key.slot => {
            Some(access::slot_at_slot(from.slot as usize, *key, row, span))
        }
        ("get", [Ir { op: Op::Capture(from), .. }, Ir { op: Op::Local(key), .. }]) => {
            Some(access::capture_at_slot(*from, *key, row, span))
        }
        ("not" | "nil?" | "some?", [_]) => {
            let test = truth_of_builtin(row, args, span)?;
            Some(Box::new(move |m, f| test(m, f).map(Value::bool)))
        }
        (_, [a, b]) => comparisons!(row, a, b, span, value),
        _ => None,
    }
}

/// Compiles an expression whose result is only tested for truthiness.
pub(super) fn truth(ir: &Ir) -> Test {
    match &ir.op {
        Op::Builtin { row, args } if is_core(row) => {
            if let Some(test) = truth_of_builtin(row, args, ir.span) {
                return test;
            }
        }
        Op::And(parts) => return truth_chain(parts, false),
        Op::Or(parts) => return truth_chain(parts, true),
        Op::Local(local) => {
            let slot = local.slot as usize;
            return Box::new(move |_, f| Ok(f.slots.get(slot).is_some_and(Value::is_truthy)));
        }
        _ => {}
    }
    let code = compile(ir);
    Box::new(move |m, f| {
        let value = code(m, f)?;
        let truth = value.is_truthy();
        discard(value);
        Ok(truth)
    })
}

fn truth_chain(parts: &[Ir], until: bool) -> Test {
    let parts: Box<[Test]> = parts.iter().map(truth).collect();
    Box::new(move |m, f| {
        for part in &parts {
            if part(m, f)? == until {
                return Ok(until);
            }
        }
        Ok(!until)
    })
}

fn truth_of_builtin(row: &'static Builtin, args: &[Ir], span: Span) -> Option<Test> {
    match (row.name, args) {
        ("not", [a]) => {
            let test = truth(a);
            Some(Box::new(move |m, f| test(m, f).map(|truth| !truth)))
        }
        ("nil?" | "some?", [a]) => {
            let wanted = row.name == "nil?";
            if let Op::Local(local) = &a.op {
                let slot = local.slot as usize;
                return Some(Box::new(move |_, f| Ok(f.slots.get(slot).is_none_or(Value::is_nil) == wanted)));
            }
            let code = compile(a);
            Some(Box::new(move |m, f| code(m, f).map(|value| value.is_nil() == wanted)))
        }
        (_, [a, b]) => comparisons!(row, a, b, span, test),
        _ => None,
    }
}

/// How an operand of arithmetic is read.
enum Operand {
    Slot(usize),
    Int(i64),
    Any(Code),
}

fn operand(ir: &Ir) -> Operand {
    match &ir.op {
        Op::Local(local) => Operand::Slot(local.slot as usize),
        Op::Const(Value::Int(i)) => Operand::Int(*i),
        _ => Operand::Any(compile(ir)),
    }
}

fn add<A: Source, B: Source>(a: A, b: B, row: &'static Builtin, unary: bool, span: Span) -> Code {
    fused::arithmetic::<fused::Add, A, B>(a, b, row, unary, span)
}

fn subtract<A: Source, B: Source>(a: A, b: B, row: &'static Builtin, unary: bool, span: Span) -> Code {
    fused::arithmetic::<fused::Subtract, A, B>(a, b, row, unary, span)
}

fn multiply<A: Source, B: Source>(a: A, b: B, row: &'static Builtin, unary: bool, span: Span) -> Code {
    fused::arithmetic::<fused::Multiply, A, B>(a, b, row, unary, span)
}

mod comparing {
    macro_rules! comparing {
        ($($module:ident $op:ident),*) => {$(
            pub(super) mod $module {
                use super::super::super::fused::{self, Source};
                use super::super::super::{Code, Test};
                use crate::builtins::Builtin;
                use crate::error::Span;

                pub(in super::super) fn test<A: Source, B: Source>(a: A, b: B, row: &'static Builtin, span: Span) -> Test {
                    fused::test::<fused::$op, A, B>(a, b, row, span)
                }

                pub(in super::super) fn value<A: Source, B: Source>(a: A, b: B, row: &'static Builtin, span: Span) -> Code {
                    fused::comparison::<fused::$op, A, B>(a, b, row, span)
                }
            }
        )*};
    }

    comparing!(less Less, less_or_equal LessOrEqual, greater Greater, greater_or_equal GreaterOrEqual, equal Equal, not_equal NotEqual);
}
