//! Vectors, maps and sets: persistent values that are updated in place where nobody else holds them.
//!
//! Every container knows a bound of its depth (1 for one that holds no container). Containers deeper than
//! [`SHALLOW`] are dropped, compared, hashed and printed with a work list instead of native recursion.

mod children;
mod chunks;
mod entries;
mod map;
mod set;
mod tree;
mod vector;

pub use map::Map;
pub(crate) use map::NameKinds;
pub use set::Set;
pub use vector::{IntoIter, Vector};

pub use children::Children;
pub(crate) use entries::{Names, SMALL};

/// Up to this depth native recursion is used.
pub const SHALLOW: u32 = 48;
