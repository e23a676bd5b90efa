//! Limits the addresses to which an upstream or an authorization server can make this process send requests.
//!
//! An upstream names its authorization server, and that names its endpoints. Neither may make this machine send requests into a private
//! network (MCP, "Security Best Practices", server-side request forgery), unless the upstream itself is in one. The same applies to the
//! endpoints and keys in the metadata of an issuer that the config or a flag has.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

/// Maximum characters of a URL.
pub const MAX_URL: usize = 2_000;
/// Time limit for looking up the addresses of the server.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);

/// The limits for what one upstream or one issuer names. Clones share what is known of its addresses.
#[derive(Debug, Clone)]
pub struct AddressLimits {
    base: Arc<Base>,
}

/// The server whose answers name other URLs.
#[derive(Debug)]
struct Base {
    url: Url,
    /// Whether this is not an upstream but an issuer, which the config has.
    is_issuer: bool,
    /// An endpoint that the config has beside the issuer.
    endpoint: Option<Url>,
    /// Whether an address of the server was not private.
    was_public: AtomicBool,
}

impl AddressLimits {
    /// Creates the limits for an upstream at `url`.
    pub fn new(url: Url) -> AddressLimits {
        AddressLimits { base: Arc::new(Base { url, is_issuer: false, endpoint: None, was_public: AtomicBool::new(false) }) }
    }

    /// Creates the limits for what the metadata of an issuer of the config names. `endpoint` is a URL that the config has too, which may be
    /// anywhere.
    pub fn of_issuer(url: Url, endpoint: Option<Url>) -> AddressLimits {
        AddressLimits { base: Arc::new(Base { url, is_issuer: true, endpoint, was_public: AtomicBool::new(false) }) }
    }

    /// Returns the URL of the upstream. `None` if the config has the issuer.
    pub fn upstream(&self) -> Option<&Url> {
        (!self.base.is_issuer).then_some(&self.base.url)
    }

    /// Checks a URL that the upstream or the authorization server names. The addresses of a host name are checked when it is resolved.
    ///
    /// # Errors
    ///
    /// Returns a clause that says why no request is sent there.
    pub async fn check(&self, url: &Url) -> Result<(), &'static str> {
        if self.base.endpoint.as_ref() == Some(url) {
            return Ok(());
        }
        if url.as_str().len() > MAX_URL {
            return Err("is not used: it is too long");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("is not used: it has a user or a password");
        }
        let Base { url: base, is_issuer, .. } = &*self.base;
        // The config permits an issuer without TLS, and its metadata may then name endpoints without TLS.
        let is_plain = url.origin() == base.origin() || is_loopback(url) || *is_issuer && base.scheme() == "http";
        if url.scheme() != "https" && !(url.scheme() == "http" && is_plain) {
            return Err("is not used: it does not use TLS (https://)");
        }
        let is_private = match url.host() {
            Some(Host::Ipv4(address)) => is_private(address.into()),
            Some(Host::Ipv6(address)) => is_private(address.into()),
            Some(Host::Domain(_)) => is_loopback(url),
            None => return Err("is not used: it has no host"),
        };
        if is_private && !self.base.is_configured(url.host_str()) && !self.base.is_private().await {
            let of_issuer = "is not used: it is at a private address, and the issuer is not";
            let of_upstream = "is not used: it is at a private address, and the upstream is not";
            return Err(if *is_issuer { of_issuer } else { of_upstream });
        }
        Ok(())
    }
}

impl Base {
    /// Whether the config has this host, whose addresses are then not limited. That of an upstream is: its name belongs to the upstream.
    fn is_configured(&self, host: Option<&str>) -> bool {
        let endpoint = self.endpoint.as_ref().and_then(Url::host_str);
        self.is_issuer && host.is_some() && (host == self.url.host_str() || host == endpoint)
    }

