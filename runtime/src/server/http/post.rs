//! Passes a posted message to the dispatcher and returns its answer.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use hyper::header::{HeaderName, WWW_AUTHENTICATE};
use hyper::{HeaderMap, StatusCode};
use tokio::sync::oneshot;

use super::guard::text;
use super::reply::Reply;
use super::route::AccessLogFields;
use super::sessions::Full;
use super::{HttpState, header_validation, route};
use crate::diagnostics::Origin;
use crate::log::{self, Level};
use crate::schedule::{AnswerReservation, ClientKey, Scheduler, UnreadLimitExceeded, session_number};
use crate::server::Caller;
use crate::server::caller::{Answer, ResponseSink};
use crate::server::dispatch::Request;
use crate::server::identity::{Identity, Owner};
use crate::server::in_flight::{CallHandle, InFlight, Registration};
use ptc_engine::evaluation::{Evaluation, Failure, Reason};
use ptc_engine::protocol::message::{self, Message, Params};
use ptc_engine::protocol::reply::{ErrorBody, METHOD_NOT_FOUND, SERVER_ERROR, UNSUPPORTED_PROTOCOL_VERSION};
use ptc_engine::protocol::revision::Era;
use ptc_engine::response::{Profile, answer};

/// Maximum bytes of an answer that does not count as unread. The answer that would replace it is not shorter.
const MAX_UNCOUNTED: usize = 1024;

/// The session of the era with `initialize`.
pub static SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

/// Sends the answer of one request to the connection that waits for it.
struct OneshotSink {
    sender: Mutex<Option<oneshot::Sender<ReadyAnswer>>>,
    /// The call of the request. A request that is refused, such as one with the id of another call, has none.
    call: Arc<OnceLock<CallHandle>>,
    scheduler: Arc<Scheduler>,
    client_key: ClientKey,
    id: String,
    era: Era,
    profile: Profile,
}

/// An answer with its memory, which counts until the answer is written: a client may read slowly.
struct ReadyAnswer {
    answer: Answer,
    memory: Option<AnswerReservation>,
}

impl ResponseSink for OneshotSink {
    fn send(&self, answer: Answer, call: Option<Registration>) {
        let ready = if answer.line.len() <= MAX_UNCOUNTED {
            ReadyAnswer::without_memory(answer)
        } else {
            match self.scheduler.hold_answer(&self.client_key, answer.line.capacity()) {
                Ok(memory) => ReadyAnswer { answer, memory: Some(memory) },
                Err(unread) => ReadyAnswer::without_memory(self.replacement(&unread, call.as_ref())),
            }
        };
        // The permit is released before the client can see the answer and send its next call.
        drop(call);
        if let Some(sender) = self.sender.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // If the client has disconnected, there is no receiver.
            let _ = sender.send(ready);
        }
    }

    fn registered(&self, call: &Registration) {
        let _ = self.call.set(call.call().clone());
    }
}

impl OneshotSink {
    /// Returns the answer that replaces a discarded one. If a program has begun, it is a result, since a client may send a
    /// request again that is answered with an error.
    fn replacement(&self, why: &UnreadLimitExceeded, call: Option<&Registration>) -> Answer {
        log::line(Level::Warn, "http_answer_discarded", &[("message", &why.to_string())]);
        if call.is_some_and(Registration::has_begun) {
            let evaluation = Evaluation::refused(Failure::answer_discarded(why));
            return Answer::result(&self.id, &answer::tool_result(&evaluation, self.profile, self.era));
        }
        Answer::error(&self.id, &ErrorBody::new(SERVER_ERROR, format!("no program has run, and the answer was discarded: {why}")))
    }
}

impl ReadyAnswer {
    /// Creates an answer that is too small to count.
    fn without_memory(answer: Answer) -> ReadyAnswer {
        ReadyAnswer { answer, memory: None }
    }
}

/// The body of a reply. Its memory counts until it is written.
struct AnswerBody {
    line: Vec<u8>,
    _memory: Option<AnswerReservation>,
}

impl AsRef<[u8]> for AnswerBody {
    fn as_ref(&self) -> &[u8] {
        &self.line
    }
}

/// The outcome of a posted message.
enum PostOutcome {
    /// A reply that is complete.
    Reply(Reply),
    /// An answer that may take time.
    Pending(PendingResponse),
}

struct PendingResponse {
    answer: oneshot::Receiver<ReadyAnswer>,
    id: String,
    era: Era,
    /// The session that `initialize` opened.
    opened: Option<String>,
    on_disconnect: OnDisconnect,
}

