//! The host of one evaluation.

mod authorization;
mod budget;
mod in_progress;
#[cfg(feature = "interception")]
mod interception;
mod listing;
mod make;
mod misspelt;
mod notes;
mod pages;
mod prepare;
mod records;
mod reply;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use litemap::LiteMap;
use ptc_check::paging::UnreadPages;
use ptc_lisp::host::{Account, Discovery, Fault, Host, Pages, PendingReply};
use ptc_lisp::limits::Cancel;
use ptc_lisp::list_uses::TrackedList;
use ptc_lisp::{ErrorKind, Value};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use self::budget::Budget;
use self::misspelt::Misspelt;
pub use self::notes::nothing_written;
use self::prepare::{Ready, Refusal, encode};
use self::records::Records;
pub(crate) use self::records::Writes;
use self::reply::failed;
use super::Upstreams;
use super::access::{Access, CallDecisions};
use super::arguments::Bounds;
use super::call_limiter::CallingProgram;
use super::caller_token::CallerToken;
use super::fault::excerpt;
#[cfg(feature = "interception")]
use super::intercept::ProgramInterceptor;
use super::record::{CallRecord, CallReport};
use super::request;
use super::response_budget;
use super::stage::{self, Progress};
use crate::discovery;
use ptc_schedule::ClientKey;
use ptc_secrets::Redactor;

/// Maximum bytes of the name of an unknown tool in a record, and maximum bytes of the name that are redacted.
const MAX_RECORDED_NAME: usize = 200;
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

/// The `Link` header of an answer, once there is one.
type LinkHeader = Arc<OnceLock<String>>;

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
    /// Returns the limits for encoding arguments.
    fn bounds(&self) -> Bounds {
        let account = self.account.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Bounds { deadline: self.limits.deadline, cancel: self.limits.cancel.clone(), account }
    }

    fn lock_unread_pages(&self) -> MutexGuard<'_, UnreadPages> {
        self.unread_pages.lock().unwrap_or_else(PoisonError::into_inner)
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

/// Returns the name of an unknown tool for a record, redacted, and truncated.
fn recorded(redactor: &Redactor, tool: &str) -> String {
    // The redacted part is longer than the recorded one, so that a secret across the end of the latter is recognised.
    let redacted = redactor.redact_str(tool.get(..tool.floor_char_boundary(MAX_REDACTED_NAME)).unwrap_or_default());
    excerpt(&redacted, MAX_RECORDED_NAME).into_owned()
}
