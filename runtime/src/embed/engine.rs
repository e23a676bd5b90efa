//! Engines, which run programs.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use ptc_catalog::{Deployment, StoredProgram};
use ptc_check::{Finding, host_tools};
#[cfg(feature = "coverage")]
use ptc_lisp::coverage::Collector;
use ptc_lisp::host::Host;
use ptc_lisp::limits::Cancel;
use ptc_lisp::signature::{Checked, Findings};
use ptc_lisp::{Bindings, Program, Value};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::answer::Answer;
use super::builder::{Builder, Driver};
use super::event::Listener;
use super::host::{AppHost, Calls};
use super::request::Request;
use super::tool::Tool;
use crate::fibers::Fibers;
use crate::log::SinkGuard;
use crate::schedule::{AdmissionPermit, Scheduler};
use crate::secrets::Redactor;
use crate::upstream::{ProgramHost, UpstreamError, Upstreams};
use ptc_engine::evaluation::to_json::to_json_value;
use ptc_engine::evaluation::{EvalHooks, Evaluation, Evaluator, Failure, PriorState, Reason, Validated};

/// Runs programs. It can be shared between threads. Programs share only tools and upstreams.
pub struct Engine {
    pub(super) deployment: &'static Deployment,
    pub(super) evaluator: Arc<Evaluator>,
    pub(super) redactor: Redactor,
    pub(super) tools: Arc<[Tool]>,
    pub(super) upstreams: Arc<Upstreams>,
    pub(super) handle: Handle,
    pub(super) fibers: Arc<Fibers>,
    pub(super) scheduler: Arc<Scheduler>,
    #[cfg(feature = "coverage")]
    pub(super) coverage: Option<Arc<Collector>>,
    pub(super) _log_guard: Option<SinkGuard>,
    // The last field, since it must outlive everything that runs on it.
    pub(super) _driver: Option<Driver>,
}

impl Engine {
    /// Returns a builder without tools and upstreams.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Returns the own tools.
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// Returns the stored programs of the deployment, sorted by name. They can be run with [`Request::stored`], and contain the
    /// schemas for a model.
    pub fn programs(&self) -> &'static [StoredProgram] {
        self.deployment.programs
    }

    /// Connects to all MCP upstreams now. Otherwise the first call of each connects.
    ///
    /// # Errors
    ///
    /// Returns each upstream that cannot be reached, with the reason.
    pub async fn connect(&self) -> Result<(), Vec<(&'static str, UpstreamError)>> {
        let upstreams = Arc::clone(&self.upstreams);
        let lost = |_| Err(vec![("", UpstreamError::unavailable("the engine's runtime has ended"))]);
        self.handle.spawn(async move { upstreams.connect_all().await }).await.unwrap_or_else(lost)
    }

    /// Runs a program and waits for the answer. It blocks, and must not be called in asynchronous code.
    pub fn run(&self, request: Request) -> Answer {
        let (send, receive) = mpsc::channel();
        self.start(request, move |answer| {
            let _ = send.send(answer);
        });
        receive.recv().unwrap_or_else(|_| Answer::lost())
    }

    /// Runs a program. Dropping the future cancels it.
    pub async fn run_async(&self, request: Request) -> Answer {
        let mut stop = StopOnDrop(Some(request.cancel.clone()));
        let (send, receive) = oneshot::channel();
        self.start(request, move |answer| {
            // The receiver is gone if the future was dropped.
            let _ = send.send(answer);
        });
        let answer = receive.await.unwrap_or_else(|_| Answer::lost());
        // The run has ended and must not be cancelled, since the `Cancel` may also apply to other runs.
        stop.0 = None;
        answer
    }

    /// Ends connections and child processes of upstreams. Later calls fail.
    pub async fn shut_down(&self) {
        let upstreams = Arc::clone(&self.upstreams);
        // The task runs on the engine's runtime, so that the caller needs none. If that runtime has ended, the connections have
        // ended too.
        let _ = self.handle.spawn(async move { upstreams.shutdown().await }).await;
    }

    /// Inserts the stored program into a request that names one.
    fn resolve(&self, request: &mut Request) -> Result<(), Failure> {
        let Some(name) = &request.stored else { return Ok(()) };
        let Some(program) = self.deployment.program(name) else {
            let names = self.deployment.programs.iter().map(|program| program.name);
            let near = ptc_text::closest_match(name, names).map(|near| format!("; did you mean {near}?"));
            let message = format!("there is no stored program {name}{}", near.unwrap_or_default());
            return Err(Failure::plain(Reason::ArgsError, message));
        };
        let call = &mut request.call;
        (call.program, call.stored) = (program.source.to_owned(), Some(program));
        call.context.get_or_insert_with(|| "{}".to_owned());
        Ok(())
    }

    fn start<F: FnOnce(Answer) + Send + 'static>(&self, mut request: Request, done: F) {
        if let Err(failure) = self.resolve(&mut request) {
            return done(Answer::refused(failure));
        }
        let evaluator = Arc::clone(&self.evaluator);
        let (redactor, kept) = (self.redactor.clone(), self.redactor.clone());
        let calls = Arc::new(Calls::new(request.listener.clone()));
        let (tools, handle) = (Arc::clone(&self.tools), self.handle.clone());
        let listener = request.listener.clone().map(|listener| (listener, self.redactor.clone()));
        let client_key = request.client_key.clone();
        let (cancel, bytes) = (request.cancel.clone(), request.call.bytes());
        let app = App {
            tools,
            handle,
            calls: Arc::clone(&calls),
            listener,
            warnings: Mutex::default(),
            request,
            #[cfg(feature = "coverage")]
            coverage: self.coverage.clone(),
        };
        let (fibers, retry_after_ms, entering) = (Arc::clone(&self.fibers), self.scheduler.retry_after_ms(), cancel.clone());
        let counting = Arc::clone(&self.scheduler);
        let run = move |permit: AdmissionPermit, done: F| {
            let processor = permit.lease(&cancel);
            fibers.spawn(
                move || {
                    let Request { call, past, cancel, .. } = &app.request;
                    let earlier = PriorState { bindings: Bindings::default(), ..past.clone() };
                    let mut evaluation = evaluator.evaluate_within(call, cancel, past.clone(), Some(processor), &app);
                    app.check_result(&mut evaluation, &redactor);
                    if evaluation.outcome.is_err() {
                        // The definitions of a failed program are discarded.
                        evaluation.bindings = past.bindings.clone();
                        evaluation.value = None;
                    }
                    let warnings = std::mem::take(&mut *app.warnings.lock().unwrap_or_else(PoisonError::into_inner));
                    (evaluation, earlier, warnings)
                },
                move |result| {
                    result.as_ref().err().into_iter().for_each(|error| counting.count_ended(error));
                    let (mut evaluation, past, warnings) = result.unwrap_or_else(|error| {
                        (Evaluation::unfinished(&error, &kept, retry_after_ms), PriorState::default(), Vec::new())
                    });
                    let tool_calls = calls.list();
                    // The embedding program owns the value from here on, so that its memory no longer counts.
                    evaluation.processor = None;
                    drop(permit);
                    done(Answer { evaluation, tool_calls, warnings, past, redactor: Some(kept) });
                },
            );
        };
        self.scheduler.enter(&client_key, bytes, &entering, move |permit| match permit {
            Ok(permit) => run(permit, done),
            Err(why) => done(Answer::refused(Failure::rejected(why, retry_after_ms))),
        });
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

