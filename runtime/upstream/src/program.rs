//! The host of one evaluation.

mod authorization;
mod budget;
#[cfg(feature = "interception")]
mod interception;
mod listing;
mod misspelt;
mod notes;
mod pages;
mod records;
mod reply;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use litemap::LiteMap;
#[cfg(feature = "http")]
use ptc_catalog::Transport;
use ptc_catalog::Upstream;
use ptc_check::paging::UnreadPages;
use ptc_lisp::host::{Account, Discovery, Fault, Host, Pages, PendingReply, Reply};
use ptc_lisp::limits::Cancel;
use ptc_lisp::list_uses::TrackedList;
use ptc_lisp::{ErrorKind, Value};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use self::budget::Budget;
use self::misspelt::Misspelt;
pub use self::notes::nothing_written;
use self::records::Records;
pub(crate) use self::records::Writes;
use self::reply::{clean, failed, with_head};
use super::Upstreams;
use super::access::{Access, CallDecisions};
use super::arguments::Bounds;
use super::call_limiter::CallingProgram;
use super::call_rules::CallRules;
use super::caller_token::{self, CallerToken};
#[cfg(feature = "interception")]
use super::dispatch::Answered;
use super::dispatch::{EncodedCall, UpstreamConnection};
use super::fault::{Reason, UpstreamError, excerpt};
#[cfg(feature = "interception")]
use super::intercept::{self, InterceptedCall, Interception, ProgramInterceptor};
use super::offload::offload;
use super::record::{CallRecord, CallReport};
use super::request::{self, Call};
use super::response_budget;
use super::stage::{self, Progress};
use crate::discovery;
use ptc_schedule::ClientKey;
use ptc_secrets::Redactor;

/// Maximum bytes of the name of an unknown tool in a record, and maximum bytes of the name that are redacted.
const MAX_RECORDED_NAME: usize = 200;
/// Maximum delay after which a call that was answered with 429 is repeated.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(2);
const MAX_REDACTED_NAME: usize = 64 * 1024;

/// Limits of waits of an evaluation outside calls, such as for an upstream's list of tools, and of its share of the upstreams.
#[derive(Debug, Clone, Default)]
pub struct WaitLimits {
    /// The end of the evaluation. `None` leaves the upstream's own time limit.
    pub deadline: Option<Instant>,
    /// Cancels the evaluation.
    pub cancel: Cancel,
    /// The client of the evaluation. Owners share an upstream equally when all of its permits are in use.
    pub client_key: ClientKey,
    /// Maximum number of programs in flight in the process. `None` if there is only this one.
    pub most_in_flight: Option<usize>,
    /// What the caller may call. `None` without a policy, which permits everything.
    pub access: Option<Arc<dyn Access>>,
    /// The access token of the caller, if it came with one.
    pub caller: Option<CallerToken>,
}

/// The host of one evaluation, with its budgets and its record of calls.
pub struct ProgramHost(Arc<Shared>);

/// The state that calls in progress share with the host.
struct Shared {
    upstreams: Arc<Upstreams>,
    calls: Budget,
    writes: Budget,
    discoveries: Budget,
    records: Records,
    limits: WaitLimits,
    decisions: Option<Box<dyn CallDecisions>>,
    /// Why the policy has refused calls, for the operator. Calls at the same time can be refused before the program ends.
    denials: Mutex<BTreeSet<String>>,
    unread_pages: Mutex<UnreadPages>,
    misspelt: Misspelt,
    /// The memory account of the host's run, set once the run has begun.
    account: Mutex<Option<Account>>,
    /// The upstreams with calls in progress, by name, with the number of calls.
    calling: Mutex<LiteMap<&'static str, (usize, CallingProgram)>>,
    #[cfg(feature = "interception")]
    interceptor: Option<Arc<dyn ProgramInterceptor>>,
}

/// A call in progress, for the number of programs that wait for its upstream.
struct CallInProgress<'s> {
    shared: &'s Shared,
    upstream: &'static str,
}

