//! Special forms and macros as rows of a table, and the functions that need the evaluator or the host.

mod binding;
mod control;
mod define;
mod discovery;
mod functions;
mod iteration;
mod namespaces;
mod pages;
mod table;
mod task;
mod threading;
mod tool;

use std::collections::HashMap;
use std::sync::LazyLock;

use foldhash::fast::RandomState;

use crate::analyzer::{Analysed, Analyzer};
use crate::builtins::Builtin;
use crate::error::{Error, ErrorKind, Span};
use crate::form::{Form, FormKind};
use crate::machine::Fault;
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

pub(crate) use tool::{HOST_TOOL, as_value as tool_as_value, call_of as tool_call};

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

/// Functions that need the evaluator or the host, as rows like those of [`crate::builtins`].
pub fn functions() -> impl Iterator<Item = &'static Builtin> {
    functions::FUNCTIONS.iter()
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

/// Quotes a symbol argument of a discovery function, so that `(doc map)` refers to the name `map`.
pub(crate) fn quoted_names<'s>(row: &Builtin, mut args: Vec<Form<'s>>, analyzer: &mut Analyzer<'s>) -> Vec<Form<'s>> {
    if !matches!(row.name, "doc" | "dir" | "meta" | "ns-publics" | "apropos") || row.namespace != functions::DISCOVERY {
        return args;
    }
    if let Some(first) = args.first_mut()
        && let Some(name) = first.symbol()
        && !analyzer.is_local(name)
    {
        *first = Form::new(first.span, FormKind::Quote(Box::new(first.clone())));
    }
    args
}
