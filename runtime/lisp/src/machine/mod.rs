//! The evaluator's state on one thread of one run: meters, the current fault, the host.
//!
//! Compiled code and builtins take `&mut Machine` and return `Result<Value, Raised>`. [`Raised`] is empty, so that a result is as
//! small as a value; the machine stores the fault. The language cannot catch it.

mod checkpoint;
mod fault;
mod journal;
mod memos;
mod meters;
mod print;
pub(crate) mod stack;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use checkpoint::PendingCharges;
pub use fault::{Fault, Raised};
pub(crate) use journal::Journal;
use memos::Memos;
pub(crate) use memos::Owner;
pub use meters::Gauge;
pub(crate) use meters::Meters;

use crate::error::Span;
use crate::eval::{Closure, Globals, call_value, discard};
use crate::fiber;
use crate::host::Host;
use crate::parallel::Task;
use crate::{ErrorKind, Value, comparison_budget};

/// Ticks between two checks of the clock, the gauge and the cancel flag.
const QUANTUM: u32 = 1024;

/// Native stack that a thread may use before more of it counts as the program's memory.
const FREE_STACK: usize = 64 * 1024;

/// Memory of a thread before it does any work: its stack and the allocator's thread-local storage, in bytes.
const THREAD: usize = 2 * FREE_STACK;

/// Size in bytes of the chunks in which stack beyond [`FREE_STACK`] is counted.
const STACK_CHUNK: usize = 128 * 1024;

/// Maximum number of arguments of a call that counts as one step.
pub(crate) const FEW_ARGUMENTS: usize = 8;

/// The inputs of a run.
#[derive(Default)]
pub(crate) struct RunContext {
    /// Bound under `data/`.
    pub(crate) context: Value,
    /// The last results, newest first.
    pub(crate) history: Vec<Value>,
    /// The results of tasks, if the run has a journal.
    pub(crate) journal: Option<Journal>,
}

/// The evaluator's state on one thread.
pub struct Machine {
    /// Ticks left before the next check of the clock.
    fuel: u32,
    /// Ticks granted in the current quantum, for counting steps.
    granted: u32,
    depth: u32,
    max_depth: u32,
    /// Lowest address to which the native stack may grow.
    floor: usize,
    /// Lowest address down to which stack is already counted as memory or free of charge.
    counted: usize,
    /// Bytes of stack that are counted.
    stack_bytes: i64,
    loop_limit: u64,
    globals: Rc<Globals>,
    pub(crate) run_context: Arc<RunContext>,
    pub(crate) fault: Option<Box<Fault>>,
    /// The item of `pmap` or `pcalls` that this machine works on.
    pub(crate) task: Option<Task>,
    pub(crate) meters: Arc<Meters>,
    memos: Memos,
    host: Arc<dyn Host>,
    /// The gauge at the last check, the charges since then, and earlier charges that the gauge does not show yet, in bytes.
    gauged: i64,
    pending: i64,
    aged: i64,
    /// Summaries of `step-done` by id.
    progress: BTreeMap<String, String>,
    prints: Vec<String>,
    printed: usize,
    /// Whether printed lines are dropped.
    muted: bool,
    _comparison_guard: comparison_budget::Guard,
}

impl Machine {
    /// The evaluator on the calling thread, which may use `stack` bytes of its native stack from here on.
    pub(crate) fn new(
        meters: Arc<Meters>,
        host: Arc<dyn Host>,
        run_context: Arc<RunContext>,
        globals: Rc<Globals>,
        stack: usize,
    ) -> Self {
        let gauged = meters.gauge.map_or(0, |read| read());
        let comparison_guard = comparison_budget::Guard::new(meters.deadline, meters.cancel.clone());
        Machine {
            fuel: QUANTUM,
            granted: QUANTUM,
            depth: 0,
            max_depth: meters.limits.call_depth,
            floor: stack::here().saturating_sub(stack),
            counted: stack::here().saturating_sub(FREE_STACK.min(stack)),
            stack_bytes: 0,
            loop_limit: meters.limits.loop_iterations.unwrap_or(u64::MAX),
            globals,
            run_context,
            fault: None,
            task: None,
            meters,
            memos: Memos::default(),
            host,
            gauged,
            pending: 0,
            aged: 0,
            progress: BTreeMap::new(),
            prints: Vec::new(),
            printed: 0,
            muted: false,
            _comparison_guard: comparison_guard,
        }
    }

    /// Counts the thread itself as memory of the program, for threads that the program has started.
    pub(crate) fn count_thread(&mut self) {
        self.stack_bytes += THREAD as i64;
        self.meters.report_bytes(THREAD as i64);
    }

    /// Ends the program with a fault. Its position is filled in while the stack unwinds.
    #[cold]
    pub fn raise(&mut self, kind: ErrorKind, message: impl Into<String>) -> Raised {
        self.raise_fault(Fault::new(kind, message))
    }

    /// [`Machine::raise`] with advice on what to do.
    #[cold]
    pub fn raise_with_hint(&mut self, kind: ErrorKind, message: impl Into<String>, hint: impl Into<String>) -> Raised {
        let mut fault = Fault::new(kind, message);
        fault.hint = Some(hint.into());
        self.raise_fault(fault)
    }

