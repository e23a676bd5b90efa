//! What the table of builtins is made of.

use std::fmt;

use crate::Value;
use crate::machine::{Machine, Raised};
use crate::notes::Notes;

/// The code of a builtin. Arguments may be taken out of the slice, so that a collection that nobody else holds is updated in
/// place. The number of arguments was checked before.
pub type Native = fn(&mut Machine, &mut [Value]) -> Result<Value, Raised>;

/// One function of the language: everything that is known about it.
pub struct Builtin {
    /// Its name within the namespace.
    pub name: &'static str,
    /// Its namespace, such as `clojure.core`.
    pub namespace: &'static str,
    /// Fewest arguments.
    pub min: u8,
    /// Most arguments; `None` for any number.
    pub max: Option<u8>,
    /// What it does, its argument lists such as `[m k v]`, and examples.
    pub notes: Notes,
    /// Its code.
    pub run: Native,
}

/// A row of [`rows!`].
pub(super) const fn row(
    namespace: &'static str,
    name: &'static str,
    (min, max): (u8, Option<u8>),
    run: Native,
    notes: Notes,
) -> Builtin {
    Builtin { name, namespace, min, max, notes, run }
}

/// Fewest and most arguments of any of the lists. Lists hold plain names: what a list destructures is not shown in it.
pub(super) const fn arity(arglists: &[&str]) -> (u8, Option<u8>) {
    let (mut min, mut max, mut open) = (u8::MAX, 0, false);
    let mut lists = arglists;
    while let [list, rest @ ..] = lists {
        let (mut fixed, mut rest_of) = (0, false);
        let mut bytes = list.as_bytes();
        let mut before = b' ';
        while let [byte, more @ ..] = bytes {
            if *byte == b'&' && (before == b' ' || before == b'[') {
                rest_of = true;
            }
            let starts = *byte != b' ' && *byte != b']' && (before == b' ' || before == b'[');
            if starts && *byte != b'[' && !rest_of {
                fixed += 1;
            }
            before = *byte;
            bytes = more;
        }
        open |= rest_of;
        if fixed < min {
            min = fixed;
        }
        if fixed > max {
            max = fixed;
        }
        lists = rest;
    }
    (min, if open { None } else { Some(max) })
}

/// Writes a table: `name [arglists] function "doc" { program => printed value }`.
macro_rules! rows {
    ($namespace:literal: $($name:literal [$($arglist:literal),*] $run:path, $doc:literal $({ $($program:literal => $printed:literal),* $(,)? })?;)*) => {
        pub(in crate::builtins) static ROWS: &[$crate::builtins::Builtin] = &[
            $($crate::builtins::row::row(
                $namespace,
                $name,
                $crate::builtins::row::arity(&[$($arglist),*]),
                $run,
                $crate::notes::notes!($doc, [$($arglist),*], [$($(($program, $printed)),*)?]),
            )),*
        ];
    };
}
pub(super) use rows;

impl Builtin {
    /// The name to call it by: alone for `clojure.core` and the core extensions, with the namespace for others.
    pub fn full_name(&self) -> String {
        if super::is_core(self.namespace) { self.name.to_owned() } else { format!("{}/{}", self.namespace, self.name) }
    }

    /// Every name to call it by, the full one first: shorter names of its namespace, and none at all where it needs none.
    pub fn spellings(&'static self) -> impl Iterator<Item = String> {
        let alone = crate::analyzer::builtin(self.name).filter(|row| std::ptr::eq(*row, self) && !super::is_core(self.namespace));
        let aliases = crate::analyzer::aliases(self.namespace).map(|alias| format!("{alias}/{}", self.name));
        std::iter::once(self.full_name()).chain(aliases).chain(alone.map(|row| row.name.to_owned()))
    }

    /// Whether it takes `count` arguments.
    #[inline]
    pub fn accepts(&self, count: usize) -> bool {
        count >= usize::from(self.min) && self.max.is_none_or(|max| count <= usize::from(max))
    }

    /// How many arguments it takes, in words: `1`, `2 or 3`, `at least 1`.
    pub fn arity(&self) -> String {
        match (self.min, self.max) {
            (min, Some(max)) if min == max => min.to_string(),
            (min, Some(max)) if min + 1 == max => format!("{min} or {max}"),
            (min, Some(max)) => format!("{min} to {max}"),
            (min, None) => format!("at least {min}"),
        }
    }
}

impl fmt::Debug for Builtin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.full_name())
    }
}
