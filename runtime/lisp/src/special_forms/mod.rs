//! Special forms and macros as rows of a table.

mod binding;
mod control;
mod define;
mod iteration;
mod namespaces;
mod table;
mod threading;

use std::collections::HashMap;
use std::sync::LazyLock;

use foldhash::fast::RandomState;

use crate::analyzer::{Analysed, Analyzer};
use crate::error::{Error, Span};
use crate::form::Form;
use crate::packed_docs::PackedDocs;

/// A special form: a name in call position whose parts are not evaluated like arguments.
pub struct Special {
    /// The name that calls the form.
    pub name: &'static str,
    /// Minimum number of parts.
    pub min: usize,
    /// Maximum number of parts. `None` if unlimited.
    pub max: Option<usize>,
    /// The description, the parts as shown in documentation, and examples.
    pub notes: PackedDocs,
    /// Whether the name cannot be shadowed in call position by a local. This holds for Clojure's special forms, but not for its
    /// macros.
    pub(crate) is_reserved: bool,
    pub(crate) expand: Expand,
}

/// How a special form is analysed.
#[derive(Clone, Copy)]
pub(crate) enum Expand {
    /// Compiles to IR. The last argument is true if the form is in tail position.
    Form(for<'a, 's> fn(&'a mut Analyzer<'s>, Span, Vec<Form<'s>>, bool) -> Analysed),
    /// Expands to another form.
    Macro(for<'a, 's> fn(&'a mut Analyzer<'s>, Span, Vec<Form<'s>>) -> Result<Form<'s>, Error>),
}

impl Special {
    /// The usage, such as `(if test then else?)`.
    pub fn usage(&self) -> String {
        let all: Vec<String> = self
            .notes
            .arglists()
            .map(|args| format!("({}{}{args})", self.name, if args.is_empty() { "" } else { " " }))
            .collect();
        all.join(" or ")
    }
}

impl std::fmt::Debug for Special {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

static INDEX: LazyLock<HashMap<&'static str, &'static Special, RandomState>> =
    LazyLock::new(|| all().map(|row| (row.name, row)).collect());

/// All special forms.
pub fn all() -> impl Iterator<Item = &'static Special> {
    table::SPECIALS.iter()
}

/// Finds a special form by name.
pub fn find(name: &str) -> Option<&'static Special> {
    INDEX.get(name).copied()
}

/// The names of all special forms.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    all().map(|row| row.name)
}
