//! What a compiled schema asserts.

use ptc_lisp::Value;
use regex::Regex;

use super::exact::Exact;

/// The index of a subschema.
pub(super) type Id = usize;

/// A subschema.
#[derive(Debug)]
pub(super) enum Node {
    /// `true` or `false`.
    Constant(bool),
    /// An object: all of these. Those that ask what others have evaluated come last.
    All(Vec<Check>),
}

/// One assertion.
#[derive(Debug)]
pub(super) enum Check {
    /// `type`, as bits of [`ptc_catalog::Types`].
    Type(ptc_catalog::Types),
    Enum(Vec<Value>),
    Const(Value),
    /// `minimum` and its kin.
    Bound(Bound, Value),
    MultipleOf(Exact, Value),
    /// `minLength` and its kin.
    Size(Size, u64),
    Pattern(Regex, String),
    UniqueItems,
    Required(Vec<String>),
    /// Name, and what it then requires.
    DependentRequired(Vec<(String, Vec<String>)>),
    /// `properties`, `patternProperties` and `additionalProperties` as one: the last looks at the others.
    Properties(Properties),
    PropertyNames(Id),
    DependentSchemas(Vec<(String, Id)>),
    /// `prefixItems` and `items` as one.
    Items {
        prefix: Vec<Id>,
        rest: Option<Id>,
    },
    /// `contains` with its bounds.
    Contains {
        schema: Id,
        least: u64,
        most: Option<u64>,
    },
    Reference(Id),
    AllOf(Vec<Id>),
    AnyOf(Vec<Id>),
    OneOf(Vec<Id>),
    Not(Id),
    If {
        condition: Id,
        then: Option<Id>,
        otherwise: Option<Id>,
    },
    UnevaluatedItems(Id),
    UnevaluatedProperties(Id),
}

/// The members of an object.
#[derive(Debug, Default)]
pub(super) struct Properties {
    /// Sorted by name.
    pub(super) named: Vec<(String, Id)>,
    pub(super) patterns: Vec<(Regex, Id)>,
    pub(super) rest: Option<Id>,
}

/// How a number is bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    Minimum,
    Maximum,
    ExclusiveMinimum,
    ExclusiveMaximum,
}

/// What is counted, and from which side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    MinLength,
    MaxLength,
    MinItems,
    MaxItems,
    MinProperties,
    MaxProperties,
}

impl Check {
    /// The subschemas that see the same value: a cycle through these would never end.
    pub(super) fn in_place(&self) -> Vec<Id> {
        match self {
            Check::Reference(id) | Check::Not(id) => vec![*id],
            Check::AllOf(ids) | Check::AnyOf(ids) | Check::OneOf(ids) => ids.clone(),
            Check::DependentSchemas(schemas) => schemas.iter().map(|(_, id)| *id).collect(),
            Check::If { condition, then, otherwise } => [Some(*condition), *then, *otherwise].into_iter().flatten().collect(),
            _ => Vec::new(),
        }
    }

    /// Whether it looks at what its siblings have evaluated.
    pub(super) fn asks_what_was_evaluated(&self) -> bool {
        matches!(self, Check::UnevaluatedItems(_) | Check::UnevaluatedProperties(_))
    }
}
