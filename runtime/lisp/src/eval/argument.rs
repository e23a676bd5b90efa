//! Arguments of calls and next values of loops. The common kinds are evaluated inline, without an indirect call.

use super::compile::compile;
use super::operators::is_core;
use super::{Code, Frame};
use crate::Value;
use crate::ir::{Ir, Local, Op};
use crate::machine::{Machine, Raised};

/// An expression that is evaluated for its value. The special variants also hold general code, for operands that are not
/// integers.
pub(super) enum Argument {
    /// Moves the value out of a slot on its last read.
    Take(usize),
    /// Adds a constant to a slot.
    AddInt(usize, i64, Code),
    /// Adds two slots.
    Add(usize, usize, Code),
    Code(Code),
}

impl Argument {
    pub(super) fn from_ir(ir: &Ir) -> Argument {
        let (row, args) = match &ir.op {
            Op::Local(Local { slot, last: true }) => return Argument::Take(*slot as usize),
            Op::Builtin { row, args } if is_core(row) => (row, args),
            _ => return Argument::Code(compile(ir)),
        };
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
            (Some(by), (Some(a), _), _) => Argument::AddInt(a, by, compile(ir)),
            (None, (Some(a), Some(b)), "+") if args.len() == 2 => Argument::Add(a, b, compile(ir)),
            _ => Argument::Code(compile(ir)),
        }
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a call out of line would cost what inlining saves")]
    pub(super) fn get(&self, m: &mut Machine, f: &mut Frame<'_>) -> Result<Value, Raised> {
        let code = match self {
            Argument::AddInt(slot, by, code) => {
                if let Some(Value::Int(i)) = f.slots.get(*slot)
                    && let Some(sum) = i.checked_add(*by)
                {
                    return Ok(Value::Int(sum));
                }
                code
            }
            Argument::Add(a, b, code) => {
                if let (Some(Value::Int(p)), Some(Value::Int(q))) = (f.slots.get(*a), f.slots.get(*b))
                    && let Some(sum) = p.checked_add(*q)
                {
                    return Ok(Value::Int(sum));
                }
                code
            }
            Argument::Take(slot) => return Ok(f.take(*slot)),
            Argument::Code(code) => code,
        };
        code(m, f)
    }
}

/// The condition of a branch.
pub(super) enum Condition {
    /// Compares a slot with a constant. `orders` is a bit set of the accepted orders: 1 is less, 2 is equal, 4 is greater.
    SlotInt {
        slot: usize,
        int: i64,
        orders: u8,
        otherwise: super::Test,
    },
    Test(super::Test),
}

impl Condition {
    pub(super) fn from_ir(ir: &Ir) -> Condition {
        let otherwise = super::operators::truth(ir);
        let Op::Builtin { row, args } = &ir.op else { return Condition::Test(otherwise) };
        let orders = match row.name {
            _ if !is_core(row) => None,
            "<" => Some(1),
            "=" | "==" => Some(2),
            "<=" => Some(3),
            ">" => Some(4),
            "not=" => Some(5),
            ">=" => Some(6),
            _ => None,
        };
        match (orders, args.as_slice()) {
            (Some(orders), [Ir { op: Op::Local(local), .. }, Ir { op: Op::Const(Value::Int(int)), .. }]) => {
                Condition::SlotInt { slot: local.slot as usize, int: *int, orders, otherwise }
            }
            _ => Condition::Test(otherwise),
        }
    }
}

/// Whether the order of `a` and `b` is in the bit set `orders`.
#[inline]
pub(super) fn comparison_holds(a: i64, b: i64, orders: u8) -> bool {
    orders >> (a.cmp(&b) as i8 + 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::comparison_holds;

    #[test]
    fn comparison_operators_are_masks_of_orderings() {
        for (a, b) in [(1, 2), (2, 2), (3, 2), (i64::MIN, i64::MAX)] {
            assert_eq!(
                [1, 2, 3, 4, 5, 6].map(|orders| comparison_holds(a, b, orders)),
                [a < b, a == b, a <= b, a > b, a != b, a >= b],
                "{a} {b}"
            );
        }
    }
}
