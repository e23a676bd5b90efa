//! The URL of the session store.

use std::fmt;

use percent_encoding::percent_decode_str;
use zeroize::Zeroizing;

use super::feature::{LinkedParts, how_to_enable};

/// `redis://[[user]:password@]host[:port][/db]`, or the same with `rediss` for TLS. Its `Debug` and `Display` output omits user
/// and password, and it is overwritten when it is dropped.
#[derive(Clone)]
pub struct StoreUrl(Zeroizing<String>);

/// The schemes without and with TLS.
const SCHEME: &str = "redis://";
const WITH_TLS: &str = "rediss://";

impl StoreUrl {
    /// Accepts a text that starts with one of the schemes.
    pub fn parse(text: &str) -> Option<StoreUrl> {
        let rest = text.strip_prefix(SCHEME).or_else(|| text.strip_prefix(WITH_TLS))?;
        (!rest.is_empty()).then(|| StoreUrl(Zeroizing::new(text.to_owned())))
    }

    /// Checks the rest of the URL for a binary that links these parts.
    ///
    /// # Errors
    ///
    /// Returns a clause that says what is wrong: TLS that this binary was built without, no host, a database that is not a
    /// number, or options after the host.
    pub fn check(&self, linked: LinkedParts) -> Result<(), String> {
        let tls = self.has_tls();
        if tls && let Some(how_to_enable) = how_to_enable("session-redis-tls", linked) {
            return Err(format!("rediss:// is not spoken by this binary; {how_to_enable}"));
        }
        let rest = self.0.strip_prefix(if tls { WITH_TLS } else { SCHEME }).unwrap_or_default();
        let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
        let (host, database) = place.split_once('/').unwrap_or((place, ""));
        let number = database.trim_end_matches('/');
        if !number.is_empty() && number.parse::<u16>().is_err() {
            return Err(format!("expected the number of a database after the host, found '{number}'"));
        }
        match host {
            "" => Err("it names no host".into()),
            host if host.contains('#') => Err(format!("expected only a port and a database after the host, found '{host}'")),
            _ => Ok(()),
        }
    }

    /// Whether it requires TLS.
    pub fn has_tls(&self) -> bool {
        self.0.starts_with(WITH_TLS)
    }

    /// Returns the whole URL.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Returns the secrets in the URL: the password as written and decoded.
    pub fn secrets(&self) -> Vec<String> {
        let password = self.credentials().and_then(|credentials| credentials.split_once(':'));
        password
            .into_iter()
            .flat_map(|(_, raw)| [raw.to_owned(), percent_decode_str(raw).decode_utf8_lossy().into_owned()])
            .collect()
    }

    fn credentials(&self) -> Option<&str> {
        let (_, rest) = self.0.split_once("://")?;
        Some(rest.rsplit_once('@')?.0)
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, rest) = self.0.split_once("://").unwrap_or_default();
        write!(f, "{scheme}://{}", rest.rsplit_once('@').map_or(rest, |(_, place)| place))
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::{LinkedParts, StoreUrl};

    const LINKED: LinkedParts = LinkedParts {
        session_redis: true,
        session_redis_tls: true,
        viewer: false,
        http_oauth: false,
        oauth_client: false,
        keyring: false,
        otlp: false,
        recording: false,
    };

    #[test]
    fn passwords_of_store_urls_are_secrets_and_hidden() {
        for (text, shown, secrets) in [
            ("redis://127.0.0.1", "redis://127.0.0.1", vec![]),
            ("redis://:not%2Da-secret@store:6379/2", "redis://store:6379/2", vec!["not%2Da-secret", "not-a-secret"]),
            ("redis://user:p@ss@store", "redis://store", vec!["p@ss", "p@ss"]),
        ] {
            let url = StoreUrl::parse(text).expect("a URL");
            assert_eq!(
                (url.check(LINKED), url.to_string().as_str(), url.secrets()),
                (Ok(()), shown, secrets.into_iter().map(str::to_owned).collect())
            );
            assert_eq!(format!("{url:?}"), format!("StoreUrl({shown})"));
        }
        for wrong in ["", "redis://", "http://x", "store:6379"] {
            assert!(StoreUrl::parse(wrong).is_none(), "{wrong}");
        }
        // Options that would disable the verification of certificates are rejected.
        for wrong in ["redis://store/two", "redis://:p@/1", "rediss://store/1/#insecure", "rediss://store#insecure"] {
            assert!(StoreUrl::parse(wrong).is_some_and(|url| url.check(LINKED).is_err()), "{wrong}");
        }
        let encrypted = StoreUrl::parse("rediss://:p@store:6380").expect("a URL");
        assert_eq!(encrypted.check(LINKED), Ok(()));
        assert_eq!(
            encrypted.check(LinkedParts { session_redis_tls: false, ..LINKED }).expect_err("it is not built"),
            "rediss:// is not spoken by this binary; build it with `--session-store rediss` (feature tls of ptc-session-redis)"
        );
        assert_eq!(encrypted.to_string(), "rediss://store:6380");
    }
}
