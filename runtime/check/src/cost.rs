//! Computes the cost of a program before it runs: the number of its upstream calls, and whether they may change anything.
//!
//! A count is an upper bound, never an estimate. Of two branches the larger count is used. A call in a loop, or in a function
//! that is passed elsewhere, has no bound.

use std::fmt;

use litemap::LiteMap;
use ptc_catalog::{Catalog, EffectKind};
use ptc_lisp::ir::{Capture, GroupIr, Ir, MemberIr, Op, Step};
use ptc_lisp::{Program, Value, is_upstream_call};

use crate::{EACH, EACH_SECOND, tool_of};

/// The cost of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// Maximum number of upstream calls in a run. `None` if it is unbounded.
    pub calls: Option<u64>,
    /// The possible effects of the calls.
    pub effects: Effects,
    /// Whether a called tool may destroy data, or is not known.
    pub may_destroy: bool,
}

/// The possible effects of calls, as declared by their tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effects {
    /// There are no calls.
    None,
    /// All called tools only read.
    ReadOnly,
    /// A called tool does not declare its effects, or its name is computed at run time.
    Unknown,
    /// A called tool declares that it changes something.
    Writes,
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.calls {
            Some(0) => return f.write_str("no upstream calls"),
            Some(1) => f.write_str("at most 1 upstream call, ")?,
            Some(most) => write!(f, "at most {most} upstream calls, ")?,
            None => f.write_str("any number of upstream calls, ")?,
        }
        f.write_str(match self.effects {
            Effects::None => "none of which is written out",
            Effects::ReadOnly => "read-only",
            Effects::Unknown => "with effects that its tools do not tell",
            Effects::Writes => "which change something",
        })
    }
}

/// Computes the cost of a program.
pub fn estimate(program: &Program, catalog: &Catalog) -> Cost {
    let sites = program.tool_calls_by_name();
    let of_site = |site| match tool_of(site, catalog) {
        Some(tool) => match tool.effect().kind {
            EffectKind::Read => Effects::ReadOnly,
            EffectKind::Write => Effects::Writes,
            EffectKind::Unknown => Effects::Unknown,
        },
        None => Effects::Unknown,
    };
    let may_site_destroy = |site| tool_of(site, catalog).is_none_or(|tool| tool.effect().may_destroy());
    let mut may_destroy = sites.iter().filter(|site| !site.is_covered).any(may_site_destroy);
    let mut effects = sites.iter().filter(|site| !site.is_covered).map(of_site).max().unwrap_or(Effects::None);
    let mut count =
        Count { definitions: LiteMap::new(), under_way: Vec::new(), met: Vec::new(), expressions_left: MAX_EXPRESSIONS };
    count.collect(program.ir());
    let calls = count.expr(program.ir(), &mut LiteMap::new());
    if finds(program.ir(), &is_tool_call) {
        // Code that receives `tool/call` as a value may call any tool.
        effects = effects.max(Effects::Unknown);
        may_destroy = true;
    }
    if calls == Some(0) {
        (effects, may_destroy) = (Effects::None, false);
    }
    Cost { calls, effects, may_destroy }
}

/// Local functions by slot.
type Locals<'a> = LiteMap<u32, &'a GroupIr>;

struct Count<'a> {
    /// Global names by index. A name that is absent is not defined by the program.
    definitions: LiteMap<u32, Definition<'a>>,
    /// Functions whose bodies are being counted.
    under_way: Vec<*const GroupIr>,
    /// Functions that were reached again from their own body, which means recursion.
    met: Vec<*const GroupIr>,
    expressions_left: u32,
}

/// The definition of a global name.
#[derive(Clone, Copy)]
enum Definition<'a> {
    /// A single function, which is counted at each call.
    Function(&'a GroupIr),
    /// A value other than a function literal, or several definitions. It is counted where it is defined.
    Other,
}

