//! Checks of `Host`, `Origin` and media types.
//!
//! Any web page can make a browser on this machine send requests here (DNS rebinding, CSRF): `Host` and `Origin` identify the
//! page.

use hyper::HeaderMap;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderName, ORIGIN};

use super::header_validation;
use super::post::SESSION_ID;
use crate::settings::HttpSettings;
use crate::settings::http::{host_of, is_loopback, origin};

/// Why a request is refused before its body is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forbidden {
    /// A listener on a loopback address was addressed by another name.
    Host,
    /// The origin of the page is not allowed.
    Origin,
}

impl Forbidden {
    /// Returns the message for the client.
    pub fn sentence(self) -> &'static str {
        match self {
            Forbidden::Host => {
                "forbidden: this server listens on a loopback address, and is asked as localhost, 127.0.0.1 or [::1]"
            }
            Forbidden::Origin => "forbidden: the page of this Origin is not allowed to ask; --http-allowed-origin allows one",
        }
    }
}

/// Headers that must not occur twice: a proxy in front of this server may have checked another occurrence than this server would.
static ONCE: [&HeaderName; 8] = [
    &HOST,
    &ORIGIN,
    &CONTENT_TYPE,
    &AUTHORIZATION,
    &SESSION_ID,
    &header_validation::PROTOCOL_VERSION,
    &header_validation::METHOD,
    &header_validation::NAME,
];

/// Returns a header that occurs more than once and must not.
pub fn find_duplicate_header(headers: &HeaderMap) -> Option<&'static str> {
    ONCE.iter().find(|name| headers.get_all(**name).iter().nth(1).is_some()).map(|name| name.as_str())
}

/// Returns the host of an authority, if only a port follows it.
fn strip_port(authority: &str) -> Option<&str> {
    let host = host_of(authority);
    let behind = match authority.strip_prefix('[') {
        Some(inner) => inner.strip_prefix(host)?.strip_prefix(']')?,
        None => authority.strip_prefix(host)?,
    };
    let is_port = |port: &str| port.bytes().all(|b| b.is_ascii_digit());
    (behind.is_empty() || behind.strip_prefix(':').is_some_and(is_port)).then_some(host)
}

/// Checks `Host` and `Origin`. `authority` is that of an absolute request target and takes precedence over the header.
///
/// # Errors
///
/// Returns [`Forbidden::Host`] if a listener on a loopback address is addressed by another name, and [`Forbidden::Origin`] if
/// the request has an origin that is not allowed.
pub fn check_host_and_origin(settings: &HttpSettings, authority: Option<&str>, headers: &HeaderMap) -> Result<(), Forbidden> {
    let loopback = settings.host.is_loopback();
    if loopback {
        let named = authority.or_else(|| text(headers, &HOST)).and_then(strip_port);
        if !named.is_some_and(is_loopback) {
            return Err(Forbidden::Host);
        }
    }
    let is_forbidden = headers.contains_key(ORIGIN) && allowed_origin(settings, headers).is_none();
    if is_forbidden { Err(Forbidden::Origin) } else { Ok(()) }
}

/// Returns the origin of a request as the browser wrote it, if it has one that is allowed.
pub fn allowed_origin<'h>(settings: &HttpSettings, headers: &'h HeaderMap) -> Option<&'h str> {
    let shown = text(headers, &ORIGIN)?;
    let origin = origin(shown)?;
    let is_local = || origin.split_once("://").is_some_and(|(_, authority)| strip_port(authority).is_some_and(is_loopback));
    let is_allowed = if settings.allowed_origins.is_empty() {
        settings.host.is_loopback() && is_local()
    } else {
        settings.allowed_origins.contains(&origin)
    };
    is_allowed.then_some(shown)
}

/// Whether the media type of a body is JSON. A missing type counts as JSON.
pub fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(CONTENT_TYPE) else { return true };
    let Ok(value) = value.to_str() else { return false };
    let essence = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || essence.split_once('/').is_some_and(|(_, subtype)| subtype.ends_with("+json"))
}

/// Whether a body has no content encoding. Compressed bodies are not supported.
pub fn is_plain(headers: &HeaderMap) -> bool {
    headers.get_all(CONTENT_ENCODING).iter().all(|value| value.as_bytes().eq_ignore_ascii_case(b"identity"))
}

