//! Runs programs: takes limits, host and context, and returns the outcome.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::Value;
use crate::args::INFINITE_SEQ_HINT;
use crate::bindings::Bindings;
use crate::error::{Error, ErrorKind};
use crate::eval::{Frame, Globals};
use crate::failed_calls::FailedCalls;
use crate::host::{Account, Host, NoHost};
use crate::limits::{Cancel, Limits};
use crate::machine::{Fault, Gauge, Journal, Machine, Meters, RunContext};
use crate::missing_keys::MissingKey;
use crate::mixed_comparisons::MixedComparison;
use crate::parallel::SLACK;
use crate::program::Program;
use crate::share::Share;
use crate::value::each_distinct;

/// Bytes of native stack that a run may use. A thread for [`Run::execute`] needs this much and [`STACK_SLACK_BYTES`] more.
pub const STACK_BYTES: usize = 16 * 1024 * 1024;

/// Bytes of native stack in addition to [`STACK_BYTES`], for code between two checks of the stack depth.
pub const STACK_SLACK_BYTES: usize = SLACK;

/// One run of a program.
///
/// ```
/// use ptc_lisp::{Program, Run, Value};
///
/// let program = Program::compile("(reduce + data/numbers)")?;
/// let context = Value::map([(Value::keyword("numbers"), Value::vector(vec![1.into(), 2.into()]))]);
/// let outcome = Run::new(&program).context(context).execute_on_thread();
/// assert_eq!(outcome.result?, Value::int(3));
/// # Ok::<(), ptc_lisp::Error>(())
/// ```
#[must_use]
pub struct Run<'p> {
    /// Each method moves the run, and a box is cheaper to move than its fields.
    inputs: Box<Inputs<'p>>,
}

/// What a run starts with.
struct Inputs<'p> {
    program: &'p Program,
    limits: Limits,
    host: Option<Arc<dyn Host>>,
    context: RunContext,
    input_bytes: i64,
    has_answers: bool,
    bindings: Bindings,
    gauge: Option<Gauge>,
    cancel: Cancel,
    started: Option<Instant>,
    stack: usize,
    share: Option<Arc<dyn Share>>,
}

/// The outcome of a run.
#[derive(Debug)]
pub struct Outcome {
    /// The program's value, or the error that ended it.
    pub result: Result<Value, Error>,
    /// Whether `(return v)` ended the program.
    pub returned: bool,
    /// The lines of `println`, in order.
    pub prints: Vec<String>,
    /// The definitions after the run, or those from before it if the run failed.
    pub bindings: Bindings,
    /// The journal after the run, including tasks that were completed before a fault. Nil if the run had no journal.
    pub journal: Value,
    /// Summaries of `(step-done id summary)`, sorted by id. Empty if the run failed.
    pub progress: Vec<(String, String)>,
    /// Failed calls, and whether their status was read. Showing the result later counts as reading, too.
    pub failed_calls: FailedCalls,
    /// Keys that were looked up in answers of tools and are missing there.
    pub missing_keys: Vec<MissingKey>,
    /// Keys that the program read as `data/key` and that the context does not have.
    pub missing_context_keys: Vec<String>,
    /// Comparisons of values of different kinds.
    pub mixed_comparison: Option<MixedComparison>,
    /// Steps of all threads.
    pub steps: u64,
    /// The maximum of live bytes that were observed or requested. 0 without a gauge.
    pub peak_bytes: u64,
    /// Wall-clock time since the start of the run.
    pub duration: Duration,
}

impl<'p> Run<'p> {
    /// Makes a run of `program` with the default limits, no host and an empty context.
    pub fn new(program: &'p Program) -> Self {
        let inputs = Inputs {
            program,
            limits: Limits::default(),
            host: None,
            context: RunContext::default(),
            input_bytes: 0,
            has_answers: false,
            bindings: Bindings::default(),
            gauge: None,
            cancel: Cancel::default(),
            started: None,
            stack: STACK_BYTES,
            share: None,
        };
        Run { inputs: Box::new(inputs) }
    }

