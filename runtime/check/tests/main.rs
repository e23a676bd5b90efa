//! Tests of the static check.

mod bounds;
mod conventions;
mod findings;
mod followed;
mod linear;
mod missing;
mod paging;
#[cfg(feature = "function-values")]
mod reads;
mod review;
mod unread_pages;