    /// [`Machine::raise`] with a value that the caller of the run can inspect.
    #[cold]
    pub fn raise_with_value(&mut self, kind: ErrorKind, message: impl Into<String>, value: Value) -> Raised {
        let mut fault = Fault::new(kind, message);
        fault.value = Some(value);
        self.raise_fault(fault)
    }

    /// Ends the program with an existing fault.
    #[cold]
    pub fn raise_fault(&mut self, fault: Fault) -> Raised {
        self.fault = Some(Box::new(fault));
        Raised
    }

    /// Adds advice to a fault that has none.
    #[cold]
    pub(crate) fn advise(&mut self, raised: Raised, hint: impl Into<String>) -> Raised {
        if let Some(fault) = &mut self.fault {
            fault.hint.get_or_insert_with(|| hint.into());
        }
        raised
    }

    /// Adds a hint to an arity error of a function that was called without arguments because there were no items.
    #[cold]
    pub(crate) fn advise_empty(&mut self, raised: Raised, hint: &str) -> Raised {
        if let Some(fault) = &mut self.fault
            && fault.kind == ErrorKind::ArityError
        {
            fault.hint = Some(hint.to_owned());
        }
        raised
    }

    /// Calls any callable value: function, builtin, keyword, map, set, vector or var. The arguments may be taken out of
    /// the slice.
    ///
    /// # Errors
    ///
    /// Raises the fault of the call, also if `f` cannot be called.
    #[inline]
    pub fn call(&mut self, f: &Value, args: &mut [Value]) -> Result<Value, Raised> {
        call_value(self, f, args)
    }

    /// [`Machine::call`] with arguments that are not used afterwards. Drops those that remain.
    #[inline]
    pub(crate) fn call_with<const N: usize>(&mut self, f: &Value, mut args: [Value; N]) -> Result<Value, Raised> {
        let result = call_value(self, f, &mut args);
        args.into_iter().for_each(discard);
        result
    }

    /// Checks the clock and the cancel flag before the first step.
    pub(crate) fn begin(&mut self) -> Result<(), Raised> {
        if self.meters.cancel.is_cancelled() {
            return Err(self.raise(ErrorKind::Cancelled, "the run was cancelled"));
        }
        // A scheduler may have ended it already.
        if self.meters.is_exhausted() {
            return Err(self.out_of_memory());
        }
        if Instant::now() >= self.meters.deadline { Err(self.out_of_time()) } else { Ok(()) }
    }

    /// Starts a call of code of this weight, one level deeper. [`Machine::exit`] ends it. After a fault the machine stops, so
    /// that a refused call needs no `exit`.
    #[inline]
    pub(crate) fn enter(&mut self, weight: u32) -> Result<(), Raised> {
        self.depth += 1;
        if self.depth > self.max_depth || stack::here() < self.counted {
            self.deeper()?;
        }
        self.steps(weight)
    }

    /// Counts a call with `count` arguments of a callable other than a function of the program.
    #[inline]
    pub(crate) fn called(&mut self, count: usize) -> Result<(), Raised> {
        if count > FEW_ARGUMENTS { self.called_with_many(count) } else { self.tick(1) }
    }

    /// Counts a call with many arguments: their number, and the memory for them, because most variadic callables store all of
    /// them.
    #[cold]
    #[inline(never)]
    pub(crate) fn called_with_many(&mut self, count: usize) -> Result<(), Raised> {
        self.tick(crate::args::steps(count))?;
        self.charge(count * 2 * crate::args::ITEM)
    }

    /// Raises if a comparison ended early. Its outcome is arbitrary and must not leave the run.
    #[inline]
    pub(crate) fn fail_if_comparison_gave_up(&mut self) -> Result<(), Raised> {
        if comparison_budget::is_exhausted() { self.checkpoint_now() } else { Ok(()) }
    }

    /// Returns `result`, or raises if a comparison ended early.
    pub(crate) fn checked_result<T>(&mut self, result: Result<T, Raised>) -> Result<T, Raised> {
        let is_over = |fault: &Fault| matches!(fault.kind, ErrorKind::Timeout | ErrorKind::Cancelled);
        if !self.fault.as_deref().is_some_and(is_over) {
            self.fail_if_comparison_gave_up()?;
        }
        result
    }

    /// Counts one step of a loop, and the comparisons since the last step.
    #[inline]
    pub(crate) fn step(&mut self) -> Result<(), Raised> {
        self.steps(1)
    }

    #[inline]
    fn steps(&mut self, n: u32) -> Result<(), Raised> {
        if comparison_budget::has_charges() {
            return self.tick(comparison_budget::drain().saturating_add(n));
        }
        self.tick(n)
    }

    /// Counts more of the stack as memory, or refuses to go deeper.
    #[cold]
    #[inline(never)]
    fn deeper(&mut self) -> Result<(), Raised> {
        if self.depth > self.max_depth || stack::here() < self.floor {
            return Err(self.too_deep());
        }
        fiber::uses_much_stack();
        self.counted = self.counted.saturating_sub(STACK_CHUNK).max(self.floor);
        self.stack_bytes += STACK_CHUNK as i64;
        if self.meters.report_bytes(STACK_CHUNK as i64) > self.memory_limit() { Err(self.out_of_memory()) } else { Ok(()) }
    }

