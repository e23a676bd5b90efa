//! A person logs in: the requests of `ptc-compile login`. Servers do not use them.
//!
//! The crate `oauth2` could build these requests, but the reasons against it in `Cargo.toml` apply here too, and the endpoints, the client
//! authentication and the limits of the renewal are used again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ptc_secrets::{Redactor, random};
use ptc_upstream::http::access_token::TokenSourceConfig;
use ptc_upstream::{Reason, UpstreamError};
use ring::digest::{SHA256, digest};
use serde::Deserialize;
use url::Url;

use crate::answer::{self, TokenResponse};
use crate::endpoint::TokenEndpoint;
use crate::metadata::Metadata;
use crate::party::Party;
use crate::prepare::Prepared;
use crate::probe::UpstreamProbe;
use crate::redirect::{Expected, RedirectError};
use crate::store::{Login, LoginKey, TokenStore};

/// The value of `grant_type` of a device code (RFC 8628, section 3.4).
pub(crate) const DEVICE_GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// The interval between questions for the tokens of a device code, and what `slow_down` adds (RFC 8628, section 3.5).
const INTERVAL: Duration = Duration::from_secs(5);
const MAX_INTERVAL: Duration = Duration::from_mins(1);
/// Maximum lifetime of a device code that is believed.
const MAX_DEVICE_LIFETIME: Duration = Duration::from_mins(30);
/// Time limit for waiting for the lock of the store.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// The client of one upstream, which is about to get tokens. It deliberately has no `Debug`.
pub struct LoginClient {
    pub(crate) endpoint: TokenEndpoint,
    pub(crate) key: LoginKey,
    pub(crate) store: TokenStore,
    /// The URL of the upstream.
    pub(crate) upstream: &'static str,
    pub(crate) redactor: Redactor,
    /// Asks an MCP server what it needs at the issuer of the config. `None` if it is not asked.
    pub(crate) probe: Option<UpstreamProbe>,
}

/// The authorization server that an upstream names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorizationServer {
    /// The issuer, exactly as the upstream writes it.
    pub issuer: String,
    /// The parameter `resource` of requests for tokens.
    pub resource: String,
    /// The scopes that the upstream asks for, separated by spaces. Empty if it names none.
    pub scope: String,
    /// Whether the tokens must be bound to a key (DPoP).
    pub needs_proof: bool,
}

/// A request for a code, which a person answers in a browser. It deliberately has no `Debug`.
pub struct AuthorizationRequest {
    /// The URL for the browser.
    pub url: Url,
    redirect_uri: String,
    verifier: String,
    expected: Expected,
    prepared: Prepared,
}

impl AuthorizationRequest {
    /// Describes the authorization server, if the login has found more than the config has. A person must be able to see where a login
    /// goes.
    pub fn server(&self) -> Option<String> {
        self.prepared.server()
    }

    /// Returns the code of the answer that a browser brings, from the target of its request.
    ///
    /// # Errors
    ///
    /// The answer does not belong to this request, or has no code.
    pub fn code(&self, target: &str) -> Result<String, RedirectError> {
        self.expected.read(target)
    }
}

/// What a person needs for a login on another device (RFC 8628, section 3.2).
pub struct DeviceAuthorization {
    /// What is shown to the person.
    pub codes: DeviceCodes,
    prepared: Prepared,
}

/// The answer of the device endpoint. It deliberately has no `Debug`.
#[derive(Deserialize)]
pub struct DeviceCodes {
    device_code: String,
    /// The code that the person enters or compares.
    pub user_code: String,
    /// Where the person enters it.
    pub verification_uri: String,
    /// The same with the code in it.
    pub verification_uri_complete: Option<String>,
    /// The lifetime of the codes in seconds.
    pub expires_in: u64,
    interval: Option<u64>,
}

impl DeviceAuthorization {
    /// Describes the authorization server, if the login has found more than the config has. A person must be able to see where a login
    /// goes.
    pub fn server(&self) -> Option<String> {
        self.prepared.server()
    }
}

impl LoginClient {
    /// Prepares the client. Nothing is sent.
    ///
    /// # Errors
    ///
    /// The credential of the client cannot be used, or there is no folder for the store.
    pub fn new(config: &TokenSourceConfig<'_>) -> Result<LoginClient, UpstreamError> {
        Ok(LoginClient {
            endpoint: TokenEndpoint::new(config)?,
            key: LoginKey::new(config.url, config.oauth),
            store: TokenStore::new(config.token_store.clone()).map_err(UpstreamError::unavailable)?,
            upstream: config.url,
            redactor: config.secrets.redactor(),
            probe: UpstreamProbe::of_login(config)?,
        })
    }

