//! A deployment for one test, with its own runtime.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ptc_catalog::{Arg, Binding, Catalog, Deployment, Operation, Tool, Tools, Transport, Type, Types, Upstream};
use ptc_lisp::host::{Fault, Host, HttpHead, Reply, WaitOutcome};
use ptc_lisp::{Limits, Value, json};
use ptc_runtime::digest::sha256;
use ptc_runtime::secrets::Secrets;
use ptc_runtime::upstream::caller_token::CallerToken;
use ptc_runtime::upstream::{CallRecord, Listing, OnDrift, ProgramHost, UpstreamSettings, Upstreams, WaitLimits};
use serde_json::value::RawValue;

/// Upstreams and the thread of their event loop.
pub(crate) struct World {
    pub(crate) upstreams: Arc<Upstreams>,
    pub(crate) handle: tokio::runtime::Handle,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// Returns a tool that accepts any arguments.
pub(crate) fn tool(name: &'static str) -> Tool {
    Tool { name, ..Tool::EMPTY }
}

pub(crate) fn arg(name: &'static str, required: bool, types: &[Type], label: &'static str) -> Arg {
    Arg { name, required, types: Types::from_types(types), label, allowed: "" }
}

pub(crate) fn operation(name: &'static str, operation: Operation) -> Tool {
    Tool { operation: Some(Box::leak(Box::new(operation))), ..tool(name) }
}

pub(crate) fn upstream(name: &'static str, transport: Transport, mut tools: Vec<Tool>) -> Upstream {
    tools.sort_by_key(|tool| tool.name);
    Upstream { name, description: "", transport, tools: Tools::table(tools.leak()) }
}

pub(crate) fn deployment(mut upstreams: Vec<Upstream>, credentials: Vec<Binding>) -> &'static Deployment {
    upstreams.sort_by_key(|upstream| upstream.name);
    let catalog = Box::leak(Box::new(Catalog { digest: "", search_index: &[], upstreams: upstreams.leak() }));
    Box::leak(Box::new(Deployment { name: "test", credentials: credentials.leak(), catalog, ..Deployment::EMPTY }))
}

impl World {
    pub(crate) fn new(upstreams: Vec<Upstream>) -> World {
        World::with(upstreams, Vec::new(), |_| {})
    }

    pub(crate) fn with(upstreams: Vec<Upstream>, credentials: Vec<Binding>, change: impl FnOnce(&mut UpstreamSettings)) -> World {
        World::made(upstreams, credentials, change, Upstreams::new)
    }

