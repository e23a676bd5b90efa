//! HTTP: the one place that knows of `reqwest` and TLS.
//!
//! - [`client`]: a client for an upstream: headers, credentials, redirects, proxy, caps.
//! - [`status`]: what a status means to a program.
//! - [`sse`]: reading server-sent events.
//! - [`session`]: MCP over Streamable HTTP.
//! - [`document`]: fetching an OpenAPI document at build time.

pub(crate) mod client;
pub(crate) mod document;
pub(crate) mod session;
mod sse;
pub(crate) mod status;
