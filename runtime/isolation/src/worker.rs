//! The worker's side: confines itself, then evaluates one program at a time.

use std::io::{self, BufReader};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use ptc_catalog::Deployment;
use ptc_engine::evaluation::isolation::PortableEvaluation;
use ptc_engine::evaluation::{Call, CalledTools, Evaluation, Evaluator, Failure, PriorState, Reason};
use ptc_lisp::host::Account;
use ptc_lisp::image::{self, DecodeError, DecodeLimits};
use ptc_lisp::limits::{Cancel, Limits};
use ptc_lisp::{Bindings, Kind, Share};
use ptc_schedule::alloc;
use ptc_schedule::fibers::Fibers;
use ptc_schedule::pool::JobError;
use ptc_secrets::{Redactor, Secrets};
use ptc_upstream::access::PolicyEvaluator;
use ptc_upstream::{UpstreamSettings, Upstreams};
use serde_bytes::ByteBuf;

use crate::confinement;
use crate::connection::{self, Connection, lock};
use crate::message::{self, Assignment, Done, FromWorker, Settings, ToWorker, WireLimits};
use crate::remote_host::RemoteHooks;
use crate::remote_share::RemoteShare;

/// The first argument of a worker's command line. The second one is the name of the deployment.
pub const ARGUMENT: &str = "--isolated-worker";

/// A deployment without credentials.
static NO_CREDENTIALS: Deployment = Deployment::EMPTY;

/// A program that runs.
struct Current {
    cancel: Cancel,
    account: Arc<Mutex<Option<Account>>>,
}

struct Worker {
    connection: Arc<Connection>,
    deployment: &'static Deployment,
    policy: Option<Arc<dyn PolicyEvaluator>>,
    evaluator: Evaluator,
    fibers: Fibers,
    current: Option<Current>,
    // Without a runtime there is no handle, which clients of upstreams need. They are never used here.
    _runtime: tokio::runtime::Runtime,
}

/// Runs a worker, until the server closes the socket. `policy` is the evaluator of the deployment's policy, if there is one.
pub fn main(deployment: &'static Deployment, policy: Option<Arc<dyn PolicyEvaluator>>) -> ExitCode {
    // Standard error is not read. The server logs the message of a panic.
    std::panic::set_hook(Box::new(|_| {}));
    match serve(deployment, policy) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn serve(deployment: &'static Deployment, policy: Option<Arc<dyn PolicyEvaluator>>) -> io::Result<()> {
    confinement::close_inherited()?;
    let mut input = connection::socket()?;
    let connection = Arc::new(Connection::new(input.try_clone()?));
    let Some(ToWorker::Settings(settings)) = message::read(&mut input)? else { return Ok(()) };
    end_with(settings.server)?;
    let start = || Worker::new(deployment, &settings, Arc::clone(&connection));
    let started = if settings.is_confined {
        confinement::apply(settings.memory_bytes, start)
    } else {
        start().map_err(confinement::Error::Threads)
    };
    let mut worker = match started {
        Ok(worker) => worker,
        Err(why) => {
            connection.send(&FromWorker::Ready(Err(why.to_string())));
            return Ok(());
        }
    };
    worker.policy = policy;
    connection.send(&FromWorker::Ready(Ok(())));
    let mut input = BufReader::new(input);
    while let Some(message) = message::read(&mut input)? {
        worker.receive(message);
    }
    // A program may still run.
    std::process::exit(0)
}

/// Makes the kernel kill this process when the thread of the server that has started it ends. A worker also ends when its socket
/// is closed, but one that a program has taken over may not read its socket.
#[cfg(target_os = "linux")]
fn end_with(server: u32) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    // The server may have ended before.
    if std::os::unix::process::parent_id() == server { Ok(()) } else { Err(io::Error::other("the server has ended")) }
}

#[cfg(not(target_os = "linux"))]
fn end_with(_: u32) -> io::Result<()> {
    Ok(())
}

impl Worker {
    fn new(deployment: &'static Deployment, settings: &Settings, connection: Arc<Connection>) -> io::Result<Worker> {
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        let no_secrets = Secrets::resolve_available(&NO_CREDENTIALS, None, std::path::Path::new(""));
        let upstream_settings = UpstreamSettings {
            max_calls_per_program: settings.max_calls_per_program,
            ..UpstreamSettings::new("", runtime.handle().clone())
        };
        let upstreams = Upstreams::new(deployment, no_secrets, upstream_settings);
        let limits = Limits::default().memory_bytes(settings.memory_bytes);
        let evaluator = Evaluator::new(limits, settings.preview_bytes, upstreams, deployment.programs, Redactor::none());
        let fibers = Fibers::started()?;
        Ok(Worker { connection, deployment, policy: None, evaluator, fibers, current: None, _runtime: runtime })
    }

    fn receive(&mut self, message: ToWorker) {
        match message {
            ToWorker::Run(assignment) => self.begin(*assignment),
            ToWorker::Reply { id, reply, link } => self.connection.replied(id, reply, link),
            ToWorker::Answer { id, answer } => self.connection.answered(id, answer),
            ToWorker::Cancel => {
                if let Some(current) = &self.current {
                    current.cancel.cancel();
                }
            }
            ToWorker::End(why) => {
                let account = self.current.as_ref().and_then(|current| lock(&current.account).clone());
                match (account, &self.current) {
                    (Some(account), _) => account.end(why),
                    // The program has not begun.
                    (None, Some(current)) => current.cancel.cancel(),
                    (None, None) => {}
                }
            }
            ToWorker::Settings(_) => {}
        }
    }

