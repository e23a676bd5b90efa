//! HTTP clients, and everything about connections and TLS.
//!
//! - [`access_token`]: the access tokens of an upstream, which a crate above this one obtains.
//! - `address`: limits the addresses to which metadata of authorization can lead.
//! - `authorized`: sends requests with access tokens.
//! - [`authorization_server`]: where an authorization server publishes its metadata.
//! - [`client`]: a client for one upstream, with its headers, credentials, redirects, retries and size limits.
//! - `credentials`: headers, cookies, query parameters and certificates that carry secrets.
//! - `connecting`: the stage of a call while its connection is made. `tls`: trusted certificates.
//! - [`proxy`]: the proxy of a client, with its credentials and exceptions.
//! - `body`: the body of a request.
//! - [`answer`]: a response. [`status`]: the meaning of its status for a program.
//! - `sse`: parses server-sent events. `stream`: reads a response that is an event stream.
//! - `connect`: chooses the transport of an MCP server. `session`: MCP over Streamable HTTP. `shared_stream`: MCP over HTTP+SSE, the
//!   transport of revision 2024-11-05.
//! - `document`: fetches OpenAPI documents at build time.

pub mod access_token;
#[cfg(feature = "access-token")]
pub mod address;
pub mod answer;
pub mod authorization_server;
#[cfg(feature = "access-token")]
mod authorized;
mod body;
pub mod client;
pub(crate) mod connect;
mod connecting;
mod credentials;
pub(crate) mod document;
pub mod proxy;
pub(crate) mod session;
mod shared_stream;
pub(super) mod sse;
pub mod status;
mod stream;
pub(crate) mod tls;
