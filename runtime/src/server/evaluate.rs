//! Runs the program of a call once the scheduler admits it, in its session if it has one, and sends the answer.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use ptc_lisp::limits::Cancel;

use super::call::{finish, refused_by_session};
use super::caller::Answer;
use super::dispatch::{Request, Server};
use super::in_flight::Registration;
use crate::diagnostics::CallTrace;
use crate::fibers::Fibers;
use crate::log::Field::{Payload, Text};
use crate::log::{self, Level};
use crate::pool::JobError;
use crate::schedule::{ProcessorLease, Rejection, WaitTimes};
use crate::session::tools::Tool as SessionTool;
use crate::session::{self, Lease, Sessions};
use ptc_engine::evaluation::{Call, Evaluation, Failure, PriorState};
use ptc_engine::protocol::message::Arguments;
use ptc_engine::response::answer;

/// The session that a program runs in.
pub(super) enum SessionContext {
    /// The program runs without a session.
    None,
    /// A session whose lease this call holds.
    Leased(Box<Lease>),
    /// A session whose lease is acquired on the evaluation's fiber, since the store is remote.
    Deferred(Arc<Sessions>, Arc<str>, String),
}

/// The answer to a call and what it shows, or the fault of its session.
type Evaluated = Result<(String, Box<Evaluation>), session::Fault>;

/// Finishes the trace of a call and sends its answer.
type Done = Box<dyn FnOnce(Registration, Option<WaitTimes>, Result<Evaluated, JobError>) + Send>;

impl Server {
    /// Runs the evaluation on a fiber once it is admitted.
    pub(super) fn start(
        &self,
        request: Request<'_>,
        call: Call,
        session_context: SessionContext,
        registration: Registration,
        call_trace: Option<CallTrace>,
    ) {
        let (id, era, profile) = (request.id.to_owned(), request.era, self.settings.response_profile);
        let evaluator = self.evaluator.permitting(self.access(request.caller));
        let evaluator = evaluator.on_behalf_of(request.caller.identity.token.clone());
        let answers = Arc::clone(request.answers);
        let cancel = registration.cancellation().clone();
        let redactor = self.redactor.clone();
        let names = redactor.clone();
        // The trace file is written on the evaluation's thread, so that the reading thread does not wait for the disk.
        let call_trace = Arc::new(Mutex::new(call_trace));
        let began = Arc::clone(&call_trace);
        let call_id = id.clone();
        let (client_key, bytes, entering) = (registration.client_key().clone(), call.bytes(), cancel.clone());
        let retry_after_ms = self.scheduler.retry_after_ms();
        // Both are boxed, since they are passed on several times and hold much.
        let work: Box<dyn FnOnce(ProcessorLease) -> Evaluated + Send> = Box::new(move |mut processor: ProcessorLease| {
            // This runs on the evaluation's thread, since redacting a large payload takes long.
            if log::enabled(Level::Debug) {
                let context = call.context.as_deref().unwrap_or("null");
                let fields = [("id", Text(&call_id)), ("program", Payload(&call.program)), ("context", Payload(context))];
                log::record(Level::Debug, "call", &fields);
            }
            if let Some(call_trace) = &mut *began.lock().unwrap_or_else(PoisonError::into_inner) {
                call_trace.arguments(&call);
            }
            let asked = Instant::now();
            let mut lease = session_context.lease(&cancel)?;
            processor.extend_deadline(asked.elapsed());
            let in_session = lease.is_some();
            let times = processor.wait_times();
            let past = lease.as_mut().map_or_else(PriorState::default, |lease| {
                lease.copy.count_in(&processor);
                lease.copy.kept.prior_state()
            });
            let mut evaluation = evaluator.evaluate(&call, &cancel, past, Some(processor));
            if let Some(lease) = lease {
                let started = evaluation.started;
                let unfinished = |error: JobError| {
                    let mut evaluation = Evaluation::unfinished(&error, &names, retry_after_ms);
                    evaluation.started = started;
                    evaluation.record_waits(&times);
                    evaluation
                };
                evaluation = lease.commit(evaluation).unwrap_or_else(unfinished);
            }
            let answer = if call.stored.is_some() { answer::stored_result } else { answer::tool_result };
            let answer = answer(&evaluation, profile, era);
            // Titles and names of a session come from its owner and were not redacted.
            Ok((if in_session { names.redact_text(answer) } else { answer }, evaluation))
        });
        let done: Done = Box::new(move |registration, times, done| {
            let call_trace = call_trace.lock().unwrap_or_else(PoisonError::into_inner).take();
            let done = done.unwrap_or_else(|error| {
                if let JobError::Panicked(message) = &error {
                    log::line(Level::Error, "evaluation panicked", &[("message", message)]);
                }
                let mut evaluation = Evaluation::unfinished(&error, &redactor, retry_after_ms);
                if let Some(times) = &times {
                    evaluation.record_waits(times);
                }
                Ok((answer::tool_result(&evaluation, profile, era), evaluation))
            });
            let mut missing_scopes = Vec::new();
            // The trace is finished before the answer is sent, since the client may then ask for it.
            let result = match done {
                Ok((result, evaluation)) => {
                    if let Err(failure) = &evaluation.outcome {
                        missing_scopes = failure.missing_scopes().to_vec();
                    }
                    finish(call_trace, |call_trace| {
                        let shown = evaluation.outcome.as_ref().map_or_else(|_| "".into(), answer::shown);
                        call_trace.evaluated(&evaluation, &shown, profile.budget());
                    });
                    // The client may be slow to read the answer, and other programs may need the memory of the values.
                    drop(evaluation);
                    result
                }
                Err(fault) => {
                    let call_trace = call_trace.map(|call_trace| call_trace.with_waits(times.as_ref()));
                    refused_by_session(&redactor, call_trace, &fault, era)
                }
            };
            if log::enabled(Level::Debug) {
                log::record(Level::Debug, "result", &[("id", Text(&id)), ("result", Payload(&result))]);
            }
            // A request that its client cancelled is not answered. If the answer is sent before the cancellation, the client
            // ignores it.
            if !registration.is_withdrawn() {
                let answer = Answer { missing_scopes, ..Answer::result(&id, &result) };
                drop(result);
                answers.send(answer, Some(registration));
            }
        });
        let (fibers, counting) = (Arc::clone(&self.fibers), Arc::clone(&self.scheduler));
        let entered = Instant::now();
        self.scheduler.enter(&client_key, bytes, &entering.clone(), move |permit| {
            let mut registration = registration;
            match permit {
                Ok(permit) => {
                    let processor = permit.lease(&entering);
                    registration.hold(permit);
                    let times = processor.wait_times();
                    fibers.spawn(
                        move || work(processor),
                        move |outcome| {
                            outcome.as_ref().err().into_iter().for_each(|error| counting.count_ended(error));
                            registration.set_begun(match &outcome {
                                Ok(Ok((_, evaluation))) => evaluation.started.is_some(),
                                Ok(Err(_)) | Err(JobError::NotStarted) => false,
                                Err(JobError::Panicked(_)) => true,
                            });
                            done(registration, Some(times), outcome);
                        },
                    );
                }
                Err(why) => {
                    // The lease is released first, so that the client finds the session free after the answer.
                    drop(work);
                    let queued = entered.elapsed();
                    reject(&fibers, why, move || {
                        let mut evaluation = Evaluation::refused(Failure::rejected(why, retry_after_ms));
                        evaluation.queued = queued;
                        done(registration, None, Ok(Ok((answer::tool_result(&evaluation, profile, era), evaluation))));
                    });
                }
            }
        });
    }
}

