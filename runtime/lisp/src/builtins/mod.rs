//! The functions of the language, as rows of data: one table at the top of each file.

mod composed;
mod row;

pub use composed::{Composed, How};
pub use row::{Builtin, Native};

/// Every table.
static TABLES: &[&[Builtin]] = &[];

/// Whether the names of a namespace are used without it.
pub fn is_core(namespace: &str) -> bool {
    matches!(namespace, "clojure.core" | "ptc.core")
}

/// Every builtin, in the order of the tables.
pub fn all() -> impl Iterator<Item = &'static Builtin> {
    TABLES.iter().copied().flatten()
}

/// The builtin that `name` calls.
pub fn find(name: &str) -> Option<&'static Builtin> {
    all().find(|row| row.full_name() == name)
}
