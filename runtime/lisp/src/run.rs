//! Running a program: limits, host and context in, outcome out.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::Value;
use crate::bindings::Bindings;
use crate::convert::BOUND_IT;
use crate::error::{Error, ErrorKind};
use crate::eval::{Frame, Globals};
use crate::failed_calls::FailedCalls;
use crate::host::{Account, Host, NoHost};
use crate::limits::{Cancel, Limits};
use crate::machine::{Fault, Gauge, Journal, Machine, Meters, Surroundings};
use crate::missing_keys::MissingKey;
use crate::parallel::SLACK;
use crate::program::Program;
use crate::share::Share;
use crate::value::each_distinct;

/// Native stack that a run may use. A thread for [`Run::execute`] needs this much and [`STACK_SLACK_BYTES`] more.
pub const STACK_BYTES: usize = 16 * 1024 * 1024;

/// Native stack on top of [`STACK_BYTES`], for what happens between two looks at the depth of the stack.
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
    program: &'p Program,
    limits: Limits,
    host: Option<Arc<dyn Host>>,
    surroundings: Surroundings,
    bindings: Bindings,
    gauge: Option<Gauge>,
    cancel: Cancel,
    started: Option<Instant>,
    stack: usize,
    share: Option<Arc<dyn Share>>,
}

/// What a run came to.
#[derive(Debug)]
pub struct Outcome {
    /// The program's value, or why there is none.
    pub result: Result<Value, Error>,
    /// Whether the value was given by `(return v)`.
    pub returned: bool,
    /// The lines of `println`, in order.
    pub prints: Vec<String>,
    /// The definitions after the run; those from before it where it failed.
    pub bindings: Bindings,
    /// The journal after the run, with the tasks that were done before a fault; nil where the run had none.
    pub journal: Value,
    /// Summaries of `(step-done id summary)` by id, in order of the ids; none where the run failed.
    pub progress: Vec<(String, String)>,
    /// Calls that failed and whether the program has looked at their status. What shows the value later counts as a look, too.
    pub failed_calls: FailedCalls,
    /// Keys that were looked up in answers of tools and are not there.
    pub missing_keys: Vec<MissingKey>,
    /// Steps taken, over all threads.
    pub steps: u64,
    /// Most live bytes that were seen or asked for; 0 without a gauge.
    pub peak_bytes: u64,
    /// Wall clock from the start of the run.
    pub duration: Duration,
}

impl<'p> Run<'p> {
    /// A run of `program` with the limits of a library, no host and an empty context.
    pub fn new(program: &'p Program) -> Self {
        Run {
            program,
            limits: Limits::default(),
            host: None,
            surroundings: Surroundings::default(),
            bindings: Bindings::default(),
            gauge: None,
            cancel: Cancel::default(),
            started: None,
            stack: STACK_BYTES,
            share: None,
        }
    }

    /// What the program may use.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// What the program can reach.
    pub fn host(mut self, host: Arc<dyn Host>) -> Self {
        self.host = Some(host);
        self
    }

    /// A map whose keys the program reads as `data/key`.
    pub fn context(mut self, context: Value) -> Self {
        self.surroundings.context = context;
        self
    }

    /// The last results, newest first: `*1`, `*2`, `*3`.
    pub fn history(mut self, results: Vec<Value>) -> Self {
        self.surroundings.history = results;
        self
    }

    /// The definitions of earlier programs, which this one was compiled with.
    pub fn bindings(mut self, bindings: Bindings) -> Self {
        self.bindings = bindings;
        self
    }

    /// What `(task id …)` remembers: a map from ids to values, such as [`Outcome::journal`] of an earlier run. Without one every
    /// task is evaluated.
    pub fn journal(mut self, tasks: Value) -> Self {
        self.surroundings.journal = Some(Journal::new(tasks));
        self
    }

    /// Reads the calling thread's net allocated bytes. Without one only single large growths are limited.
    pub fn gauge(mut self, gauge: Gauge) -> Self {
        self.gauge = Some(gauge);
        self
    }

    /// Stops the run from another thread.
    pub fn cancel(mut self, cancel: Cancel) -> Self {
        self.cancel = cancel;
        self
    }

    /// Counts the wall clock from `started`, for instance from before the program was compiled.
    pub fn started(mut self, started: Instant) -> Self {
        self.started = Some(started);
        self
    }

