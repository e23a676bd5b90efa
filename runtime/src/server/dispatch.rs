//! Methods of the protocol.

use std::fs::File;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use ptc_catalog::Deployment;

use super::in_flight::{Denied, InFlight};
use super::outbox::Outbox;
use crate::describe;
use crate::evaluation::{Call, Evaluation, Evaluator, Past, Reason};
use crate::log::{self, Level};
use crate::pool::Pool;
use crate::profile::answer;
use crate::protocol::message::{self, Message, Params, Refusal};
use crate::protocol::reply::{self, ErrorBody, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR};
use crate::protocol::revision::{self, Era, SERVER_INFO_KEY, STATELESS};
use crate::secrets::Redactor;
use crate::session::tools::Tool as SessionTool;
use crate::session::{self, Sessions};
use crate::settings::Settings;

/// The name of the server.
pub const SERVER_NAME: &str = "ptc_lisp";

/// The name of its tool.
pub const TOOL_NAME: &str = "lisp_eval";

/// Whose sessions those of a client on standard input are.
const OWNER: &str = "stdio";

/// How long a client of the stateless era may keep the tool list: it never changes while the binary is the same.
const TTL_MS: u64 = 3_600_000;

/// One connection's server.
pub struct Server {
    deployment: &'static Deployment,
    settings: Settings,
    evaluator: Arc<Evaluator>,
    redactor: Redactor,
    pool: Pool,
    calls: Arc<InFlight>,
    outbox: Arc<Outbox<File>>,
    tools: OnceLock<String>,
    sessions: Option<Arc<Sessions>>,
    draining: AtomicBool,
}

/// Whether to go on reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Yes.
    Read,
    /// The client said `exit`.
    Exit,
}

impl Server {
    /// A server that answers into `outbox`.
    pub fn new(
        deployment: &'static Deployment,
        settings: Settings,
        evaluator: Evaluator,
        redactor: Redactor,
        pool: Pool,
        outbox: Arc<Outbox<File>>,
    ) -> Self {
        let calls = InFlight::new(settings.max_concurrent_calls);
        let sessions = settings.sessions.then(|| Sessions::new(settings.session_limits.clone()));
        Server {
            deployment,
            settings,
            evaluator: Arc::new(evaluator),
            redactor,
            pool,
            calls,
            outbox,
            tools: OnceLock::new(),
            sessions,
            draining: AtomicBool::new(false),
        }
    }

    /// Takes one line. Blocks while the client does not read its answers.
    pub fn receive(&self, line: &[u8]) -> Next {
        match message::parse(line) {
            Ok(Message::Request { id, method, params }) => self.request(id, &method, &params),
            Ok(Message::Notification { method, params }) => return self.notification(&method, &params),
            Err(Refusal::Parse) => self.error("null", &ErrorBody::new(PARSE_ERROR, "Parse error: the line is not JSON")),
            Err(Refusal::Invalid) => {
                self.error("null", &ErrorBody::new(INVALID_REQUEST, "Invalid Request: not a JSON-RPC 2.0 request"));
            }
        }
        Next::Read
    }

    /// Answers a line beyond the cap.
    pub fn refuse_oversized(&self) -> Next {
        let most = self.settings.max_frame_bytes;
        self.error("null", &ErrorBody::new(PARSE_ERROR, format!("Parse error: the line exceeds max_frame_bytes ({most})")));
        Next::Read
    }

    /// Stops every call.
    pub fn cancel_all(&self) {
        self.calls.cancel_all();
    }

    fn request(&self, id: &str, method: &str, params: &Params<'_>) {
        let era = match revision::era(params, method == "server/discover") {
            Ok(era) => era,
            Err(body) => return self.error(id, &body),
        };
        match (method, era) {
            ("tools/call", _) => self.call(id, params, era),
            ("tools/list", _) => self.result(id, &self.tool_list(era)),
            ("ping", Era::Handshake) => self.result(id, "{}"),
            ("initialize", _) => self.result(id, &initialize(params)),
            ("server/discover", _) => self.result(id, &discover()),
            ("shutdown", Era::Handshake) => {
                self.draining.store(true, Ordering::Release);
                self.result(id, "null");
            }
            _ => self.unknown(id, method),
        }
    }

    fn notification(&self, method: &str, params: &Params<'_>) -> Next {
        match method {
            "exit" => return Next::Exit,
            "notifications/cancelled" => {
                if let Some(id) = params.request_id {
                    self.calls.cancel(id);
                }
            }
            // Everything else is for information, or not ours; neither is answered.
            _ => {}
        }
        Next::Read
    }