    fn begin(&mut self, assignment: Assignment) {
        let current = Current { cancel: Cancel::default(), account: Arc::default() };
        let (cancel, account) = (current.cancel.clone(), Arc::clone(&current.account));
        self.current = Some(current);
        let share = Arc::new(RemoteShare::new(Arc::clone(&self.connection)));
        let connection = Arc::clone(&self.connection);
        let now = Instant::now();
        let started = now.checked_sub(assignment.elapsed).unwrap_or(now);
        let (catalog, has_asked) = (self.deployment.catalog, Arc::default());
        let hooks = RemoteHooks { connection, share, account, catalog, started, has_asked };
        let state = assignment.access.as_deref();
        // The server enforces the limits of owners, so that their name is not needed here.
        let access = state.zip(self.policy.as_ref()).map(|(state, policy)| policy.restore("".into(), state));
        let (evaluator, deployment) = (self.evaluator.permitting(access), self.deployment);
        let work = move || evaluate(&evaluator, deployment, assignment, &cancel, &hooks);
        let connection = Arc::clone(&self.connection);
        self.fibers.spawn(work, move |done| {
            let (done, values) = done.unwrap_or_else(|error| {
                let mut evaluation = Evaluation::unfinished(&error, &Redactor::none(), 0);
                let panic = if let JobError::Panicked(message) = error { Some(message) } else { None };
                (Done { panic, ..without_state(&mut evaluation) }, evaluation)
            });
            connection.send(&FromWorker::Done(Box::new(done)));
            // To release many values takes a while, for which the client need not wait.
            drop(values);
        });
    }
}

fn evaluate(
    evaluator: &Evaluator,
    deployment: &'static Deployment,
    assignment: Assignment,
    cancel: &Cancel,
    hooks: &RemoteHooks,
) -> (Done, Box<Evaluation>) {
    let Assignment { program, context, output_schema, stored, limits, elapsed: _, past, access: _, called, is_kept } = assignment;
    let limits = Limits::from(limits);
    let past = match past.map(|image| prior_state(&image, &limits, cancel, hooks)).transpose() {
        Ok(past) => past.unwrap_or_default(),
        Err(why) => {
            let failure = match why {
                DecodeError::OutOfTime if cancel.is_cancelled() => Failure::plain(Reason::Cancelled, "the call was cancelled"),
                DecodeError::OutOfTime => {
                    Failure::plain(Reason::Timeout, "the session could not be loaded within the time limit of the program")
                }
                DecodeError::OutOfMemory(_) | DecodeError::Invalid(_) => {
                    Failure::plain(Reason::MemoryLimit, format!("the session cannot be loaded: {why}"))
                }
            };
            let mut evaluation = Evaluation::refused(failure);
            return (without_state(&mut evaluation), evaluation);
        }
    };
    let before = past.bindings.clone();
    let past = PriorState { called: CalledTools::of_pairs(called), ..past };
    let stored = stored.and_then(|name| deployment.program(&name));
    let call = Call { program, context, output_schema, stored };
    let mut evaluation = evaluator.with_limits(limits).evaluate_within(&call, cancel, past, None, hooks);
    let state = state(&evaluation, is_kept);
    let changed = evaluation.bindings.changes(&before).map(|(name, _)| name.to_owned()).collect();
    (Done { state, changed, ..without_state(&mut evaluation) }, evaluation)
}

fn without_state(evaluation: &mut Evaluation) -> Done {
    let has_run = evaluation.calls.is_some();
    Done { evaluation: PortableEvaluation::take(evaluation), state: None, changed: Vec::new(), has_run, panic: None }
}

/// Decodes the definitions and results of earlier programs. Their memory counts as that of the program.
fn prior_state(image: &[u8], limits: &Limits, cancel: &Cancel, hooks: &RemoteHooks) -> Result<PriorState, DecodeError> {
    let before = alloc::live_bytes();
    let until = hooks.started.checked_add(limits.wall_clock);
    let memory = Some((limits.memory_bytes, alloc::live_bytes as fn() -> i64));
    let decoding = DecodeLimits { memory, until, cancel: cancel.clone(), data_only: false };
    let (bindings, results) = image::decode_within(image, &decoding)?;
    hooks.share.report_bytes(alloc::live_bytes() - before);
    Ok(PriorState { bindings, results, ..PriorState::default() })
}

/// Returns the image of what the server keeps of an evaluation. Answers show a definition in another way than other values, so that
/// the server needs it.
fn state(evaluation: &Evaluation, is_kept: bool) -> Option<Result<ByteBuf, String>> {
    if evaluation.outcome.is_err() {
        return None;
    }
    let value = evaluation.value.as_ref().filter(|value| is_kept || value.kind() == Kind::Var);
    if !is_kept && value.is_none() {
        return None;
    }
    let no_bindings = Bindings::default();
    let bindings = if is_kept { &evaluation.bindings } else { &no_bindings };
    let image = image::encode(bindings, value.map(std::slice::from_ref).unwrap_or_default());
    Some(image.map(ByteBuf::from).map_err(|error| error.to_string()))
}

impl From<WireLimits> for Limits {
    fn from(limits: WireLimits) -> Limits {
        Limits::default()
            .wall_clock(limits.wall_clock)
            .memory_bytes(limits.memory_bytes)
            .call_depth(limits.call_depth)
            .steps(limits.steps)
            .loop_iterations(limits.loop_iterations)
            .parallel_workers(limits.parallel_workers)
            .tool_calls(limits.tool_calls)
            .print_bytes(limits.print_bytes)
    }
}
