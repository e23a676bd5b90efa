//! What a compiler asks of an upstream while it freezes a catalog.

use std::time::{Duration, Instant};

use ptc_catalog::{Era, Transport, Upstream};
use serde_json::value::RawValue;

use super::GRACE;
use super::fault::WorldFault;
use super::mcp::{Agreed, Channel, listing};
use super::settings::UpstreamSettings;
use super::stage;
use super::stdio;
use crate::secrets::Secrets;

/// Time for all pages of a list, where the handshake's own is not longer.
const LISTING_TIME: Duration = Duration::from_secs(30);

/// What an MCP server says of itself.
#[derive(Debug)]
pub struct Listing {
    /// The era that was agreed on.
    pub era: Era,
    /// The revision that was agreed on.
    pub revision: &'static str,
    /// Its name; empty where it gives none.
    pub server_name: String,
    /// Its version; empty where it gives none.
    pub server_version: String,
    /// What it tells models about itself.
    pub instructions: Option<String>,
    /// Definitions of its tools, verbatim, in its order, over all pages.
    pub tools: Vec<Box<RawValue>>,
}

/// Connects to an MCP upstream, lists its tools and disconnects. Must run inside a tokio runtime. An OpenAPI upstream has no
/// list to ask for. Messages are redacted.
pub async fn list_tools(
    upstream: &'static Upstream,
    secrets: &Secrets,
    settings: &UpstreamSettings,
) -> Result<Listing, WorldFault> {
    stage::followed(Box::pin(listed(upstream, secrets, settings))).await.map_err(|fault| {
        let message = secrets.redactor().redact_string(fault.message.into_owned());
        WorldFault { message: message.into(), ..fault }
    })
}

async fn listed(upstream: &'static Upstream, secrets: &Secrets, settings: &UpstreamSettings) -> Result<Listing, WorldFault> {
    match &upstream.transport {
        Transport::McpStdio(spec) => match stdio::connect(upstream.name, spec, spec.era, secrets, settings).await {
            Ok(connected) => {
                let found = list(connected.channel(), &connected.agreed, spec.handshake_timeout_ms).await;
                connected.child.stop(GRACE).await;
                found
            }
            Err(fault) => Err(fault),
        },
        #[cfg(feature = "http")]
        Transport::McpHttp(spec) => match super::http::session::connect(upstream.name, spec, secrets, settings).await {
            Ok(session) => {
                let found = list(session.channel(), &session.agreed, spec.handshake_timeout_ms).await;
                session.end().await;
                found
            }
            Err(fault) => Err(fault),
        },
        #[cfg(not(feature = "http"))]
        Transport::McpHttp(_) => Err(WorldFault::unavailable("built without an HTTP client (feature `http` of ptc-runtime)")),
        Transport::OpenApi(_) => {
            Err(WorldFault::unavailable("an OpenAPI upstream has no list of tools: its document is the source"))
        }
    }
}

/// Lists the tools over a connection that is there.
pub(super) async fn list(channel: &impl Channel, agreed: &Agreed, handshake_timeout_ms: u64) -> Result<Listing, WorldFault> {
    let time = LISTING_TIME.max(Duration::from_millis(handshake_timeout_ms));
    let tools = listing::tools(channel, agreed, Instant::now() + time).await.map_err(|fault| {
        if fault.is_late() {
            WorldFault::timeout(format!(
                "the tools were not listed within {} ms: the time ran out while {}",
                time.as_millis(),
                stage::reached().described()
            ))
        } else {
            fault
        }
    })?;
    let Agreed { era, revision, server_name, server_version, instructions } = agreed.clone();
    Ok(Listing { era, revision, server_name, server_version, instructions, tools })
}

/// Fetches an OpenAPI document of at most `max_bytes` with an entry's own `auth`, `static_headers` and timeouts. Must run inside a
/// tokio runtime. Messages are redacted.
#[cfg(feature = "http")]
pub async fn fetch_document(
    url: &'static str,
    max_bytes: u64,
    entry: &ptc_catalog::OpenApi,
    secrets: &Secrets,
) -> Result<Vec<u8>, WorldFault> {
    super::http::document::fetch(url, max_bytes, entry, secrets).await.map_err(|fault| {
        let message = secrets.redactor().redact_string(fault.message.into_owned());
        WorldFault { message: message.into(), ..fault }
    })
}
