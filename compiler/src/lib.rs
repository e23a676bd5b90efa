//! The compiler of `upstreams.json`. It is pure: it uses no files, processes or network, except in `serve`, which has a feature
//! of its own.

#![forbid(unsafe_code)]

pub mod config;
pub mod diag;
pub mod drift;
pub mod ir;
pub mod leak;
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

/// Version of this compiler, as written into all generated files.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
