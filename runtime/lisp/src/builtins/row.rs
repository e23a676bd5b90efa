//! The rows of the tables of builtins.

use std::fmt;

use crate::Value;
use crate::error::ErrorKind;
use crate::machine::{Fault, Machine, Raised};
use crate::packed_docs::PackedDocs;

/// The code of a builtin. It may take arguments out of the slice, so that a collection with a single owner is updated in place.
/// The number of arguments has been checked. The code must charge memory before it allocates, and count a step for each item that
/// it visits, since the clock and the cancel flag are only checked there.
pub type Native = fn(&mut Machine, &mut [Value]) -> Result<Value, Raised>;

/// A function of the language, with its documentation.
pub struct Builtin {
    /// The name within the namespace.
    pub name: &'static str,
    /// The namespace, such as `clojure.core`.
    pub namespace: &'static str,
    /// Minimum number of arguments.
    pub min: u8,
    /// Maximum number of arguments. `None` if unlimited.
    pub max: Option<u8>,
    /// The description, argument lists such as `[m k v]`, and examples.
    pub notes: PackedDocs,
    /// The code.
    pub run: Native,
}

/// Makes a row, for the macro [`rows!`].
pub(super) const fn row(
    namespace: &'static str,
    name: &'static str,
    (min, max): (u8, Option<u8>),
    run: Native,
    notes: PackedDocs,
) -> Builtin {
    Builtin { name, namespace, min, max, notes, run }
}

/// Returns the minimum and maximum number of arguments over all lists. Lists contain plain names only: destructuring is not
/// shown.
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

/// Defines the table of a namespace: `"name" ["[a b]", …] function, "Sentence." { "program" => "printed value", … };`. The number
/// of arguments follows from the argument lists.
macro_rules! rows {
    ($namespace:literal: $($name:literal [$($arglist:literal),*] $run:path, $doc:literal $({ $($program:literal => $printed:literal),* $(,)? })?;)*) => {
        pub(in crate::builtins) static ROWS: &[$crate::builtins::Builtin] = &[
            $($crate::builtins::row::row(
                $namespace,
                $name,
                $crate::builtins::row::arity(&[$($arglist),*]),
                $run,
                $crate::packed_docs::packed_docs!($doc, [$($arglist),*], [$($(($program, $printed)),*)?]),
            )),*
        ];
    };
}
pub(super) use rows;

impl Builtin {
    /// The name that calls it. Functions of `clojure.core` and the core extensions have no namespace prefix.
    pub fn full_name(&self) -> String {
        if super::is_core(self.namespace) { self.name.to_owned() } else { format!("{}/{}", self.namespace, self.name) }
    }

    /// Every spelling that calls it: the full name, then its name under each alias of its namespace, then the name alone if it
    /// works without a namespace.
    pub fn spellings(&'static self) -> impl Iterator<Item = String> {
        let alone = crate::analyzer::builtin(self.name).filter(|row| std::ptr::eq(*row, self) && !super::is_core(self.namespace));
        let aliases = crate::analyzer::aliases(self.namespace).map(|alias| format!("{alias}/{}", self.name));
        std::iter::once(self.full_name()).chain(aliases).chain(alone.map(|row| row.name.to_owned()))
    }

    /// Whether it accepts `count` arguments.
    #[inline]
    pub fn accepts(&self, count: usize) -> bool {
        count >= usize::from(self.min) && self.max.is_none_or(|max| count <= usize::from(max))
    }

    /// The accepted numbers of arguments in words: `1`, `2 or 3`, `at least 1`.
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

/// Returns the fault for calling a builtin with `count` arguments, if it does not accept that many.
pub(crate) fn arity_fault(row: &Builtin, count: usize) -> Option<Fault> {
    if row.accepts(count) {
        return None;
    }
    let name = row.full_name();
    let noun = if row.arity().ends_with(" 1") || row.arity() == "1" { "argument" } else { "arguments" };
    let mut fault = Fault::new(ErrorKind::ArityError, format!("{name} takes {} {noun}, got {count}", row.arity()));
    let usages: Vec<String> = row.notes.arglists().map(|args| call_shape(&name, args)).collect();
    fault.hint = match row.name {
        "parse-string" if row.namespace == "json" => Some(
            "leave it out: keywords find string keys, as in (:a m); (walk/keywordize-keys m) makes keywords of them".to_owned(),
        ),
        _ => (!usages.is_empty()).then(|| format!("call it as {}", usages.join(" or "))),
    };
    Some(fault)
}

/// Makes `(name a b)` from the argument list `[a b]`.
pub(crate) fn call_shape(name: &str, arglist: &str) -> String {
    let inner = arglist.trim_start_matches('[').trim_end_matches(']');
    if inner.is_empty() { format!("({name})") } else { format!("({name} {inner})") }
}
