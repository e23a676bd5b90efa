//! Engines: what is set up once, and what a run gives.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use ptc_catalog::{Catalog, Deployment};
use ptc_lisp::host::Host;
use ptc_lisp::limits::{Cancel, Limits};
use ptc_lisp::signature::{Checked, Findings, underscored};
use ptc_lisp::{Bindings, Value, print};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::host::{AppHost, Calls, ToolCall};
use super::request::Request;
use super::tool::{BadTool, Tool};
use crate::evaluation::{Around, Evaluation, Evaluator, Failure, Preview, Reason, Validated};
use crate::pool::Pool;
use crate::profile::metrics::Metrics;
use crate::secrets::{MissingSecret, Redactor, Secrets};
use crate::settings::Settings;
use crate::tool_protocol::to_json_value;
use crate::upstream::{CallRecord, ProgramHost, UpstreamSettings, Upstreams};

/// Runs programs. It may be shared; programs share nothing but tools and upstreams.
pub struct Engine {
    evaluator: Arc<Evaluator>,
    redactor: Redactor,
    tools: Arc<[Tool]>,
    upstreams: Arc<Upstreams>,
    handle: Handle,
    pool: Pool,
    // Last, so that it outlives what runs on it.
    _driver: Option<Driver>,
}

/// What an engine is made of.
#[derive(Default)]
#[must_use]
pub struct Builder {
    tools: Vec<Tool>,
    deployment: Option<&'static Deployment>,
    limits: Option<Limits>,
    preview_bytes: Option<usize>,
    concurrent: Option<usize>,
    config_dir: Option<PathBuf>,
    handle: Option<Handle>,
}

/// Why there is no engine.
#[derive(Debug)]
pub enum BuildError {
    /// A tool that cannot be offered.
    Tool(BadTool),
    /// Every secret of the deployment that could not be had.
    Secrets(Vec<MissingSecret>),
    /// No thread for the engine's own runtime.
    System(io::Error),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::Tool(why) => write!(f, "{why}"),
            BuildError::Secrets(missing) => {
                let all: Vec<String> = missing.iter().map(ToString::to_string).collect();
                f.write_str(&all.join("\n"))
            }
            BuildError::System(why) => write!(f, "cannot start a thread for tools and upstreams: {why}"),
        }
    }
}

impl std::error::Error for BuildError {}

static NO_UPSTREAMS: Deployment =
    Deployment { name: "embedded", compiler: "", config_digest: "", credentials: &[], catalog: &Catalog::EMPTY, programs: &[] };

impl Builder {
    /// A tool that programs call as `(tool/NAME {…})`.
    pub fn tool(mut self, tool: Tool) -> Builder {
        self.tools.push(tool);
        self
    }

    /// Upstreams that programs reach with `tool/call`: what `catalog!` defines, or a deployment made at run time and leaked.
    pub fn deployment(mut self, deployment: &'static Deployment) -> Builder {
        self.deployment = Some(deployment);
        self
    }

    /// What a program may use. [`Limits::tool_calls`] counts calls of own tools and of upstreams together.
    pub fn limits(mut self, limits: Limits) -> Builder {
        self.limits = Some(limits);
        self
    }

    /// Bytes of a value's preview; 8 KiB unless set.
    pub fn preview_bytes(mut self, bytes: usize) -> Builder {
        self.preview_bytes = Some(bytes);
        self
    }

    /// Programs that run at a time; others wait for their turn. As many as the machine has processors unless set.
    pub fn concurrent(mut self, programs: usize) -> Builder {
        self.concurrent = Some(programs);
        self
    }

    /// Where relative paths of the deployment's credentials start; the folder of the executable unless set.
    pub fn config_dir(mut self, folder: impl Into<PathBuf>) -> Builder {
        self.config_dir = Some(folder.into());
        self
    }

    /// The Tokio runtime for tools and upstreams. Unless set it is the one around [`Builder::build`], and one of the engine's own
    /// where there is none. It needs its timers and its input and output enabled.
    pub fn runtime(mut self, handle: Handle) -> Builder {
        self.handle = Some(handle);
        self
    }