impl Drop for CallInProgress<'_> {
    fn drop(&mut self) {
        let mut calling = self.shared.calling();
        if let Some((calls, _)) = calling.get_mut(self.upstream) {
            *calls -= 1;
            if *calls == 0 {
                calling.remove(self.upstream);
            }
        }
    }
}

/// A call that is ready to be made.
struct Ready {
    connection: Arc<UpstreamConnection>,
    known: &'static Upstream,
    encoded: EncodedCall,
    rules: CallRules,
    entry: usize,
    /// Receives the `Link` header of the answer, if it is needed.
    link_header: Option<LinkHeader>,
    /// The call in the form that the interceptor of the program receives, if there is one.
    #[cfg(feature = "interception")]
    intercepted: Option<InterceptedCall>,
}

/// The `Link` header of an answer, once there is one.
type LinkHeader = Arc<OnceLock<String>>;

/// Maximum number of calls that are recorded although the program may not make them.
const MAX_REFUSED_RECORDS: u64 = 1000;

/// Why a call cannot be made.
enum Refusal {
    /// The call is invalid.
    Program(Fault),
    /// The call is valid, but fails for another reason.
    World(Reply),
    /// The caller may not make the call, which is recorded.
    Denied(Fault),
}

impl ProgramHost {
    pub(super) fn new(upstreams: Arc<Upstreams>, limits: WaitLimits) -> ProgramHost {
        let settings = &upstreams.settings;
        ProgramHost(Arc::new(Shared {
            calls: Budget::new(settings.max_calls_per_program),
            writes: Budget::new(settings.max_writes_per_program),
            discoveries: Budget::new(settings.max_catalog_ops),
            records: Records::default(),
            #[cfg(feature = "interception")]
            interceptor: settings.interceptor.as_ref().map(|interceptor| interceptor.begin(&limits.client_key)),
            upstreams,
            decisions: limits.access.as_ref().map(|access| access.begin_program()),
            denials: Mutex::default(),
            limits,
            unread_pages: Mutex::default(),
            misspelt: Misspelt::default(),
            account: Mutex::default(),
            calling: Mutex::default(),
        }))
    }

    /// Calls `watch` when a call begins, and with `true` when it is answered or has failed, in this case on a thread of the
    /// upstreams' runtime. Only the first function that is passed is used.
    pub fn watch(&self, watch: impl Fn(&CallRecord, bool) + Send + Sync + 'static) {
        self.0.records.watch_by(Box::new(watch));
    }

    /// Returns the record of calls so far, in which an unanswered call counts as timed out, with notes on arguments, budgets and
    /// writes. `has_failed` says whether the program failed.
    pub fn report(&self, has_failed: bool) -> CallReport {
        let notes = self.budget_notes().chain(self.write_notes(has_failed)).collect();
        CallReport { calls: self.calls(), misspelt: self.0.misspelt.notes(), notes }
    }

    /// Returns the records of calls so far, in the order of their start. An unanswered call counts as timed out.
    pub fn calls(&self) -> Vec<CallRecord> {
        self.0.records.calls()
    }

    /// Returns why the policy has refused calls, for the operator. It must not be in an answer.
    pub fn denial(&self) -> Option<String> {
        let denials = self.0.denials.lock().unwrap_or_else(PoisonError::into_inner);
        (!denials.is_empty()).then(|| denials.iter().map(String::as_str).collect::<Vec<_>>().join("; "))
    }

    /// Checks a request as a call of it would, and makes none.
    ///
    /// # Errors
    ///
    /// Returns a fault of the program, which ends it.
    pub fn check_request(&self, request: &Value) -> Result<(), Fault> {
        let bounds = self.0.bounds();
        encode(&request::read(self.0.catalog(), request, &bounds)?, &bounds).map(drop)
    }

    /// Counts a call that another process makes for this program. `tool/all` asks for no more pages than there are calls left.
    pub fn count_remote_call(&self) {
        self.0.calls.take();
    }

