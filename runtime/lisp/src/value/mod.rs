//! Values of programs: 16 bytes, cheap to clone, safe to share between threads.
//!
//! Every payload is 8 bytes and integer- or pointer-like, so that a value and a `Result<Value, Raised>` travel in two registers.
//! For the same reason the booleans are two variants and a double is stored as its bits.

mod double;
mod footprint;
mod recent;
mod serial;
mod teardown;
mod text;

use std::fmt;
use std::sync::Arc;

use num_bigint::BigInt;

pub use double::Double;
pub(crate) use footprint::{each_distinct, footprint};
pub(crate) use recent::Recent;
pub(crate) use serial::serial;
pub(crate) use teardown::teardown;
pub use text::Text;

use crate::builtins::{Builtin, Composed};
use crate::collection::{Map, Set, Vector};
use crate::eval::Closure;
use crate::infinite::InfiniteSeq;
use crate::pattern::Pattern;
use crate::temporal::Temporal;

/// A PTC-Lisp value. Equality, order and hash are defined by [`crate::order`].
#[derive(Clone, Default)]
pub enum Value {
    /// `nil`
    #[default]
    Nil,
    /// `false`
    False,
    /// `true`
    True,
    /// An integer of 64 bits.
    Int(i64),
    /// A double.
    Double(Double),
    /// An integer that does not fit in 64 bits. Smaller integers always use `Int`.
    BigInt(Arc<BigInt>),
    /// A string.
    Str(Text),
    /// A keyword, stored without its colon.
    Keyword(Text),
    /// A quoted symbol.
    Symbol(Text),
    /// A vector. Lists and other sequences are vectors too.
    Vector(Vector),
    /// A map.
    Map(Map),
    /// A set.
    Set(Set),
    /// A compiled regular expression.
    Regex(Arc<Pattern>),
    /// A date, a time or an amount of time.
    Temporal(Arc<Temporal>),
    /// An infinite sequence.
    InfiniteSeq(Arc<InfiniteSeq>),
    /// A reference to a definition, by name.
    Var(Text),
    /// A builtin function, by its row in the table.
    Builtin(&'static Builtin),
    /// A function made by a combinator such as `partial` or `comp`.
    Composed(Arc<Composed>),
    /// A function made by `fn`.
    Closure(Arc<Closure>),
}

/// The kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// `nil`
    Nil,
    /// `true` or `false`
    Bool,
    /// An integer of 64 bits.
    Int,
    /// A larger integer.
    BigInt,
    /// A double.
    Double,
    /// A string.
    String,
    /// A keyword.
    Keyword,
    /// A symbol.
    Symbol,
    /// A vector.
    Vector,
    /// A map.
    Map,
    /// A set.
    Set,
    /// A regular expression.
    Regex,
    /// A date, a time or an amount of time.
    Temporal,
    /// An infinite sequence.
    InfiniteSeq,
    /// A var.
    Var,
    /// A function.
    Function,
}

impl Kind {
    /// The kind with its article, for messages.
    pub fn described(self) -> &'static str {
        match self {
            Kind::Nil => "nil",
            Kind::Bool => "a boolean",
            Kind::Int | Kind::BigInt => "an integer",
            Kind::Double => "a double",
            Kind::String => "a string",
            Kind::Keyword => "a keyword",
            Kind::Symbol => "a symbol",
            Kind::Vector => "a vector",
            Kind::Map => "a map",
            Kind::Set => "a set",
            Kind::Regex => "a regex",
            Kind::Temporal => "a date or time",
            Kind::InfiniteSeq => "an infinite sequence",
            Kind::Var => "a var",
            Kind::Function => "a function",
        }
    }

    /// The kind's short name, which `(type x)` returns.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Nil => "nil",
            Kind::Bool => "boolean",
            Kind::Int | Kind::BigInt => "integer",
            Kind::Double => "float",
            Kind::String => "string",
            Kind::Keyword => "keyword",
            Kind::Symbol => "symbol",
            Kind::Vector => "vector",
            Kind::Map => "map",
            Kind::Set => "set",
            Kind::Regex => "regex",
            Kind::Temporal => "time",
            Kind::InfiniteSeq => "endless",
            Kind::Var => "var",
            Kind::Function => "function",
        }
    }
}

impl Value {
    /// `nil`
    pub fn nil() -> Value {
        Value::Nil
    }

    /// `true` or `false`
    #[inline]
    pub fn bool(b: bool) -> Value {
        if b { Value::True } else { Value::False }
    }

    /// An integer.
    pub fn int(i: i64) -> Value {
        Value::Int(i)
    }