    /// Resolves credentials and prepares upstreams. Nothing is started or sent before a program needs it.
    pub fn build(self) -> Result<Engine, BuildError> {
        for (index, tool) in self.tools.iter().enumerate() {
            let name = underscored(tool.name());
            if self.tools.iter().take(index).any(|before| underscored(before.name()) == name) {
                return Err(BuildError::Tool(BadTool::Twice(tool.name().to_owned())));
            }
        }
        let deployment = self.deployment.unwrap_or(&NO_UPSTREAMS);
        let mut settings = Settings::defaults(!deployment.catalog.upstreams.is_empty());
        settings.config_dir = self.config_dir;
        let secrets = Secrets::resolve(deployment, &settings.config_dir()).map_err(BuildError::Secrets)?;
        let redactor = secrets.redactor();
        let (handle, driver) = if let Some(handle) = self.handle.or_else(|| Handle::try_current().ok()) {
            (handle, None)
        } else {
            let driver = Driver::start().map_err(BuildError::System)?;
            (driver.handle.clone(), Some(driver))
        };
        let upstream_settings = UpstreamSettings::new(settings.config_dir(), handle.clone());
        let upstreams = Upstreams::new(deployment, secrets, upstream_settings);
        let mut evaluator = Evaluator::new(&settings, Arc::clone(&upstreams), deployment.programs, redactor.clone());
        evaluator.adjust(self.limits, self.preview_bytes);
        let processors = || std::thread::available_parallelism().map_or(2, usize::from);
        let threads = self.concurrent.unwrap_or_else(processors);
        Ok(Engine {
            evaluator: Arc::new(evaluator),
            redactor,
            tools: self.tools.into(),
            upstreams,
            handle,
            pool: Pool::new(ptc_lisp::STACK_BYTES + ptc_lisp::STACK_SLACK_BYTES, threads),
            _driver: driver,
        })
    }
}

impl Engine {
    /// An engine without tools and upstreams yet.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Its own tools.
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// Runs a program and waits for the answer. Not for asynchronous code, which it would block.
    pub fn run(&self, request: Request) -> Answer {
        let (send, receive) = mpsc::channel();
        self.start(request, move |answer| {
            let _ = send.send(answer);
        });
        receive.recv().unwrap_or_else(|_| Answer::lost())
    }

    /// Runs a program. Dropping the future stops it.
    pub async fn run_async(&self, request: Request) -> Answer {
        let mut stop = StopOnDrop(Some(request.cancel.clone()));
        let (send, receive) = oneshot::channel();
        self.start(request, move |answer| {
            // Nobody waits any more where the future was dropped.
            let _ = send.send(answer);
        });
        let answer = receive.await.unwrap_or_else(|_| Answer::lost());
        // A `Cancel` may be meant for more than this run.
        stop.0 = None;
        answer
    }

    /// Ends connections and child processes of upstreams. Calls after it fail.
    pub async fn shut_down(&self) {
        self.upstreams.shutdown().await;
    }

    fn start(&self, request: Request, done: impl FnOnce(Answer) + Send + 'static) {
        let evaluator = Arc::clone(&self.evaluator);
        let (redactor, kept) = (self.redactor.clone(), self.redactor.clone());
        let calls: Arc<Calls> = Arc::default();
        let (tools, handle) = (Arc::clone(&self.tools), self.handle.clone());
        let app = App { tools, handle, calls: Arc::clone(&calls), warnings: Mutex::default(), request };
        self.pool.spawn(
            move || {
                let Request { call, past, cancel, .. } = &app.request;
                let results = past.results.clone();
                let mut evaluation = evaluator.evaluate_within(call, cancel, past.clone(), &app);
                app.check_result(&mut evaluation, &redactor);
                if evaluation.outcome.is_err() {
                    // Nothing of a program that failed is kept.
                    evaluation.bindings = past.bindings.clone();
                    evaluation.value = None;
                }
                let warnings = std::mem::take(&mut *app.warnings.lock().unwrap_or_else(PoisonError::into_inner));
                (evaluation, results, warnings)
            },
            move |result| {
                let (evaluation, results, warnings) =
                    result.unwrap_or_else(|panicked| (Evaluation::panicked(&panicked), Vec::new(), Vec::new()));
                done(Answer { evaluation, tool_calls: calls.list(), warnings, results, redactor: Some(kept) });
            },
        );
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("tools", &self.tools).finish_non_exhaustive()
    }
}

struct StopOnDrop(Option<Cancel>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.iter().for_each(Cancel::cancel);
    }
}

/// What a request puts around its evaluation.
struct App {
    tools: Arc<[Tool]>,
    handle: Handle,
    calls: Arc<Calls>,
    warnings: Mutex<Vec<String>>,
    request: Request,
}

impl Around for App {
    fn tools(&self) -> Vec<&str> {
        self.tools.iter().map(Tool::name).collect()
    }

    fn context(&self, context: Option<Value>) -> Result<Option<Value>, Failure> {
        let Some((signature, mode)) = &self.request.signature else { return Ok(context) };
        let given = context.unwrap_or_else(|| Value::map([]));
        let checked = signature.check_arguments(&given, *mode);
        checked
            .map(|checked| Some(self.noted("context", checked)))
            .map_err(|findings| failure(Reason::ArgsError, "context", &findings))
    }

    fn host(&self, upstreams: &Arc<ProgramHost>) -> Arc<dyn Host> {
        let (tools, calls) = (Arc::clone(&self.tools), Arc::clone(&self.calls));
        Arc::new(AppHost::new(Arc::clone(upstreams), tools, self.handle.clone(), calls))
    }
}