    /// Returns notes on exhausted budgets.
    fn budget_notes(&self) -> impl Iterator<Item = String> {
        let note = |what, budget: &Budget, outcome| notes::budget(what, budget.total, budget.refused(), outcome);
        let calls =
            "A refused call is {:ok false :reason :cap_exhausted}: fetch more with each call, or split the work over programs";
        let discoveries = "A refused form gives nil: look up fewer things, or split the work over programs";
        let notes = [note("upstream calls", &self.0.calls, calls), note("discovery forms", &self.0.discoveries, discoveries)];
        notes.into_iter().flatten()
    }

    /// Returns notes on lists that the program did not read to their end.
    pub fn unread_pages(&self) -> Vec<String> {
        self.0.lock_unread_pages().notes()
    }

    /// Returns notes on the writes of the program. `has_failed` says whether the program failed.
    fn write_notes(&self, has_failed: bool) -> Vec<String> {
        let writes = self.0.records.writes();
        let mut notes = notes::writes(&writes);
        if has_failed && writes == Writes::default() && !self.0.records.has_unknown_effects() {
            notes.extend(notes::nothing_written(self.0.catalog()));
        }
        let outcome = "A refused write is {:ok false :reason :cap_exhausted}, and it was not sent";
        notes.extend(notes::budget("writes", self.0.writes.total, self.0.writes.refused(), outcome));
        notes
    }
}

impl Shared {
    fn exhausted(&self) -> UpstreamError {
        let message = format!("this program has made its {} upstream calls; fetch more with each call", self.calls.total);
        UpstreamError::new(Reason::CapExhausted, message)
    }

    fn writes_exhausted(&self) -> UpstreamError {
        let most = self.writes.total;
        let message = format!("this program has made its {most} writes (--max-writes-per-program); this write was not sent");
        UpstreamError::new(Reason::CapExhausted, message)
    }

    /// Returns the limits for encoding arguments.
    fn bounds(&self) -> Bounds {
        let account = self.account.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Bounds { deadline: self.limits.deadline, cancel: self.limits.cancel.clone(), account }
    }
}

impl Shared {
    fn lock_unread_pages(&self) -> MutexGuard<'_, UnreadPages> {
        self.unread_pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn calling(&self) -> MutexGuard<'_, LiteMap<&'static str, (usize, CallingProgram)>> {
        self.calling.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call to an upstream. The programs that wait for one upstream may hold at most 80 % of the programs in flight,
    /// unless it is the only one.
    fn under_way(&self, connection: &UpstreamConnection) -> Result<CallInProgress<'_>, UpstreamError> {
        let upstream = connection.upstream().name;
        let share = self.limits.most_in_flight.filter(|_| self.upstreams.connections.len() > 1);
        let mut calling = self.calling();
        if let Some((calls, _)) = calling.get_mut(upstream) {
            *calls += 1;
        } else {
            let most = share.map_or(usize::MAX, |most| (most * 4 / 5).max(1));
            calling.insert(upstream, (1, connection.limiter().admit_program(upstream, most)?));
        }
        Ok(CallInProgress { shared: self, upstream })
    }

    /// Validates and encodes a call. `begun` is the index of its record, if there is one already.
    fn prepare(&self, request: &Value, progress: &Progress, begun: Option<usize>) -> Result<Ready, Refusal> {
        let bounds = self.bounds();
        let call = request::read(self.catalog(), request, &bounds).map_err(Refusal::Program)?;
        let rules = CallRules::new(call.upstream, call.tool);
        let encoded = encode(&call, &bounds).map_err(Refusal::Program)?;
        #[cfg(feature = "interception")]
        let intercepted = match &self.interceptor {
            Some(_) => Some(interception::intercepted(&call, &bounds, &self.upstreams.redactor).map_err(Refusal::Program)?),
            None => None,
        };
        self.misspelt.see(&call);
        let start = || self.records.start(call.upstream, Cow::Borrowed(call.tool.name), progress.clone());
        // A program that calls on after its last call would fill the memory with records of refused calls.
        let are_many = self.calls.refused.load(Ordering::Relaxed) >= MAX_REFUSED_RECORDS;
        if are_many && begun.is_none() && !self.calls.take() {
            return Err(Refusal::World(failed(self.exhausted())));
        }
        let entry = begun.unwrap_or_else(start);
        let fail = |fault: UpstreamError| {
            self.records.fail(entry, &fault);
            Refusal::World(failed(fault))
        };
        // A call that the policy refuses counts too, since records of refused calls would otherwise fill the memory.
        if !self.calls.take() {
            return Err(fail(self.exhausted()));
        }
        self.decide(&call, entry)?;
        if rules.is_write && !self.writes.take() {
            return Err(fail(self.writes_exhausted()));
        }
        self.records.set_effect(entry, rules);
        let connection = self.upstreams.connection(call.upstream.name).cloned();
        let connection = connection.ok_or_else(|| fail(UpstreamError::unavailable("the upstream has no connection")))?;
        Ok(Ready {
            connection,
            known: call.upstream,
            encoded,
            rules,
            entry,
            link_header: None,
            #[cfg(feature = "interception")]
            intercepted,
        })
    }

