//! The tokens of one upstream. However many calls wait, one request is made.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use ptc_log::{self as log, Level};
use ptc_secrets::Redactor;
use ptc_upstream::http::access_token::{AccessToken, TokenFuture, TokenSource};
use ptc_upstream::{Reason, UpstreamError};
use reqwest::header::HeaderMap;
use tokio::sync::watch;

use crate::challenge::Challenge;
use crate::endpoint::{RequestError, TokenEndpoint};
use crate::renewal::Renewal;
use crate::schedule::{Schedule, Step};

/// The outcome of a request. `None` while it runs.
type Attempt = Option<Result<AccessToken, UpstreamError>>;

/// The source of an upstream's tokens.
pub(crate) struct Source(Arc<Inner>);

struct Inner {
    endpoint: TokenEndpoint,
    /// The login of a person, if the grant needs one.
    renewal: Option<Renewal>,
    /// Learns each token before a call can send it.
    redactor: Redactor,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    schedule: Schedule,
    /// The running request.
    request: Option<watch::Receiver<Attempt>>,
    /// Whether the current token lacks a scope, so that a person may have logged in again.
    lacks_scope: bool,
}

impl Source {
    /// Creates a source without a token.
    pub(crate) fn new(endpoint: TokenEndpoint, renewal: Option<Renewal>, redactor: Redactor) -> Source {
        Source(Arc::new(Inner { endpoint, renewal, redactor, state: Mutex::default() }))
    }
}

impl TokenSource for Source {
    fn token<'s>(&'s self, refused: Option<&'s AccessToken>, deadline: Instant) -> TokenFuture<'s> {
        Box::pin(async move {
            let mut attempt = match self.0.begin(refused) {
                Ok(attempt) => attempt,
                Err(outcome) => return outcome,
            };
            let outcome = match tokio::time::timeout_at(deadline.into(), attempt.wait_for(Option::is_some)).await {
                // The caller knows whose limit it was.
                Err(_) => return Err(UpstreamError::timeout("")),
                Ok(found) => found.ok().and_then(|found| found.clone()),
            };
            outcome.unwrap_or_else(|| Err(UpstreamError::unavailable("the request of an access token was given up")))
        })
    }

    fn forbidden(&self, headers: &HeaderMap) -> Option<UpstreamError> {
        let challenge = Challenge::read(headers).filter(|challenge| challenge.error == "insufficient_scope")?;
        let Inner { endpoint, renewal, redactor, .. } = &*self.0;
        // The upstream may repeat the token.
        let scope = redactor.redact_str(&challenge.scope);
        if let Some(renewal) = renewal {
            self.0.lock().lacks_scope = true;
            return Some(renewal.insufficient_scope(endpoint, &scope));
        }
        // The scopes of the client itself are a decision of the operator.
        let message = format!(
            "the access token for '{}' is not sufficient: the upstream needs the scopes `{scope}`; add them to `scopes`",
            endpoint.upstream()
        );
        Some(UpstreamError::new(Reason::AuthFailed, message))
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the request for which a call waits, or the outcome if it need not wait.
    fn begin(
        self: &Arc<Self>,
        refused: Option<&AccessToken>,
    ) -> Result<watch::Receiver<Attempt>, Result<AccessToken, UpstreamError>> {
        let mut state = self.lock();
        // A request whose runtime has ended is lost.
        state.request.take_if(|request| request.has_changed().is_err());
        let is_requesting = state.request.is_some();
        if state.lacks_scope && !is_requesting && self.renewal.as_ref().is_some_and(Renewal::is_replaced) {
            state.lacks_scope = false;
            state.schedule.forget();
        }
        match state.schedule.step(refused, is_requesting, Instant::now()) {
            Step::Use(token) => Err(Ok(token)),
            Step::UseAndRenew(token) => {
                self.start(&mut state);
                Err(Ok(token))
            }
            Step::Fail(fault) => Err(Err(fault)),
            Step::Wait => Ok(state.request.clone().unwrap_or_else(|| self.start(&mut state))),
        }
    }

    /// Starts a request in a task of its own, so that a call that stops waiting does not abort it.
    fn start(self: &Arc<Self>, state: &mut State) -> watch::Receiver<Attempt> {
        let (publish, attempt) = watch::channel(None);
        let this = Arc::clone(self);
        tokio::spawn(async move {
            let outcome = this.request().await;
            publish.send_replace(Some(outcome));
        });
        state.request = Some(attempt.clone());
        attempt
    }

    async fn request(&self) -> Result<AccessToken, UpstreamError> {
        let requested = if let Some(renewal) = &self.renewal {
            renewal.renew(&self.endpoint, &self.redactor).await
        } else {
            let asked_at = Instant::now();
            self.endpoint.request().await.map(|response| (response, asked_at))
        };
        if let Ok((response, _)) = &requested {
            self.redactor.add_issued(self.endpoint.upstream(), &response.access_token);
        }
        let mut state = self.lock();
        state.request = None;
        let mut error = match requested {
            Ok((response, asked_at)) => match state.schedule.issued(&response, asked_at) {
                Ok(token) => return Ok(token),
                Err(why) => RequestError::from(UpstreamError::unavailable(why)),
            },
            Err(error) => error,
        };
        // The server may repeat what the client has sent.
        error.fault.message = self.redactor.redact_str(&error.fault.message).into_owned().into();
        state.schedule.failed(&error, Instant::now());
        drop(state);
        let fields = [("upstream", self.endpoint.upstream()), ("reason", &*error.fault.message)];
        log::line(Level::Warn, "no access token", &fields);
        Err(error.fault)
    }
}
