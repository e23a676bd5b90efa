//! The interface between programs and the outside world.
//!
//! The interpreter starts an upstream call with [`Host::submit`] and waits on the returned [`PendingReply`], on its own thread and
//! with its own deadline. The host keeps the other half, an [`ReplySender`]. When an evaluation stops waiting because of its
//! deadline or a cancellation, the pending reply is dropped and the answering side is notified.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;
use std::thread::ThreadId;
use std::time::Instant;

use crate::fiber;
use crate::interrupt::{Interrupt, Watch};
use crate::list_uses::TrackedList;
use crate::machine::Meters;
use crate::print::excerpt;
use crate::{ErrorKind, Value};

/// The environment of a program. All methods may be called from several threads at once (`pmap`).
pub trait Host: Send + Sync {
    /// Called once by each run before its program starts, with the account of the run's memory. A host that stores bytes for the
    /// program outside of the evaluation's threads, such as the encoded arguments of pending calls, reserves them there.
    fn begin_run(&self, account: &Account) {
        let _ = account;
    }

    /// Starts `(tool/call request)` without blocking. `Err` is a fault of the program and ends it. A failure of the upstream is a
    /// [`Reply::Failed`] on the pending reply.
    fn submit(&self, request: &Value) -> Result<PendingReply, Fault>;

    /// Like [`Host::submit`], but stores the `Link` header of the response in `link` before the pending reply is answered.
    fn submit_with_link(&self, request: &Value, link: &Arc<OnceLock<String>>) -> Result<PendingReply, Fault> {
        let _ = link;
        self.submit(request)
    }

    /// Called with the answer to `(tool/call request)` or `(tool/value request)` and its `Link` header, before the program
    /// continues. Returns the list in the answer if its use is to be tracked.
    fn received(&self, request: &Value, answer: &Value, link: Option<&str>) -> Option<TrackedList> {
        let _ = (request, answer, link);
        None
    }

    /// Starts `(tool/all request)`. The request has no `:max`, which is passed as `max`. May block until an upstream has listed
    /// its tools.
    fn pages(&self, request: &Value, max: Option<usize>) -> Result<Box<dyn Pages>, Fault> {
        let _ = (request, max);
        Err(Fault::new(ErrorKind::UnknownTool, "tool/all is not available: no upstreams are configured"))
    }

    /// Starts `(tool/NAME …)`, a call of a tool of the embedding program, without blocking. `args` is a map with the keys that
    /// the program wrote. The answer is the value of the form. A [`Reply::Failed`] ends the program, like `Err`.
    fn submit_tool(&self, tool: &str, args: &Value) -> Result<PendingReply, Fault> {
        let _ = args;
        Err(Fault::new(ErrorKind::UnknownTool, format!("there is no tool/{}", excerpt(tool))))
    }

    /// Called with the result of such a call, on the evaluation's thread, before the program gets it. Returns the value for the
    /// program.
    fn receive_tool(&self, tool: &str, value: Value) -> Result<Value, Fault> {
        let _ = tool;
        Ok(value)
    }

    /// The tools of the embedding program, as one line `name - description` each, for `(dir 'tool)`.
    fn tool_lines(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether [`Host::discover`] would block on this query. Then the interpreter releases its processor for other threads.
    fn discovery_waits(&self, query: Discovery<'_>) -> bool {
        let _ = query;
        false
    }

    /// Answers a discovery form from the catalog. `Ok(nil)` reports a failure of an upstream.
    fn discover(&self, query: Discovery<'_>) -> Result<Value, Fault>;

    /// Milliseconds since the Unix epoch.
    fn now_ms(&self) -> i64 {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX))
    }

    /// Seconds by which the local clock is ahead of UTC at an instant, given in milliseconds since the Unix epoch. Programs can
    /// observe the offset only in the current local date and time.
    fn utc_offset_s(&self, at_ms: i64) -> i32 {
        let _ = at_ms;
        0
    }

