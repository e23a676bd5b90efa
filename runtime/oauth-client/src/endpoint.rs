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
use crate::metadata;

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

    /// Requests a token. If that fails, the token endpoint is looked up again for the next request.
    ///
    /// # Errors
    ///
    /// The token endpoint is not found, cannot be reached or refuses the client, or its answer has no usable token.
    pub(crate) async fn request(&self) -> Result<TokenResponse, RequestError> {
        let deadline = Instant::now() + TIMEOUT;
        let url = self.url(deadline).await?;
        let outcome = self.request_from(&url, deadline).await;
        if outcome.is_err() && self.oauth.token_url.is_empty() {
            *self.known_url() = None;
        }
        outcome
    }

    fn known_url(&self) -> MutexGuard<'_, Option<Url>> {
        self.url.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the URL of the token endpoint. If it is not known, the metadata of the issuer has it.
    async fn url(&self, deadline: Instant) -> Result<Url, UpstreamError> {
        if let Some(url) = self.known_url().clone() {
            return Ok(url);
        }
        let url = metadata::token_endpoint(&self.http, self.oauth.issuer, deadline).await.map_err(|why| {
            let end = for_upstream(self.upstream);
            UpstreamError::unavailable(format!(
                "no access token{end}: no token endpoint of the issuer {}: {why}",
                self.oauth.issuer
            ))
        })?;
        Ok(self.known_url().insert(url).clone())
    }

    /// Requests a token at a URL. Redirects are not followed, since the credential of the client would go elsewhere.
    async fn request_from(&self, url: &Url, deadline: Instant) -> Result<TokenResponse, RequestError> {
        let fault = |reason, what: &str| {
            let mut shown = url.clone();
            shown.set_query(None);
            UpstreamError::new(
                reason,
                format!("no access token{}: the token endpoint {shown} {what}", for_upstream(self.upstream)),
            )
        };
        let refused = |what: &str| fault(Reason::AuthFailed, what);
        let unavailable = |what: &str| fault(Reason::UpstreamUnavailable, what);
        let mut headers = HeaderMap::from_iter([
            (ACCEPT, HeaderValue::from_static("application/json")),
            (CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded")),
        ]);
        let body = self
            .form(url, &mut headers)
            .map_err(|why| refused(&format!("was not asked: the credential '{}' {why}", self.oauth.binding)))?;
        // A token that was issued and lost does no harm, so that a lost connection is replaced at once.
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
            return answer::read_response(&body).map_err(|why| refused(&format!("gave an answer that {why}")).into());
        }
        let status = status.as_u16();
        let fault = match answer::read_refusal(&body) {
            _ if status == 429 || status >= 500 => unavailable(&format!("answered with HTTP {status}")),
            Some(refusal) => refused(&self.described(&refusal, status)),
            None if (300..400).contains(&status) => refused(&format!(
                "answered with HTTP {status}, a redirect, which is not followed: write the URL that issues tokens as `token_url`"
            )),
            None => refused(&format!("answered with HTTP {status} and no OAuth error: check `token_url`")),
        };
        Err(RequestError { fault, retry_after: pause })
    }

    /// Returns the form of a request to `url`, and adds the client's proof of identity.
    fn form(&self, url: &Url, headers: &mut HeaderMap) -> Result<String, &'static str> {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("grant_type", self.oauth.grant.name());
        for (name, value) in [("scope", self.oauth.scope), ("resource", self.oauth.resource)] {
            if !value.is_empty() {
                form.append_pair(name, value);
            }
        }
        self.credential.add(self.oauth, url, headers, &mut form)?;
        Ok(form.finish())
    }

    fn described(&self, refusal: &Refusal, status: u16) -> String {
        let Refusal { code, description } = refusal;
        let said = if description.is_empty() { String::new() } else { format!(" ({description})") };
        let OAuth2 { binding, grant, .. } = self.oauth;
        let advice = match code.as_str() {
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
        RequestError { fault, retry_after: None }
    }
}

/// Returns the end of "no access token", with the name of the upstream if there is one.
fn for_upstream(upstream: &str) -> String {
    if upstream.is_empty() { String::new() } else { format!(" for '{upstream}'") }
}
