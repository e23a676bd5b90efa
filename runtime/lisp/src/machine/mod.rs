//! The evaluator's state on one thread of one run: meters, the fault that is under way, the host.
//!
//! Everything that evaluates, compiled code and builtins alike, has `&mut Machine` and answers
//! `Result<Value, Raised>`. [`Raised`] is empty, so that a result is as small as a value; what was raised waits in the
//! machine. Nothing in the language catches it.

mod fault;
mod journal;
mod memos;
mod meters;
pub(crate) mod stack;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

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
use crate::print::{MAX_CUT_MARK, push_cut_mark};
use crate::{ErrorKind, Value, effort};

/// Ticks between two looks at the clock, the gauge and the cancel flag.
const QUANTUM: u32 = 1024;

/// Native stack that a thread may use before more of it counts as the program's memory.
const FREE_STACK: usize = 64 * 1024;

/// What a thread takes before it does anything: that stack, and what the allocator keeps for it.
const THREAD: usize = 2 * FREE_STACK;

/// What helps a program that was ended for the sake of others.
const ENDED_HINT: &str = "send the same program again later, or hold less at once: filter or aggregate earlier";

/// By so many bytes at a time.
const STACK_CHUNK: usize = 128 * 1024;

/// Up to so many arguments a call is one step.
pub(crate) const FEW_ARGUMENTS: usize = 8;

/// What becomes of growths that were asked for and have not been seen yet when the gauge is read.
#[derive(Clone, Copy)]
enum Asked {
    /// They may still happen: between asking and growing a builtin counts its steps, which reads the gauge.
    Kept,
    /// They have happened, or never will.
    Forgotten,
}

/// What a run has around it.
#[derive(Default)]
pub(crate) struct Surroundings {
    /// Bound under `data/`.
    pub(crate) context: Value,
    /// The last results, newest first.
    pub(crate) history: Vec<Value>,
    /// What tasks gave, where the run has a journal.
    pub(crate) journal: Option<Journal>,
}

/// The evaluator's state on one thread.
pub struct Machine {
    /// Ticks left before the next look at the clock.
    fuel: u32,
    /// Of the current quantum, for counting steps.
    granted: u32,
    depth: u32,
    max_depth: u32,
    /// The native stack may grow down to here.
    floor: usize,
    /// Down to here its use is counted as the program's memory, or free of charge.
    counted: usize,
    /// Bytes of stack that are counted.
    stack_bytes: i64,
    loop_limit: u64,
    globals: Rc<Globals>,
    pub(crate) surroundings: Arc<Surroundings>,
    pub(crate) fault: Option<Box<Fault>>,
    /// The item of `pmap` or `pcalls` that this machine works on.
    pub(crate) task: Option<Task>,
    pub(crate) meters: Arc<Meters>,
    memos: Memos,
    host: Arc<dyn Host>,
    /// The gauge at the last look, what was charged since, and what was charged before and has not been seen to grow.
    gauged: i64,
    pending: i64,
    aged: i64,
    /// Summaries of `step-done` by id.
    progress: BTreeMap<String, String>,
    prints: Vec<String>,
    printed: usize,
    /// Whether what it prints is dropped.
    muted: bool,
    _watch: effort::Watch,
}

