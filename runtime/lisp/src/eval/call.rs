//! Calls: frames on the native stack, arity dispatch, and every kind of callable value.

use std::sync::Arc;

use super::argument::Argument;
use super::closure::Arity;
use super::globals::Globals;
use super::{Closure, Frame, is_scalar};
use crate::Value;
use crate::error::ErrorKind;
use crate::machine::{FEW_ARGUMENTS, Machine, Raised};

/// Calls a closure with arguments that are already evaluated.
pub(crate) fn invoke(m: &mut Machine, globals: &Globals, closure: &Arc<Closure>, args: &mut [Value]) -> Result<Value, Raised> {
    let Some(arity) = closure.member().and_then(|member| member.arity(args.len())) else {
        return Err(wrong_arity(m, closure, args.len(), called_back(args.len())));
    };
    m.enter(arity.weight)?;
    if args.len() > FEW_ARGUMENTS {
        m.called_with_many(args.len())?;
    }
    let result = match arity.slots {
        0..=1 => call_with_frame::<1>(m, globals, closure, arity, args),
        2 => call_with_frame::<2>(m, globals, closure, arity, args),
        3..=4 => call_with_frame::<4>(m, globals, closure, arity, args),
        5..=8 => call_with_frame::<8>(m, globals, closure, arity, args),
        9..=16 => call_with_frame::<16>(m, globals, closure, arity, args),
        _ => {
            let mut slots = vec![Value::Nil; arity.slots.max(args.len())];
            fill(&mut slots, arity, args);
            (arity.body)(m, &mut Frame { slots: &mut slots, this: closure, globals })
        }
    };
    m.exit();
    result
}

#[inline(never)]
fn call_with_frame<const N: usize>(
    m: &mut Machine,
    globals: &Globals,
    closure: &Arc<Closure>,
    arity: &Arity,
    args: &mut [Value],
) -> Result<Value, Raised> {
    let mut slots = [const { Value::Nil }; N];
    fill(&mut slots, arity, args);
    let result = (arity.body)(m, &mut Frame { slots: &mut slots, this: closure, globals });
    clear(slots);
    result
}

/// Drops the values of a frame. Most of them are scalars or were moved out.
#[inline]
fn clear<const N: usize>(mut slots: [Value; N]) {
    for slot in &mut slots {
        if !is_scalar(slot) {
            *slot = Value::Nil;
        }
    }
    std::mem::forget(slots);
}

#[inline]
fn fill(slots: &mut [Value], arity: &Arity, args: &mut [Value]) {
    if arity.variadic {
        let (fixed, rest) = args.split_at_mut(arity.fixed.min(args.len()));
        if let Some(slot) = slots.get_mut(arity.fixed) {
            *slot = rest_of(rest);
        }
        args_into(slots, fixed);
    } else {
        args_into(slots, args);
    }
}

#[inline]
fn args_into(slots: &mut [Value], args: &mut [Value]) {
    // The slots are fresh, so that their old values need no drop.
    match (slots, args) {
        ([slot, ..], [arg]) => std::mem::swap(slot, arg),
        ([slot, next, ..], [arg, other]) => {
            std::mem::swap(slot, arg);
            std::mem::swap(next, other);
        }
        (slots, args) => slots.iter_mut().zip(args).for_each(|(slot, arg)| std::mem::swap(slot, arg)),
    }
}

/// The remaining arguments of a variadic function. Nil if there are none, as in Clojure.
fn rest_of(args: &mut [Value]) -> Value {
    if args.is_empty() { Value::Nil } else { Value::vector(args.iter_mut().map(std::mem::take).collect()) }
}

/// The arguments of a call: a boxed slice of any length, or an array, whose length is known to the compiler.
pub(super) trait Arguments: AsRef<[Argument]> + Send + Sync + 'static {}

impl<A: AsRef<[Argument]> + Send + Sync + 'static> Arguments for A {}

/// Calls a closure. The arguments are evaluated directly into its frame.
#[inline]
pub(super) fn call_closure<A: Arguments>(
    m: &mut Machine,
    f: &mut Frame<'_>,
    closure: &Arc<Closure>,
    args: &A,
) -> Result<Value, Raised> {
    let count = args.as_ref().len();
    let Some(arity) = closure.member().and_then(|member| member.arity(count)) else {
        return Err(wrong_arity(m, closure, count, BY_ITSELF));
    };
    match arity.slots {
        _ if arity.variadic => call_variadic(m, f, closure, args.as_ref()),
        0..=1 if count <= 1 => call_inline::<1, A>(m, f, closure, arity, args),
        0..=2 => call_inline::<2, A>(m, f, closure, arity, args),
        3..=4 => call_inline::<4, A>(m, f, closure, arity, args),
        5..=8 => call_inline::<8, A>(m, f, closure, arity, args),
        9..=16 => call_inline::<16, A>(m, f, closure, arity, args),
        _ => call_variadic(m, f, closure, args.as_ref()),
    }
}

/// Like [`call_closure`], for large frames and variadic functions.
#[inline(never)]
fn call_variadic(m: &mut Machine, f: &mut Frame<'_>, closure: &Arc<Closure>, args: &[Argument]) -> Result<Value, Raised> {
    let mut values = Vec::with_capacity(args.len());
    for arg in args {
        values.push(arg.get(m, f)?);
    }
    invoke(m, f.globals, closure, &mut values)
}

