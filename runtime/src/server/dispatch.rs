//! Methods of the protocol.

use std::sync::{Arc, OnceLock};

use ptc_catalog::Deployment;

use super::caller::{Answer, Answers, Caller};
use super::in_flight::{Denied, InFlight, Permits};
use crate::command::version;
use crate::describe;
use crate::evaluation::{Call, Evaluation, Evaluator, Past, Reason};
use crate::log::{self, Level};
use crate::pool::Pool;
use crate::profile::answer;
use crate::protocol::message::{self, Message, Params};
use crate::protocol::reply::{ErrorBody, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR};
use crate::protocol::revision::{self, Era, SERVER_INFO_KEY, STATELESS};
use crate::secrets::Redactor;
use crate::session::tools::Tool as SessionTool;
use crate::session::{self, Sessions};
use crate::settings::Settings;

/// The name of the server.
pub const SERVER_NAME: &str = "ptc_lisp";

/// The name of its tool.
pub const TOOL_NAME: &str = "lisp_eval";

/// How long a client of the stateless era may keep the tool list: it never changes while the binary is the same.
const TTL_MS: u64 = 3_600_000;

/// What all clients of a process share.
pub struct Server {
    deployment: &'static Deployment,
    settings: Settings,
    evaluator: Arc<Evaluator>,
    redactor: Redactor,
    pool: Pool,
    permits: Arc<Permits>,
    tools: OnceLock<String>,
    sessions: Option<Arc<Sessions>>,
}

/// Whether to go on reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Yes.
    Read,
    /// The client said `exit`.
    Exit,
}

/// A request, and where its answer goes.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// Its raw id.
    pub id: &'a str,
    /// Its method.
    pub method: &'a str,
    /// Its parameters.
    pub params: &'a Params<'a>,
    /// The era that its envelope says.
    pub era: Era,
    /// Who asks.
    pub caller: &'a Caller,
    /// Where the answer goes.
    pub answers: &'a Arc<dyn Answers>,
}

impl Server {
    /// A server whose evaluations run on `pool`.
    pub fn new(
        deployment: &'static Deployment,
        settings: Settings,
        evaluator: Evaluator,
        redactor: Redactor,
        pool: Pool,
    ) -> Self {
        let permits = Permits::new(settings.max_concurrent_calls);
        let sessions = settings.sessions.then(|| Sessions::new(settings.session_limits.clone()));
        Server { deployment, settings, evaluator: Arc::new(evaluator), redactor, pool, permits, tools: OnceLock::new(), sessions }
    }

    /// What an operator set.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The calls of a new client, of which `most` may run at a time.
    pub fn calls(&self, most: usize) -> Arc<InFlight> {
        InFlight::new(&self.permits, most)
    }

    /// How many evaluations run.
    pub fn running(&self) -> usize {
        self.permits.running()
    }

    /// Takes one line. Blocks while the client does not read its answers.
    pub fn receive(&self, line: &[u8], caller: &Caller, answers: &Arc<dyn Answers>) -> Next {
        match message::parse(line) {
            Ok(Message::Request { id, method, params }) => match revision::era(&params, method == "server/discover") {
                Ok(era) => self.request(Request { id, method: &method, params: &params, era, caller, answers }),
                Err(body) => answers.send(Answer::error(id, &body), None),
            },
            Ok(Message::Notification { method, params }) => return self.notification(&method, &params, caller),
            Err(refusal) => answers.send(Answer::error("null", &refusal.body()), None),
        }
        Next::Read
    }

    /// The answer to a line beyond the cap.
    pub fn oversized(&self) -> Answer {
        let most = self.settings.max_frame_bytes;
        Answer::error("null", &ErrorBody::new(PARSE_ERROR, format!("Parse error: the line exceeds max_frame_bytes ({most})")))
    }

    /// Answers a request, now or from the thread that evaluates.
    pub fn request(&self, request: Request<'_>) {
        match (request.method, request.era) {
            ("tools/call", _) => self.call(request),
            ("tools/list", era) => request.result(&self.tool_list(era)),
            ("ping", Era::Handshake) => request.result("{}"),
            ("initialize", Era::Handshake) => request.result(&initialize(self.deployment, request.params)),
            ("server/discover", _) => request.result(&discover(self.deployment)),
            ("shutdown", Era::Handshake) => {
                request.caller.calls.shut_down();
                request.result("null");
            }
            (method, _) => request.error(&ErrorBody::new(METHOD_NOT_FOUND, format!("Method not found: {method}"))),
        }
    }

    /// Takes what is not answered.
    pub fn notification(&self, method: &str, params: &Params<'_>, caller: &Caller) -> Next {
        match method {
            "exit" => return Next::Exit,
            "notifications/cancelled" => {
                if let Some(id) = params.request_id {
                    caller.calls.cancel(id);
                }
            }
            // Everything else is for information, or not ours; neither is answered.
            _ => {}
        }
        Next::Read
    }

