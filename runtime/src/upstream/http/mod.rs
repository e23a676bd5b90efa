//! HTTP: the one place that knows of connections and TLS.
//!
//! - [`client`]: a client for an upstream: headers, credentials, redirects, caps.
//! - [`connector`]: its connections, also through a proxy; [`tls`]: whom they trust.
//! - [`repeat`]: when a request may be sent once more.
//! - [`body`]: what a request carries.
//! - [`answer`]: what comes back; [`status`]: what its status means to a program.
//! - [`sse`]: reading server-sent events; [`stream`]: an answer that comes as such.
//! - [`session`]: MCP over Streamable HTTP.
//! - [`document`]: fetching an OpenAPI document at build time.

mod answer;
mod body;
pub(crate) mod client;
mod connector;
pub(crate) mod document;
mod repeat;
pub(crate) mod session;
mod sse;
pub(crate) mod status;
mod stream;
pub(crate) mod tls;