    /// Makes a call on behalf of the caller.
    async fn make(&self, ready: Ready, abandoned: &mut oneshot::Receiver<()>) -> Reply {
        caller_token::scope(self.limits.caller.clone(), self.make_here(ready, abandoned)).await
    }

    async fn make_here(&self, ready: Ready, abandoned: &mut oneshot::Receiver<()>) -> Reply {
        let (upstreams, entry) = (&self.upstreams, ready.entry);
        let WaitLimits { client_key, .. } = &self.limits;
        #[cfg(feature = "interception")]
        let intercepted = match self.intercept(&ready) {
            Interception::Refuse(fault) => {
                self.records.fail(entry, &UpstreamError::unavailable(fault.message.clone()));
                return Reply::Refused(fault);
            }
            Interception::Answer(answer) => {
                intercept::enter_stage(&answer);
                Some((Duration::ZERO, answer.map(Answered::intercepted)))
            }
            Interception::AnswerAfter(delay, answer) => {
                intercept::enter_stage(&answer);
                Some((delay, answer.map(Answered::intercepted)))
            }
            Interception::PassOn => None,
        };
        #[cfg(feature = "interception")]
        let mut ready = ready;
        #[cfg(feature = "interception")]
        let observed = ready.intercepted.take();
        let call = async {
            #[cfg(feature = "interception")]
            if let Some((delay, answer)) = intercepted {
                if !delay.is_zero() {
                    tokio::time::sleep(delay).await;
                }
                return answer;
            }
            #[cfg(feature = "interception")]
            let started = Instant::now();
            let _under_way = self.under_way(&ready.connection)?;
            let Ready { connection, known, encoded, rules, .. } = &ready;
            let send = || connection.call(known, encoded, *rules, client_key, &upstreams.secrets, &upstreams.settings);
            let mut answer = send().await;
            if let Some(delay) = answer.as_ref().err().and_then(|fault| self.delay_before_retry(&ready, fault)) {
                tokio::time::sleep(delay).await;
                answer = send().await.map_err(|fault| retried(&fault, delay));
            }
            #[cfg(feature = "interception")]
            if let (Some(interceptor), Some(call)) = (&self.interceptor, observed) {
                let redactor = caller_token::redactor().unwrap_or_else(|| upstreams.redactor.clone());
                answer = intercept::observe(Arc::clone(interceptor), call, answer, started.elapsed(), redactor).await;
            }
            answer
        };
        let outcome = tokio::select! {
            // Dropping the call cancels it at the upstream.
            Ok(()) = abandoned => Err(stopped_waiting()),
            outcome = call => outcome,
        };
        match outcome {
            Ok(answered) => {
                let redactor = caller_token::redactor().unwrap_or_else(|| upstreams.redactor.clone());
                if let (Some(wanted), Some(header)) = (&ready.link_header, &answered.link_header) {
                    let _ = wanted.set(redactor.redact_str(header).into_owned());
                }
                let (payload, head) = (answered.payload, answered.head);
                let cleaned = match response_budget::reserve(payload.len() as u64) {
                    Ok(()) => offload(payload.len(), move || clean(&redactor, payload)).await,
                    Err(fault) => Err(fault),
                };
                let (reply, bytes) = cleaned.unwrap_or_else(|fault| (failed(fault), 0));
                self.records.succeed(entry, bytes, answered.http_status);
                with_head(reply, head)
            }
            Err(fault) => {
                if fault.reason == Reason::Timeout {
                    ready.connection.pacer().turn().await;
                }
                let fault = upstreams.clean(fault);
                self.records.fail(entry, &fault);
                failed(fault)
            }
        }
    }

