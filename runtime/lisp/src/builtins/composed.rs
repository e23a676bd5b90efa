//! Functions that functions make: `partial`, `comp` and their like.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::Value;
use crate::machine::{Machine, Raised};

/// A function made of others.
pub struct Composed {
    how: How,
    /// The functions, and for `partial` and its like the values kept with them.
    parts: Vec<Value>,
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
}

/// Numbers functions in the order of their making, so that they have a place in the order of values.
static NEXT: AtomicU64 = AtomicU64::new(0);

impl Composed {
    /// A function of `parts`. For all but `Comp` and `Juxt` there must be at least one.
    pub fn new(how: How, parts: Vec<Value>) -> Composed {
        let depth = parts.iter().map(Value::depth).max().unwrap_or(0) + 1;
        Composed { how, parts, serial: NEXT.fetch_add(1, Ordering::Relaxed), depth }
    }

    /// The same as a value.
    pub fn value(how: How, parts: Vec<Value>) -> Value {
        Value::Composed(std::sync::Arc::new(Composed::new(how, parts)))
    }

    /// The name of the function that made it.
    pub fn name(&self) -> &'static str {
        match self.how {
            How::Partial => "partial",
            How::Comp => "comp",
            How::Complement => "complement",
            How::Constantly => "constantly",
            How::Juxt => "juxt",
            How::Fnil => "fnil",
            How::EveryPred => "every-pred",
            How::SomeFn => "some-fn",
            How::Reduced => "reduced",
        }
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
    }

    /// Calls it.
    pub fn call(&self, m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
        let (first, rest) = match self.parts.split_first() {
            Some((first, rest)) => (first, rest),
            None => (&Value::Nil, [].as_slice()),
        };
        match self.how {
            How::Partial => {
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
        }
    }
}

impl Drop for Composed {
    fn drop(&mut self) {
        if self.depth > crate::collection::SHALLOW {
            crate::value::teardown(std::mem::take(&mut self.parts));
        }
    }
}
