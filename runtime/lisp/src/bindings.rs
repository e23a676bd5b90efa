//! Definitions that outlive a run, such as those of a session.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use crate::Value;
use crate::eval::Globals;
use crate::ir::Source;
use crate::value::{each_distinct, footprint};

/// Names with their values, as defined by `def` and `defn`. A clone is independent of its original but shares the values.
///
/// A program that uses them is compiled with [`Program::compile_with`](crate::Program::compile_with) and run with
/// [`Run::bindings`](crate::Run::bindings). [`Outcome::bindings`](crate::Outcome::bindings) are those after the run, or those
/// from before the run if it failed.
///
/// ```
/// use ptc_lisp::{Bindings, Program, Run, Value};
///
/// let mut bindings = Bindings::default();
/// for source in ["(defn twice [x] (* 2 x))", "(def y (twice 21))", "(/ y nil)"] {
///     let program = Program::compile_with(source, &bindings)?;
///     bindings = Run::new(&program).bindings(bindings).execute_on_thread().bindings;
/// }
/// assert_eq!(bindings.get("y"), Some(&Value::int(42)));
/// # Ok::<(), ptc_lisp::Error>(())
/// ```
///
/// Functions among the values refer to other definitions by index into these bindings. A function must therefore only be passed
/// to runs with the bindings that it came from, or with later versions of them.
#[derive(Clone, Default)]
pub struct Bindings {
    /// Indices never change: code that was compiled for these bindings is valid for all bindings derived from them.
    names: Arc<[Arc<str>]>,
    /// Values by index. There may be fewer values than names.
    values: Vec<Option<Value>>,
}

impl Bindings {
    /// Returns the value of `name`.
    pub fn get(&self, name: &str) -> Option<&Value> {
        let place = self.names.iter().position(|held| **held == *name)?;
        self.values.get(place)?.as_ref()
    }

