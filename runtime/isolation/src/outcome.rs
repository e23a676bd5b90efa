//! The end of an evaluation: the result that a worker has sent, or the reason why there is none.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use ptc_engine::evaluation::{Evaluation, Failure, IsolatedRun, Reason};
use ptc_lisp::fiber;
use ptc_lisp::image::{self, DecodeLimits};
use ptc_log::Level;
use ptc_schedule::alloc;
use ptc_upstream::ProgramHost;

use crate::message::Done;

/// Time for a program to end by itself after its deadline.
pub(crate) const DEADLINE_GRACE: Duration = Duration::from_millis(500);

/// Maximum bytes of a text of a worker that is logged, or that is the message of a failure.
const MAX_TEXT_BYTES: usize = 4 * 1024;

/// Why an evaluation has no result.
pub(crate) enum Unfinished {
    /// The worker could not be started.
    NotStarted(io::Error),
    /// The worker cannot be confined.
    NotConfined(String),
    /// The socket was closed. Contains how the process ended, if it is known.
    Ended(Option<ExitStatus>),
    /// The worker sent bytes that are not a message.
    Misunderstood(io::Error),
    /// The program did not end in time.
    Late,
    /// The server has ended the program for this reason.
    OutOfBudget(String),
    /// The process holds this many bytes, more than the program may use.
    TooLarge(u64),
}

/// Returns the limits of a program within which the server decodes what its worker has sent.
pub(crate) fn decode_limits(run: &IsolatedRun<'_>) -> DecodeLimits {
    DecodeLimits {
        memory: Some((run.limits.memory_bytes, alloc::live_bytes)),
        until: run.started.checked_add(run.limits.wall_clock + DEADLINE_GRACE),
        cancel: run.cancel.clone(),
        data_only: false,
    }
}

/// Returns the evaluation that a worker has finished.
pub(crate) fn finished(run: &IsolatedRun<'_>, host: &ProgramHost, done: Done) -> Box<Evaluation> {
    if let Some(panic) = &done.panic {
        ptc_log::line(Level::Error, "evaluation panicked", &[("message", &shortened(panic))]);
    }
    let mut evaluation = done.evaluation.into_evaluation(run.evaluator, &run.limits);
    evaluation.bindings = run.past.bindings.clone();
    // The server makes the calls, so that it knows why one was refused.
    evaluation.outcome = evaluation.outcome.map_err(|failure| failure.with_denial(host.denial().as_deref()));
    // Calls that were made are recorded, whatever the worker says.
    evaluation.calls = Some(host.calls()).filter(|calls| done.has_run || !calls.is_empty());
    let not_storable = |why: String| Failure::plain(Reason::SessionNotStorable, why);
    let state = done.state.map(|image| {
        let image = image.map_err(|why| not_storable(shortened(&why)))?;
        // To decode functions compiles their programs, which needs much stack.
        let decoded = fiber::on_thread_stack(|| image::decode_within(&image, &decode_limits(run)));
        decoded.map_err(|why| {
            let is_cancelled = run.cancel.is_cancelled();
            if is_cancelled { Failure::plain(Reason::Cancelled, "the run was cancelled") } else { not_storable(why.to_string()) }
        })
    });
    match state {
        Some(Ok((bindings, values))) => {
            if run.past.is_kept {
                evaluation.bindings = bindings.with_unchanged(&run.past.bindings, &done.changed);
            }
            evaluation.value = values.into_iter().next();
        }
        Some(Err(failure)) => {
            evaluation.outcome = Err(failure);
            evaluation.validated = None;
        }
        None => {}
    }
    evaluation
}

/// Returns the beginning of a text of a worker, which may have any length.
pub(crate) fn shortened(text: &str) -> String {
    match ptc_text::truncate_utf8(text, MAX_TEXT_BYTES) {
        (whole, false) => whole.to_owned(),
        (head, true) => format!("{head}… and {} more bytes", text.len() - head.len()),
    }
}

fn calls(run: &IsolatedRun<'_>, host: &ProgramHost) -> Option<Vec<ptc_upstream::CallRecord>> {
    (!run.evaluator.upstreams().catalog().upstreams.is_empty()).then(|| host.calls())
}

/// Returns the evaluation of a program whose worker has not finished it.
pub(crate) fn unfinished(run: &IsolatedRun<'_>, host: &ProgramHost, why: Unfinished) -> Box<Evaluation> {
    let ended = |how: String| {
        ptc_log::line(Level::Error, "a worker process ended", &[("reason", &how)]);
        Failure::plain(Reason::RuntimeError, format!("worker_ended: the process that ran this program ended: {how}"))
    };
    let failure = match why {
        Unfinished::NotStarted(why) => {
            ptc_log::line(Level::Error, "no worker process", &[("reason", &why.to_string())]);
            Failure::no_stack(run.processor.retry_after_ms())
        }
        Unfinished::NotConfined(why) => ended(format!("the kernel cannot confine it ({why})")),
        Unfinished::OutOfBudget(why) => Failure::plain(Reason::MemoryLimit, why),
        Unfinished::Ended(status) => ended(match status.and_then(|status| status.signal()) {
            Some(signal) => format!("it was killed by signal {signal}"),
            None => status.map_or_else(|| "it closed its socket".to_owned(), |status| status.to_string()),
        }),
        Unfinished::Misunderstood(why) => ended(format!("it was killed, since its messages are not valid ({why})")),
        Unfinished::TooLarge(bytes) => {
            let limit = run.limits.memory_bytes;
            let message =
                format!("the process of this program was killed, since it held {bytes} bytes (limit: {limit} bytes of values)");
            Failure::plain(Reason::MemoryLimit, message)
        }
        Unfinished::Late if run.cancel.is_cancelled() => Failure::plain(Reason::Cancelled, "the run was cancelled"),
        Unfinished::Late => {
            let limit = run.limits.wall_clock.as_millis();
            Failure::plain(Reason::Timeout, format!("the program did not end within {limit} ms, and its process was killed"))
        }
    };
    let mut evaluation = Evaluation::refused(failure);
    evaluation.bindings = run.past.bindings.clone();
    evaluation.calls = calls(run, host);
    let redactor = run.evaluator.redactor();
    evaluation.notes = host.report(true).notes.into_iter().map(|note| redactor.redact_string(note)).collect();
    evaluation
}
