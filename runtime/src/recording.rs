//! The recording of programs: the interface of the optional part that does it.

use std::fmt::Debug;
use std::sync::Arc;

use ptc_catalog::Catalog;

use crate::settings::InterceptionSettings;
use crate::upstream::intercept::Interceptor;

/// Opens what `--record-dir` names.
pub trait RecorderSource: Debug + Sync {
    /// Returns what records the programs of a server with this catalog.
    ///
    /// # Errors
    ///
    /// Returns a sentence if the folder cannot be used, or if a rule of `--scrub` or `--scrub-pattern` is invalid.
    fn open(&self, settings: &InterceptionSettings, catalog: &'static Catalog) -> Result<Arc<dyn Interceptor>, String>;
}
