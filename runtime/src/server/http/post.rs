//! A message to the dispatcher, its answer back.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use hyper::header::HeaderName;
use hyper::{HeaderMap, StatusCode};
use tokio::sync::oneshot;

use super::auth::Owner;
use super::guard::text;
use super::reply::Reply;
use super::route::Noted;
use super::sessions::Full;
use super::{Site, mirror};
use crate::diagnostics::Origin;
use crate::evaluation::Reason;
use crate::profile::answer;
use crate::protocol::message::{self, Message, Params};
use crate::protocol::reply::{ErrorBody, METHOD_NOT_FOUND, SERVER_ERROR, UNSUPPORTED_PROTOCOL_VERSION};
use crate::protocol::revision::Era;
use crate::schedule::{Party, session_number};
use crate::server::Caller;
use crate::server::caller::{Answer, Answers};
use crate::server::dispatch::Request;
use crate::server::in_flight::{InFlight, Registration};

/// The session of the era with `initialize`.
pub static SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

/// One request's answer, on its way to the connection that waits for it.
struct Pending(Mutex<Option<oneshot::Sender<Answer>>>);

impl Answers for Pending {
    fn send(&self, answer: Answer, call: Option<Registration>) {
        // Before the client can see the answer and send its next call.
        drop(call);
        if let Some(sender) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // A client that went away misses nothing.
            let _ = sender.send(answer);
        }
    }
}

/// What a message leads to.
enum Begun {
    /// Nothing further.
    Done(Reply),
    /// An answer, now or later.
    Asked(Asked),
}

struct Asked {
    answer: oneshot::Receiver<Answer>,
    id: String,
    era: Era,
    /// The session that `initialize` opened.
    opened: Option<String>,
    /// Stops the call when the client of a stateless request goes away.
    _hangup: Option<Hangup>,
}

/// A stateless request that is not answered yet: closing its connection is how a client cancels it.
struct Hangup {
    site: Arc<Site>,
    number: u64,
    calls: Arc<InFlight>,
}

impl Drop for Hangup {
    fn drop(&mut self) {
        self.site.loose().remove(&self.number);
        self.calls.cancel_all();
    }
}

/// Answers a body that was posted.
pub(super) async fn answer(site: &Arc<Site>, owner: Owner, headers: &HeaderMap, body: Bytes, noted: &mut Noted) -> Reply {
    let begun = if site.server.takes_time() {
        begin_aside(site, owner, headers, body, noted).await
    } else {
        begin(site, &owner, headers, &body, noted)
    };
    let asked = match begun {
        Begun::Done(reply) => return reply,
        Begun::Asked(asked) => asked,
    };
    let answer = asked.answer.await.unwrap_or_else(|_| {
        // Nothing was sent: the call was cancelled.
        let profile = site.server.settings().response_profile;
        Answer::result(&asked.id, &answer::refusal(Reason::Cancelled, "the call was cancelled", "", profile, asked.era))
    });
    let status = match (asked.era, answer.error) {
        (Era::Handshake, _) | (_, None) => StatusCode::OK,
        (Era::Stateless, Some(METHOD_NOT_FOUND)) => StatusCode::NOT_FOUND,
        (Era::Stateless, Some(_)) => StatusCode::BAD_REQUEST,
    };
    let reply = Reply::json(status, answer.line);
    match asked.opened {
        Some(id) => reply.with(SESSION_ID.clone(), &id),
        None => reply,
    }
}

/// [`begin`] on a thread of its own: all connections share the one that is not to wait for files.
async fn begin_aside(site: &Arc<Site>, owner: Owner, headers: &HeaderMap, body: Bytes, noted: &mut Noted) -> Begun {
    let (site, headers, mut aside) = (Arc::clone(site), headers.clone(), noted.clone());
    let begun = tokio::task::spawn_blocking(move || (begin(&site, &owner, &headers, &body, &mut aside), aside));
    match begun.await {
        Ok((begun, aside)) => {
            *noted = aside;
            begun
        }
        Err(_) => Begun::Done(Reply::empty(StatusCode::INTERNAL_SERVER_ERROR)),
    }
}

