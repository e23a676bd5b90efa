//! The compiler of `upstreams.json`: pure, without files, processes or network, except for `serve`, which has a feature of its own.

#![forbid(unsafe_code)]

pub mod config;
pub mod diag;
pub mod drift;
pub mod ir;
pub mod live;
pub mod lock;
pub mod lower;
pub mod openapi;
pub mod pinned;
pub mod programs;
pub mod render;
#[cfg(feature = "serve")]
pub mod serve;
pub mod source;
pub mod tool_name;
pub mod tree;

/// Version of this compiler, as it is written into everything that it generates.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
