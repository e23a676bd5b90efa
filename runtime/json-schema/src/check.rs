//! The assertions of a compiled schema.

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
    /// The conjunction of all assertions of an object. Those that depend on the evaluations of others are last.
    All(Vec<Check>),
}

/// One assertion.
#[derive(Debug)]
pub(super) enum Check {
    /// The keyword `type`, as bits of [`ptc_catalog::Types`].
    Type(ptc_catalog::Types),
    Enum(Vec<Value>),
    Const(Value),
    /// `minimum` and similar keywords.
    Bound(Bound, Value),
    MultipleOf(Exact, Value),
    /// `minLength` and similar keywords.
    Size(Size, u64),
    Pattern(Regex, String),
    UniqueItems,
    Required(Vec<String>),
    /// The name of a property, and the properties that it requires.
    DependentRequired(Vec<(String, Vec<String>)>),
    /// `properties`, `patternProperties` and `additionalProperties` together, since the last depends on the others.
    Properties(Properties),
    PropertyNames(Id),
    DependentSchemas(Vec<(String, Id)>),
    /// `prefixItems` and `items` together.
    Items {
        prefix: Vec<Id>,
        rest: Option<Id>,
    },
    /// `contains` with its limits.
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

/// The assertions about an object's members.
#[derive(Debug, Default)]
pub(super) struct Properties {
    /// Sorted by name.
    pub(super) named: Vec<(String, Id)>,
    pub(super) patterns: Vec<(Regex, Id)>,
    pub(super) rest: Option<Id>,
}

/// The kind of a bound on a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    Minimum,
    Maximum,
    ExclusiveMinimum,
    ExclusiveMaximum,
}

/// The counted quantity, and the direction of its limit.
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
    /// Returns the subschemas that apply to the same value. A cycle through these would not terminate.
    pub(super) fn in_place(&self) -> Vec<Id> {
        match self {
            Check::Reference(id) | Check::Not(id) => vec![*id],
            Check::AllOf(ids) | Check::AnyOf(ids) | Check::OneOf(ids) => ids.clone(),
            Check::DependentSchemas(schemas) => schemas.iter().map(|(_, id)| *id).collect(),
            Check::If { condition, then, otherwise } => [Some(*condition), *then, *otherwise].into_iter().flatten().collect(),
            _ => Vec::new(),
        }
    }

    /// Whether it depends on what other assertions have evaluated.
    pub(super) fn needs_evaluations(&self) -> bool {
        matches!(self, Check::UnevaluatedItems(_) | Check::UnevaluatedProperties(_))
    }
}
