//! `upstreams.json`: from tree to checked model.
pub mod model;

use crate::diag::Diagnostics;
use crate::source::{FileId, Sources};
pub use model::Config;

/// Reads a config.
pub fn read(sources: &Sources, file: FileId, diagnostics: &mut Diagnostics) -> Option<Config> {
    crate::tree::parse(sources, file, diagnostics)?;
    None
}
