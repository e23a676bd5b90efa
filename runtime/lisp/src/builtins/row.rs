//! What the table of builtins is made of.

use std::fmt;

use crate::Value;
use crate::machine::{Machine, Raised};

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
    /// Its argument lists as documentation shows them, such as `[m k v]`.
    pub arglists: &'static [&'static str],
    /// What it does, in one line.
    pub doc: &'static str,
    /// Programs and the printed values that they give.
    pub examples: &'static [(&'static str, &'static str)],
    /// Its code.
    pub run: Native,
}

impl Builtin {
    /// The name to call it by: alone for `clojure.core` and the core extensions, with the namespace for others.
    pub fn full_name(&self) -> String {
        if super::is_core(self.namespace) { self.name.to_owned() } else { format!("{}/{}", self.namespace, self.name) }
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
