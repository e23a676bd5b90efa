//! The catalog of a deployment, as data.
//!
//! `ptc-compile` renders these types as `static` tables; the runtime reads them. Everything is `&'static` and plain, so that
//! thousands of tools compile in seconds and cost nothing at start. Nothing here can be invalid in a way that the
//! compiler does not refuse first: names are unique, tables are sorted, JSON texts parse.
//!
//! A catalog that is built while a program runs is leaked into the same types.
//!
//! ```
//! use ptc_catalog::{Catalog, McpStdio, Transport, Upstream};
//!
//! static CATALOG: Catalog = Catalog {
//!     digest: "sha256:0000",
//!     search_index: &[],
//!     upstreams: &[Upstream {
//!         name: "notes",
//!         description: "Notes on disk.",
//!         transport: Transport::McpStdio(McpStdio::new("notes-server")),
//!         tools: &[],
//!     }],
//! };
//! assert!(CATALOG.upstream("notes").is_some());
//! assert_eq!(CATALOG.tool_count(), 0);
//! ```
//!
//! - [`deployment`]: what one binary is made of: catalog, credential bindings, digests.
//! - [`upstream`]: upstreams and how each is reached.
//! - [`paging`]: how the list that a tool gives is divided into pages.
//! - [`suspect`]: what looks like a secret in plain sight.
//! - [`tool`]: tools, their arguments and what is known of their results.

#![forbid(unsafe_code)]

pub mod deployment;
pub mod paging;
pub mod suspect;
pub mod tool;
pub mod upstream;

pub use deployment::{Binding, Catalog, Deployment, Source, StoredProgram};
pub use paging::{By, Paging};
pub use tool::{Annotations, Arg, Operation, Param, Params, Place, Style, Tool, Type, Types};
pub use upstream::{
    Auth, EnvPart, Era, InheritEnv, ListingLimits, McpHttp, McpStdio, OpenApi, RESERVED_PREFIX, Transport, Upstream,
};