    /// Returns the delay before a call that was answered with 429 is repeated. The call must be read-only, the requested delay
    /// short, and the program must run for longer than that.
    fn delay_before_retry(&self, ready: &Ready, fault: &UpstreamError) -> Option<Duration> {
        let delay = fault.retry_after.filter(|delay| *delay <= MAX_RETRY_DELAY && ready.rules.is_read)?;
        let is_in_time = |deadline: Instant| Instant::now().checked_add(delay).is_some_and(|then| then < deadline);
        self.limits.deadline.is_none_or(is_in_time).then_some(delay)
    }
}

impl ProgramHost {
    /// Starts a call. `link_header` receives the `Link` header of its answer.
    fn start_call(&self, request: &Value, link_header: Option<LinkHeader>) -> Result<PendingReply, Fault> {
        let shared = Arc::clone(&self.0);
        if let Some(fault) = shared.denied(request) {
            return Err(fault);
        }
        let progress = Progress::default();
        let start = |upstream, tool: &str| {
            let tool = Cow::Owned(recorded(&shared.upstreams.redactor, tool));
            shared.records.start(upstream, tool, progress.clone())
        };
        let (answer, ticket) = PendingReply::pair();
        let (abandon, mut abandoned) = oneshot::channel();
        answer.on_abandon(move || {
            let _ = abandon.send(());
        });
        let runtime = shared.upstreams.settings.handle.clone();
        if let Some((upstream, tool)) = shared.unlisted(request) {
            let entry = start(upstream, tool);
            if shared.calls.left() == 0 && !shared.calls.take() {
                let fault = shared.exhausted();
                shared.records.fail(entry, &fault);
                return Ok(PendingReply::ready(failed(fault)));
            }
            let ticket = ticket.holding(request.clone());
            let request = request.clone();
            spawn(&runtime, move || {
                stage::watched(progress, async move {
                    // In memory of its own, since it is larger than a call alone.
                    let call = Box::pin(shared.list_and_make(upstream.name, request, entry, link_header, &mut abandoned));
                    let (reply, reservation) = response_budget::scope(shared.bounds().account, call).await;
                    answer.send_counted(reply, reservation);
                })
            });
            return Ok(ticket);
        }
        match shared.prepare(request, &progress, None) {
            Ok(ready) => {
                let ready = Ready { link_header, ..ready };
                let ticket = ticket.handing_over(ready.encoded.len());
                spawn(&runtime, move || {
                    stage::watched(progress, async move {
                        let call = shared.make(ready, &mut abandoned);
                        let (reply, reservation) = response_budget::scope(shared.bounds().account, call).await;
                        answer.send_counted(reply, reservation);
                    })
                });
                Ok(ticket)
            }
            Err(Refusal::World(reply)) => Ok(PendingReply::ready(reply)),
            Err(Refusal::Program(fault) | Refusal::Denied(fault)) => Err(fault),
        }
    }
}

impl Host for ProgramHost {
    fn begin_run(&self, account: &Account) {
        *self.0.account.lock().unwrap_or_else(PoisonError::into_inner) = Some(account.clone());
    }

    fn submit(&self, request: &Value) -> Result<PendingReply, Fault> {
        self.start_call(request, None)
    }

    fn submit_with_link(&self, request: &Value, link_header: &LinkHeader) -> Result<PendingReply, Fault> {
        self.start_call(request, Some(Arc::clone(link_header)))
    }

    fn received(&self, request: &Value, answer: &Value, link_header: Option<&str>) -> Option<TrackedList> {
        pages::received(&self.0, request, answer, link_header)
    }

    fn pages(&self, request: &Value, max: Option<usize>) -> Result<Box<dyn Pages>, Fault> {
        pages::begin(&self.0, request, max)
    }