    /// Iterates over every name that has a value, in alphabetical order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        let mut all: Vec<(&str, &Value)> = self.places().filter_map(|(name, value)| Some((name, value?))).collect();
        all.sort_by(|a, b| a.0.cmp(b.0));
        all.into_iter()
    }

    /// Number of names that have a value.
    pub fn len(&self) -> usize {
        self.values.iter().flatten().count()
    }

    /// Whether no name has a value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes the value of `name` and returns it. Functions that refer to the name fail from then on.
    pub fn forget(&mut self, name: &str) -> Option<Value> {
        let place = self.names.iter().position(|held| **held == *name)?;
        self.values.get_mut(place)?.take()
    }

    /// Removes every value, and then unused names as [`Bindings::compact`] does.
    pub fn clear<'a>(&mut self, kept: impl IntoIterator<Item = &'a Value>) {
        self.values.clear();
        self.compact(kept);
    }

    /// Frees names without a value. Functions among the values and in `kept` refer to definitions by index. Indices that one of
    /// them may use are kept, but lose their name if no such function mentions it.
    ///
    /// Programs that were compiled with these bindings before have to be compiled again.
    pub fn compact<'a>(&mut self, kept: impl IntoIterator<Item = &'a Value>) {
        let mut sources: Vec<Arc<Source>> = Vec::new();
        let values = std::mem::take(&mut self.values);
        let roots: Vec<&Value> = kept.into_iter().map(|value: &Value| value).collect();
        each_distinct(values.iter().flatten().chain(roots), |value| {
            if let Value::Closure(function) = value {
                let source = &function.origin().0.source;
                if !sources.iter().any(|seen| Arc::ptr_eq(seen, source)) {
                    sources.push(Arc::clone(source));
                }
            }
            true
        });
        let known = sources
            .iter()
            .map(|source| {
                source.imported_globals + source.declared_globals.get().copied().unwrap_or(u32::MAX - source.imported_globals)
            })
            .max();
        let mentioned: HashSet<&str> = sources.iter().flat_map(|source| words(&source.text)).collect();
        let mut values = values.into_iter();
        let (mut names, nameless) = (Vec::new(), Arc::<str>::from(""));
        for (place, name) in (0..).zip(&*self.names) {
            let value = values.next().flatten();
            if value.is_none() && known.is_none_or(|known| place >= known) {
                continue;
            }
            let named = value.is_some() || mentioned.contains(&**name);
            names.push(Arc::clone(if named { name } else { &nameless }));
            self.values.push(value);
        }
        self.names = names.into();
    }

    /// Names whose value is new or differs from that in `before`, in alphabetical order.
    pub fn changes<'a>(&'a self, before: &'a Bindings) -> impl Iterator<Item = (&'a str, &'a Value)> {
        self.iter().filter(|(name, value)| !before.get(name).is_some_and(|held| held.is_same(value)))
    }

    /// Replaces values by those of `before`, except for the names in `changed`. A value that went through an image is equal to the
    /// one before, but not the same.
    #[must_use]
    pub fn with_unchanged(mut self, before: &Bindings, changed: &[String]) -> Bindings {
        for (name, value) in self.names.iter().zip(&mut self.values) {
            if let Some(held) = before.get(name)
                && !changed.iter().any(|changed| **changed == **name)
            {
                *value = Some(held.clone());
            }
        }
        self
    }

    /// Estimates the bytes of memory that names and values occupy. Shared parts count once.
    pub fn bytes(&self) -> usize {
        let names: usize = self.names.iter().map(|name| name.len() + if name.is_empty() { 16 } else { 32 }).sum();
        names + footprint(self.values.iter().flatten()) + self.values.len() * size_of::<Option<Value>>()
    }

    /// Iterates over all names by index, with or without a value.
    pub(crate) fn places(&self) -> impl Iterator<Item = (&str, Option<&Value>)> {
        let values = self.values.iter().map(Option::as_ref).chain(std::iter::repeat(None));
        self.names.iter().map(|name| &**name).zip(values)
    }

    /// Whether `names` start with the names of these bindings.
    pub(crate) fn is_prefix_of(&self, names: &[Arc<str>]) -> bool {
        let held = names.get(..self.names.len());
        held.is_some_and(|held| held.iter().zip(&*self.names).all(|(a, b)| Arc::ptr_eq(a, b) || a == b))
    }

    /// Makes bindings of names by index. The values of later names may be missing.
    pub(crate) fn of_parts(names: Vec<Arc<str>>, values: Vec<Option<Value>>) -> Bindings {
        Bindings { names: names.into(), values }
    }

    /// Makes the source of a program that is compiled with these bindings.
    pub(crate) fn before(&self, text: Arc<str>) -> Source {
        let unbound = (0..).zip(self.places()).filter(|(_, (_, value))| value.is_none()).map(|(place, _)| place);
        Source { text, imported_globals: self.names.len() as u32, unbound: unbound.collect(), declared_globals: OnceLock::new() }
    }

    /// Returns the names of these bindings followed by a program's own names.
    pub(crate) fn extended(&self, own: &[&str]) -> Arc<[Arc<str>]> {
        if own.is_empty() {
            return Arc::clone(&self.names);
        }
        self.names.iter().cloned().chain(own.iter().map(|name| Arc::from(*name))).collect()
    }

    pub(crate) fn to_globals(&self, names: Arc<[Arc<str>]>) -> Globals {
        Globals::restore(names, &self.values)
    }

    pub(crate) fn of_globals(globals: &Globals) -> Bindings {
        Bindings { names: globals.names(), values: globals.snapshot() }
    }
}

/// Splits the text of a program into words that may refer to a definition, in all possible spellings.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | '[' | ']' | '{' | '}' | '"' | ',' | ';'));
    words.flat_map(|word| {
        let bare = word.trim_start_matches(['#', '\'', '@', '^']);
        [word, bare, bare.rsplit_once('/').map_or(bare, |(_, name)| name)]
    })
}

impl std::fmt::Debug for Bindings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
