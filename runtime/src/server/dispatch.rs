//! Dispatches the methods of the protocol.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock};

use ptc_catalog::Deployment;
use ptc_check::CalledTool;

use super::caller::{Answer, Caller, ResponseSink};
use super::identity::Identity;
#[cfg(feature = "agentic")]
use crate::agentic::Planner;
use crate::build_info;
use crate::diagnostics::Diagnostics;
use crate::fibers::Fibers;
use crate::schedule::Scheduler;
use crate::secrets::Redactor;
use crate::session::Sessions;
use crate::settings::Settings;
use crate::upstream::access::{Access, PolicyEvaluator, Subject};
use ptc_engine::evaluation::Evaluator;
use ptc_engine::protocol::message::{self, Message, Params};
use ptc_engine::protocol::reply::{ErrorBody, METHOD_NOT_FOUND, PARSE_ERROR};
use ptc_engine::protocol::revision::{self, Era, SERVER_INFO_KEY, STATELESS};
use ptc_text::truncate_utf8;

/// Maximum bytes of an unknown method in its error message.
const SHOWN: usize = 100;

/// The name of the server.
pub const SERVER_NAME: &str = "ptc_lisp";

/// Time in ms for which a client of the stateless era may cache the tool list. The list does not change as long as the binary is
/// the same.
pub(super) const TTL_MS: u64 = 3_600_000;

/// State that all clients of a process share.
pub struct Server {
    pub(super) deployment: &'static Deployment,
    pub(super) settings: Settings,
    pub(super) evaluator: Arc<Evaluator>,
    pub(super) redactor: Redactor,
    /// Runs programs and tasks.
    pub(super) fibers: Arc<Fibers>,
    pub(super) scheduler: Arc<Scheduler>,
    pub(super) tools: OnceLock<String>,
    /// The tools that callers see with a policy, by the address of their catalog, which is never freed.
    pub(super) restricted_tools: Mutex<Vec<(usize, Arc<str>)>>,
    /// The tools that each stored program may call, once a caller with a policy needs them.
    pub(super) called_tools: OnceLock<Vec<Option<BTreeSet<CalledTool>>>>,
    pub(super) sessions: Option<Arc<Sessions>>,
    pub(super) diagnostics: Option<Arc<Diagnostics>>,
    pub(super) policy: Option<Arc<dyn PolicyEvaluator>>,
    #[cfg(feature = "agentic")]
    pub(super) planner: Option<Arc<Planner>>,
}

/// Whether to continue reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Continue.
    Read,
    /// Stop, since the client sent `exit`.
    Exit,
}

/// A request with the receiver of its answer.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The raw id.
    pub id: &'a str,
    /// The method.
    pub method: &'a str,
    /// The parameters.
    pub params: &'a Params<'a>,
    /// The era, determined by its envelope.
    pub era: Era,
    /// The client.
    pub caller: &'a Caller,
    /// The receiver of the answer.
    pub answers: &'a Arc<dyn ResponseSink>,
}

impl Server {
    /// Creates a server. Its evaluations run when `scheduler` admits them. `sessions` and `diagnostics` are `None` if they are
    /// off.
    pub fn new(
        deployment: &'static Deployment,
        settings: Settings,
        evaluator: Evaluator,
        sessions: Option<Arc<Sessions>>,
        redactor: Redactor,
        scheduler: Arc<Scheduler>,
        diagnostics: Option<Arc<Diagnostics>>,
    ) -> Self {
        let (evaluator, tools) = (Arc::new(evaluator), OnceLock::new());
        Server {
            deployment,
            settings,
            evaluator,
            redactor,
            fibers: Arc::new(Fibers::new(scheduler.limits().threads.value)),
            scheduler,
            tools,
            sessions,
            diagnostics,
            policy: None,
            restricted_tools: Mutex::default(),
            called_tools: OnceLock::new(),
            #[cfg(feature = "agentic")]
            planner: None,
        }
    }

    /// Restricts callers by a policy.
    #[must_use]
    pub fn with_policy(mut self, policy: Option<Arc<dyn PolicyEvaluator>>) -> Self {
        self.policy = policy;
        self
    }

    /// Returns what a caller may do. `None` without a policy.
    pub(super) fn access(&self, caller: &Caller) -> Option<Arc<dyn Access>> {
        self.access_of(&caller.identity)
    }

