//! The method `tools/call`.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use ptc_catalog::StoredProgram;
use ptc_lisp::limits::Cancel;
use ptc_lisp::print::excerpt;

use super::caller::{Answer, Caller};
use super::dispatch::{Request, Server};
use super::in_flight::{Denied, Registration};
#[cfg(feature = "agentic")]
use crate::agentic::{self, Planner};
use crate::diagnostics::{self, CallTrace, RequestMeta};
use crate::fibers::Fibers;
use crate::log::Field::{Payload, Text};
use crate::log::{self, Level};
use crate::pool::JobError;
use crate::schedule::{ProcessorLease, Rejection, WaitTimes};
use crate::secrets::Redactor;
use crate::session::tools::Tool as SessionTool;
use crate::session::{self, Lease, Sessions};
use crate::tools_list::TOOL_NAME;
use ptc_engine::evaluation::{Call, Evaluation, Failure, PriorState, Reason};
use ptc_engine::protocol::message::{self, Arguments};
use ptc_engine::protocol::reply::{ErrorBody, INVALID_PARAMS, INVALID_REQUEST};
use ptc_engine::protocol::revision::{self, Era, STATELESS};
use ptc_engine::response::answer;

/// Maximum number of tools that the error for an unknown tool lists.
const MAX_NAMED: usize = 12;