impl Machine {
    /// The evaluator on the calling thread, which may use `stack` bytes of its native stack from here on.
    pub(crate) fn new(
        meters: Arc<Meters>,
        host: Arc<dyn Host>,
        surroundings: Arc<Surroundings>,
        globals: Rc<Globals>,
        stack: usize,
    ) -> Self {
        let gauged = meters.gauge.map_or(0, |read| read());
        let watch = effort::Watch::new(meters.deadline, meters.cancel.clone());
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
            surroundings,
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
            _watch: watch,
        }
    }

    /// Counts what the thread itself takes as the program's memory, for threads that the program has started.
    pub(crate) fn count_thread(&mut self) {
        self.stack_bytes += THREAD as i64;
        self.meters.report_bytes(THREAD as i64);
    }

    /// Ends the program with a fault. The place is filled in on the way out.
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

    /// [`Machine::raise`] with a value that the caller of the run can look at.
    #[cold]
    pub fn raise_with_value(&mut self, kind: ErrorKind, message: impl Into<String>, value: Value) -> Raised {
        let mut fault = Fault::new(kind, message);
        fault.value = Some(value);
        self.raise_fault(fault)
    }

    /// Ends the program with a fault that is already made up.
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

    /// Says what to do where a function that takes arguments was called with none because there were no items.
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
    #[inline]
    pub fn call(&mut self, f: &Value, args: &mut [Value]) -> Result<Value, Raised> {
        call_value(self, f, args)
    }

    /// [`Machine::call`] with arguments that nobody looks at afterwards; most of them were taken out.
    #[inline]
    pub(crate) fn call_with<const N: usize>(&mut self, f: &Value, mut args: [Value; N]) -> Result<Value, Raised> {
        let result = call_value(self, f, &mut args);
        args.into_iter().for_each(discard);
        result
    }

    /// Looks at the clock and the cancel flag before the first step.
    pub(crate) fn begin(&mut self) -> Result<(), Raised> {
        if self.meters.cancel.is_cancelled() {
            return Err(self.raise(ErrorKind::Cancelled, "the run was cancelled"));
        }
        if Instant::now() >= self.meters.deadline { Err(self.out_of_time()) } else { Ok(()) }
    }

    /// Starts a call of code of this weight, one level deeper. [`Machine::exit`] ends it; after a fault nothing runs on, so
    /// that a refused start needs no end.
    #[inline]
    pub(crate) fn enter(&mut self, weight: u32) -> Result<(), Raised> {
        self.depth += 1;
        if self.depth > self.max_depth || stack::here() < self.counted {
            self.deeper()?;
        }
        self.steps(weight)
    }

    /// Counts a call of anything that is no function of the program, with `count` arguments.
    #[inline]
    pub(crate) fn called(&mut self, count: usize) -> Result<(), Raised> {
        if count > FEW_ARGUMENTS { self.called_with_many(count) } else { self.tick(1) }
    }

    /// Where there are many arguments, their number counts too, and what is made of them: most of what takes any number keeps
    /// them all.
    #[cold]
    #[inline(never)]
    pub(crate) fn called_with_many(&mut self, count: usize) -> Result<(), Raised> {
        self.tick(crate::convert::steps(count))?;
        self.charge(count * 2 * crate::convert::ITEM)
    }

    /// Raises where comparisons were given up, whose outcomes must not leave the run.
    #[inline]
    pub(crate) fn settle(&mut self) -> Result<(), Raised> {
        if effort::is_given_up() { self.look_now() } else { Ok(()) }
    }

    /// What a piece of work came to; where comparisons were given up in it, that the run is over.
    pub(crate) fn settled<T>(&mut self, result: Result<T, Raised>) -> Result<T, Raised> {
        let is_over = |fault: &Fault| matches!(fault.kind, ErrorKind::Timeout | ErrorKind::Cancelled);
        if !self.fault.as_deref().is_some_and(is_over) {
            self.settle()?;
        }
        result
    }

    /// One step of a loop, and those of comparisons since the last one.
    #[inline]
    pub(crate) fn step(&mut self) -> Result<(), Raised> {
        self.steps(1)
    }

    #[inline]
    fn steps(&mut self, n: u32) -> Result<(), Raised> {
        if effort::is_noted() {
            return self.tick(effort::take().saturating_add(n));
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

    /// Notes where a fault happened, unless that is known.
    #[cold]
    pub(crate) fn at(&mut self, raised: Raised, span: Span) -> Raised {
        if let Some(fault) = &mut self.fault {
            fault.passed(span);
        }
        raised
    }

    /// Notes that a fault left a function that was called at `span`; none where a builtin called it.
    #[cold]
    pub(crate) fn left(&mut self, raised: Raised, closure: &Closure, span: impl Into<Option<Span>>) -> Raised {
        if let Some(fault) = &mut self.fault {
            fault.left(closure.name(), closure.source(), span.into());
        }
        raised
    }

    pub(crate) fn globals(&self) -> Rc<Globals> {
        Rc::clone(&self.globals)
    }

    pub(crate) fn shared_host(&self) -> Arc<dyn Host> {
        Arc::clone(&self.host)
    }

    /// The value at a key of anything. A key that is not there is recorded: in the answer of a tool it is likely a mistake.
    pub(crate) fn look_up(&self, coll: &Value, key: &Value) -> Option<Value> {
        let value = crate::builtins::look_up(coll, key);
        if value.is_none() {
            self.meters.missing_keys.record(coll, key);
        }
        value
    }

    /// `data/key`
    pub(crate) fn context(&self, key: &Value) -> Value {
        match &self.surroundings.context {
            Value::Map(map) => map.lookup(key).cloned().unwrap_or_default(),
            _ => Value::Nil,
        }
    }

    /// `*1` and so on.
    pub(crate) fn history(&self, back: u8) -> Value {
        self.surroundings.history.get(usize::from(back).saturating_sub(1)).cloned().unwrap_or_default()
    }

    /// Runs `work` on another machine of the same thread, whose definitions and prints are dropped afterwards.
    pub(crate) fn sub_machine<T>(&mut self, work: impl FnOnce(&mut Machine) -> T) -> T {
        self.read_gauge(Asked::Forgotten);
        let globals = Globals::restore(self.globals.names(), &self.globals.snapshot());
        let stack = stack::here().saturating_sub(self.floor);
        let (meters, host, surroundings) = (Arc::clone(&self.meters), self.shared_host(), Arc::clone(&self.surroundings));
        let mut inner = Machine::new(meters, host, surroundings, Rc::new(globals), stack);
        (inner.depth, inner.counted) = (self.depth, self.counted);
        inner.mute();
        let result = work(&mut inner);
        // The stack that the inner one came down to stays in memory as long as the thread does.
        self.counted = inner.counted;
        self.stack_bytes += std::mem::take(&mut inner.stack_bytes);
        inner.finish();
        // Both read the gauge of this thread: what the inner one has reported is not reported again.
        self.gauged = inner.gauged;
        result
    }

    /// What the function of `memoize` gave for these arguments before, on this thread.
    pub(crate) fn remembered(&self, owner: &Owner, args: &Value) -> Option<Value> {
        self.memos.get(owner, args).cloned()
    }

    /// Keeps what the function of `memoize` gave.
    pub(crate) fn remember(&mut self, owner: &Owner, args: Value, result: Value) {
        self.memos.put(owner, args, result);
    }

    /// Notes the summary of a step; the last one of an id holds.
    pub(crate) fn step_done(&mut self, id: String, summary: String) {
        self.progress.insert(id, summary);
    }

    /// The summaries of steps by id.
    pub(crate) fn take_progress(&mut self) -> Vec<(String, String)> {
        std::mem::take(&mut self.progress).into_iter().collect()
    }

    /// Reports the last steps and bytes of this thread; gives what it printed.
    pub(crate) fn finish(&mut self) -> Vec<String> {
        let used = u64::from(self.granted - self.fuel);
        self.meters.steps.fetch_add(used, Ordering::Relaxed);
        self.fuel = self.granted;
        // Before the gauge is read for the last time: what a helper remembers is no part of what it gives.
        self.memos = Memos::default();
        self.meters.report_bytes(-std::mem::take(&mut self.stack_bytes));
        self.read_gauge(Asked::Forgotten);
        std::mem::take(&mut self.prints)
    }

    /// Counts `n` steps. Every so often it looks at the clock, the gauge and the cancel flag.
    #[inline]
    pub fn tick(&mut self, n: u32) -> Result<(), Raised> {
        if self.fuel > n {
            self.fuel -= n;
            Ok(())
        } else {
            self.look(n)
        }
    }

    /// Brings the next look at the clock nearer by so many steps without counting them: for work that may have taken as long, or much
    /// less.
    #[inline]
    pub(crate) fn hasten(&mut self, n: u32) -> Result<(), Raised> {
        if self.fuel > n {
            self.fuel -= n;
            self.granted -= n;
            Ok(())
        } else {
            self.look(0)
        }
    }

    /// Looks at the clock, the gauge and the cancel flag now: after work that could not be counted on the way.
    pub(crate) fn look_now(&mut self) -> Result<(), Raised> {
        self.look(0)
    }

    /// Asks for `bytes` before a growth. Raises where the run's live bytes and these would pass its limit.
    #[inline]
    pub fn charge(&mut self, bytes: usize) -> Result<(), Raised> {
        // Small growths are left to the gauge.
        if bytes < 4096 { Ok(()) } else { self.charge_large(bytes) }
    }

    /// The world.
    pub fn host(&self) -> &dyn Host {
        &*self.host
    }

    /// Collects one line of `println` and its family.
    pub fn print(&mut self, mut line: String) -> Result<(), Raised> {
        self.settle()?;
        self.charge(line.len())?;
        let limit = self.meters.limits.print_bytes;
        // One long line leaves room for others.
        let longest = limit / 4;
        if line.len() > longest && longest > 2 * MAX_CUT_MARK {
            let end = line.floor_char_boundary(longest - MAX_CUT_MARK);
            let gone = line.get(end..).map_or(0, |rest| rest.chars().count());
            line.truncate(end);
            push_cut_mark(&mut line, gone);
        }
        let left = limit.saturating_sub(self.printed);
        self.printed = self.printed.saturating_add(line.len()).saturating_add(1);
        if left == 0 {
            return Ok(());
        }
        let cut = line.len() >= left;
        if cut {
            // What still fits is shown: one large value, printed to be looked at, is the common case.
            line.truncate(line.floor_char_boundary(left));
        }
        self.line(line);
        if cut {
            self.line(format!("… output cut at {limit} bytes"));
        }
        Ok(())
    }

    /// From here on nobody hears what it prints.
    pub(crate) fn mute(&mut self) {
        self.muted = true;
    }

    fn line(&mut self, line: String) {
        if !self.muted {
            self.host.printed(&line);
        }
        self.prints.push(line);
    }

    #[cold]
    #[inline(never)]
    fn charge_large(&mut self, bytes: usize) -> Result<(), Raised> {
        // What is larger than any memory would overflow the sum of several such requests.
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX).min(i64::MAX / 1024);
        if self.meters.is_exhausted() {
            return Err(self.out_of_memory());
        }
        let limit = self.memory_limit();
        self.pending += bytes;
        if self.meters.reserve(bytes) <= limit {
            self.meters.make_room(bytes);
            return if self.meters.is_exhausted() { Err(self.out_of_memory()) } else { Ok(()) };
        }
        // What was charged before may be counted by the gauge now, or freed again.
        self.read_gauge(Asked::Forgotten);
        let live = self.meters.reserve(bytes);
        self.pending = bytes;
        if live > limit {
            self.meters.note_peak(live);
            return Err(self.out_of_memory());
        }
        self.meters.make_room(bytes);
        if self.meters.is_exhausted() { Err(self.out_of_memory()) } else { Ok(()) }
    }

    /// Reports this thread's memory before the host reserves bytes, so that values that were dropped meanwhile do not count.
    pub(crate) fn report_memory(&mut self) {
        self.read_gauge(Asked::Forgotten);
    }

    /// Stops counting `bytes` that this thread has allocated: a reservation counts them, and another thread frees them.
    pub(crate) fn hand_over(&mut self, bytes: usize) {
        self.gauged = self.gauged.saturating_add(i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    fn memory_limit(&self) -> i64 {
        i64::try_from(self.meters.limits.memory_bytes).unwrap_or(i64::MAX)
    }

    /// Bytes that the program may still allocate.
    pub(crate) fn room(&mut self) -> usize {
        self.read_gauge(Asked::Forgotten);
        usize::try_from(self.memory_limit().saturating_sub(self.meters.reserve(0))).unwrap_or(0)
    }

    #[cold]
    #[inline(never)]
    fn look(&mut self, n: u32) -> Result<(), Raised> {
        let used = u64::from(self.granted - self.fuel) + u64::from(n);
        let steps = self.meters.steps.fetch_add(used, Ordering::Relaxed) + used;
        self.fuel = QUANTUM;
        self.granted = QUANTUM;
        if self.meters.cancel.is_cancelled() || self.task.as_ref().is_some_and(Task::is_moot) {
            return Err(self.raise(ErrorKind::Cancelled, "the run was cancelled"));
        }
        if let Some(limit) = self.meters.limits.steps.filter(|&limit| steps > limit) {
            return Err(self.raise(ErrorKind::LoopLimitExceeded, format!("the program took more than {limit} steps")));
        }
        if Instant::now() >= self.meters.deadline {
            return Err(self.out_of_time());
        }
        let live = self.read_gauge(Asked::Kept);
        if let Some(share) = &self.meters.share {
            share.make_room(0, self.meters.deadline);
            if share.is_slice_over() {
                share.release();
                fiber::let_others_run();
                share.acquire(self.meters.deadline);
            }
        }
        if live > self.memory_limit() || self.meters.is_exhausted() {
            return Err(self.out_of_memory());
        }
        Ok(())
    }

    /// Reports this thread's change since the last look and answers the run's live bytes.
    fn read_gauge(&mut self, asked: Asked) -> i64 {
        let now = self.meters.gauge.map_or(0, |read| read());
        let delta = now - self.gauged;
        self.gauged = now;
        // What has grown is what was asked for.
        let mut settled = 0;
        for reserved in [&mut self.aged, &mut self.pending] {
            let part = (delta - settled).clamp(0, *reserved);
            *reserved -= part;
            settled += part;
        }
        settled += std::mem::take(&mut self.aged);
        match asked {
            Asked::Kept => self.aged = std::mem::take(&mut self.pending),
            Asked::Forgotten => settled += std::mem::take(&mut self.pending),
        }
        if settled != 0 {
            self.meters.reserve(-settled);
        }
        if self.meters.gauge.is_none() { 0 } else { self.meters.report_bytes(delta) }
    }

    #[cold]
    pub(crate) fn out_of_memory(&mut self) -> Raised {
        // Before anything is dropped on the way out.
        self.meters.exhaust();
        let limit = self.meters.limits.memory_bytes;
        if let Some(why) = self.meters.ended() {
            let why = why.to_owned();
            return self.raise_with_hint(ErrorKind::MemoryExceeded, why, ENDED_HINT);
        }
        self.raise_with_hint(
            ErrorKind::MemoryExceeded,
            format!("the program's values need more than {limit} bytes"),
            "filter or aggregate earlier, so that less is held at once",
        )
    }

    #[cold]
    #[inline(never)]
    fn too_deep(&mut self) -> Raised {
        let depth = self.depth - 1;
        self.raise_with_hint(
            ErrorKind::DepthExceeded,
            format!("calls are nested deeper than {depth} levels"),
            "use loop and recur, or reduce, instead of calling deeper and deeper",
        )
    }

    #[cold]
    pub(crate) fn out_of_time(&mut self) -> Raised {
        let ms = self.meters.limits.wall_clock.as_millis();
        self.raise(ErrorKind::Timeout, format!("the program ran longer than {ms} ms"))
    }
}
