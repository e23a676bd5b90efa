//! Serves a config without building a binary. Upstreams are asked for everything that the lock file does not have.
//!
//! `ptc-compile run` and embedding programs share this module. It is the only part of the library that contacts upstreams. It
//! needs the feature `serve`.
//!
//! - [`Source`]: a config file; [`Source::open`] gives a deployment and a builder of engines over it.
//! - [`ask`]: asks several upstreams at the same time.
//! - [`cassette`]: records the answers of upstreams, and replays them.
//! - [`observe`]: infers the shapes of results from answers.
//! - [`private_file`]: replaces files that only their owner may read.
//! - [`catalog`]: selects the upstreams that must be asked, and makes the lock and the tables from their answers.
//!
//! The tools of MCP upstreams are listed at one of two times ([`SnapshotMode`]):
//!
//! - `Frozen`: by [`Source::open`], for each upstream that the lock file does not cover. The catalog does not change afterwards.
//! - `Live`: by the first program that needs the upstream. Tools of the lock file are ignored.

pub mod ask;
pub mod catalog;
pub mod observe;
mod source;

pub use ptc_cassette::{self as cassette, private_file};
pub use ptc_runtime::settings::SnapshotMode;
pub use source::{Findings, OpenError, Served, Source};