/// A tool of this server.
#[derive(Clone, Copy)]
enum Tool<'s> {
    Eval,
    Stored(&'static StoredProgram),
    Session(&'s Arc<Sessions>, SessionTool, &'static str),
    Debug(&'s Arc<diagnostics::Diagnostics>),
    #[cfg(feature = "agentic")]
    Task(&'s Arc<Planner>),
}

/// The session that a program runs in.
enum SessionContext {
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

/// A refused call, with a hint.
pub(super) struct Refused(Failure);

impl Server {
    pub(super) fn call(&self, request: Request<'_>) {
        let Request { params, era, caller, .. } = request;
        let name = match params.name.map(message::string) {
            None => return request.error(&ErrorBody::new(INVALID_PARAMS, "Invalid params: tools/call needs a tool's name")),
            Some(Some(name)) => name,
            Some(None) => {
                let found = params.name.map_or("nothing", message::kind);
                let message = format!("Invalid params: a tool's name is a string, got {found}");
                return request.error(&ErrorBody::new(INVALID_PARAMS, message));
            }
        };
        let begin_trace = |tool: &'static str| {
            let diagnostics = self.diagnostics.as_ref()?;
            let protocol_version = match era {
                Era::Handshake => caller.calls.protocol_version(),
                Era::Stateless => STATELESS.iter().copied().find(|known| revision::named(params).as_deref() == Some(*known)),
            };
            let (owner, origin) = (caller.owner(), caller.origin.as_deref());
            Some(diagnostics.begin(tool, &RequestMeta { id: request.id, owner, protocol_version, origin, meta: params.meta }))
        };
        let tool = match self.tool(&name, caller) {
            Ok(tool) => tool,
            Err(refused) => {
                let hidden = self.deployment.program(&name).zip(refused.0.denial_reason());
                if let Some((program, denial)) = hidden
                    && let Some(call_trace) = begin_trace(program.name)
                {
                    call_trace.hidden(refused.0.reason.name(), denial);
                }
                return self.refuse(request, None, refused);
            }
        };
        if let Tool::Debug(diagnostics) = tool {
            let answer = match diagnostics::tool::answer(diagnostics, caller.owner(), &params.arguments) {
                Ok(members) => answer::data_result(&members, false, era),
                Err(message) => data_fault(&self.redactor, Reason::ArgsError.name(), &message, era),
            };
            return request.result(&answer);
        }
        let call_trace = begin_trace(tool.name());
        if caller.calls.is_shut_down() {
            return self.refuse(request, call_trace, Refused::shut_down());
        }
        let cancel = Cancel::default();
        let session_context = match tool {
            Tool::Session(sessions, SessionTool::Eval, _) => {
                match SessionContext::resolve(sessions, &params.arguments, caller.owner(), &cancel) {
                    Ok(session_context) => session_context,
                    Err(fault) => return self.session_fault(request, call_trace, &fault),
                }
            }
            Tool::Session(sessions, tool, _) => return self.run_session_tool(request, sessions, tool, call_trace),
            Tool::Eval | Tool::Stored(_) | Tool::Debug(_) => SessionContext::None,
            #[cfg(feature = "agentic")]
            Tool::Task(planner) => return self.task(request, planner, call_trace),
        };
        let read = match tool {
            Tool::Stored(program) => Call::of_stored(program, &params.arguments, self.settings.argument_limits()),
            _ => Call::read(&params.arguments, self.settings.argument_limits()),
        };
        let call = match read {
            Ok(call) => call,
            Err(message) => return self.refuse(request, call_trace, Refused::arguments(message)),
        };
        if let Some((registration, call_trace)) = self.enter(request, call_trace, cancel) {
            self.start(request, call, session_context, registration, call_trace);
        }
    }

    /// Registers the call with its client and returns it together with its trace. If that is not possible, the client was
    /// answered and the result is `None`.
    pub(super) fn enter(
        &self,
        request: Request<'_>,
        call_trace: Option<CallTrace>,
        cancel: Cancel,
    ) -> Option<(Registration, Option<CallTrace>)> {
        let calls = &request.caller.calls;
        let refused = match calls.enter(request.id, cancel) {
            Ok(registration) => {
                request.answers.registered(&registration);
                return Some((registration, call_trace));
            }
            Err(Denied::DuplicateId) => {
                let message = format!("Invalid Request: id {} is already in flight", request.id);
                finish(call_trace, |call_trace| call_trace.refused(Reason::ArgsError.name(), &message));
                request.error(&ErrorBody::new(INVALID_REQUEST, message));
                return None;
            }
            Err(Denied::ShutDown) => Refused::shut_down(),
        };
        self.refuse(request, call_trace, refused);
        None
    }

    fn tool(&self, name: &str, caller: &Caller) -> Result<Tool<'_>, Refused> {
        #[cfg(feature = "agentic")]
        if let Some(planner) = self.planner.as_ref().filter(|_| name == agentic::NAME) {
            return Ok(Tool::Task(planner));
        }
        let mut hidden = None;
        if let Some(program) = self.deployment.program(name) {
            hidden = self.access(caller).and_then(|access| self.hidden_reason(&*access, program));
            if hidden.is_none() {
                return Ok(Tool::Stored(program));
            }
        }
        let session_tool = SessionTool::ALL.iter().find(|(known, _)| *known == name);
        match (name, session_tool, &self.sessions, &self.diagnostics) {
            (TOOL_NAME, ..) => Ok(Tool::Eval),
            (_, Some((name, tool)), Some(sessions), _) => Ok(Tool::Session(sessions, *tool, name)),
            (diagnostics::tool::NAME, _, _, Some(diagnostics)) if self.settings.diagnostics.tool => Ok(Tool::Debug(diagnostics)),
            _ => {
                let feedback = match (name, session_tool) {
                    (_, Some(_)) => "Sessions are off: the server has to be started with --sessions.".to_owned(),
                    (diagnostics::tool::NAME, _) => "It is off: the server has to be started with --debug-tool.".to_owned(),
                    #[cfg(feature = "agentic")]
                    (agentic::NAME, _) => "It is off: the server has to be started with --agentic.".to_owned(),
                    _ => self.offered(name, caller),
                };
                let failure = Failure::plain(Reason::UnknownTool, format!("unknown tool: {}", excerpt(name)));
                // Only the operator learns that the program exists.
                Err(Refused(failure.with_feedback(feedback).with_denial(hidden.as_deref())))
            }
        }
    }

    /// Returns a hint for an unknown tool: a similar one, or the tools that the caller may see.
    fn offered(&self, name: &str, caller: &Caller) -> String {
        let access = self.access(caller);
        let may_run = |program: &&StoredProgram| access.as_deref().is_none_or(|access| self.may_run(access, program));
        let stored: Vec<&str> = self.deployment.programs.iter().filter(may_run).map(|program| program.name).collect();
        let stored = stored.iter().copied();
        let debug = self.settings.diagnostics.tool.then_some(diagnostics::tool::NAME).into_iter();
        let sessions: &[_] = if self.sessions.is_some() { &SessionTool::ALL } else { &[] };
        #[cfg(feature = "agentic")]
        let debug = debug.chain(self.planner.is_some().then_some(agentic::NAME));
        let all =
            [TOOL_NAME].into_iter().chain(debug.clone()).chain(sessions.iter().map(|(name, _)| *name)).chain(stored.clone());
        if let Some(near) = ptc_text::closest_match(name, all) {
            return format!("Did you mean `{near}`?");
        }
        let groups = [TOOL_NAME].into_iter().chain(self.sessions.is_some().then_some("lisp_session_…")).chain(debug);
        let mut names: Vec<String> = groups.chain(stored).take(MAX_NAMED).map(|name| format!("`{name}`")).collect();
        match (names.pop(), names.as_slice()) {
            (Some(only), []) => format!("The only tool of this server is {only}."),
            (Some(_), names) if names.len() + 1 == MAX_NAMED => {
                format!("Tools of this server are {} and others: `tools/list` names them.", names.join(", "))
            }
            (last, names) => format!("The tools of this server are {} and {}.", names.join(", "), last.unwrap_or_default()),
        }
    }

    /// Runs the evaluation on a fiber once it is admitted.
    fn start(
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

    /// Executes a session tool that runs no program, and answers now or when the store has replied.
    fn run_session_tool(&self, request: Request<'_>, sessions: &Arc<Sessions>, tool: SessionTool, call_trace: Option<CallTrace>) {
        let order = match session::tools::SessionCommand::read(tool, sessions.limits(), &request.params.arguments) {
            Ok(order) => order,
            Err(fault) => return self.session_fault(request, call_trace, &fault),
        };
        let (id, era, answers) = (request.id.to_owned(), request.era, Arc::clone(request.answers));
        let (owner, redactor, at) = (Arc::clone(request.caller.owner()), self.redactor.clone(), Arc::clone(sessions));
        sessions.run_blocking(move || {
            let result = match order.answer(&at, &owner) {
                Ok(members) => {
                    let result = redactor.redact_text(answer::data_result(&members, false, era));
                    finish(call_trace, |call_trace| call_trace.answered(result.len()));
                    result
                }
                Err(fault) => refused_by_session(&redactor, call_trace, &fault, era),
            };
            answers.send(Answer::result(&id, &result), None);
        });
    }

    pub(super) fn refuse(&self, request: Request<'_>, call_trace: Option<CallTrace>, refused: Refused) {
        let Refused(mut failure) = refused;
        failure.message = self.redactor.redact_string(failure.message);
        finish(call_trace, |call_trace| call_trace.refused(failure.reason.name(), &failure.message));
        let evaluation = Evaluation::refused(failure);
        request.result(&answer::tool_result(&evaluation, self.settings.response_profile, request.era));
    }

    fn session_fault(&self, request: Request<'_>, call_trace: Option<CallTrace>, fault: &session::Fault) {
        request.result(&refused_by_session(&self.redactor, call_trace, fault, request.era));
    }
}

/// Returns the answer to a call that its session refuses.
fn refused_by_session(redactor: &Redactor, call_trace: Option<CallTrace>, fault: &session::Fault, era: Era) -> String {
    let message = fault.to_string();
    finish(call_trace, |call_trace| call_trace.refused(fault.reason(), &message));
    data_fault(redactor, fault.reason(), &message, era)
}

/// Returns the error of a tool whose answers are data in every profile.
fn data_fault(redactor: &Redactor, reason: &str, message: &str, era: Era) -> String {
    let message = redactor.redact_str(message).into_owned();
    let members = [("status", "error"), ("reason", reason), ("message", &message), ("feedback", &message)];
    let mut told = serde_json::Map::new();
    told.extend(members.into_iter().map(|(name, text)| (name.to_owned(), text.into())));
    answer::data_result(&told, true, era)
}

impl SessionContext {
    /// Returns the session that the arguments name. For a local store the lease is acquired here, synchronously, so that the next
    /// message finds the session busy.
    fn resolve(
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

impl Tool<'_> {
    fn name(self) -> &'static str {
        match self {
            Tool::Eval => TOOL_NAME,
            Tool::Stored(program) => program.name,
            Tool::Session(_, _, name) => name,
            Tool::Debug(_) => diagnostics::tool::NAME,
            #[cfg(feature = "agentic")]
            Tool::Task(_) => agentic::NAME,
        }
    }
}

impl Refused {
    /// Creates the refusal of invalid arguments.
    pub(super) fn arguments(message: String) -> Refused {
        Refused(Failure::plain(Reason::ArgsError, message))
    }

    fn shut_down() -> Refused {
        let failure = Failure::plain(Reason::ShuttingDown, "the server was shut down and takes no more calls");
        Refused(failure.with_feedback("Start a new server process for further calls."))
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

pub(super) fn finish(call_trace: Option<CallTrace>, end: impl FnOnce(CallTrace)) {
    if let Some(call_trace) = call_trace {
        end(call_trace);
    }
}
