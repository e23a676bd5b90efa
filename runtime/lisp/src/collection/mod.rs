//! Vectors, maps and sets: persistent values that are updated in place if they have a single owner.
//!
//! Every container stores an upper bound of its depth (1 for one without nested containers). Containers deeper than [`SHALLOW`]
//! are dropped, compared, hashed and printed with a work list instead of native recursion.

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

/// Maximum depth that is walked with native recursion.
pub const SHALLOW: u32 = 48;
