//! What clients see of access tokens: the metadata of the protected resource (RFC 9728), and the challenges (RFC 6750).

use ptc_runtime::server::identity::Identity;
use ptc_runtime::settings::OauthSettings;
use serde_json::{Map, Value};

/// The path of the metadata at the root of the server.
const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

/// Maximum number of scopes in the metadata, which anybody can request.
const MAX_SUPPORTED: usize = 100;

/// The protected resource that this server is.
pub(crate) struct Resource {
    /// The paths of its metadata.
    paths: Vec<String>,
    metadata: String,
    /// The parameters of every challenge.
    challenge: String,
    /// The required scopes, as in a challenge.
    scopes: Vec<String>,
}

impl Resource {
    /// Describes the resource of the settings. `endpoint` is the path of the protocol on this listener, and `policy_scopes` are the scopes
    /// that rules of the policy name.
    pub(crate) fn new(settings: &OauthSettings, endpoint: &str, policy_scopes: &[&str]) -> Option<Resource> {
        let (issuer, resource) = (settings.issuer.as_deref()?, settings.resource()?);
        let (scheme, rest) = resource.split_once("://")?;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let path = path.trim_end_matches('/');
        let mut metadata = Map::new();
        metadata.insert("resource".into(), resource.into());
        metadata.insert("authorization_servers".into(), [issuer].into_iter().collect());
        metadata.insert("bearer_methods_supported".into(), ["header"].into_iter().collect());
        // MCP clients ask for exactly the scopes of the first challenge, and for those of the metadata if it has none. The challenge of a
        // request without a token therefore has only required scopes: with those of the policy, every login would ask for all that any rule
        // needs, although the operator has said which scopes suffice. Without required scopes, the metadata leads to a token with which a
        // caller can do what the rules permit, and not to one whose first call is refused.
        let supported = plain(settings.scopes.iter().map(String::as_str).chain(policy_scopes.iter().copied()));
        if !supported.is_empty() {
            metadata.insert("scopes_supported".into(), supported.into_iter().take(MAX_SUPPORTED).collect());
        }
        // A reverse proxy may have removed a prefix of the path that clients see.
        let paths = vec![METADATA_PATH.to_owned(), format!("{METADATA_PATH}{path}"), format!("{METADATA_PATH}{endpoint}")];
        let challenge = format!("Bearer resource_metadata=\"{scheme}://{authority}{METADATA_PATH}{path}\"");
        Some(Resource { paths, metadata: Value::from(metadata).to_string(), challenge, scopes: settings.scopes.clone() })
    }

    /// Returns the metadata if a path is one of its paths.
    pub(crate) fn metadata(&self, path: &str) -> Option<&str> {
        self.paths.iter().any(|known| known == path).then_some(&self.metadata)
    }

    /// Whether an identity has all required scopes.
    pub(crate) fn permits(&self, identity: &Identity) -> bool {
        self.scopes.iter().all(|scope| identity.scopes.contains(scope))
    }

    /// Returns a challenge with an error and its description. It names the required scopes and `more`, each once.
    pub(crate) fn challenge(&self, error: Option<(&str, &str)>, more: &[String]) -> String {
        let all = plain(self.scopes.iter().chain(more).map(String::as_str));
        let scopes = Some(all.join(" ")).filter(|scopes| !scopes.is_empty());
        let scope = scopes.map(|scopes| format!(", scope=\"{scopes}\"")).unwrap_or_default();
        let error = error.map(|(error, why)| format!(", error=\"{error}\", error_description=\"{why}\"")).unwrap_or_default();
        format!("{}{error}{scope}", self.challenge)
    }
}

/// Returns scopes each once. A scope of a token or rule may be any text. A client can only ask for those that RFC 6749 permits.
fn plain<'s>(scopes: impl Iterator<Item = &'s str>) -> Vec<&'s str> {
    let is_plain = |scope: &str| scope.bytes().all(|byte| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e));
    let mut all: Vec<&str> = Vec::new();
    for scope in scopes.filter(|scope| !scope.is_empty() && is_plain(scope)) {
        if !all.contains(&scope) {
            all.push(scope);
        }
    }
    all
}
