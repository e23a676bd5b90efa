//! Formats signatures as text.

use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};

use super::{Field, PRIMITIVES, Signature, Type, hyphenated};

/// Formats text that [`Signature::parse`] accepts. Without parameters it is `() -> type`.
impl Display for Signature {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_signature(f, self, Names::Written)
    }
}

/// Formats text that [`Signature::parse`] accepts. A closed map is formatted like an open one.
impl Display for Type {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_type(f, self, Names::Written)
    }
}

impl Signature {
    /// Formats the signature with hyphens in its names, as programs write them.
    ///
    /// ```
    /// let signature = ptc_lisp::signature::Signature::parse("(user_id :int) -> {_raw_data :map}")?;
    /// assert_eq!(signature.for_programs().to_string(), "(user-id :int) -> {_raw-data :map}");
    /// # Ok::<(), ptc_lisp::Error>(())
    /// ```
    pub fn for_programs(&self) -> impl Display + '_ {
        ForPrograms(self)
    }
}

struct ForPrograms<'a>(&'a Signature);

impl Display for ForPrograms<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_signature(f, self.0, Names::Hyphenated)
    }
}

#[derive(Clone, Copy)]
enum Names {
    Written,
    Hyphenated,
}

fn write_signature(f: &mut Formatter<'_>, signature: &Signature, names: Names) -> fmt::Result {
    write_fields(f, ('(', ')'), &signature.params, names)?;
    f.write_str(" -> ")?;
    write_type(f, &signature.output, names)
}

fn write_fields(f: &mut Formatter<'_>, (open, close): (char, char), fields: &[Field], names: Names) -> fmt::Result {
    write!(f, "{open}")?;
    for (index, field) in fields.iter().enumerate() {
        let name = match names {
            Names::Written => Cow::Borrowed(field.name.as_str()),
            Names::Hyphenated => hyphenated(&field.name),
        };
        write!(f, "{}{name} ", if index > 0 { ", " } else { "" })?;
        write_type(f, &field.of, names)?;
    }
    write!(f, "{close}")
}

fn write_type(f: &mut Formatter<'_>, of: &Type, names: Names) -> fmt::Result {
    match of {
        Type::List(item) => {
            f.write_str("[")?;
            write_type(f, item, names)?;
            f.write_str("]")
        }
        Type::Fields { fields, .. } => write_fields(f, ('{', '}'), fields, names),
        Type::Optional(inner) => {
            write_type(f, inner.required(), names)?;
            f.write_str("?")
        }
        primitive => {
            let name = PRIMITIVES.iter().find(|(_, found)| found == primitive).map_or("any", |(name, _)| name);
            write!(f, ":{name}")
        }
    }
}