    /// Like [`World::new`], with a live catalog: the tools that an upstream lists accept any arguments.
    pub(crate) fn live(upstreams: Vec<Upstream>, change: impl FnOnce(&mut UpstreamSettings)) -> World {
        let load = |bare: &'static Upstream, listing: Listing| {
            let named = |raw: &RawValue| {
                let name = json::decode(raw.get().as_bytes()).ok()?.get("name")?.as_str()?.to_owned();
                Some(Tool { definition: raw.get().to_owned().leak(), ..tool(name.leak()) })
            };
            Ok(upstream(bare.name, bare.transport.clone(), listing.tools.iter().map(|raw| &**raw).filter_map(named).collect()))
        };
        World::made(upstreams, Vec::new(), change, |deployment, secrets, settings| {
            Upstreams::live(deployment, secrets, settings, Arc::new(load))
        })
    }

    fn made(
        upstreams: Vec<Upstream>,
        credentials: Vec<Binding>,
        change: impl FnOnce(&mut UpstreamSettings),
        make: impl FnOnce(&'static Deployment, Secrets, UpstreamSettings) -> Arc<Upstreams>,
    ) -> World {
        let deployment = deployment(upstreams, credentials);
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let handle = runtime.handle().clone();
        let thread = std::thread::spawn(move || {
            let _ = runtime.block_on(stopped);
        });
        let dir = std::path::PathBuf::from("/");
        let secrets = Secrets::resolve(deployment, &dir).unwrap_or_else(|missing| panic!("{missing:?}"));
        let mut settings = UpstreamSettings::new(dir, handle.clone());
        // Most peers list no tools. Drift is covered by separate tests.
        settings.on_drift = OnDrift::Off;
        change(&mut settings);
        let upstreams = make(deployment, secrets, settings);
        World { upstreams, handle, stop: Some(stop), thread: Some(thread) }
    }

    pub(crate) fn program(&self) -> Program {
        Program(self.upstreams.program(WaitLimits::default()))
    }

    /// Returns the host of a program for a caller with this access token.
    pub(crate) fn program_of(&self, token: &str) -> Program {
        let caller = CallerToken::new(token, sha256);
        Program(self.upstreams.program(WaitLimits { caller, ..WaitLimits::default() }))
    }

    /// Runs a program.
    pub(crate) fn evaluate(&self, source: &str, limits: Limits) -> Result<Value, ptc_lisp::Error> {
        let program = ptc_lisp::Program::compile(source)?;
        let patience = WaitLimits::default();
        ptc_lisp::Run::new(&program).host(self.upstreams.program(patience)).limits(limits).execute_on_thread().result
    }

    /// Runs `task` on the runtime and waits for it.
    pub(crate) fn run<T: Send + 'static>(&self, task: impl Future<Output = T> + Send + 'static) -> T {
        let (send, receive) = std::sync::mpsc::channel();
        self.handle.spawn(async move {
            let _ = send.send(task.await);
        });
        receive.recv_timeout(Duration::from_mins(1)).unwrap()
    }

    pub(crate) fn shutdown(&self) {
        let upstreams = Arc::clone(&self.upstreams);
        self.run(async move { upstreams.shutdown().await });
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The host of one evaluation.
pub(crate) struct Program(pub(crate) Arc<ProgramHost>);

impl Program {
    /// Returns the request of a call with JSON arguments.
    pub(crate) fn request(server: &str, tool: &str, args: &str) -> Value {
        Value::map([
            (Value::keyword("server"), Value::string(server)),
            (Value::keyword("tool"), Value::string(tool)),
            (Value::keyword("args"), json::decode(args.as_bytes()).unwrap()),
        ])
    }

    /// Makes a call. Returns the reply without the head of an HTTP answer.
    pub(crate) fn submit(&self, request: &Value) -> Result<Reply, Fault> {
        self.submit_for_head(request).map(|(_, reply)| reply)
    }

    /// Makes a call. Returns the reply and the head of an HTTP answer.
    pub(crate) fn submit_for_head(&self, request: &Value) -> Result<(Option<HttpHead>, Reply), Fault> {
        match self.0.submit(request)?.wait(Some(Instant::now() + Duration::from_mins(1))) {
            WaitOutcome::Reply(Reply::Refused(fault)) => Err(fault),
            WaitOutcome::Reply(Reply::Http(head, reply)) => Ok((Some(*head), *reply)),
            WaitOutcome::Reply(reply) => Ok((None, reply)),
            other => panic!("{other:?}"),
        }
    }

    /// Calls a tool. Returns the answer in one line: `json …`, `text …`, `none`, or `reason: message`.
    pub(crate) fn call(&self, server: &str, tool: &str, args: &str) -> String {
        described(self.submit(&Program::request(server, tool, args)).unwrap_or_else(|fault| panic!("{fault:?}")))
    }

    /// Starts a call without waiting.
    pub(crate) fn start(&self, server: &str, tool: &str, args: &str) -> ptc_lisp::host::PendingReply {
        self.0.submit(&Program::request(server, tool, args)).unwrap()
    }

    pub(crate) fn last(&self) -> CallRecord {
        self.0.calls().pop().unwrap()
    }
}

/// Polls `done` until it is true, and panics if that takes too long.
pub(crate) fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    for _ in 0..1_000 {
        if done() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{what} did not happen");
}

/// Returns a reply in one line.
pub(crate) fn described(reply: Reply) -> String {
    match reply {
        Reply::Json(json) => format!("json {}", String::from_utf8(json).unwrap()),
        Reply::Text(text) | Reply::Plain(text) => format!("text {text}"),
        Reply::None => "none".to_owned(),
        Reply::Failed { reason, message } => format!("{reason}: {message}"),
        other => panic!("{other:?}"),
    }
}
