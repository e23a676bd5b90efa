//! Clients of upstreams: validates calls, manages connections, and limits and redacts answers.
//!
//! - [`access`]: what a caller may call, as the crate that evaluates policies implements it.
//! - [`caller_token`]: the access token of a caller on whose behalf upstreams are called. `caller_sessions`: its sessions with MCP servers.
//! - `program`: the host of one evaluation, [`ProgramHost`], with its budgets and its record of calls.
//! - `arguments`: measures and reserves the arguments of a call before they are encoded.
//! - `request`: validates `(tool/call …)` against the catalog.
//! - `call_rules`: whether a call counts as a write, and whether it may be sent again.
//! - `dispatch`: makes one call, from the connection to the payload.
//! - `time_limit`: the time limit of a call. `call_limiter`: limits the calls of an upstream in flight, with a queue. `pace`: spreads bursts of calls.
//! - `intercept`: answers calls in place of the upstreams, or observes them, with the feature `interception`.
//! - `lifecycle`: makes and replaces connections. `stage`: tracks the stage of a call.
//! - `start_limits`: how many upstreams start at the same time. `children`: how many child processes run, and the end of idle ones.
//! - `health`: which upstreams are down, and the log lines about them.
//! - `response_budget`: limits the bytes of answers that are being read.
//! - `snapshot`: the current catalog, which is frozen or filled on demand.
//! - `drift`: detects differences between a server's tools and the catalog.
//! - `mcp`: the protocol. `stdio` and `http` are its transports. `openapi` calls JSON services.
//! - [`offload`]: moves long work off the event loop.
//! - `query_tools`: queries of a compiler to an upstream: its tools, an OpenAPI document.
//! - `fuzzing`: entry points of fuzz targets, with the feature of that name.

pub mod access;
pub mod arguments;
mod call_limiter;
mod call_rules;
#[cfg(feature = "access-token")]
mod caller_sessions;
pub mod caller_token;
mod children;
pub mod discovery;
mod dispatch;
mod drift;
pub mod fault;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod health;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "interception")]
pub mod intercept;
mod lifecycle;
mod mcp;
pub mod offload;
#[cfg(feature = "http")]
mod openapi;
mod pace;
mod program;
mod query_tools;
mod record;
mod request;
pub(crate) mod response_budget;
mod settings;
mod snapshot;
pub mod stage;
mod start_limits;
mod stdio;
mod time_limit;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ptc_catalog::{Catalog, Deployment, Upstream};

pub(crate) use call_rules::CallRules;
pub use children::Children;
pub use fault::{Reason, UpstreamError};
pub use mcp::wire::OutgoingFrame;
pub use program::{ProgramHost, WaitLimits, nothing_written};
#[cfg(feature = "http")]
pub use query_tools::fetch_document;
pub use query_tools::{Contacts, Listing, list_granted_tools, list_tools};
pub use record::{AuthUsed, CallRecord, CallReport};
pub use request::unknown_tool;
pub use settings::{OnDrift, ResponseCap, UpstreamSettings};
pub use snapshot::Load;
pub use start_limits::{StartLimits, attempt_all};

use crate::discovery::LazyIndex;
use dispatch::UpstreamConnection;
use health::Health;
use ptc_secrets::{Redactor, Secrets};
pub(crate) use request::{find_tool, find_upstream};
use snapshot::Snapshot;

/// Time limit for children to exit after they were asked to.
const GRACE: Duration = Duration::from_millis(1_500);

/// All upstreams of a server. Connections are made on demand.
pub struct Upstreams {
    secrets: Arc<Secrets>,
    redactor: Redactor,
    settings: UpstreamSettings,
    /// The connections, in the order of the catalog.
    connections: Vec<Arc<UpstreamConnection>>,
    snapshot: Snapshot,
    /// The search index, built by `apropos` if the catalog has none.
    search_index: LazyIndex,
}