/// Maximum number of counted expressions. A function's body is counted at each call, so that the work multiplies through nested
/// calls. Beyond this number the cost is unbounded.
const MAX_EXPRESSIONS: u32 = 1_000_000;

type Bound = Option<u64>;

fn sum(a: Bound, b: Bound) -> Bound {
    Some(a?.saturating_add(b?))
}

/// Returns the larger bound. `None` is larger than any number.
fn larger(a: Bound, b: Bound) -> Bound {
    Some(a?.max(b?))
}

impl<'a> Count<'a> {
    fn collect(&mut self, ir: &'a Ir) {
        if let Op::Def { index, value: Some(value), .. } = &ir.op {
            let definition = match &value.op {
                Op::Fn(group) => Definition::Function(group),
                _ => Definition::Other,
            };
            self.definitions.entry(*index).and_modify(|known| *known = Definition::Other).or_insert(definition);
        }
        ir.children(&mut |child| self.collect(child));
    }

    /// Counts the calls of one evaluation of an expression.
    fn expr(&mut self, ir: &'a Ir, locals: &mut Locals<'a>) -> Bound {
        self.expressions_left = self.expressions_left.checked_sub(1)?;
        match &ir.op {
            op if is_tool_call(op) => None,
            Op::If(parts) => {
                let [test, then, otherwise] = &**parts;
                let test = self.expr(test, locals);
                let branches = larger(self.expr(then, locals), self.expr(otherwise, locals));
                sum(test, branches)
            }
            Op::Case(case) => {
                let subject = self.expr(&case.subject, locals);
                let arms = case.arms.iter().map(|arm| self.expr(arm, locals)).fold(Some(0), larger);
                sum(subject, arms)
            }
            Op::Let { bindings, body } => {
                if let Some((turns, inside)) = dotimes(bindings, body, locals) {
                    return for_each(self.expr(inside, locals), Some(turns));
                }
                let mut all = Some(0);
                for (slot, value) in bindings {
                    if let Op::Fn(group) = &value.op {
                        // The function's body is counted where it is called or passed on.
                        all = sum(all, self.captured(group, locals));
                        locals.insert(*slot, group);
                    } else {
                        all = sum(all, self.expr(value, locals));
                        locals.remove(slot);
                    }
                }
                sum(all, self.expr(body, locals))
            }
            // A function that is passed on may be called any number of times.
            Op::Local(local) => match locals.get(&local.slot) {
                Some(group) => self.any_number(group),
                None => Some(0),
            },
            Op::Global { index, .. } => match self.definitions.get(index) {
                Some(Definition::Function(group)) => self.any_number(group),
                Some(Definition::Other) => Some(0),
                // The value of the name comes from an earlier program and is unknown.
                None => None,
            },
            Op::Fn(group) => sum(self.captured(group, locals), self.any_number(group)),
            Op::LetFn { group, body, .. } => {
                let functions = sum(self.captured(group, locals), self.any_number(group));
                sum(functions, self.expr(body, locals))
            }
            Op::Def { index, value: Some(value), .. } => match (&value.op, self.definitions.get(index)) {
                (Op::Fn(group), Some(Definition::Function(_))) => self.captured(group, locals),
                _ => self.expr(value, locals),
            },
            Op::Loop { first, inits, body } => {
                let all = self.all(inits, locals);
                for slot in (*first..).take(inits.len()) {
                    locals.remove(&slot);
                }
                let inside = self.expr(body, locals);
                let turns = if inside == Some(0) || !has_recur(body) { inside } else { None };
                sum(all, turns)
            }
            Op::For { steps, .. } => self.each(steps, locals),
            Op::Call { f, args } => {
                let args = self.all(args, locals);
                sum(args, self.called(f, locals))
            }
            Op::Builtin { row, args } => self.builtin(row.namespace, row.name, args, locals),
            _ => {
                let mut inside = Vec::new();
                ir.children(&mut |child| inside.push(child));
                inside.into_iter().map(|child| self.expr(child, locals)).fold(Some(0), sum)
            }
        }
    }

