//! A config served without a binary of its own: its upstreams are asked for what the lock file does not have.
//!
//! `ptc-compile run` and embedding programs share this module. It is the only part of the library that reads files and contacts
//! upstreams, and it needs the feature `serve`.
//!
//! - [`Source`]: a config file; [`Source::open`] gives a deployment and a builder of engines over it.
//! - [`ask`]: asks several upstreams at the same time.
//! - [`catalog`]: which upstreams must be asked, and the lock and the tables that the answers give.
//! - [`files`]: the files beside a config.
//!
//! The tools of MCP upstreams are listed at one of two times ([`SnapshotMode`]):
//!
//! - `Frozen`: by [`Source::open`], for each upstream that the lock file does not cover. The catalog does not change afterwards.
//! - `StaticDeployment`: by the first program that needs the upstream. The lock file decides nothing about its tools.

pub mod ask;
pub mod catalog;
pub mod files;
mod source;

pub use ptc_runtime::settings::SnapshotMode;
pub use source::{Findings, OpenError, Served, Source};