/// The hooks of a request.
struct App {
    tools: Arc<[Tool]>,
    handle: Handle,
    calls: Arc<Calls>,
    listener: Option<(Listener, Redactor)>,
    warnings: Mutex<Vec<String>>,
    request: Request,
    #[cfg(feature = "coverage")]
    coverage: Option<Arc<Collector>>,
}

impl EvalHooks for App {
    fn tools(&self) -> Vec<&str> {
        self.tools.iter().map(Tool::name).collect()
    }

    fn check(&self, program: &Program) -> Vec<Finding> {
        let tools: Vec<_> = self.tools.iter().map(Tool::outline).collect();
        host_tools::check(program, &tools)
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
        Arc::new(AppHost::new(Arc::clone(upstreams), tools, self.handle.clone(), calls, self.listener.clone()))
    }

    #[cfg(feature = "coverage")]
    fn coverage(&self) -> Option<&Collector> {
        self.coverage.as_deref()
    }
}

impl App {
    /// Returns the checked value. Its warnings are stored for the answer.
    fn noted(&self, what: &str, checked: Checked) -> Value {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        warnings.extend(checked.warnings.iter().map(|warning| format!("{what}: {warning}")));
        checked.value
    }

    /// Checks the result against the request's signature. A mismatch is a `runtime_error`, as the tool protocol documents:
    /// `validation_error` is for JSON Schemas.
    fn check_result(&self, evaluation: &mut Evaluation, redactor: &Redactor) {
        let (Some((signature, mode)), Some(value), Ok(_)) = (&self.request.signature, &evaluation.value, &evaluation.outcome)
        else {
            return;
        };
        let checked = signature.check_result(value, *mode).map_err(|findings| {
            let mut why = failure(Reason::RuntimeError, "return", &findings);
            why.message = redactor.redact_string(why.message);
            why
        });
        let checked = checked.map(|checked| self.noted("return", checked)).and_then(|value| match to_json_value(&value) {
            Ok(json) => Ok(Validated::new(&value, json.get().to_owned(), value.depth(), redactor)),
            Err(why) => Err(Failure::plain(Reason::RuntimeError, format!("return: {why}"))),
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
