//! The credentials of a client: headers, cookies and query parameters that carry secrets, and a certificate.
//!
//! A secret in a query is added to the address of each request when it is sent, and to no other address, so that no message,
//! redirect or result contains it.

use std::fmt::Write as _;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ptc_catalog::{Auth, KeyPlace};
use reqwest::Identity;
use reqwest::header::{COOKIE, HeaderMap, HeaderValue};
use url::{Url, form_urlencoded};

use super::client::{header_name, header_value, innermost};
use crate::fault::{Reason, UpstreamError};
use ptc_secrets::{Secrets, basic_pair};

/// What each request carries. It deliberately has no `Debug`.
#[derive(Default)]
pub(super) struct Credentials {
    /// Headers, which the client takes.
    pub(super) headers: HeaderMap,
    /// The name of each cookie, and `name=value` as it is sent.
    cookies: Vec<(&'static str, String)>,
    /// The name of each query parameter, and `name=value` as it is sent.
    query: Vec<(&'static str, String)>,
    /// The client certificate, which the client takes.
    pub(super) identity: Option<Identity>,
}

impl Credentials {
    /// Reads the secrets that `auth` names.
    ///
    /// # Errors
    ///
    /// A credential has no value, or one that cannot be sent as `auth` says.
    pub(super) fn read(auth: &'static [Auth], secrets: &Secrets) -> Result<Credentials, UpstreamError> {
        let mut read = Credentials::default();
        // The client adds an access token to each request.
        for auth in auth.iter().filter(|auth| auth.oauth().is_none()) {
            let binding = auth.binding();
            let fault = |what: &str| UpstreamError::new(Reason::AuthFailed, format!("credential binding '{binding}' {what}"));
            let secret = secrets.binding(binding).ok_or_else(|| fault("has no value"))?;
            let (name, value) = match *auth {
                Auth::Bearer { .. } => ("authorization", format!("Bearer {secret}")),
                Auth::Basic { .. } => {
                    let (user, pass) = basic_pair(secret).ok_or_else(|| fault("is not user:pass"))?;
                    ("authorization", format!("Basic {}", STANDARD.encode(format!("{user}:{pass}"))))
                }
                Auth::CustomHeader { header, .. } => (header, secret.to_owned()),
                Auth::ApiKey { place: KeyPlace::Query, name, .. } => {
                    let encoded =
                        |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20");
                    read.query.push((name, format!("{}={}", encoded(name), encoded(secret))));
                    continue;
                }
                Auth::ApiKey { place: KeyPlace::Cookie, name, .. } => {
                    let mut pair = format!("{name}=");
                    push_cookie_value(&mut pair, secret);
                    read.cookies.push((name, pair));
                    continue;
                }
                Auth::OAuth2(_) => continue,
                Auth::ClientCertificate { .. } => {
                    let identity = Identity::from_pem(secret.as_bytes());
                    let unread = |why: reqwest::Error| {
                        fault(&format!("is not a PEM certificate with its private key: {}", innermost(&why)))
                    };
                    read.identity = Some(identity.map_err(unread)?);
                    continue;
                }
            };
            let mut value = header_value(&value, name)?;
            value.set_sensitive(true);
            read.headers.insert(header_name(name)?, value);
        }
        Ok(read)
    }

    /// Returns the address with the secrets of its query. Parameters of their names that it already has, as the target of a
    /// redirect may, are left out.
    pub(super) fn address(&self, url: &Url) -> Url {
        let mut url = url.clone();
        if self.query.is_empty() {
            return url;
        }
        let is_own = |pair: &str| {
            let name = form_urlencoded::parse(pair.as_bytes()).next().map(|(name, _)| name).unwrap_or_default();
            self.query.iter().any(|(own, _)| *own == name)
        };
        let given = url.query().unwrap_or_default();
        let kept = given.split('&').filter(|pair| !pair.is_empty() && !is_own(pair));
        let all: Vec<&str> = kept.chain(self.query.iter().map(|(_, pair)| pair.as_str())).collect();
        let query = all.join("&");
        url.set_query(Some(&query));
        url
    }

    /// Puts the cookies before those that the headers already have, as one header. Cookies of their names that the headers
    /// already have, such as an argument of a program, are left out.
    pub(super) fn add_cookies(&self, headers: &mut HeaderMap) {
        if self.cookies.is_empty() {
            return;
        }
        let is_own = |pair: &[u8]| {
            let name = pair.split(|byte| *byte == b'=').next().unwrap_or_default().trim_ascii();
            self.cookies.iter().any(|(own, _)| own.as_bytes() == name)
        };
        let given = headers.get_all(COOKIE).into_iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b';'));
        let kept = given.map(<[u8]>::trim_ascii).filter(|pair| !pair.is_empty() && !is_own(pair));
        let all: Vec<&[u8]> = self.cookies.iter().map(|(_, pair)| pair.as_bytes()).chain(kept).collect();
        // All parts are valid values of headers.
        if let Ok(mut value) = HeaderValue::from_maybe_shared(bytes::Bytes::from(all.join(&b"; "[..]))) {
            value.set_sensitive(true);
            headers.insert(COOKIE, value);
        }
    }
}

/// Writes the value of a cookie. Bytes that it cannot have (RFC 6265, section 4.1.1) are percent-encoded.
fn push_cookie_value(cookies: &mut String, value: &str) {
    for byte in value.bytes() {
        if byte.is_ascii_graphic() && !matches!(byte, b'"' | b',' | b';' | b'\\') {
            cookies.push(char::from(byte));
        } else {
            let _ = write!(cookies, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookie_of_a_program_with_the_name_of_a_credential_is_not_sent() {
        let pair = |name, pair: &str| (name, pair.to_owned());
        let credentials =
            Credentials { cookies: vec![pair("sid", "sid=secret"), pair("key", "key=k")], ..Credentials::default() };
        let sent = |given: &[&'static str]| {
            let mut headers: HeaderMap = given.iter().map(|text| (COOKIE, HeaderValue::from_static(text))).collect();
            credentials.add_cookies(&mut headers);
            let values: Vec<_> = headers.get_all(COOKIE).into_iter().map(|value| value.to_str().unwrap().to_owned()).collect();
            assert_eq!(values.len(), 1, "{values:?}");
            values.concat()
        };
        assert_eq!(sent(&[]), "sid=secret; key=k");
        assert_eq!(sent(&["sid=own; a=1; SID=2"]), "sid=secret; key=k; a=1; SID=2");
        assert_eq!(sent(&["a=1;sid", " sid =own; key=x=y"]), "sid=secret; key=k; a=1");
    }
}
