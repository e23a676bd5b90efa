//! Reads the elements of `auth` with the scheme `oauth2`.

use ptc_catalog::{ClientAuth, GrantType, OAuth2};
use url::Url;

use super::credentials::Bindings;
use super::exchange;
use super::fields::{Fields, Subject};
use super::model::McpHttp;
use super::reader::ConfigReader;
use super::urls::{self, Named};
use crate::diag::{Code, Diagnostic};
use crate::source::Span;
use crate::tree::Node;

/// Reads the URLs of the authorization servers of an entry and reports their faults. They need TLS as the URLs of the entry do.
pub(super) fn server_urls<'n>(reader: &mut ConfigReader<'_>, fields: &Fields<'n>) -> Vec<Named<'n>> {
    let is_oauth = |auth: &&Node| auth.get("scheme").and_then(Node::as_str) == Some("oauth2");
    let url = |server: &'n Node| {
        // Beside `token_url`, an issuer is an audience, which may be any text.
        let key = if server.get("token_url").is_some() { "token_url" } else { "issuer" };
        urls::read_node(reader, key, server.get(key)?)
    };
    let servers = fields.nodes("auth").iter().filter(is_oauth);
    servers.flat_map(|auth| [Some(auth), auth.get("identity_provider")]).flatten().filter_map(url).collect()
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

impl McpHttp {
    /// Whether a resource is the identifier of this server itself, as of an entry without `resource`.
    pub(crate) fn is_own_resource(&self, resource: &str) -> bool {
        Url::parse(&self.url.value).is_ok_and(|url| resource_of(&url) == resource)
    }
}

/// Reads an element. `resource` is the parameter of that name for an MCP server, unless the element has another one.
pub(super) fn read(
    reader: &mut ConfigReader<'_>,
    subject: &Subject,
    fields: &Fields<'_>,
    bindings: &Bindings,
    resource: Option<&str>,
) -> Option<OAuth2<String>> {
    let has = |name: &str| fields.member(name).is_some() || fields.unfit(name).is_some();
    let grant = fields.text("grant").and_then(|name| GrantType::named(&name));
    let is_registered = !has("client_id");
    let (has_token_url, needs_issuer) = (has("token_url"), !has("token_url") && !has("issuer"));
    // An authorization server that does not know the client in advance has no credential of it.
    let is_document = fields.text("client_id").is_some_and(|id| id.starts_with("https://"));
    let is_found = needs_issuer && grant.is_some_and(GrantType::needs_metadata);
    let may_be_public = grant != Some(GrantType::ClientCredentials);
    let is_public = !has("binding") && may_be_public && (is_registered || is_document || is_found);
    let client_auth = client_auth(fields, is_public);
    if needs_issuer {
        check_discovery(reader, subject, fields, grant, resource.is_some());
    }
    if is_registered {
        check_registration(reader, subject, fields, grant);
    }
    check_login(reader, fields, grant);
    if client_auth == Some(ClientAuth::None) && grant == Some(GrantType::ClientCredentials) {
        check_anonymous(reader, fields);
    }
    check_client(reader, subject, fields, client_auth);
    let is_audience = has_token_url && fields.member("identity_provider").is_none();
    check_assertion(reader, fields, bindings, client_auth, is_audience);
    let exchange = exchange::read(reader, subject, fields, bindings, grant);
    check_scopes(reader, fields);
    check_resource(reader, fields);
    check_issuer(reader, fields);
    if is_document && !has("binding") && !has_token_url {
        check_document(reader, fields);
    }
    check_client_id(reader, fields);
    Some(OAuth2 {
        grant: grant?,
        token_url: fields.text("token_url").unwrap_or_default(),
        client_id: if is_registered { String::new() } else { fields.text("client_id")? },
        client_auth: client_auth?,
        binding: fields.text("binding").unwrap_or_default(),
        key_id: fields.text("key_id").unwrap_or_default(),
        issuer: fields.text("issuer").unwrap_or_default(),
        scope: fields.texts("scopes").join(" "),
        resource: fields.text("resource").unwrap_or_else(|| resource.unwrap_or_default().to_owned()),
        audience: fields.text("audience").unwrap_or_default(),
        subject: fields.text("subject").unwrap_or_default(),
        // The lock file has them.
        pinned_issuer: String::new(),
        pinned_resource: String::new(),
        pinned_proof: false,
        subject_type: exchange.subject_type,
        identity_provider: exchange.identity_provider,
    })
}

/// Returns the form of client authentication. A public client needs none.
pub(super) fn client_auth(fields: &Fields<'_>, is_public: bool) -> Option<ClientAuth> {
    let default = if is_public { ClientAuth::None } else { ClientAuth::SecretBasic };
    fields.text("client_auth").map_or(Some(default), |name| ClientAuth::named(&name))
}

