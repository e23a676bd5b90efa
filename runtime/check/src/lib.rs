//! Checks a program against a catalog before it runs.
#![forbid(unsafe_code)]

mod near;

pub use near::near_name;
