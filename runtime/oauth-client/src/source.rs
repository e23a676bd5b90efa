//! The tokens of one upstream, or of one of its callers. However many calls wait, one request is made.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use ptc_log::{self as log, Level};
use ptc_secrets::Redactor;
use ptc_upstream::caller_token::CallerToken;
use ptc_upstream::http::access_token::{AccessToken, TokenFuture, TokenSource};
use ptc_upstream::offload::offload;
use ptc_upstream::{Reason, UpstreamError};
use reqwest::header::HeaderMap;
use tokio::sync::watch;
use zeroize::Zeroizing;

use crate::answer::TokenResponse;
use crate::challenge::Challenge;
use crate::endpoint::{RequestError, TokenEndpoint};
use crate::exchange::Exchange;
use crate::renewal::Renewal;
use crate::schedule::{Schedule, Step};

/// The size of a redactor's search tables in bytes, for each byte of a token.
pub(crate) const TABLE_BYTES: usize = 1_000;

/// The outcome of a request. `None` while it runs.
type Attempt = Option<Result<AccessToken, UpstreamError>>;

/// How the tokens of one upstream are requested.
pub(crate) struct Client {
    pub(crate) endpoint: TokenEndpoint,
    pub(crate) grant: Grant,
    /// Learns each token before a call can send it.
    pub(crate) redactor: Redactor,
}

/// For whom tokens are requested.
pub(crate) enum Grant {
    /// For the client itself.
    Client,
    /// For a person who has logged in.
    Login(Renewal),
    /// For a caller, or for the workload whose token is in a file.
    Exchange(Exchange),
}

/// The source of an upstream's tokens.
#[derive(Clone)]
pub(crate) struct Source(Arc<Inner>);

struct Inner {
    client: Arc<Client>,
    /// Whether the tokens are those of one caller. Their number is large, so that each token has a redactor of its own.
    is_of_caller: bool,
    /// The size in bytes of the redactor of the current token. 0 if it has none of its own.
    redactor_bytes: AtomicUsize,
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
    pub(crate) fn new(client: Arc<Client>) -> Source {
        Source::with(client, false)
    }

    /// Creates a source of the tokens of one caller.
    pub(crate) fn of_caller(client: Arc<Client>) -> Source {
        Source::with(client, true)
    }

    fn with(client: Arc<Client>, is_of_caller: bool) -> Source {
        Source(Arc::new(Inner { client, is_of_caller, redactor_bytes: AtomicUsize::new(0), state: Mutex::default() }))
    }

    /// Returns the size in bytes of the redactor of its token.
    pub(crate) fn redactor_bytes(&self) -> usize {
        self.0.redactor_bytes.load(Ordering::Relaxed)
    }

    /// Returns a token, like [`TokenSource::token`], for a caller if the source belongs to one.
    pub(crate) async fn token_for(
        &self,
        caller: Option<CallerToken>,
        refused: Option<&AccessToken>,
        deadline: Instant,
    ) -> Result<AccessToken, UpstreamError> {
        // Without an answer of the store in time, the call uses the token that there is.
        let _ = tokio::time::timeout_at(deadline.into(), self.0.recover_scope()).await;
        let mut attempt = match self.0.begin(caller, refused) {
            Ok(attempt) => attempt,
            Err(outcome) => return outcome,
        };
        let outcome = match tokio::time::timeout_at(deadline.into(), attempt.wait_for(Option::is_some)).await {
            // The caller knows whose limit it was.
            Err(_) => return Err(UpstreamError::timeout("")),
            Ok(found) => found.ok().and_then(|found| found.clone()),
        };
        outcome.unwrap_or_else(|| Err(UpstreamError::unavailable("the request of an access token was given up")))
    }
}

impl TokenSource for Source {
    fn token<'s>(&'s self, refused: Option<&'s AccessToken>, deadline: Instant) -> TokenFuture<'s> {
        Box::pin(self.token_for(None, refused, deadline))
    }

    fn forbidden(&self, headers: &HeaderMap) -> Option<UpstreamError> {
        let (fault, needs_login) = self.0.client.forbidden(headers)?;
        if needs_login {
            self.0.lock().lacks_scope = true;
        }
        Some(fault)
    }
}

impl Client {
    /// Returns the error of a call for which a token lacks scopes, and whether a person must log in again.
    pub(crate) fn forbidden(&self, headers: &HeaderMap) -> Option<(UpstreamError, bool)> {
        let challenge = Challenge::of_missing_scope(headers)?;
        let Client { endpoint, grant, redactor } = self;
        // The upstream may repeat the token.
        let scope = redactor.redact_str(&challenge.scope);
        if let Grant::Login(renewal) = grant {
            return Some((renewal.insufficient_scope(endpoint, &scope), true));
        }
        // The scopes of the client itself are a decision of the operator.
        let message = format!(
            "the access token for '{}' is not sufficient: the upstream needs the scopes `{scope}`; add them to `scopes`",
            endpoint.upstream()
        );
        Some((UpstreamError::new(Reason::AuthFailed, message), false))
    }