    /// An integer of any size.
    pub fn big(i: BigInt) -> Value {
        i64::try_from(&i).map_or_else(|_| Value::BigInt(Arc::new(i)), Value::Int)
    }

    /// A double.
    #[inline]
    pub fn double(d: f64) -> Value {
        Value::Double(Double::new(d))
    }

    /// A string.
    pub fn string(text: impl AsRef<str>) -> Value {
        Value::Str(Text::new(text))
    }

    /// Makes a keyword from `name`, which has no colon. Keywords in programs consist of letters, digits and `+-*<>=?!_`. A
    /// keyword with other characters can be compared and used as a key, but its printed form does not read back.
    pub fn keyword(name: impl AsRef<str>) -> Value {
        Value::Keyword(Text::new(name))
    }

    /// A vector.
    pub fn vector(items: Vec<Value>) -> Value {
        Value::Vector(Vector::from(items))
    }

    /// Makes a vector of two items, which is the form in which programs see an entry of a map.
    pub(crate) fn pair(key: Value, value: Value) -> Value {
        Value::Vector(Vector::from([key, value]))
    }

    /// Makes a map. The last of equal keys wins.
    pub fn map(entries: impl IntoIterator<Item = (Value, Value)>) -> Value {
        Value::Map(entries.into_iter().collect())
    }

    /// A set.
    pub fn set(members: impl IntoIterator<Item = Value>) -> Value {
        Value::Set(members.into_iter().collect())
    }

    /// Returns the kind of the value.
    pub fn kind(&self) -> Kind {
        match self {
            Value::Nil => Kind::Nil,
            Value::False | Value::True => Kind::Bool,
            Value::Int(_) => Kind::Int,
            Value::Double(_) => Kind::Double,
            Value::BigInt(_) => Kind::BigInt,
            Value::Str(_) => Kind::String,
            Value::Keyword(_) => Kind::Keyword,
            Value::Symbol(_) => Kind::Symbol,
            Value::Vector(_) => Kind::Vector,
            Value::Map(_) => Kind::Map,
            Value::Set(_) => Kind::Set,
            Value::Regex(_) => Kind::Regex,
            Value::Temporal(_) => Kind::Temporal,
            Value::InfiniteSeq(_) => Kind::InfiniteSeq,
            Value::Var(_) => Kind::Var,
            Value::Builtin(_) | Value::Composed(_) | Value::Closure(_) => Kind::Function,
        }
    }

    /// Whether the value is `nil`.
    #[inline]
    pub fn is_nil(&self) -> bool {
        matches!(self, Value::Nil)
    }

    /// Whether the value counts as true. Only `nil` and `false` do not.
    #[inline]
    pub fn is_truthy(&self) -> bool {
        !matches!(self, Value::Nil | Value::False)
    }

