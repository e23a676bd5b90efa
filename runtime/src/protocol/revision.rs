//! Protocol revisions. Two eras: with `initialize`, and stateless with an envelope in every request's `_meta`.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::message::{Params, string};
use super::reply::{ErrorBody, UNSUPPORTED_PROTOCOL_VERSION};

/// Revisions that `initialize` may ask for, oldest first.
pub const HANDSHAKE: &[&str] = &["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// Revisions of the stateless era, oldest first.
pub const STATELESS: &[&str] = &["2026-07-28"];

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";

/// The key under which a stateless result names the server.
pub const SERVER_INFO_KEY: &str = "io.modelcontextprotocol/serverInfo";

/// The era that a request belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// Up to 2025-11-25.
    Handshake,
    /// From 2026-07-28 on.
    Stateless,
}

/// The revision that `initialize` is answered with: the requested one where it is spoken, else the latest of its era.
pub fn negotiate(requested: Option<&str>) -> &'static str {
    let wanted = requested.and_then(string);
    let spoken = HANDSHAKE.iter().find(|revision| wanted.as_deref() == Some(**revision));
    spoken.or(HANDSHAKE.last()).copied().unwrap_or_default()
}

/// The revision that a request's envelope names, where it is a string.
pub fn named<'a>(params: &Params<'a>) -> Option<Cow<'a, str>> {
    #[derive(Deserialize)]
    struct Named<'a> {
        #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
        version: Option<&'a RawValue>,
    }
    let named: Named<'a> = serde_json::from_str(params.meta?).ok()?;
    string(named.version?.get())
}

/// The era of a request, by its envelope. Requests that exist in the stateless era only `must` have one.
pub fn era(params: &Params<'_>, must: bool) -> Result<Era, ErrorBody> {
    #[derive(Deserialize)]
    struct Envelope<'a> {
        #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
        version: Option<&'a RawValue>,
        #[serde(borrow, rename = "io.modelcontextprotocol/clientCapabilities")]
        capabilities: Option<&'a RawValue>,
    }
    let envelope: Option<Envelope<'_>> = params.meta.and_then(|meta| serde_json::from_str(meta).ok());
    let Some(envelope) = envelope.filter(|envelope| must || envelope.version.is_some()) else {
        // Only the version key tells the eras apart: `_meta` alone carries progress tokens in the older one.
        return if must { Err(missing(&[VERSION_KEY, CAPABILITIES_KEY])) } else { Ok(Era::Handshake) };
    };
    let keys = [(VERSION_KEY, envelope.version.is_none()), (CAPABILITIES_KEY, envelope.capabilities.is_none())];
    let absent: Vec<&str> = keys.iter().filter(|(_, absent)| *absent).map(|(key, _)| *key).collect();
    if !absent.is_empty() {
        return Err(missing(&absent));
    }
    let version: Option<Cow<'_, str>> = envelope.version.and_then(|version| string(version.get()));
    match version {
        None => Err(ErrorBody::invalid_params(&format!("params._meta[\"{VERSION_KEY}\"]: expected a string"))),
        Some(version) if STATELESS.contains(&&*version) => Ok(Era::Stateless),
        Some(version) => Err(ErrorBody {
            code: UNSUPPORTED_PROTOCOL_VERSION,
            message: format!("unsupported protocol version: this server speaks {} without initialize", STATELESS.join(", "))
                .into(),
            data: Some(serde_json::json!({ "supported": STATELESS, "requested": version })),
        }),
    }
}

fn missing(keys: &[&str]) -> ErrorBody {
    ErrorBody::invalid_params(&format!("params._meta is missing {}", keys.join(" and ")))
}
