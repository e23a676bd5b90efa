//! The compiler of `upstreams.json`. It only transforms texts: it uses no files, processes or network, except in `files`, and in
//! `serve`, which has a feature of its own.

#![forbid(unsafe_code)]

pub mod checks;
#[cfg(feature = "cli")]
pub mod clients;
pub mod config;
pub mod diag;
pub mod drift;
pub mod files;
mod http_token;
#[cfg(feature = "cli")]
pub mod import;
pub mod input;
#[cfg(feature = "cli")]
pub mod install;
pub mod ir;
pub mod json;
pub mod json_schema;
pub mod leak;
pub mod lock;
pub mod lower;
pub mod openapi;
pub mod paging;
pub mod pinned;
pub mod programs;
#[cfg(feature = "cli")]
pub mod provenance;
pub mod render;
pub mod resolve;
#[cfg(feature = "serve")]
pub mod serve;
pub mod source;
pub mod tool_name;
pub mod tree;

/// Version of this compiler, as written into all generated files.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