impl Upstreams {
    /// Creates the upstreams of a deployment. Nothing is started or sent.
    pub fn new(deployment: &'static Deployment, secrets: Secrets, settings: UpstreamSettings) -> Arc<Upstreams> {
        Upstreams::over(Snapshot::frozen(deployment.catalog), deployment, secrets, settings, None)
    }

    /// Like [`Upstreams::new`], but the tools of MCP upstreams are fetched by the first form or call that needs them. `load`
    /// converts the answer to its form in the catalog, with which later connections are compared.
    pub fn live(
        deployment: &'static Deployment,
        secrets: Secrets,
        settings: UpstreamSettings,
        load: Arc<dyn Load>,
    ) -> Arc<Upstreams> {
        Upstreams::over(Snapshot::live(deployment.catalog, load), deployment, secrets, settings, None)
    }

    /// Creates the upstreams of a deployment whose catalog was made from the answers of `earlier` ones. Their open connections
    /// are taken over, so that no child is started twice.
    pub fn taking_over(
        deployment: &'static Deployment,
        secrets: Secrets,
        settings: UpstreamSettings,
        earlier: &Upstreams,
    ) -> Arc<Upstreams> {
        Upstreams::over(Snapshot::frozen(deployment.catalog), deployment, secrets, settings, Some(earlier))
    }

