//! The wire layer of the Model Context Protocol: JSON-RPC frames, both eras, nothing about tools.
//!
//! - [`frame`]: bytes to lines, with a cap before anything is decoded.
//! - [`message`]: a line to a message; ids and payloads stay raw.
//! - [`reply`]: messages to the client.
//! - [`revision`]: protocol revisions, and the envelope of the stateless era.
//! - [`trace_context`]: the trace that a request is a part of.

pub mod frame;
pub mod message;
pub mod reply;
pub mod revision;
pub mod trace_context;
