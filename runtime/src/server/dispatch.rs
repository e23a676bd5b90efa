//! Dispatches the methods of the protocol.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use ptc_catalog::{Deployment, StoredProgram, Transport};
use ptc_check::CalledTool;

use super::caller::{Answer, Caller, ResponseSink};
use super::identity::Identity;
#[cfg(feature = "agentic")]
use crate::agentic::{self, Planner};
use crate::build_info;
use crate::diagnostics::Diagnostics;
use crate::diagnostics::counters::{Gauge, Labelled};
use crate::fibers::Fibers;
use crate::schedule::Scheduler;
use crate::secrets::Redactor;
use crate::session::Sessions;
use crate::settings::Settings;
use crate::tools_list;
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
const TTL_MS: u64 = 3_600_000;

/// Maximum number of lists of tools that are kept, of callers who see different catalogs.
const MAX_TOOL_LISTS: usize = 64;

/// State that all clients of a process share.
pub struct Server {
    pub(super) deployment: &'static Deployment,
    pub(super) settings: Settings,
    pub(super) evaluator: Arc<Evaluator>,
    pub(super) redactor: Redactor,
    /// Runs programs and tasks.
    pub(super) fibers: Arc<Fibers>,
    pub(super) scheduler: Arc<Scheduler>,
    tools: OnceLock<String>,
    /// The tools that callers see with a policy, by the address of their catalog, which is never freed.
    restricted_tools: Mutex<Vec<(usize, Arc<str>)>>,
    /// The tools that each stored program may call, once a caller with a policy needs them.
    called_tools: OnceLock<Vec<Option<BTreeSet<CalledTool>>>>,
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

