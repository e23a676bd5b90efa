//! A web page that shows traces: in a server with `--http-viewer`, or separately as `ptc-compile viewer`.
//!
//! A server has the page if its `main` passes [`VIEWER`] in [`Parts::viewer`](ptc_runtime::Parts::viewer).
//!
//! - [`command`]: `ptc-compile viewer`.
//! - [`folder`]: reads the trace files.
//! - [`row`]: summarises a call as a row of the list.
//! - [`routes`]: the HTTP endpoints and their authentication.
//! - [`standalone`]: a listener without a server.
//!
//! The page consists of a few files in the binary and loads nothing else. The content of traces comes from clients, models and
//! upstreams. It is treated as data and text, never as markup or as a path.

pub mod command;
pub mod folder;
pub mod routes;
pub mod row;
pub mod standalone;

use std::path::Path;
use std::sync::Arc;

use ptc_runtime::server::http::{Pages, TraceViewer};

pub use routes::Viewer;

/// The page of traces: the part that `main` passes to the runtime.
pub static VIEWER: ViewerPart = ViewerPart;

/// Makes the page for a folder of traces.
#[derive(Debug)]
pub struct ViewerPart;

impl TraceViewer for ViewerPart {
    fn path(&self) -> &'static str {
        routes::PATH
    }

    fn pages(&self, folder: &Path) -> Arc<dyn Pages> {
        Viewer::new(folder)
    }
}