    /// Returns the boolean, or `None` for any other kind.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::True => Some(true),
            Value::False => Some(false),
            _ => None,
        }
    }

    /// Returns the integer if the value is one that fits in 64 bits.
    #[inline]
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Value::Int(i) => Some(*i),
            _ => None,
        }
    }

    /// Returns the number as a double. Large integers are rounded.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Int(i) => Some(*i as f64),
            Value::Double(d) => Some(d.get()),
            Value::BigInt(b) => num_traits::ToPrimitive::to_f64(&**b),
            _ => None,
        }
    }

    /// Returns the text of a string.
    #[inline]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Str(text) => Some(text.as_str()),
            _ => None,
        }
    }

    /// Returns the text of a string or keyword.
    #[inline]
    pub fn as_name(&self) -> Option<&str> {
        match self {
            Value::Str(text) | Value::Keyword(text) => Some(text.as_str()),
            _ => None,
        }
    }

    /// Returns the date or time.
    pub fn as_temporal(&self) -> Option<Temporal> {
        match self {
            Value::Temporal(temporal) => Some(**temporal),
            _ => None,
        }
    }

    /// Looks up the keyword `key` in a map, then the string `key`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        match self {
            Value::Map(map) => map.lookup(&Value::keyword(key)),
            _ => None,
        }
    }

    /// Iterates over the items of a vector or the members of a set. `None` for other kinds.
    pub fn items(&self) -> Option<impl Iterator<Item = &Value>> {
        match self {
            Value::Vector(_) | Value::Set(_) => crate::collection::Children::new(self),
            _ => None,
        }
    }

    /// Iterates over the entries of a map, sorted by key. `None` for other kinds.
    pub fn entries(&self) -> Option<impl Iterator<Item = (&Value, &Value)>> {
        match self {
            Value::Map(map) => Some(map.iter()),
            _ => None,
        }
    }

    /// Number of items, members, entries or graphemes. `None` for values without a length.
    #[expect(clippy::len_without_is_empty, reason = "most values have no length")]
    pub fn len(&self) -> Option<usize> {
        match self {
            Value::Nil => Some(0),
            Value::Vector(v) => Some(v.len()),
            Value::Map(m) => Some(m.len()),
            Value::Set(s) => Some(s.len()),
            Value::Str(s) => Some(s.count()),
            _ => None,
        }
    }

    /// Estimates the bytes on the heap of the value and of everything reachable from it. Shared parts count once.
    pub fn heap_bytes(&self) -> usize {
        footprint::footprint([self])
    }

    /// An upper bound of the nesting depth: 0 for a value without children.
    #[inline]
    pub fn depth(&self) -> u32 {
        match self {
            Value::Vector(v) => v.depth(),
            Value::Map(m) => m.depth(),
            Value::Set(s) => s.depth(),
            Value::Composed(c) => c.depth(),
            Value::InfiniteSeq(e) => e.depth(),
            Value::Closure(c) => c.depth(),
            _ => 0,
        }
    }

    /// The address of the value's heap block. `None` for values without one.
    pub(crate) fn address(&self) -> Option<usize> {
        match self {
            Value::BigInt(big) => Some(Arc::as_ptr(big).addr()),
            Value::Str(text) | Value::Keyword(text) | Value::Symbol(text) | Value::Var(text) => Some(text.address()),
            Value::Vector(items) => Some(items.address()),
            Value::Map(map) => Some(map.address()),
            Value::Set(set) => Some(set.address()),
            Value::Regex(pattern) => Some(Arc::as_ptr(pattern).addr()),
            Value::Temporal(temporal) => Some(Arc::as_ptr(temporal).addr()),
            Value::InfiniteSeq(infinite) => Some(Arc::as_ptr(infinite).addr()),
            Value::Composed(composed) => Some(Arc::as_ptr(composed).addr()),
            Value::Closure(closure) => Some(Arc::as_ptr(closure).addr()),
            Value::Nil | Value::False | Value::True | Value::Int(_) | Value::Double(_) | Value::Builtin(_) => None,
        }
    }

    /// Like [`Value::address`], but only for containers and functions whose block may have another owner.
    pub(crate) fn shared_address(&self) -> Option<usize> {
        let shared = match self {
            Value::Vector(items) => items.is_shared(),
            Value::Map(map) => map.is_shared(),
            Value::Set(set) => set.is_shared(),
            Value::InfiniteSeq(_) | Value::Composed(_) | Value::Closure(_) => true,
            _ => false,
        };
        if shared { self.address() } else { None }
    }

    /// Whether both values share one heap block, or are equal and have none.
    pub(crate) fn is_same(&self, other: &Value) -> bool {
        match (self.address(), other.address()) {
            // Equal numbers of different kinds are different values here.
            (None, None) => match (self, other) {
                (Value::Double(mine), Value::Double(theirs)) => mine.get().to_bits() == theirs.get().to_bits(),
                _ => std::mem::discriminant(self) == std::mem::discriminant(other) && self == other,
            },
            (mine, theirs) => mine == theirs,
        }
    }

    /// Returns the keyword for a string and the string for a keyword.
    pub(crate) fn other_spelling(&self) -> Option<Value> {
        match self {
            Value::Keyword(name) => Some(Value::Str(name.clone())),
            Value::Str(name) => Some(Value::Keyword(name.clone())),
            _ => None,
        }
    }

    /// Returns the same name with underscores for hyphens. `None` if it has no hyphen.
    pub(crate) fn underscored(&self) -> Option<Value> {
        let name = self.as_name()?;
        crate::comparison_budget::charge_bytes(name.len());
        if !name.contains('-') {
            return None;
        }
        let under = Text::from_string(name.replace('-', "_"));
        Some(if matches!(self, Value::Keyword(_)) { Value::Keyword(under) } else { Value::Str(under) })
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::print::preview(self, 400).text)
    }
}

impl From<bool> for Value {
    fn from(b: bool) -> Self {
        Value::bool(b)
    }
}

impl From<i64> for Value {
    fn from(i: i64) -> Self {
        Value::Int(i)
    }
}

impl From<f64> for Value {
    fn from(d: f64) -> Self {
        Value::double(d)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::string(text)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::Str(Text::from_string(text))
    }
}

impl From<Vec<Value>> for Value {
    fn from(items: Vec<Value>) -> Self {
        Value::vector(items)
    }
}

impl From<Temporal> for Value {
    fn from(temporal: Temporal) -> Self {
        Value::Temporal(Arc::new(temporal))
    }
}

impl From<Map> for Value {
    fn from(map: Map) -> Self {
        Value::Map(map)
    }
}
