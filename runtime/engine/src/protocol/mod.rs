//! The wire layer of the Model Context Protocol: JSON-RPC frames of both eras, independent of tools.
//!
//! - [`frame`]: splits bytes into lines, with a limit on their size.
//! - [`message`]: parses a line into a message, in which ids and payloads stay raw.
//! - [`reply`]: formats messages to the client.
//! - [`revision`]: protocol revisions, and the envelope of the stateless era.
//! - [`trace_context`]: the trace context of a request.

pub mod frame;
pub mod message;
pub mod reply;
pub mod revision;
pub mod trace_context;