    /// Whether all addresses of the server are private, and were so whenever they were looked up. Its name may belong to an upstream, which
    /// could otherwise add a private address to lift the limits.
    async fn is_private(&self) -> bool {
        let host = self.url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let found = tokio::time::timeout(LOOKUP_TIMEOUT, tokio::net::lookup_host((host, 0))).await;
        let Ok(Ok(addresses)) = found else { return false };
        let addresses: Vec<SocketAddr> = addresses.collect();
        self.note(&addresses);
        !addresses.is_empty() && !self.was_public.load(Ordering::Relaxed)
    }

    /// Records addresses of the server.
    fn note(&self, addresses: &[SocketAddr]) {
        if addresses.iter().any(|address| !is_private(address.ip())) {
            self.was_public.store(true, Ordering::Relaxed);
        }
    }
}

impl Resolve for AddressLimits {
    fn resolve(&self, name: Name) -> Resolving {
        let base = Arc::clone(&self.base);
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            if base.url.host_str() == Some(name.as_str()) {
                base.note(&found);
            }
            let has_private = found.iter().any(|address| is_private(address.ip()));
            if has_private && !base.is_configured(Some(name.as_str())) && !base.is_private().await {
                let server = if base.is_issuer { "issuer" } else { "upstream" };
                return Err(format!("its host has a private address, and that of the {server} has none").into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// Whether a URL names this machine.
fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            name == "localhost" || name.ends_with(".localhost")
        }
        None => false,
    }
}

/// Whether an address is not one of the public internet (IANA's registries of special-purpose addresses).
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_private_v4(address),
        IpAddr::V6(address) => is_private_v6(address),
    }
}

fn is_private_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    matches!((a, b, c), (0 | 10 | 127 | 224.., ..) | (100, 64..=127, _) | (169, 254, _) | (172, 16..=31, _))
        || matches!((a, b, c), (192, 168, _) | (192, 0, 0) | (198, 18..=19, _))
}

fn is_private_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_private_v4(Ipv4Addr::new(a, b, c, d))
    };
    match segments {
        // `::` and `::1`, and NAT64 of a local network.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] | [0x64, 0xff9b, 1, ..] => true,
        // IPv4 addresses in the forms `::a.b.c.d` and `::ffff:a.b.c.d`, of NAT64, and of 6to4.
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            embedded(high, low)
        }
        // Unique local, link-local, site-local, multicast.
        [first, ..] => matches!(first >> 8, 0xfc..=0xff),
    }
}

#[cfg(test)]
mod tests {
    use std::str::FromStr as _;

    use super::*;