    #[inline]
    pub(crate) fn exit(&mut self) {
        self.depth -= 1;
    }

    /// Starts turn `count` of a loop whose body has this weight.
    #[inline]
    pub(crate) fn turn(&mut self, count: u64, weight: u32) -> Result<(), Raised> {
        if count > self.loop_limit {
            let limit = self.loop_limit;
            let message = format!("a loop took more than {limit} turns");
            return Err(self.raise_with_hint(ErrorKind::LoopLimitExceeded, message, "check that recur comes closer to the end"));
        }
        self.steps(weight)
    }

    /// Records the position of a fault, unless it is known.
    #[cold]
    pub(crate) fn at(&mut self, raised: Raised, span: Span) -> Raised {
        if let Some(fault) = &mut self.fault {
            fault.push_call_site(span);
        }
        raised
    }

    /// Records that a fault left a function. `span` is its call, or `None` if a builtin called it.
    #[cold]
    pub(crate) fn push_frame(&mut self, raised: Raised, closure: &Closure, span: impl Into<Option<Span>>) -> Raised {
        if let Some(fault) = &mut self.fault {
            fault.push_frame(closure.name(), closure.source(), span.into());
        }
        raised
    }

    pub(crate) fn globals(&self) -> Rc<Globals> {
        Rc::clone(&self.globals)
    }

    pub(crate) fn shared_host(&self) -> Arc<dyn Host> {
        Arc::clone(&self.host)
    }

    /// The value at a key of any value. A missing key is recorded: in the result of a tool it is likely a mistake.
    pub(crate) fn look_up(&self, coll: &Value, key: &Value) -> Option<Value> {
        let value = crate::builtins::look_up(coll, key);
        if value.is_none() {
            self.meters.missing_keys.record(coll, key);
        }
        value
    }

    /// `data/key`
    pub(crate) fn context(&self, key: &Value) -> Value {
        match &self.run_context.context {
            Value::Map(map) => map.lookup(key).cloned().unwrap_or_else(|| {
                self.meters.missing_keys.record_in_context(key);
                Value::Nil
            }),
            _ => Value::Nil,
        }
    }

    /// `*1` and so on.
    pub(crate) fn history(&self, back: u8) -> Value {
        self.run_context.history.get(usize::from(back).saturating_sub(1)).cloned().unwrap_or_default()
    }

    /// Runs `work` on another machine of the same thread, whose definitions and prints are dropped afterwards.
    pub(crate) fn sub_machine<T>(&mut self, work: impl FnOnce(&mut Machine) -> T) -> T {
        self.read_gauge(PendingCharges::Discard);
        let globals = Globals::restore(self.globals.names(), &self.globals.snapshot());
        let stack = stack::here().saturating_sub(self.floor);
        let (meters, host, run_context) = (Arc::clone(&self.meters), self.shared_host(), Arc::clone(&self.run_context));
        let mut inner = Machine::new(meters, host, run_context, Rc::new(globals), stack);
        (inner.depth, inner.counted) = (self.depth, self.counted);
        inner.mute();
        let result = work(&mut inner);
        // Stack that the inner machine touched stays in memory until the thread ends.
        self.counted = inner.counted;
        self.stack_bytes += std::mem::take(&mut inner.stack_bytes);
        inner.finish();
        // Both read the gauge of this thread: what the inner one has reported is not reported again.
        self.gauged = inner.gauged;
        result
    }

    /// The stored result of a memoized function for these arguments, on this thread.
    pub(crate) fn remembered(&self, owner: &Owner, args: &Value) -> Option<Value> {
        self.memos.get(owner, args).cloned()
    }

    /// Stores the result of a memoized function.
    pub(crate) fn remember(&mut self, owner: &Owner, args: Value, result: Value) {
        self.memos.put(owner, args, result);
    }

    /// Stores the summary of a step. A later one with the same id replaces it.
    pub(crate) fn step_done(&mut self, id: String, summary: String) {
        self.progress.insert(id, summary);
    }

    /// The summaries of steps by id.
    pub(crate) fn take_progress(&mut self) -> Vec<(String, String)> {
        std::mem::take(&mut self.progress).into_iter().collect()
    }

    /// Reports the last steps and bytes of this thread. Returns its printed lines.
    pub(crate) fn finish(&mut self) -> Vec<String> {
        let used = u64::from(self.granted - self.fuel);
        self.meters.steps.fetch_add(used, Ordering::Relaxed);
        self.fuel = self.granted;
        // Dropped before the gauge is read for the last time: memoized results of a helper are not part of its result.
        self.memos = Memos::default();
        self.meters.report_bytes(-std::mem::take(&mut self.stack_bytes));
        self.read_gauge(PendingCharges::Discard);
        std::mem::take(&mut self.prints)
    }

    /// The host of the run.
    pub fn host(&self) -> &dyn Host {
        &*self.host
    }
}