    /// Nanoseconds of a monotonic clock with an arbitrary origin.
    fn monotonic_ns(&self) -> i64 {
        static START: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
        i64::try_from(START.elapsed().as_nanos()).unwrap_or(i64::MAX)
    }

    /// 64 random bits, for `rand` and similar functions.
    fn random(&self) -> u64;

    /// Called with each line that the program prints, as in [`Outcome::prints`](crate::run::Outcome::prints). Output inside of
    /// `pmap` and `pcalls` is discarded, as specified.
    fn printed(&self, line: &str) {
        let _ = line;
    }

    /// The result of `(budget/remaining)` as JSON-shaped data. `nil` if the host has no budget.
    fn budget(&self) -> Value {
        Value::nil()
    }
}

/// The paging strategy of one list. The interpreter makes the calls.
pub trait Pages {
    /// Returns the arguments of the first call.
    fn first(&mut self) -> Value;

    /// Processes an answer with its `Link` header. Answers are passed in the order of the requests. `Err` ends the program.
    fn receive(&mut self, answer: &Value, link: Option<&str>) -> Result<NextPages, Fault>;

    /// Processes the failure of the outstanding request, if its reason only shows that there are no more pages. Otherwise returns
    /// `None`, and the failure ends the program.
    fn end_with_failure(&mut self, reason: &str) -> Option<Result<(), Fault>> {
        let _ = reason;
        None
    }

    /// Describes how many pages and items were received, to be appended to a message: `after 3 pages with 300 items`.
    fn arrived(&self) -> String;

    /// Returns the received items.
    fn into_items(self: Box<Self>) -> Vec<Value>;
}

/// The continuation after a page.
#[derive(Debug)]
pub enum NextPages {
    /// The list is complete.
    Done,
    /// The arguments of the next calls, to be made in parallel. Empty if answers to earlier calls are outstanding.
    Requests(Vec<Value>),
}

/// A host without tools. Programs cannot reach anything outside of it.
#[derive(Debug, Default)]
pub struct NoHost;

impl Host for NoHost {
    fn submit(&self, _: &Value) -> Result<PendingReply, Fault> {
        Err(Fault::new(ErrorKind::UnknownTool, "tool/call is not available: no upstreams are configured"))
    }

    fn discover(&self, query: Discovery<'_>) -> Result<Value, Fault> {
        match query {
            Discovery::Servers | Discovery::Apropos { .. } => Ok(Value::vector(Vec::new())),
            Discovery::Dir { reference, .. } | Discovery::Doc { reference } | Discovery::Meta { reference } => {
                let message = format!("no namespace, function or upstream named '{}'", excerpt(reference));
                Err(Fault::new(ErrorKind::UnknownTool, message))
            }
        }
    }

    fn random(&self) -> u64 {
        use std::hash::{BuildHasher, Hasher};
        std::collections::hash_map::RandomState::new().build_hasher().finish()
    }
}

/// A discovery form with a subject outside of the interpreter. Names are as written, without a quote.
#[derive(Debug, Clone, Copy)]
pub enum Discovery<'a> {
    /// `(tool/servers)`
    Servers,
    /// `(apropos query opts)`. The interpreter appends its own matches to those of the host.
    Apropos {
        /// The words to search, not empty.
        query: &'a str,
        /// Maximum number of entries: 1 to 50.
        limit: usize,
        /// Whether to query upstreams for their tools first.
        load: bool,
    },
    /// `(dir reference opts)`
    Dir {
        /// The name of an upstream.
        reference: &'a str,
        /// Maximum number of entries: 1 to 200.
        limit: usize,
        /// Number of entries to skip.
        offset: usize,
    },
    /// `(doc reference)`
    Doc {
        /// The tool, as `server/tool`.
        reference: &'a str,
    },
    /// `(meta reference)`
    Meta {
        /// The tool, as `server/tool`.
        reference: &'a str,
    },
}

