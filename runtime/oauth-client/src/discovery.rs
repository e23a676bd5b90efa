//! Finds the authorization server of an upstream, as the authorization chapters of MCP describe it (revisions 2025-11-25 and 2026-07-28):
//! the challenge of the upstream, its protected-resource metadata (RFC 9728), and the metadata of the authorization server that this names.
//!
//! An upstream without protected-resource metadata is its own authorization server (revision 2025-03-26).

use ptc_upstream::http::address::MAX_URL;
use ptc_upstream::http::client::OutgoingRequest;
use reqwest::Method;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value, json};
use url::Url;

use crate::challenge::{self, Challenge};
use crate::metadata::{FetchError, Fetcher, Metadata};

/// The path before that of the upstream (RFC 9728, section 3).
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";
/// The revision whose requests name their method in a header.
const REVISION: &str = "2026-07-28";

/// What an upstream says about its authorization server.
pub(crate) struct Discovered {
    /// The issuer, exactly as the upstream writes it.
    pub(crate) issuer: String,
    /// The metadata of the issuer.
    pub(crate) metadata: Metadata,
    /// The parameter `resource`, exactly as the upstream publishes it. Empty if it publishes none.
    pub(crate) resource: String,
    /// Where the metadata of the protected resource is. Empty if there is none.
    pub(crate) resource_metadata: String,
    /// The scopes that the upstream asks for. Empty if it names none.
    pub(crate) scope: String,
    /// Whether the tokens must be bound to a key (RFC 9449).
    pub(crate) needs_proof: bool,
}

/// What an upstream says whose authorization server the config has.
pub(crate) struct ProbeAnswer {
    /// The issuer of the config if the metadata of the upstream names it, otherwise the first one, and the parameter `resource` of the
    /// metadata. `None` if there is no usable metadata, or if it names no server.
    pub(crate) named: Option<(String, String)>,
    /// Whether the metadata names the issuer of the config. True if there is no usable metadata.
    pub(crate) names_issuer: bool,
    /// The scopes that the upstream asks for. Empty if it names none.
    pub(crate) scope: String,
    /// Whether the tokens must be bound to a key (RFC 9449).
    pub(crate) needs_proof: bool,
}

/// The metadata of a protected resource.
struct Resource {
    url: Url,
    /// The parameter `resource`, as it is published.
    identifier: String,
    authorization_servers: Vec<String>,
    scopes_supported: String,
    needs_proof: bool,
}

/// Asks an upstream, then its authorization server.
///
/// # Errors
///
/// Returns a clause that says why there is no usable authorization server.
pub(crate) async fn discover(fetcher: &Fetcher<'_>, upstream: &Url) -> Result<Discovered, String> {
    let challenge = challenge_of(fetcher, upstream).await?;
    let resource = match resource_of(fetcher, upstream, &challenge).await {
        Ok(resource) => resource,
        Err(FetchError::Absent(why)) => return of_origin(fetcher, upstream, challenge, &why).await,
        Err(FetchError::Unusable(why)) => return Err(why),
    };
    let Some(issuer) = resource.authorization_servers.first() else {
        return Err(format!("{} has no `authorization_servers`", resource.url));
    };
    if !is_printable(issuer) {
        return Err(format!("{} names an authorization server that is not a URL", resource.url));
    }
    let metadata = fetcher.metadata(issuer).await.map_err(FetchError::into_clause)?;
    let scope = if challenge.scope.is_empty() { resource.scopes_supported } else { challenge.scope };
    Ok(Discovered {
        issuer: issuer.clone(),
        metadata,
        resource: resource.identifier,
        resource_metadata: resource.url.into(),
        scope,
        needs_proof: challenge.needs_proof || resource.needs_proof,
    })
}

/// Asks an upstream whose authorization server the config has. `issuer` is that of the config, and may be empty. `None` if the upstream cannot
/// be asked.
pub(crate) async fn ask(fetcher: &Fetcher<'_>, upstream: &Url, issuer: &str) -> Option<ProbeAnswer> {
    let challenge = challenge_of(fetcher, upstream).await.ok()?;
    let Ok(resource) = resource_of(fetcher, upstream, &challenge).await else {
        let Challenge { scope, needs_proof, .. } = challenge;
        return Some(ProbeAnswer { named: None, names_issuer: true, scope, needs_proof });
    };
    let names_issuer = resource.authorization_servers.iter().any(|named| named == issuer);
    let first = resource.authorization_servers.first().filter(|first| is_printable(first)).cloned();
    let server = if names_issuer { Some(issuer.to_owned()) } else { first };
    Some(ProbeAnswer {
        named: server.map(|issuer| (issuer, resource.identifier)),
        names_issuer,
        scope: if challenge.scope.is_empty() { resource.scopes_supported } else { challenge.scope },
        needs_proof: challenge.needs_proof || resource.needs_proof,
    })
}

