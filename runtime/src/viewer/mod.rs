//! A page for people who look at traces: in a server behind `--http-viewer`, or on its own as `ptc-compile viewer`.
//!
//! - [`folder`]: which files are traces, and what is in them.
//! - [`row`]: one call as a row of the list.
//! - [`routes`]: requests in, answers out; the endpoints, and who may ask.
//! - [`standalone`]: a listener without a server.
//!
//! The page is a few files of the binary and asks for nothing else. What traces hold came from clients, models and upstreams: it is
//! data here and text there, never markup and never a path.

pub mod folder;
pub mod routes;
pub mod row;
pub mod standalone;

pub use routes::Viewer;
