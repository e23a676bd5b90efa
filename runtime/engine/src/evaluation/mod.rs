//! Evaluates one program, from the source text to the complete [`Evaluation`], on a [fiber](ptc_schedule::fibers) or, for a command
//! line, on a thread.
//!
//! - [`call`]: the validated arguments of `lisp_eval`.
//! - `prepare`: reads and checks a program and its context, and asks the policy.
//! - `run`: runs a prepared program, with its preview and its notes.
//! - `shown`: what a client sees of values and errors.
//! - `called`: the tools whose answers earlier evaluations received.
//! - `notes`: the notes of an answer.
//! - `hooks`: the tools and checks of an embedding program.
//! - [`isolation`]: the evaluation in another process, and what travels between the two.
//! - `outcome`: the result of an evaluation: its value, or its failure.
//! - [`reason`]: the reasons of failures in the protocol.
//! - `capacity`: failures for lack of capacity.
//! - `stored`: stored programs, prepared once.
//! - [`validated`]: validates results against `output_schema`.

pub mod call;
mod called;
mod capacity;
mod hooks;
pub mod isolation;
pub mod notes;
mod outcome;
mod prepare;
pub mod reason;
mod run;
mod shown;
mod stored;
pub mod to_json;
pub mod validated;

use std::sync::Arc;
use std::time::{Duration, Instant};

use ptc_catalog::{Catalog, StoredProgram};
use ptc_lisp::limits::{Cancel, Limits};
use ptc_lisp::{Bindings, Value, fiber};

pub use call::{ArgumentLimits, Call};
pub use called::CalledTools;
pub use hooks::EvalHooks;
pub use isolation::{IsolatedRun, Isolation};
pub use outcome::{Evaluation, Failure, InSession, Preview};
pub use reason::Reason;
pub use validated::Validated;

use self::prepare::InputMemory;
use self::stored::StoredPrograms;
use self::validated::Bounds;
use ptc_schedule::ProcessorLease;
use ptc_secrets::Redactor;
use ptc_upstream::access::Access;
use ptc_upstream::caller_token::CallerToken;
use ptc_upstream::{Upstreams, nothing_written};

/// Evaluates programs for one deployment. Evaluations share only the upstreams' connections.
#[derive(Clone)]
pub struct Evaluator {
    limits: Limits,
    preview_bytes: usize,
    upstreams: Arc<Upstreams>,
    stored: Arc<StoredPrograms>,
    redactor: Redactor,
    isolation: Option<Arc<dyn Isolation>>,
    access: Option<Arc<dyn Access>>,
    caller: Option<CallerToken>,
}

/// The hooks of a server without own tools.
struct ServerHooks<'e>(&'e Evaluator);

impl EvalHooks for ServerHooks<'_> {
    fn isolation(&self) -> Option<&dyn Isolation> {
        self.0.isolation.as_deref()
    }
}

/// The state that earlier evaluations left.
#[derive(Debug, Clone, Default)]
pub struct PriorState {
    /// Their definitions.
    pub bindings: Bindings,
    /// Their values, newest first: `*1 *2 *3`.
    pub results: Vec<Value>,
    /// Tools whose answers they received.
    pub called: CalledTools,
    /// Whether later evaluations get the definitions and the value of this one.
    pub is_kept: bool,
}

impl Evaluator {
    /// Creates an evaluator for programs of clients and for stored programs. `preview_bytes` is the maximum length of a value's
    /// preview.
    pub fn new(
        limits: Limits,
        preview_bytes: usize,
        upstreams: Arc<Upstreams>,
        programs: &'static [StoredProgram],
        redactor: Redactor,
    ) -> Self {
        let stored = Arc::new(StoredPrograms::new(programs));
        Evaluator { limits, preview_bytes, upstreams, stored, redactor, isolation: None, access: None, caller: None }
    }

    /// Returns an evaluator that runs programs in other processes. Those with hooks still run in this one.
    #[must_use]
    pub fn isolated(mut self, isolation: Arc<dyn Isolation>) -> Evaluator {
        self.isolation = Some(isolation);
        self
    }

    /// Returns an evaluator with the time limit `most` if that is lower.
    #[must_use]
    pub fn within(&self, most: Duration) -> Evaluator {
        let mut evaluator = self.clone();
        evaluator.limits.wall_clock = self.limits.wall_clock.min(most);
        evaluator
    }

    /// Returns an evaluator with these limits.
    #[must_use]
    pub fn with_limits(&self, limits: Limits) -> Evaluator {
        Evaluator { limits, ..self.clone() }
    }

    /// Returns an evaluator for a caller who may do this. Without an access everything is permitted.
    #[must_use]
    pub fn permitting(&self, access: Option<Arc<dyn Access>>) -> Evaluator {
        Evaluator { access, ..self.clone() }
    }

