//! `eval`: one program, its value on standard output.

use std::fmt::Write;
use std::io::Read;
use std::process::ExitCode;
use std::sync::Arc;

use ptc_lisp::limits::Cancel;
use serde::Serialize;
use tokio::sync::oneshot;

use super::host::{Ended, Host};
use super::{FAILED, Origin, unusable, written};
use crate::evaluation::{Call, Evaluation, Evaluator, Failure, Past, Reason};
use crate::pool::Pool;
use crate::profile::{Profile, answer};
use crate::settings::Settings;

/// Evaluates `program` (`-` is standard input).
pub(super) fn run(origin: &Origin, mut settings: Settings, program: &str, json: bool) -> ExitCode {
    let name = origin.deployment.name;
    // A terminal or a file has room that a model has not.
    settings.response_profile = Profile::Debug;
    let settings = &settings;
    let source = match read(program, settings) {
        Ok(source) => source,
        Err(fault) => return unusable(name, &[fault]),
    };
    let mut host = match Host::new(origin, settings) {
        Ok(host) => host,
        Err(why) => return unusable(name, &why.sentences()),
    };
    let mut evaluation = match Call::of_program(source, settings) {
        Ok(call) => {
            let evaluator = Arc::new(host.evaluator(settings));
            evaluate(&mut host, &evaluator, &Host::pool(1), call, Past::default())
        }
        Err(message) => Evaluation::refused(Failure::plain(Reason::ArgsError, message)),
    };
    host.shut_down();
    let shown = if json {
        evaluation.calls.get_or_insert_default();
        written(&object(&evaluation))
    } else {
        let shown = written(&printed(&evaluation));
        if let Err(failure) = &evaluation.outcome {
            return failed(name, failure);
        }
        shown
    };
    if evaluation.outcome.is_err() { ExitCode::from(FAILED) } else { shown }
}

fn read(program: &str, settings: &Settings) -> Result<String, String> {
    if program != "-" {
        return Ok(program.to_owned());
    }
    let mut source = String::new();
    // One byte more than allowed is enough to refuse it.
    let most = settings.max_program_bytes as u64 + 1;
    let read = std::io::stdin().lock().take(most).read_to_string(&mut source);
    read.map(|_| source).map_err(|fault| format!("standard input: {fault}"))
}

/// Evaluates on a thread of `pool`. A signal stops the program; a second one stops waiting for it.
pub(super) fn evaluate(host: &mut Host, evaluator: &Arc<Evaluator>, pool: &Pool, call: Call, past: Past) -> Evaluation {
    let evaluator = Arc::clone(evaluator);
    let cancel = Cancel::default();
    let stop = cancel.clone();
    let (send, mut receive) = oneshot::channel();
    pool.spawn(
        move || evaluator.evaluate(&call, &cancel, past),
        move |result| {
            // Nobody waits any more after a second signal.
            let _ = send.send(result.unwrap_or_else(|panicked| Evaluation::panicked(&panicked)));
        },
    );
    let done = match host.until(&mut receive) {
        Ended::Done(done) => done.ok(),
        Ended::Signal(_) => {
            stop.cancel();
            match host.until(receive) {
                Ended::Done(done) => done.ok(),
                Ended::Signal(_) => None,
            }
        }
    };
    done.unwrap_or_else(|| Evaluation::refused(Failure::plain(Reason::Cancelled, "the evaluation was stopped")))
}

/// What a program printed, and its value, as in a REPL.
pub(super) fn printed(evaluation: &Evaluation) -> String {
    let mut text = String::new();
    for line in &evaluation.prints {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{line}");
    }
    if let Ok(value) = &evaluation.outcome {
        let _ = writeln!(text, "{}", answer::shown(value));
    }
    text
}

/// The documented data of the `debug` profile, with the time it took and an error as people read it.
pub(super) fn object(evaluation: &Evaluation) -> String {
    #[derive(Serialize)]
    struct Object<'a> {
        #[serde(flatten)]
        payload: answer::Payload<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        duration_ms: f64,
    }
    let error = evaluation.outcome.as_ref().err().map(sentence);
    let duration_ms = evaluation.duration.as_micros() as f64 / 1000.0;
    let object = Object { payload: answer::payload(evaluation, Profile::Debug), error, duration_ms };
    let mut text = serde_json::to_string(&object).unwrap_or_default();
    text.push('\n');
    text
}

/// A failure as people read it.
pub(super) fn sentence(failure: &Failure) -> String {
    let mut text = format!("{}: {}", failure.reason.name(), failure.message);
    if !failure.feedback.is_empty() {
        text.push('\n');
        text.push_str(&failure.feedback);
    }
    text
}

fn failed(name: &str, failure: &Failure) -> ExitCode {
    unusable(name, &[sentence(failure)]);
    ExitCode::from(FAILED)
}