/// Whether the metadata of a protected resource still names an issuer. If it is not at its URL any more, the upstream is asked where it is.
/// `None` if it cannot be read now.
pub(crate) async fn still_names(fetcher: &Fetcher<'_>, upstream: &Url, resource_metadata: &str, issuer: &str) -> Option<bool> {
    let url = Url::parse(resource_metadata).ok()?;
    let members = match fetcher.document(&url).await {
        Ok(members) => members,
        Err(FetchError::Absent(_)) => {
            let answer = ask(fetcher, upstream, issuer).await?;
            return (answer.named.is_some() || !answer.names_issuer).then_some(answer.names_issuer);
        }
        Err(FetchError::Unusable(_)) => return None,
    };
    let resource = Resource::read(url, &members, upstream).ok().filter(|resource| !resource.authorization_servers.is_empty())?;
    Some(resource.authorization_servers.iter().any(|named| named == issuer))
}

/// Sends a request without a token, and returns the challenge of the answer. It is empty if there is none.
///
/// The request lists tools, which changes nothing. Some servers answer `initialize` and `server/discover` without a token.
async fn challenge_of(fetcher: &Fetcher<'_>, upstream: &Url) -> Result<Challenge, String> {
    let headers = HeaderMap::from_iter([
        (ACCEPT, HeaderValue::from_static("application/json, text/event-stream")),
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (HeaderName::from_static("mcp-protocol-version"), HeaderValue::from_static(REVISION)),
        (HeaderName::from_static("mcp-method"), HeaderValue::from_static("tools/list")),
    ]);
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": {
        "io.modelcontextprotocol/protocolVersion": REVISION,
        "io.modelcontextprotocol/clientInfo": { "name": "ptc-compile", "version": env!("CARGO_PKG_VERSION") },
        "io.modelcontextprotocol/clientCapabilities": {},
    } } });
    let request = OutgoingRequest {
        body: body.to_string().into(),
        repeatable: true,
        follows: false,
        ..OutgoingRequest::new(Method::POST, upstream, headers)
    };
    let answer = fetcher.http.send(request, fetcher.deadline).await;
    let answer = answer.map_err(|fault| match &*fault.message {
        "" => "it gave no answer in time".to_owned(),
        message => format!("it cannot be asked: {message}"),
    })?;
    Ok(if answer.status().as_u16() == 401 { Challenge::read(answer.headers()).unwrap_or_default() } else { Challenge::default() })
}

/// Fetches the metadata of a protected resource from where the challenge says that it is, or else from its well-known places.
async fn resource_of(fetcher: &Fetcher<'_>, upstream: &Url, challenge: &Challenge) -> Result<Resource, FetchError> {
    match &*challenge.resource_metadata {
        "" => well_known(fetcher, upstream).await,
        // No other place counts if the upstream names one.
        text => match upstream.join(text) {
            Ok(url) => match fetcher.document(&url).await {
                Ok(members) => Resource::read(url, &members, upstream).map_err(FetchError::Unusable),
                Err(why) => Err(FetchError::Unusable(why.into_clause())),
            },
            Err(why) => Err(FetchError::Unusable(format!("`resource_metadata` of its challenge is not a URL: {why}"))),
        },
    }
}

/// Fetches the metadata of a protected resource from its well-known places: that with the path of the upstream, then that of its origin.
async fn well_known(fetcher: &Fetcher<'_>, upstream: &Url) -> Result<Resource, FetchError> {
    let at = |path: &str| {
        let mut url = upstream.clone();
        url.set_path(path);
        url.set_query(None);
        url.set_fragment(None);
        url
    };
    let path = upstream.path().trim_end_matches('/');
    let mut urls = vec![at(&format!("{WELL_KNOWN}{path}"))];
    if !path.is_empty() {
        urls.push(at(WELL_KNOWN));
    }
    let mut errors = Vec::new();
    for url in urls {
        match fetcher.document(&url).await {
            Ok(members) => return Resource::read(url, &members, upstream).map_err(FetchError::Unusable),
            Err(why) => errors.push(why),
        }
    }
    Err(FetchError::joined(errors))
}

