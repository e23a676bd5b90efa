//! The recording of programs and the replay of recordings: the interface of the optional part that does both.

use std::fmt::Debug;
use std::sync::Arc;

use ptc_catalog::Catalog;

use crate::settings::InterceptionSettings;
use crate::upstream::intercept::Interceptor;

/// Opens what `--record-dir` and `--upstreams` name.
pub trait RecorderSource: Debug + Sync {
    /// Returns what records the programs of a server with this catalog.
    ///
    /// # Errors
    ///
    /// Returns a sentence if the folder cannot be used, or if a rule of `--scrub` or `--scrub-pattern` or the key of
    /// `--scrub-key-env` is invalid.
    fn open(&self, settings: &InterceptionSettings, catalog: &'static Catalog) -> Result<Arc<dyn Interceptor>, String>;

    /// Returns what answers the calls of programs with the recorded answers of `--upstreams cassette:FILE`.
    ///
    /// # Errors
    ///
    /// Returns a sentence if the file is not a cassette of this catalog, or if a rule or the key is invalid.
    fn replay(&self, settings: &InterceptionSettings, catalog: &'static Catalog) -> Result<Arc<dyn Interceptor>, String>;
}