fn begin(site: &Arc<Site>, owner: &Owner, headers: &HeaderMap, body: &[u8], noted: &mut Noted) -> Begun {
    let refuse = |status, id: &str, body: &ErrorBody| Begun::Done(Reply::json(status, Answer::error(id, body).line));
    let parsed = match message::parse(body) {
        Ok(parsed) => parsed,
        Err(refusal) => return refuse(StatusCode::BAD_REQUEST, "null", &refusal.body()),
    };
    match parsed {
        Message::Notification { method, params } => notification(site, owner, headers, &method, &params, noted),
        Message::Request { id, method, params } => {
            let era = match mirror::era(headers, &method, &params) {
                Ok(era) => era,
                Err(body) => return refuse(StatusCode::BAD_REQUEST, id, &body),
            };
            let (calls, opened, hangup) = match (era, &*method) {
                (Era::Stateless, _) => {
                    let hangup = hangup(site, owner, noted);
                    (Arc::clone(&hangup.calls), None, Some(hangup))
                }
                (Era::Handshake, "initialize") => match open(site, owner, headers, noted) {
                    Ok((calls, opened)) => (calls, Some(opened), None),
                    Err((status, body)) => return refuse(status, id, &body),
                },
                (Era::Handshake, _) => match enter(site, owner, headers, noted) {
                    Ok(calls) => (calls, None, None),
                    Err(reply) => return Begun::Done(reply),
                },
            };
            let (sender, answer) = oneshot::channel();
            let answers: Arc<dyn Answers> = Arc::new(Pending(Mutex::new(Some(sender))));
            let caller = Caller { owner: Arc::clone(&owner.id), calls, origin: origin(site, owner, noted) };
            site.server.request(Request { id, method: &method, params: &params, era, caller: &caller, answers: &answers });
            Begun::Asked(Asked { answer, id: id.to_owned(), era, opened, _hangup: hangup })
        }
    }
}

fn notification(
    site: &Arc<Site>,
    owner: &Owner,
    headers: &HeaderMap,
    method: &str,
    params: &Params<'_>,
    noted: &mut Noted,
) -> Begun {
    let era = mirror::era(headers, method, params);
    if let Err(body) = &era
        && body.code == UNSUPPORTED_PROTOCOL_VERSION
    {
        return Begun::Done(Reply::json(StatusCode::BAD_REQUEST, Answer::error("null", body).line));
    }
    // In the stateless era none of them concerns anything here: a call is cancelled by closing its connection.
    if era.is_ok_and(|era| era == Era::Handshake) {
        match enter(site, owner, headers, noted) {
            Ok(calls) => {
                let caller = Caller { owner: Arc::clone(&owner.id), calls, origin: None };
                // `exit` ends a process that serves one client, not this one.
                let _ = site.server.notification(method, params, &caller);
            }
            Err(reply) => return Begun::Done(reply),
        }
    }
    Begun::Done(Reply::empty(StatusCode::ACCEPTED))
}

/// What diagnostics keep of the request, where there are any.
fn origin(site: &Site, owner: &Owner, noted: &Noted) -> Option<Arc<Origin>> {
    site.server.is_watched().then(|| {
        Arc::new(Origin {
            transport_request_id: noted.request_id.clone(),
            owner_hash: owner.hash.to_string(),
            mcp_session_hash: noted.session.as_deref().map(str::to_owned),
            traceparent: noted.traceparent.clone(),
        })
    })
}

fn hangup(site: &Arc<Site>, owner: &Owner, noted: &Noted) -> Hangup {
    let calls = InFlight::new(Party { owner: Arc::clone(&owner.id), session: noted.connection });
    let number = site.next_id.fetch_add(1, Ordering::Relaxed);
    site.loose().insert(number, Arc::clone(&calls));
    Hangup { site: Arc::clone(site), number, calls }
}

fn open(
    site: &Arc<Site>,
    owner: &Owner,
    headers: &HeaderMap,
    noted: &mut Noted,
) -> Result<(Arc<InFlight>, String), (StatusCode, ErrorBody)> {
    if headers.contains_key(&SESSION_ID) {
        let body = ErrorBody::new(SERVER_ERROR, "Bad Request: initialize opens a session and must not name one");
        return Err((StatusCode::BAD_REQUEST, body));
    }
    let calls = InFlight::new(Party { owner: Arc::clone(&owner.id), session: session_number() });
    match site.sessions.open(owner, calls, Instant::now()) {
        Ok((id, entered)) => {
            noted.session = Some(entered.hash);
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

/// The calls of the session that the headers name.
pub(super) fn enter(site: &Site, owner: &Owner, headers: &HeaderMap, noted: &mut Noted) -> Result<Arc<InFlight>, Reply> {
    let refuse =
        |status, sentence: &'static str| Reply::json(status, Answer::error("null", &ErrorBody::new(SERVER_ERROR, sentence)).line);
    let Some(id) = text(headers, &SESSION_ID) else {
        let sentence = "Bad Request: the header Mcp-Session-Id is missing; initialize answers with it";
        return Err(refuse(StatusCode::BAD_REQUEST, sentence));
    };
    let entered = site.sessions.enter(owner, id, Instant::now());
    let entered = entered.ok_or_else(|| refuse(StatusCode::NOT_FOUND, "Session not found: initialize opens another"))?;
    noted.session = Some(entered.hash);
    Ok(entered.calls)
}
