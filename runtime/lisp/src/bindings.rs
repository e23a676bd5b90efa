//! Definitions that outlive a run: what a session keeps from one program to the next.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use crate::Value;
use crate::eval::Globals;
use crate::ir::Source;
use crate::sorting;
use crate::value::{each_distinct, footprint};

/// Names with their values, as `def` and `defn` left them. A clone is independent of its original; values are shared.
///
/// A program that is to see them is compiled with [`Program::compile_with`](crate::Program::compile_with) and run with
/// [`Run::bindings`](crate::Run::bindings); [`Outcome::bindings`](crate::Outcome::bindings) are those after the run, and the
/// ones from before where it failed.
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
/// Functions among the values know other definitions by their place in these bindings, so that a function must not be handed
/// to a run with other bindings than those it came with, or later ones.
#[derive(Clone, Default)]
pub struct Bindings {
    /// Places never change: code that was compiled for these bindings is valid for all that grow out of them.
    names: Arc<[Arc<str>]>,
    /// By place; there may be fewer than names.
    values: Vec<Option<Value>>,
}

impl Bindings {
    /// The value of `name`.
    pub fn get(&self, name: &str) -> Option<&Value> {
        let place = self.names.iter().position(|held| **held == *name)?;
        self.values.get(place)?.as_ref()
    }

    /// Every name that has a value, in alphabetical order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        let mut all: Vec<(&str, &Value)> = self.places().filter_map(|(name, value)| Some((name, value?))).collect();
        sorting::by(&mut all, |a, b| a.0.cmp(b.0));
        all.into_iter()
    }

    /// How many names have a value.
    pub fn len(&self) -> usize {
        self.values.iter().flatten().count()
    }

    /// Whether no name has a value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the value of `name` away; functions that refer to it fail from then on. `None` if it had none.
    pub fn forget(&mut self, name: &str) -> Option<Value> {
        let place = self.names.iter().position(|held| **held == *name)?;
        self.values.get_mut(place)?.take()
    }

    /// Takes every value away, and the places of the names as [`Bindings::compact`] does.
    pub fn clear<'a>(&mut self, kept: impl IntoIterator<Item = &'a Value>) {
        self.values.clear();
        self.compact(kept);
    }

    /// Lets go of what names without a value take. Functions among the values and in `kept` know definitions by their places:
    /// places that one of them may know stay, without the name where no such function mentions it.
    ///
    /// Programs that were compiled before with these bindings have to be compiled again.
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
        let known =
            sources.iter().map(|source| source.known + source.own.get().copied().unwrap_or(u32::MAX - source.known)).max();
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

    /// Names whose value is new or another one than in `before`, in alphabetical order.
    pub fn changes<'a>(&'a self, before: &'a Bindings) -> impl Iterator<Item = (&'a str, &'a Value)> {
        self.iter().filter(|(name, value)| !before.get(name).is_some_and(|held| held.is_same(value)))
    }

    /// Bytes of memory that names and values occupy, about; what several values share counts once.
    pub fn bytes(&self) -> usize {
        let names: usize = self.names.iter().map(|name| name.len() + if name.is_empty() { 16 } else { 32 }).sum();
        names + footprint(self.values.iter().flatten()) + self.values.len() * size_of::<Option<Value>>()
    }

    /// Every place, with or without a value.
    pub(crate) fn places(&self) -> impl Iterator<Item = (&str, Option<&Value>)> {
        let values = self.values.iter().map(Option::as_ref).chain(std::iter::repeat(None));
        self.names.iter().map(|name| &**name).zip(values)
    }

    /// Whether `names` begin with those of these bindings.
    pub(crate) fn is_prefix_of(&self, names: &[Arc<str>]) -> bool {
        let held = names.get(..self.names.len());
        held.is_some_and(|held| held.iter().zip(&*self.names).all(|(a, b)| Arc::ptr_eq(a, b) || a == b))
    }

    /// Names by place, with or without a value. Values of later places may be missing.
    pub(crate) fn of_parts(names: Vec<Arc<str>>, values: Vec<Option<Value>>) -> Bindings {
        Bindings { names: names.into(), values }
    }

    /// The source of a program that is compiled with these bindings.
    pub(crate) fn before(&self, text: Arc<str>) -> Source {
        let unbound = (0..).zip(self.places()).filter(|(_, (_, value))| value.is_none()).map(|(place, _)| place);
        Source { text, known: self.names.len() as u32, unbound: unbound.collect(), own: OnceLock::new() }
    }

    /// The names of a program that was compiled with these bindings: theirs, then its own.
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

/// What may be a name in the text of a program, in all spellings that refer to a definition.
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