/// Handles the end of a connection before the answer: hyper then drops what waits for the answer.
enum OnDisconnect {
    /// Clients of the stateless era cancel by closing the connection.
    Cancel { state: Arc<HttpState>, number: u64, calls: Arc<InFlight> },
    /// In the handshake era a lost connection does not cancel a call. A call that waits for a permit has not begun, and its
    /// answer would reach no client.
    LeaveQueue { call: Arc<OnceLock<CallHandle>>, has_answer: bool },
}

impl Drop for OnDisconnect {
    fn drop(&mut self) {
        match self {
            OnDisconnect::Cancel { state, number, calls } => {
                state.stateless_calls().remove(number);
                calls.cancel_all();
            }
            OnDisconnect::LeaveQueue { has_answer: true, .. } => {}
            OnDisconnect::LeaveQueue { call, .. } => call.get().into_iter().for_each(CallHandle::leave_queue),
        }
    }
}

/// Answers a posted body.
pub(super) async fn answer(
    state: &Arc<HttpState>,
    identity: Arc<Identity>,
    headers: &HeaderMap,
    body: Bytes,
    log_fields: &mut AccessLogFields,
) -> Reply {
    let caller = Arc::clone(&identity);
    let outcome = if state.server.may_block() {
        spawn_blocking_call(state, identity, headers, body, log_fields).await
    } else {
        let outcome = begin(state, &identity, headers, &body, log_fields);
        // The call has its own copy of the data. The raw body would otherwise stay in memory until the answer.
        drop(body);
        outcome
    };
    let mut pending = match outcome {
        PostOutcome::Reply(reply) => return reply,
        PostOutcome::Pending(pending) => pending,
    };
    let answer = (&mut pending.answer).await;
    if let OnDisconnect::LeaveQueue { has_answer, .. } = &mut pending.on_disconnect {
        *has_answer = true;
    }
    let ReadyAnswer { answer, memory } = answer.unwrap_or_else(|_| {
        // The sender was dropped without an answer, since the call was cancelled.
        let profile = state.server.settings().response_profile;
        let refusal = answer::refusal(Reason::Cancelled, "the call was cancelled", "", profile, pending.era);
        ReadyAnswer::without_memory(Answer::result(&pending.id, &refusal))
    });
    let challenge = state.authenticator.scope_challenge(&caller, &answer.missing_scopes);
    let status = match (pending.era, answer.error) {
        _ if challenge.is_some() => StatusCode::FORBIDDEN,
        (Era::Handshake, _) | (_, None) => StatusCode::OK,
        (Era::Stateless, Some(METHOD_NOT_FOUND)) => StatusCode::NOT_FOUND,
        (Era::Stateless, Some(SERVER_ERROR)) => StatusCode::SERVICE_UNAVAILABLE,
        (Era::Stateless, Some(_)) => StatusCode::BAD_REQUEST,
    };
    let reply = Reply::json(status, Bytes::from_owner(AnswerBody { line: answer.line, _memory: memory }));
    let reply = match challenge {
        Some(challenge) => reply.with(WWW_AUTHENTICATE, &challenge),
        None => reply,
    };
    match pending.opened {
        Some(id) => reply.with(SESSION_ID.clone(), &id),
        None => reply,
    }
}

/// Counts a request that is being read, until it is dropped.
struct PendingRead(Arc<HttpState>);

impl PendingRead {
    fn new(state: &Arc<HttpState>) -> PendingRead {
        state.reading.fetch_add(1, Ordering::AcqRel);
        PendingRead(Arc::clone(state))
    }
}