    /// Sets the resource limits.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.inputs.limits = limits;
        self
    }

    /// Sets the environment of the program.
    pub fn host(mut self, host: Arc<dyn Host>) -> Self {
        self.inputs.host = Some(host);
        self
    }

    /// Sets the map whose keys the program reads as `data/key`.
    pub fn context(mut self, context: Value) -> Self {
        self.inputs.context.context = context;
        self
    }

    /// Declares that the bindings and the history contain parts of answers of earlier runs, so that keys that are missing there
    /// are recorded.
    pub fn has_answers(mut self) -> Self {
        self.inputs.has_answers = true;
        self
    }

    /// Counts `bytes` that were allocated for the inputs, such as the context, as memory of the program. They are not reported to
    /// the [`Share`].
    pub fn input_bytes(mut self, bytes: i64) -> Self {
        self.inputs.input_bytes = bytes;
        self
    }

    /// Sets the last results, newest first: `*1`, `*2`, `*3`.
    pub fn history(mut self, results: Vec<Value>) -> Self {
        self.inputs.context.history = results;
        self
    }

    /// Sets the definitions of earlier programs. They must be those that this program was compiled with.
    pub fn bindings(mut self, bindings: Bindings) -> Self {
        self.inputs.bindings = bindings;
        self
    }

    /// Sets the memory of `(task id …)`: a map from ids to values, such as [`Outcome::journal`] of an earlier run. Without it
    /// every task is evaluated.
    pub fn journal(mut self, tasks: Value) -> Self {
        self.inputs.context.journal = Some(Journal::new(tasks));
        self
    }

    /// Sets the function that reads the calling thread's net allocated bytes. Without it only single large allocations are
    /// limited.
    pub fn gauge(mut self, gauge: Gauge) -> Self {
        self.inputs.gauge = Some(gauge);
        self
    }

    /// Sets the handle that stops the run from another thread.
    pub fn cancel(mut self, cancel: Cancel) -> Self {
        self.inputs.cancel = cancel;
        self
    }

    /// Measures the wall-clock time from `started`, for instance from before the program was compiled.
    pub fn started(mut self, started: Instant) -> Self {
        self.inputs.started = Some(started);
        self
    }

    /// Sets the run's share of the processors and the memory of the process. The calling thread of [`Run::execute`] must have
    /// acquired a processor already.
    pub fn share(mut self, share: Arc<dyn Share>) -> Self {
        self.inputs.share = Some(share);
        self
    }

    /// Sets the bytes of native stack that the run may use on its thread, instead of [`STACK_BYTES`]. It bounds the nesting of
    /// calls.
    pub fn stack_bytes(mut self, bytes: usize) -> Self {
        self.inputs.stack = bytes;
        self
    }

    /// Runs on the calling thread, which must have the native stack described at [`STACK_BYTES`].
    pub fn execute(self) -> Outcome {
        let inputs = *self.inputs;
        let started = inputs.started.unwrap_or_else(Instant::now);
        let meters = Arc::new(Meters::new(inputs.limits, inputs.cancel, inputs.gauge, started, inputs.share));
        meters.count_inputs(inputs.input_bytes);
        if inputs.has_answers {
            meters.missing_keys.start();
        }
        let host = inputs.host.unwrap_or_else(|| Arc::new(NoHost));
        let account = Account::new(Arc::clone(&meters));
        host.begin_run(&account);
        if let Some(share) = &meters.share {
            share.begin_run(&account);
        }
        let globals = Rc::new(globals(inputs.program, &inputs.bindings));
        let run_context = Arc::new(inputs.context);
        let mut machine = Machine::new(Arc::clone(&meters), host, Arc::clone(&run_context), Rc::clone(&globals), inputs.stack);
        let result = if inputs.bindings.is_prefix_of(&inputs.program.unit.globals) {
            let result = top_level(inputs.program, &mut machine, &globals);
            machine.checked_result(result)
        } else {
            let message = "the program was compiled for other bindings than those of the run";
            Err(machine.raise_with_hint(ErrorKind::RuntimeError, message, "compile it again with these bindings"))
        };
        let fault = machine.fault.take();
        let prints = machine.finish();
        let (result, returned) = match (result, fault) {
            (Ok(value), _) => (Ok(value), false),
            (Err(_), Some(fault)) if fault.returned => (Ok(fault.value.unwrap_or_default()), true),
            (Err(_), fault) => (Err(error(inputs.program, fault)), false),
        };
        let (bindings, progress) = match &result {
            Ok(_) if globals.is_empty() => (inputs.bindings, machine.take_progress()),
            Ok(_) => (Bindings::of_globals(&globals), machine.take_progress()),
            Err(_) => (inputs.bindings, Vec::new()),
        };
        drop(machine);
        let earlier = bindings.places().filter_map(|(_, value)| value).chain(&run_context.history);
        let missing_keys = meters.missing_keys.take(earlier.filter(|_| inputs.has_answers));
        let journal = run_context.journal.as_ref().map(Journal::tasks).unwrap_or_default();
        Outcome {
            result,
            returned,
            prints,
            bindings,
            journal,
            progress,
            failed_calls: meters.failed_calls.clone(),
            missing_keys,
            missing_context_keys: meters.missing_keys.take_of_context(),
            mixed_comparison: meters.mixed_comparisons.take(),
            steps: meters.steps.load(Ordering::Relaxed),
            peak_bytes: meters.peak(),
            duration: meters.started.elapsed(),
        }
    }

    /// Runs on a new thread with enough native stack, and waits for it.
    pub fn execute_on_thread(self) -> Outcome {
        let started = Instant::now();
        let (stack, before) = (self.inputs.stack + STACK_SLACK_BYTES, self.inputs.bindings.clone());
        let outcome = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("ptc-run".into()).stack_size(stack);
            thread.spawn_scoped(scope, || self.execute()).ok().and_then(|running| running.join().ok())
        });
        outcome.unwrap_or_else(|| lost_thread_outcome(started, before))
    }
}