/// A fault of the program that the host detected. It ends the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The kind of the error.
    pub kind: ErrorKind,
    /// What was expected and what was found.
    pub message: String,
    /// How to fix the program, if known.
    pub hint: Option<String>,
}

impl Fault {
    /// Makes a fault without a hint.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Fault { kind, message: message.into(), hint: None }
    }

    /// Adds a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// The answer to a call. The interpreter converts it to the tagged map that programs receive.
#[derive(Debug)]
pub enum Reply {
    /// JSON text, decoded on the evaluation's thread: `{:ok true :value … :value_kind :json}`.
    Json(Vec<u8>),
    /// Text. It is decoded as JSON if it parses (`:json`), otherwise it stays text (`:text`).
    Text(String),
    /// Text that stays text, also if it parses as JSON: `{:ok true :value … :value_kind :text}`.
    Plain(String),
    /// Success without a payload: `{:ok true :value nil :value_kind :none}`.
    None,
    /// A failure of the upstream: `{:ok false :reason … :message …}`.
    Failed {
        /// One of the documented reasons, such as `timeout`.
        reason: &'static str,
        /// A description of the failure.
        message: String,
    },
    /// A fault of the program that was detected only after a wait. It ends the program, like `Err` of a submission.
    Refused(Fault),
    /// One of the other replies, with the head of the HTTP answer that it came with.
    Http(Box<HttpHead>, Box<Reply>),
}

/// What a program sees of the head of an HTTP answer, and the body of a failed one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HttpHead {
    /// `:status`
    pub status: u16,
    /// `:headers`: names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// `:body` of a failure: JSON text.
    pub failed_body: Option<Vec<u8>>,
}

impl Reply {
    /// Separates the head of an HTTP answer from the reply.
    pub(crate) fn split(self) -> (Option<HttpHead>, Reply) {
        match self {
            Reply::Http(head, reply) => (Some(*head), reply.split().1),
            reply => (None, reply),
        }
    }

    /// Bytes of its payload.
    pub(crate) fn len(&self) -> usize {
        match self {
            Reply::Json(bytes) => bytes.capacity(),
            Reply::Text(text) | Reply::Plain(text) => text.capacity(),
            Reply::Http(head, reply) => {
                let headers = head.headers.iter().map(|(name, value)| name.capacity() + value.capacity()).sum::<usize>();
                headers + head.failed_body.as_ref().map_or(0, Vec::capacity) + reply.len()
            }
            Reply::Failed { message, .. } => message.capacity(),
            Reply::None | Reply::Refused(_) => 0,
        }
    }
}

/// A handle for the host to a run's memory account, which can also end the run. Clones refer to the same account.
#[derive(Clone)]
pub struct Account {
    meters: Arc<Meters>,
}

impl Account {
    pub(crate) fn new(meters: Arc<Meters>) -> Account {
        Account { meters }
    }

    /// Counts `bytes` as memory of the program until the reservation is dropped, on any thread. `Err` is the fault that ends the
    /// program because its values and reservations together would exceed its limit.
    pub fn reserve(&self, bytes: usize) -> Result<Reservation, Fault> {
        let mut reservation = Reservation { meters: Arc::clone(&self.meters), bytes: 0 };
        reservation.resize(bytes).map(|()| reservation)
    }

    /// Ends the run with [`ErrorKind::MemoryExceeded`] and the message `why`. The run notices at its next check, or at once if it
    /// is waiting.
    pub fn end(&self, why: String) {
        self.meters.end(why);
    }

    /// Bytes that the program may occupy.
    pub fn limit(&self) -> u64 {
        self.meters.limits.memory_bytes
    }

    /// Has `wait` ended when the run runs out of memory or a scheduler ends it, for as long as the [`Watch`] lives.
    pub fn watch(&self, wait: Interrupt) -> Watch {
        self.meters.watch(wait)
    }

