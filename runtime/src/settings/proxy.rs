//! The proxy of the requests that the server makes for itself: to the model of `lisp_task`, and to the collector of spans. The
//! proxies of upstreams are part of the config.

use std::fmt;

use percent_encoding::percent_decode_str;
use ptc_catalog::proxy::is_exception;
use url::Url;
use zeroize::Zeroizing;

use crate::secrets::MIN_SECRET_CHARS;
use crate::upstream::http::proxy::ResolvedProxy;

/// The settings of the proxy.
#[derive(Debug, Clone, Default)]
pub struct ProxySettings {
    /// The proxy. `None` makes connections without one.
    pub url: Option<ProxyUrl>,
    /// Hosts that are reached without it.
    pub no_proxy: Vec<String>,
}

/// `http[s]://[user:password@]host[:port]`. Its `Debug` output omits user and password, which are overwritten when it is dropped.
#[derive(Clone)]
pub struct ProxyUrl {
    /// The URL without user and password.
    url: String,
    /// User and password, decoded.
    login: Option<(Zeroizing<String>, Zeroizing<String>)>,
}

impl ProxyUrl {
    /// Parses a URL. Returns `None` if it has another scheme, a path, a query or a fragment, or a user without a password of at
    /// least [`MIN_SECRET_CHARS`] characters. A shorter one cannot be redacted.
    pub fn parse(text: &str) -> Option<ProxyUrl> {
        let mut url = Url::parse(text).ok()?;
        let is_plain = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        if !matches!(url.scheme(), "http" | "https") || !is_plain || !text.contains("://") {
            return None;
        }
        let decoded = |text: &str| Some(Zeroizing::new(percent_decode_str(text).decode_utf8().ok()?.into_owned()));
        let login = match url.password() {
            None if url.username().is_empty() => None,
            None => return None,
            Some(password) => {
                let password = decoded(password).filter(|password| password.chars().count() >= MIN_SECRET_CHARS)?;
                Some((decoded(url.username())?, password))
            }
        };
        url.set_username("").ok()?;
        url.set_password(None).ok()?;
        Some(ProxyUrl { url: url.to_string(), login })
    }
}

impl fmt::Debug for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProxyUrl({})", self.url)
    }
}

impl ProxySettings {
    /// Returns the proxy for an HTTP client.
    pub fn resolved(&self) -> Option<ResolvedProxy> {
        let ProxyUrl { url, login } = self.url.as_ref()?;
        let login = login.as_ref().map(|(user, password)| (user.as_str(), password.as_str()));
        Some(ResolvedProxy::new(url, login, &self.no_proxy))
    }

    /// Returns the texts to redact: the password, and user and password as they are sent.
    pub fn secrets(&self) -> Vec<Zeroizing<String>> {
        let login = self.url.as_ref().and_then(|url| url.login.as_ref());
        login.map(|(user, password)| vec![password.clone(), format!("{}:{}", **user, **password).into()]).unwrap_or_default()
    }
}

/// Parses hosts between commas. Returns `None` if one of them is not a host, an address or a block of addresses.
pub(super) fn exceptions(text: &str) -> Option<Vec<String>> {
    let hosts: Vec<&str> = text.split(',').map(str::trim).filter(|host| !host.is_empty()).collect();
    (!hosts.is_empty() && hosts.iter().all(|host| is_exception(host))).then(|| hosts.into_iter().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_password_of_a_proxy_are_secrets_and_hidden() {
        let url = ProxyUrl::parse("http://ann:p%40ss-w%25rd@proxy.example:3128").expect("a URL");
        assert_eq!(format!("{url:?}"), "ProxyUrl(http://proxy.example:3128/)");
        let settings = ProxySettings { url: Some(url), no_proxy: Vec::new() };
        assert_eq!(settings.secrets().iter().map(|text| text.as_str()).collect::<Vec<_>>(), ["p@ss-w%rd", "ann:p@ss-w%rd"]);
        let open = ProxySettings { url: ProxyUrl::parse("https://proxy.example"), no_proxy: Vec::new() };
        assert!(open.resolved().is_some() && open.secrets().is_empty());
    }

    #[test]
    fn other_urls_are_rejected() {
        for text in [
            "proxy:3128",
            "http:proxy",
            "socks5://proxy:1080",
            "http://",
            "http://proxy/path",
            "http://proxy?a=1",
            "http://ann@proxy",
            "http://ann:short@proxy",
        ] {
            assert!(ProxyUrl::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn exceptions_are_between_commas() {
        assert_eq!(
            exceptions("localhost, 10.0.0.0/8 ,").as_deref(),
            Some(&["localhost".to_owned(), "10.0.0.0/8".to_owned()][..])
        );
        for text in ["", ",", "localhost:80", "http://a"] {
            assert_eq!(exceptions(text), None, "{text}");
        }
    }
}