    fn refused(upstream: &str, url: &str) -> Option<&'static str> {
        let limits = AddressLimits::new(Url::parse(upstream).unwrap());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(limits.check(&Url::parse(url).unwrap())).err()
    }

    #[test]
    fn private_addresses_are_for_upstreams_in_a_private_network() {
        for url in [
            "https://127.0.0.1/x",
            "https://10.1.2.3/x",
            "https://192.168.0.1/x",
            "https://172.31.0.1/x",
            "https://169.254.169.254/latest/meta-data",
            "https://100.64.0.1/x",
            "https://0.0.0.0/x",
            "https://2130706433/x",
            "https://0x7f.1/x",
            "https://[::1]/x",
            "https://[::ffff:10.0.0.1]/x",
            "https://[64:ff9b::a00:1]/x",
            "https://[fd00::1]/x",
            "https://[fe80::1]/x",
            "https://localhost/x",
            "https://a.localhost./x",
        ] {
            assert!(refused("https://203.0.113.7/mcp", url).is_some_and(|why| why.contains("private")), "{url}");
            assert_eq!(refused("http://127.0.0.1:8080/mcp", url), None, "{url}");
        }
        assert_eq!(refused("https://203.0.113.7/mcp", "https://198.51.100.1/x"), None);
        assert_eq!(refused("https://203.0.113.7/mcp", "https://[2606:4700::1111]/x"), None);
    }

    #[test]
    fn private_addresses_are_for_issuers_in_a_private_network() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let refused = |issuer: &str, url: &str| {
            let limits = AddressLimits::of_issuer(Url::parse(issuer).unwrap(), None);
            assert!(limits.upstream().is_none());
            runtime.block_on(limits.check(&Url::parse(url).unwrap())).err().unwrap_or_default()
        };
        for (issuer, url, expected) in [
            ("https://203.0.113.7", "https://10.0.0.1/token", "private address, and the issuer is not"),
            ("https://203.0.113.7", "https://169.254.169.254/", "private address, and the issuer is not"),
            ("https://203.0.113.7", "https://localhost/token", "private address, and the issuer is not"),
            ("https://203.0.113.7", "http://198.51.100.1/token", "TLS"),
            ("https://203.0.113.7", "https://198.51.100.1/token", ""),
            ("https://10.0.0.7", "https://10.0.0.8/token", ""),
            ("http://10.0.0.7", "http://10.0.0.8/token", ""),
            ("https://localhost", "https://localhost:8443/token", ""),
        ] {
            let why = refused(issuer, url);
            assert!(why.contains(expected) && why.is_empty() == expected.is_empty(), "{issuer} {url}: {why}");
        }
    }

    #[test]
    fn endpoint_of_the_config_may_be_anywhere_and_lifts_no_limits_for_others() {
        let url = |text: &str| Url::parse(text).unwrap();
        let limits = AddressLimits::of_issuer(url("https://203.0.113.7"), Some(url("http://10.0.0.1:8080/token")));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for (named, expected) in [
            ("http://10.0.0.1:8080/token", ""),
            ("https://10.0.0.1/revoke", ""),
            ("http://10.0.0.1:8080/revoke", "TLS"),
            ("https://10.0.0.2/revoke", "private address, and the issuer is not"),
            ("https://127.0.0.1/revoke", "private address, and the issuer is not"),
            ("https://198.51.100.1/revoke", ""),
        ] {
            let why = runtime.block_on(limits.check(&url(named))).err().unwrap_or_default();
            assert!(why.contains(expected) && why.is_empty() == expected.is_empty(), "{named}: {why}");
        }
    }

    #[test]
    fn name_with_a_private_address_is_not_resolved() {
        let url = |text: &str| Url::parse(text).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let refused = |limits: AddressLimits| {
            let found = runtime.block_on(limits.resolve(Name::from_str("localhost").unwrap()));
            found.err().map(|why| why.to_string()).unwrap_or_default()
        };
        let (public, local) = ("https://203.0.113.7", "https://localhost/token");
        assert!(refused(AddressLimits::new(url(public))).ends_with("and that of the upstream has none"));
        assert!(refused(AddressLimits::of_issuer(url(public), None)).ends_with("and that of the issuer has none"));
        assert_eq!(refused(AddressLimits::of_issuer(url(public), Some(url(local)))), "", "the config has the name");
        assert_eq!(refused(AddressLimits::of_issuer(url(local), None)), "");
        assert_eq!(refused(AddressLimits::new(url(local))), "");
    }

    #[test]
    fn upstream_with_a_public_address_cannot_lift_the_limits() {
        let limits = AddressLimits::new(Url::parse("https://127.0.0.1/mcp").unwrap());
        let address = |text: &str| SocketAddr::new(text.parse().unwrap(), 0);
        limits.base.note(&[address("203.0.113.7"), address("10.0.0.1")]);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let refused = runtime.block_on(limits.check(&Url::parse("https://10.0.0.1/x").unwrap()));
        assert!(refused.is_err_and(|why| why.contains("private")));
    }

    #[test]
    fn urls_without_tls_are_for_loopback_and_for_the_origin_of_the_upstream() {
        let why = |url| refused("http://10.0.0.7/mcp", url).unwrap_or_default();
        assert_eq!(why("http://10.0.0.7/.well-known/oauth-protected-resource"), "");
        assert_eq!(why("http://127.0.0.1:9/x"), "");
        for url in ["http://10.0.0.8/x", "http://id.example/x", "ftp://id.example/x", "file:///etc/passwd"] {
            assert!(why(url).contains("TLS"), "{url}");
        }
        assert!(why("https://user:pass@id.example/x").contains("password"));
        assert!(why(&format!("https://id.example/{}", "x".repeat(MAX_URL))).contains("long"));
    }
}
