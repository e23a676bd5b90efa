//! What clients see of access tokens: the metadata of the protected resource (RFC 9728), and the challenges (RFC 6750).

use ptc_runtime::server::identity::Identity;
use ptc_runtime::settings::OauthSettings;
use serde_json::{Map, Value};

/// The path of the metadata at the root of the server.
const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

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
    /// Describes the resource of the settings. `endpoint` is the path of the protocol on this listener.
    pub(crate) fn new(settings: &OauthSettings, endpoint: &str) -> Option<Resource> {
        let (issuer, resource) = (settings.issuer.as_deref()?, settings.resource()?);
        let (scheme, rest) = resource.split_once("://")?;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let path = path.trim_end_matches('/');
        let mut metadata = Map::new();
        metadata.insert("resource".into(), resource.into());
        metadata.insert("authorization_servers".into(), [issuer].into_iter().collect());
        metadata.insert("bearer_methods_supported".into(), ["header"].into_iter().collect());
        if !settings.scopes.is_empty() {
            metadata.insert("scopes_supported".into(), settings.scopes.clone().into());
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
        let mut all: Vec<&str> = Vec::new();
        for scope in self.scopes.iter().chain(more) {
            // A scope of a token may be any text. A challenge can only name those that RFC 6749 permits.
            let is_plain = scope.bytes().all(|byte| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e));
            if is_plain && !all.contains(&scope.as_str()) {
                all.push(scope);
            }
        }
        let scopes = Some(all.join(" ")).filter(|scopes| !scopes.is_empty());
        let scope = scopes.map(|scopes| format!(", scope=\"{scopes}\"")).unwrap_or_default();
        let error = error.map(|(error, why)| format!(", error=\"{error}\", error_description=\"{why}\"")).unwrap_or_default();
        format!("{}{error}{scope}", self.challenge)
    }
}