    /// Whether the run has exceeded its deadline or its memory, or was cancelled.
    pub fn is_over(&self) -> bool {
        self.meters.cancel.is_cancelled() || self.meters.is_exhausted() || Instant::now() >= self.meters.deadline
    }
}

/// Makes the fault of a program that runs out of memory while it makes calls.
pub(crate) fn out_of_memory(limit: u64) -> Fault {
    let message =
        format!("the program's values, the arguments of its calls and the answers on their way need more than {limit} bytes");
    let hint = "ask for less at once, such as a page or a filter, or make fewer calls at once, such as with map instead of pmap";
    Fault::new(ErrorKind::MemoryExceeded, message).with_hint(hint)
}

impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Account").field("limit", &self.limit()).finish_non_exhaustive()
    }
}

/// Bytes that count as memory of a run's program until the reservation is dropped.
pub struct Reservation {
    meters: Arc<Meters>,
    bytes: i64,
}

impl std::fmt::Debug for Reservation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reservation").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Reservation {
    /// Counts `bytes` instead of the previous number. `Err` is the fault that ends the program because its values and
    /// reservations together would exceed its limit. The bytes are counted even then.
    pub fn resize(&mut self, bytes: usize) -> Result<(), Fault> {
        // Clamped, so that the sum of several enormous requests cannot overflow.
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX).min(i64::MAX / 1024);
        let grown = bytes - std::mem::replace(&mut self.bytes, bytes);
        let meters = &self.meters;
        meters.report_reserved(grown);
        let limit = meters.limits.memory_bytes;
        if grown <= 0 || meters.reserve(0) <= i64::try_from(limit).unwrap_or(i64::MAX) && !meters.is_exhausted() {
            return Ok(());
        }
        meters.exhaust();
        Err(meters.ended().map_or_else(|| out_of_memory(limit), |why| Fault::new(ErrorKind::MemoryExceeded, why)))
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.meters.report_reserved(-self.bytes);
    }
}

/// The waiting half of a call.
pub struct PendingReply {
    slot: Arc<Slot>,
    held: Value,
    handed_over: usize,
}

/// The answering half of a call. If it is dropped without an answer, the reply is `upstream_unavailable`.
pub struct ReplySender {
    slot: Arc<Slot>,
}

#[derive(Default)]
struct Slot {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The reply, with the reservation that counts its bytes until the program takes it.
    reply: Option<(Reply, Option<Reservation>)>,
    /// The waker of the waiting evaluation.
    waiting: Option<Waker>,
    answered_by: Option<ThreadId>,
    interrupted: bool,
    abandoned: bool,
    on_abandon: Option<Box<dyn FnOnce() + Send>>,
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the waiting evaluation. Must be called without the lock.
    fn wake(&self) {
        let waiting = self.lock().waiting.take();
        if let Some(waker) = waiting {
            waker.wake();
        }
    }
}

/// How a wait ended.
#[derive(Debug)]
pub enum WaitOutcome {
    /// The reply arrived.
    Reply(Reply),
    /// The deadline passed first.
    DeadlinePassed,
    /// [`Interrupt::interrupt`] was called first.
    Interrupted,
}

impl PendingReply {
    /// Makes both halves of a call.
    pub fn pair() -> (ReplySender, PendingReply) {
        let slot = Arc::new(Slot::default());
        (ReplySender { slot: Arc::clone(&slot) }, PendingReply { slot, held: Value::Nil, handed_over: 0 })
    }

    /// Makes a pending reply that is already answered.
    pub fn ready(reply: Reply) -> PendingReply {
        let (answer, pending) = PendingReply::pair();
        answer.send(reply);
        pending
    }

    /// Returns a handle that ends the wait from another thread.
    pub fn interrupter(&self) -> Interrupt {
        let slot = Arc::clone(&self.slot);
        Interrupt::by(move || {
            slot.lock().interrupted = true;
            slot.wake();
        })
    }

