//! The runtime of a pinned PTC-Lisp server, which connects a frozen catalog with clients and upstreams.
//!
//! A pinned binary consists of generated data and one call:
//!
//! ```no_run
//! use ptc_catalog::{Catalog, Deployment};
//!
//! static DEPLOYMENT: Deployment =
//!     Deployment { name: "plain", compiler: "0.1.0", config_digest: "", credentials: &[], catalog: &Catalog::EMPTY, programs: &[] };
//!
//! fn main() -> std::process::ExitCode {
//!     ptc_runtime::main(&DEPLOYMENT)
//! }
//! ```
//!
//! The path of a call:
//!
//! ```text
//! client ─ frame ─ dispatch ─ place ─ pool thread: check ─ evaluate ──(tool/call)──▶ upstream
//!    ▲                                                        └─ preview ─ redact ─ profile ─ outbox ─▶ client
//! ```
//!
//! - [`command`]: the command lines `start`, `eval`, `repl` and `version`, and those of `ptc-compile run` and `ptc-compile repl`.
//! - [`settings`]: the table of flags and environment variables.
//! - [`protocol`], [`server`]: MCP messages, and the methods that answer them. [`schedule`]: admission, processors and the memory
//!   budget of programs.
//! - [`evaluation`], [`fibers`], [`pool`], [`alloc`]: evaluation of programs, with their threads and memory.
//! - [`schema`]: validates results against the JSON Schema of a call.
//! - [`session`]: definitions and results that outlive a call.
//! - [`response`], [`tools_list`]: formats of answers, and the definitions of tools.
//! - [`upstream`], [`discovery`], [`secrets`]: clients of upstreams, the catalog in programs, credentials and redaction.
//! - [`agentic`]: `lisp_task`, for which a model of the server writes programs.
//! - [`diagnostics`]: `lisp_debug`, trace files and metrics of calls.
//! - [`embed`]: the runtime as a library in a program with its own tools. [`ptc_runner_compat`]: the description and answers of
//!   `lisp_eval` in such a program.
//! - `viewer`: a web page that shows traces, with the feature of that name.
//! - [`digest`]: SHA-256. [`log`]: log lines on standard error. [`random`]: unguessable names.

/// The guide to embedding, whose examples are tested as part of this crate.
#[cfg(doctest)]
#[doc = include_str!("../../compiler/guide/embedding.md")]
mod guide {}

#[cfg(feature = "agentic")]
pub mod agentic;
pub mod alloc;
pub mod command;
#[cfg(feature = "http-server")]
mod descriptors;
pub mod diagnostics;
pub mod digest;
pub mod discovery;
pub mod embed;
pub mod evaluation;
pub mod fibers;
pub mod log;
pub mod pool;
pub mod protocol;
pub mod ptc_runner_compat;
pub mod random;
pub mod response;
pub mod schedule;
pub mod server;
pub mod session;
pub mod settings;
pub mod tools_list;
pub mod upstream;
#[cfg(feature = "viewer")]
pub mod viewer;

pub use command::main;

/// SHA-256 of the runtime's sources, as `sha256:` and lower-case hex. Dependencies are pinned by the lock file of the binary.
pub const DIGEST: &str = env!("PTC_RUNTIME_DIGEST");

pub use ptc_json_schema as schema;
pub use ptc_secrets as secrets;
