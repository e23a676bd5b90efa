//! The MCP server: from frames to answers, whatever carries them.
//!
//! - [`dispatch`]: methods, on the thread that reads.
//! - [`in_flight`]: calls that can be cancelled, and the permits that bound them.
//! - [`outbox`]: answers in, bytes out, with back-pressure.
//! - [`stdio`]: frames from standard input until it ends.
//!
//! One thread reads and dispatches; evaluations run on the pool and put their answers into the outbox themselves. Memory is bounded
//! whatever a client does: evaluations by permits, answers by the outbox, and where that is full nothing more is read.

pub mod dispatch;
pub mod in_flight;
pub mod outbox;
pub mod stdio;

pub use dispatch::{Next, Server};
