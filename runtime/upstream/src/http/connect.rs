//! Connects to an MCP server, over Streamable HTTP or HTTP+SSE.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ptc_catalog::{Era, HttpTransport, McpHttp};
use ptc_secrets::Secrets;
use url::Url;

use super::client::{Endpoint, HttpClient};
use super::proxy::ResolvedProxy;
use super::session::{Reader, Session, Wire};
use super::shared_stream::{self, SharedStream};
use crate::caller_token;
use crate::fault::{Reason, UpstreamError};
use crate::mcp::{Negotiated, handshake};
use crate::settings::{ResponseCap, UpstreamSettings};
use crate::stage;

/// Connects and negotiates era and revision.
pub(crate) async fn connect(
    name: &'static str,
    spec: &'static McpHttp,
    secrets: &Secrets,
    settings: &UpstreamSettings,
) -> Result<Session, UpstreamError> {
    let endpoint = Endpoint {
        upstream: Some(name),
        url: spec.url,
        auth: spec.auth,
        static_headers: spec.static_headers,
        connect_timeout: Duration::from_millis(spec.connect_timeout_ms),
        proxy: ResolvedProxy::resolve(spec.proxy, secrets)?,
        extra_roots: settings.extra_roots.clone(),
        posts: true,
    };
    let url = Url::parse(spec.url).map_err(|why| UpstreamError::unavailable(format!("'{}' is not a URL: {why}", spec.url)))?;
    let client = HttpClient::new(&endpoint, secrets)?.with_tokens(settings.access_tokens.source(&endpoint, secrets)?);
    let cap = settings.response_cap(spec.max_response_bytes);
    let deadline = Instant::now() + Duration::from_millis(spec.handshake_timeout_ms);
    negotiate(client, url, cap, spec, deadline).await.map_err(|fault| match fault.reason {
        Reason::Timeout if fault.is_timeout() => UpstreamError::timeout(format!(
            "'{name}' did not finish its handshake within {} ms (handshake_timeout_ms): the time ran out while {}",
            spec.handshake_timeout_ms,
            stage::reached().described()
        )),
        Reason::Timeout => UpstreamError::timeout(format!("'{name}': {}", fault.message)),
        // During the handshake the status is not a failure of a tool.
        Reason::ToolError => UpstreamError { reason: Reason::UpstreamUnavailable, ..fault },
        _ => fault,
    })
}

/// Connects over the transport of the entry. If it has none, HTTP+SSE is tried after Streamable HTTP was refused, as the section
/// "Backwards Compatibility" of the specification's page on transports has it.
async fn negotiate(
    client: HttpClient,
    url: Url,
    cap: ResponseCap,
    spec: &'static McpHttp,
    deadline: Instant,
) -> Result<Session, UpstreamError> {
    if spec.http_transport == Some(HttpTransport::Sse) {
        return negotiate_sse(client, &url, cap, deadline).await;
    }
    let wire = Wire::new(client.clone(), url.clone(), cap, None);
    let refusal = match handshake::negotiate(&wire, spec.era, deadline).await {
        Ok(negotiated) => {
            let negotiated = Negotiated { http_transport: Some(HttpTransport::Streamable), ..negotiated };
            return Ok(Session { wire: Arc::new(wire), negotiated, reader: None });
        }
        Err(refused) => refused.fault,
    };
    // A refusal with a JSON-RPC error and status 400 has no status here, since it is an answer of Streamable HTTP.
    if !matches!(refusal.http_status, Some(400 | 404 | 405)) {
        return Err(refusal);
    }
    let explained = |why: &str| {
        let message = format!("{}; {why}", refusal.message).into();
        UpstreamError { reason: Reason::UpstreamUnavailable, message, ..refusal.clone() }
    };
    if spec.http_transport.is_some() {
        return Err(explained(
            "this binary speaks only Streamable HTTP with it, as the lock file has it; if the server offers only HTTP+SSE now, \
             `ptc-compile update` and a new build use that",
        ));
    }
    match negotiate_sse(client, &url, cap, deadline).await {
        Err(fault) if !fault.is_timeout() && !matches!(fault.reason, Reason::AuthFailed | Reason::AuthExpired) => {
            Err(explained(&format!("HTTP+SSE was tried too: {}", fault.message)))
        }
        outcome => outcome,
    }
}

/// Opens the event stream of HTTP+SSE, and performs the handshake over it.
async fn negotiate_sse(client: HttpClient, url: &Url, cap: ResponseCap, deadline: Instant) -> Result<Session, UpstreamError> {
    let (endpoint, source) = shared_stream::open(&client, url, cap, deadline).await?;
    let wire = Arc::new(Wire::new(client, endpoint, cap, Some(SharedStream::default())));
    // The reader answers requests of the server, also between the calls.
    let reader = caller_token::inherit(Arc::clone(&wire).read_shared(source));
    let reader = Some(Reader(tokio::spawn(reader).abort_handle()));
    let negotiated = handshake::negotiate(&*wire, Some(Era::Handshake), deadline).await.map_err(|refused| refused.fault)?;
    let negotiated = Negotiated { http_transport: Some(HttpTransport::Sse), ..negotiated };
    Ok(Session { wire, negotiated, reader })
}
