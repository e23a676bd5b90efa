//! The only door from a program to the world.
//!
//! The interpreter starts an upstream call with [`Host::submit`] and waits on the [`Ticket`] it gets back, on its own
//! thread and with its own deadline. Whoever answers holds the other half, an [`Answer`]. When an evaluation stops waiting
//! (deadline, cancellation), the ticket is dropped and the answering side learns of it.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;
use std::thread::ThreadId;
use std::time::Instant;

use crate::fiber;
use crate::interrupt::Interrupt;
use crate::machine::Meters;
use crate::print::excerpt;
use crate::{ErrorKind, Value};

/// What a program can reach. Every method may be called from several threads at once (`pmap`).
pub trait Host: Send + Sync {
    /// Called once by each run, before its program starts, with the account of the run's memory. A host that keeps bytes for the program
    /// outside of the evaluation's threads, such as the encoded arguments of calls under way, reserves them there.
    fn begin_run(&self, account: &Account) {
        let _ = account;
    }

    /// Starts `(tool/call request)` and returns at once. `Err` is a fault of the program and ends it; a fault of the
    /// world is a [`Reply::Failed`] on the ticket.
    fn submit(&self, request: &Value) -> Result<Ticket, Fault>;

    /// Starts the same. The `Link` header of the answer goes into `link` before the ticket is answered.
    fn submit_with_link(&self, request: &Value, link: &Arc<OnceLock<String>>) -> Result<Ticket, Fault> {
        let _ = link;
        self.submit(request)
    }

    /// Looks at the answer to `(tool/call request)` or `(tool/value request)`, and its `Link` header, before the program goes on.
    fn received(&self, request: &Value, answer: &Value, link: Option<&str>) {
        let _ = (request, answer, link);
    }

    /// Begins `(tool/all request)`, whose request has no `:max`: that is `max`. May wait until an upstream has listed its tools.
    fn pages(&self, request: &Value, max: Option<usize>) -> Result<Box<dyn Pages>, Fault> {
        let _ = (request, max);
        Err(Fault::new(ErrorKind::UnknownTool, "tool/all is not available: no upstreams are configured"))
    }

    /// Starts `(tool/NAME …)`, a call of one of the embedding program's own tools, and returns at once. `args` is a map as the program
    /// wrote it. The answer is the value of the form; a [`Reply::Failed`] ends the program, as `Err` does.
    fn submit_tool(&self, tool: &str, args: &Value) -> Result<Ticket, Fault> {
        let _ = args;
        Err(Fault::new(ErrorKind::UnknownTool, format!("there is no tool/{}", excerpt(tool))))
    }

    /// Looks at what such a call gave, on the evaluation's thread, before the program sees it.
    fn receive_tool(&self, tool: &str, value: Value) -> Result<Value, Fault> {
        let _ = tool;
        Ok(value)
    }

    /// The embedding program's own tools, a line `name - description` each, for `(dir 'tool)`.
    fn tool_lines(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether [`Host::discover`] would wait for somebody else to answer such a query, so that another thread should compute meanwhile.
    fn discovery_waits(&self, query: Discovery<'_>) -> bool {
        let _ = query;
        false
    }

    /// Answers a discovery form from the catalog. `Ok(nil)` is a fault of the world.
    fn discover(&self, query: Discovery<'_>) -> Result<Value, Fault>;

    /// Milliseconds since the Unix epoch.
    fn now_ms(&self) -> i64 {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX))
    }

    /// Seconds by which the local clock is ahead of UTC at an instant, in milliseconds since the Unix epoch. A program sees
    /// it only in what day or time it is now.
    fn utc_offset_s(&self, at_ms: i64) -> i32 {
        let _ = at_ms;
        0
    }

    /// Nanoseconds of a clock that never goes back, from any start.
    fn monotonic_ns(&self) -> i64 {
        static START: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
        i64::try_from(START.elapsed().as_nanos()).unwrap_or(i64::MAX)
    }

    /// 64 random bits, for `rand` and its family.
    fn random(&self) -> u64;

    /// A line that the program has just printed, one of [`Outcome::prints`](crate::run::Outcome::prints). What is printed inside `pmap`
    /// and `pcalls` is neither here nor there, as the specification has it.
    fn printed(&self, line: &str) {
        let _ = line;
    }

    /// What `(budget/remaining)` answers, as JSON-shaped data; `nil` where the host keeps no budget.
    fn budget(&self) -> Value {
        Value::nil()
    }
}

/// How the pages of one list follow each other. The interpreter makes the calls.
pub trait Pages {
    /// The arguments of the first call.
    fn first(&mut self) -> Value;

