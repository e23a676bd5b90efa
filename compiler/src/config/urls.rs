//! Checks the URLs of a config: syntax, scheme, host, credentials, fragment and query. They must use TLS, unless
//! `allow_insecure_http` and, with `auth`, `allow_insecure_auth` are set.

use url::{Host, Url};

use super::fields::Fields;
use super::reader::ConfigReader;
use crate::diag::{Code, Diagnostic};
use crate::tree::Node;

/// A URL in a config.
pub(super) struct Named<'n> {
    pub(super) key: &'static str,
    pub(super) node: &'n Node,
    pub(super) url: Url,
}

/// Reads the URL of a key and reports its faults. Returns `None` if it is absent or cannot be used.
pub(super) fn read<'n>(reader: &mut ConfigReader<'_>, fields: &Fields<'n>, key: &'static str) -> Option<Named<'n>> {
    parse(reader, key, fields.node(key)?, false)
}

/// Reads the URL at a key of an object that is not an entry, and reports its faults.
pub(super) fn read_node<'n>(reader: &mut ConfigReader<'_>, key: &'static str, node: &'n Node) -> Option<Named<'n>> {
    parse(reader, key, node, false)
}

/// Checks the URL of a proxy, which is the value of a key.
pub(super) fn read_proxy(reader: &mut ConfigReader<'_>, key: &'static str, node: &Node) {
    parse(reader, key, node, true);
}

fn parse<'n>(reader: &mut ConfigReader<'_>, key: &'static str, node: &'n Node, is_proxy: bool) -> Option<Named<'n>> {
    let text = node.as_str()?;
    let before = reader.errors();
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(error) => {
            let (message, hint) = match error {
                url::ParseError::RelativeUrlWithoutBase => (error.to_string(), "a URL starts with `https://`"),
                _ if text.contains(char::is_whitespace) => ("it has white space in it".to_owned(), ""),
                _ => (error.to_string(), ""),
            };
            reader.fault(Code::BadUrl, node, format!("`{key}` is not a URL: {message}"), "", hint);
            return None;
        }
    };
    if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        reader.fault(Code::BadUrl, node, format!("`{key}` has white space in its URL"), "", "write a space as `%20`");
    } else if is_http(&url) && !has_host(text) {
        let hint = "the name of a host comes right after `//`";
        reader.fault(Code::BadUrl, node, format!("`{key}` has no host where one belongs"), "", hint);
    } else if let Some(wrong) = invalid_label(&url) {
        let hint = "a part between two dots has 1 to 63 characters";
        reader.fault(Code::BadUrl, node, format!("`{key}` has {wrong} part in the name of its host"), "", hint);
    } else if let Some(wrong) = template_character(&url).filter(|_| !text.contains("${")) {
        let hint = "write the name of the host itself: no part of it is filled in";
        reader.fault(Code::BadUrl, node, format!("`{key}` has `{wrong}` in the name of its host"), "", hint);
    } else if !is_http(&url) {
        let hint = match text.split_once("://") {
            _ if is_proxy => "a proxy is reached by `http://` or `https://`",
            None => "a URL starts with `https://`",
            Some(_) => "only `https` URLs can be used, and `http` ones with an opt-in",
        };
        reader.fault(Code::BadUrl, node, format!("`{key}` has the scheme `{}`", url.scheme()), "expected `https`", hint);
    }
    if !url.username().is_empty() || url.password().is_some() {
        let hint = if is_proxy {
            "put `user:password` into `credentials`, and name that entry as `auth` of the proxy: \"proxy\": { \"url\": …, \"auth\": … }"
        } else {
            "put the secret into `credentials` and send it with the `basic` scheme in `auth`"
        };
        reader.fault(Code::SecretInUrl, node, format!("`{key}` holds a user or password"), "would end up in the binary", hint);
    }
    if url.fragment().is_some() {
        reader.fault(
            Code::UrlParts,
            node,
            format!("`{key}` has a fragment"),
            "",
            "fragments are never sent; remove the part from `#` on",
        );
    }
    if key == "base_url" && url.query().is_some() {
        let hint = "paths of operations are appended to it; give fixed parameters as `default_args` of each operation, and a key as `api_key` in `auth`";
        reader.fault(Code::UrlParts, node, format!("`{key}` has a query"), "", hint);
    }
    (reader.errors() == before).then_some(Named { key, node, url })
}