    fn discovery_waits(&self, query: Discovery<'_>) -> bool {
        let upstreams = &self.0.upstreams;
        self.0.discoveries.left() > 0
            && discovery::subjects(self.0.catalog(), query).iter().any(|name| upstreams.is_unlisted(name))
    }

    fn discover(&self, query: Discovery<'_>) -> Result<Value, Fault> {
        let shared = &self.0;
        let upstreams = &shared.upstreams;
        let wanted = discovery::subjects(shared.catalog(), query);
        let unlisted = wanted.iter().any(|name| upstreams.is_unlisted(name));
        // A search continues with the upstreams that answer. Other forms concern a single upstream.
        if unlisted
            && (shared.discoveries.left() == 0 || shared.list(&wanted).is_err() && !matches!(query, Discovery::Apropos { .. }))
        {
            shared.discoveries.take();
            return Ok(Value::nil());
        }
        let catalog = shared.catalog();
        if catalog.upstreams.is_empty() && !upstreams.catalog().upstreams.is_empty() {
            return Err(Fault::new(ErrorKind::Forbidden, "the policy permits this caller no tool of any upstream"));
        }
        let question = discovery::Question::read(catalog, query)?;
        if !shared.discoveries.take() {
            return Ok(Value::nil());
        }
        let view = discovery::View {
            catalog,
            whole: upstreams.catalog(),
            is_unlisted: &|name| upstreams.is_unlisted(name),
            redactor: &upstreams.redactor,
            index: &upstreams.search_index,
            max_bytes: upstreams.settings.max_catalog_result_bytes,
        };
        Ok(question.answer(&view))
    }

    fn random(&self) -> u64 {
        RandomState::new().build_hasher().finish()
    }

    fn budget(&self) -> Value {
        let row = |name: &str, budget: &Budget| (Value::keyword(name), Value::int(i64::from(budget.left())));
        Value::map([row("tool-calls", &self.0.calls), row("catalog-ops", &self.0.discoveries)])
    }
}

/// Spawns a task that is created on the runtime's thread: a future of several kilobytes would otherwise use the stack of the
/// program, which keeps all stack that it has once touched while it waits.
fn spawn<F: Future<Output = ()> + Send + 'static>(runtime: &Handle, task: impl FnOnce() -> F + Send + 'static) {
    runtime.spawn(async move { Box::pin(task()).await });
}

/// Encodes the call for its transport.
fn encode(call: &Call<'_>, bounds: &Bounds) -> Result<EncodedCall, Fault> {
    #[cfg(feature = "http")]
    if let (Transport::OpenApi(spec), Some(operation)) = (&call.upstream.transport, call.tool.operation) {
        let args = call.args.iter().map(|(name, value)| (*name, &**value)).collect();
        let rules = CallRules::new(call.upstream, call.tool);
        let encoded = super::openapi::encode(spec, operation, rules, args, call.options, bounds);
        let encoded = encoded.map_err(|why| request::refused(call.upstream, call.tool, why))?;
        return Ok(EncodedCall::Operation(Box::new(encoded)));
    }
    Ok(EncodedCall::Mcp { tool: call.tool.name, arguments: request::encode(call, bounds)? })
}

/// Returns the name of an unknown tool for a record, redacted, and truncated.
fn recorded(redactor: &Redactor, tool: &str) -> String {
    // The redacted part is longer than the recorded one, so that a secret across the end of the latter is recognised.
    let redacted = redactor.redact_str(tool.get(..tool.floor_char_boundary(MAX_REDACTED_NAME)).unwrap_or_default());
    excerpt(&redacted, MAX_RECORDED_NAME).into_owned()
}

/// Creates the error of a call that was sent twice.
fn retried(fault: &UpstreamError, delay: Duration) -> UpstreamError {
    let message = format!("{} (retried once after {} ms, as the first answer requested)", fault.message, delay.as_millis());
    UpstreamError { message: message.into(), ..fault.clone() }
}

fn stopped_waiting() -> UpstreamError {
    UpstreamError::timeout(format!("the program stopped while {}", stage::reached().described()))
}