    /// What the run has of the processors and the memory of the process. The calling thread of [`Run::execute`] must have acquired a
    /// processor already.
    pub fn share(mut self, share: Arc<dyn Share>) -> Self {
        self.share = Some(share);
        self
    }

    /// Native stack that the run may use on its thread, instead of [`STACK_BYTES`]; it bounds how deep calls can nest.
    pub fn stack_bytes(mut self, bytes: usize) -> Self {
        self.stack = bytes;
        self
    }

    /// Runs on the calling thread, which must have the native stack that [`STACK_BYTES`] speaks of.
    pub fn execute(self) -> Outcome {
        let started = self.started.unwrap_or_else(Instant::now);
        let meters = Arc::new(Meters::new(self.limits, self.cancel, self.gauge, started, self.share));
        let host = self.host.unwrap_or_else(|| Arc::new(NoHost));
        let account = Account::new(Arc::clone(&meters));
        host.begin_run(&account);
        if let Some(share) = &meters.share {
            share.begin_run(&account);
        }
        let globals = Rc::new(globals(self.program, &self.bindings));
        let surroundings = Arc::new(self.surroundings);
        let mut machine = Machine::new(Arc::clone(&meters), host, Arc::clone(&surroundings), Rc::clone(&globals), self.stack);
        let result = if self.bindings.is_prefix_of(&self.program.unit.globals) {
            let result = top_level(self.program, &mut machine, &globals);
            machine.settled(result)
        } else {
            let message = "the program was compiled for other bindings than those of the run";
            Err(machine.raise_with_hint(ErrorKind::RuntimeError, message, "compile it again with these bindings"))
        };
        let fault = machine.fault.take();
        let prints = machine.finish();
        let (result, returned) = match (result, fault) {
            (Ok(value), _) => (Ok(value), false),
            (Err(_), Some(fault)) if fault.returned => (Ok(fault.value.unwrap_or_default()), true),
            (Err(_), fault) => (Err(error(self.program, fault)), false),
        };
        let (bindings, progress) = match &result {
            Ok(_) if globals.is_empty() => (self.bindings, machine.take_progress()),
            Ok(_) => (Bindings::of_globals(&globals), machine.take_progress()),
            Err(_) => (self.bindings, Vec::new()),
        };
        drop(machine);
        let journal = surroundings.journal.as_ref().map(Journal::tasks).unwrap_or_default();
        Outcome {
            result,
            returned,
            prints,
            bindings,
            journal,
            progress,
            failed_calls: meters.failed_calls.clone(),
            missing_keys: meters.missing_keys.take(),
            steps: meters.steps.load(Ordering::Relaxed),
            peak_bytes: meters.peak(),
            duration: meters.started.elapsed(),
        }
    }

    /// Runs on a new thread with enough native stack, and waits for it.
    pub fn execute_on_thread(self) -> Outcome {
        let started = Instant::now();
        let (stack, before) = (self.stack + STACK_SLACK_BYTES, self.bindings.clone());
        let outcome = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("ptc-run".into()).stack_size(stack);
            thread.spawn_scoped(scope, || self.execute()).ok().and_then(|running| running.join().ok())
        });
        outcome.unwrap_or_else(|| lost(started, before))
    }
}

fn top_level(program: &Program, m: &mut Machine, globals: &Globals) -> Result<Value, crate::machine::Raised> {
    // A first look, so that a run that is out of time or cancelled does not start.
    m.begin()?;
    let mut slots = vec![Value::Nil; program.unit.slots as usize];
    let result = (program.code)(m, &mut Frame { slots: &mut slots, this: &program.top, globals });
    // A fault that nothing else has placed is one of the whole program.
    let value = result.map_err(|raised| m.at(raised, program.unit.body.span))?;
    if m.meters.made_endless.load(Ordering::Relaxed) && has_endless(&value) {
        let raised = m.raise_with_hint(ErrorKind::TypeError, "the program's value has a sequence without an end", BOUND_IT);
        return Err(m.at(raised, program.unit.body.span));
    }
    Ok(value)
}

fn has_endless(value: &Value) -> bool {
    let mut found = false;
    each_distinct([value], |part| {
        found |= matches!(part, Value::Endless(_));
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

/// The thread could not start, or it panicked.
fn lost(started: Instant, bindings: Bindings) -> Outcome {
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
        steps: 0,
        peak_bytes: 0,
        duration: started.elapsed(),
    }
}
