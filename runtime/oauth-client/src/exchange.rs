//! Exchanges a token of a caller or of the platform for an access token: RFC 8693, RFC 7523, and the Identity Assertion Authorization Grant, in
//! which an identity provider issues the assertion for the authorization server of the upstream.

use std::time::Instant;

use ptc_catalog::{GrantType, OAuth2, TokenType};
use ptc_secrets::{Redactor, Secrets};
use ptc_upstream::caller_token::{self, CallerToken};
use ptc_upstream::http::access_token::TokenSourceConfig;
use ptc_upstream::offload::offload;
use ptc_upstream::{Reason, UpstreamError};
use zeroize::Zeroizing;

use crate::answer::{ID_JAG, TokenResponse};
use crate::client_auth::AssertionFile;
use crate::endpoint::{RequestError, TIMEOUT, TokenEndpoint};
use crate::source::TABLE_BYTES;

const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";

/// Where the token is that is exchanged, and what it is exchanged for.
pub(crate) struct Exchange {
    /// The file with the token. `None` if it is the access token of the caller.
    file: Option<(&'static str, AssertionFile)>,
    /// Issues the assertion. `None` if the token itself is the assertion, or if it is exchanged in one step.
    identity_provider: Option<TokenEndpoint>,
}

impl Exchange {
    /// Prepares the client of the identity provider, if there is one. Nothing is sent.
    ///
    /// # Errors
    ///
    /// The token is not in a file, or that client cannot be used.
    pub(crate) fn new(config: &TokenSourceConfig<'_>) -> Result<Exchange, UpstreamError> {
        let file = match config.oauth.subject {
            "" => None,
            binding => Some((binding, file_of(binding, config.secrets)?)),
        };
        let identity_provider = config.oauth.identity_provider.map(|provider| {
            let oauth = OAuth2 {
                grant: GrantType::TokenExchange,
                token_url: provider.token_url,
                client_id: provider.client_id,
                client_auth: provider.client_auth,
                binding: provider.binding,
                key_id: provider.key_id,
                issuer: provider.issuer,
                // The assertion is for the authorization server of the upstream.
                audience: if config.oauth.audience.is_empty() { config.oauth.issuer } else { config.oauth.audience },
                ..*config.oauth
            };
            // There is one for each upstream, which lives as long as the process.
            TokenEndpoint::new(&TokenSourceConfig { oauth: Box::leak(Box::new(oauth)), ..config.clone() })
        });
        Ok(Exchange { file, identity_provider: identity_provider.transpose()? })
    }

    /// Requests an access token. The redactor learns the token of a file, and its assertion, before they are sent. It redacts what the servers
    /// say of a refusal.
    ///
    /// # Errors
    ///
    /// There is no token to exchange, or an authorization server refuses it.
    pub(crate) async fn request(
        &self,
        endpoint: &TokenEndpoint,
        caller: Option<&CallerToken>,
        redactor: &Redactor,
    ) -> Result<TokenResponse, RequestError> {
        let subject = self.subject(endpoint, caller)?;
        let subject = self.learn(endpoint, subject, redactor).await?;
        let oauth = &endpoint.party().oauth;
        let assertion = match &self.identity_provider {
            None => subject,
            Some(provider) => {
                let party = provider.party();
                let form = exchange_form(&party.oauth, &subject, ID_JAG);
                let assertion = provider.request_assertion(party, &provider.url(deadline()).await?, &form, redactor).await?;
                self.learn(endpoint, assertion, redactor).await?
            }
        };
        let url = endpoint.url(deadline()).await?;
        if oauth.grant == GrantType::JwtBearer {
            let form = [("grant_type", JWT_BEARER), ("assertion", &assertion), ("scope", &oauth.scope)];
            endpoint.request_with(endpoint.party(), &url, &form, redactor).await
        } else {
            let form = exchange_form(oauth, &assertion, ACCESS_TOKEN);
            endpoint.request_with(endpoint.party(), &url, &form, redactor).await
        }
    }

    /// Makes a redactor know a token of a file, or its assertion, and returns it. Those of callers are known for each request alone.
    async fn learn(
        &self,
        endpoint: &TokenEndpoint,
        token: Zeroizing<String>,
        redactor: &Redactor,
    ) -> Result<Zeroizing<String>, UpstreamError> {
        if self.file.is_none() {
            return Ok(token);
        }
        let (upstream, redactor) = (endpoint.upstream(), redactor.clone());
        offload(token.len() * TABLE_BYTES, move || {
            // Under an owner of their own: otherwise assertions of failed requests would displace the access token that is still used.
            redactor.add_issued(&format!("assertion {upstream}"), &token);
            token
        })
        .await
    }

    /// Returns the token that is exchanged.
    fn subject(&self, endpoint: &TokenEndpoint, caller: Option<&CallerToken>) -> Result<Zeroizing<String>, UpstreamError> {
        match (&self.file, caller) {
            (Some((binding, file)), _) => file.read().map(Zeroizing::new).map_err(|why| {
                let message = format!("no access token for '{}': the credential '{binding}' {why}", endpoint.upstream());
                UpstreamError::new(Reason::AuthFailed, message)
            }),
            (None, Some(caller)) => Ok(Zeroizing::new(caller.text().to_owned())),
            (None, None) => Err(caller_token::missing(endpoint.upstream())),
        }
    }
}

/// Returns the parameters of a token exchange (RFC 8693, section 2.1), apart from `resource`.
fn exchange_form<'t>(oauth: &'t OAuth2<String>, subject: &'t str, requested: &'static str) -> [(&'static str, &'t str); 6] {
    let subject_type = match oauth.subject_type {
        TokenType::AccessToken => ACCESS_TOKEN,
        TokenType::IdToken => "urn:ietf:params:oauth:token-type:id_token",
        TokenType::Jwt => "urn:ietf:params:oauth:token-type:jwt",
    };
    [
        ("grant_type", TOKEN_EXCHANGE),
        ("subject_token", subject),
        ("subject_token_type", subject_type),
        ("requested_token_type", requested),
        ("audience", &oauth.audience),
        ("scope", &oauth.scope),
    ]
}

fn deadline() -> Instant {
    Instant::now() + TIMEOUT
}

fn file_of(binding: &str, secrets: &Secrets) -> Result<AssertionFile, UpstreamError> {
    AssertionFile::new(binding, secrets)
        .map_err(|why| UpstreamError::new(Reason::AuthFailed, format!("the credential '{binding}' {why}")))
}
