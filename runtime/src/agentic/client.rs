//! A client of OpenAI-compatible chat completions.
//!
//! It uses the HTTP client of the upstreams, including its redirects within the origin, certificates and redaction. A client
//! library would add another HTTP client and hundreds of types for one request and five members of its answer.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::Method;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::{Value, json};
use url::Url;

use super::completion::{self, Completion};
use super::model::Model;
use super::plan::Plan;
use crate::secrets::Secrets;
use crate::upstream::http::client::{Endpoint, HttpClient, OutgoingRequest};
use crate::upstream::http::proxy::ResolvedProxy;
use crate::upstream::http::status::{ERROR_BODY_BYTES, Head, retry_after};
use crate::upstream::{Reason, UpstreamError, stage};

/// Maximum number of attempts.
const ATTEMPTS: u32 = 4;
/// Back-off before the second attempt, unless the endpoint sends `Retry-After`. It doubles with each attempt.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// Timeout for connecting.
const CONNECT: Duration = Duration::from_secs(5);
/// Maximum bytes of an answer, far more than the requested tokens can take.
const ANSWER_BYTES: u64 = 8 * 1024 * 1024;

/// A client for one model.
#[derive(Clone)]
pub struct Client {
    /// The HTTP client, or why there is none.
    http: Result<HttpClient, Fault>,
    model: Model,
    url: Url,
    max_output_tokens: u32,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// `system`, `user` or `assistant`.
    pub role: &'static str,
    /// Its text.
    pub content: String,
}

/// Why a request has no completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The operator has to change something: the key, the model's name, the endpoint.
    Config(String),
    /// The endpoint or the model failed.
    Planner(String),
    /// There was no answer in time.
    Late,
}

/// The result of a request with its attempts.
#[derive(Debug)]
pub struct Asked {
    /// The completion, or the error.
    pub outcome: Result<Completion, Fault>,
    /// Number of attempts.
    pub attempts: u32,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Config(why) | Fault::Planner(why) => f.write_str(why),
            Fault::Late => f.write_str("the planner did not answer in time"),
        }
    }
}

/// The failure of one attempt.
enum Failed {
    /// Another attempt may succeed, after the delay that the endpoint names, if any.
    Again(String, Option<Duration>),
    Ended(Fault),
}

impl Client {
    /// Creates a client for a plan's model. Nothing is sent yet. If the server was started without the key, each request fails.
    ///
    /// # Errors
    ///
    /// Returns a sentence if the URL of the model is invalid, or if the HTTP client cannot be built with the key and
    /// `extra_roots`.
    pub fn new(
        plan: &Plan,
        secrets: &Secrets,
        extra_roots: Option<Arc<[u8]>>,
        proxy: Option<ResolvedProxy>,
    ) -> Result<Client, String> {
        let address = format!("{}/chat/completions", plan.model.base_url);
        let url = Url::parse(&address).map_err(|why| format!("--agentic-base-url: {address}: {why}"))?;
        let endpoint = Endpoint { auth: plan.auth().leak(), proxy, extra_roots, ..Endpoint::of_own_service(&address, CONNECT) };
        let is_key = |binding: &str| plan.auth().iter().any(|auth| *auth.binding() == binding);
        let http = match secrets.missing().iter().find(|missing| missing.binding.is_some_and(is_key)) {
            Some(missing) => Err(Fault::Config(missing.to_string())),
            None => Ok(HttpClient::new(&endpoint, secrets).map_err(|fault| format!("--agentic: {}", fault.message))?),
        };
        Ok(Client { http, model: plan.model.clone(), url, max_output_tokens: plan.settings.max_output_tokens })
    }

    /// Sends a conversation to the model, with retries until the deadline.
    pub async fn ask(&self, messages: &[Message], deadline: Instant) -> Asked {
        let mut attempts = 0;
        let mut pause = FIRST_PAUSE;
        loop {
            attempts += 1;
            let (why, named) = match stage::followed(self.attempt(messages, deadline)).await {
                Ok(completion) => return Asked { outcome: Ok(completion), attempts },
                Err(Failed::Ended(fault)) => return Asked { outcome: Err(fault), attempts },
                Err(Failed::Again(why, named)) => (why, named),
            };
            let wait = named.unwrap_or(pause);
            if attempts == ATTEMPTS || Instant::now() + wait >= deadline {
                let times = if attempts == 1 { "once".to_owned() } else { format!("{attempts} times") };
                return Asked { outcome: Err(Fault::Planner(format!("{why} (asked {times})"))), attempts };
            }
            tokio::time::sleep(wait).await;
            pause *= 2;
        }
    }

    async fn attempt(&self, messages: &[Message], deadline: Instant) -> Result<Completion, Failed> {
        let http = self.http.as_ref().map_err(|why| Failed::Ended(why.clone()))?;
        let messages: Vec<Value> = messages.iter().map(|m| json!({ "role": m.role, "content": m.content })).collect();
        let mut body = json!({ "model": self.model.id, "messages": messages, "stream": false });
        if let Some(members) = body.as_object_mut() {
            members.insert(self.model.cap.to_owned(), self.max_output_tokens.into());
        }
        let json = HeaderValue::from_static("application/json");
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, json.clone()), (ACCEPT, json)]);
        let asking = OutgoingRequest { body: body.to_string().into(), ..OutgoingRequest::new(Method::POST, &self.url, headers) };
        let mut response = http.send(asking, deadline).await.map_err(of_world)?;
        let status = response.status();
        let (head, pause) = (Head::new(http, &response), retry_after(&response));
        let streams = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        let most = if status.is_success() { ANSWER_BYTES } else { ERROR_BODY_BYTES };
        let body = http.read_body(&mut response, most.into(), deadline).await;
        if !status.is_success() {
            let said = head.fault(&body.unwrap_or_default()).message.into_owned();
            return Err(of_status(status.as_u16(), &said, pause));
        }
        let body = body.map_err(of_world)?;
        if streams {
            let why = "the endpoint streams its answer although it was asked not to (\"stream\": false)";
            return Err(Failed::Ended(Fault::Planner(why.to_owned())));
        }
        completion::read(&body).map_err(|fault| match fault {
            // Some endpoints report errors with status 200.
            completion::Fault::Said { code: Some(code), message } => of_status(code, &message, None),
            completion::Fault::Said { code: None, message } => Failed::Ended(Fault::Planner(message)),
            completion::Fault::Garbage(why) => Failed::Ended(Fault::Planner(why)),
        })
    }
}

fn of_status(status: u16, said: &str, pause: Option<Duration>) -> Failed {
    match status {
        429 | 500..=599 => Failed::Again(format!("the endpoint: {said}"), pause),
        401 | 403 => Failed::Ended(Fault::Config(format!("the endpoint refuses the key: {said}"))),
        404 => Failed::Ended(Fault::Config(format!("the endpoint knows no such model, or is none: {said}"))),
        _ => Failed::Ended(Fault::Planner(format!("the endpoint: {said}"))),
    }
}

fn of_world(fault: UpstreamError) -> Failed {
    let said = fault.message.into_owned();
    match fault.reason {
        Reason::Timeout if said.is_empty() => Failed::Ended(Fault::Late),
        // The endpoint could not be reached, or the connection was lost.
        Reason::UpstreamUnavailable | Reason::Timeout => Failed::Again(format!("the endpoint: {said}"), None),
        // A proxy refuses the credentials.
        Reason::AuthFailed => Failed::Ended(Fault::Config(said)),
        _ => Failed::Ended(Fault::Planner(format!("the endpoint: {said}"))),
    }
}
