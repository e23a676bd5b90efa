//! The method `tools/call`.

use std::sync::Arc;

use ptc_lisp::limits::Cancel;

use super::caller::Answer;
use super::dispatch::{Request, Server};
use super::evaluate::SessionContext;
use super::in_flight::{Denied, Registration};
use super::tool::Tool;
use crate::diagnostics::{self, CallTrace, RequestMeta};
use crate::secrets::Redactor;
use crate::session::tools::Tool as SessionTool;
use crate::session::{self, Sessions};
use ptc_engine::evaluation::{Call, Evaluation, Failure, Reason};
use ptc_engine::protocol::message;
use ptc_engine::protocol::reply::{ErrorBody, INVALID_PARAMS, INVALID_REQUEST};
use ptc_engine::protocol::revision::{self, Era, STATELESS};
use ptc_engine::response::answer;

/// A refused call, with a hint.
pub(super) struct Refused(pub(super) Failure);

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
pub(super) fn refused_by_session(redactor: &Redactor, call_trace: Option<CallTrace>, fault: &session::Fault, era: Era) -> String {
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

pub(super) fn finish(call_trace: Option<CallTrace>, end: impl FnOnce(CallTrace)) {
    if let Some(call_trace) = call_trace {
        end(call_trace);
    }
}
