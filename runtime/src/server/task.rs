//! Calls of `lisp_task`.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use ptc_lisp::limits::Cancel;

use super::call::{Refused, finish};
use super::caller::Answer;
use super::dispatch::{Request, Server};
use super::evaluate::reject;
use super::in_flight::Registration;
use crate::agentic::answer::{Reason, Stop, members};
use crate::agentic::{End, Planner, Task};
use crate::diagnostics::CallTrace;
use crate::log::{self, Level};
use crate::pool::JobError;
use crate::schedule::LeaseIssuer;
use ptc_engine::evaluation::Failure;
use ptc_engine::response::answer;

impl Server {
    /// Runs a task on a fiber with a permit like that of a program. It uses no processor while its planner works.
    pub(super) fn task(&self, request: Request<'_>, planner: &Arc<Planner>, call_trace: Option<CallTrace>) {
        let task = match Task::read(&request.params.arguments, &self.settings) {
            Ok(task) => Arc::new(task),
            Err(message) => return self.refuse(request, call_trace, Refused::arguments(message)),
        };
        let Some((registration, call_trace)) = self.enter(request, call_trace, Cancel::default()) else { return };
        let (id, era) = (request.id.to_owned(), request.era);
        let (planner, answers, cancel) = (Arc::clone(planner), Arc::clone(request.answers), registration.cancellation().clone());
        let redactor = self.redactor.clone();
        let (runner, running) = (Arc::clone(&planner), Arc::clone(&task));
        let (access, caller) = (self.access(request.caller), request.caller.identity.token.clone());
        let call_trace = Arc::new(Mutex::new(call_trace));
        let began = Arc::clone(&call_trace);
        let (client_key, bytes, entering) = (registration.client_key().clone(), task.bytes(), cancel.clone());
        let work = move |turns: LeaseIssuer| {
            if let Some(call_trace) = &mut *began.lock().unwrap_or_else(PoisonError::into_inner) {
                call_trace.task(&running);
            }
            runner.run(&running, access, caller, &cancel, &turns)
        };
        let done = move |registration: Registration, end: End| {
            let call_trace = call_trace.lock().unwrap_or_else(PoisonError::into_inner).take();
            let members = members(&end, &task, planner.plan());
            // The trace is finished before the answer is sent, since the client may then ask for it.
            finish(call_trace, |call_trace| call_trace.task_ended(&end, &members));
            if !registration.is_withdrawn() {
                // The parts of the answer are redacted already, except for texts of the client.
                let result = redactor.redact_text(answer::data_result(&members, end.outcome.is_err(), era));
                let answer = Answer::result(&id, &result);
                // The client may be slow to read the answer.
                drop((end, members, result));
                answers.send(answer, Some(registration));
            }
        };
        let (fibers, retry_after_ms) = (Arc::clone(&self.fibers), self.scheduler.retry_after_ms());
        let (entered, counting) = (Instant::now(), Arc::clone(&self.scheduler));
        self.scheduler.enter(&client_key, bytes, &entering, move |permit| {
            let mut registration = registration;
            match permit {
                Ok(permit) => {
                    let turns = permit.leases();
                    let queued = turns.queued();
                    registration.hold(permit);
                    fibers.spawn(
                        move || work(turns),
                        move |end| {
                            end.as_ref().err().into_iter().for_each(|error| counting.count_ended(error));
                            registration.set_begun(match &end {
                                Ok(end) => end.started.is_some(),
                                Err(error) => *error != JobError::NotStarted,
                            });
                            let end =
                                end.unwrap_or_else(|error| End::before(unfinished(error, retry_after_ms)).with_queued(queued));
                            done(registration, end);
                        },
                    );
                }
                Err(why) => {
                    let queued = entered.elapsed();
                    let end = End::before(Stop::rejected(Failure::rejected(why, retry_after_ms))).with_queued(queued);
                    reject(&fibers, why, move || done(registration, end));
                }
            }
        });
    }
}

/// Returns why a task has not begun or not ended.
fn unfinished(error: JobError, retry_after_ms: u64) -> Stop {
    match error {
        JobError::NotStarted => Stop::rejected(Failure::no_stack(retry_after_ms)),
        JobError::Panicked(message) => {
            log::line(Level::Error, "task panicked", &[("message", &message)]);
            Stop::new(Reason::PlannerError, format!("the task stopped on a bug of the server: {message}"))
        }
    }
}
