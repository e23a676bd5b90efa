//! Running a program: limits, host and context in, outcome out.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::Value;
use crate::error::{Call, Error, ErrorKind, Position};
use crate::eval::{Frame, Globals};
use crate::host::{Host, NoHost};
use crate::limits::{Cancel, Limits};
use crate::machine::{Fault, Gauge, Machine, Meters, Surroundings};
use crate::parallel::SLACK;
use crate::program::Program;

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
    gauge: Option<Gauge>,
    cancel: Cancel,
    started: Option<Instant>,
    stack: usize,
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
            gauge: None,
            cancel: Cancel::default(),
            started: None,
            stack: STACK_BYTES,
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

    /// Native stack that the run may use on its thread, instead of [`STACK_BYTES`]; it bounds how deep calls can nest.
    pub fn stack_bytes(mut self, bytes: usize) -> Self {
        self.stack = bytes;
        self
    }

    /// Runs on the calling thread, which must have the native stack that [`STACK_BYTES`] speaks of.
    pub fn execute(self) -> Outcome {
        let started = self.started.unwrap_or_else(Instant::now);
        let meters = Arc::new(Meters::new(self.limits, self.cancel, self.gauge, started));
        let host = self.host.unwrap_or_else(|| Arc::new(NoHost));
        let globals = Rc::new(Globals::new(Arc::clone(&self.program.globals)));
        let surroundings = Arc::new(self.surroundings);
        let mut machine = Machine::new(Arc::clone(&meters), host, surroundings, Rc::clone(&globals), self.stack);
        let result = top_level(self.program, &mut machine, &globals);
        let fault = machine.fault.take();
        let prints = machine.finish();
        let (result, returned) = match (result, fault) {
            (Ok(value), _) => (Ok(value), false),
            (Err(_), Some(fault)) if fault.returned => (Ok(fault.value.unwrap_or_default()), true),
            (Err(_), fault) => (Err(error(self.program, fault)), false),
        };
        Outcome {
            result,
            returned,
            prints,
            steps: meters.steps.load(Ordering::Relaxed),
            peak_bytes: meters.peak(),
            duration: meters.started.elapsed(),
        }
    }

    /// Runs on a new thread with enough native stack, and waits for it.
    pub fn execute_on_thread(self) -> Outcome {
        let started = Instant::now();
        let stack = self.stack + STACK_SLACK_BYTES;
        let outcome = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("ptc-run".into()).stack_size(stack);
            thread.spawn_scoped(scope, || self.execute()).ok().and_then(|running| running.join().ok())
        });
        outcome.unwrap_or_else(|| lost(started))
    }
}

fn top_level(program: &Program, m: &mut Machine, globals: &Globals) -> Result<Value, crate::machine::Raised> {
    // A first look, so that a run that is out of time or cancelled does not start.
    m.begin()?;
    let mut slots = vec![Value::Nil; program.unit.slots as usize];
    (program.code)(m, &mut Frame { slots: &mut slots, this: &program.top, globals })
}

fn error(program: &Program, fault: Option<Box<Fault>>) -> Error {
    let fault = fault.map_or_else(|| Fault::new(ErrorKind::InternalError, "recur outside of a loop"), |fault| *fault);
    let position = |span: crate::Span| Position::of(&program.source, span.start);
    Error {
        kind: fault.kind,
        message: fault.message,
        hint: fault.hint,
        span: fault.span,
        position: fault.span.map(position),
        value: fault.value,
        trace: fault.trace.into_iter().map(|(name, span)| Call { name, position: Some(position(span)) }).collect(),
    }
}

/// The thread could not start, or it panicked.
fn lost(started: Instant) -> Outcome {
    let error = Error {
        kind: ErrorKind::InternalError,
        message: "the evaluation's thread was lost".into(),
        hint: None,
        span: None,
        position: None,
        value: None,
        trace: Vec::new(),
    };
    Outcome { result: Err(error), returned: false, prints: Vec::new(), steps: 0, peak_bytes: 0, duration: started.elapsed() }
}
