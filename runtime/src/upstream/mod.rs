//! Reaching upstreams: validated calls, connections that come and go, answers under caps and without secrets.
//!
//! - `program`: what one evaluation sees: [`ProgramHost`], its budgets and its record of calls.
//! - `arguments`: what a call sends, measured and counted before it is encoded.
//! - `request`: reading `(tool/call …)` against the catalog.
//! - `dispatch`: one call, from the connection to the payload.
//! - `places`: how many calls of an upstream may be in flight, and who waits for one; `pace`: bursts of calls, spread.
//! - `lifecycle`: when connections are made, lost and made again; `stage`: how far a call has come.
//! - `incoming`: how much of the answers that are being read a program may hold.
//! - `snapshot`: the catalog as it is now: frozen, or filled when it is asked for.
//! - `drift`: what a server's tools have become since the catalog was frozen.
//! - `mcp`: the protocol; `stdio` and `http` carry it; `openapi` calls JSON services.
//! - `offload`: work that would hold up the event loop.
//! - `contact`: what a compiler asks of an upstream: its tools, an OpenAPI document.

pub(crate) mod arguments;
mod dispatch;
mod drift;
pub mod fault;
#[cfg(feature = "http")]
pub(crate) mod http;
mod lifecycle;
mod mcp;
mod offload;
#[cfg(feature = "http")]
mod openapi;
mod pace;
mod places;
mod program;
mod query_tools;
mod record;
mod request;
pub(crate) mod response_budget;
mod settings;
mod snapshot;
pub(crate) mod stage;
mod stdio;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ptc_catalog::{Catalog, Deployment, Upstream};

pub use fault::{Reason, UpstreamError};
pub use program::{ProgramHost, WaitLimits};
#[cfg(feature = "http")]
pub use query_tools::fetch_document;
pub use query_tools::{Contacts, Listing, list_granted_tools, list_tools};
pub use record::{AuthUsed, CallRecord};
pub use settings::{OnDrift, ResponseCap, UpstreamSettings};
pub use snapshot::Load;

use crate::discovery::LazyIndex;
use crate::secrets::{Redactor, Secrets};
use dispatch::UpstreamConnection;
pub(crate) use request::{find_tool, find_upstream};
use snapshot::Snapshot;

/// Time that children have to end after they were asked to.
const GRACE: Duration = Duration::from_millis(1_500);

/// All upstreams of a server. Connections are made when they are needed.
pub struct Upstreams {
    secrets: Arc<Secrets>,
    redactor: Redactor,
    settings: UpstreamSettings,
    /// In the order of the catalog.
    connections: Vec<Arc<UpstreamConnection>>,
    snapshot: Snapshot,
    /// The index that `apropos` builds where the catalog has none.
    search_index: LazyIndex,
}

impl Upstreams {
    /// The upstreams of a deployment; nothing is started or sent.
    pub fn new(deployment: &'static Deployment, secrets: Secrets, settings: UpstreamSettings) -> Arc<Upstreams> {
        Upstreams::over(Snapshot::frozen(deployment.catalog), deployment, secrets, settings, None)
    }

    /// The same with MCP upstreams that are asked for their tools by the first form or call that needs them; `load` makes of the
    /// answer what the catalog holds. From then on it is that which later connections are compared with.
    pub fn live(
        deployment: &'static Deployment,
        secrets: Secrets,
        settings: UpstreamSettings,
        load: Arc<dyn Load>,
    ) -> Arc<Upstreams> {
        Upstreams::over(Snapshot::live(deployment.catalog, load), deployment, secrets, settings, None)
    }

