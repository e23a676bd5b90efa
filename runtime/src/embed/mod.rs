//! PTC-Lisp inside a program of yours: an [`Engine`] runs programs with tools of your own, upstreams, data and limits.
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
//! **Where things run.** A program runs on a thread of the engine's pool, whose native stack is known. Tools run elsewhere and at
//! the same time where the program asks for it (`pmap`): asynchronous ones as tasks, others on threads that may block. Inside a
//! Tokio runtime the engine uses that one; outside it brings one of its own. [`Engine::run`] waits for the answer,
//! [`Engine::run_async`] is for asynchronous programs, and dropping its future stops the program.
//!
//! **Limits** are those of a server: 1 s and 10 MB, with upstreams 10 s and 100 MB, unless [`Builder::limits`] says otherwise.
//! Memory is counted by the allocator of this crate, which a program that links it must not replace by one of its own.
//!
//! **Upstreams** come with a deployment: what `ptc_macros::catalog!` defines, or `ptc_catalog` types that your program makes and
//! leaks when it starts; `ptc_compiler::serve` makes one of a config and lists the tools of MCP upstreams itself. Programs reach
//! them with `tool/call`; credentials are resolved by [`Builder::build`], and nothing that leaves the engine holds them. Their
//! time, sizes and counts are set by [`Builder::upstreams`]; [`Engine::connect`] connects before the first call.
//!
//! **Stored programs** of the deployment run with [`Request::stored`]: arguments and result are held to their schemas.
//!
//! **Checked first.** What the text of a program shows to be wrong about a call, of an upstream or of an own tool, ends it before
//! it runs.
//!
//! **While it runs** a program can be listened to: [`Request::on_event`] tells of printed lines and of calls as they happen.
//!
//! **Signatures** check what goes in and comes out, of tools ([`Tool::new`]) and of whole programs ([`Request::signature`]); the
//! grammar is that of [`ptc_lisp::signature`].
//!
//! **An agent's tool.** [`ptc_runner_compat`](crate::ptc_runner_compat) has descriptions of `lisp_eval` and renders an [`Answer`] as the
//! JSON that a model reads. `examples/service.rs` is a web service that offers its own tools to an agent that way.
//! `tests/examples/batch` of the workspace runs a stored program of a config over a folder of JSON files.

mod answer;
mod builder;
mod engine;
mod event;
mod host;
mod request;
mod tool;

pub use answer::Answer;
pub use builder::{BuildError, Builder};
pub use engine::Engine;
pub use event::Event;
pub use host::ToolCall;
pub use request::Request;
pub use tool::{Args, Tool, ToolDefinitionError, ToolFailure};