    fn over(
        snapshot: Snapshot,
        deployment: &'static Deployment,
        secrets: Secrets,
        mut settings: UpstreamSettings,
        earlier: Option<&Upstreams>,
    ) -> Arc<Upstreams> {
        if let Some(earlier) = earlier {
            settings.children = earlier.settings.children.clone();
            // Connections that are taken over use the earlier sources.
            #[cfg(feature = "http")]
            if earlier.settings.access_tokens.has_factory() {
                settings.access_tokens = earlier.settings.access_tokens.clone();
            }
            earlier.redactor.share_issued_with(&secrets.redactor());
        }
        let redactor = secrets.redactor();
        let connection = |upstream: &'static Upstream| match earlier.and_then(|earlier| earlier.connection(upstream.name)) {
            Some(earlier) => UpstreamConnection::taking_over(upstream, earlier, settings.logs_health),
            None => UpstreamConnection::new(upstream, settings.logs_health),
        };
        let connections = deployment.catalog.upstreams.iter().map(|upstream| Arc::new(connection(upstream))).collect();
        Arc::new(Upstreams {
            secrets: Arc::new(secrets),
            redactor,
            settings,
            connections,
            snapshot,
            search_index: LazyIndex::default(),
        })
    }

    /// Creates the host of one evaluation, with new budgets and an empty record. `limits` applies to waits on the evaluation's
    /// thread.
    pub fn program(self: &Arc<Self>, limits: WaitLimits) -> Arc<ProgramHost> {
        Arc::new(ProgramHost::new(Arc::clone(self), limits))
    }

    /// Returns the current catalog. A live catalog lacks the tools of upstreams that were not fetched yet.
    pub fn catalog(&self) -> &'static Catalog {
        self.snapshot.catalog()
    }

    /// Whether the tools of an upstream were not fetched yet.
    pub fn is_unlisted(&self, name: &str) -> bool {
        self.snapshot.is_unlisted(name)
    }

    /// Connects to an MCP upstream, lists its tools and keeps the connection. Only the definitions of the tools in `granted` are
    /// kept, and the names of the others. `None` grants all. Must be called inside a Tokio runtime. Messages are redacted.
    ///
    /// # Errors
    ///
    /// Returns an error if the deployment has no MCP upstream of that name, if the upstream cannot be reached in time, or if its
    /// list of tools is invalid or exceeds the limits of its entry.
    pub async fn list_granted_tools(&self, name: &str, granted: Option<BTreeSet<String>>) -> Result<Listing, UpstreamError> {
        let connection = self.connection(name).ok_or_else(|| UpstreamError::unavailable("there is no such upstream"))?;
        let listed = stage::followed(Box::pin(connection.list(query_tools::keep(granted), &self.secrets, &self.settings))).await;
        listed.map_err(|fault| self.clean(fault))
    }

    /// Fetches the tools of an upstream, unless that was done before.
    async fn list(&self, name: &str) -> Result<(), UpstreamError> {
        let Some(connection) = self.connection(name) else { return Ok(()) };
        let listed =
            self.snapshot.list(name, |granted| connection.list(query_tools::keep(granted), &self.secrets, &self.settings)).await;
        listed.map_err(|fault| self.clean(fault))
    }

    fn connection(&self, name: &str) -> Option<&Arc<UpstreamConnection>> {
        self.connections.iter().find(|connection| connection.upstream().name == name)
    }

    /// Returns the PEM certificates that are trusted in addition to the system's.
    pub fn extra_roots(&self) -> Option<Arc<[u8]>> {
        self.settings.extra_roots.clone()
    }

    /// Returns the deployment's secrets.
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Returns the redactor of the deployment's secrets.
    pub fn redactor(&self) -> Redactor {
        self.redactor.clone()
    }

    /// Iterates over the health of all upstreams, by name.
    pub fn health(&self) -> impl Iterator<Item = (&'static Upstream, &Health)> {
        self.connections.iter().map(|connection| (connection.upstream(), &**connection.health()))
    }

    /// Connects again to the MCP upstreams that are down. Returns at once.
    pub fn reconnect(self: &Arc<Self>) {
        for connection in self.connections.iter().filter(|connection| connection.health().down_within(Duration::MAX).is_some()) {
            let (connection, this) = (Arc::clone(connection), Arc::clone(self));
            self.settings.handle.spawn(async move { connection.connect(&this.secrets, &this.settings).await });
        }
    }

    /// Connects to all MCP upstreams concurrently.
    ///
    /// # Errors
    ///
    /// Returns each upstream that cannot be reached.
    pub async fn connect_all(self: &Arc<Self>) -> Result<(), Vec<(&'static str, UpstreamError)>> {
        if self.settings.is_offline() {
            return Ok(());
        }
        let outcomes = attempt_all(&self.connections, self.settings.connect_timeout, |connection| {
            let (connection, this) = (Arc::clone(connection), Arc::clone(self));
            async move { connection.connect(&this.secrets, &this.settings).await }
        });
        let names = self.connections.iter().map(|connection| connection.upstream().name);
        let faults: Vec<_> =
            names.zip(outcomes.await).filter_map(|(name, outcome)| Some((name, self.clean(outcome.err()?)))).collect();
        if faults.is_empty() { Ok(()) } else { Err(faults) }
    }

    /// Closes all connections. Sessions are ended, and children are asked to exit. The process groups of those that do not are
    /// killed. Calls in flight fail, and later ones are refused.
    pub async fn shutdown(&self) {
        let ends: Vec<_> = self
            .connections
            .iter()
            .map(|connection| {
                let connection = Arc::clone(connection);
                tokio::spawn(async move { connection.shutdown(GRACE).await })
            })
            .collect();
        for end in ends {
            let _ = end.await;
        }
    }

    /// Waits until the interceptor of the calls has written everything. Blocks.
    #[cfg(feature = "interception")]
    pub fn finish_interception(&self) {
        if let Some(interceptor) = &self.settings.interceptor {
            interceptor.finish();
        }
    }

    fn clean(&self, fault: UpstreamError) -> UpstreamError {
        let of_caller = caller_token::redactor();
        let message = of_caller.as_ref().unwrap_or(&self.redactor).redact_string(fault.message.into_owned());
        UpstreamError { message: message.into(), ..fault }
    }
}

/// Checks that a PEM text contains certificates.
///
/// # Errors
///
/// Returns a clause if the text contains no certificate, or one that cannot be read.
#[cfg(feature = "http")]
pub fn check_certificates(pem: &[u8]) -> Result<(), String> {
    http::tls::roots(pem).map(drop)
}