fn is_http(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
}

/// Whether a URL has a host in the usual position. Parsers also accept `https:///x` and `https:x`, with `x` as the host.
fn has_host(text: &str) -> bool {
    text.split_once(':').and_then(|(_, rest)| rest.strip_prefix("//")).is_some_and(|rest| !rest.starts_with(['/', '\\']))
}

/// Returns what is wrong with a label of the host's name.
fn invalid_label(url: &Url) -> Option<&'static str> {
    let Some(Host::Domain(name)) = url.host() else { return None };
    name.strip_suffix('.').unwrap_or(name).split('.').find_map(|label| match label.len() {
        0 => Some("an empty"),
        1..64 => None,
        _ => Some("too long a"),
    })
}

/// Returns a character of the host's name that belongs to a template or pattern. `${VAR}` is reported elsewhere.
fn template_character(url: &Url) -> Option<char> {
    url.host_str()?.chars().find(|c| matches!(c, '{' | '}' | '*' | '<' | '>'))
}

/// Reports URLs without TLS that no option allows, and options that no URL needs.
pub(super) fn check_security(reader: &mut ConfigReader<'_>, fields: &Fields<'_>, named: &[&Named<'_>]) {
    let sends_auth = !fields.nodes("auth").is_empty();
    let plain = named.iter().find(|named| named.url.scheme() == "http");
    for named in named.iter().filter(|named| named.url.scheme() == "http") {
        if !fields.flag("allow_insecure_http") {
            let hint = if is_loopback(&named.url) {
                "the host is this machine, so that no network can read the traffic: \"allow_insecure_http\": true permits it"
            } else {
                "use `https://`; \"allow_insecure_http\": true permits it for a network that you trust"
            };
            reader.fault(Code::InsecureUrl, named.node, format!("`{}` does not use TLS", named.key), "readable on the way", hint);
        }
    }
    if let Some(plain) = plain
        && sends_auth
        && !fields.flag("allow_insecure_auth")
        && let Some(auth) = fields.member("auth")
    {
        let diagnostic = Diagnostic::new(Code::InsecureAuth, "credentials would be sent without TLS")
            .at(reader.key_place(auth), "sends a secret")
            .also(plain.node.place(reader.file), "without TLS to here")
            .hint("use `https://`; for a network that you trust \"allow_insecure_auth\": true permits it, beside \"allow_insecure_http\": true");
        reader.report(diagnostic);
    }
    let is_certificate = |node: &&Node| node.get("scheme").and_then(Node::as_str) == Some("mtls");
    if let (Some(plain), Some(certificate)) = (plain, fields.nodes("auth").iter().find(is_certificate)) {
        let diagnostic = Diagnostic::new(Code::InsecureAuth, "a client certificate is part of TLS, and the URL does not use it")
            .at(certificate.place(reader.file), "cannot be sent")
            .also(plain.node.place(reader.file), "without TLS to here")
            .hint("use `https://`");
        reader.report(diagnostic);
    }
    if !named.is_empty() {
        needless(reader, fields, "allow_insecure_http", plain.is_some(), named);
        needless(reader, fields, "allow_insecure_auth", plain.is_some() && sends_auth, named);
    }
}

fn needless(reader: &mut ConfigReader<'_>, fields: &Fields<'_>, key: &str, needed: bool, named: &[&Named<'_>]) {
    if needed || !fields.flag(key) {
        return;
    }
    let Some(member) = fields.member(key) else { return };
    let mut diagnostic = Diagnostic::new(Code::NeedlessOptIn, format!("`{key}` permits what this entry does not do"))
        .at(reader.key_place(member), "nothing needs it")
        .hint("remove it, so that a later change of the URL is noticed");
    if let Some(first) = named.iter().find(|named| named.url.scheme() == "https") {
        diagnostic = diagnostic.also(first.node.place(reader.file), "uses TLS");
    }
    reader.report(diagnostic);
}

/// Whether the host of a URL is this machine.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
