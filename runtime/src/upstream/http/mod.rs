//! HTTP clients, and everything about connections and TLS.
//!
//! - [`client`]: a client for one upstream, with its headers, credentials, redirects, retries and size limits.
//! - [`connecting`]: the stage of a call while its connection is made. [`tls`]: trusted certificates.
//! - [`body`]: the body of a request.
//! - [`answer`]: a response. [`status`]: the meaning of its status for a program.
//! - [`sse`]: parses server-sent events. [`stream`]: reads a response that is an event stream.
//! - [`session`]: MCP over Streamable HTTP.
//! - [`document`]: fetches OpenAPI documents at build time.

mod answer;
mod body;
pub(crate) mod client;
mod connecting;
pub(crate) mod document;
pub(crate) mod session;
pub(super) mod sse;
pub(crate) mod status;
mod stream;
pub(crate) mod tls;