/// Whether the client accepts JSON. Without an `Accept` header it does.
pub fn takes_json(headers: &HeaderMap) -> bool {
    let mut ranges = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    let mut said = false;
    let takes = ranges.any(|range| {
        said = true;
        let mut parts = range.split(';').map(|part| part.trim().to_ascii_lowercase());
        let range = parts.next().unwrap_or_default();
        let refused = parts.any(|part| part.strip_prefix("q=").is_some_and(|q| q.parse::<f32>() == Ok(0.0)));
        !refused && ["application/json", "application/*", "*/*"].contains(&range.as_str())
    });
    takes || !said
}

/// Returns a header's text.
pub fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Settings, headers, and the expected refusal.
    type Row<'a> = (&'a HttpSettings, &'a [(&'a HeaderName, &'a str)], Option<Forbidden>);

    fn headers(all: &[(&HeaderName, &str)]) -> HeaderMap {
        all.iter().map(|(name, value)| ((*name).clone(), value.parse().expect("a header's value"))).collect()
    }

    #[test]
    fn host_and_origin_are_checked_against_settings() {
        let here = HttpSettings::default();
        let listed = HttpSettings { allowed_origins: vec!["https://app.example".into()], ..HttpSettings::default() };
        let outside = HttpSettings { host: [0, 0, 0, 0].into(), ..HttpSettings::default() };
        let rows: [Row<'_>; 17] = [
            (&here, &[(&HOST, "127.0.0.1:evil.example")], Some(Forbidden::Host)),
            (&here, &[(&HOST, "127.0.0.1:80@evil.example")], Some(Forbidden::Host)),
            (&here, &[(&HOST, "[::1]:7332")], None),
            (&here, &[(&HOST, "[::1].evil.example")], Some(Forbidden::Host)),
            (&here, &[(&HOST, "[::1")], Some(Forbidden::Host)),
            (&here, &[(&HOST, "127.0.0.1:7332")], None),
            (&here, &[(&HOST, "localhost")], None),
            (&here, &[(&HOST, "evil.example")], Some(Forbidden::Host)),
            (&here, &[], Some(Forbidden::Host)),
            (&here, &[(&HOST, "localhost"), (&ORIGIN, "http://localhost:3000")], None),
            (&here, &[(&HOST, "localhost"), (&ORIGIN, "http://127.0.0.1.evil.example")], Some(Forbidden::Origin)),
            (&here, &[(&HOST, "localhost"), (&ORIGIN, "null")], Some(Forbidden::Origin)),
            (&listed, &[(&HOST, "localhost"), (&ORIGIN, "https://APP.example:443")], None),
            (&listed, &[(&HOST, "localhost"), (&ORIGIN, "http://localhost:3000")], Some(Forbidden::Origin)),
            (&outside, &[(&HOST, "ptc.example")], None),
            (&outside, &[(&HOST, "ptc.example"), (&ORIGIN, "http://localhost")], Some(Forbidden::Origin)),
            (&outside, &[], None),
        ];
        for (settings, shown, refused) in rows {
            assert_eq!(check_host_and_origin(settings, None, &headers(shown)).err(), refused, "{shown:?}");
        }
        let forged = headers(&[(&HOST, "localhost")]);
        assert_eq!(check_host_and_origin(&here, Some("evil.example:80"), &forged).err(), Some(Forbidden::Host));
    }

    #[test]
    fn json_media_types_are_recognised() {
        for (value, json) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("application/vnd.x+json", true),
            ("text/plain", false),
            ("application/jsonp", false),
            ("", false),
        ] {
            assert_eq!(is_json(&headers(&[(&CONTENT_TYPE, value)])), json, "{value}");
        }
        assert!(is_json(&headers(&[])));
        for (value, takes) in [
            ("application/json, text/event-stream", true),
            ("text/event-stream, application/*;q=0.5", true),
            ("*/*", true),
            ("text/event-stream", false),
            ("application/json;q=0, text/html", false),
        ] {
            assert_eq!(takes_json(&headers(&[(&ACCEPT, value)])), takes, "{value}");
        }
        assert!(takes_json(&headers(&[])));
    }
}