    /// Takes an answer with its `Link` header, in the order of the requests. `Err` ends the program.
    fn receive(&mut self, answer: &Value, link: Option<&str>) -> Result<NextPages, Fault>;

    /// How many pages and items were received, as the end of a sentence: `after 3 pages with 300 items`.
    fn arrived(&self) -> String;

    /// The items that were received.
    fn into_items(self: Box<Self>) -> Vec<Value>;
}

/// What comes after a page.
#[derive(Debug)]
pub enum NextPages {
    /// The list is whole.
    Done,
    /// The arguments of the calls that come next, to be made at once. Empty where answers to earlier ones are still due.
    Requests(Vec<Value>),
}

/// A host without tools: a closed world.
#[derive(Debug, Default)]
pub struct NoHost;

impl Host for NoHost {
    fn submit(&self, _: &Value) -> Result<Ticket, Fault> {
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

/// A discovery form whose subject the interpreter does not know itself. Names are as written, without a quote.
#[derive(Debug, Clone, Copy)]
pub enum Discovery<'a> {
    /// `(tool/servers)`
    Servers,
    /// `(apropos query opts)`; the interpreter adds its own matches after the host's.
    Apropos {
        /// Words looked for; not empty.
        query: &'a str,
        /// The most entries of an answer: 1 to 50.
        limit: usize,
        /// Whether to ask upstreams for their tools first.
        load: bool,
    },
    /// `(dir reference opts)`
    Dir {
        /// An upstream's name.
        reference: &'a str,
        /// The most entries of an answer: 1 to 200.
        limit: usize,
        /// Entries to skip.
        offset: usize,
    },
    /// `(doc reference)`
    Doc {
        /// `server/tool`
        reference: &'a str,
    },
    /// `(meta reference)`
    Meta {
        /// `server/tool`
        reference: &'a str,
    },
}

/// A fault of the program, found by the host: it ends the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Its kind.
    pub kind: ErrorKind,
    /// What was expected and what was found.
    pub message: String,
    /// What to do, where that is known.
    pub hint: Option<String>,
}

impl Fault {
    /// A fault without a hint.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Fault { kind, message: message.into(), hint: None }
    }

    /// The same fault with a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// The answer to a call. The interpreter turns it into the tagged map that programs see.
#[derive(Debug)]
pub enum Reply {
    /// JSON text, decoded on the evaluation's thread: `{:ok true :value … :value_kind :json}`.
    Json(Vec<u8>),
    /// Text that is JSON if it parses (`:json`) and text otherwise (`:text`).
    Text(String),
    /// Success without a payload: `{:ok true :value nil :value_kind :none}`.
    None,
    /// A fault of the world: `{:ok false :reason … :message …}`.
    Failed {
        /// One of the documented reasons, such as `timeout`.
        reason: &'static str,
        /// What happened.
        message: String,
    },
    /// A fault of the program, found only after something had been waited for. It ends the program, as `Err` of a submission does.
    Refused(Fault),
}

impl Reply {
    /// Bytes of what it holds.
    pub(crate) fn len(&self) -> usize {
        match self {
            Reply::Json(bytes) => bytes.capacity(),
            Reply::Text(text) => text.capacity(),
            Reply::Failed { message, .. } => message.capacity(),
            Reply::None | Reply::Refused(_) => 0,
        }
    }
}

/// The memory account and the end of a run, for its host. Clones are the same account.
#[derive(Clone)]
pub struct Account {
    meters: Arc<Meters>,
}

impl Account {
    pub(crate) fn new(meters: Arc<Meters>) -> Account {
        Account { meters }
    }

    /// Counts `bytes` as memory of the program until the reservation is dropped, on any thread. `Err` is the fault that ends the program
    /// where its values and its reservations would pass its limit together.
    pub fn reserve(&self, bytes: usize) -> Result<Reservation, Fault> {
        let mut reservation = Reservation { meters: Arc::clone(&self.meters), bytes: 0 };
        reservation.resize(bytes).map(|()| reservation)
    }

    /// Ends the run with [`ErrorKind::MemoryExceeded`]; `why` is its message. The run notices at its next check, and at once where it
    /// waits.
    pub fn end(&self, why: String) {
        self.meters.end(why);
    }

    /// Bytes that the program may occupy.
    pub fn limit(&self) -> u64 {
        self.meters.limits.memory_bytes
    }

    /// Whether the time of the run is up, or the run was cancelled or has run out of memory.
    pub fn is_over(&self) -> bool {
        self.meters.cancel.is_cancelled() || self.meters.is_exhausted() || Instant::now() >= self.meters.deadline
    }
}

/// The fault of a program that runs out of memory while it makes calls.
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

