//! Runs the programs of a task until one returns or fails.

use std::future::poll_fn;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use ptc_lisp::interrupt::Interrupt;
use ptc_lisp::limits::Cancel;
use ptc_lisp::{fiber, json};
use serde_json::Value;

use super::answer::{Reason, Stop};
use super::client::{Asked, Fault, Message};
use super::completion::{Completion, Usage};
use super::ledger::Ledger;
use super::prompt::Marks;
use super::request::Task;
use super::{Planner, prompt};
use crate::fibers;
use crate::schedule::{LeaseIssuer, StateReservation};
use crate::secrets::Redactor;
use crate::session::SessionState;
use crate::upstream::access::Access;
use crate::upstream::caller_token::CallerToken;
use ptc_engine::evaluation::{self, Call, Evaluation, Evaluator, Failure};

/// Maximum size of an answer as JSON in bytes, before it is truncated to the operator's limit.
const MAX_RESULT_BYTES: usize = 4 * 1024 * 1024;
/// Estimated bytes of memory of each value of an answer while it is truncated, with its copies.
const BYTES_PER_VALUE: u64 = 100;

/// A call of the planner and its result.
#[derive(Debug)]
pub struct PlannerCall {
    /// Bytes of all messages.
    pub prompt_bytes: usize,
    /// Bytes of the answer.
    pub completion_bytes: usize,
    /// The provider's token usage.
    pub usage: Option<Usage>,
    /// Number of attempts.
    pub attempts: u32,
    /// The start of the first attempt.
    pub began: Instant,
    /// The time until the answer.
    pub duration: Duration,
    /// The error, if there is no answer.
    pub error: Option<Reason>,
    /// The messages and the answer, if traces may contain them.
    pub said: Option<(Vec<Message>, String)>,
}

/// One turn.
#[derive(Debug)]
pub struct Turn {
    /// The call of the planner.
    pub planner_call: PlannerCall,
    /// The program. `None` if there was none.
    pub program: Option<ProgramRun>,
    /// Why the planner's answer contained no program.
    pub without: Option<String>,
}

/// A program that was run or rejected.
#[derive(Debug)]
pub struct ProgramRun {
    /// The source text.
    pub source: String,
    /// Why it has no value, or no value that can be an answer.
    pub failure: Option<Failure>,
    /// When its analysis began.
    pub began: Instant,
    /// Time to read, analyse and check it.
    pub analysis: Duration,
    /// Time to evaluate it.
    pub evaluation: Duration,
}

/// A running task.
pub struct Run<'p> {
    planner: &'p Planner,
    evaluator: Evaluator,
    task: &'p Task,
    /// The marks around data in prompts.
    marks: Marks,
    cancel: &'p Cancel,
    schedule: &'p LeaseIssuer,
    deadline: Instant,
    messages: Vec<Message>,
    /// What the next program has of the earlier ones, within the limits of a session.
    kept: SessionState,
    kept_memory: StateReservation,
    turns: Vec<Turn>,
    ledger: Ledger,
    program: Option<String>,
    processor_wait: Duration,
}

/// A completed task.
#[derive(Debug)]
pub struct End {
    /// The answer, or the reason why there is none.
    pub outcome: Result<Value, Stop>,
    /// The turns.
    pub turns: Vec<Turn>,
    /// The upstream calls.
    pub ledger: Ledger,
    /// The last program that was run or rejected.
    pub program: Option<String>,
    /// The duration of the task.
    pub duration: Duration,
    /// When it began. `None` if it did not begin.
    pub started: Option<Instant>,
    /// Time in the queue before it began.
    pub queued: Duration,
    /// Time that its programs waited for a processor.
    pub processor_wait: Duration,
}

impl End {
    /// Makes the end of a task without turns.
    pub fn before(stop: Stop) -> End {
        End {
            outcome: Err(stop),
            turns: Vec::new(),
            ledger: Ledger::default(),
            program: None,
            duration: Duration::ZERO,
            started: None,
            queued: Duration::ZERO,
            processor_wait: Duration::ZERO,
        }
    }

    /// Records the time in the queue.
    #[must_use]
    pub fn with_queued(self, queued: Duration) -> End {
        End { queued, ..self }
    }
}

/// The result of a turn: the end, or the feedback for the next turn.
type Step = ControlFlow<Result<Value, Stop>, String>;