/// Returns the origin of the upstream as authorization server (MCP, revision 2025-03-26, "Authorization Base URL").
async fn of_origin(fetcher: &Fetcher<'_>, upstream: &Url, challenge: Challenge, absent: &str) -> Result<Discovered, String> {
    let issuer = upstream.origin().ascii_serialization();
    let metadata = match fetcher.metadata(&issuer).await {
        Ok(metadata) => metadata,
        Err(FetchError::Absent(_)) => {
            let origin = Url::parse(&issuer).map_err(|_| absent.to_owned())?;
            Metadata::of_default_endpoints(&origin)
        }
        Err(FetchError::Unusable(why)) => return Err(format!("{absent}, and {why}")),
    };
    let Challenge { scope, needs_proof, .. } = challenge;
    Ok(Discovered { issuer, metadata, resource: String::new(), resource_metadata: String::new(), scope, needs_proof })
}

impl Resource {
    /// Reads a document, which must be that of the upstream: otherwise its tokens would be valid at another server.
    fn read(url: Url, members: &Map<String, Value>, upstream: &Url) -> Result<Resource, String> {
        let texts = |name: &str| {
            let list = members.get(name).and_then(Value::as_array);
            list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
        };
        let resource = members.get("resource").and_then(Value::as_str).ok_or_else(|| format!("{url} has no `resource`"))?;
        if !contains(resource, upstream) {
            let shown: String = resource.chars().filter(char::is_ascii_graphic).take(200).collect();
            return Err(format!("{url} is the metadata of another resource: {shown}"));
        }
        let scopes = texts("scopes_supported");
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        Ok(Resource {
            identifier: resource.to_owned(),
            authorization_servers: texts("authorization_servers"),
            scopes_supported: challenge::union(&scopes),
            needs_proof: members.get("dpop_bound_access_tokens_required") == Some(&Value::Bool(true)),
            url,
        })
    }
}

/// Returns whether a text is short and printable. A person reads it in a terminal and in the lock file, and a parser of URLs accepts control
/// characters.
fn is_printable(text: &str) -> bool {
    text.len() <= MAX_URL && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Whether a resource is the upstream, or a part of its origin that contains it.
fn contains(resource: &str, upstream: &Url) -> bool {
    if !is_printable(resource) {
        return false;
    }
    let Ok(resource) = Url::parse(resource) else { return false };
    let (outer, inner) = (resource.path().trim_end_matches('/'), upstream.path().trim_end_matches('/'));
    let is_outer = inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let is_plain = resource.username().is_empty() && resource.password().is_none() && resource.fragment().is_none();
    is_plain
        && is_outer
        && resource.origin() == upstream.origin()
        && resource.query().is_none_or(|query| upstream.query() == Some(query))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_of_another_resource_is_refused() {
        let upstream = Url::parse("https://mcp.example/a/mcp?x=1").unwrap();
        let url = || Url::parse("https://mcp.example/.well-known/oauth-protected-resource").unwrap();
        for (resource, expected) in [
            ("https://mcp.example/a/mcp", true),
            ("https://mcp.example/a/mcp/", true),
            ("https://MCP.example:443/a", true),
            ("https://mcp.example", true),
            ("https://mcp.example/a/mcp?x=1", true),
            ("https://mcp.example/a/mcp?x=2", false),
            ("https://mcp.example/a/mc", false),
            ("https://mcp.example/a/mcp/b", false),
            ("https://mcp.example/a/mcp#f", false),
            ("http://mcp.example/a/mcp", false),
            ("https://mcp.example:8443/a/mcp", false),
            ("https://evil.example/a/mcp", false),
            ("https://mcp.example@evil.example/a/mcp", false),
            ("https://user@mcp.example/a/mcp", false),
            ("https://mcp.example/a/mcp\n", false),
            ("/a/mcp", false),
            ("", false),
        ] {
            let Value::Object(members) = json!({ "resource": resource, "authorization_servers": ["https://id.example"] }) else {
                panic!("an object")
            };
            assert_eq!(Resource::read(url(), &members, &upstream).is_ok(), expected, "{resource}");
        }
        assert!(Resource::read(url(), &Map::new(), &upstream).is_err());
    }
}