    /// The upstreams of a deployment whose catalog was made of what `earlier` ones said: connections that are still open are taken
    /// over, so that no child is started twice.
    pub(crate) fn taking_over(
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
        settings: UpstreamSettings,
        earlier: Option<&Upstreams>,
    ) -> Arc<Upstreams> {
        let redactor = secrets.redactor();
        let connection = |upstream: &'static Upstream| match earlier.and_then(|earlier| earlier.connection(upstream.name)) {
            Some(earlier) => UpstreamConnection::taking_over(upstream, earlier),
            None => UpstreamConnection::new(upstream),
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

    /// The host of one evaluation, with fresh budgets and an empty record. `limits` bounds what it waits for on the
    /// evaluation's thread.
    pub fn program(self: &Arc<Self>, limits: WaitLimits) -> Arc<ProgramHost> {
        Arc::new(ProgramHost::new(Arc::clone(self), limits))
    }

    /// The catalog as it is now. A live one has no tools of upstreams that were not asked for them yet.
    pub fn catalog(&self) -> &'static Catalog {
        self.snapshot.catalog()
    }

    /// Whether the tools of an upstream are still to be asked for.
    pub fn is_unlisted(&self, name: &str) -> bool {
        self.snapshot.is_unlisted(name)
    }

    /// Connects to an MCP upstream, lists its tools and keeps the connection. `granted` are the tools whose definitions are needed:
    /// of every other tool only the name is kept. `None` grants all. Must run inside a tokio runtime. Messages are redacted.
    pub async fn list_granted_tools(&self, name: &str, granted: Option<BTreeSet<String>>) -> Result<Listing, UpstreamError> {
        let connection = self.connection(name).ok_or_else(|| UpstreamError::unavailable("there is no such upstream"))?;
        let listed = stage::followed(Box::pin(connection.list(query_tools::keep(granted), &self.secrets, &self.settings))).await;
        listed.map_err(|fault| self.clean(fault))
    }

    /// Asks an upstream for its tools where that was not done yet.
    async fn list(&self, name: &str) -> Result<(), UpstreamError> {
        let Some(connection) = self.connection(name) else { return Ok(()) };
        let listed =
            self.snapshot.list(name, |granted| connection.list(query_tools::keep(granted), &self.secrets, &self.settings)).await;
        listed.map_err(|fault| self.clean(fault))
    }

    fn connection(&self, name: &str) -> Option<&Arc<UpstreamConnection>> {
        self.connections.iter().find(|connection| connection.upstream().name == name)
    }

    /// Certificates that HTTPS trusts beside the system's, as PEM.
    #[cfg(any(feature = "agentic", feature = "otlp"))]
    pub(crate) fn extra_roots(&self) -> Option<Arc<[u8]>> {
        self.settings.extra_roots.clone()
    }

    /// The deployment's secrets.
    #[cfg(any(feature = "agentic", feature = "otlp"))]
    pub(crate) fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// The redactor of the deployment's secrets.
    pub fn redactor(&self) -> Redactor {
        self.redactor.clone()
    }

    /// Connects to every MCP upstream at once. `Err` names each that cannot be reached.
    pub async fn connect_all(self: &Arc<Self>) -> Result<(), Vec<(&'static str, UpstreamError)>> {
        let attempts: Vec<_> = self
            .connections
            .iter()
            .map(|connection| {
                let (connection, this) = (Arc::clone(connection), Arc::clone(self));
                (connection.upstream().name, tokio::spawn(async move { connection.connect(&this.secrets, &this.settings).await }))
            })
            .collect();
        let mut faults = Vec::new();
        for (name, attempt) in attempts {
            match attempt.await {
                Ok(Ok(())) => {}
                Ok(Err(fault)) => faults.push((name, self.clean(fault))),
                Err(_) => faults.push((name, UpstreamError::unavailable("the attempt to connect was given up"))),
            }
        }
        if faults.is_empty() { Ok(()) } else { Err(faults) }
    }

    /// Ends every connection: sessions are closed, children asked to end and killed with their groups where they do not.
    /// Calls in flight fail, later ones are refused.
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

    fn clean(&self, fault: UpstreamError) -> UpstreamError {
        let message = self.redactor.redact_string(fault.message.into_owned());
        UpstreamError { message: message.into(), ..fault }
    }
}

/// Whether a PEM text holds certificates; `Err` says what it lacks.
#[cfg(feature = "http")]
pub(crate) fn check_certificates(pem: &[u8]) -> Result<(), String> {
    http::tls::roots(pem).map(drop)
}
