//! A call of `lisp_task`.

use std::sync::{Arc, Mutex, PoisonError};

use ptc_lisp::limits::Cancel;

use super::call::{Refused, finish};
use super::caller::Answer;
use super::dispatch::{Request, Server};
use crate::agentic::answer::{Reason, Stop, members};
use crate::agentic::ledger::Ledger;
use crate::agentic::{End, Planner, Task};
use crate::diagnostics::Watch;
use crate::log::{self, Level};
use crate::profile::answer;

impl Server {
    /// Has the pool run a task, on a place as any evaluation has it: the planner's thinking counts as running.
    pub(super) fn task(&self, request: Request<'_>, planner: &Arc<Planner>, watch: Option<Watch>) {
        let task = match Task::read(&request.params.arguments, &self.settings) {
            Ok(task) => Arc::new(task),
            Err(message) => return self.refuse(request, watch, Refused::arguments(message)),
        };
        let Some((place, watch)) = self.enter(request, watch, Cancel::default()) else { return };
        let (id, era) = (request.id.to_owned(), request.era);
        let (planner, answers, cancel) = (Arc::clone(planner), Arc::clone(request.answers), place.cancellation().clone());
        let redactor = self.redactor.clone();
        let (runner, running) = (Arc::clone(&planner), Arc::clone(&task));
        let watch = Arc::new(Mutex::new(watch));
        let began = Arc::clone(&watch);
        self.pool.spawn(
            move || {
                if let Some(watch) = &mut *began.lock().unwrap_or_else(PoisonError::into_inner) {
                    watch.task(&running);
                }
                runner.run(&running, &cancel)
            },
            move |done| {
                let watch = watch.lock().unwrap_or_else(PoisonError::into_inner).take();
                let end = done.unwrap_or_else(|panicked| {
                    log::line(Level::Error, "task panicked", &[("message", &panicked.0)]);
                    let message = format!("the task stopped on a bug of the server: {}", panicked.0);
                    let outcome = Err(Stop::new(Reason::PlannerError, message));
                    End {
                        outcome,
                        turns: Vec::new(),
                        ledger: Ledger::default(),
                        program: None,
                        duration: std::time::Duration::ZERO,
                    }
                });
                let members = members(&end, &task, planner.plan());
                // Before the answer: whoever has it may ask about it.
                finish(watch, |watch| watch.task_ended(&end, &members));
                if !place.is_withdrawn() {
                    // Its parts are clean already, but for what the client itself said.
                    let result = redactor.redact_text(answer::data_result(&members, end.outcome.is_err(), era));
                    answers.send(Answer::result(&id, &result), Some(place));
                }
            },
        );
    }
}