impl Planner {
    /// Runs a task on the calling fiber, for a caller who may do this, and who came with this access token.
    pub fn run(
        &self,
        task: &Task,
        access: Option<Arc<dyn Access>>,
        caller: Option<CallerToken>,
        cancel: &Cancel,
        schedule: &LeaseIssuer,
    ) -> End {
        let started = Instant::now();
        let marks = match Marks::new() {
            Ok(marks) => marks,
            Err(why) => {
                return End::before(Stop::new(Reason::PlannerError, format!("the system has no random bytes: {why}")));
            }
        };
        let evaluator = self.evaluator.permitting(access).on_behalf_of(caller);
        let messages = prompt::opening(task, &self.plan, evaluator.catalog(), &marks);
        let mut run = Run {
            planner: self,
            evaluator,
            task,
            marks,
            cancel,
            schedule,
            deadline: started + self.plan.settings.task_timeout,
            messages: messages.into_iter().map(|message| clean(message, &self.redactor)).collect(),
            kept: SessionState::default(),
            kept_memory: schedule.state_memory(),
            turns: Vec::new(),
            ledger: Ledger::default(),
            program: None,
            processor_wait: Duration::ZERO,
        };
        let outcome = run.all();
        let Run { turns, ledger, program, processor_wait, .. } = run;
        let (queued, duration) = (schedule.queued(), started.elapsed());
        End { outcome, turns, ledger, program, duration, started: Some(started), queued, processor_wait }
    }
}

