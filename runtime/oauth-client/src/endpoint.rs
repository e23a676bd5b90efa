//! Requests tokens at a token endpoint, and describes refusals.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ptc_secrets::Redactor;
use ptc_upstream::http::access_token::TokenSourceConfig;
use ptc_upstream::http::address::AddressLimits;
use ptc_upstream::http::client::{Endpoint, HttpClient, OutgoingRequest};
use ptc_upstream::http::status::retry_after;
use ptc_upstream::{Reason, UpstreamError};
use reqwest::Method;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use url::Url;
use zeroize::Zeroizing;

use crate::answer::{self, Refusal, TokenResponse};
use crate::metadata::{FetchError, Fetcher, Metadata};
use crate::party::Party;
use crate::proof::{self, ProofKey};
use crate::source;
use crate::store::Login;

/// Time limit for a request with its answer.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum bytes of an answer.
const MAX_ANSWER_BYTES: u64 = 64 * 1024;

/// The parameters whose values are secrets. The redactor of the deployment does not know those of a caller or of a login that has begun.
const SECRET_PARAMETERS: [&str; 7] =
    ["assertion", "code", "code_verifier", "device_code", "refresh_token", "subject_token", "token"];

/// The token endpoint of one upstream, with the credential of the client.
pub(crate) struct TokenEndpoint {
    upstream: &'static str,
    /// The client and the authorization server of the config. What it lacks, a login finds.
    party: Arc<Party>,
    /// The URL, once it is known.
    url: Mutex<Option<Url>>,
    http: HttpClient,
    /// The limits for an authorization server that the upstream names, or for the endpoints that the metadata of the issuer names.
    limits: Option<AddressLimits>,
    /// Redacts what the server says of a refusal.
    redactor: Redactor,
}

/// A `POST` request to an authorization server.
#[derive(Clone)]
pub(crate) struct Post<'p> {
    /// What messages call the endpoint.
    pub(crate) name: &'p str,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
    /// Redacts what the server says of a refusal.
    pub(crate) redactor: &'p Redactor,
    /// Further secrets in the request, which the server may repeat in a refusal.
    pub(crate) secrets: &'p [&'p str],
    /// The key of which the request has a proof. `None` for bearer tokens.
    pub(crate) proof_key: Option<&'p ProofKey>,
}

/// Why no token was issued.
pub(crate) struct RequestError {
    /// The error for the calls that need the token.
    pub(crate) fault: UpstreamError,
    /// The code of a refusal, such as `invalid_grant`.
    pub(crate) code: Option<String>,
    /// The pause that the server asks for.
    pub(crate) retry_after: Option<Duration>,
    /// Whether the connection was lost, and the same request was not sent again.
    pub(crate) lost: bool,
}

impl TokenEndpoint {
    /// Prepares the client. Nothing is sent.
    ///
    /// # Errors
    ///
    /// The URL is invalid, the credential has no value or an unusable one, or the HTTP client cannot be set up.
    pub(crate) fn new(config: &TokenSourceConfig<'_>) -> Result<TokenEndpoint, UpstreamError> {
        let (upstream, oauth) = (config.upstream, config.oauth);
        let fault =
            |what: &str| UpstreamError::new(Reason::AuthFailed, format!("no access token{}: {what}", for_upstream(upstream)));
        let url = match oauth.token_url {
            "" => None,
            text => Some(Url::parse(text).map_err(|why| fault(&format!("`token_url` is not a URL: {why}")))?),
        };
        let party =
            Party::of_config(oauth, config.secrets).map_err(|why| fault(&format!("the credential '{}' {why}", oauth.binding)))?;
        let limits = if oauth.is_discovered() {
            let upstream = Url::parse(config.url).map_err(|why| fault(&format!("`url` is not a URL: {why}")))?;
            Some(AddressLimits::new(upstream))
        } else {
            match Url::parse(oauth.issuer) {
                Ok(issuer) => Some(AddressLimits::of_issuer(issuer, url.clone())),
                // Beside `token_url`, it may be left out, or be an audience of any form. Then there is no metadata.
                Err(_) if url.is_some() => None,
                Err(why) => return Err(fault(&format!("`issuer` is not a URL: {why}"))),
            }
        };
        // An authorization server that is not known yet may have TLS, also if the upstream has none.
        let http = client(config, if oauth.is_discovered() { "https://" } else { oauth.server() }, limits.as_ref())?;
        Ok(TokenEndpoint {
            upstream,
            party: Arc::new(party),
            url: Mutex::new(url),
            // A server may issue the current token again, which must not be redacted in its answer.
            http: http.reading_issued(),
            limits,
            redactor: config.secrets.redactor(),
        })
    }

