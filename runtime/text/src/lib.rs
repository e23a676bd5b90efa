//! Rules for texts that every crate shows.
//!
//! - [`closest_match`]: the name that a wrong name was probably meant to be.
//! - [`join_limited`]: a list that is cut after a number of items and says how many more there are.

#![forbid(unsafe_code)]

mod list;
mod suggest;

pub use list::join_limited;
pub use suggest::closest_match;
