//! The MCP server: from frames to answers, whatever carries them.
//!
//! - `call`: `tools/call`.
//! - [`caller`]: who asks, and where answers go.
//! - [`dispatch`]: methods, on the thread that reads.
//! - [`in_flight`]: calls that can be cancelled, and the permits that bound them.
//! - [`outbox`]: answers in, bytes out, with back-pressure.
//! - [`stdio`]: frames from standard input until it ends.
//! - [`http`]: requests from sockets.
//! - `task`: a call of `lisp_task`.
//!
//! Whoever reads also dispatches; evaluations run on the pool and send their answers themselves. Memory is bounded whatever a client
//! does: evaluations by permits, answers by the outbox or the connection, and where that is full nothing more is read.

mod call;
pub mod caller;
pub mod dispatch;
#[cfg(feature = "http-server")]
pub mod http;
pub mod in_flight;
pub mod outbox;
pub mod stdio;
#[cfg(feature = "agentic")]
mod task;

pub use caller::Caller;
pub use dispatch::{Next, Server};