impl SessionContext {
    /// Returns the session that the arguments name. For a local store the lease is acquired here, synchronously, so that the next
    /// message finds the session busy.
    pub(super) fn resolve(
        sessions: &Arc<Sessions>,
        arguments: &Arguments<'_>,
        owner: &Arc<str>,
        cancel: &Cancel,
    ) -> Result<SessionContext, session::Fault> {
        session::tools::check_names(SessionTool::Eval, arguments)?;
        let id = session::tools::session_id(arguments)?;
        Ok(if sessions.store().is_remote() {
            SessionContext::Deferred(Arc::clone(sessions), Arc::clone(owner), id)
        } else {
            SessionContext::Leased(Box::new(sessions.begin(owner, &id, cancel)?))
        })
    }

    /// Returns the lease. This is called on the evaluation's fiber, since it may wait for a remote store.
    fn lease(self, cancel: &Cancel) -> Result<Option<Lease>, session::Fault> {
        match self {
            SessionContext::None => Ok(None),
            SessionContext::Leased(lease) => Ok(Some(*lease)),
            SessionContext::Deferred(sessions, owner, id) => {
                let (at, cancel) = (Arc::clone(&sessions), cancel.clone());
                let lease = sessions.wait_for(move || at.begin(&owner, &id, &cancel));
                lease.unwrap_or_else(|error| Err(session::Fault::Unavailable(error.to_string()))).map(Some)
            }
        }
    }
}

/// Answers a call that was not admitted, where it may wait for its client or for a trace file. A call whose time in the queue is
/// over is rejected on the thread of the queue, and a cancelled one on that of a connection. A full queue rejects on the thread
/// that has read the request.
pub(super) fn reject(fibers: &Fibers, why: Rejection, answer: impl FnOnce() + Send + 'static) {
    match why {
        Rejection::QueueFull => answer(),
        Rejection::TimedOut | Rejection::Cancelled => fibers.spawn(|| (), move |_| answer()),
    }
}
