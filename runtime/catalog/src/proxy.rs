//! The proxy of an upstream over HTTP, and the rule for its exceptions.

use std::net::IpAddr;

/// A proxy through which the connections of an upstream are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Proxy {
    /// The URL of the proxy, with `http://` or `https://` and without user and password.
    pub url: &'static str,
    /// The credential binding with user and password, which the proxy receives as basic authentication (RFC 7617).
    pub auth: Option<&'static str>,
    /// Hosts that are reached without the proxy, in the forms that [`is_exception`] accepts.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::leaked::list"))]
    pub no_proxy: &'static [&'static str],
}

impl Proxy {
    /// Makes a proxy without credentials and exceptions.
    pub const fn new(url: &'static str) -> Self {
        Proxy { url, auth: None, no_proxy: &[] }
    }
}

/// Whether a text names hosts that a proxy can leave out: a host name, which includes all names below it, with or without a dot
/// before it; an IP address without brackets; a block of addresses such as `10.0.0.0/8`; or `*` for every host. Ports and URLs
/// are not accepted, because no host would match them.
///
/// ```
/// use ptc_catalog::proxy::is_exception;
///
/// assert!(["internal.example", ".internal.example", "10.0.0.0/8", "::1", "*"].into_iter().all(is_exception));
/// assert!(!["https://internal.example", "internal.example:8080", "*.example", "a, b", ""].into_iter().any(is_exception));
/// ```
pub fn is_exception(text: &str) -> bool {
    let is_address = |text: &str| text.parse::<IpAddr>().is_ok();
    if let Some((address, prefix)) = text.split_once('/') {
        let max = if address.contains(':') { 128 } else { 32 };
        return is_address(address) && prefix.parse::<u8>().is_ok_and(|prefix| prefix <= max);
    }
    let is_label = |label: &str| {
        (1..64).contains(&label.len()) && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    text == "*" || is_address(text) || text.strip_prefix('.').unwrap_or(text).split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::is_exception;

    #[test]
    fn exceptions_are_hosts_addresses_and_blocks() {
        for text in ["localhost", "a_b.example", ".example", "127.0.0.1", "fe80::1", "10.0.0.0/8", "fd00::/8", "0.0.0.0/0", "*"] {
            assert!(is_exception(text), "{text}");
        }
        let long = "x".repeat(64);
        for text in
            ["", ".", "a..b", "a.", "a b", "a,b", "a:80", "[::1]", "http://a", "*.a", "10.0.0.0/33", "::/129", "a/8", "é", &long]
        {
            assert!(!is_exception(text), "{text}");
        }
    }
}
