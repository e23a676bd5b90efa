//! The MCP server, which turns frames into answers independent of the transport.
//!
//! - `call`: the method `tools/call`; `tool`: the tools that it can call; `evaluate`: runs the program of a call.
//! - [`caller`]: the client of a request, and the receiver of answers.
//! - [`dispatch`]: dispatches methods on the thread that reads; `visible_tools`: what `tools/list` shows to a caller.
//! - [`identity`]: the owner of a client, and what its credential says about it.
//! - [`in_flight`]: the unanswered calls of a client, and their cancellation.
//! - `metrics`: the metrics, and the state of the upstreams.
//! - [`outbox`]: the queue of answers to standard output, with back-pressure.
//! - [`stdio`]: reads frames from standard input until it ends.
//! - [`http`]: receives requests over HTTP.
//! - `task`: calls of `lisp_task`.
//!
//! The thread that reads also dispatches. Evaluations run on the pool and send their answers themselves. Memory is bounded for
//! any behaviour of a client: permits limit evaluations, and the outbox or the connection limits answers. When these are full,
//! reading stops.

mod call;
pub mod caller;
pub mod dispatch;
mod evaluate;
#[cfg(feature = "http-server")]
pub mod http;
pub mod identity;
pub mod in_flight;
mod metrics;
pub mod outbox;
pub mod stdio;
#[cfg(feature = "agentic")]
mod task;
mod tool;
mod visible_tools;

pub use caller::Caller;
pub use dispatch::{Next, Server};
