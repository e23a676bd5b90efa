//! HTTP: the one place that knows of `reqwest` and TLS.
//!
//! - [`client`]: a client for an upstream: headers, credentials, redirects, proxy, roots, caps.
//! - [`connecting`]: how long a call waits for its connection.
//! - [`status`]: what a status means to a program.
//! - [`sse`]: reading server-sent events; [`stream`]: an answer that comes as such.
//! - [`session`]: MCP over Streamable HTTP.
//! - [`document`]: fetching an OpenAPI document at build time.

pub(crate) mod client;
mod connecting;
pub(crate) mod document;
pub(crate) mod session;
mod sse;
pub(crate) mod status;
mod stream;