    /// Returns the stored login, if there is one.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub async fn stored(&self) -> Result<Option<Login>, UpstreamError> {
        self.store.read(&self.key).await.map_err(UpstreamError::unavailable)
    }

    /// Makes the request for a code, with PKCE (RFC 7636, S256) and an unguessable state.
    ///
    /// # Errors
    ///
    /// There is no usable authorization server, it does not support S256, or it does not register the client.
    pub async fn authorization(&self, redirect_uri: String) -> Result<AuthorizationRequest, UpstreamError> {
        let prepared = self.prepare(Some(&redirect_uri)).await?;
        let Prepared { party, metadata, scope, .. } = &prepared;
        let oauth = &party.oauth;
        let mut url = self.url_of(party, metadata, "authorization_endpoint")?;
        if let Some(limits) = self.endpoint.fetcher(Instant::now()).limits {
            // The browser opens it.
            let refused = |why: &str| self.endpoint.unusable_metadata(&oauth.issuer, "authorization_endpoint", why);
            limits.check(&url).await.map_err(refused)?;
        }
        let random = || random::text::<32>().map_err(|why| UpstreamError::unavailable(format!("no random bytes: {why}")));
        let (state, verifier) = (random()?, random()?);
        let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()));
        // OpenID Connect issues refresh tokens for `offline_access` only with the consent of the person (Core 1.0, section 11).
        let prompt = if scope.split(' ').any(|scope| scope == "offline_access") { "consent" } else { "" };
        let pairs = [
            ("response_type", "code"),
            ("client_id", &*oauth.client_id),
            ("redirect_uri", &redirect_uri),
            ("scope", scope),
            ("state", &state),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("resource", &oauth.resource),
            ("prompt", prompt),
        ];
        url.query_pairs_mut().extend_pairs(pairs.iter().filter(|(_, value)| !value.is_empty()));
        let requires_iss = metadata.is_true("authorization_response_iss_parameter_supported");
        let expected = Expected { state, issuer: oauth.issuer.clone(), requires_iss };
        Ok(AuthorizationRequest { url, redirect_uri, verifier, expected, prepared })
    }

    /// Exchanges a code for tokens, and stores them.
    ///
    /// # Errors
    ///
    /// The authorization server refuses the code, or the store cannot be written.
    pub async fn exchange(&self, request: &AuthorizationRequest, code: &str) -> Result<Login, UpstreamError> {
        let grant = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", request.redirect_uri.as_str()),
            ("code_verifier", request.verifier.as_str()),
        ];
        let Prepared { party, token_endpoint, .. } = &request.prepared;
        let response =
            self.endpoint.request_with(party, token_endpoint, &grant, &self.redactor).await.map_err(|error| error.fault)?;
        self.save(&request.prepared, &response).await
    }

    /// Renews a refresh token that a person has obtained by other means, and stores the tokens.
    ///
    /// # Errors
    ///
    /// The authorization server refuses it, or the store cannot be written.
    pub async fn redeem(&self, refresh_token: &str) -> Result<Login, UpstreamError> {
        if !answer::is_refresh_token(refresh_token) {
            return Err(UpstreamError::new(Reason::AuthFailed, "the text is not a refresh token"));
        }
        self.store.check().await.map_err(UpstreamError::unavailable)?;
        let url = self.endpoint.url(Instant::now() + LOCK_TIMEOUT).await?;
        let grant = [("grant_type", "refresh_token"), ("refresh_token", refresh_token)];
        let party = self.endpoint.party();
        let response = self.endpoint.request_with(party, &url, &grant, &self.redactor).await.map_err(|error| error.fault)?;
        self.store(Login::new(self.key.clone(), &url, &response, refresh_token, &party.oauth.scope, None)).await
    }

    /// Requests a device code.
    ///
    /// # Errors
    ///
    /// The metadata of the issuer cannot be used, or the authorization server refuses the client.
    pub async fn device(&self) -> Result<DeviceAuthorization, UpstreamError> {
        let prepared = self.prepare(None).await?;
        let Prepared { party, metadata, scope, .. } = &prepared;
        let url = self.url_of(party, metadata, "device_authorization_endpoint")?;
        let form = [("scope", &**scope), ("resource", &party.oauth.resource)];
        let body =
            self.endpoint.post(party, &url, &form, "the device endpoint", &self.redactor).await.map_err(|error| error.fault)?;
        let codes: DeviceCodes = serde_json::from_slice(&body)
            .map_err(|_| UpstreamError::new(Reason::AuthFailed, "the answer of the device endpoint has no codes"))?;
        let is_plain = |text: &str| !text.is_empty() && text.len() <= 2_000 && !text.chars().any(char::is_control);
        let shown = [&codes.user_code, &codes.verification_uri].into_iter().chain(&codes.verification_uri_complete);
        if shown.into_iter().all(|text| is_plain(text)) {
            Ok(DeviceAuthorization { codes, prepared })
        } else {
            Err(UpstreamError::new(Reason::AuthFailed, "the answer of the device endpoint cannot be shown"))
        }
    }

    /// Waits until the person has answered, and stores the tokens.
    ///
    /// # Errors
    ///
    /// The person refuses, the code expires, or the store cannot be written.
    pub async fn wait_for(&self, device: &DeviceAuthorization) -> Result<Login, UpstreamError> {
        let DeviceAuthorization { codes, prepared } = device;
        let grant = [("grant_type", DEVICE_GRANT), ("device_code", codes.device_code.as_str())];
        let mut interval = codes.interval.map_or(INTERVAL, Duration::from_secs).clamp(Duration::from_secs(1), MAX_INTERVAL);
        let expires_at = Instant::now() + Duration::from_secs(codes.expires_in).min(MAX_DEVICE_LIFETIME);
        while Instant::now() + interval < expires_at {
            tokio::time::sleep(interval).await;
            match self.endpoint.request_with(&prepared.party, &prepared.token_endpoint, &grant, &self.redactor).await {
                Ok(response) => return self.save(prepared, &response).await,
                Err(error) => match error.code.as_deref() {
                    Some("authorization_pending") => {}
                    Some("slow_down") => interval = (interval + INTERVAL).min(MAX_INTERVAL),
                    // After a lost connection the interval grows (RFC 8628, section 3.5).
                    None if error.fault.reason == Reason::UpstreamUnavailable => interval = (interval * 2).min(MAX_INTERVAL),
                    _ => return Err(error.fault),
                },
            }
        }
        Err(UpstreamError::new(Reason::AuthFailed, "the device code has expired: log in again"))
    }

    /// Removes the stored login, and revokes its refresh token if the issuer has an endpoint for this (RFC 7009). Returns whether there
    /// was a login, and whether its token was revoked.
    ///
    /// # Errors
    ///
    /// The store cannot be written. The login is removed even if the token cannot be revoked.
    pub async fn logout(&self) -> Result<Option<bool>, UpstreamError> {
        let locked = self.store.lock(&self.key, Instant::now() + LOCK_TIMEOUT).await.map_err(UpstreamError::unavailable)?;
        // The person is asked once to unlock the keyring.
        self.store.check().await.map_err(UpstreamError::unavailable)?;
        // A damaged file is removed too.
        let stored = locked.read().await;
        locked.remove().await.map_err(UpstreamError::unavailable)?;
        let Ok(Some(login)) = stored else { return Ok(stored.is_err().then_some(false)) };
        let party = match &login.found {
            None => Arc::clone(self.endpoint.party()),
            Some(found) => match Party::of_found(&self.endpoint.party().oauth, found, &self.redactor) {
                Ok(party) => Arc::new(party),
                Err(_) => return Ok(Some(false)),
            },
        };
        if party.oauth.issuer.is_empty() {
            return Ok(Some(false));
        }
        let Ok(metadata) = self.endpoint.metadata(&party).await else { return Ok(Some(false)) };
        let Ok(url) = metadata.endpoint("revocation_endpoint") else { return Ok(Some(false)) };
        let (token, hint) = if login.has_refresh_token() {
            (&login.refresh_token, "refresh_token")
        } else {
            (&login.access_token, "access_token")
        };
        let form = [("token", token.as_str()), ("token_type_hint", hint)];
        Ok(Some(self.endpoint.post(&party, &url, &form, "the revocation endpoint", &self.redactor).await.is_ok()))
    }

    pub(crate) fn url_of(&self, party: &Party, metadata: &Metadata, name: &str) -> Result<Url, UpstreamError> {
        metadata.endpoint(name).map_err(|why| self.endpoint.unusable_metadata(&party.oauth.issuer, name, &why))
    }

    async fn save(&self, prepared: &Prepared, response: &TokenResponse) -> Result<Login, UpstreamError> {
        let Prepared { token_endpoint, scope, found, .. } = prepared;
        self.store(Login::new(self.key.clone(), token_endpoint, response, "", scope, found.clone())).await
    }

    async fn store(&self, login: Login) -> Result<Login, UpstreamError> {
        let locked = self.store.lock(&self.key, Instant::now() + LOCK_TIMEOUT).await.map_err(UpstreamError::unavailable)?;
        let replacement = locked.prepare().map_err(UpstreamError::unavailable)?;
        replacement.commit(&login).await.map_err(UpstreamError::unavailable)?;
        locked.forget_scope();
        Ok(login)
    }
}
