//! The catalog of a deployment, as static data.
//!
//! `ptc-compile` renders these types as `static` tables, and the runtime reads them. All data is plain and `&'static`, so that
//! thousands of tools compile in seconds and cost nothing at start. The compiler validates the data before it renders them: names
//! are unique, tables are sorted, JSON texts parse.
//!
//! A catalog that is built at run time is leaked to obtain the same types.
//!
//! ```
//! use ptc_catalog::{Catalog, McpStdio, Tools, Transport, Upstream};
//!
//! static CATALOG: Catalog = Catalog {
//!     digest: "sha256:0000",
//!     search_index: &[],
//!     upstreams: &[Upstream {
//!         name: "notes",
//!         description: "Notes on disk.",
//!         transport: Transport::McpStdio(McpStdio::new("notes-server")),
//!         tools: Tools::NONE,
//!     }],
//! };
//! assert!(CATALOG.upstream("notes").is_some());
//! assert_eq!(CATALOG.tool_count(), 0);
//! ```
//!
//! - [`body_kind`]: how a body is read and written, by its media type.
//! - [`effect`]: whether a call of a tool may change something.
//! - [`deployment`]: the contents of one binary: catalog, credential bindings, digests.
//! - [`upstream`]: upstreams and their transports.
//! - [`oauth`]: how an upstream's access tokens are obtained.
//! - [`proxy`]: the proxy of an upstream, and its exceptions.
//! - [`sandbox`]: what a child process may use.
//! - [`paging`]: how a tool divides a list into pages.
//! - [`owner`]: the owners that rules of a policy name.
//! - [`policy`]: which callers may call which tools.
//! - [`tool`]: tools with their arguments and effects.
//! - [`tools`]: the tools of an upstream, as a table or in an image that is read when they are needed.
//! - `wildcard`: patterns in which `*` matches any characters.

#![forbid(unsafe_code)]

// The runtime and the compiler depend on this crate, so that a build of either ends here.
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
compile_error!("ptc-compile and its binaries run on Linux and macOS: build them there, on Windows inside WSL");

pub mod body_kind;
pub mod deployment;
pub mod effect;
#[cfg(feature = "serde")]
mod leaked;
pub mod oauth;
pub mod owner;
pub mod paging;
pub mod policy;
pub mod proxy;
pub mod sandbox;
pub mod tool;
pub mod tools;
pub mod upstream;
mod wildcard;

pub use body_kind::{BodyKind, RequestKind};
pub use deployment::{Binding, Catalog, Deployment, Source, StoredProgram};
pub use effect::{Effect, EffectKind};
pub use oauth::{ClientAuth, GrantType, IdentityProvider, OAuth2, TokenType};
pub use owner::{OwnerName, owner_id};
pub use paging::{By, Paging};
pub use policy::{Condition, Grant, PermittedValues, Policy, Rule};
pub use proxy::Proxy;
pub use sandbox::Sandbox;
pub use tool::{Annotations, Answers, Arg, Body, Operation, Param, Params, Place, Style, Tool, Type, Types};
pub use tools::{Deferred, ToolFacts, Tools};
pub use upstream::{
    Auth, EnvPart, Era, HttpTransport, InheritEnv, KeyPlace, ListingLimits, McpHttp, McpStdio, OpenApi, RESERVED_PREFIX,
    Transport, Upstream,
};
pub use wildcard::matches_wildcard;
