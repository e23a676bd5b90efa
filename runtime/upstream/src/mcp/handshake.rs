//! Negotiates era and revision with a server.
//!
//! A server of the stateless era answers `server/discover`, one of the handshake era answers `initialize`. The era in the frozen
//! catalog is tried first. If it fails or is unknown, the other one is tried.

use std::time::{Duration, Instant};

use ptc_catalog::Era;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::wire::{CLIENT_NAME, CLIENT_VERSION, MODERN_CODES, RpcError, UNSUPPORTED_REVISION};
use super::{Ask, Channel, HANDSHAKE_REVISIONS, LATEST_HANDSHAKE, Negotiated, Response, STATELESS_REVISION};
use crate::fault::{Reason, UpstreamError};

/// Time after which `initialize` is sent to a server that has not answered the probe. Servers of the handshake era may ignore it.
/// A later answer to the probe is still accepted.
const PROBE_PATIENCE: Duration = Duration::from_secs(2);

/// The failure of a handshake.
pub(crate) struct Refused {
    pub(crate) fault: UpstreamError,
    /// Whether the connection was lost after the probe. Some servers of the handshake era exit if the first frame is not
    /// `initialize`. A new connection with [`Era::Handshake`] may succeed.
    pub(crate) lost_to_probe: bool,
}

impl Refused {
    fn after_probe(fault: UpstreamError) -> Refused {
        let lost_to_probe = fault.reason == Reason::UpstreamUnavailable;
        Refused { fault, lost_to_probe }
    }
}

impl From<UpstreamError> for Refused {
    fn from(fault: UpstreamError) -> Self {
        Refused { fault, lost_to_probe: false }
    }
}

/// Negotiates era and revision.
pub(crate) async fn negotiate(channel: &impl Channel, known: Option<Era>, deadline: Instant) -> Result<Negotiated, Refused> {
    if known == Some(Era::Handshake) {
        return match initialize(channel, LATEST_HANDSHAKE, deadline).await? {
            Ok(negotiated) => Ok(negotiated),
            Err(refusal) => match discover(channel, deadline).await {
                Ok(ProbeOutcome::Stateless(negotiated)) => Ok(negotiated),
                _ => Err(refused("initialize", &refusal).into()),
            },
        };
    }
    let probe = discover(channel, deadline);
    tokio::pin!(probe);
    // A server that was of the stateless era may need time to start, and should not receive `initialize` early.
    let limits = if known.is_some() { deadline.saturating_duration_since(Instant::now()) / 2 } else { PROBE_PATIENCE };
    let refusal = match tokio::time::timeout(limits, &mut probe).await {
        Ok(Ok(ProbeOutcome::Stateless(negotiated))) => return Ok(negotiated),
        Ok(Ok(ProbeOutcome::Foreign(fault))) => return Err(fault.into()),
        Ok(Ok(ProbeOutcome::Handshake { revision })) => match initialize(channel, revision, deadline).await? {
            Ok(negotiated) => return Ok(negotiated),
            Err(refusal) => refusal,
        },
        Ok(Err(fault)) => return Err(Refused::after_probe(fault)),
        // There is no answer yet. The server may still be starting, or may never answer the probe.
        Err(_) => {
            let initialize = initialize(channel, LATEST_HANDSHAKE, deadline);
            tokio::pin!(initialize);
            let mut probing = true;
            let refusal = loop {
                tokio::select! {
                    probed = &mut probe, if probing => match probed {
                        Ok(ProbeOutcome::Stateless(negotiated)) => return Ok(negotiated),
                        _ => probing = false,
                    },
                    answer = &mut initialize => match answer.map_err(Refused::after_probe)? {
                        Ok(negotiated) => return Ok(negotiated),
                        Err(refusal) => break refusal,
                    },
                }
            };
            if probing && let Ok(ProbeOutcome::Stateless(negotiated)) = probe.await {
                return Ok(negotiated);
            }
            refusal
        }
    };
    Err(refused("initialize", &refusal).into())
}

fn refused(method: &str, error: &RpcError) -> UpstreamError {
    UpstreamError::unavailable(format!("the server refuses '{method}': {}", error.describe()))
}