    /// Returns an evaluator that calls upstreams on behalf of the caller with this access token. The token is kept as long as the evaluator.
    #[must_use]
    pub fn on_behalf_of(self, caller: Option<CallerToken>) -> Evaluator {
        Evaluator { caller, ..self }
    }

    /// Returns the access token of the caller.
    pub fn caller(&self) -> Option<&CallerToken> {
        self.caller.as_ref()
    }

    /// Returns what the caller may do.
    pub fn access(&self) -> Option<&Arc<dyn Access>> {
        self.access.as_ref()
    }

    /// Returns the part of the current catalog that the caller may see.
    pub fn catalog(&self) -> &'static Catalog {
        let whole = self.upstreams.catalog();
        self.access.as_ref().map_or(whole, |access| access.catalog(whole))
    }

    /// Returns the redactor of answers.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Returns the upstreams.
    pub fn upstreams(&self) -> &Arc<Upstreams> {
        &self.upstreams
    }

    /// Evaluates on the calling thread, which needs the stack size that `ptc-lisp` names. With `processor` it waits for a
    /// processor, without it the evaluation is not scheduled.
    pub fn evaluate(&self, call: &Call, cancel: &Cancel, past: PriorState, processor: Option<ProcessorLease>) -> Box<Evaluation> {
        self.evaluate_within(call, cancel, past, processor, &ServerHooks(self))
    }

    /// Like [`Evaluator::evaluate`], with hooks.
    pub fn evaluate_within(
        &self,
        call: &Call,
        cancel: &Cancel,
        past: PriorState,
        processor: Option<ProcessorLease>,
        around: &dyn EvalHooks,
    ) -> Box<Evaluation> {
        let computing = match &processor {
            Some(processor) => match processor.begin() {
                None if !cancel.is_cancelled() => {
                    let failure =
                        if processor.is_ended() { Failure::no_memory(processor) } else { Failure::no_processor(processor) };
                    let mut evaluation = Evaluation::refused(failure);
                    evaluation.record_waits(&processor.wait_times());
                    return evaluation;
                }
                computing => computing,
            },
            None => None,
        };
        // The program's time limit starts when it has a processor.
        let started = around.started().unwrap_or_else(Instant::now);
        let Limits { wall_clock, memory_bytes, .. } = self.limits;
        let bounds = Bounds { started, wall_clock, memory_bytes, cancel };
        let mut evaluation = match (around.isolation(), &processor) {
            (Some(isolation), Some(processor)) => {
                let limits = self.limits.clone();
                isolation.run(IsolatedRun { evaluator: self, call, past, cancel, started, limits, processor })
            }
            _ => self.evaluate_here(call, past, processor.as_ref(), &bounds, around),
        };
        // Cancellation may arrive during the last step. It is reported even if the evaluation then succeeded.
        if cancel.is_cancelled() && evaluation.outcome.is_ok() {
            evaluation.outcome = Err(Failure::plain(Reason::Cancelled, "the call was cancelled"));
            evaluation.validated = None;
        }
        evaluation.started = Some(started);
        evaluation.duration = started.elapsed();
        drop(computing);
        if let Some(processor) = processor {
            evaluation.record_waits(&processor.wait_times());
            evaluation.processor = Some(processor);
        }
        evaluation
    }

    /// Evaluates in this process.
    fn evaluate_here(
        &self,
        call: &Call,
        past: PriorState,
        processor: Option<&ProcessorLease>,
        bounds: &Bounds<'_>,
        around: &dyn EvalHooks,
    ) -> Box<Evaluation> {
        // Parsing uses much stack, which a waiting program should not hold. It therefore runs on the thread's stack.
        let mut memory = InputMemory::new(processor);
        let prepared = fiber::on_thread_stack(|| self.prepare(call, &past, bounds, &mut memory, around));
        memory.count();
        let analysis = bounds.started.elapsed();
        let mut evaluation = match prepared {
            Ok(prepared) => self.run(call, prepared, past, processor, bounds, around),
            Err(failure) => {
                let mut evaluation = Evaluation::refused(self.clean(failure));
                evaluation.notes.extend(nothing_written(self.catalog()));
                evaluation
            }
        };
        evaluation.analysis = analysis;
        evaluation
    }
}

/// Maximum bytes of a panic's message in an answer.
const PANIC_BYTES: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use ptc_schedule::pool::JobError;

    #[test]
    fn panic_message_in_an_answer_is_redacted() {
        let redactor = Redactor::none().with("s3cr3t-token-value");
        let panicked = JobError::Panicked("index of s3cr3t-token-value".to_owned());
        let failure = Evaluation::unfinished(&panicked, &redactor, 1000).outcome.unwrap_err();
        assert!(failure.message.ends_with("a bug of the server: index of [REDACTED]"), "{}", failure.message);
    }
}
