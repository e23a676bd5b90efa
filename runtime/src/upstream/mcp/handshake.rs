//! Finding out what a server speaks.
//!
//! A server of the stateless era answers `server/discover`; one of the handshake era answers `initialize`. The era that was
//! seen when the catalog was frozen is tried first; where it fails, or none is known, the other is tried.

use std::time::{Duration, Instant};

use ptc_catalog::Era;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::wire::{CLIENT_NAME, CLIENT_VERSION, MODERN_CODES, RpcError, UNSUPPORTED_REVISION};
use super::{Agreed, Ask, Channel, HANDSHAKE_REVISIONS, LATEST_HANDSHAKE, Response, STATELESS_REVISION};
use crate::upstream::fault::{Reason, WorldFault};

/// A server of the handshake era may stay silent before `initialize`; it is sent after this long. An answer to the probe that
/// comes later still counts.
const PROBE_PATIENCE: Duration = Duration::from_secs(2);

/// How far a handshake came that failed.
pub(crate) struct Refused {
    pub(crate) fault: WorldFault,
    /// The connection was lost to the probe: some servers of the handshake era end at a first frame that is not
    /// `initialize`. A fresh connection with [`Era::Handshake`] may succeed.
    pub(crate) lost_to_probe: bool,
}

impl Refused {
    fn after_probe(fault: WorldFault) -> Refused {
        let lost_to_probe = fault.reason == Reason::UpstreamUnavailable;
        Refused { fault, lost_to_probe }
    }
}

impl From<WorldFault> for Refused {
    fn from(fault: WorldFault) -> Self {
        Refused { fault, lost_to_probe: false }
    }
}

/// Agrees on era and revision.
pub(crate) async fn agree(channel: &impl Channel, known: Option<Era>, deadline: Instant) -> Result<Agreed, Refused> {
    if known == Some(Era::Handshake) {
        return match initialize(channel, LATEST_HANDSHAKE, deadline).await? {
            Ok(agreed) => Ok(agreed),
            Err(refusal) => match discover(channel, deadline).await {
                Ok(Probed::Stateless(agreed)) => Ok(agreed),
                _ => Err(refused("initialize", &refusal).into()),
            },
        };
    }
    let probe = discover(channel, deadline);
    tokio::pin!(probe);
    // A server that was of the stateless era may take its time to start, and should not be greeted in the other's words.
    let patience = if known.is_some() { deadline.saturating_duration_since(Instant::now()) / 2 } else { PROBE_PATIENCE };
    let refusal = match tokio::time::timeout(patience, &mut probe).await {
        Ok(Ok(Probed::Stateless(agreed))) => return Ok(agreed),
        Ok(Ok(Probed::Foreign(fault))) => return Err(fault.into()),
        Ok(Ok(Probed::Handshake { revision })) => match initialize(channel, revision, deadline).await? {
            Ok(agreed) => return Ok(agreed),
            Err(refusal) => refusal,
        },
        Ok(Err(fault)) => return Err(Refused::after_probe(fault)),
        // No answer yet: from a server of either era that is still starting, or one that never answers the probe.
        Err(_) => {
            let initialize = initialize(channel, LATEST_HANDSHAKE, deadline);
            tokio::pin!(initialize);
            let mut probing = true;
            let refusal = loop {
                tokio::select! {
                    probed = &mut probe, if probing => match probed {
                        Ok(Probed::Stateless(agreed)) => return Ok(agreed),
                        _ => probing = false,
                    },
                    answer = &mut initialize => match answer.map_err(Refused::after_probe)? {
                        Ok(agreed) => return Ok(agreed),
                        Err(refusal) => break refusal,
                    },
                }
            };
            if probing && let Ok(Probed::Stateless(agreed)) = probe.await {
                return Ok(agreed);
            }
            refusal
        }
    };
    Err(refused("initialize", &refusal).into())
}

fn refused(method: &str, error: &RpcError) -> WorldFault {
    WorldFault::unavailable(format!("the server refuses '{method}': {}", error.describe()))
}

enum Probed {
    Stateless(Agreed),
    /// Not of the stateless era, or it prefers this revision of the other.
    Handshake {
        revision: &'static str,
    },
    /// It speaks revisions that we do not.
    Foreign(WorldFault),
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

async fn discover(channel: &impl Channel, deadline: Instant) -> Result<Probed, WorldFault> {
    let agreed = Some((Era::Stateless, STATELESS_REVISION));
    Ok(match channel.request(Ask { agreed, ..Ask::new("server/discover", "{}") }, deadline).await? {
        Response::Result(raw) => match serde_json::from_str::<DiscoverResult>(raw.get()) {
            Ok(found) => choose(found),
            Err(_) => Probed::Handshake { revision: LATEST_HANDSHAKE },
        },
        Response::Error(error) if error.code == UNSUPPORTED_REVISION => {
            let supported = error.supported_revisions();
            match handshake_revision(&supported) {
                Some(revision) => Probed::Handshake { revision },
                None => Probed::Foreign(foreign(&supported)),
            }
        }
        Response::Error(error) if MODERN_CODES.contains(&error.code) => Probed::Foreign(refused("server/discover", &error)),
        Response::Error(_) => Probed::Handshake { revision: LATEST_HANDSHAKE },
    })
}

fn choose(found: DiscoverResult) -> Probed {
    if !found.supported_versions.iter().any(|v| v == STATELESS_REVISION) {
        return match handshake_revision(&found.supported_versions) {
            Some(revision) => Probed::Handshake { revision },
            None => Probed::Foreign(foreign(&found.supported_versions)),
        };
    }
    let info = found.meta.and_then(|m| m.server_info).unwrap_or_default();
    Probed::Stateless(Agreed {
        era: Era::Stateless,
        revision: STATELESS_REVISION,
        server_name: info.name,
        server_version: info.version,
        instructions: found.instructions,
    })
}

fn handshake_revision(supported: &[String]) -> Option<&'static str> {
    HANDSHAKE_REVISIONS.into_iter().find(|ours| supported.iter().any(|theirs| theirs == ours))
}

fn foreign(theirs: &[String]) -> WorldFault {
    WorldFault::unavailable(format!(
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

async fn initialize(channel: &impl Channel, revision: &str, deadline: Instant) -> Result<Result<Agreed, RpcError>, WorldFault> {
    let params = format!(
        r#"{{"protocolVersion":"{revision}","capabilities":{{}},"clientInfo":{{"name":"{CLIENT_NAME}","version":"{CLIENT_VERSION}"}}}}"#
    );
    let raw: Box<RawValue> = match channel.request(Ask::new("initialize", &params), deadline).await? {
        Response::Result(raw) => raw,
        Response::Error(error) => return Ok(Err(error)),
    };
    let found: InitializeResult = serde_json::from_str(raw.get())
        .map_err(|why| WorldFault::unavailable(format!("the answer to 'initialize' is not one: {why}")))?;
    let theirs = found.protocol_version;
    let Some(revision) = HANDSHAKE_REVISIONS.into_iter().find(|ours| *ours == theirs) else {
        return Err(foreign(&[theirs]));
    };
    channel.notify("notifications/initialized").await;
    Ok(Ok(Agreed {
        era: Era::Handshake,
        revision,
        server_name: found.server_info.name,
        server_version: found.server_info.version,
        instructions: found.instructions,
    }))
}