    /// Returns the name of the upstream.
    pub(crate) fn upstream(&self) -> &'static str {
        self.upstream
    }

    /// Returns the client and the authorization server of the config.
    pub(crate) fn party(&self) -> &Arc<Party> {
        &self.party
    }

    /// Returns how metadata is fetched.
    pub(crate) fn fetcher(&self, deadline: Instant) -> Fetcher<'_> {
        Fetcher { http: &self.http, limits: self.limits.as_ref(), deadline }
    }

    /// Returns the redactor of the deployment.
    pub(crate) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Requests a token for the client itself.
    ///
    /// # Errors
    ///
    /// The same as [`TokenEndpoint::request_with`].
    pub(crate) async fn request(&self) -> Result<TokenResponse, RequestError> {
        let url = self.url(Instant::now() + TIMEOUT).await?;
        let grant = [("grant_type", "client_credentials"), ("scope", &*self.party.oauth.scope)];
        self.request_with(&self.party, &url, &grant, &self.redactor).await
    }

    /// Requests a token with the parameters of a grant and the parameter `resource`. If that fails, the token endpoint is looked up again
    /// for the next request. `redactor` redacts what the server says of a refusal, and need not know the parameters.
    ///
    /// # Errors
    ///
    /// The token endpoint cannot be reached or refuses the client, or its answer has no usable token.
    pub(crate) async fn request_with(
        &self,
        party: &Party,
        url: &Url,
        grant: &[(&str, &str)],
        redactor: &Redactor,
    ) -> Result<TokenResponse, RequestError> {
        self.request_as(party, url, grant, redactor, |body| answer::read_response(body, party.proof_key.as_ref())).await
    }

    /// Requests an assertion for another authorization server, like [`TokenEndpoint::request_with`].
    ///
    /// # Errors
    ///
    /// The same as [`TokenEndpoint::request_with`].
    pub(crate) async fn request_assertion(
        &self,
        party: &Party,
        url: &Url,
        grant: &[(&str, &str)],
        redactor: &Redactor,
    ) -> Result<Zeroizing<String>, RequestError> {
        self.request_as(party, url, grant, redactor, answer::read_assertion).await
    }

    async fn request_as<T>(
        &self,
        party: &Party,
        url: &Url,
        grant: &[(&str, &str)],
        redactor: &Redactor,
        read: impl FnOnce(&[u8]) -> Result<T, &'static str>,
    ) -> Result<T, RequestError> {
        let form: Vec<_> = grant.iter().copied().chain([("resource", &*party.oauth.resource)]).collect();
        let posted = self.post(party, url, &form, "the token endpoint", redactor).await;
        let outcome = posted.and_then(|body| {
            let described =
                |why| self.fault(Reason::AuthFailed, "the token endpoint", url, &format!("gave an answer that {why}")).into();
            read(&body).map_err(described)
        });
        if outcome.is_err() && self.party.oauth.token_url.is_empty() {
            *self.known_url() = None;
        }
        outcome
    }

    fn known_url(&self) -> MutexGuard<'_, Option<Url>> {
        self.url.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the metadata of the issuer.
    ///
    /// # Errors
    ///
    /// The metadata cannot be fetched, or is that of another issuer.
    pub(crate) async fn metadata(&self, party: &Party) -> Result<Metadata, UpstreamError> {
        let found = self.fetcher(Instant::now() + TIMEOUT).metadata(&party.oauth.issuer).await;
        found.map_err(|why| self.unusable_metadata(&party.oauth.issuer, "metadata", &why.into_clause()))
    }

    /// Describes metadata that cannot be used.
    pub(crate) fn unusable_metadata(&self, issuer: &str, what: &str, why: &str) -> UpstreamError {
        let end = for_upstream(self.upstream);
        UpstreamError::unavailable(format!("no access token{end}: no {what} of the issuer {issuer}: {why}"))
    }

    /// Returns the URL of the token endpoint of the config. If it is not known, the metadata of the issuer has it.
    ///
    /// # Errors
    ///
    /// The metadata cannot be used.
    pub(crate) async fn url(&self, deadline: Instant) -> Result<Url, UpstreamError> {
        if let Some(url) = self.known_url().clone() {
            return Ok(url);
        }
        let url = self.url_of(&self.party, deadline).await?;
        Ok(self.known_url().insert(url).clone())
    }

    /// Returns the URL of the token endpoint of a login, which the metadata of its issuer must still have.
    ///
    /// # Errors
    ///
    /// The metadata cannot be used.
    pub(crate) async fn url_for(&self, party: &Party, login: &Login, deadline: Instant) -> Result<Url, UpstreamError> {
        if login.found.is_none() {
            return self.url(deadline).await;
        }
        let known = self.known_url().clone().filter(|url| url.as_str() == login.token_endpoint);
        if let Some(url) = known {
            return Ok(url);
        }
        let url = self.url_of(party, deadline).await?;
        Ok(self.known_url().insert(url).clone())
    }

    /// Returns the URL of the token endpoint in the metadata of an issuer.
    async fn url_of(&self, party: &Party, deadline: Instant) -> Result<Url, UpstreamError> {
        let issuer = &party.oauth.issuer;
        let found = match self.fetcher(deadline).metadata(issuer).await {
            // The upstream is its own authorization server, without metadata.
            Err(FetchError::Absent(_)) if self.is_of_upstream(issuer) => {
                Url::parse(issuer).map(|origin| Metadata::of_default_endpoints(&origin)).map_err(|why| why.to_string())
            }
            found => found.map_err(FetchError::into_clause),
        };
        let url = found.and_then(|metadata| metadata.endpoint("token_endpoint"));
        url.map_err(|why| self.unusable_metadata(&party.oauth.issuer, "token endpoint", &why))
    }

    /// Whether an issuer is the origin of an upstream that names its authorization server.
    fn is_of_upstream(&self, issuer: &str) -> bool {
        let upstream = self.limits.as_ref().and_then(AddressLimits::upstream);
        upstream.is_some_and(|upstream| upstream.origin().ascii_serialization() == issuer)
    }

    fn fault(&self, reason: Reason, name: &str, url: &Url, what: &str) -> UpstreamError {
        let mut shown = url.clone();
        shown.set_query(None);
        UpstreamError::new(reason, format!("no access token{}: {name} {shown} {what}", for_upstream(self.upstream)))
    }

    /// Sends a form to an endpoint, which messages call `name`, with the client's proof of identity. Returns the body of a successful
    /// answer. Redirects are not followed, since the credential of the client would go elsewhere.
    ///
    /// # Errors
    ///
    /// The endpoint cannot be reached, or refuses the client.
    pub(crate) async fn post(
        &self,
        party: &Party,
        url: &Url,
        form: &[(&str, &str)],
        name: &str,
        redactor: &Redactor,
    ) -> Result<Vec<u8>, RequestError> {
        let mut headers = HeaderMap::new();
        let body = party.form(form, url, &mut headers).map_err(|why| {
            let what = format!("was not asked: the credential '{}' {why}", party.oauth.binding);
            self.fault(Reason::AuthFailed, name, url, &what)
        })?;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        let secrets: Vec<&str> =
            form.iter().filter(|(name, _)| SECRET_PARAMETERS.contains(name)).map(|(_, secret)| *secret).collect();
        let proof_key = party.proof_key.as_deref();
        let post = Post { name, headers, body, redactor, secrets: &secrets, proof_key };
        let mut outcome = self.send(url, post.clone(), |code| party.advice(code)).await;
        if proof_key.is_some() && outcome.as_ref().is_err_and(|error| error.lost) {
            outcome = self.send(url, post.clone(), |code| party.advice(code)).await;
        }
        match outcome {
            // The server refuses the first proof only to say which nonce it wants (RFC 9449, section 8).
            Err(error) if proof_key.is_some() && error.code.as_deref() == Some(proof::USE_NONCE) => {
                self.send(url, post, |code| party.advice(code)).await
            }
            outcome => outcome,
        }
    }

    /// Sends a request to an endpoint. Returns the body of a successful answer. `advice` says what to do after a refusal with a code of
    /// OAuth.
    ///
    /// # Errors
    ///
    /// The endpoint cannot be reached, may not be reached, or refuses the request.
    pub(crate) async fn send(&self, url: &Url, post: Post<'_>, advice: impl Fn(&str) -> String) -> Result<Vec<u8>, RequestError> {
        let Post { name, mut headers, body, redactor, secrets, proof_key } = post;
        let deadline = Instant::now() + TIMEOUT;
        let refused = |what: &str| self.fault(Reason::AuthFailed, name, url, what);
        let unavailable = |what: &str| self.fault(Reason::UpstreamUnavailable, name, url, what);
        if let Some(limits) = &self.limits {
            limits.check(url).await.map_err(refused)?;
        }
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let proof = proof_key.and_then(|key| key.proof(&Method::POST, url, ""));
        headers.extend(proof.map(|value| (proof::PROOF, value)));
        // A token that was issued and lost does no harm, so that a lost connection is replaced at once. A refresh token that the server has
        // replaced would be sent again in any case, since no other is known. A proof is valid once: the caller repeats the request with a
        // new one.
        let request = OutgoingRequest {
            body: body.into(),
            repeatable: proof_key.is_none(),
            follows: false,
            ..OutgoingRequest::new(Method::POST, url, headers)
        };
        let lost = |fault: UpstreamError| match fault.message.as_ref() {
            "" => unavailable(&format!("gave no answer within {} s", TIMEOUT.as_secs())),
            message => unavailable(&format!("cannot be used: {message}")),
        };
        let mut answer = self.http.send(request, deadline).await.map_err(|fault| {
            let is_single = proof_key.is_some() && fault.is_lost_connection();
            RequestError { lost: is_single, ..lost(fault).into() }
        })?;
        if let Some(key) = proof_key {
            key.learn_nonce(url, answer.headers());
        }
        let (status, pause) = (answer.status(), retry_after(&answer));
        let body = match self.http.read_body(&mut answer, MAX_ANSWER_BYTES.into(), deadline).await {
            Ok(body) => body,
            Err(fault) if fault.reason == Reason::ResponseTooLarge => {
                return Err(refused(&format!("gave an answer of more than {MAX_ANSWER_BYTES} bytes")).into());
            }
            Err(fault) => return Err(lost(fault).into()),
        };
        if status.is_success() {
            return Ok(body);
        }
        let status = status.as_u16();
        // The server may repeat what it has received.
        let refusal = answer::read_refusal(&body, &source::knowing(redactor, secrets).await?);
        let code = refusal.as_ref().map(|refusal| refusal.code.clone());
        let fault = match refusal {
            _ if status == 429 || status >= 500 => unavailable(&format!("answered with HTTP {status}")),
            Some(refusal) => refused(&described(&refusal, status, &advice(&refusal.code))),
            None if (300..400).contains(&status) => refused(&format!(
                "answered with HTTP {status}, a redirect, which is not followed: write the URL that issues tokens as `token_url`"
            )),
            None => refused(&format!("answered with HTTP {status} and no OAuth error: check `token_url`")),
        };
        Err(RequestError { fault, code, retry_after: pause, lost: false })
    }
}