/// Reports parts of assertions that the client does not sign, and an assertion that is not in a file. `is_audience` says whether `issuer` is
/// only the audience of an assertion.
pub(super) fn check_assertion(
    reader: &mut ConfigReader<'_>,
    fields: &Fields<'_>,
    bindings: &Bindings,
    client_auth: Option<ClientAuth>,
    is_audience: bool,
) {
    for (name, is_unused) in [("key_id", true), ("issuer", is_audience)] {
        if is_unused && client_auth.is_some_and(|form| form != ClientAuth::PrivateKeyJwt) {
            let message = format!("`{name}` is a part of the assertions that a client signs, and this client signs none");
            let hint = match name {
                "issuer" => "remove it, or remove `token_url`, which the metadata of the issuer has",
                _ => "remove it, or write \"client_auth\": \"private_key_jwt\"",
            };
            fields.fault(reader, name, message, "without effect", hint);
        }
    }
    if client_auth == Some(ClientAuth::AssertionFile)
        && let Some(node) = fields.node("binding")
        && let Some(binding) = node.as_str()
    {
        let message = "`client_assertion_file` reads the assertion again for each request, and the credential is not a file";
        check_file(reader, bindings, binding, node.place(reader.file), message);
    }
}

/// Reports a credential that is not in a file, although it is read again for each request.
pub(super) fn check_file(reader: &mut ConfigReader<'_>, bindings: &Bindings, binding: &str, place: Span, message: &'static str) {
    if let Some(source) = bindings.not_a_file(binding) {
        let diagnostic = Diagnostic::new(Code::TokenNotInFile, message)
            .at(place, "not a file")
            .also(source.clone(), "read when the server starts")
            .hint("write the credential as { \"source\": \"file\", \"path\": … }");
        reader.report(diagnostic);
    }
}

/// Reports a missing authorization server, unless a person logs in at the one that the upstream names. A credential of the config
/// belongs to one authorization server: an upstream that could name another one would get it.
fn check_discovery(
    reader: &mut ConfigReader<'_>,
    subject: &Subject,
    fields: &Fields<'_>,
    grant: Option<GrantType>,
    is_mcp: bool,
) {
    if !is_mcp || !grant.is_some_and(GrantType::needs_metadata) {
        let diagnostic = Diagnostic::new(Code::MissingKey, format!("{} lacks the key `token_url`", subject.name));
        let hint =
            "`token_url` is the URL that issues tokens; `issuer` in its place is the URL of an issuer whose metadata has it";
        reader.report(diagnostic.at(subject.place.clone(), "`token_url` or `issuer` is missing").hint(hint));
        return;
    }
    let message = "`binding` is a credential for one authorization server, and without `issuer` the upstream names that server";
    fields.fault(reader, "binding", message, "", "write the `issuer` that knows the client");
    let message = "`resource` has no effect without `issuer`, because the metadata of the upstream has the resource";
    fields.fault(reader, "resource", message, "without effect", "remove it, or write `issuer`");
}

/// Reports a client without an identifier that no login registers, and that does not act for another party, whose token it exchanges.
fn check_registration(reader: &mut ConfigReader<'_>, subject: &Subject, fields: &Fields<'_>, grant: Option<GrantType>) {
    let exchanges = grant.is_some_and(exchange::is_exchange);
    if !exchanges && !grant.is_some_and(GrantType::needs_metadata) {
        let diagnostic = Diagnostic::new(Code::MissingKey, format!("{} lacks the key `client_id`", subject.name));
        let hint = "`client_id` is a string: the identifier of this client at the authorization server";
        reader.report(diagnostic.at(subject.place.clone(), "`client_id` is missing").hint(hint));
        return;
    }
    for name in ["binding", "client_auth"] {
        if fields.text(name).is_some_and(|value| value != ClientAuth::None.name()) {
            let without =
                if exchanges { "there is none without `client_id`" } else { "without `client_id` the login registers one" };
            let message = format!("`{name}` belongs to a known client, and {without}");
            fields.fault(reader, name, message, "without effect", "remove it, or write `client_id`");
        }
    }
}

/// Reports a grant with a login whose endpoints are not known: only the metadata of an issuer has them, which also binds the answer of
/// the browser to the issuer.
fn check_login(reader: &mut ConfigReader<'_>, fields: &Fields<'_>, grant: Option<GrantType>) {
    let Some(grant) = grant.filter(|grant| grant.needs_metadata()) else { return };
    let message = format!("`{}` finds its endpoints in the metadata of `issuer`, and `token_url` replaces them", grant.name());
    fields.fault(reader, "token_url", message, "", "write `issuer` in its place");
}

