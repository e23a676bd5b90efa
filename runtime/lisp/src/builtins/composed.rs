//! Functions that functions make: `partial`, `comp` and their like.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::Value;
use crate::endless::{Flow, Stage};
use crate::machine::{Machine, Owner, Raised};

/// A function made of others.
pub struct Composed {
    how: How,
    /// The functions, and for `partial` and its like the values kept with them.
    parts: Vec<Value>,
    /// Of a transducer and its steps.
    stage: Option<Box<Mutex<Option<Stage>>>>,
    /// Of a function with a memory: what the machine keeps its results under.
    memory: Option<Owner>,
    serial: u64,
    depth: u32,
}

/// How the parts make a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// `(partial f a …)`: the first part is called with the others before the arguments.
    Partial,
    /// `(comp f g …)`: right to left.
    Comp,
    /// `(complement f)`
    Complement,
    /// `(constantly x)`
    Constantly,
    /// `(juxt f g …)`
    Juxt,
    /// `(fnil f x …)`: the parts after the first stand in for nil arguments.
    Fnil,
    /// `(every-pred p …)`
    EveryPred,
    /// `(some-fn p …)`
    SomeFn,
    /// `(reduced x)`: no function, but what ends a reduction.
    Reduced,
    /// `(completing f done)`: f, with done for its last call.
    Completing,
    /// `(comparator pred)`
    Comparator,
    /// `(memoize f)`
    Memoize,
    /// `(map f)` and its like: takes a reducing function and gives another.
    Transducer,
    /// What a transducer made of a reducing function.
    Step,
}

impl How {
    /// Every way, with the name of the function that makes it so.
    pub(crate) const ALL: [(How, &'static str); 14] = [
        (How::Partial, "partial"),
        (How::Comp, "comp"),
        (How::Complement, "complement"),
        (How::Constantly, "constantly"),
        (How::Juxt, "juxt"),
        (How::Fnil, "fnil"),
        (How::EveryPred, "every-pred"),
        (How::SomeFn, "some-fn"),
        (How::Reduced, "reduced"),
        (How::Completing, "completing"),
        (How::Comparator, "comparator"),
        (How::Memoize, "memoize"),
        (How::Transducer, "transducer"),
        (How::Step, "step"),
    ];
}

impl Composed {
    /// A function of `parts`. For all but `Comp` and `Juxt` there must be at least one.
    pub fn new(how: How, parts: Vec<Value>) -> Composed {
        let depth = parts.iter().map(Value::depth).max().unwrap_or(0) + 1;
        let memory = (how == How::Memoize).then(Owner::default);
        Composed { how, parts, stage: None, memory, serial: crate::value::serial(), depth }
    }

    /// The same as a value.
    pub fn value(how: How, parts: Vec<Value>) -> Value {
        Value::Composed(std::sync::Arc::new(Composed::new(how, parts)))
    }

    /// The transducer of a stage, or its step in front of the reducing function `next`.
    pub(crate) fn staged(stage: Stage, next: Option<Value>) -> Value {
        let how = if next.is_some() { How::Step } else { How::Transducer };
        // What the stage holds is a part too, for those who walk over a value.
        let parts = next.into_iter().chain(stage.values().into_iter().cloned()).collect();
        let mut made = Composed::new(how, parts);
        made.depth = made.depth.max(stage.depth() + 1);
        made.stage = Some(Box::new(Mutex::new(Some(stage))));
        Value::Composed(std::sync::Arc::new(made))
    }

    /// The name of the function that made it.
    pub fn name(&self) -> &'static str {
        How::ALL.iter().find(|(how, _)| *how == self.how).map_or("", |(_, name)| name)
    }

    /// How its parts make it.
    pub(crate) fn how(&self) -> How {
        self.how
    }

    /// The functions and values that it is made of.
    pub(crate) fn parts(&self) -> &[Value] {
        &self.parts
    }

    /// The value inside `(reduced x)`.
    pub(crate) fn reduced(&self) -> Option<&Value> {
        if self.how == How::Reduced { self.parts.first() } else { None }
    }

    pub(crate) fn serial(&self) -> u64 {
        self.serial
    }

    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    /// Hands the parts over, for a drop without recursion.
    pub(crate) fn dismantle(&mut self, out: &mut Vec<Value>) {
        out.append(&mut self.parts);
        if let Some(stage) = &mut self.stage
            && let Some(stage) = stage.get_mut().unwrap_or_else(PoisonError::into_inner)
        {
            stage.dismantle(out);
        }
    }

