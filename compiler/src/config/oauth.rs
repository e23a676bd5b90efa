//! Reads the elements of `auth` with the scheme `oauth2`.

use ptc_catalog::{ClientAuth, Grant, OAuth2};
use url::Url;

use super::fields::Fields;
use super::reader::ConfigReader;
use super::urls::{self, Named};
use crate::diag::{Code, quoted};
use crate::tree::Node;

/// Reads the URLs of the token endpoints of an entry and reports their faults. They need TLS as the URLs of the entry do.
pub(super) fn token_urls<'n>(reader: &mut ConfigReader<'_>, fields: &Fields<'n>) -> Vec<Named<'n>> {
    let is_oauth = |auth: &&Node| auth.get("scheme").and_then(Node::as_str) == Some("oauth2");
    let urls = fields.nodes("auth").iter().filter(is_oauth).filter_map(|auth| auth.get("token_url"));
    urls.filter_map(|node| urls::read_node(reader, "token_url", node)).collect()
}

/// Returns the identifier of an MCP server as a resource (RFC 8707): its URL without query and fragment.
pub(super) fn resource_of(url: &Url) -> String {
    let mut resource = url.clone();
    resource.set_query(None);
    resource.set_fragment(None);
    let text = resource.to_string();
    // The root has the same identifier with and without the slash; the form without it is usual.
    if resource.path() == "/" { text.trim_end_matches('/').to_owned() } else { text }
}

/// Reads an element. `resource` is the parameter of that name, unless the element has another one.
pub(super) fn read(reader: &mut ConfigReader<'_>, fields: &Fields<'_>, resource: &str) -> Option<OAuth2<String>> {
    let client_auth = fields.text("client_auth").map_or(Some(ClientAuth::SecretBasic), |name| ClientAuth::named(&name));
    for name in ["key_id", "issuer"] {
        if let Some(member) = fields.member(name)
            && client_auth.is_some_and(|form| form != ClientAuth::PrivateKeyJwt)
        {
            let message = format!("`{name}` is a part of signed assertions, and the client sends a secret");
            let hint = "remove it, or write \"client_auth\": \"private_key_jwt\"";
            reader.fault(Code::BadOauthSetting, &member.value, message, "without effect", hint);
        }
    }
    for node in fields.nodes("scopes") {
        check_scope(reader, node);
    }
    if let Some(node) = fields.node("resource") {
        check_resource(reader, node);
    }
    if let Some(node) = fields.node("client_id")
        && node.as_str().is_some_and(|id| id.contains(char::is_control))
    {
        let hint = "write it as the authorization server shows it";
        reader.fault(Code::BadOauthSetting, node, "`client_id` has a control character", "", hint);
    }
    Some(OAuth2 {
        // `keys::AUTH` has no other grant.
        grant: Grant::ClientCredentials,
        token_url: fields.text("token_url")?,
        client_id: fields.text("client_id")?,
        client_auth: client_auth?,
        binding: fields.text("binding")?,
        key_id: fields.text("key_id").unwrap_or_default(),
        issuer: fields.text("issuer").unwrap_or_default(),
        scope: fields.texts("scopes").join(" "),
        resource: fields.text("resource").unwrap_or_else(|| resource.to_owned()),
    })
}

/// Reports a scope that is not one (RFC 6749, section 3.3).
fn check_scope(reader: &mut ConfigReader<'_>, node: &Node) {
    let Some(scope) = node.as_str().filter(|scope| !scope.is_empty()) else { return };
    let is_part = |c: char| matches!(c, '!' | '#'..='[' | ']'..='~');
    if scope.chars().all(is_part) {
        return;
    }
    let hint = if scope.contains(' ') {
        "write each scope as an element of its own"
    } else {
        "a scope has visible ASCII characters other than `\"` and `\\`"
    };
    reader.fault(Code::BadOauthSetting, node, format!("{} in `scopes` is not a scope", quoted(scope)), "", hint);
}

/// Reports a resource that is not an absolute URI without a fragment (RFC 8707, section 2).
fn check_resource(reader: &mut ConfigReader<'_>, node: &Node) {
    let Some(resource) = node.as_str().filter(|resource| !resource.is_empty()) else { return };
    if !Url::parse(resource).is_ok_and(|url| url.fragment().is_none()) {
        let hint = "it is an absolute URI without a fragment, such as `https://api.example.com`";
        reader.fault(Code::BadOauthSetting, node, format!("{} is not the URI of a resource", quoted(resource)), "", hint);
    }
}
