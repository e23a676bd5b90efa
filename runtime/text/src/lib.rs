//! Rules for texts that every crate shows.
//!
//! - [`closest_match`]: finds the name that a wrong name was probably meant to be.
//! - [`join_limited`]: joins a list, truncated after a number of items and followed by the number of the others.

#![forbid(unsafe_code)]

mod list;
mod suggest;

pub use list::join_limited;
pub use suggest::closest_match;
