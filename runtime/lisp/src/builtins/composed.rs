//! Functions made from other functions by `partial`, `comp` and similar combinators.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::Value;
use crate::infinite::{Flow, Transducer};
use crate::machine::{Machine, Owner, Raised};

/// A function made by a combinator.
pub struct Composed {
    combinator: Combinator,
    /// The component functions, and the bound values of `partial` and similar combinators.
    parts: Vec<Value>,
    /// The state of a transducer or of its step.
    transducer: Option<Box<Mutex<Option<Transducer>>>>,
    /// The owner of a memoized function's results in the machine.
    memory: Option<Owner>,
    serial: u64,
    depth: u32,
}

/// The combinator of a composed function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Combinator {
    /// `(partial f a …)`: calls the first part with the other parts, followed by the arguments.
    Partial,
    /// `(comp f g …)`: composes right to left.
    Comp,
    /// `(complement f)`: negates the result.
    Complement,
    /// `(constantly x)`: ignores its arguments.
    Constantly,
    /// `(juxt f g …)`: returns a vector of all results.
    Juxt,
    /// `(fnil f x …)`: replaces nil arguments by the parts after the first.
    Fnil,
    /// `(every-pred p …)`: tests whether all predicates hold.
    EveryPred,
    /// `(some-fn p …)`: returns the first truthy result.
    SomeFn,
    /// `(reduced x)`: not callable, but ends a reduction.
    Reduced,
    /// `(completing f done)`: calls `f`, except for the completion, which calls `done`.
    Completing,
    /// `(comparator pred)`: orders by a predicate.
    Comparator,
    /// `(memoize f)`: caches results.
    Memoize,
    /// A transducer such as `(map f)`: takes a reducing function and returns another one.
    Transducer,
    /// The reducing function that a transducer returned.
    Step,
}

impl Combinator {
    /// Every combinator with the name of the function that creates it.
    pub(crate) const ALL: [(Combinator, &'static str); 14] = [
        (Combinator::Partial, "partial"),
        (Combinator::Comp, "comp"),
        (Combinator::Complement, "complement"),
        (Combinator::Constantly, "constantly"),
        (Combinator::Juxt, "juxt"),
        (Combinator::Fnil, "fnil"),
        (Combinator::EveryPred, "every-pred"),
        (Combinator::SomeFn, "some-fn"),
        (Combinator::Reduced, "reduced"),
        (Combinator::Completing, "completing"),
        (Combinator::Comparator, "comparator"),
        (Combinator::Memoize, "memoize"),
        (Combinator::Transducer, "transducer"),
        (Combinator::Step, "step"),
    ];
}

impl Composed {
    /// Makes a function of `parts`. All combinators but `Comp` and `Juxt` require at least one part.
    pub fn new(combinator: Combinator, parts: Vec<Value>) -> Composed {
        let depth = parts.iter().map(Value::depth).max().unwrap_or(0) + 1;
        let memory = (combinator == Combinator::Memoize).then(Owner::default);
        Composed { combinator, parts, transducer: None, memory, serial: crate::value::serial(), depth }
    }

    /// Like [`Composed::new`], but returns a [`Value`].
    pub fn value(combinator: Combinator, parts: Vec<Value>) -> Value {
        Value::Composed(std::sync::Arc::new(Composed::new(combinator, parts)))
    }

    /// Makes the transducer of a stage, or its step in front of the reducing function `next`.
    pub(crate) fn staged(transducer: Transducer, next: Option<Value>) -> Value {
        let combinator = if next.is_some() { Combinator::Step } else { Combinator::Transducer };
        // The values in the stage count as parts too, for walks over values.
        let parts = next.into_iter().chain(transducer.values().into_iter().cloned()).collect();
        let mut made = Composed::new(combinator, parts);
        made.depth = made.depth.max(transducer.depth() + 1);
        made.transducer = Some(Box::new(Mutex::new(Some(transducer))));
        Value::Composed(std::sync::Arc::new(made))
    }

    /// The name of the function that created it.
    pub fn name(&self) -> &'static str {
        Combinator::ALL.iter().find(|(combinator, _)| *combinator == self.combinator).map_or("", |(_, name)| name)
    }