impl App {
    /// The checked value; its warnings are kept for the answer.
    fn noted(&self, what: &str, checked: Checked) -> Value {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        warnings.extend(checked.warnings.iter().map(|warning| format!("{what}: {warning}")));
        checked.value
    }

    /// Holds the result to the signature of the request.
    fn check_result(&self, evaluation: &mut Evaluation, redactor: &Redactor) {
        let (Some((signature, mode)), Some(value), Ok(_)) = (&self.request.signature, &evaluation.value, &evaluation.outcome)
        else {
            return;
        };
        let checked = signature.check_result(value, *mode).map_err(|findings| {
            let mut why = failure(Reason::ValidationError, "return", &findings);
            why.message = redactor.redact_string(why.message);
            why
        });
        let checked = checked.map(|checked| self.noted("return", checked)).and_then(|value| match to_json_value(&value) {
            Ok(json) => {
                let print::Preview { text, truncated, .. } = print::preview(&value, 512);
                let preview = Preview { text: redactor.redact_string(text), truncated, nil: value.is_nil() };
                Ok(Validated { json: redactor.redact_string(json.get().to_owned()), preview })
            }
            Err(why) => Err(Failure::plain(Reason::ValidationError, format!("return: {why}"))),
        });
        match checked {
            Ok(validated) => evaluation.validated = Some(validated),
            Err(why) => evaluation.outcome = Err(why),
        }
    }
}

fn failure(reason: Reason, what: &str, findings: &Findings) -> Failure {
    Failure::plain(reason, format!("{what} validation errors:\n{findings}"))
}

/// What a run gave.
pub struct Answer {
    /// All that is known of it. Its texts are redacted.
    pub evaluation: Evaluation,
    /// Calls of own tools, in order of their start.
    pub tool_calls: Vec<ToolCall>,
    /// What the signature of the request had coerced or let pass, such as `context: limit: coerced string "10" to int`.
    pub warnings: Vec<String>,
    /// Values of earlier answers, newest first.
    pub(super) results: Vec<Value>,
    redactor: Option<Redactor>,
}

impl Answer {
    fn lost() -> Answer {
        let failure = Failure::plain(Reason::RuntimeError, "internal_error: the evaluation's thread was lost");
        Answer {
            evaluation: Evaluation::refused(failure),
            tool_calls: Vec::new(),
            warnings: Vec::new(),
            results: Vec::new(),
            redactor: None,
        }
    }

    /// The value itself, or why there is none.
    pub fn value(&self) -> Result<&Value, &Failure> {
        static NIL: Value = Value::Nil;
        self.evaluation.outcome.as_ref().map(|_| self.evaluation.value.as_ref().unwrap_or(&NIL))
    }

    /// The value as readable text, cut where it is long; or the reason, such as `timeout`, why there is none.
    pub fn preview(&self) -> Result<&str, &'static str> {
        self.evaluation.outcome.as_ref().map(|value| value.text.as_str()).map_err(|failure| failure.reason.name())
    }

    /// The value as JSON text, where the request had a signature or a schema and the value matches.
    pub fn validated(&self) -> Option<&str> {
        self.evaluation.validated.as_ref().map(|validated| validated.json.as_str())
    }

    /// The lines that the program printed.
    pub fn prints(&self) -> &[String] {
        &self.evaluation.prints
    }

    /// Calls of upstreams, in order of their start.
    pub fn calls(&self) -> &[CallRecord] {
        self.evaluation.calls.as_deref().unwrap_or_default()
    }

    /// How much upstream payload became how small an answer.
    pub fn metrics(&self) -> Metrics {
        Metrics::of(self.preview().unwrap_or_default(), self.prints(), self.calls())
    }

    /// A text without the deployment's secrets.
    pub(crate) fn redacted(&self, text: String) -> String {
        match &self.redactor {
            Some(redactor) => redactor.redact_string(text),
            None => text,
        }
    }

    /// The definitions after the run.
    pub fn bindings(&self) -> &Bindings {
        &self.evaluation.bindings
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer")
            .field("evaluation", &self.evaluation)
            .field("tool_calls", &self.tool_calls)
            .field("warnings", &self.warnings)
            .finish_non_exhaustive()
    }
}

/// A runtime of the engine's own. Its thread lives as long as the engine, which matters to child processes that are to end with
/// the thread that started them.
struct Driver {
    handle: Handle,
    end: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Driver {
    fn start() -> io::Result<Driver> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new().name("ptc-engine".into()).spawn(move || {
            let _ = runtime.block_on(ended);
            // A tool that blocks does not hold up the end.
            runtime.shutdown_background();
        })?;
        Ok(Driver { handle, end: Some(end), thread: Some(thread) })
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
