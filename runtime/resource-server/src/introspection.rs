//! Token introspection (RFC 7662): the authorization server says whether an opaque token is active.
//!
//! Answers are kept for a short time, so that a client causes few requests, and a withdrawn token is soon refused.
//!
//! Anybody can send tokens that are not active, and whether a token is active can only be found out by a request. Requests are therefore
//! limited in number and rate, in three lanes, so that guesses neither flood the authorization server nor stop others: tokens that were
//! active recently, other tokens, and other tokens from an address that has sent many wrong ones.

use std::fmt::Display;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ptc_runtime::diagnostics::export::Connection;
use ptc_runtime::digest::sha256;
use ptc_runtime::log::{self, Level};
use ptc_runtime::secrets::Secrets;
use ptc_runtime::server::http::access_token::{Inquiry, TokenError};
use ptc_runtime::settings::OauthSettings;
use ptc_runtime::upstream::http::client::{Endpoint, HttpClient, OutgoingRequest};
use reqwest::Method;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::{Map, Value};
use url::{Url, form_urlencoded};

use crate::answers::{Answer, Answers};
use crate::lane::Lane;
use crate::single_flight::SingleFlight;
use crate::token::{Expectation, still_valid};

/// Time limit for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for a request.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of an answer in bytes.
const MAX_ANSWER_BYTES: u64 = 64 * 1024;
/// Maximum number of requests at the same time about tokens that were active recently. Their rate follows from their number.
const KNOWN_REQUESTS: usize = 8;
/// Maximum number of requests about other tokens at the same time, and in a second and in a burst.
const NEW_REQUESTS: (usize, Option<(u32, u32)>) = (4, Some((20, 40)));
/// The same for other tokens from an address that has sent many wrong ones.
const LIMITED_REQUESTS: (usize, Option<(u32, u32)>) = (2, Some((5, 10)));
/// Statuses of an answer that may be about the token alone. After others, no request is sent for a while.
const STATUSES_OF_A_TOKEN: [u16; 4] = [400, 413, 414, 422];
/// Pause after a failed request, in which no other one is sent.
const PAUSE: Duration = Duration::from_secs(1);
/// Minimum interval between two warnings.
const WARN_INTERVAL: Duration = Duration::from_secs(30);

/// Asks the authorization server about tokens.
pub(crate) struct Introspector {
    http: HttpClient,
    url: Url,
    headers: HeaderMap,
    known: Lane,
    new: Lane,
    limited: Lane,
    in_flight: SingleFlight,
    answers: Answers,
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
        Ok(Some(Introspector {
            http,
            url,
            headers,
            known: Lane::new(KNOWN_REQUESTS, None),
            new: Lane::new(NEW_REQUESTS.0, NEW_REQUESTS.1),
            limited: Lane::new(LIMITED_REQUESTS.0, LIMITED_REQUESTS.1),
            in_flight: SingleFlight::default(),
            answers: Answers::default(),
            failed: Mutex::default(),
            warned: Mutex::default(),
        }))
    }

    /// Returns the identity of an opaque token. Without a permitted inquiry only kept answers count.
    ///
    /// # Errors
    ///
    /// Returns [`TokenError::Unavailable`] if the authorization server gives no answer, or if too many tokens wait for one, and
    /// [`TokenError::Unanswered`] if it refuses the inquiry about this token. Neither is kept.
    pub(crate) async fn identity(&self, token: &str, inquiry: Inquiry, expectation: &Expectation) -> Answer {
        let digest = sha256(token.as_bytes());
        if let Some(answer) = self.answers.get(&digest) {
            return answer.and_then(still_valid);
        }
        if inquiry == Inquiry::Never {
            return Err(TokenError::Untrusted("the token is not known, and its client may not cause a request"));
        }
        let participant = self.in_flight.join(digest);
        let held = tokio::time::timeout(TIMEOUT, participant.lock.lock()).await;
        let Ok(_held) = held else { return Err(TokenError::Unavailable) };
        // Another request may have asked for the same token meanwhile.
        if let Some(answer) = self.answers.get(&digest) {
            return answer.and_then(still_valid);
        }
        let lane = match inquiry {
            _ if self.answers.was_active(&digest) => &self.known,
            Inquiry::Limited => &self.limited,
            Inquiry::Permitted | Inquiry::Never => &self.new,
        };
        let Some(_permit) = lane.enter().await else {
            self.warn("too many unknown tokens at the same time");
            return Err(TokenError::Unavailable);
        };
        let failed = || self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if failed().is_some_and(|at| at.elapsed() < PAUSE) {
            return Err(TokenError::Unavailable);
        }
        let claims = self.ask(token).await.map_err(|unanswered| {
            self.warn(&unanswered.why);
            // A token that the authorization server cannot read must not stop the others.
            if unanswered.is_about_token {
                return TokenError::Unanswered;
            }
            *failed() = Some(Instant::now());
            TokenError::Unavailable
        })?;
        let answer = expectation.introspected(claims);
        self.answers.keep(digest, answer.clone());
        answer
    }

    /// Sends the request. Redirects are not followed, since the token would go elsewhere.
    async fn ask(&self, token: &str) -> Result<Map<String, Value>, Unanswered> {
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
            let late = || format!("no answer within {} s", TIMEOUT.as_secs());
            Unanswered::new(if message.is_empty() { late() } else { message.to_owned() })
        };
        let mut response = self.http.send(request, deadline).await.map_err(|fault| failed(&fault.message))?;
        let status = response.status().as_u16();
        if status != 200 {
            let why = format!("expected status 200, got {status}");
            return Err(Unanswered { why, is_about_token: STATUSES_OF_A_TOKEN.contains(&status) });
        }
        let body = self
            .http
            .read_body(&mut response, MAX_ANSWER_BYTES.into(), deadline)
            .await
            .map_err(|fault| failed(&fault.message))?;
        serde_json::from_slice(&body).map_err(|_| Unanswered::new("expected a JSON object".to_owned()))
    }

    fn warn(&self, why: &str) {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.is_none_or(|at| at.elapsed() >= WARN_INTERVAL) {
            *warned = Some(Instant::now());
            log::line(Level::Warn, "access tokens not introspected", &[("url", self.url.as_str()), ("reason", why)]);
        }
    }
}

/// Why there is no answer about a token.
struct Unanswered {
    why: String,
    /// Whether the authorization server may have refused only this token.
    is_about_token: bool,
}

impl Unanswered {
    fn new(why: String) -> Unanswered {
        Unanswered { why, is_about_token: false }
    }
}
