//! A web page that shows traces: in a server with `--http-viewer`, or separately as `ptc-compile viewer`.
//!
//! - [`folder`]: reads the trace files.
//! - [`row`]: summarises a call as a row of the list.
//! - [`routes`]: the HTTP endpoints and their authentication.
//! - [`standalone`]: a listener without a server.
//!
//! The page consists of a few files in the binary and loads nothing else. The content of traces comes from clients, models and
//! upstreams. It is treated as data and text, never as markup or as a path.

pub mod folder;
pub mod routes;
pub mod row;
pub mod standalone;

pub use routes::Viewer;