    fn all(&mut self, parts: &'a [Ir], locals: &mut Locals<'a>) -> Bound {
        parts.iter().map(|part| self.expr(part, locals)).fold(Some(0), sum)
    }

    fn builtin(&mut self, namespace: &str, name: &str, args: &'a [Ir], locals: &mut Locals<'a>) -> Bound {
        match (name, args) {
            // The number of pages is unknown before the run.
            _ if (namespace, name) == ("tool", "all") => None,
            _ if is_upstream_call(namespace, name) => sum(self.all(args, locals), Some(1)),
            (name, [f, items]) if EACH.contains(&name) => {
                let once = self.called(f, locals);
                sum(self.expr(items, locals), for_each(once, size(items)))
            }
            (name, [f, before @ .., items]) if EACH_SECOND.contains(&name) => {
                let once = self.called(f, locals);
                let around = sum(self.all(before, locals), self.expr(items, locals));
                sum(around, for_each(once, size(items)))
            }
            ("pcalls", functions) => functions.iter().map(|f| self.called(f, locals)).fold(Some(0), sum),
            _ => self.all(args, locals),
        }
    }

    /// Counts the calls that one call of the function `f` makes.
    fn called(&mut self, f: &'a Ir, locals: &mut Locals<'a>) -> Bound {
        let group = match &f.op {
            Op::Fn(group) => Some(&**group),
            Op::Local(local) => locals.get(&local.slot).copied(),
            Op::Global { index, .. } => match self.definitions.get(index) {
                Some(Definition::Function(group)) => Some(*group),
                Some(Definition::Other) | None => None,
            },
            Op::Const(Value::Builtin(row)) if (row.namespace, row.name) == ("tool", "all") => return None,
            op if is_tool_call(op) => return Some(1),
            _ => None,
        };
        match group {
            Some(group) => sum(self.captured(group, locals), self.group(group)),
            None => self.expr(f, locals),
        }
    }

    /// Counts one call of a function, using the arity with most calls.
    fn group(&mut self, group: &'a GroupIr) -> Bound {
        let this = std::ptr::from_ref(group);
        if self.under_way.contains(&this) {
            self.met.push(this);
            return Some(0);
        }
        self.under_way.push(this);
        let mut most = Some(0);
        for arity in group.members.iter().flat_map(|member: &MemberIr| &member.arities) {
            let inside = self.expr(&arity.body, &mut LiteMap::new());
            // Recursion makes the number of calls unbounded.
            let again = inside != Some(0) && (names_itself(&arity.body) || self.met.contains(&this) || group.members.len() > 1);
            most = larger(most, if again { None } else { inside });
        }
        self.under_way.pop();
        most
    }

    /// Counts an unknown number of calls of a function: 0 if the function makes no calls, otherwise unbounded.
    fn any_number(&mut self, group: &'a GroupIr) -> Bound {
        self.group(group).filter(|most| *most == 0)
    }

    /// Counts the captured values of a function, which may be functions that call.
    fn captured(&mut self, group: &'a GroupIr, locals: &Locals<'a>) -> Bound {
        let taken = group.captures.iter().filter_map(|capture| match capture {
            Capture::Local(local) => locals.get(&local.slot).copied(),
            Capture::Capture(_) | Capture::This | Capture::Sibling(_) => None,
        });
        let taken: Vec<&'a GroupIr> = taken.collect();
        taken.into_iter().map(|group| self.any_number(group)).fold(Some(0), sum)
    }

