//! Validation of the headers of the stateless era that repeat parts of the body, so that proxies can route without reading
//! bodies. A request whose headers and body differ is refused, since a proxy would route it wrongly.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::HeaderMap;
use hyper::header::HeaderName;

use super::guard::text;
use ptc_engine::protocol::message::{Params, string};
use ptc_engine::protocol::reply::{ErrorBody, HEADER_MISMATCH, UNSUPPORTED_PROTOCOL_VERSION};
use ptc_engine::protocol::revision::{self, Era, HANDSHAKE, STATELESS};

/// The revision that a request belongs to.
pub static PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The method of the body.
pub static METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// The tool of the body.
pub static NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Returns the era of a request, determined by its header and its envelope.
///
/// # Errors
///
/// Returns an error if the headers do not match the body, or the revision is not supported.
pub fn era(headers: &HeaderMap, method: &str, params: &Params<'_>) -> Result<Era, ErrorBody> {
    let header = text(headers, &PROTOCOL_VERSION);
    let named = revision::named(params);
    match (header, &named) {
        (Some(header), Some(named)) if header != named => {
            return Err(mismatch(&PROTOCOL_VERSION, Some(header), &format!("params._meta says \"{named}\"")));
        }
        (None, Some(named)) => return Err(mismatch(&PROTOCOL_VERSION, None, &format!("params._meta says \"{named}\""))),
        (Some(header), None) if !STATELESS.contains(&header) && !HANDSHAKE.contains(&header) => {
            return Err(unsupported(header));
        }
        _ => {}
    }
    let stateless = named.is_some() || header.is_some_and(|header| STATELESS.contains(&header));
    let era = revision::era(params, stateless || method == "server/discover")?;
    if era == Era::Stateless {
        check_headers_match_body(headers, &METHOD, method)?;
        if let ("tools/call", Some(name)) = (method, params.name.and_then(string)) {
            check_headers_match_body(headers, &NAME, &name)?;
        }
    }
    Ok(era)
}

fn check_headers_match_body(headers: &HeaderMap, name: &HeaderName, body: &str) -> Result<(), ErrorBody> {
    let shown = text(headers, name).map(|value| decoded(value.trim()));
    match shown {
        Some(shown) if shown == body => Ok(()),
        shown => Err(mismatch(name, shown.as_deref(), &format!("the body says \"{body}\""))),
    }
}

/// Decodes `=?base64?…?=`, the form of values that a header cannot carry.
fn decoded(value: &str) -> Cow<'_, str> {
    let inner = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    let bytes = inner.and_then(|inner| STANDARD.decode(inner).ok());
    bytes.and_then(|bytes| String::from_utf8(bytes).ok()).map_or(Cow::Borrowed(value), Cow::Owned)
}

fn mismatch(name: &HeaderName, shown: Option<&str>, body: &str) -> ErrorBody {
    let shown = shown.map_or_else(|| "is missing".to_owned(), |shown| format!("says \"{shown}\""));
    ErrorBody::new(HEADER_MISMATCH, format!("Header mismatch: {name} {shown}, {body}"))
}

fn unsupported(requested: &str) -> ErrorBody {
    let supported: Vec<&str> = HANDSHAKE.iter().chain(STATELESS).copied().collect();
    ErrorBody {
        code: UNSUPPORTED_PROTOCOL_VERSION,
        message: format!("unsupported protocol version: this server speaks {}", supported.join(", ")).into(),
        data: Some(serde_json::json!({ "supported": supported, "requested": requested })),
    }
}