    /// The combinator.
    pub(crate) fn combinator(&self) -> Combinator {
        self.combinator
    }

    /// The functions and values that it is made of.
    pub(crate) fn parts(&self) -> &[Value] {
        &self.parts
    }

    /// The value inside of `(reduced x)`.
    pub(crate) fn reduced(&self) -> Option<&Value> {
        if self.combinator == Combinator::Reduced { self.parts.first() } else { None }
    }

    pub(crate) fn serial(&self) -> u64 {
        self.serial
    }

    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    /// Moves the parts to `out`, for a drop without recursion.
    pub(crate) fn dismantle(&mut self, out: &mut Vec<Value>) {
        out.append(&mut self.parts);
        if let Some(transducer) = &mut self.transducer
            && let Some(transducer) = transducer.get_mut().unwrap_or_else(PoisonError::into_inner)
        {
            transducer.dismantle(out);
        }
    }

    /// Calls the function.
    ///
    /// # Errors
    ///
    /// Returns an error if a component function raises a fault, or if the combinator cannot be called.
    pub fn call(&self, m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
        let (first, rest) = match self.parts.split_first() {
            Some((first, rest)) => (first, rest),
            None => (&Value::Nil, [].as_slice()),
        };
        match self.combinator {
            Combinator::Partial => {
                m.tick(crate::args::steps(rest.len() + args.len()))?;
                m.charge((rest.len() + args.len()) * crate::args::ITEM)?;
                let mut all = Vec::with_capacity(rest.len() + args.len());
                all.extend_from_slice(rest);
                all.extend(args.iter_mut().map(std::mem::take));
                m.call(first, &mut all)
            }
            Combinator::Comp => {
                let Some((last, outer)) = self.parts.split_last() else {
                    return Ok(args.first_mut().map(std::mem::take).unwrap_or_default());
                };
                let mut value = m.call(last, args)?;
                for f in outer.iter().rev() {
                    value = m.call(f, &mut [value])?;
                }
                Ok(value)
            }
            Combinator::Complement => Ok(Value::bool(!m.call(first, args)?.is_truthy())),
            Combinator::Constantly => Ok(first.clone()),
            Combinator::Reduced => Err(m.raise(crate::ErrorKind::NotCallable, "the value of (reduced x) is not a function")),
            Combinator::Juxt => {
                m.charge(self.parts.len() * crate::args::ITEM)?;
                let mut out = Vec::with_capacity(self.parts.len());
                for f in &self.parts {
                    out.push(m.call(f, &mut args.to_vec())?);
                }
                Ok(Value::vector(out))
            }
            Combinator::Fnil => {
                for (arg, default) in args.iter_mut().zip(rest) {
                    if arg.is_nil() {
                        *arg = default.clone();
                    }
                }
                m.call(first, args)
            }
            Combinator::EveryPred => {
                for f in &self.parts {
                    for arg in args.iter() {
                        if !m.call(f, &mut [arg.clone()])?.is_truthy() {
                            return Ok(Value::False);
                        }
                    }
                }
                Ok(Value::True)
            }
            Combinator::SomeFn => {
                let mut last = Value::Nil;
                for arg in args.iter() {
                    for f in &self.parts {
                        last = m.call(f, &mut [arg.clone()])?;
                        if last.is_truthy() {
                            return Ok(last);
                        }
                    }
                }
                Ok(last)
            }
            Combinator::Completing => match (args, rest) {
                ([total], [done, ..]) => m.call(done, &mut [std::mem::take(total)]),
                (args, _) => m.call(first, args),
            },
            Combinator::Comparator => match args {
                [a, b] => {
                    let truth = |m: &mut Machine, a: &Value, b: &Value| m.call(first, &mut [a.clone(), b.clone()]);
                    Ok(Value::Int(if truth(m, a, b)?.is_truthy() { -1 } else { i64::from(truth(m, b, a)?.is_truthy()) }))
                }
                more => Err(m.raise(crate::ErrorKind::ArityError, format!("a comparator takes 2 arguments, got {}", more.len()))),
            },
            Combinator::Memoize => {
                let Some(owner) = self.memory.as_ref().filter(|_| args.len() <= MAX_MEMOIZED) else {
                    return m.call(first, args);
                };
                if !distinct(m, args)? {
                    return m.call(first, args);
                }
                let key = Value::vector(args.to_vec());
                if let Some(known) = m.remembered(owner, &key) {
                    return Ok(known);
                }
                let result = m.call(first, args)?;
                m.remember(owner, key, result.clone());
                Ok(result)
            }
            Combinator::Transducer => match (args, self.transducer(|held| held.clone())) {
                ([next], Some(transducer)) => Ok(Composed::staged(transducer, Some(std::mem::take(next)))),
                (args, _) => Err(m.raise(
                    crate::ErrorKind::ArityError,
                    format!("a transducer takes 1 argument, a reducing function, got {}", args.len()),
                )),
            },
            Combinator::Step => match args {
                [] => m.call(first, &mut []),
                [total] => self.complete(m, first, std::mem::take(total)),
                [total, item] => self.step(m, first, std::mem::take(total), std::mem::take(item)),
                more => Err(m.raise(
                    crate::ErrorKind::ArityError,
                    format!("a step of a transducer takes 0 to 2 arguments, got {}", more.len()),
                )),
            },
        }
    }