    pub(super) fn access_of(&self, identity: &Identity) -> Option<Arc<dyn Access>> {
        let Identity { owner, scopes, claims, .. } = identity;
        self.policy.as_ref().map(|policy| policy.access(Subject { owner: &owner.id, scopes, claims }))
    }

    /// Adds `lisp_task`.
    #[cfg(feature = "agentic")]
    #[must_use]
    pub fn with_planner(mut self, planner: Option<Arc<Planner>>) -> Self {
        self.planner = planner;
        self
    }

    /// Returns the settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the scheduler.
    pub fn scheduler(&self) -> &Arc<Scheduler> {
        &self.scheduler
    }

    /// Whether handling a call may block on files or read a long context.
    pub fn may_block(&self) -> bool {
        self.diagnostics.as_ref().is_some_and(|diagnostics| diagnostics.may_block())
    }

    /// Whether diagnostics are on.
    pub fn is_watched(&self) -> bool {
        self.diagnostics.is_some()
    }

    /// Connects again to the MCP upstreams that are down. Returns at once.
    #[cfg(feature = "http-server")]
    pub fn reconnect_upstreams(&self) {
        self.evaluator.upstreams().reconnect();
    }

    /// Returns why the session store is unavailable at present, as far as known.
    pub fn store_trouble(&self) -> Option<String> {
        self.sessions.as_ref()?.store().health_error()
    }

    /// Whether no call is in flight or queued.
    pub fn is_idle(&self) -> bool {
        self.scheduler.is_idle()
    }

    /// Handles one line. Blocks while the client does not read its answers.
    pub fn receive(&self, line: &[u8], caller: &Caller, answers: &Arc<dyn ResponseSink>) -> Next {
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

    /// Returns the answer to a frame above the size limit.
    pub fn oversized(&self) -> Answer {
        let most = self.settings.max_frame_bytes;
        Answer::error("null", &ErrorBody::new(PARSE_ERROR, format!("Parse error: the line exceeds max_frame_bytes ({most})")))
    }

    /// Answers a request, either now or from the evaluation's thread.
    pub fn request(&self, request: Request<'_>) {
        match (request.method, request.era) {
            ("tools/call", _) => self.call(request),
            ("tools/list", era) => request.result(&self.tool_list(era, request.caller)),
            ("ping", Era::Handshake) => request.result("{}"),
            ("initialize", Era::Handshake) => {
                let revision = revision::negotiate(request.params.protocol_version);
                request.caller.calls.set_protocol_version(revision);
                request.result(&initialize(self.deployment, revision));
            }
            ("server/discover", _) => request.result(&discover(self.deployment)),
            ("shutdown", Era::Handshake) => {
                request.caller.calls.shut_down();
                request.result("null");
            }
            (method, _) => {
                let method = self.redactor.redact_str(method);
                request
                    .error(&ErrorBody::new(METHOD_NOT_FOUND, format!("Method not found: {}", truncate_utf8(&method, SHOWN).0)));
            }
        }
    }

    /// Handles a notification, which is not answered.
    pub fn notification(&self, method: &str, params: &Params<'_>, caller: &Caller) -> Next {
        match method {
            "exit" => return Next::Exit,
            "notifications/cancelled" => {
                if let Some(id) = params.request_id {
                    caller.calls.cancel(id);
                }
            }
            // Other notifications are informational or unknown, and ignored.
            _ => {}
        }
        Next::Read
    }
}

impl Request<'_> {
    pub(super) fn result(&self, result: &str) {
        self.answers.send(Answer::result(self.id, result), None);
    }

    pub(super) fn error(&self, body: &ErrorBody) {
        self.answers.send(Answer::error(self.id, body), None);
    }
}

fn server_info(deployment: &Deployment) -> serde_json::Value {
    let name = if deployment.server_name.is_empty() { SERVER_NAME } else { deployment.server_name };
    serde_json::json!({ "name": name, "version": env!("CARGO_PKG_VERSION") })
}

fn initialize(deployment: &'static Deployment, revision: &str) -> String {
    serde_json::json!({
        "protocolVersion": revision,
        "capabilities": { "tools": { "listChanged": false } },
        "serverInfo": server_info(deployment),
        "_meta": { build_info::META_KEY: build_info::digests(deployment) },
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
        "_meta": { SERVER_INFO_KEY: server_info(deployment), build_info::META_KEY: build_info::digests(deployment) },
    })
    .to_string()
}
