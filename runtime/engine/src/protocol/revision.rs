//! Protocol revisions. There are two eras: the first has `initialize`, the second is stateless with an envelope in the `_meta` of
//! every request.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::message::{Params, string};
use super::reply::{ErrorBody, UNSUPPORTED_PROTOCOL_VERSION};

/// Supported revisions of `initialize`, oldest first.
pub const HANDSHAKE: &[&str] = &["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// Supported revisions of the stateless era, oldest first.
pub const STATELESS: &[&str] = &["2026-07-28"];

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";

/// The key of the server's name in the `_meta` of a stateless result.
pub const SERVER_INFO_KEY: &str = "io.modelcontextprotocol/serverInfo";

/// The era of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// The era with `initialize`, up to 2025-11-25.
    Handshake,
    /// The stateless era, from 2026-07-28 on.
    Stateless,
}

/// Returns the revision for the answer to `initialize`: the requested one if it is supported, otherwise the latest of its era.
pub fn negotiate(requested: Option<&str>) -> &'static str {
    let wanted = requested.and_then(string);
    let spoken = HANDSHAKE.iter().find(|revision| wanted.as_deref() == Some(**revision));
    spoken.or(HANDSHAKE.last()).copied().unwrap_or_default()
}

/// Returns the revision in a request's envelope, if it is a string.
pub fn named<'a>(params: &Params<'a>) -> Option<Cow<'a, str>> {
    #[derive(Deserialize)]
    struct Named<'a> {
        #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
        version: Option<&'a RawValue>,
    }
    let named: Named<'a> = serde_json::from_str(params.meta?).ok()?;
    string(named.version?.get())
}

/// Returns the era of a request, determined by its envelope. `must` is set for methods of the stateless era, which require one.
///
/// # Errors
///
/// Returns the error for the client. It has the code for invalid parameters if a required key of the envelope is missing, or if
/// the version is not a string, and [`UNSUPPORTED_PROTOCOL_VERSION`] if the version is not in [`STATELESS`].
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
        // Only the version key distinguishes the eras, since requests of the older era may have `_meta` for progress tokens.
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
