//! Queries of a compiler to an upstream while it freezes a catalog.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ptc_catalog::{Deployment, Era, HttpTransport, ListingLimits, Transport, Upstream};
use serde_json::value::RawValue;
use tokio::runtime::Runtime;

use super::fault::UpstreamError;
use super::health::Health;
use super::mcp::listing::{Keep, Query};
use super::mcp::{Channel, Negotiated};
use super::settings::UpstreamSettings;
use super::stage;
use super::stdio::{self, Grace};
use super::{GRACE, Upstreams};
use ptc_secrets::Secrets;

/// Time limit for all pages of a list, if it is longer than that of the handshake.
const LISTING_TIME: Duration = Duration::from_secs(30);

/// The description that an MCP server returns of itself.
#[derive(Debug)]
pub struct Listing {
    /// The negotiated era.
    pub era: Era,
    /// The negotiated revision.
    pub revision: &'static str,
    /// The server's name. Empty if it has none.
    pub server_name: String,
    /// The server's version. Empty if it has none.
    pub server_version: String,
    /// The server's instructions for models.
    pub instructions: Option<String>,
    /// The transport, if it is one of the two over HTTP.
    pub http_transport: Option<HttpTransport>,
    /// The definitions of all tools, unchanged and in the server's order. A tool that is not granted may be reduced to its name.
    pub tools: Vec<Box<RawValue>>,
}

/// Connects to an MCP upstream, lists its tools and disconnects. Must be called inside a Tokio runtime. An OpenAPI upstream has
/// no list of tools. Messages are redacted.
///
/// # Errors
///
/// Returns an error if the upstream is not an MCP upstream or cannot be reached in time, or if its list of tools is invalid or
/// exceeds the limits of its entry.
pub async fn list_tools(
    upstream: &'static Upstream,
    secrets: &Secrets,
    settings: &UpstreamSettings,
) -> Result<Listing, UpstreamError> {
    list_granted_tools(upstream, None, secrets, settings).await
}

/// Like [`list_tools`], but keeps only the definitions of `granted` tools, and the names of the others. `None` grants all.
///
/// # Errors
///
/// Returns an error as [`list_tools`] does.
pub async fn list_granted_tools(
    upstream: &'static Upstream,
    granted: Option<BTreeSet<String>>,
    secrets: &Secrets,
    settings: &UpstreamSettings,
) -> Result<Listing, UpstreamError> {
    let keep = keep(granted);
    stage::followed(Box::pin(listed(upstream, keep, secrets, settings))).await.map_err(|fault| {
        let message = secrets.redactor().redact_string(fault.message.into_owned());
        UpstreamError { message: message.into(), ..fault }
    })
}

/// Returns which definitions to keep. `None` keeps all.
pub(super) fn keep(granted: Option<BTreeSet<String>>) -> Keep {
    granted.map_or(Keep::All, |granted| Keep::Granted(Arc::new(granted)))
}

async fn listed(
    upstream: &'static Upstream,
    keep: Keep,
    secrets: &Secrets,
    settings: &UpstreamSettings,
) -> Result<Listing, UpstreamError> {
    let query = |limits: ListingLimits| Query { upstream: upstream.name, limits, keep };
    match &upstream.transport {
        Transport::McpStdio(spec) => {
            let place = settings.children.admit().await.ready(None).await;
            let _starting = settings.start_limits.process().await;
            let health = Health::new(upstream.name, false);
            match stdio::connect(&health, upstream.name, spec, spec.era, secrets, settings, &place).await {
                Ok(connected) => {
                    let found =
                        list(connected.channel(), &connected.negotiated, &query(spec.listing), spec.handshake_timeout_ms).await;
                    connected.child.end(Grace::shutdown(GRACE));
                    connected.child.gone().await;
                    found
                }
                Err(fault) => Err(fault),
            }
        }
        #[cfg(feature = "http")]
        Transport::McpHttp(spec) => {
            let _starting = settings.start_limits.connection().await;
            match super::http::connect::connect(upstream.name, spec, secrets, settings).await {
                Ok(session) => {
                    let found =
                        list(session.channel(), &session.negotiated, &query(spec.listing), spec.handshake_timeout_ms).await;
                    session.end().await;
                    found
                }
                Err(fault) => Err(fault),
            }
        }
        #[cfg(not(feature = "http"))]
        Transport::McpHttp(_) => Err(UpstreamError::unavailable("built without an HTTP client (feature `http` of ptc-runtime)")),
        Transport::OpenApi(_) => {
            Err(UpstreamError::unavailable("an OpenAPI upstream has no list of tools: its document is the source"))
        }
    }
}