impl Run<'_> {
    fn all(&mut self) -> Result<Value, Stop> {
        let check = |raw| self.evaluator.check_context(raw, self.cancel);
        if let Some(Err(wrong)) = self.task.context.as_deref().map(check) {
            let reason = if self.cancel.is_cancelled() { Reason::Cancelled } else { Reason::ArgsError };
            return Err(Stop::new(reason, wrong.message));
        }
        let plan = &self.planner.plan;
        let last = plan.max_turns + plan.retry_turns;
        let mut turn = 1;
        loop {
            let fault = match self.turn(turn) {
                ControlFlow::Break(end) => return end,
                ControlFlow::Continue(fault) => fault,
            };
            if self.ledger.may_have_changed() {
                let message = "a program called a tool that is not known to change nothing, and neither returned nor failed; no \
                               other program may follow";
                return Err(Stop::new(Reason::PartialSideEffects, message).with_detail(fault));
            }
            if turn == last {
                let message = if last == 1 {
                    "the planner's one program neither returned nor failed (--agentic-max-turns)".to_owned()
                } else {
                    format!("none of the planner's {last} programs returned or failed")
                };
                let reason = if plan.retry_turns == 0 { Reason::MaxTurns } else { Reason::RetriesExhausted };
                return Err(Stop::new(reason, message).with_detail(fault));
            }
            let content = prompt::feedback(&fault, turn, plan);
            self.messages.push(clean(Message { role: "user", content }, &self.planner.redactor));
            turn += 1;
        }
    }

    fn turn(&mut self, turn: u32) -> Step {
        let completion = match self.ask() {
            Ok(completion) => completion,
            Err(stop) => return ControlFlow::Break(Err(stop)),
        };
        if let Some(refusal) = &completion.refusal {
            let message = format!("the planner's model refuses: {refusal}");
            return ControlFlow::Break(Err(Stop::new(Reason::PlannerError, message)));
        }
        // Models imitate the form of their earlier messages. Only the text is sent back, without reasoning and function calls.
        let said = if completion.text.is_empty() { "(no text)".to_owned() } else { completion.text.clone() };
        self.messages.push(Message { role: "assistant", content: said });
        let plan = &self.planner.plan;
        let program = match completion.program() {
            Ok(program) => program.into_owned(),
            Err(why) => return self.without(prompt::without_program(why, plan.settings.max_output_tokens)),
        };
        let call = match Call::of_program(program.clone(), plan.server.argument_limits()) {
            Ok(call) => Call { context: self.task.context.clone(), ..call },
            Err(why) => return self.without(format!("Your program was not run: {why}.")),
        };
        self.program = Some(program.clone());
        let left = match self.left() {
            Ok(left) => left,
            Err(stop) => return ControlFlow::Break(Err(stop)),
        };
        let evaluator = self.evaluator.within(left);
        let began = Instant::now();
        let place = self.schedule.next(self.cancel, self.deadline);
        let mut evaluation = evaluator.evaluate(&call, self.cancel, self.kept.prior_state(), Some(place));
        // Counts the memory of the evaluation until a part of it is reserved for the next program and the rest is dropped.
        self.processor_wait += evaluation.processor_wait;
        let processor = evaluation.processor.take();
        self.ledger.add(evaluation.calls.as_deref().unwrap_or_default(), turn, evaluator.catalog());
        if let Some(turn) = self.turns.last_mut() {
            turn.program = Some(ProgramRun {
                source: program,
                failure: evaluation.outcome.as_ref().err().cloned(),
                began,
                analysis: evaluation.analysis,
                evaluation: evaluation.duration.saturating_sub(evaluation.analysis),
            });
        }
        let step = self.judge(&evaluation, turn, began);
        drop(evaluation);
        drop(processor);
        step
    }

    /// Handles a turn without a program.
    fn without(&mut self, why: String) -> Step {
        if let Some(turn) = self.turns.last_mut() {
            turn.without = Some(why.clone());
        }
        ControlFlow::Continue(why)
    }

    /// Encodes an answer as JSON, within the limits of the program that began at this time.
    fn encode(&self, value: &ptc_lisp::Value, began: Instant) -> Result<String, String> {
        let server = &self.planner.plan.server;
        let is_over = || self.cancel.is_cancelled() || began.elapsed() > server.program_timeout;
        let too_long = || format!("it takes too long to encode, or is longer than {MAX_RESULT_BYTES} bytes as JSON");
        let size = json::measure(value, MAX_RESULT_BYTES, &is_over).map_err(|_| too_long())?;
        if size.values as u64 * BYTES_PER_VALUE > server.program_memory_limit_bytes {
            return Err(format!("its {} values need too much memory as JSON (--program-memory-limit-bytes)", size.values));
        }
        json::encode_until(value, MAX_RESULT_BYTES, &is_over).map_err(|why| if is_over() { too_long() } else { why.to_string() })
    }

    /// Handles the result of an evaluation, which began at this time.
    fn judge(&mut self, evaluation: &Evaluation, turn: u32, began: Instant) -> Step {
        let must = turn >= self.planner.plan.max_turns;
        match (&evaluation.outcome, &evaluation.value) {
            (Ok(_), Some(value)) if evaluation.returned => match self.encode(value, began) {
                Ok(text) => {
                    let text = self.planner.redactor.redact_text(text);
                    ControlFlow::Break(Ok(serde_json::from_str(&text).unwrap_or(Value::String(text))))
                }
                Err(_) if self.cancel.is_cancelled() => {
                    ControlFlow::Break(Err(Stop::new(Reason::Cancelled, "the call was cancelled")))
                }
                Err(why) => {
                    let failure = Failure::plain(evaluation::Reason::ValidationError, format!("return: {why}"));
                    if let Some(run) = self.turns.last_mut().and_then(|turn| turn.program.as_mut()) {
                        run.failure = Some(failure);
                    }
                    ControlFlow::Continue(prompt::unusable_answer(&why, &self.marks))
                }
            },
            (Ok(_), _) => ControlFlow::Continue(match self.keep(evaluation) {
                Ok(()) => prompt::continue_feedback(evaluation, must, &self.marks),
                Err(failure) => {
                    let feedback = prompt::error_feedback(&failure, evaluation, &self.marks);
                    if let Some(run) = self.turns.last_mut().and_then(|turn| turn.program.as_mut()) {
                        run.failure = Some(failure);
                    }
                    feedback
                }
            }),
            (Err(failure), _) => match failure.reason {
                evaluation::Reason::Fail => {
                    let text = serde_json::from_str::<String>(&failure.message).unwrap_or_else(|_| failure.message.clone());
                    ControlFlow::Break(Err(Stop::new(Reason::AgentFailed, text)))
                }
                evaluation::Reason::Cancelled => ControlFlow::Break(Err(Stop::new(Reason::Cancelled, failure.message.as_str()))),
                evaluation::Reason::Timeout if self.left().is_err() && !self.ledger.may_have_changed() => {
                    ControlFlow::Break(Err(self.late()))
                }
                _ => ControlFlow::Continue(prompt::error_feedback(failure, evaluation, &self.marks)),
            },
        }
    }

    /// Keeps the definitions and the result of an evaluation for the next program.
    fn keep(&mut self, evaluation: &Evaluation) -> Result<(), Failure> {
        let kept = self.kept.with_values(evaluation, &self.planner.plan.server.session_limits.kept);
        let kept = kept.and_then(|(kept, _)| match self.kept_memory.resize(kept.bytes()) {
            Ok(()) => Ok(kept),
            Err(full) => Err(full.to_string()),
        });
        self.kept = kept.map_err(|why| {
            let why = self.planner.redactor.redact_string(why);
            let message = format!("{why}; nothing of this program was kept");
            let feedback = "A task keeps as much between its programs as a session. Define less, or return the value.";
            Failure::plain(evaluation::Reason::SessionLimitExceeded, message).with_feedback(feedback)
        })?;
        Ok(())
    }

    /// Returns the remaining time of the task.
    fn left(&self) -> Result<Duration, Stop> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(self.late()) } else { Ok(left) }
    }

    fn late(&self) -> Stop {
        let most = super::milliseconds(self.planner.plan.settings.task_timeout);
        Stop::new(Reason::BudgetExceeded, format!("the task took longer than {most} ms (--agentic-task-timeout-ms)"))
    }

    /// Sends a request to the planner, within its time limit and that of the task.
    fn ask(&mut self) -> Result<Completion, Stop> {
        let began = Instant::now();
        let most = self.planner.plan.settings.planner_timeout;
        let deadline = began + most.min(self.left()?);
        let asked = self.wait(deadline);
        let stop = match &asked.outcome {
            Ok(_) => None,
            Err(_) if self.cancel.is_cancelled() => Some(Stop::new(Reason::Cancelled, "the call was cancelled")),
            Err(Fault::Config(why)) => Some(Stop::new(Reason::ConfigError, why.as_str())),
            Err(Fault::Planner(why)) => Some(Stop::new(Reason::PlannerError, why.as_str())),
            Err(Fault::Late) if self.left().is_err() => Some(self.late()),
            Err(Fault::Late) => {
                let most = super::milliseconds(most);
                let why = format!("the planner did not answer within {most} ms (--agentic-planner-timeout-ms)");
                Some(Stop::new(Reason::PlannerTimeout, why))
            }
        };
        let completion = asked.outcome.ok();
        let said = self.planner.traces_prompts().then(|| {
            let answer = completion.as_ref().map(|completion| completion.text.clone()).unwrap_or_default();
            (self.messages.clone(), answer)
        });
        self.turns.push(Turn {
            planner_call: PlannerCall {
                prompt_bytes: self.messages.iter().map(|message| message.content.len()).sum(),
                completion_bytes: completion.as_ref().map_or(0, |completion| completion.text.len()),
                usage: completion.as_ref().and_then(|completion| completion.usage),
                attempts: asked.attempts,
                began,
                duration: began.elapsed(),
                error: stop.as_ref().map(|stop| stop.reason),
                said,
            },
            program: None,
            without: None,
        });
        match (completion, stop) {
            (_, Some(stop)) => Err(stop),
            (Some(completion), None) => Ok(completion),
            (None, None) => Err(Stop::new(Reason::PlannerError, "the planner gave nothing")),
        }
    }

    /// Waits on this fiber until the request on the runtime has completed.
    fn wait(&self, deadline: Instant) -> Asked {
        let (client, messages) = (self.planner.client.clone(), self.messages.clone());
        let mut asking = self.planner.handle.spawn(async move { client.ask(&messages, deadline).await });
        let waker = fiber::waker();
        let _watch = self.cancel.watch(Interrupt::by(move || waker.wake_by_ref()));
        // When the server ends, the runtime may no longer run the request: a cancelled task does not wait for it.
        let asked = fibers::block_on(poll_fn(|context| {
            if self.cancel.is_cancelled() { Poll::Ready(None) } else { Pin::new(&mut asking).poll(context).map(Result::ok) }
        }));
        asked.unwrap_or_else(|| {
            asking.abort();
            let cancelled = self.cancel.is_cancelled();
            let fault = if cancelled { Fault::Late } else { Fault::Planner("the server is ending".to_owned()) };
            Asked { outcome: Err(fault), attempts: 1 }
        })
    }
}

fn clean(message: Message, redactor: &Redactor) -> Message {
    Message { content: redactor.redact_string(message.content), ..message }
}