/// Reports a public client that acts for itself.
fn check_anonymous(reader: &mut ConfigReader<'_>, fields: &Fields<'_>) {
    let hint = "choose another `client_auth`, and name the credential as `binding`";
    let message = "`client_auth` is `none`, and `client_credentials` is for clients with a credential (RFC 6749, section 4.4)";
    fields.fault(reader, "client_auth", message, "", hint);
}

/// Reports a client without a credential that needs one, and a public client with one.
pub(super) fn check_client(
    reader: &mut ConfigReader<'_>,
    subject: &Subject,
    fields: &Fields<'_>,
    client_auth: Option<ClientAuth>,
) {
    let is_public = client_auth == Some(ClientAuth::None);
    match fields.node("binding") {
        Some(_) if is_public => {
            let message = "`binding` is the credential of a client, and `\"client_auth\": \"none\"` sends none";
            fields.fault(reader, "binding", message, "without effect", "remove it, or choose another `client_auth`");
        }
        None if !is_public && fields.unfit("binding").is_none() => {
            let diagnostic = Diagnostic::new(Code::MissingKey, format!("{} lacks the key `binding`", subject.name));
            let hint =
                "`binding` is the entry of `credentials` with the client's secret; a public client has \"client_auth\": \"none\"";
            reader.report(diagnostic.at(subject.place.clone(), "`binding` is missing").hint(hint));
        }
        _ => {}
    }
}

/// Whether a text is a scope (RFC 6749, section 3.3).
pub(super) fn is_scope(text: &str) -> bool {
    text.chars().all(|c| matches!(c, '!' | '#'..='[' | ']'..='~'))
}

/// What a scope consists of.
pub(super) const SCOPE_CHARACTERS: &str = "a scope has visible ASCII characters other than `\"` and `\\`";

/// Reports scopes that are not one.
fn check_scopes(reader: &mut ConfigReader<'_>, fields: &Fields<'_>) {
    for node in fields.nodes("scopes") {
        let Some(scope) = node.as_str().filter(|scope| !scope.is_empty() && !is_scope(scope)) else { continue };
        let hint = if scope.contains(' ') { "write each scope as an element of its own" } else { SCOPE_CHARACTERS };
        let message = format!("{} in `scopes` is not a scope", reader.quoted(scope, &node.place(reader.file)));
        reader.fault(fields.code("scopes"), node, message, "", hint);
    }
}

/// Reports an issuer whose metadata has no URL (RFC 8414, section 2). Beside `token_url`, an issuer may be any text. [`server_urls`] reports
/// a fragment.
pub(super) fn check_issuer(reader: &mut ConfigReader<'_>, fields: &Fields<'_>) {
    let has_token_url = fields.member("token_url").is_some() || fields.unfit("token_url").is_some();
    let url = fields.text("issuer").and_then(|issuer| Url::parse(&issuer).ok());
    if !has_token_url && url.is_some_and(|url| url.query().is_some()) {
        let hint = "write the `issuer` of its metadata, or the endpoint as `token_url`";
        fields.fault(reader, "issuer", "`issuer` has a query, and the URL of an issuer has none", "", hint);
    }
}

/// Reports an identifier that no parameter can have.
pub(super) fn check_client_id(reader: &mut ConfigReader<'_>, fields: &Fields<'_>) {
    if fields.text("client_id").is_some_and(|id| id.contains(char::is_control)) {
        let hint = "write it as the authorization server shows it";
        fields.fault(reader, "client_id", "`client_id` has a control character", "", hint);
    }
}

/// Reports the URL of a client-ID metadata document that no authorization server may accept.
fn check_document(reader: &mut ConfigReader<'_>, fields: &Fields<'_>) {
    let Some(url) = fields.text("client_id").and_then(|id| Url::parse(&id).ok()) else { return };
    let has_user = !url.username().is_empty() || url.password().is_some();
    if url.path() == "/" || url.fragment().is_some() || has_user {
        let hint = "such a URL has a path, and neither a fragment nor a user, for example `https://app.example.com/client.json`";
        fields.fault(reader, "client_id", "`client_id` is not the URL of a client's metadata document", "", hint);
    }
}

/// Reports a resource that is not an absolute URI without a fragment (RFC 8707, section 2).
fn check_resource(reader: &mut ConfigReader<'_>, fields: &Fields<'_>) {
    let Some(resource) = fields.text("resource").filter(|resource| !resource.is_empty()) else { return };
    if !Url::parse(&resource).is_ok_and(|url| url.fragment().is_none()) {
        let message = "`resource` is not an absolute URI without a fragment";
        fields.fault(reader, "resource", message, "", "write the URI of the service, such as `https://api.example.com`");
    }
}
