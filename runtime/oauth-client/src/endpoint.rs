//! Requests tokens at a token endpoint, and describes refusals.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ptc_catalog::OAuth2;
use ptc_upstream::http::access_token::TokenSourceConfig;
use ptc_upstream::http::client::{Endpoint, HttpClient, OutgoingRequest};
use ptc_upstream::http::status::retry_after;
use ptc_upstream::{Reason, UpstreamError};
use reqwest::Method;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use url::{Url, form_urlencoded};

use crate::answer::{self, Refusal, TokenResponse};
use crate::client_auth::ClientCredential;
use crate::metadata::{self, Metadata};

/// Time limit for a request with its answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum bytes of an answer.
const MAX_ANSWER_BYTES: u64 = 64 * 1024;

/// The token endpoint of one upstream, with the credential of the client.
pub(crate) struct TokenEndpoint {
    upstream: &'static str,
    oauth: &'static OAuth2,
    /// The URL, once it is known.
    url: Mutex<Option<Url>>,
    http: HttpClient,
    credential: ClientCredential,
}

/// Why no token was issued.
pub(crate) struct RequestError {
    /// The error for the calls that need the token.
    pub(crate) fault: UpstreamError,
    /// The code of a refusal, such as `invalid_grant`.
    pub(crate) code: Option<String>,
    /// The pause that the server asks for.
    pub(crate) retry_after: Option<Duration>,
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
        let credential = ClientCredential::read(oauth, config.secrets)
            .map_err(|why| fault(&format!("the credential '{}' {why}", oauth.binding)))?;
        let endpoint = Endpoint {
            upstream: None,
            url: if url.is_some() { oauth.token_url } else { oauth.issuer },
            auth: &[],
            static_headers: &[],
            connect_timeout: config.connect_timeout,
            proxy: config.proxy.clone(),
            extra_roots: config.extra_roots.clone(),
            posts: true,
        };
        // A server may issue the current token again, which must not be redacted in its answer.
        let http = HttpClient::new(&endpoint, config.secrets)?.reading_issued();
        Ok(TokenEndpoint { upstream, oauth, url: Mutex::new(url), http, credential })
    }

    /// Returns the name of the upstream.
    pub(crate) fn upstream(&self) -> &'static str {
        self.upstream
    }

    /// Returns how tokens are requested.
    pub(crate) fn oauth(&self) -> &'static OAuth2 {
        self.oauth
    }

    /// Requests a token for the client itself.
    ///
    /// # Errors
    ///
    /// The same as [`TokenEndpoint::request_with`].
    pub(crate) async fn request(&self) -> Result<TokenResponse, RequestError> {
        let url = self.url(Instant::now() + TIMEOUT).await?;
        self.request_with(&url, &[("grant_type", "client_credentials"), ("scope", self.oauth.scope)]).await
    }

    /// Requests a token with the parameters of a grant and the parameter `resource`. If that fails, the token endpoint is looked up again
    /// for the next request.
    ///
    /// # Errors
    ///
    /// The token endpoint cannot be reached or refuses the client, or its answer has no usable token.
    pub(crate) async fn request_with(&self, url: &Url, grant: &[(&str, &str)]) -> Result<TokenResponse, RequestError> {
        let form: Vec<_> = grant.iter().copied().chain([("resource", self.oauth.resource)]).collect();
        let posted = self.post(url, &form, "the token endpoint").await;
        let read = |body: Vec<u8>| {
            let described =
                |why| self.fault(Reason::AuthFailed, "the token endpoint", url, &format!("gave an answer that {why}")).into();
            answer::read_response(&body).map_err(described)
        };
        let outcome = posted.and_then(read);
        if outcome.is_err() && self.oauth.token_url.is_empty() {
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
    pub(crate) async fn metadata(&self) -> Result<Metadata, UpstreamError> {
        let found = metadata::of_issuer(&self.http, self.oauth.issuer, Instant::now() + TIMEOUT).await;
        found.map_err(|why| self.unusable_metadata("metadata", &why))
    }

    /// Describes metadata that cannot be used.
    pub(crate) fn unusable_metadata(&self, what: &str, why: &str) -> UpstreamError {
        let end = for_upstream(self.upstream);
        UpstreamError::unavailable(format!("no access token{end}: no {what} of the issuer {}: {why}", self.oauth.issuer))
    }

    /// Returns the URL of the token endpoint. If it is not known, the metadata of the issuer has it.
    ///
    /// # Errors
    ///
    /// The metadata cannot be used.
    pub(crate) async fn url(&self, deadline: Instant) -> Result<Url, UpstreamError> {
        if let Some(url) = self.known_url().clone() {
            return Ok(url);
        }
        let found = metadata::of_issuer(&self.http, self.oauth.issuer, deadline).await;
        let url = found.and_then(|metadata| metadata.endpoint("token_endpoint"));
        let url = url.map_err(|why| self.unusable_metadata("token endpoint", &why))?;
        Ok(self.known_url().insert(url).clone())
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
    pub(crate) async fn post(&self, url: &Url, form: &[(&str, &str)], name: &str) -> Result<Vec<u8>, RequestError> {
        let deadline = Instant::now() + TIMEOUT;
        let refused = |what: &str| self.fault(Reason::AuthFailed, name, url, what);
        let unavailable = |what: &str| self.fault(Reason::UpstreamUnavailable, name, url, what);
        let mut headers = HeaderMap::from_iter([
            (ACCEPT, HeaderValue::from_static("application/json")),
            (CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded")),
        ]);
        let body = self
            .form(form, url, &mut headers)
            .map_err(|why| refused(&format!("was not asked: the credential '{}' {why}", self.oauth.binding)))?;
        // A token that was issued and lost does no harm, so that a lost connection is replaced at once. A refresh token that the server has
        // replaced would be sent again in any case, since no other is known.
        let request = OutgoingRequest {
            body: body.into(),
            repeatable: true,
            follows: false,
            ..OutgoingRequest::new(Method::POST, url, headers)
        };
        let lost = |fault: UpstreamError| match fault.message.as_ref() {
            "" => unavailable(&format!("gave no answer within {} s", TIMEOUT.as_secs())),
            message => unavailable(&format!("cannot be used: {message}")),
        };
        let mut answer = self.http.send(request, deadline).await.map_err(lost)?;
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
        let refusal = answer::read_refusal(&body);
        let code = refusal.as_ref().map(|refusal| refusal.code.clone());
        let fault = match refusal {
            _ if status == 429 || status >= 500 => unavailable(&format!("answered with HTTP {status}")),
            Some(refusal) => refused(&self.described(&refusal, status)),
            None if (300..400).contains(&status) => refused(&format!(
                "answered with HTTP {status}, a redirect, which is not followed: write the URL that issues tokens as `token_url`"
            )),
            None => refused(&format!("answered with HTTP {status} and no OAuth error: check `token_url`")),
        };
        Err(RequestError { fault, code, retry_after: pause })
    }

    /// Returns the form of a request to `url`, and adds the client's proof of identity.
    fn form(&self, pairs: &[(&str, &str)], url: &Url, headers: &mut HeaderMap) -> Result<String, &'static str> {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.extend_pairs(pairs.iter().filter(|(_, value)| !value.is_empty()));
        self.credential.add(self.oauth, url, headers, &mut form)?;
        Ok(form.finish())
    }

    fn described(&self, refusal: &Refusal, status: u16) -> String {
        let Refusal { code, description } = refusal;
        let said = if description.is_empty() { String::new() } else { format!(" ({description})") };
        let OAuth2 { binding, grant, .. } = self.oauth;
        let advice = match code.as_str() {
            "invalid_client" if binding.is_empty() => "check `client_id`, and that this is a public client there".to_owned(),
            "invalid_client" => format!("check `client_id`, `client_auth` and the credential '{binding}'"),
            "invalid_scope" => "check `scopes`".to_owned(),
            "invalid_target" => "check `resource`".to_owned(),
            "unauthorized_client" | "unsupported_grant_type" => {
                format!("permit the grant `{}` for this client at the authorization server", grant.name())
            }
            _ => "check the settings of this client at the authorization server".to_owned(),
        };
        format!("refused the client with `{code}`, HTTP {status}{said}: {advice}")
    }
}

impl From<UpstreamError> for RequestError {
    fn from(fault: UpstreamError) -> RequestError {
        RequestError { fault, code: None, retry_after: None }
    }
}

/// Returns the end of "no access token", with the name of the upstream if there is one.
fn for_upstream(upstream: &str) -> String {
    if upstream.is_empty() { String::new() } else { format!(" for '{upstream}'") }
}