enum ProbeOutcome {
    Stateless(Negotiated),
    /// The server is not of the stateless era, or prefers this revision of the handshake era.
    Handshake {
        revision: &'static str,
    },
    /// The server supports none of our revisions.
    Foreign(UpstreamError),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DiscoverResult {
    supported_versions: Vec<String>,
    #[serde(default)]
    instructions: Option<String>,
    #[serde(default, rename = "_meta")]
    meta: Option<DiscoverMeta>,
}

#[derive(Deserialize)]
struct DiscoverMeta {
    #[serde(default, rename = "io.modelcontextprotocol/serverInfo")]
    server_info: Option<ServerInfo>,
}

#[derive(Deserialize, Default)]
struct ServerInfo {
    #[serde(default)]
    name: String,
    #[serde(default)]
    version: String,
}

async fn discover(channel: &impl Channel, deadline: Instant) -> Result<ProbeOutcome, UpstreamError> {
    let negotiated = Some((Era::Stateless, STATELESS_REVISION));
    Ok(match channel.request(Ask { negotiated, ..Ask::new("server/discover", "{}") }, deadline).await? {
        Response::Result(raw) => match serde_json::from_str::<DiscoverResult>(raw.get()) {
            Ok(found) => choose(found),
            Err(_) => ProbeOutcome::Handshake { revision: LATEST_HANDSHAKE },
        },
        Response::Error(error) if error.code == UNSUPPORTED_REVISION => {
            let supported = error.supported_revisions();
            match handshake_revision(&supported) {
                Some(revision) => ProbeOutcome::Handshake { revision },
                None => ProbeOutcome::Foreign(foreign(&supported)),
            }
        }
        Response::Error(error) if MODERN_CODES.contains(&error.code) => ProbeOutcome::Foreign(refused("server/discover", &error)),
        Response::Error(_) => ProbeOutcome::Handshake { revision: LATEST_HANDSHAKE },
    })
}

fn choose(found: DiscoverResult) -> ProbeOutcome {
    if !found.supported_versions.iter().any(|v| v == STATELESS_REVISION) {
        return match handshake_revision(&found.supported_versions) {
            Some(revision) => ProbeOutcome::Handshake { revision },
            None => ProbeOutcome::Foreign(foreign(&found.supported_versions)),
        };
    }
    let info = found.meta.and_then(|m| m.server_info).unwrap_or_default();
    ProbeOutcome::Stateless(Negotiated {
        era: Era::Stateless,
        revision: STATELESS_REVISION,
        server_name: info.name,
        server_version: info.version,
        instructions: found.instructions,
        http_transport: None,
    })
}

fn handshake_revision(supported: &[String]) -> Option<&'static str> {
    HANDSHAKE_REVISIONS.into_iter().find(|ours| supported.iter().any(|theirs| theirs == ours))
}

fn foreign(theirs: &[String]) -> UpstreamError {
    UpstreamError::unavailable(format!(
        "no common protocol revision: the server speaks {}, this client {STATELESS_REVISION}, {}",
        if theirs.is_empty() { "none it names".to_owned() } else { theirs.join(", ") },
        HANDSHAKE_REVISIONS.join(", ")
    ))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InitializeResult {
    protocol_version: String,
    #[serde(default)]
    server_info: ServerInfo,
    #[serde(default)]
    instructions: Option<String>,
}

async fn initialize(
    channel: &impl Channel,
    revision: &str,
    deadline: Instant,
) -> Result<Result<Negotiated, RpcError>, UpstreamError> {
    let params = format!(
        r#"{{"protocolVersion":"{revision}","capabilities":{{}},"clientInfo":{{"name":"{CLIENT_NAME}","version":"{CLIENT_VERSION}"}}}}"#
    );
    let raw: Box<RawValue> = match channel.request(Ask::new("initialize", &params), deadline).await? {
        Response::Result(raw) => raw,
        Response::Error(error) => return Ok(Err(error)),
    };
    let found: InitializeResult = serde_json::from_str(raw.get())
        .map_err(|why| UpstreamError::unavailable(format!("the answer to 'initialize' is not one: {why}")))?;
    let theirs = found.protocol_version;
    let Some(revision) = HANDSHAKE_REVISIONS.into_iter().find(|ours| *ours == theirs) else {
        return Err(foreign(&[theirs]));
    };
    channel.notify("notifications/initialized").await;
    Ok(Ok(Negotiated {
        era: Era::Handshake,
        revision,
        server_name: found.server_info.name,
        server_version: found.server_info.version,
        instructions: found.instructions,
        http_transport: None,
    }))
}
