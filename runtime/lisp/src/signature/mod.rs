//! Signatures: the types of the arguments and the result of a tool, or of the result of a program.
//!
//! ```
//! use ptc_lisp::signature::{Mode, Signature};
//! use ptc_lisp::{Value, json};
//!
//! let search: Signature = "(query :string, limit :int?) -> [{id :int, title :string}]".parse()?;
//! let args = json::decode(br#"{"query": "budget", "limit": "10"}"#)?;
//! let checked = search.check_arguments(&args, Mode::Enabled)?;
//! assert_eq!(checked.value.get("limit"), Some(&Value::int(10)));
//! assert_eq!(checked.warnings.to_string(), "- limit: coerced string \"10\" to int");
//!
//! let wrong = json::decode(br#"[{"id": 1, "title": "a"}, {"id": "abc"}]"#)?;
//! let mismatches = search.check_result(&wrong, Mode::Enabled).unwrap_err();
//! assert_eq!(mismatches.to_string(), "- [1].id: expected int, got string \"abc\"\n- [1].title: expected string, got nil");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The grammar:
//!
//! ```text
//! signature = "(" [ field { "," field } ] ")" "->" type     a tool's: parameters, then the result
//!           | type                                          the result alone: no parameters
//! field     = name type                                     name: letters, digits, "_" and "-", no digit or "-" in front
//! type      = ( primitive | "[" type "]" | "{" [ field { "," field } ] "}" ) [ "?" ]
//! primitive = ":string" | ":int" | ":float" | ":bool" | ":keyword" | ":datetime" | ":any" | ":map"
//! ```
//!
//! `?` makes a field optional: it may be missing or nil. `:boolean` is a synonym of `:bool`. White space is allowed between all
//! tokens. Types nest at most [`MAX_DEPTH`] deep.
//!
//! Programs write hyphens where signatures have underscores. At the boundary of a tool every key of the arguments, at any depth,
//! becomes a string with underscores, see [`arguments`].

mod boundary;
mod check;
mod findings;
mod fit;
mod parse;
mod property_names;
mod render;
mod schema;

pub use boundary::{arguments, hyphenated, underscored};
pub use check::{Checked, Mode};
pub use findings::{Finding, Findings};
pub use property_names::to_property_names;
pub use schema::SchemaError;

use crate::error::Error;

/// Maximum nesting of types, and of a tool's arguments.
pub const MAX_DEPTH: u32 = 256;

/// The parameters and the result type of a tool or program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// The named parameters, in order. Empty for an output-only signature.
    pub params: Vec<Field>,
    /// The type of the result.
    pub output: Type,
}

/// A name with its type: a parameter, or a field of a map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The name as written, with underscores or hyphens.
    pub name: String,
    /// The type of its values.
    pub of: Type,
}

/// A type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Type {
    /// `:string`
    String,
    /// `:int`: an integer of any size.
    Int,
    /// `:float`: a double, or an integer.
    Float,
    /// `:bool`
    Bool,
    /// `:keyword`: a keyword. In results, also a string that is a valid keyword name.
    Keyword,
    /// `:datetime`: an instant. In JSON it is ISO 8601 text with an offset.
    Datetime,
    /// `:any`: any value, including nil.
    Any,
    /// `:map`: a map with any keys.
    Map,
    /// `[type]`
    List(Box<Type>),
    /// `{name type, …}`
    Fields {
        /// The fields in order. Their names differ even after conversion of hyphens to underscores.
        fields: Vec<Field>,
        /// Whether other keys are mismatches. Only a JSON Schema can express this. The grammar has no form for it.
        closed: bool,
    },
    /// `type?`: may be nil, or missing in a map.
    Optional(Box<Type>),
}

/// The primitive types by name, in the order of the documentation.
pub const PRIMITIVES: &[(&str, Type)] = &[
    ("string", Type::String),
    ("int", Type::Int),
    ("float", Type::Float),
    ("bool", Type::Bool),
    ("keyword", Type::Keyword),
    ("datetime", Type::Datetime),
    ("any", Type::Any),
    ("map", Type::Map),
];

impl Signature {
    /// Parses a signature. The error contains the position, the expected syntax and a hint.
    ///
    /// # Errors
    ///
    /// Returns the first error of the text.
    pub fn parse(text: &str) -> Result<Signature, Error> {
        parse::signature(text)
    }

    /// Makes a signature without parameters.
    pub fn of_output(output: Type) -> Signature {
        Signature { params: Vec::new(), output }
    }

    /// Returns the type of a parameter. Hyphens and underscores in its name are equivalent.
    pub fn param(&self, name: &str) -> Option<&Type> {
        let wanted = underscored(name);
        self.params.iter().find(|param| underscored(&param.name) == wanted).map(|param| &param.of)
    }
}

impl std::str::FromStr for Signature {
    type Err = Error;

    fn from_str(text: &str) -> Result<Signature, Error> {
        Signature::parse(text)
    }
}

impl Type {
    /// The list type with this item type.
    #[must_use]
    pub fn listed(self) -> Type {
        Type::List(Box::new(self))
    }

    /// Makes the type optional.
    #[must_use]
    pub fn optional(self) -> Type {
        if self.is_optional() { self } else { Type::Optional(Box::new(self)) }
    }

    /// Whether the type has a `?`, so that the value may be nil or missing.
    pub fn is_optional(&self) -> bool {
        matches!(self, Type::Optional(_))
    }

    /// Returns the type without its `?`.
    pub fn required(&self) -> &Type {
        match self {
            Type::Optional(inner) => inner.required(),
            other => other,
        }
    }
}
