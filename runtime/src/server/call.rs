//! `tools/call`.

use std::sync::Arc;

use ptc_catalog::StoredProgram;

use super::caller::Answer;
use super::dispatch::{Request, Server, TOOL_NAME};
use super::in_flight::{Denied, Place};
#[cfg(feature = "agentic")]
use crate::agentic::{self, Planner};
use crate::diagnostics::{self, Asked, Watch};
use crate::evaluation::{Call, Evaluation, Past, Reason};
use crate::log::{self, Level};
use crate::profile::answer;
use crate::protocol::message;
use crate::protocol::reply::{ErrorBody, INVALID_PARAMS, INVALID_REQUEST};
use crate::protocol::revision::{self, Era, STATELESS};
use crate::session::tools::Tool as SessionTool;
use crate::session::{self, Lease, Sessions};

/// Tools that are named to a client that asks for one that there is not.
const MOST_NAMED: usize = 12;

/// A tool that this server has.
#[derive(Clone, Copy)]
enum Tool<'s> {
    Eval,
    Stored(&'static StoredProgram),
    Session(&'s Arc<Sessions>, SessionTool, &'static str),
    Debug(&'s Arc<diagnostics::Diagnostics>),
    #[cfg(feature = "agentic")]
    Task(&'s Arc<Planner>),
}

/// Why a call does not run, with what helps.
pub(super) struct Refused {
    reason: Reason,
    message: String,
    feedback: String,
}

impl Server {
    pub(super) fn call(&self, request: Request<'_>) {
        let Request { params, era, caller, .. } = request;
        let name = match params.name.map(message::string) {
            None => return request.error(&ErrorBody::new(INVALID_PARAMS, "Invalid params: tools/call needs a tool's name")),
            Some(name) => name.unwrap_or_default(),
        };
        let tool = match self.tool(&name) {
            Ok(tool) => tool,
            Err(refused) => return self.refuse(request, None, refused),
        };
        if let Tool::Debug(diagnostics) = tool {
            let answer = match diagnostics::tool::answer(diagnostics, &params.arguments) {
                Ok(members) => answer::data_result(&members, false, era),
                Err(message) => self.data_fault(Reason::ArgsError.name(), &message, era),
            };
            return request.result(&answer);
        }
        let watch = self.diagnostics.as_ref().map(|diagnostics| {
            let protocol_version = match era {
                Era::Handshake => caller.calls.protocol_version(),
                Era::Stateless => STATELESS.iter().copied().find(|known| revision::named(params).as_deref() == Some(*known)),
            };
            diagnostics.begin(tool.name(), &Asked { id: request.id, protocol_version, origin: caller.origin.as_deref() })
        });
        if caller.calls.is_shut_down() {
            return self.refuse(request, watch, Refused::shut_down());
        }
        let lease = match tool {
            Tool::Session(sessions, SessionTool::Eval, _) => {
                let lease = session::tools::session_id(&params.arguments).and_then(|id| sessions.begin(&caller.owner, &id));
                match lease {
                    Ok(lease) => Some(lease),
                    Err(fault) => return self.session_fault(request, watch, &fault),
                }
            }
            Tool::Session(sessions, tool, _) => {
                match session::tools::answer(tool, sessions, &caller.owner, &params.arguments) {
                    Ok(members) => {
                        let answer = answer::data_result(&members, false, era);
                        finish(watch, |watch| watch.answered(answer.len()));
                        request.result(&answer);
                    }
                    Err(fault) => self.session_fault(request, watch, &fault),
                }
                return;
            }
            Tool::Eval | Tool::Stored(_) | Tool::Debug(_) => None,
            #[cfg(feature = "agentic")]
            Tool::Task(planner) => return self.task(request, planner, watch),
        };
        let read = match tool {
            Tool::Stored(program) => Call::of_stored(program, &params.arguments, &self.settings),
            _ => Call::read(&params.arguments, &self.settings),
        };
        let call = match read {
            Ok(call) => call,
            Err(message) => return self.refuse(request, watch, Refused::arguments(message)),
        };
        if let Some((place, watch)) = self.enter(request, watch) {
            self.start(request, call, lease, place, watch);
        }
    }

    /// A place for the call, and who watches it; where there is none, the client has been told.
    pub(super) fn enter(&self, request: Request<'_>, watch: Option<Watch>) -> Option<(Place, Option<Watch>)> {
        let calls = &request.caller.calls;
        let refused = match calls.enter(request.id) {
            Ok(place) => return Some((place, watch)),
            Err(Denied::DuplicateId) => {
                let message = format!("Invalid Request: id {} is already in flight", request.id);
                finish(watch, |watch| watch.refused(Reason::ArgsError.name(), &message));
                request.error(&ErrorBody::new(INVALID_REQUEST, message));
                return None;
            }
            Err(Denied::ShutDown) => Refused::shut_down(),
            Err(Denied::Busy) => Refused::busy("server", self.permits.most()),
            Err(Denied::ClientBusy) => Refused::busy("client", calls.most()),
        };
        self.refuse(request, watch, refused);
        None
    }

    fn tool(&self, name: &str) -> Result<Tool<'_>, Refused> {
        #[cfg(feature = "agentic")]
        if let Some(planner) = self.planner.as_ref().filter(|_| name == agentic::NAME) {
            return Ok(Tool::Task(planner));
        }
        if let Some(program) = self.deployment.program(name) {
            return Ok(Tool::Stored(program));
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
                    _ => self.offered(name),
                };
                Err(Refused { reason: Reason::UnknownTool, message: format!("unknown tool: {name}"), feedback })
            }
        }
    }

    /// What there is in place of a tool that there is not.
    fn offered(&self, name: &str) -> String {
        let stored = self.deployment.programs.iter().map(|program| program.name);
        let debug = self.settings.diagnostics.tool.then_some(diagnostics::tool::NAME);
        let sessions: &[_] = if self.sessions.is_some() { &SessionTool::ALL } else { &[] };
        #[cfg(feature = "agentic")]
        let debug = debug.into_iter().chain(self.planner.is_some().then_some(agentic::NAME));
        let all =
            [TOOL_NAME].into_iter().chain(debug.clone()).chain(sessions.iter().map(|(name, _)| *name)).chain(stored.clone());
        if let Some(near) = ptc_check::near_name(name, all) {
            return format!("Did you mean `{near}`?");
        }
        let groups = [TOOL_NAME].into_iter().chain(self.sessions.is_some().then_some("lisp_session_…")).chain(debug);
        let mut names: Vec<String> = groups.chain(stored).take(MOST_NAMED).map(|name| format!("`{name}`")).collect();
        match (names.pop(), names.as_slice()) {
            (Some(only), []) => format!("The only tool of this server is {only}."),
            (Some(_), names) if names.len() + 1 == MOST_NAMED => {
                format!("Tools of this server are {} and others: `tools/list` names them.", names.join(", "))
            }
            (last, names) => format!("The tools of this server are {} and {}.", names.join(", "), last.unwrap_or_default()),
        }
    }

    /// Has the pool evaluate.
    fn start(&self, request: Request<'_>, call: Call, lease: Option<Lease>, place: Place, mut watch: Option<Watch>) {
        if log::enabled(Level::Debug) {
            log::line(Level::Debug, "call", &[("id", request.id), ("program", &call.program)]);
        }
        let (id, era, profile) = (request.id.to_owned(), request.era, self.settings.response_profile);
        let evaluator = Arc::clone(&self.evaluator);
        let answers = Arc::clone(request.answers);
        let cancel = place.cancel.clone();
        if let Some(watch) = &mut watch {
            watch.arguments(&call);
        }
        self.pool.spawn(
            move || {
                let past = lease.as_ref().map_or_else(Past::default, |lease| lease.kept.past());
                let mut evaluation = evaluator.evaluate(&call, &cancel, past);
                if let Some(lease) = lease {
                    lease.settle(&mut evaluation);
                }
                let answer = if call.stored.is_some() { answer::stored_result } else { answer::tool_result };
                (answer(&evaluation, profile, era), evaluation)
            },
            move |done| {
                let (result, evaluation) = done.unwrap_or_else(|panicked| {
                    log::line(Level::Error, "evaluation panicked", &[("message", &panicked.0)]);
                    let evaluation = Evaluation::panicked(&panicked);
                    (answer::tool_result(&evaluation, profile, era), evaluation)
                });
                // Before the answer: whoever has it may ask about it.
                finish(watch, |watch| {
                    let shown = evaluation.outcome.as_ref().map_or_else(|_| "".into(), answer::shown);
                    watch.evaluated(&evaluation, &shown);
                });
                // A cancelled request is not answered; where the answer came first, the client drops it.
                if !place.cancel.is_cancelled() {
                    answers.send(Answer::result(&id, &result), Some(place));
                }
                drop(evaluation);
            },
        );
    }

    pub(super) fn refuse(&self, request: Request<'_>, watch: Option<Watch>, refused: Refused) {
        let Refused { reason, message, feedback } = refused;
        let message = self.redactor.redact_string(message);
        finish(watch, |watch| watch.refused(reason.name(), &message));
        request.result(&answer::refusal(reason, message, &feedback, self.settings.response_profile, request.era));
    }

    fn session_fault(&self, request: Request<'_>, watch: Option<Watch>, fault: &session::Fault) {
        let message = fault.to_string();
        finish(watch, |watch| watch.refused(fault.reason(), &message));
        request.result(&self.data_fault(fault.reason(), &message, request.era));
    }

    /// An error of a tool that answers with data in every profile.
    fn data_fault(&self, reason: &str, message: &str, era: Era) -> String {
        let message = self.redactor.redact_str(message).into_owned();
        let members = [("status", "error"), ("reason", reason), ("message", &message), ("feedback", &message)];
        let members = members.into_iter().map(|(name, text)| (name.to_owned(), serde_json::Value::from(text))).collect();
        answer::data_result(&members, true, era)
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
    /// Wrong arguments.
    pub(super) fn arguments(message: String) -> Refused {
        Refused { reason: Reason::ArgsError, message, feedback: String::new() }
    }

    fn shut_down() -> Refused {
        let message = "the server was shut down and takes no more calls".into();
        Refused { reason: Reason::ShuttingDown, message, feedback: "Start a new server process for further calls.".into() }
    }

    fn busy(who: &str, most: usize) -> Refused {
        let feedback = "Wait for an earlier call to finish, then send the same call again.".to_owned();
        Refused { reason: Reason::Busy, message: format!("{who} busy: {most} concurrent calls in flight"), feedback }
    }
}

pub(super) fn finish(watch: Option<Watch>, end: impl FnOnce(Watch)) {
    if let Some(watch) = watch {
        end(watch);
    }
}