/// Bytes that count as memory of a run's program until this is dropped.
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
    /// Counts `bytes` from now on, in place of what was counted before. `Err` is the fault that ends the program where its values and its
    /// reservations would pass its limit together; the bytes count then all the same.
    pub fn resize(&mut self, bytes: usize) -> Result<(), Fault> {
        // What is larger than any memory would overflow the sum of several such requests.
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
pub struct Ticket {
    slot: Arc<Slot>,
    held: Value,
    handed_over: usize,
}

/// The answering half of a call. Dropped without an answer, it answers `upstream_unavailable`.
pub struct Answer {
    slot: Arc<Slot>,
}

#[derive(Default)]
struct Slot {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The answer, and what counts its bytes until the program does.
    reply: Option<(Reply, Option<Reservation>)>,
    /// Who waits.
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

    /// Wakes who waits; outside of the lock.
    fn wake(&self) {
        let waiting = self.lock().waiting.take();
        if let Some(waker) = waiting {
            waker.wake();
        }
    }
}

/// What ended a wait.
#[derive(Debug)]
pub enum Waited {
    /// The answer.
    Reply(Reply),
    /// The time was up first.
    DeadlinePassed,
    /// [`Interrupt::interrupt`] came first.
    Interrupted,
}

impl Ticket {
    /// Both halves of a call.
    pub fn pair() -> (Answer, Ticket) {
        let slot = Arc::new(Slot::default());
        (Answer { slot: Arc::clone(&slot) }, Ticket { slot, held: Value::Nil, handed_over: 0 })
    }

    /// A ticket that is answered already.
    pub fn ready(reply: Reply) -> Ticket {
        let (answer, ticket) = Ticket::pair();
        answer.send(reply);
        ticket
    }

    /// A handle that ends the wait from another thread.
    pub fn interrupter(&self) -> Interrupt {
        let slot = Arc::clone(&self.slot);
        Interrupt::by(move || {
            slot.lock().interrupted = true;
            slot.wake();
        })
    }

    /// The same ticket, which keeps `args` until the wait is over: who counts the bytes of an evaluation counts them by thread, so
    /// that what one thread has made must not be dropped last by another.
    #[must_use]
    pub fn holding(mut self, args: Value) -> Ticket {
        self.held = args;
        self
    }

    /// The same ticket for a call to which the submitting thread has handed `bytes` that it allocated and another thread will free. They
    /// are in a [`Reservation`], so that the gauge of the submitting thread must not count them as well.
    #[must_use]
    pub fn handing_over(mut self, bytes: usize) -> Ticket {
        self.handed_over = bytes;
        self
    }

    /// Bytes of [`Ticket::handing_over`].
    pub(crate) fn handed_over(&self) -> usize {
        self.handed_over
    }

    /// Blocks until the answer, the deadline or an interruption.
    pub fn wait(self, deadline: Option<Instant>) -> Waited {
        self.wait_weighed(deadline).0
    }

    /// The same, with the bytes of an answer that another thread has made. They are the caller's to count: no reservation does any more.
    pub(crate) fn wait_weighed(self, deadline: Option<Instant>) -> (Waited, usize) {
        loop {
            let mut state = self.slot.lock();
            if let Some((reply, reservation)) = state.reply.take() {
                let is_foreign = state.answered_by != Some(std::thread::current().id());
                drop(state);
                drop(reservation);
                let bytes = if is_foreign { reply.len() } else { 0 };
                return (Waited::Reply(reply), bytes);
            }
            if state.interrupted {
                return (Waited::Interrupted, 0);
            }
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return (Waited::DeadlinePassed, 0);
            }
            if state.waiting.is_none() {
                state.waiting = Some(fiber::waker());
            }
            drop(state);
            fiber::park(deadline);
        }
    }
}

impl Drop for Ticket {
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

impl Answer {
    /// Answers and wakes the waiting evaluation.
    pub fn send(self, reply: Reply) {
        self.put(reply, None);
    }

    /// Answers with a reply whose bytes `reservation` counts until the evaluation takes it.
    pub fn send_counted(self, reply: Reply, reservation: Option<Reservation>) {
        self.put(reply, reservation);
    }

    /// Whether nobody waits any more.
    pub fn is_abandoned(&self) -> bool {
        self.slot.lock().abandoned
    }

    /// Runs `then` when the evaluation stops waiting before an answer; at once if it already has.
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

impl Drop for Answer {
    fn drop(&mut self) {
        // After `send` the slot holds the reply (or the waiter took it) and this is a no-op for the waiter.
        let state = self.slot.lock();
        let open = state.reply.is_none() && !state.abandoned;
        drop(state);
        if open {
            let message = "the call was dropped without an answer".into();
            self.put(Reply::Failed { reason: "upstream_unavailable", message }, None);
        }
    }
}