    fn access_of(&self, identity: &Identity) -> Option<Arc<dyn Access>> {
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

    /// Returns the metrics together with those of the transport. Returns `None` if calls are not counted. If a policy restricts `reader`,
    /// samples of other upstreams and stored programs than those that it may call are omitted; totals without such a label are not.
    pub fn metrics(&self, transport: &[Gauge], reader: Option<&Identity>) -> Option<String> {
        let diagnostics = self.diagnostics.as_ref().filter(|_| self.settings.diagnostics.counted)?;
        let sessions = self.sessions.as_ref().map_or(0, |sessions| sessions.store().count());
        let (load, limits) = (self.scheduler.load(), self.scheduler.limits());
        let saturated = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let mut gauges = vec![
            Gauge { name: "ptc_programs_running", help: "Programs that use a processor.", value: load.running },
            Gauge { name: "ptc_programs_waiting", help: "Programs in flight that use no processor.", value: load.waiting },
            Gauge { name: "ptc_programs_queued", help: "Calls that wait for admission.", value: load.queued },
            Gauge {
                name: "ptc_programs_in_flight_limit",
                help: "Programs that may be in flight.",
                value: limits.in_flight.value,
            },
            Gauge {
                name: "ptc_memory_budget_bytes",
                help: "Memory that programs, sessions and requests may use together.",
                value: saturated(limits.memory_budget_bytes.value),
            },
            Gauge {
                name: "ptc_memory_used_bytes",
                help: "Memory that programs, sessions and requests use together.",
                value: saturated(load.used_bytes),
            },
            Gauge { name: "ptc_sessions", help: "Sessions of programs.", value: sessions },
        ];
        gauges.extend(transport);
        let text = diagnostics.metrics(&gauges, &self.labelled_metrics(), &self.scheduler.refusals());
        let Some(access) = reader.and_then(|reader| self.access_of(reader)) else { return Some(text) };
        let Deployment { catalog: whole, programs, .. } = self.deployment;
        let permitted = access.catalog(whole);
        let upstreams = whole.upstreams.iter().filter(|upstream| permitted.upstream(upstream.name).is_none());
        let programs = programs.iter().filter(|program| !self.may_run(&*access, program));
        let hidden: Vec<String> = upstreams
            .map(|upstream| format!("server=\"{}\"", upstream.name))
            .chain(programs.map(|program| format!("tool=\"{}\"", program.name)))
            .collect();
        // The finished text is filtered, so that no metric that is added later can be forgotten.
        let shown = text.split_inclusive('\n').filter(|line| !hidden.iter().any(|label| line.contains(label)));
        Some(shown.collect())
    }

    /// Returns the metrics about the build and about the upstreams.
    fn labelled_metrics(&self) -> [Labelled; 5] {
        let Deployment { name, config_digest, catalog, .. } = self.deployment;
        let build = [
            ("deployment", *name),
            ("version", env!("CARGO_PKG_VERSION")),
            ("catalog_digest", catalog.digest),
            ("config_digest", config_digest),
        ];
        let (mut up, mut running, mut restarts, mut resident) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (upstream, health) in self.evaluator.upstreams().health() {
            let labels = vec![("server", upstream.name.to_owned())];
            up.push((labels.clone(), u64::from(health.down_within(Duration::MAX).is_none())));
            if matches!(upstream.transport, Transport::McpStdio(_)) {
                running.push((labels.clone(), u64::from(health.is_running())));
                restarts.push((labels.clone(), health.restarts()));
                resident.extend(health.resident_bytes().map(|bytes| (labels, bytes)));
            }
        }
        [
            Labelled {
                name: "ptc_build_info",
                help: "What the binary was built from. The value is always 1.",
                kind: "gauge",
                samples: vec![(build.map(|(label, value)| (label, value.to_owned())).to_vec(), 1)],
            },
            Labelled {
                name: "ptc_upstream_up",
                help: "0 if the last call or connection of the upstream failed, or its process ended; otherwise 1.",
                kind: "gauge",
                samples: up,
            },
            Labelled {
                name: "ptc_upstream_child_running",
                help: "1 if the process of the stdio upstream runs, otherwise 0.",
                kind: "gauge",
                samples: running,
            },
            Labelled {
                name: "ptc_upstream_restarts_total",
                help: "Starts of the upstream's process after the first one.",
                kind: "counter",
                samples: restarts,
            },
            Labelled {
                name: "ptc_upstream_child_resident_bytes",
                help: "Resident memory of the upstream's running process (Linux).",
                kind: "gauge",
                samples: resident,
            },
        ]
    }

    /// Returns the upstreams that are down, each with the name of the reason. A failure older than `age` does not count. If a policy
    /// restricts `reader`, upstreams of which it may call nothing are omitted.
    pub fn upstreams_down(&self, age: Duration, reader: Option<&Identity>) -> Vec<(&'static str, &'static str)> {
        let permitted = reader.and_then(|reader| self.access_of(reader)).map(|access| access.catalog(self.deployment.catalog));
        let is_shown = |name: &str| permitted.is_none_or(|permitted| permitted.upstream(name).is_some());
        let health = self.evaluator.upstreams().health().filter(|(upstream, _)| is_shown(upstream.name));
        health.filter_map(|(upstream, health)| Some((upstream.name, health.down_within(age)?.name()))).collect()
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

    /// Returns the tools as the caller may see them. Without a policy they are the same for every caller.
    fn tool_list(&self, era: Era, caller: &Caller) -> String {
        let restricted = self.access(caller).map(|access| self.restricted_tools(&*access));
        let tools = match &restricted {
            Some(tools) => tools,
            None => self.tools.get_or_init(|| self.tools_for(None)).as_str(),
        };
        match era {
            Era::Handshake => format!(r#"{{"tools":{tools}}}"#),
            Era::Stateless => {
                format!(r#"{{"resultType":"complete","tools":{tools},"ttlMs":{TTL_MS},"cacheScope":"private"}}"#)
            }
        }
    }

    /// Returns the tools of a caller. They are described once for all callers who see the same catalog.
    fn restricted_tools(&self, access: &dyn Access) -> Arc<str> {
        let catalog = std::ptr::from_ref(access.catalog(self.deployment.catalog)).addr();
        let known = || self.restricted_tools.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, tools)) = known().iter().find(|(of, _)| *of == catalog) {
            return Arc::clone(tools);
        }
        let tools: Arc<str> = self.tools_for(Some(access)).into();
        let mut known = known();
        if known.len() >= MAX_TOOL_LISTS {
            known.clear();
        }
        known.push((catalog, Arc::clone(&tools)));
        tools
    }

    fn tools_for(&self, access: Option<&dyn Access>) -> String {
        let whole = self.deployment.catalog;
        let catalog = access.map_or(whole, |access| access.catalog(whole));
        let deployment = Deployment { catalog, ..*self.deployment };
        let clean: &dyn Fn(&str) -> Cow<'_, str> = &|text| self.redactor.redact_str(text);
        let mut tools = tools_list::tools(&deployment, &self.settings, clean);
        #[cfg(feature = "agentic")]
        if let Some(planner) = &self.planner {
            // It follows `lisp_eval`, which is always the first tool.
            tools.insert(1, agentic::tool::described(planner.plan(), catalog, clean));
        }
        if let Some(access) = access {
            let denied = deployment.programs.iter().filter(|program| !self.may_run(access, program));
            let denied: Vec<&str> = denied.map(|program| program.name).collect();
            tools.retain(|tool| !denied.iter().any(|name| tool.get("name").is_some_and(|own| own == name)));
        }
        serde_json::Value::from(tools).to_string()
    }

    /// Whether a caller may run a stored program. A program whose tools are not known is not offered.
    pub(super) fn may_run(&self, access: &dyn Access, program: &StoredProgram) -> bool {
        let called = self.called_by(program);
        called.is_some_and(|called| access.denial_of_program(self.deployment.catalog, called).is_none())
    }

    /// Returns why a caller must not learn of a stored program, which calls a tool that no scope opens for the caller. `None` if it may.
    pub(super) fn hidden_reason(&self, access: &dyn Access, program: &StoredProgram) -> Option<String> {
        let denial = access.denial_of_program(self.deployment.catalog, self.called_by(program)?)?;
        denial.hidden.is_some().then_some(denial.reason)
    }

    /// Returns the tools that a stored program may call. All programs are analysed once.
    fn called_by(&self, program: &StoredProgram) -> Option<&BTreeSet<CalledTool>> {
        let all = || self.deployment.programs.iter().map(tools_list::called_tools).collect();
        let at = self.deployment.programs.iter().position(|known| known.name == program.name)?;
        self.called_tools.get_or_init(all).get(at)?.as_ref()
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