impl Drop for PendingRead {
    fn drop(&mut self) {
        self.0.reading.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Like [`begin`], on a blocking thread, since the event loop of all connections must not wait for files.
async fn spawn_blocking_call(
    state: &Arc<HttpState>,
    identity: Arc<Identity>,
    headers: &HeaderMap,
    body: Bytes,
    log_fields: &mut AccessLogFields,
) -> PostOutcome {
    let (state, headers, mut fields) = (Arc::clone(state), headers.clone(), log_fields.clone());
    let reading = PendingRead::new(&state);
    let outcome = tokio::task::spawn_blocking(move || {
        // The shutdown may have begun, and its time may be over, while the request waited for a thread.
        let outcome = if state.is_draining() {
            PostOutcome::Reply(route::unavailable("server draining"))
        } else {
            begin(&state, &identity, &headers, &body, &mut fields)
        };
        drop(reading);
        (outcome, fields)
    });
    match outcome.await {
        Ok((outcome, fields)) => {
            *log_fields = fields;
            outcome
        }
        Err(_) => PostOutcome::Reply(Reply::empty(StatusCode::INTERNAL_SERVER_ERROR)),
    }
}

fn begin(
    state: &Arc<HttpState>,
    identity: &Arc<Identity>,
    headers: &HeaderMap,
    body: &[u8],
    log_fields: &mut AccessLogFields,
) -> PostOutcome {
    let refuse = |status, id: &str, body: &ErrorBody| PostOutcome::Reply(Reply::json(status, Answer::error(id, body).line));
    let parsed = match message::parse(body) {
        Ok(parsed) => parsed,
        Err(refusal) => return refuse(StatusCode::BAD_REQUEST, "null", &refusal.body()),
    };
    match parsed {
        Message::Notification { method, params } => notification(state, identity, headers, &method, &params, log_fields),
        Message::Request { id, method, params } => {
            let era = match header_validation::era(headers, &method, &params) {
                Ok(era) => era,
                Err(body) => return refuse(StatusCode::BAD_REQUEST, id, &body),
            };
            let (calls, opened) = match (era, &*method) {
                (Era::Stateless, _) => {
                    (InFlight::new(ClientKey { owner: Arc::clone(&identity.owner.id), session: log_fields.connection }), None)
                }
                (Era::Handshake, "initialize") => match open(state, identity, headers, log_fields) {
                    Ok((calls, opened)) => (calls, Some(opened)),
                    Err((status, body)) => return refuse(status, id, &body),
                },
                (Era::Handshake, _) => match enter(state, identity, headers, log_fields) {
                    Ok(calls) => (calls, None),
                    Err(reply) => return PostOutcome::Reply(reply),
                },
            };
            let (sender, answer) = oneshot::channel();
            let call = Arc::default();
            let on_disconnect = on_disconnect(state, era, &calls, &call);
            let answers: Arc<dyn ResponseSink> = Arc::new(OneshotSink {
                sender: Mutex::new(Some(sender)),
                call,
                scheduler: Arc::clone(state.server.scheduler()),
                client_key: calls.client_key().clone(),
                id: id.to_owned(),
                era,
                profile: state.server.settings().response_profile,
            });
            let caller = Caller { identity: Arc::clone(identity), calls, origin: origin(state, &identity.owner, log_fields) };
            state.server.request(Request { id, method: &method, params: &params, era, caller: &caller, answers: &answers });
            PostOutcome::Pending(PendingResponse { answer, id: id.to_owned(), era, opened, on_disconnect })
        }
    }
}

fn notification(
    state: &Arc<HttpState>,
    identity: &Arc<Identity>,
    headers: &HeaderMap,
    method: &str,
    params: &Params<'_>,
    log_fields: &mut AccessLogFields,
) -> PostOutcome {
    let era = header_validation::era(headers, method, params);
    if let Err(body) = &era
        && body.code == UNSUPPORTED_PROTOCOL_VERSION
    {
        return PostOutcome::Reply(Reply::json(StatusCode::BAD_REQUEST, Answer::error("null", body).line));
    }
    // In the stateless era notifications have no effect, since a call is cancelled by closing its connection.
    if era.is_ok_and(|era| era == Era::Handshake) {
        match enter(state, identity, headers, log_fields) {
            Ok(calls) => {
                let caller = Caller { identity: Arc::clone(identity), calls, origin: None };
                // `exit` ends a process that serves a single client, but not this one.
                let _ = state.server.notification(method, params, &caller);
            }
            Err(reply) => return PostOutcome::Reply(reply),
        }
    }
    PostOutcome::Reply(Reply::empty(StatusCode::ACCEPTED))
}

/// Returns the metadata of the request for diagnostics, if they are on.
fn origin(state: &HttpState, owner: &Owner, log_fields: &AccessLogFields) -> Option<Arc<Origin>> {
    state.server.is_watched().then(|| {
        Arc::new(Origin {
            transport_request_id: log_fields.request_id.clone(),
            owner_hash: owner.hash.to_string(),
            mcp_session_hash: log_fields.session.as_deref().map(str::to_owned),
            traceparent: log_fields.traceparent.clone(),
        })
    })
}

fn on_disconnect(state: &Arc<HttpState>, era: Era, calls: &Arc<InFlight>, call: &Arc<OnceLock<CallHandle>>) -> OnDisconnect {
    match era {
        Era::Handshake => OnDisconnect::LeaveQueue { call: Arc::clone(call), has_answer: false },
        Era::Stateless => {
            let number = state.next_id.fetch_add(1, Ordering::Relaxed);
            state.stateless_calls().insert(number, Arc::clone(calls));
            OnDisconnect::Cancel { state: Arc::clone(state), number, calls: Arc::clone(calls) }
        }
    }
}

fn open(
    state: &Arc<HttpState>,
    identity: &Arc<Identity>,
    headers: &HeaderMap,
    log_fields: &mut AccessLogFields,
) -> Result<(Arc<InFlight>, String), (StatusCode, ErrorBody)> {
    if headers.contains_key(&SESSION_ID) {
        let body = ErrorBody::new(SERVER_ERROR, "Bad Request: initialize opens a session and must not name one");
        return Err((StatusCode::BAD_REQUEST, body));
    }
    let calls = InFlight::new(ClientKey { owner: Arc::clone(&identity.owner.id), session: session_number() });
    match state.sessions.open(&identity.owner, calls, Instant::now()) {
        Ok((id, entered)) => {
            log_fields.session = Some(entered.hash);
            Ok((entered.calls, id))
        }
        Err(full) => {
            let (status, sentence) = match full {
                Full::Owner(most) => (
                    StatusCode::TOO_MANY_REQUESTS,
                    format!("session owner limit exceeded: {most} sessions have calls in flight; DELETE ends one"),
                ),
                Full::Server(most) => {
                    (StatusCode::SERVICE_UNAVAILABLE, format!("server saturated: {most} sessions have calls in flight"))
                }
                Full::Random => (StatusCode::SERVICE_UNAVAILABLE, "no random id for a session".to_owned()),
            };
            Err((status, ErrorBody::new(SERVER_ERROR, sentence)))
        }
    }
}

/// Returns the calls of the session that the headers name.
pub(super) fn enter(
    state: &HttpState,
    identity: &Arc<Identity>,
    headers: &HeaderMap,
    log_fields: &mut AccessLogFields,
) -> Result<Arc<InFlight>, Reply> {
    let refuse =
        |status, sentence: &'static str| Reply::json(status, Answer::error("null", &ErrorBody::new(SERVER_ERROR, sentence)).line);
    let Some(id) = text(headers, &SESSION_ID) else {
        let sentence = "Bad Request: the header Mcp-Session-Id is missing; initialize answers with it";
        return Err(refuse(StatusCode::BAD_REQUEST, sentence));
    };
    let entered = state.sessions.enter(&identity.owner, id, Instant::now());
    let entered = entered.ok_or_else(|| refuse(StatusCode::NOT_FOUND, "Session not found: initialize opens another"))?;
    log_fields.session = Some(entered.hash);
    Ok(entered.calls)
}

#[cfg(test)]
mod tests {
    use ptc_lisp::limits::Cancel;

    use super::*;
    use crate::schedule::ScheduleLimits;

    fn sink() -> OneshotSink {
        OneshotSink {
            sender: Mutex::default(),
            call: Arc::default(),
            scheduler: Scheduler::new(ScheduleLimits::detect()),
            client_key: ClientKey::default(),
            id: "1".to_owned(),
            era: Era::Handshake,
            profile: Profile::Slim,
        }
    }

    #[test]
    fn discarded_response_reports_a_run_only_if_a_program_has_started() {
        let why = UnreadLimitExceeded { session: 1, owner: 1, limit: 1 };
        let mut registration = InFlight::new(ClientKey::default()).enter("1", Cancel::default()).expect("it is the first");
        let text = |answer: Answer| (answer.error.is_some(), String::from_utf8(answer.line).unwrap());
        for call in [None, Some(&registration)] {
            let (is_error, line) = text(sink().replacement(&why, call));
            assert!(is_error && line.contains("no program has run") && !line.contains("has ended"), "{line}");
        }
        registration.set_begun(true);
        let (is_error, line) = text(sink().replacement(&why, Some(&registration)));
        assert!(!is_error && line.contains("the program has ended"), "{line}");
    }

    #[test]
    fn disconnected_duplicate_does_not_end_the_queued_call() {
        let calls = InFlight::new(ClientKey::default());
        let (first, duplicate) = (sink(), sink());
        let registration = calls.enter("1", Cancel::default()).expect("it is the first");
        first.registered(&registration);
        assert!(calls.enter("1", Cancel::default()).is_err());
        drop(OnDisconnect::LeaveQueue { call: duplicate.call, has_answer: false });
        assert!(!registration.is_withdrawn());
        drop(OnDisconnect::LeaveQueue { call: first.call, has_answer: false });
        assert!(registration.is_withdrawn());
    }
}