/// Lists the tools over an existing connection.
pub(super) async fn list(
    channel: &impl Channel,
    negotiated: &Negotiated,
    query: &Query,
    handshake_timeout_ms: u64,
) -> Result<Listing, UpstreamError> {
    let time = LISTING_TIME.max(Duration::from_millis(handshake_timeout_ms));
    let tools = query.run(channel, negotiated, Instant::now() + time).await.map_err(|fault| {
        if fault.is_timeout() {
            UpstreamError::timeout(format!(
                "the tools were not listed within {} ms: the time ran out while {}",
                time.as_millis(),
                stage::reached().described()
            ))
        } else {
            fault
        }
    })?;
    let Negotiated { era, revision, server_name, server_version, instructions, http_transport } = negotiated.clone();
    Ok(Listing { era, revision, server_name, server_version, instructions, http_transport, tools })
}

/// Upstreams whose tools are fetched before there is a catalog, with the runtime that drives their connections. A server with the
/// resulting catalog takes over both. Otherwise dropping this closes the connections.
pub struct Contacts(Option<(Runtime, Arc<Upstreams>)>);

impl Contacts {
    /// Creates the upstreams of a deployment without tools. `runtime` must be the one of the handle in `settings`. Nothing is
    /// started or sent.
    pub fn new(runtime: Runtime, deployment: &'static Deployment, secrets: Secrets, settings: UpstreamSettings) -> Contacts {
        Contacts(Some((runtime, Upstreams::new(deployment, secrets, settings))))
    }

    /// Returns the upstreams. `None` once they were handed over.
    pub fn upstreams(&self) -> Option<Arc<Upstreams>> {
        self.0.as_ref().map(|(_, upstreams)| Arc::clone(upstreams))
    }

    /// Drives connections on this thread until `work` is done. Returns `None` once they were handed over.
    pub fn block_on<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.0.as_ref().map(|(runtime, _)| runtime.block_on(work))
    }

    /// Hands over the runtime and the open connections.
    pub fn into_parts(mut self) -> Option<(Runtime, Arc<Upstreams>)> {
        self.0.take()
    }
}

impl Drop for Contacts {
    fn drop(&mut self) {
        if let Some((runtime, upstreams)) = self.0.take() {
            let _ = runtime.block_on(async { tokio::time::timeout(GRACE * 2, upstreams.shutdown()).await });
        }
    }
}

/// Fetches an OpenAPI document of at most `max_bytes` with the `auth`, `static_headers` and timeouts of a config entry. `tokens` has
/// the access tokens of its service. Must be called inside a Tokio runtime. Messages are redacted.
///
/// # Errors
///
/// Returns an error if the URL or an option of the entry is invalid, if the server cannot be reached or does not answer with
/// success in time, or if the document is larger than `max_bytes`.
#[cfg(feature = "http")]
pub async fn fetch_document(
    url: &'static str,
    max_bytes: u64,
    entry: &ptc_catalog::OpenApi,
    secrets: &Secrets,
    tokens: &super::http::access_token::AccessTokens,
) -> Result<Vec<u8>, UpstreamError> {
    super::http::document::fetch(url, max_bytes, entry, secrets, tokens).await.map_err(|fault| {
        let message = secrets.redactor().redact_string(fault.message.into_owned());
        UpstreamError { message: message.into(), ..fault }
    })
}
