//! Reads the options that both HTTP transports share, and the entries of `mcp_http` and `mcp_sse`.

use ptc_catalog::ListingLimits;

use super::auth;
use super::credentials::Bindings;
use super::fields::Fields;
use super::headers::{self, Seen, Setter};
use super::model::{HttpOptions, McpHttp};
use super::reader::ConfigReader;
use super::urls;

/// Reads the keys that only entries of `mcp_http` and `mcp_sse` have.
pub(super) fn read(reader: &mut ConfigReader<'_>, owner: &str, fields: &Fields<'_>, bindings: &Bindings) -> Option<McpHttp> {
    let url = urls::read(reader, fields, "url");
    urls::read(reader, fields, "proxy");
    urls::check_security(reader, fields, url.as_slice().iter().collect::<Vec<_>>().as_slice());
    Some(McpHttp {
        is_sse: fields.tag() == "mcp_sse",
        http: options(reader, owner, fields, bindings),
        url: fields.spanned(reader, "url")?,
        handshake_timeout_ms: fields.number("handshake_timeout_ms"),
        listing: listing_limits(fields),
        proxy: fields.text("proxy"),
    })
}

/// Reads the limits on the list of tools of an MCP entry.
pub(super) fn listing_limits(fields: &Fields<'_>) -> ListingLimits {
    ListingLimits { max_bytes: fields.number("max_listing_bytes"), max_tools: fields.number("max_listing_tools") }
}

/// Reads headers, timeouts and the maximum size of responses.
pub(super) fn options(reader: &mut ConfigReader<'_>, owner: &str, fields: &Fields<'_>, bindings: &Bindings) -> HttpOptions {
    let mut seen = Seen::default();
    // A single element of `auth` without brackets has been reported as an error; its contents are checked nevertheless.
    let bare = fields.unfit("auth").filter(|node| !node.members().is_empty());
    let auth_elements = bare.map_or(fields.nodes("auth"), std::slice::from_ref);
    let (auth, auth_places) = auth::read(reader, owner, auth_elements, bindings, &mut seen).into_iter().unzip();
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
    }
}