    /// Keeps `args` alive until the wait ends. Memory is accounted per thread, so that a value must be dropped on the thread that
    /// allocated it.
    #[must_use]
    pub fn holding(mut self, args: Value) -> PendingReply {
        self.held = args;
        self
    }

    /// Records that the submitting thread allocated `bytes` for the call that another thread will free. They are counted by a
    /// [`Reservation`], so that the gauge of the submitting thread must not count them as well.
    #[must_use]
    pub fn handing_over(mut self, bytes: usize) -> PendingReply {
        self.handed_over = bytes;
        self
    }

    /// Bytes passed to [`PendingReply::handing_over`].
    pub(crate) fn handed_over(&self) -> usize {
        self.handed_over
    }

    /// Blocks until the reply, the deadline or an interruption.
    pub fn wait(self, deadline: Option<Instant>) -> WaitOutcome {
        self.wait_weighed(deadline).0
    }

    /// Like [`PendingReply::wait`], but also returns the bytes of a reply that another thread allocated. The caller must count
    /// them, since no reservation does so any more.
    pub(crate) fn wait_weighed(self, deadline: Option<Instant>) -> (WaitOutcome, usize) {
        loop {
            let mut state = self.slot.lock();
            if let Some((reply, reservation)) = state.reply.take() {
                let is_foreign = state.answered_by != Some(std::thread::current().id());
                drop(state);
                drop(reservation);
                let bytes = if is_foreign { reply.len() } else { 0 };
                return (WaitOutcome::Reply(reply), bytes);
            }
            if state.interrupted {
                return (WaitOutcome::Interrupted, 0);
            }
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return (WaitOutcome::DeadlinePassed, 0);
            }
            if state.waiting.is_none() {
                state.waiting = Some(fiber::waker());
            }
            drop(state);
            fiber::park(deadline);
        }
    }
}

impl Drop for PendingReply {
    fn drop(&mut self) {
        let mut state = self.slot.lock();
        state.abandoned = true;
        let on_abandon = state.on_abandon.take();
        let answered = state.reply.is_some();
        drop(state);
        if let Some(run) = on_abandon.filter(|_| !answered) {
            run();
        }
    }
}

impl ReplySender {
    /// Sends the reply and wakes the waiting evaluation.
    pub fn send(self, reply: Reply) {
        self.put(reply, None);
    }

    /// Sends a reply whose bytes are counted by `reservation` until the evaluation takes it.
    pub fn send_counted(self, reply: Reply, reservation: Option<Reservation>) {
        self.put(reply, reservation);
    }

    /// Whether the evaluation has stopped waiting.
    pub fn is_abandoned(&self) -> bool {
        self.slot.lock().abandoned
    }

    /// Calls `then` when the evaluation stops waiting before the reply, or at once if it has already stopped.
    pub fn on_abandon(&self, then: impl FnOnce() + Send + 'static) {
        let mut state = self.slot.lock();
        if state.abandoned {
            drop(state);
            then();
        } else {
            state.on_abandon = Some(Box::new(then));
        }
    }

    fn put(&self, reply: Reply, reservation: Option<Reservation>) {
        let mut state = self.slot.lock();
        if state.reply.is_none() {
            state.reply = Some((reply, reservation));
            state.answered_by = Some(std::thread::current().id());
        }
        state.on_abandon = None;
        drop(state);
        self.slot.wake();
    }
}

impl Drop for ReplySender {
    fn drop(&mut self) {
        // After `send` the slot holds the reply, or the waiter has taken it. Then there is nothing to do.
        let state = self.slot.lock();
        let open = state.reply.is_none() && !state.abandoned;
        drop(state);
        if open {
            let message = "the call was dropped without an answer".into();
            self.put(Reply::Failed { reason: "upstream_unavailable", message }, None);
        }
    }
}
