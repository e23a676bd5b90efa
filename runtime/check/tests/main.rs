//! Tests of the static check.

mod bounds;
mod conventions;
mod findings;
mod followed;
mod linear;
mod missing;
mod paging;
mod review;
mod unread_pages;
