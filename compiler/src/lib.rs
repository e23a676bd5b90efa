//! The compiler of `upstreams.json`: pure, without files, processes or network.

#![forbid(unsafe_code)]

pub mod config;
pub mod diag;
pub mod source;
pub mod tree;
