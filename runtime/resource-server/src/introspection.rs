//! Token introspection (RFC 7662): the authorization server says whether an opaque token is active.
//!
//! Answers are kept for a short time, so that a client causes few requests, and a withdrawn token is soon refused.

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ptc_runtime::diagnostics::export::Connection;
use ptc_runtime::digest::sha256;
use ptc_runtime::log::{self, Level};
use ptc_runtime::secrets::Secrets;
use ptc_runtime::server::http::access_token::TokenError;
use ptc_runtime::server::identity::Identity;
use ptc_runtime::settings::OauthSettings;
use ptc_runtime::upstream::http::client::{Endpoint, HttpClient, OutgoingRequest};
use reqwest::Method;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use url::{Url, form_urlencoded};

use crate::token::{Expectation, still_valid};

/// Time limit for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for a request.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of an answer in bytes.
const MAX_ANSWER_BYTES: u64 = 64 * 1024;
/// Time for which an answer is kept.
const MAX_AGE: Duration = Duration::from_secs(30);
/// Maximum number of answers that are kept.
const MAX_ANSWERS: usize = 10_000;
/// Maximum number of answers that are kept while the next one refuses its token. Anybody can cause refusals, which must not displace the
/// others.
const MAX_REFUSALS: usize = MAX_ANSWERS / 2;
/// Maximum number of requests at the same time, since anybody can send tokens that are not active.
const MAX_REQUESTS: usize = 8;
/// Maximum time that a token waits for the requests of others.
const MAX_WAIT: Duration = Duration::from_secs(2);
/// Pause after a failed request, in which no other one is sent.
const PAUSE: Duration = Duration::from_secs(1);
/// Minimum interval between two warnings.
const WARN_INTERVAL: Duration = Duration::from_secs(30);

type Answer = Result<Identity, TokenError>;

/// Asks the authorization server about tokens.
pub(crate) struct Introspector {
    http: HttpClient,
    url: Url,
    headers: HeaderMap,
    requests: Semaphore,
    /// Answers by the digest of the token, each with the time at which it was received.
    answers: Mutex<HashMap<[u8; 32], (Instant, Answer)>>,
    failed: Mutex<Option<Instant>>,
    warned: Mutex<Option<Instant>>,
}

impl Introspector {
    /// Prepares the client, if the settings have an endpoint. Nothing is sent.
    pub(crate) fn new(
        settings: &OauthSettings,
        secrets: &Secrets,
        connection: Connection,
    ) -> Result<Option<Introspector>, String> {
        let (Some(address), Some(client), Some(secret)) =
            (&settings.introspection_url, &settings.client_id, &settings.client_secret)
        else {
            return Ok(None);
        };
        let invalid = |why: &dyn Display| format!("--http-oauth-introspection-url {address}: {why}");
        let url = Url::parse(address).map_err(|why| invalid(&why))?;
        // RFC 6749, section 2.3.1: both parts are encoded as in a form.
        let encode = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        let credential = STANDARD.encode(format!("{}:{}", encode(client), encode(secret.text())));
        let mut authorization = HeaderValue::from_str(&format!("Basic {credential}")).map_err(|why| invalid(&why))?;
        authorization.set_sensitive(true);
        let headers = HeaderMap::from_iter([
            (AUTHORIZATION, authorization),
            (ACCEPT, HeaderValue::from_static("application/json")),
            (CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded")),
        ]);
        let Connection { extra_roots, proxy, .. } = connection;
        let endpoint = Endpoint { proxy, extra_roots, ..Endpoint::of_own_service(address, CONNECT_TIMEOUT) };
        let http = HttpClient::new(&endpoint, secrets).map_err(|fault| invalid(&fault.message))?;
        let requests = Semaphore::new(MAX_REQUESTS);
        Ok(Some(Introspector {
            http,
            url,
            headers,
            requests,
            answers: Mutex::default(),
            failed: Mutex::default(),
            warned: Mutex::default(),
        }))
    }

    /// Returns the identity of an opaque token. Without `may_ask` only kept answers count.
    ///
    /// # Errors
    ///
    /// Returns [`TokenError::Unavailable`] if the authorization server gives no answer. This is not kept.
    pub(crate) async fn identity(&self, token: &str, may_ask: bool, expectation: &Expectation) -> Answer {
        let digest = sha256(token.as_bytes());
        let kept = || self.answers().get(&digest).filter(|(at, _)| at.elapsed() < MAX_AGE).map(|(_, answer)| answer.clone());
        if let Some(answer) = kept() {
            return answer.and_then(still_valid);
        }
        if !may_ask {
            return Err(TokenError::Untrusted("the token is not known, and its client may not cause a request"));
        }
        let permit = tokio::time::timeout(MAX_WAIT, self.requests.acquire()).await;
        let Ok(Ok(_permit)) = permit else { return Err(TokenError::Unavailable) };
        // Another request may have asked for the same token meanwhile.
        if let Some(answer) = kept() {
            return answer.and_then(still_valid);
        }
        let failed = || self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if failed().is_some_and(|at| at.elapsed() < PAUSE) {
            return Err(TokenError::Unavailable);
        }
        let claims = self.ask(token).await.map_err(|why| {
            *failed() = Some(Instant::now());
            self.warn(&why);
            TokenError::Unavailable
        })?;
        let answer = expectation.introspected(claims);
        let mut answers = self.answers();
        let most = if answer.is_ok() { MAX_ANSWERS } else { MAX_REFUSALS };
        if answers.len() >= most {
            answers.retain(|_, (at, _)| at.elapsed() < MAX_AGE);
        }
        if answers.len() < most {
            answers.insert(digest, (Instant::now(), answer.clone()));
        }
        answer
    }

    /// Sends the request. Redirects are not followed, since the token would go elsewhere.
    async fn ask(&self, token: &str) -> Result<Map<String, Value>, String> {
        let deadline = Instant::now() + TIMEOUT;
        let body = {
            let mut form = form_urlencoded::Serializer::new(String::new());
            form.append_pair("token", token).append_pair("token_type_hint", "access_token").finish()
        };
        let request = OutgoingRequest {
            body: body.into(),
            repeatable: true,
            follows: false,
            ..OutgoingRequest::new(Method::POST, &self.url, self.headers.clone())
        };
        let failed = |message: &str| {
            if message.is_empty() { format!("no answer within {} s", TIMEOUT.as_secs()) } else { message.to_owned() }
        };
        let mut response = self.http.send(request, deadline).await.map_err(|fault| failed(&fault.message))?;
        let status = response.status().as_u16();
        if status != 200 {
            return Err(format!("expected status 200, got {status}"));
        }
        let body = self
            .http
            .read_body(&mut response, MAX_ANSWER_BYTES.into(), deadline)
            .await
            .map_err(|fault| failed(&fault.message))?;
        serde_json::from_slice(&body).map_err(|_| "expected a JSON object".to_owned())
    }

    fn answers(&self) -> MutexGuard<'_, HashMap<[u8; 32], (Instant, Answer)>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn warn(&self, why: &str) {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.is_none_or(|at| at.elapsed() >= WARN_INTERVAL) {
            *warned = Some(Instant::now());
            log::line(Level::Warn, "access tokens not introspected", &[("url", self.url.as_str()), ("reason", why)]);
        }
    }
}
