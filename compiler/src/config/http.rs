//! Reads the options that both HTTP transports share, and the entries of `mcp_http` and `mcp_sse`.

use ptc_catalog::ListingLimits;
use ptc_catalog::proxy::is_exception;

use super::auth;
use super::credentials::Bindings;
use super::fields::{Fields, Subject};
use super::headers::{self, Seen, Setter};
use super::model::{HttpOptions, McpHttp, Proxy};
use super::reader::ConfigReader;
use super::{keys, oauth, urls};
use crate::diag::{Code, quoted};
use crate::tree::Node;

/// Reads the keys that only entries of `mcp_http` and `mcp_sse` have.
pub(super) fn read(reader: &mut ConfigReader<'_>, owner: &str, fields: &Fields<'_>, bindings: &Bindings) -> Option<McpHttp> {
    let url = urls::read(reader, fields, "url");
    let server_urls = oauth::server_urls(reader, fields);
    urls::check_security(reader, fields, &url.iter().chain(&server_urls).collect::<Vec<_>>());
    let resource = url.as_ref().map(|named| oauth::resource_of(&named.url)).unwrap_or_default();
    Some(McpHttp {
        is_sse: fields.tag() == "mcp_sse",
        http: options(reader, owner, fields, bindings, Some(&resource)),
        url: fields.spanned(reader, "url")?,
        handshake_timeout_ms: fields.number("handshake_timeout_ms"),
        listing: listing_limits(fields),
    })
}

/// Reads the limits on the list of tools of an MCP entry.
pub(super) fn listing_limits(fields: &Fields<'_>) -> ListingLimits {
    ListingLimits { max_bytes: fields.number("max_listing_bytes"), max_tools: fields.number("max_listing_tools") }
}

/// Reads credentials, headers, timeouts, the maximum size of responses, and the proxy. Access tokens are requested for
/// `resource`, which MCP servers have.
pub(super) fn options(
    reader: &mut ConfigReader<'_>,
    owner: &str,
    fields: &Fields<'_>,
    bindings: &Bindings,
    resource: Option<&str>,
) -> HttpOptions {
    let mut seen = Seen::default();
    // A single element of `auth` without brackets has been reported as an error; its contents are checked nevertheless.
    let bare = fields.unfit("auth").filter(|node| !node.members().is_empty());
    let auth_elements = bare.map_or(fields.nodes("auth"), std::slice::from_ref);
    let (auth, auth_places) = auth::read(reader, owner, auth_elements, bindings, resource, &mut seen).into_iter().unzip();
    for member in fields.members("static_headers") {
        headers::check_name(reader, Setter::Static, &member.key, member.value.as_str(), reader.key_place(member));
        headers::check_value(reader, &member.key, &member.value);
        seen.set(reader, "header", &member.key, reader.key_place(member));
    }
    HttpOptions {
        auth,
        auth_places,
        auth_place: fields.member("auth").map(|member| reader.key_place(member)),
        static_headers: fields
            .members("static_headers")
            .iter()
            .filter_map(|member| Some((member.key.to_string(), member.value.as_str()?.to_owned())))
            .collect(),
        request_timeout_ms: fields.number("request_timeout_ms"),
        connect_timeout_ms: fields.number("connect_timeout_ms"),
        max_response_bytes: fields.number("max_response_bytes"),
        max_concurrent_calls: fields.number("max_concurrent_calls"),
        proxy: proxy(reader, owner, fields, bindings),
    }
}

/// Reads the proxy of an entry: its URL, or an object.
fn proxy(reader: &mut ConfigReader<'_>, owner: &str, fields: &Fields<'_>, bindings: &Bindings) -> Option<Proxy> {
    let member = fields.member("proxy")?;
    if member.value.as_str().is_some() {
        urls::read_proxy(reader, "proxy", &member.value);
        return Some(Proxy { url: reader.spanned(&member.value)?, auth: None, no_proxy: Vec::new() });
    }
    let subject = Subject { name: format!("`proxy` of {owner}"), place: reader.key_place(member) };
    let fields = Fields::read(reader, &subject, &keys::PROXY, &[], &member.value)?;
    if let Some(node) = fields.node("url") {
        urls::read_proxy(reader, "url", node);
    }
    let auth = fields.spanned(reader, "auth");
    if let Some(binding) = &auth {
        auth::check_proxy_binding(reader, binding, bindings);
    }
    for node in fields.nodes("no_proxy") {
        check_exception(reader, node);
    }
    let url = fields.spanned(reader, "url")?;
    Some(Proxy { url, auth: auth.map(|binding| binding.value), no_proxy: fields.texts("no_proxy") })
}

/// Reports an exception of a proxy that no host would match.
fn check_exception(reader: &mut ConfigReader<'_>, node: &Node) {
    let Some(text) = node.as_str().filter(|text| !text.trim().is_empty() && !is_exception(text)) else { return };
    let hint = if text.contains("://") || text.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) {
        "an exception is a host without scheme and port"
    } else if text.starts_with("*.") {
        "a name includes all names below it: leave `*.` out"
    } else {
        "exceptions are names such as `internal.example.com`, addresses, blocks such as `10.0.0.0/8`, and `*`"
    };
    reader.fault(Code::BadUrl, node, format!("{} in `no_proxy` is not a host", quoted(text)), "no host matches it", hint);
}