    /// Requests a token. Returns when it was requested, too. `earlier` redacts the last token of a caller, which the server may repeat in a
    /// refusal.
    async fn request(
        &self,
        caller: Option<&CallerToken>,
        earlier: Option<&Redactor>,
    ) -> Result<(TokenResponse, Instant), RequestError> {
        let asked_at = Instant::now();
        let response = match &self.grant {
            Grant::Login(renewal) => return renewal.renew(&self.endpoint, &self.redactor).await,
            Grant::Client => self.endpoint.request().await?,
            Grant::Exchange(exchange) => exchange.request(&self.endpoint, caller, earlier.unwrap_or(&self.redactor)).await?,
        };
        Ok((response, asked_at))
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets a token that lacks a scope if a person has logged in again.
    async fn recover_scope(&self) {
        let Grant::Login(renewal) = &self.client.grant else { return };
        let lacks_scope = self.lock().lacks_scope;
        if !lacks_scope || !renewal.is_replaced().await {
            return;
        }
        let mut state = self.lock();
        // Another call may have done it meanwhile, and a request that runs reads the store itself.
        if state.lacks_scope && state.request.is_none() {
            state.lacks_scope = false;
            state.schedule.forget();
        }
    }

    /// Returns the request for which a call waits, or the outcome if it need not wait.
    fn begin(
        self: &Arc<Self>,
        caller: Option<CallerToken>,
        refused: Option<&AccessToken>,
    ) -> Result<watch::Receiver<Attempt>, Result<AccessToken, UpstreamError>> {
        let mut state = self.lock();
        // A request whose runtime has ended is lost.
        state.request.take_if(|request| request.has_changed().is_err());
        let is_requesting = state.request.is_some();
        match state.schedule.step(refused, is_requesting, Instant::now()) {
            Step::Use(token) => Err(Ok(token)),
            Step::UseAndRenew(token) => {
                self.start(&mut state, caller);
                Err(Ok(token))
            }
            Step::Fail(fault) => Err(Err(fault)),
            Step::Wait => Ok(state.request.clone().unwrap_or_else(|| self.start(&mut state, caller))),
        }
    }

    /// Starts a request in a task of its own, so that a call that stops waiting does not abort it.
    fn start(self: &Arc<Self>, state: &mut State, caller: Option<CallerToken>) -> watch::Receiver<Attempt> {
        let (publish, attempt) = watch::channel(None);
        let this = Arc::clone(self);
        tokio::spawn(async move {
            let outcome = this.request(caller).await;
            publish.send_replace(Some(outcome));
        });
        state.request = Some(attempt.clone());
        attempt
    }

    async fn request(&self, caller: Option<CallerToken>) -> Result<AccessToken, UpstreamError> {
        let Client { endpoint, redactor, .. } = &*self.client;
        let earlier = self.lock().schedule.redactor();
        let requested = self.client.request(caller.as_ref(), earlier.as_ref()).await;
        drop(caller);
        let requested = match requested {
            Ok((response, asked_at)) => match self.learn(response).await {
                Ok(response) => Ok((response, asked_at)),
                Err(fault) => Err(fault.into()),
            },
            Err(error) => Err(error),
        };
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
        error.fault.message = redactor.redact_str(&error.fault.message).into_owned().into();
        state.schedule.failed(&error, Instant::now());
        drop(state);
        let fields = [("upstream", endpoint.upstream()), ("reason", &*error.fault.message)];
        log::line(Level::Warn, "no access token", &fields);
        Err(error.fault)
    }

    /// Makes a redactor know the token before a call can send it. A caller's token has its own.
    async fn learn(&self, mut response: TokenResponse) -> Result<TokenResponse, UpstreamError> {
        if !self.is_of_caller {
            let client = Arc::clone(&self.client);
            return offload(response.access_token.len() * TABLE_BYTES, move || {
                client.redactor.add_issued(client.endpoint.upstream(), &response.access_token);
                response
            })
            .await;
        }
        let redactor = layered(&self.client.redactor, &response.access_token).await?;
        self.redactor_bytes.store(redactor.layer_bytes(), Ordering::Relaxed);
        response.redactor = Some(redactor);
        Ok(response)
    }
}

/// Makes a redactor that finds one more token, in a layer. Building its tables takes milliseconds, in which the event loop serves other
/// calls.
///
/// # Errors
///
/// The server shuts down.
async fn layered(redactor: &Redactor, token: &str) -> Result<Redactor, UpstreamError> {
    let (redactor, token) = (redactor.clone(), Zeroizing::new(token.to_owned()));
    offload(token.len() * TABLE_BYTES, move || redactor.layered(&token)).await
}

/// Makes a redactor that finds more secrets, and is used once.
///
/// # Errors
///
/// The server shuts down.
pub(crate) async fn knowing(redactor: &Redactor, secrets: &[&str]) -> Result<Redactor, UpstreamError> {
    let bytes = secrets.iter().map(|secret| secret.len() * TABLE_BYTES).sum();
    let secrets: Vec<Zeroizing<String>> = secrets.iter().map(|secret| Zeroizing::new((*secret).to_owned())).collect();
    let redactor = redactor.clone();
    offload(bytes, move || secrets.iter().fold(redactor, |redactor, secret| redactor.with(secret))).await
}
