//! The functions of the language as rows of tables at the top of each file. A file has one table for each namespace, and
//! `TABLES` lists all of them.
//!
//! A row contains the name, the argument lists, one line of documentation, examples with their printed results, and the code.
//! Arity checks, the output of `(doc f)` and suggestions for unknown names all derive from the rows. Functions that need the
//! evaluator or the host have rows in [`crate::host_functions`], and forms whose parts are not evaluated in
//! [`crate::special_forms`].
//!
//! Functions of Clojure have its namespace. Functions that Clojure does not have are in `ptc.core`, in a module `extensions`, and
//! their names need no prefix either.

#![expect(clippy::unnecessary_wraps, reason = "every builtin has one type, whether it can fail or not")]
#![expect(clippy::mutable_key_type, reason = "the mutable parts of a function do not affect its hash")]

mod access;
mod arithmetic;
mod build;
mod compare;
mod composed;
mod csv;
mod format;
mod function;
pub(crate) mod java;
mod map;
mod math;
mod output;
mod parse;
mod predicate;
mod reduce;
mod regex;
mod row;
mod set;
mod sort;
mod sorted;
mod source;
mod text;
mod transducer;
mod transform;
mod walk;

pub(crate) use arithmetic::MAX_INTEGER_BITS;
pub use composed::{Combinator, Composed};
pub use java::{Constant, constants};
pub(crate) use map::look_up;
pub(crate) use output::write_str;
pub use row::{Builtin, Native};
pub(crate) use row::{arity_fault, call_shape};
pub(crate) use sort::{Keyed, sort_naturally};

/// All tables.
static TABLES: &[&[Builtin]] = &[
    arithmetic::ROWS,
    math::core::ROWS,
    math::random::ROWS,
    compare::ROWS,
    predicate::ROWS,
    predicate::kinds::ROWS,
    access::ROWS,
    build::ROWS,
    source::ROWS,
    build::extensions::ROWS,
    transform::ROWS,
    transducer::ROWS,
    transform::extensions::ROWS,
    reduce::ROWS,
    reduce::extensions::ROWS,
    sort::ROWS,
    map::ROWS,
    map::extensions::ROWS,
    sorted::ROWS,
    set::core::ROWS,
    function::ROWS,
    output::ROWS,
    format::ROWS,
    parse::ROWS,
    parse::extensions::ROWS,
    text::core::ROWS,
    text::extensions::ROWS,
    regex::ROWS,
    regex::extensions::ROWS,
    text::ROWS,
    set::ROWS,
    walk::ROWS,
    parse::json_rows::ROWS,
    csv::ROWS,
    math::java::ROWS,
    java::string::ROWS,
    java::string::class::ROWS,
    java::time::ROWS,
    java::time::unit::ROWS,
    java::time::core::ROWS,
    java::amount::ROWS,
    java::construct::core::ROWS,
    java::construct::date::ROWS,
    java::construct::date_time::ROWS,
    java::construct::instant::ROWS,
    java::construct::duration::ROWS,
    java::construct::period::ROWS,
    java::construct::formatter::ROWS,
    java::offset::offset_date_time::ROWS,
    java::offset::zoned_date_time::ROWS,
    java::offset::zone::ROWS,
    java::offset::zone_offset::ROWS,
    java::offset::methods::ROWS,
    java::number::integer::ROWS,
    java::number::long::ROWS,
    java::number::doubles::ROWS,
    java::number::floats::ROWS,
    java::number::boolean::ROWS,
    java::number::character::ROWS,
    java::number::system::ROWS,
    java::number::core::ROWS,
];

/// Whether the names of a namespace are used without a prefix.
pub fn is_core(namespace: &str) -> bool {
    matches!(namespace, "clojure.core" | "ptc.core" | "java.lang.String" | "java.time")
}

/// Returns a class of `java.time` without its package, as programs write it. Other namespaces are returned unchanged.
pub(crate) fn short_class(namespace: &str) -> &str {
    let class = namespace.strip_prefix("java.time.").and_then(|rest| rest.rsplit('.').next());
    class.unwrap_or(namespace)
}

/// All builtins, in the order of the tables.
pub fn all() -> impl Iterator<Item = &'static Builtin> {
    TABLES.iter().copied().flatten()
}

/// Finds a builtin by its full name, such as `map` or `clojure.string/join`.
pub fn find(full_name: &str) -> Option<&'static Builtin> {
    let (namespace, name) = match full_name.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => (Some(namespace), name),
        _ => (None, full_name),
    };
    all().find(|row| row.name == name && namespace.map_or_else(|| is_core(row.namespace), |namespace| row.namespace == namespace))
}
