//! Embeds PTC-Lisp in a Rust program: an [`Engine`] runs programs with the embedding program's tools, upstreams, data and limits.
//!
//! ```
//! use ptc_runtime::embed::{Args, Engine, Request, Tool};
//!
//! let stock = Tool::new("stock", "(sku :string) -> {on_hand :int, reserved :int?}", |args: Args| {
//!     let on_hand = if args.text("sku") == Some("A-1") { 7 } else { 0 };
//!     Ok(serde_json::json!({ "on_hand": on_hand }))
//! })?
//! .describe("How many pieces of an article there are.");
//! let engine = Engine::builder().tool(stock).build()?;
//!
//! let program = "(println \"asking\") (->> data/skus (filter #(pos? (:on-hand (tool/stock {:sku %})))))";
//! let request = Request::new(program).context(&serde_json::json!({ "skus": ["A-1", "B-2"] }))?;
//! let answer = engine.run(request);
//! assert_eq!(answer.preview(), Ok("[\"A-1\"]"));
//! assert_eq!(answer.prints(), ["asking"]);
//! assert_eq!(answer.tool_calls.len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **Threads.** A program runs on a thread of the engine's pool, which has a known stack size. Tools run outside it, in parallel
//! if the program requests that (`pmap`): asynchronous tools as tasks, others on blocking threads. Inside a Tokio runtime the
//! engine uses that runtime, otherwise it creates one. [`Engine::run`] blocks until the answer. [`Engine::run_async`] is for
//! asynchronous code, and dropping its future cancels the program.
//!
//! **Limits** default to those of a server: 1 s and 10 MB, with upstreams 10 s and 100 MB. [`Builder::limits`] changes them.
//! Memory is counted by the allocator of this crate, which must not be replaced with one that does not count.
//!
//! **Upstreams** come with a deployment: the one that `ptc_macros::catalog!` defines, or `ptc_catalog` types that the program
//! makes and leaks at start. `ptc_compiler::serve` makes a deployment from a config and fetches the tools of MCP upstreams.
//! Programs call upstreams with `tool/call`. [`Builder::build`] resolves credentials, which are redacted in all output of the
//! engine. [`Builder::upstreams`] sets timeouts, sizes and counts. [`Engine::connect`] connects before the first call.
//!
//! **Stored programs** of the deployment run with [`Request::stored`]. Arguments and result are validated against their schemas.
//!
//! **Static checks.** If the text of a program shows that a call of an upstream or an own tool is wrong, the program ends before
//! it runs.
//!
//! **Events.** [`Request::on_event`] receives printed lines and calls while the program runs.
//!
//! **Logs.** [`Builder::log_sink`] receives the log lines that would otherwise be written to standard error.
//!
//! **Signatures** check arguments and results of tools ([`Tool::new`]) and of programs ([`Request::signature`]). Their grammar is
//! that of [`ptc_lisp::signature`]. With the feature `schemars` they are derived from Rust types (`Tool::typed`,
//! `Request::returns`).
//!
//! **Tools for an agent.** [`ptc_runner_compat`](crate::ptc_runner_compat) has descriptions of `lisp_eval` and renders an
//! [`Answer`] as JSON for a model. `examples/service.rs` is a web service that offers its own tools to an agent in this way.
//! `tests/examples/batch` of the workspace runs a stored program of a config over a folder of JSON files.

mod answer;
mod builder;
mod engine;
mod event;
mod host;
mod request;
mod tool;
#[cfg(feature = "schemars")]
mod typed;

pub use crate::log::{LogLine, LogValue};
pub use answer::Answer;
pub use builder::{BuildError, Builder};
pub use engine::Engine;
pub use event::Event;
pub use host::ToolCall;
pub use request::Request;
pub use tool::{Args, Tool, ToolDefinitionError, ToolFailure};
