//! Rules for texts that every crate shows.
//!
//! - [`closest_match`]: finds the name that a wrong name was probably meant to be.
//! - [`truncate_utf8`]: a prefix of a text that is not longer than a number of bytes.
//! - [`panic_message`]: the message of a caught panic.
//! - [`join_limited`]: joins a list, truncated after a number of items and followed by the number of the others.

#![forbid(unsafe_code)]

mod list;
mod panic;
mod suggest;
mod truncate;

pub use list::join_limited;
pub use panic::panic_message;
pub use suggest::closest_match;
pub use truncate::truncate_utf8;
