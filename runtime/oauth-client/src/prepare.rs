//! Prepares a login: finds what the config does not have.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ptc_catalog::{ClientAuth, OAuth2};
use ptc_upstream::{Reason, UpstreamError};
use url::Url;

use crate::challenge;
use crate::discovery::{self, Discovered};
use crate::login::{AuthorizationServer, LoginClient};
use crate::metadata::Metadata;
use crate::party::Party;
use crate::pin;
use crate::proof::{self, ProofKey};
use crate::registration::{self, Registered};
use crate::store::Found;

/// Time limit for finding the authorization server of an upstream, with all requests.
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(30);

/// What a login needs besides the person. It deliberately has no `Debug`.
pub(crate) struct Prepared {
    pub(crate) party: Arc<Party>,
    pub(crate) metadata: Metadata,
    pub(crate) token_endpoint: Url,
    /// The scopes that are requested.
    pub(crate) scope: String,
    /// What the config does not have.
    pub(crate) found: Option<Found>,
    /// The issuer of the last login, if it is another one.
    earlier_issuer: Option<String>,
}

impl Prepared {
    /// Describes the authorization server, if the login has found more than the config has.
    pub(crate) fn server(&self) -> Option<String> {
        let server = self.found.as_ref().map(|Found { issuer, .. }| match &self.earlier_issuer {
            None => format!("the authorization server is {issuer}"),
            Some(earlier) => {
                format!("the authorization server is now {issuer}, and was {earlier}: continue only if you know of the change")
            }
        });
        let is_of_config = self.scope == self.party.oauth.scope;
        let scopes = (!is_of_config).then(|| format!("the upstream asks for the scopes `{}`", self.scope));
        let parts: Vec<String> = server.into_iter().chain(scopes).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

impl LoginClient {
    /// Finds out what the config does not have: the authorization server, the scopes, the client.
    ///
    /// # Errors
    ///
    /// There is no usable authorization server, it does not support PKCE with S256, or it does not register the client.
    pub(crate) async fn prepare(&self, redirect_uri: Option<&str>) -> Result<Prepared, UpstreamError> {
        let config = &self.endpoint.party().oauth;
        // The person is not asked in vain.
        self.store.check().await.map_err(UpstreamError::unavailable)?;
        // A damaged file is replaced by this login.
        let stored = self.stored().await.ok().flatten();
        let Discovered { issuer, metadata, resource, resource_metadata, scope: asked_scope, needs_proof } = self.server().await?;
        let oauth = OAuth2 { issuer, resource, ..config.clone() };
        // MCP requires that a server announces it. The issuer of a config may be an older one, which ignores the parameters.
        let supports = metadata.lists("code_challenge_methods_supported", "S256").unwrap_or(!config.is_discovered());
        if redirect_uri.is_some() && !supports {
            let why = "`code_challenge_methods_supported` lacks `S256`";
            return Err(self.endpoint.unusable_metadata(&oauth.issuer, "support of PKCE", why));
        }
        if needs_proof && metadata.lists("dpop_signing_alg_values_supported", proof::ALGORITHM) != Some(true) {
            let why =
                format!("`dpop_signing_alg_values_supported` lacks `{}`, and the upstream needs such tokens", proof::ALGORITHM);
            return Err(self.endpoint.unusable_metadata(&oauth.issuer, "support of tokens that are bound to a key (DPoP)", &why));
        }
        // Clients, tokens and scopes belong to their issuer.
        let earlier_issuer = stored.as_ref().and_then(|login| login.found.as_ref()).map(|found| found.issuer.clone());
        let earlier_issuer = earlier_issuer.filter(|earlier| *earlier != oauth.issuer);
        let mut scope = scope_of(&oauth.scope, &asked_scope, &metadata);
        // Scopes that the config has are a decision of the operator.
        if earlier_issuer.is_none() && config.scope.is_empty() {
            let earlier = stored.as_ref().map(|login| &*login.scope).unwrap_or_default();
            scope = challenge::union(&[&scope, earlier, &self.store.noted_scope(&self.key)]);
        }
        // A document of the client's metadata is at a URL, which only some servers accept as identifier.
        let is_document = config.is_discovered() && config.client_id.starts_with("https://");
        let is_unknown = is_document && !metadata.is_true("client_id_metadata_document_supported");
        let client = if config.client_id.is_empty() || is_unknown {
            // A registration has the port of this login, and many servers compare it. Each login registers the client again.
            Some(registration::register(&self.endpoint, &metadata, oauth.grant, redirect_uri, &scope).await?)
        } else {
            None
        };
        let failed = |why| UpstreamError::new(Reason::AuthFailed, format!("the key of the tokens {why}"));
        let proof_key = needs_proof.then(ProofKey::generate).transpose().map_err(failed)?;
        let found = (config.is_discovered() || client.is_some()).then(|| {
            let client = client.unwrap_or_else(|| Registered {
                id: oauth.client_id.clone(),
                auth: ClientAuth::None,
                secret: String::new(),
            });
            Found {
                issuer: oauth.issuer.clone(),
                resource: oauth.resource.clone(),
                resource_metadata,
                client_id: client.id,
                client_auth: client.auth.name().to_owned(),
                client_secret: client.secret,
                proof_key: proof_key.map(|key| key.to_string()).unwrap_or_default(),
            }
        });
        let party = match &found {
            None => Arc::clone(self.endpoint.party()),
            Some(found) => {
                let party = Party::of_found(config, found, &self.redactor);
                Arc::new(party.map_err(|why| UpstreamError::new(Reason::AuthFailed, format!("the registered client {why}")))?)
            }
        };
        let token_endpoint = self.url_of(&party, &metadata, "token_endpoint")?;
        Ok(Prepared { party, metadata, token_endpoint, scope, found, earlier_issuer })
    }

    /// Returns the authorization server of the config, or that which the upstream names. The latter must be the one of the lock file.
    async fn server(&self) -> Result<Discovered, UpstreamError> {
        let party = self.endpoint.party();
        let config = &party.oauth;
        if !config.is_discovered() {
            let asked = match &self.probe {
                Some(probe) => probe.ask().await,
                None => None,
            };
            // The scopes of other issuers may be unknown at this one.
            let scope = asked.as_ref().filter(|asked| asked.names_issuer).map(|asked| asked.scope.clone());
            return Ok(Discovered {
                issuer: config.issuer.clone(),
                metadata: self.endpoint.metadata(party).await?,
                resource: config.resource.clone(),
                resource_metadata: String::new(),
                scope: scope.unwrap_or_default(),
                needs_proof: false,
            });
        }
        let found = self.discover().await?;
        let Some(difference) = pin::difference(config, &found.issuer, &found.resource, found.needs_proof) else {
            return Ok(found);
        };
        let name = self.endpoint.upstream();
        let message = format!(
            "the upstream names {difference}; a person must review this: `ptc-compile update CONFIG {name}` shows the change and writes it \
             into the lock file"
        );
        Err(UpstreamError::new(Reason::AuthFailed, message))
    }

    /// Asks the upstream for its authorization server, without a token. Nothing is stored.
    ///
    /// # Errors
    ///
    /// The upstream does not lead to a usable authorization server.
    pub async fn authorization_server(&self) -> Result<AuthorizationServer, UpstreamError> {
        let Discovered { issuer, resource, scope, needs_proof, .. } = self.discover().await?;
        Ok(AuthorizationServer { issuer, resource, scope, needs_proof })
    }

    async fn discover(&self) -> Result<Discovered, UpstreamError> {
        let failed = |why: String| {
            UpstreamError::unavailable(format!(
                "the upstream does not lead to an authorization server: {why}; write `issuer` if you know it"
            ))
        };
        let upstream = Url::parse(self.upstream).map_err(|why| failed(why.to_string()))?;
        let fetcher = self.endpoint.fetcher(Instant::now() + DISCOVERY_TIMEOUT);
        let mut found = discovery::discover(&fetcher, &upstream).await.map_err(failed)?;
        if found.resource.is_empty() {
            // Without metadata the resource is the URL of the upstream, which the config has.
            found.resource.clone_from(&self.endpoint.party().oauth.resource);
        }
        Ok(found)
    }
}

/// Chooses the scopes of a login: those of the config, or those that the upstream asks for (MCP, "Scope Selection Strategy"). A refresh
/// token needs `offline_access` at servers that list this scope, and others may refuse it.
fn scope_of(config: &str, asked: &str, metadata: &Metadata) -> String {
    const OFFLINE: &str = "offline_access";
    if !config.is_empty() || asked.is_empty() {
        return config.to_owned();
    }
    match metadata.lists("scopes_supported", OFFLINE) {
        Some(true) => challenge::union(&[asked, OFFLINE]),
        Some(false) => challenge::without(asked, OFFLINE),
        None => asked.to_owned(),
    }
}
