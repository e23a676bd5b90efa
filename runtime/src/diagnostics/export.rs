//! Export of calls to a collector. A crate above this one implements it.

use std::ffi::OsString;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use super::Payloads;
use super::record::Record;
use crate::secrets::{Redactor, Secrets};
use crate::settings::Fault;
#[cfg(feature = "proxy")]
use crate::upstream::http::proxy::ResolvedProxy;

/// Reads the settings of an exporter.
pub trait ExporterSource: Debug + Sync {
    /// Reads the settings from the value of `--otlp-endpoint` and from environment variables.
    ///
    /// # Errors
    ///
    /// Returns a fault for each invalid value.
    fn read(&self, endpoint: Option<&str>, var: &dyn Fn(&str) -> Option<OsString>) -> Result<ReadSettings, Vec<Fault>>;
}

/// Settings of an exporter with warnings. The settings are `None` if nothing is to be exported.
pub type ReadSettings = (Option<Box<dyn ExporterSettings>>, Vec<String>);

/// The settings of an exporter that has not started.
pub trait ExporterSettings: Debug {
    /// Returns the secrets in the settings, which are redacted everywhere.
    fn secrets(&self) -> Vec<&str>;

    /// Starts the exporter for the deployment with this name.
    ///
    /// # Errors
    ///
    /// Returns a sentence if a setting or a certificate is invalid, or if the operating system has no thread for the exporter.
    fn start(
        &self,
        secrets: &Secrets,
        connection: Connection,
        redactor: &Redactor,
        deployment: &str,
    ) -> Result<Arc<dyn Exporter>, String>;
}

/// How the connections of an exporter, or of another optional part, are made.
#[derive(Clone)]
#[non_exhaustive]
pub struct Connection {
    /// Certificates that are trusted beside those of the system, as PEM.
    pub extra_roots: Option<Arc<[u8]>>,
    /// The proxy.
    #[cfg(feature = "proxy")]
    pub proxy: Option<ResolvedProxy>,
}

/// Exports calls. It never blocks a call and never makes one fail.
pub trait Exporter: Send + Sync {
    /// Exports a call that has ended.
    fn enqueue(&self, record: &Record, payloads: Payloads);

    /// Returns its counters for Prometheus.
    fn counters(&self) -> Vec<Counter>;

    /// Sends the rest, for at most `most`.
    fn end(&self, most: Duration);
}

/// A counter of Prometheus.
#[derive(Debug, Clone, Copy)]
pub struct Counter {
    /// Its name.
    pub name: &'static str,
    /// A description.
    pub help: &'static str,
    /// The number since the start.
    pub value: u64,
}