    /// Calls it.
    pub fn call(&self, m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
        let (first, rest) = match self.parts.split_first() {
            Some((first, rest)) => (first, rest),
            None => (&Value::Nil, [].as_slice()),
        };
        match self.how {
            How::Partial => {
                m.tick(crate::convert::steps(rest.len() + args.len()))?;
                m.charge((rest.len() + args.len()) * crate::convert::ITEM)?;
                let mut all = Vec::with_capacity(rest.len() + args.len());
                all.extend_from_slice(rest);
                all.extend(args.iter_mut().map(std::mem::take));
                m.call(first, &mut all)
            }
            How::Comp => {
                let Some((last, outer)) = self.parts.split_last() else {
                    return Ok(args.first_mut().map(std::mem::take).unwrap_or_default());
                };
                let mut value = m.call(last, args)?;
                for f in outer.iter().rev() {
                    value = m.call(f, &mut [value])?;
                }
                Ok(value)
            }
            How::Complement => Ok(Value::bool(!m.call(first, args)?.is_truthy())),
            How::Constantly => Ok(first.clone()),
            How::Reduced => Err(m.raise(crate::ErrorKind::NotCallable, "the value of (reduced x) is not a function")),
            How::Juxt => {
                m.charge(self.parts.len() * crate::convert::ITEM)?;
                let mut out = Vec::with_capacity(self.parts.len());
                for f in &self.parts {
                    out.push(m.call(f, &mut args.to_vec())?);
                }
                Ok(Value::vector(out))
            }
            How::Fnil => {
                for (arg, default) in args.iter_mut().zip(rest) {
                    if arg.is_nil() {
                        *arg = default.clone();
                    }
                }
                m.call(first, args)
            }
            How::EveryPred => {
                for f in &self.parts {
                    for arg in args.iter() {
                        if !m.call(f, &mut [arg.clone()])?.is_truthy() {
                            return Ok(Value::False);
                        }
                    }
                }
                Ok(Value::True)
            }
            How::SomeFn => {
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
            How::Completing => match (args, rest) {
                ([total], [done, ..]) => m.call(done, &mut [std::mem::take(total)]),
                (args, _) => m.call(first, args),
            },
            How::Comparator => match args {
                [a, b] => {
                    let truth = |m: &mut Machine, a: &Value, b: &Value| m.call(first, &mut [a.clone(), b.clone()]);
                    Ok(Value::Int(if truth(m, a, b)?.is_truthy() { -1 } else { i64::from(truth(m, b, a)?.is_truthy()) }))
                }
                more => Err(m.raise(crate::ErrorKind::ArityError, format!("a comparator takes 2 arguments, got {}", more.len()))),
            },
            How::Memoize => {
                let Some(owner) = self.memory.as_ref().filter(|_| args.len() <= MOST_REMEMBERED) else {
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
            How::Transducer => match (args, self.stage(|held| held.clone())) {
                ([next], Some(stage)) => Ok(Composed::staged(stage, Some(std::mem::take(next)))),
                (args, _) => Err(m.raise(
                    crate::ErrorKind::ArityError,
                    format!("a transducer takes 1 argument, a reducing function, got {}", args.len()),
                )),
            },
            How::Step => match args {
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

    /// Looks at the stage, or takes it out while functions are called that may use this one again.
    fn stage(&self, get: impl FnOnce(&mut Option<Stage>) -> Option<Stage>) -> Option<Stage> {
        get(&mut self.stage.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn keep(&self, stage: Stage) {
        if let Some(held) = &self.stage {
            *held.lock().unwrap_or_else(PoisonError::into_inner) = Some(stage);
        }
    }

    /// Takes one item.
    fn step(&self, m: &mut Machine, next: &Value, mut total: Value, item: Value) -> Result<Value, Raised> {
        let Some(mut stage) = self.stage(Option::take) else {
            return Err(m.raise(crate::ErrorKind::RuntimeError, "a step of a transducer was called while it was at work"));
        };
        let mut out = VecDeque::new();
        let flow = stage.feed(m, item, &mut out)?;
        self.keep(stage);
        for item in out {
            total = m.call(next, &mut [total, item])?;
            if is_reduced(&total) {
                return Ok(total);
            }
        }
        Ok(if flow == Flow::Stop { Composed::value(How::Reduced, vec![total]) } else { total })
    }

    /// Hands on what the stage still holds, and ends.
    fn complete(&self, m: &mut Machine, next: &Value, mut total: Value) -> Result<Value, Raised> {
        let mut out = VecDeque::new();
        if let Some(mut stage) = self.stage(Option::take) {
            stage.finish(&mut out);
            self.keep(stage);
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

/// Calls with more arguments than this are made anew each time.
const MOST_REMEMBERED: usize = 64;

/// Whether arguments are equal only to such as look the same: 1 and 1.0 are one key, but `str` tells them apart.
fn distinct(m: &mut Machine, args: &[Value]) -> Result<bool, Raised> {
    let mut work: Vec<&Value> = args.iter().collect();
    while let Some(value) = work.pop() {
        m.tick(1)?;
        match value {
            Value::Double(d) if d.get().fract() == 0.0 => return Ok(false),
            Value::Endless(_) => return Ok(false),
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
    matches!(value, Value::Composed(made) if made.how == How::Reduced)
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