    fn call(&self, request: Request<'_>) {
        let Request { id, params, era, caller, .. } = request;
        let profile = self.settings.response_profile;
        let name = match params.name.map(message::string) {
            None => return request.error(&ErrorBody::new(INVALID_PARAMS, "Invalid params: tools/call needs a tool's name")),
            Some(name) => name.unwrap_or_default(),
        };
        let refuse = |reason, message: String, feedback: &str| {
            request.result(&answer::refusal(reason, message, feedback, profile, era));
        };
        let shut_down = || {
            let message = "the server was shut down and takes no more calls".into();
            refuse(Reason::ShuttingDown, message, "Start a new server process for further calls.");
        };
        let session_tool = self.sessions.as_ref().zip(SessionTool::named(&name));
        let stored = self.deployment.program(&name);
        if name != TOOL_NAME && session_tool.is_none() && stored.is_none() {
            let feedback = if self.sessions.is_some() {
                "The tools of this server are `lisp_eval` and `lisp_session_…`."
            } else if SessionTool::named(&name).is_some() {
                "Sessions are off: the server has to be started with --sessions."
            } else if self.deployment.programs.is_empty() {
                "The only tool of this server is `lisp_eval`."
            } else {
                "`tools/list` names the tools of this server."
            };
            return refuse(Reason::UnknownTool, format!("unknown tool: {name}"), feedback);
        }
        if caller.calls.is_shut_down() {
            return shut_down();
        }
        let lease = match session_tool {
            None => None,
            Some((sessions, SessionTool::Eval)) => {
                let lease = session::tools::session_id(&params.arguments).and_then(|id| sessions.begin(&caller.owner, &id));
                match lease {
                    Ok(lease) => Some(lease),
                    Err(fault) => return request.result(&self.session_fault(&fault, era)),
                }
            }
            Some((sessions, tool)) => {
                let answer = match session::tools::answer(tool, sessions, &caller.owner, &params.arguments) {
                    Ok(members) => answer::data_result(&members, false, era),
                    Err(fault) => self.session_fault(&fault, era),
                };
                return request.result(&answer);
            }
        };
        let read = match stored {
            Some(program) => Call::of_stored(program, &params.arguments, &self.settings),
            None => Call::read(&params.arguments, &self.settings),
        };
        let call = match read {
            Ok(call) => call,
            Err(message) => return refuse(Reason::ArgsError, message, ""),
        };
        let place = match caller.calls.enter(id) {
            Ok(place) => place,
            Err(Denied::DuplicateId) => {
                let message = format!("Invalid Request: id {id} is already in flight");
                return request.error(&ErrorBody::new(INVALID_REQUEST, message));
            }
            Err(Denied::ShutDown) => return shut_down(),
            Err(denied @ (Denied::Busy | Denied::ClientBusy)) => {
                let (who, most) = match denied {
                    Denied::Busy => ("server", self.permits.most()),
                    _ => ("client", caller.calls.most()),
                };
                let feedback = "Wait for an earlier call to finish, then send the same call again.";
                return refuse(Reason::Busy, format!("{who} busy: {most} concurrent calls in flight"), feedback);
            }
        };
        if log::enabled(Level::Debug) {
            log::line(Level::Debug, "call", &[("id", id), ("program", &call.program)]);
        }
        let id = id.to_owned();
        let evaluator = Arc::clone(&self.evaluator);
        let answers = Arc::clone(request.answers);
        let cancel = place.cancel.clone();
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
                // A cancelled request is not answered; where the answer came first, the client drops it.
                if !place.cancel.is_cancelled() {
                    answers.send(Answer::result(&id, &result), Some(place));
                }
                drop(evaluation);
            },
        );
    }

    fn session_fault(&self, fault: &session::Fault, era: Era) -> String {
        let message = self.redactor.redact_str(&fault.to_string()).into_owned();
        let members = [("status", "error"), ("reason", fault.reason()), ("message", &message), ("feedback", &message)];
        let members = members.into_iter().map(|(name, text)| (name.to_owned(), serde_json::Value::from(text))).collect();
        answer::data_result(&members, true, era)
    }

    fn tool_list(&self, era: Era) -> String {
        let tools = self
            .tools
            .get_or_init(|| describe::tools_json(self.deployment, &self.settings, &|text| self.redactor.redact_str(text)));
        match era {
            Era::Handshake => format!(r#"{{"tools":{tools}}}"#),
            Era::Stateless => {
                format!(r#"{{"resultType":"complete","tools":{tools},"ttlMs":{TTL_MS},"cacheScope":"private"}}"#)
            }
        }
    }
}

impl Request<'_> {
    fn result(&self, result: &str) {
        self.answers.send(Answer::result(self.id, result), None);
    }

    fn error(&self, body: &ErrorBody) {
        self.answers.send(Answer::error(self.id, body), None);
    }
}

fn server_info() -> serde_json::Value {
    serde_json::json!({ "name": SERVER_NAME, "version": env!("CARGO_PKG_VERSION") })
}

fn initialize(deployment: &'static Deployment, params: &Params<'_>) -> String {
    serde_json::json!({
        "protocolVersion": revision::negotiate(params.protocol_version),
        "capabilities": { "tools": { "listChanged": false } },
        "serverInfo": server_info(),
        "_meta": { version::META_KEY: version::digests(deployment) },
    })
    .to_string()
}

fn discover(deployment: &'static Deployment) -> String {
    serde_json::json!({
        "resultType": "complete",
        "supportedVersions": STATELESS,
        "capabilities": { "tools": {} },
        "ttlMs": TTL_MS,
        "cacheScope": "private",
        "_meta": { SERVER_INFO_KEY: server_info(), version::META_KEY: version::digests(deployment) },
    })
    .to_string()
}