/// Creates an HTTP client for servers like that of `url`, which resolves names within `limits`.
///
/// # Errors
///
/// The HTTP client cannot be set up.
pub(crate) fn client(
    config: &TokenSourceConfig<'_>,
    url: &'static str,
    limits: Option<&AddressLimits>,
) -> Result<HttpClient, UpstreamError> {
    let endpoint = Endpoint {
        upstream: None,
        url,
        auth: &[],
        static_headers: &[],
        connect_timeout: config.connect_timeout,
        proxy: config.proxy.clone(),
        extra_roots: config.extra_roots.clone(),
        posts: true,
    };
    HttpClient::configured(&endpoint, config.secrets, |builder| match limits {
        // A proxy resolves the names itself.
        Some(limits) if config.proxy.is_none() => builder.dns_resolver(limits.clone()),
        _ => builder,
    })
}

fn described(refusal: &Refusal, status: u16, advice: &str) -> String {
    let Refusal { code, description } = refusal;
    let said = if description.is_empty() { String::new() } else { format!(" ({description})") };
    format!("refused the client with `{code}`, HTTP {status}{said}: {advice}")
}

impl From<UpstreamError> for RequestError {
    fn from(fault: UpstreamError) -> RequestError {
        RequestError { fault, code: None, retry_after: None, lost: false }
    }
}

/// Returns the end of "no access token", with the name of the upstream if there is one.
fn for_upstream(upstream: &str) -> String {
    if upstream.is_empty() { String::new() } else { format!(" for '{upstream}'") }
}