fn top_level(program: &Program, m: &mut Machine, globals: &Globals) -> Result<Value, crate::machine::Raised> {
    // The first check, so that a run without time left or a cancelled run does not start.
    m.begin()?;
    let mut slots = vec![Value::Nil; program.unit.slots as usize];
    let result = (program.code)(m, &mut Frame { slots: &mut slots, this: &program.top, globals });
    // A fault without a span is attributed to the whole program.
    let value = result.map_err(|raised| m.at(raised, program.unit.body.span))?;
    if m.meters.made_infinite_seq.load(Ordering::Relaxed) && has_infinite(&value) {
        let raised =
            m.raise_with_hint(ErrorKind::TypeError, "the program's value contains an infinite sequence", INFINITE_SEQ_HINT);
        return Err(m.at(raised, program.unit.body.span));
    }
    Ok(value)
}

fn has_infinite(value: &Value) -> bool {
    let mut found = false;
    each_distinct([value], |part| {
        found |= matches!(part, Value::InfiniteSeq(_));
        !found
    });
    found
}

fn globals(program: &Program, bindings: &Bindings) -> Globals {
    let names = Arc::clone(&program.unit.globals);
    if bindings.is_empty() { Globals::new(names) } else { bindings.to_globals(names) }
}

fn error(program: &Program, fault: Option<Box<Fault>>) -> Error {
    let fault = fault.map_or_else(|| Fault::new(ErrorKind::InternalError, "recur outside of a loop"), |fault| *fault);
    fault.into_error(&program.source)
}

/// The outcome if the thread could not start or panicked.
fn lost_thread_outcome(started: Instant, bindings: Bindings) -> Outcome {
    let fault = Fault::new(ErrorKind::InternalError, "the evaluation's thread was lost");
    Outcome {
        result: Err(fault.into_error(&Arc::from(""))),
        returned: false,
        prints: Vec::new(),
        bindings,
        journal: Value::Nil,
        progress: Vec::new(),
        failed_calls: FailedCalls::default(),
        missing_keys: Vec::new(),
        missing_context_keys: Vec::new(),
        mixed_comparison: None,
        steps: 0,
        peak_bytes: 0,
        duration: started.elapsed(),
    }
}