    /// Counts `for` and `doseq`. The steps after a collection run once per item.
    fn each(&mut self, steps: &'a [Step], locals: &mut Locals<'a>) -> Bound {
        let Some((step, rest)) = steps.split_first() else { return Some(0) };
        match step {
            Step::Each(slot, items) => {
                locals.remove(slot);
                let inside = self.each(rest, locals);
                sum(self.expr(items, locals), for_each(inside, size(items)))
            }
            Step::Bind(slot, ir) => {
                let this = self.expr(ir, locals);
                locals.remove(slot);
                sum(this, self.each(rest, locals))
            }
            Step::When(ir) | Step::While(ir) | Step::Body(ir) => {
                let this = self.expr(ir, locals);
                sum(this, self.each(rest, locals))
            }
        }
    }
}

/// Multiplies the count of one iteration by the number of items.
fn for_each(once: Bound, items: Option<u64>) -> Bound {
    match (once?, items) {
        (0, _) => Some(0),
        (once, size) => size.map(|size| once.saturating_mul(size)),
    }
}

/// Returns the number of items of a literal collection.
fn size(ir: &Ir) -> Option<u64> {
    match &ir.op {
        Op::Const(value) => value.len().map(|len| len as u64),
        Op::Vector(parts) | Op::Set(parts) => Some(parts.len() as u64),
        Op::Builtin { row, args } => match (row.name, args.as_slice()) {
            ("range", [Ir { op: Op::Const(end), .. }]) => u64::try_from(end.as_int()?).ok(),
            _ => None,
        },
        _ => None,
    }
}

/// Recognises `(dotimes [name 3] …)` by its expansion, a loop that counts to a literal limit. Returns the number of iterations
/// and the body. Other loops of this form are treated in the same way.
fn dotimes<'a>(bindings: &'a [(u32, Ir)], looped: &'a Ir, locals: &mut Locals<'_>) -> Option<(u64, &'a Ir)> {
    let ([(limit, Ir { op: Op::Const(most), .. })], Op::Loop { first, inits, body }) = (bindings, &looped.op) else {
        return None;
    };
    let ([Ir { op: Op::Const(from), .. }], Op::If(parts)) = (inits.as_slice(), &body.op) else { return None };
    let [test, Ir { op: Op::Do(turn), .. }, Ir { op: Op::Const(_), .. }] = &**parts else { return None };
    let [inside, Ir { op: Op::Recur { first: again, args: next }, .. }] = turn.as_slice() else { return None };
    let counts = again == first
        && is_of(test, "<", &[*first, *limit])
        && matches!(next.as_slice(), [next] if is_of(next, "inc", &[*first]));
    let turns = most.as_int()?.saturating_sub(from.as_int()?);
    locals.remove(limit);
    locals.remove(first);
    counts.then_some((u64::try_from(turns).unwrap_or(0), inside))
}

/// Whether an expression calls a builtin with these slots as arguments.
fn is_of(ir: &Ir, name: &str, slots: &[u32]) -> bool {
    let Op::Builtin { row, args } = &ir.op else { return false };
    let same = |(arg, slot): (&Ir, &u32)| matches!(&arg.op, Op::Local(local) if local.slot == *slot);
    row.name == name && args.len() == slots.len() && args.iter().zip(slots).all(same)
}

/// Whether an expression is a function such as `tool/call`, used as a value.
fn is_tool_call(op: &Op) -> bool {
    matches!(op, Op::Const(Value::Builtin(row)) if is_upstream_call(row.namespace, row.name))
}

fn has_recur(ir: &Ir) -> bool {
    finds(ir, &|op| matches!(op, Op::Recur { .. }))
}

fn names_itself(ir: &Ir) -> bool {
    finds(ir, &|op| match op {
        Op::This | Op::Sibling(_) | Op::Recur { .. } => true,
        Op::Fn(group) => group.captures.iter().any(|capture| matches!(capture, Capture::This | Capture::Sibling(_))),
        _ => false,
    })
}

fn finds(ir: &Ir, wanted: &dyn Fn(&Op) -> bool) -> bool {
    let mut found = wanted(&ir.op);
    ir.children(&mut |child| found = found || finds(child, wanted));
    found
}
