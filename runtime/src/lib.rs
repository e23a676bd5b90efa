//! The runtime of a pinned PTC-Lisp server, which connects a frozen catalog with clients and upstreams.
//!
//! A pinned binary consists of generated data and one call:
//!
//! ```no_run
//! use ptc_catalog::Deployment;
//!
//! static DEPLOYMENT: Deployment =
//!     Deployment { name: "plain", compiler: "0.1.0", ..Deployment::EMPTY };
//!
//! fn main() -> std::process::ExitCode {
//!     ptc_runtime::main(&DEPLOYMENT)
//! }
//! ```
//!
//! The optional parts of a server are crates above this one. The `main` of a binary passes those that it links as [`Parts`] to
//! [`main_with`].
//!
//! The path of a call:
//!
//! ```text
//! client ─ frame ─ dispatch ─ permit ─ fiber: check ─ evaluate ──(tool/call)──▶ upstream
//!    ▲                                                        └─ preview ─ redact ─ profile ─ outbox ─▶ client
//! ```
//!
//! Modules of this crate, each above those that it uses:
//!
//! - [`command`]: the command lines `start`, `eval`, `repl` and `version`, and those of `ptc-compile run` and `ptc-compile repl`.
//! - [`server`]: the methods of MCP, over standard input and output and over HTTP.
//! - [`agentic`]: `lisp_task`, for which a model of the server writes programs.
//! - [`embed`]: the runtime as a library in a program with its own tools. [`ptc_runner_compat`]: the description and answers of
//!   `lisp_eval` in such a program.
//! - [`diagnostics`]: `lisp_debug`, trace files and metrics of calls.
//! - [`session`]: definitions and results that outlive a call.
//! - [`tools_list`]: definitions of tools. `fuzzing`: entry points of fuzz targets, with the feature of that name.
//! - [`settings`]: the table of flags and environment variables. [`digest`]: SHA-256.
//!
//! Crates below it:
//!
//! - [`evaluation`], [`response`], [`protocol`]: the evaluation of a program, formats of answers, and MCP messages.
//! - [`upstream`]: clients of upstreams, and the catalog in programs.
//! - [`schedule`]: admission, processors and the memory budget of programs, with their [fibers], [threads](pool) and
//!   [allocator](alloc).
//! - [`log`]: log lines. [`schema`]: validates results against the JSON Schema of a call. [`secrets`]: credentials and redaction.

/// The guide to embedding, whose examples are tested as part of this crate.
#[cfg(doctest)]
#[doc = include_str!("../../compiler/guide/embedding.md")]
mod guide {}

#[cfg(feature = "agentic")]
pub mod agentic;
pub(crate) mod build_info;
pub mod command;
pub mod description;
pub mod diagnostics;
pub mod digest;
pub mod embed;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod json_shape;
mod parts;
pub mod ptc_runner_compat;
#[cfg(feature = "interception")]
pub mod recording;
pub mod server;
pub mod session;
pub mod settings;
pub mod tools_list;

pub use command::{Linker, main, main_linked_by, main_with};
pub use parts::Parts;
pub use ptc_isolation::worker::ARGUMENT as WORKER_ARGUMENT;

/// SHA-256 of the runtime's sources, as `sha256:` and lower-case hex. Dependencies are pinned by the lock file of the binary.
pub const DIGEST: &str = env!("PTC_RUNTIME_DIGEST");

pub use ptc_engine::{evaluation, protocol, response};
pub use ptc_json_schema as schema;
pub use ptc_log as log;
pub use ptc_schedule as schedule;
pub use ptc_schedule::{alloc, fibers, pool};
pub use ptc_secrets as secrets;
pub use ptc_upstream as upstream;