#[inline(never)]
fn call_inline<const N: usize, A: Arguments>(
    m: &mut Machine,
    f: &mut Frame<'_>,
    closure: &Arc<Closure>,
    arity: &Arity,
    args: &A,
) -> Result<Value, Raised> {
    let mut slots = [const { Value::Nil }; N];
    for (slot, arg) in slots.iter_mut().zip(args.as_ref()) {
        // The slot contains nil, which needs no drop.
        std::mem::forget(std::mem::replace(slot, arg.get(m, f)?));
    }
    m.enter(arity.weight)?;
    let result = (arity.body)(m, &mut Frame { slots: &mut slots, this: closure, globals: f.globals });
    m.exit();
    clear(slots);
    result
}

/// Calls any callable value.
#[inline]
pub(crate) fn call_value(m: &mut Machine, f: &Value, args: &mut [Value]) -> Result<Value, Raised> {
    match f {
        Value::Closure(closure) => {
            let globals = m.globals();
            invoke(m, &globals, closure, args).map_err(|raised| m.push_frame(raised, closure, None))
        }
        Value::Builtin(row) if row.accepts(args.len()) => {
            m.called(args.len())?;
            (row.run)(m, args)
        }
        _ => call_other(m, f, args),
    }
}

/// Calls the less frequent kinds of callable values, out of line.
#[inline(never)]
fn call_other(m: &mut Machine, f: &Value, args: &mut [Value]) -> Result<Value, Raised> {
    m.called(args.len())?;
    match f {
        Value::Builtin(row) => match crate::builtins::arity_fault(row, args.len()) {
            Some(fault) => Err(m.raise_fault(fault)),
            None => (row.run)(m, args),
        },
        Value::Composed(composed) => {
            m.enter(1)?;
            let result = composed.call(m, args);
            m.exit();
            result
        }
        Value::Var(name) => {
            let bound =
                m.globals().by_name(name.as_str()).or_else(|| crate::analyzer::builtin(name.as_str()).map(Value::Builtin));
            match bound {
                Some(Value::Var(_)) | None => Err(m.raise(ErrorKind::UnboundVar, format!("#'{name} is not bound to a function"))),
                Some(bound) => call_value(m, &bound, args),
            }
        }
        _ => look_up(m, f, args),
    }
}

/// Calls a keyword, map, set or vector as a function of a key.
fn look_up(m: &mut Machine, f: &Value, args: &mut [Value]) -> Result<Value, Raised> {
    let most = if matches!(f, Value::Set(_) | Value::Vector(_)) { 1 } else { 2 };
    if !matches!(f, Value::Keyword(_) | Value::Symbol(_) | Value::Map(_) | Value::Set(_) | Value::Vector(_)) {
        return Err(not_callable(m, f));
    }
    if args.is_empty() || args.len() > most {
        let (what, count) = (f.kind().described(), args.len());
        let wanted = if most == 1 { "1 argument" } else { "1 or 2 arguments" };
        let message = format!("{what} called as a function takes {wanted}, got {count}");
        return Err(m.raise_with_hint(
            ErrorKind::ArityError,
            message,
            "it looks a key up: (:key m), (m :key), or with a default (:key m 0)",
        ));
    }
    let mut args = args.iter_mut().map(std::mem::take);
    let (first, default) = (args.next().unwrap_or_default(), args.next().unwrap_or_default());
    if matches!(f, Value::Vector(_)) && crate::args::as_integer(&first).is_none() {
        let found = crate::args::describe(&first);
        let message = format!("a vector called as a function takes an index, found {found}");
        let hint = "of a vector of maps take one first, as in (:key (first maps)), or a field of each with (map :key maps)";
        return Err(m.raise_with_hint(ErrorKind::TypeError, message, hint));
    }
    let (coll, key) = if matches!(f, Value::Keyword(_) | Value::Symbol(_)) { (&first, f) } else { (f, &first) };
    Ok(m.look_up(coll, key).unwrap_or(default))
}

#[cold]
pub(crate) fn not_callable(m: &mut Machine, f: &Value) -> Raised {
    let found = crate::args::describe(f);
    let message = format!("expected a function to call, found {found}");
    match f {
        Value::Str(_) => {
            let hint = "read a key of a map with (get m \"key\"), as in (map #(get % \"key\") maps)";
            m.raise_with_hint(ErrorKind::NotCallable, message, hint)
        }
        Value::Nil => m.raise_with_hint(ErrorKind::NotCallable, message, "something that should give a function gives nil"),
        _ => {
            let hint =
                "the function comes first, as in (+ 1 2); data is written [1 2]; (constantly x) is a function that gives x";
            m.raise_with_hint(ErrorKind::NotCallable, message, hint)
        }
    }
}

const BY_ITSELF: &str = "call it with as many as it takes, or let it take any number: [& xs]";

/// The hint for a function that a builtin called with `count` arguments.
fn called_back(count: usize) -> &'static str {
    match count {
        1 => "an entry of a map is one argument: take it apart, as in (fn [[k v]] …); for several collections map takes several",
        2 => "reduce calls (f total item), map-indexed (f index item), sort (f a b); an entry in them is taken apart as [[k v]]",
        3 => "reduce-kv calls (f total key value)",
        _ => BY_ITSELF,
    }
}

#[cold]
fn wrong_arity(m: &mut Machine, closure: &Closure, count: usize, hint: &str) -> Raised {
    let name = closure.name().unwrap_or("the function");
    let lists: Vec<&str> = closure.arglists().collect();
    let plural = if count == 1 { "argument" } else { "arguments" };
    let message = format!("{name} takes {}, got {count} {plural}", lists.join(" or "));
    m.raise_with_hint(ErrorKind::ArityError, message, hint)
}
