//! The host of a pinned PTC-Lisp server: everything between a frozen catalog and the world.
//!
//! A pinned binary is generated data and one call:
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
//! The way of a call:
//!
//! ```text
//! client ─ frame ─ dispatch ─ place ─ pool thread: check ─ evaluate ──(tool/call)──▶ upstream
//!    ▲                                                        └─ preview ─ redact ─ profile ─ outbox ─▶ client
//! ```
//!
//! - [`command`]: the command line: `start`, `eval`, `repl`, `version`; and that of `ptc-compile run` and `ptc-compile repl`.
//! - [`settings`]: flags and environment, one table.
//! - [`protocol`], [`server`]: MCP on the wire; methods and answers. [`schedule`]: which programs run, and how much memory they have together.
//! - [`evaluation`], [`fibers`], [`pool`], [`alloc`]: programs, their threads, their memory.
//! - [`schema`]: results against the JSON Schema that a call gives.
//! - [`session`]: definitions and results that outlive a call.
//! - [`response`], [`tools_list`]: what comes back; what the tool says of itself.
//! - [`upstream`], [`discovery`], [`secrets`]: upstream clients, the catalog as programs see it, credentials and redaction.
//! - [`agentic`]: `lisp_task`, for which a model of the server writes programs.
//! - [`diagnostics`]: what calls left behind: `lisp_debug`, trace files.
//! - [`embed`]: the same inside a program that has tools of its own; [`ptc_runner_compat`]: what such a program tells a model.
//! - `viewer`: a page for people who look at traces, where the feature of that name is on.
//! - [`digest`]: SHA-256. [`log`]: lines on standard error; [`random`]: names that nobody can guess.

/// The guide to embedding, whose examples are run as those of this crate.
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
pub mod schema;
pub mod secrets;
pub mod server;
pub mod session;
pub mod settings;
pub mod tools_list;
pub mod upstream;
#[cfg(feature = "viewer")]
pub mod viewer;

pub use command::main;

/// SHA-256 of the runtime's sources, `sha256:` and lower-case hex. Its dependencies are pinned by the lock file of whatever links it.
pub const DIGEST: &str = env!("PTC_RUNTIME_DIGEST");