    /// Accesses the stage. It is taken out while functions are called that may re-enter this one.
    fn transducer(&self, get: impl FnOnce(&mut Option<Transducer>) -> Option<Transducer>) -> Option<Transducer> {
        get(&mut self.transducer.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn keep(&self, transducer: Transducer) {
        if let Some(held) = &self.transducer {
            *held.lock().unwrap_or_else(PoisonError::into_inner) = Some(transducer);
        }
    }

    /// Processes one item.
    fn step(&self, m: &mut Machine, next: &Value, mut total: Value, item: Value) -> Result<Value, Raised> {
        let Some(mut transducer) = self.transducer(Option::take) else {
            return Err(m.raise(crate::ErrorKind::RuntimeError, "a step of a transducer was called while it was at work"));
        };
        let mut out = VecDeque::new();
        let flow = transducer.feed(m, item, &mut out)?;
        self.keep(transducer);
        for item in out {
            total = m.call(next, &mut [total, item])?;
            if is_reduced(&total) {
                return Ok(total);
            }
        }
        Ok(if flow == Flow::Stop { Composed::value(Combinator::Reduced, vec![total]) } else { total })
    }

    /// Flushes the items that the stage still buffers, then completes the reduction.
    fn complete(&self, m: &mut Machine, next: &Value, mut total: Value) -> Result<Value, Raised> {
        let mut out = VecDeque::new();
        if let Some(mut transducer) = self.transducer(Option::take) {
            transducer.finish(&mut out);
            self.keep(transducer);
        }
        for item in out {
            total = m.call(next, &mut [total, item])?;
            if let Value::Composed(made) = &total
                && let Some(value) = made.reduced()
            {
                total = value.clone();
                break;
            }
        }
        m.call(next, &mut [total])
    }
}

/// Maximum number of arguments of a call that is memoized.
const MAX_MEMOIZED: usize = 64;

/// Whether the arguments can serve as a key. 1 and 1.0 are equal keys although functions such as `str` distinguish them, so that
/// whole doubles are excluded.
fn distinct(m: &mut Machine, args: &[Value]) -> Result<bool, Raised> {
    let mut work: Vec<&Value> = args.iter().collect();
    while let Some(value) = work.pop() {
        m.tick(1)?;
        match value {
            Value::Double(d) if d.get().fract() == 0.0 => return Ok(false),
            Value::InfiniteSeq(_) => return Ok(false),
            Value::Vector(items) => work.extend(items.iter()),
            Value::Set(members) => work.extend(members.iter()),
            Value::Map(map) => work.extend(map.iter().flat_map(|(k, v)| [k, v])),
            _ => {}
        }
    }
    Ok(true)
}

/// Whether a value is `(reduced x)`.
pub(super) fn is_reduced(value: &Value) -> bool {
    matches!(value, Value::Composed(made) if made.combinator == Combinator::Reduced)
}

impl Drop for Composed {
    fn drop(&mut self) {
        if self.depth > crate::collection::SHALLOW {
            let mut parts = Vec::new();
            self.dismantle(&mut parts);
            crate::value::teardown(parts);
        }
    }
}