    fn call(&self, id: &str, params: &Params<'_>, era: Era) {
        let profile = self.settings.response_profile;
        let name = match params.name.map(message::string) {
            None => return self.error(id, &ErrorBody::new(INVALID_PARAMS, "Invalid params: tools/call needs a tool's name")),
            Some(name) => name.unwrap_or_default(),
        };
        let refuse = |reason, message: String, feedback: &str| {
            self.result(id, &answer::refusal(reason, message, feedback, profile, era));
        };
        let session_tool = self.sessions.as_ref().zip(SessionTool::named(&name));
        if name != TOOL_NAME && session_tool.is_none() {
            let feedback = if self.sessions.is_some() {
                "The tools of this server are `lisp_eval` and `lisp_session_…`."
            } else if SessionTool::named(&name).is_some() {
                "Sessions are off: the server has to be started with --sessions."
            } else {
                "The only tool of this server is `lisp_eval`."
            };
            return refuse(Reason::UnknownTool, format!("unknown tool: {name}"), feedback);
        }
        if self.draining.load(Ordering::Acquire) {
            let message = "the server was shut down and takes no more calls".into();
            return refuse(Reason::ShuttingDown, message, "Start a new server process for further calls.");
        }
        let lease = match session_tool {
            None => None,
            Some((sessions, SessionTool::Eval)) => {
                let lease = session::tools::session_id(&params.arguments).and_then(|id| sessions.begin(OWNER, &id));
                match lease {
                    Ok(lease) => Some(lease),
                    Err(fault) => return self.result(id, &self.session_fault(&fault, era)),
                }
            }
            Some((sessions, tool)) => {
                let answer = match session::tools::answer(tool, sessions, OWNER, &params.arguments) {
                    Ok(members) => answer::data_result(&members, false, era),
                    Err(fault) => self.session_fault(&fault, era),
                };
                return self.result(id, &answer);
            }
        };
        let call = match Call::read(&params.arguments, &self.settings) {
            Ok(call) => call,
            Err(message) => return refuse(Reason::ArgsError, message, ""),
        };
        let place = match self.calls.enter(id) {
            Ok(place) => place,
            Err(Denied::DuplicateId) => {
                let message = format!("Invalid Request: id {id} is already in flight");
                return self.error(id, &ErrorBody::new(INVALID_REQUEST, message));
            }
            Err(Denied::Busy) => {
                let most = self.calls.most();
                let feedback = "Wait for an earlier call to finish, then send the same call again.";
                return refuse(Reason::Busy, format!("server busy: {most} concurrent calls in flight"), feedback);
            }
        };
        if log::enabled(Level::Debug) {
            log::line(Level::Debug, "call", &[("id", id), ("program", &call.program)]);
        }
        let id = id.to_owned();
        let evaluator = Arc::clone(&self.evaluator);
        let outbox = Arc::clone(&self.outbox);
        let cancel = place.cancel.clone();
        self.pool.spawn(
            move || {
                let past = lease.as_ref().map_or_else(Past::default, |lease| lease.kept.past());
                let mut evaluation = evaluator.evaluate(&call, &cancel, past);
                if let Some(lease) = lease {
                    lease.settle(&mut evaluation);
                }
                (answer::tool_result(&evaluation, profile, era), evaluation)
            },
            move |done| {
                let (result, evaluation) = done.unwrap_or_else(|panicked| {
                    log::line(Level::Error, "evaluation panicked", &[("message", &panicked.0)]);
                    let evaluation = Evaluation::panicked(&panicked);
                    (answer::tool_result(&evaluation, profile, era), evaluation)
                });
                // A cancelled request is not answered; where the answer came first, the client drops it.
                if !place.cancel.is_cancelled() {
                    outbox.send(&reply::result(&id, &result), place);
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

    fn unknown(&self, id: &str, method: &str) {
        self.error(id, &ErrorBody::new(METHOD_NOT_FOUND, format!("Method not found: {method}")));
    }

    fn result(&self, id: &str, result: &str) {
        self.outbox.send(&reply::result(id, result), ());
    }

    fn error(&self, id: &str, body: &ErrorBody) {
        self.outbox.send(&reply::error(id, body), ());
    }
}

fn server_info() -> serde_json::Value {
    serde_json::json!({ "name": SERVER_NAME, "version": env!("CARGO_PKG_VERSION") })
}

fn initialize(params: &Params<'_>) -> String {
    serde_json::json!({
        "protocolVersion": revision::negotiate(params.protocol_version),
        "capabilities": { "tools": { "listChanged": false } },
        "serverInfo": server_info(),
    })
    .to_string()
}

fn discover() -> String {
    serde_json::json!({
        "resultType": "complete",
        "supportedVersions": STATELESS,
        "capabilities": { "tools": {} },
        "ttlMs": TTL_MS,
        "cacheScope": "private",
        "_meta": { SERVER_INFO_KEY: server_info() },
    })
    .to_string()
}
