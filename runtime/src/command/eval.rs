//! `eval`: one program, its value on standard output.

use std::io::Read;
use std::process::ExitCode;
use std::sync::Arc;

use ptc_lisp::limits::Cancel;
use tokio::sync::oneshot;

use super::host::{Ended, Host};
use super::live::{Tell, Watched};
use super::show::{Display, View};
use super::{Origin, ended_early, unusable};
use crate::diagnostics::{Diagnostics, DiagnosticsSettings, RequestMeta};
use crate::evaluation::{Call, Evaluation, Evaluator, Failure, PriorState, Reason};
use crate::pool::Pool;
use crate::profile::Profile;
use crate::settings::Settings;

/// Evaluates `program` (`-` is standard input).
pub(super) fn run(origin: &Origin, mut settings: Settings, program: &str, display: Display) -> ExitCode {
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
    let mut desk = match Desk::new(&host, settings) {
        Ok(desk) => desk,
        Err(why) => return ended_early(name, host, &why),
    };
    let mut evaluation = match Call::of_program(source, settings) {
        Ok(call) => desk.watched(&mut host, call, PriorState::default()),
        Err(message) => Evaluation::refused(Failure::plain(Reason::ArgsError, message)),
    };
    let view = View::new(display, settings, host.redactor());
    host.shut_down();
    evaluation.calls.get_or_insert_default();
    view.program(&evaluation)
}

fn read(program: &str, settings: &Settings) -> Result<String, String> {
    if program == "-" { input(settings) } else { Ok(program.to_owned()) }
}

/// The program on standard input.
pub(super) fn input(settings: &Settings) -> Result<String, String> {
    match whole(std::io::stdin().lock(), settings) {
        Ok(text) if text.trim().is_empty() => Err("standard input: expected a program, found nothing".to_owned()),
        Ok(text) => Ok(text),
        Err(fault) => Err(format!("standard input: {fault}")),
    }
}

/// The text of a program, or so much of it that it is refused as too long.
pub(super) fn whole(from: impl Read, settings: &Settings) -> std::io::Result<String> {
    let most = settings.max_program_bytes as u64 + 1;
    let mut bytes = Vec::new();
    from.take(most).read_to_end(&mut bytes)?;
    // What is cut may be cut within a character.
    let is_cut = bytes.len() as u64 == most;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(fault) if is_cut => Ok(String::from_utf8_lossy(fault.as_bytes()).into_owned()),
        Err(fault) => {
            let at = fault.utf8_error().valid_up_to();
            Err(std::io::Error::new(std::io::ErrorKind::InvalidData, format!("the program is not UTF-8 at byte {at}")))
        }
    }
}

/// Where the programs of a command line are evaluated.
pub(super) struct Desk {
    evaluator: Arc<Evaluator>,
    pool: Pool,
    /// Who is told of lines as they are printed.
    pub(super) tell: Option<Tell>,
    /// Where they leave traces.
    traces: Option<Arc<Diagnostics>>,
    evaluated: u64,
}

impl Desk {
    /// The error is a sentence on what cannot be left.
    pub(super) fn new(host: &Host, settings: &Settings) -> Result<Desk, String> {
        // Nobody could ask for the rest.
        let traced = DiagnosticsSettings { tool: false, counted: false, ..settings.diagnostics.clone() };
        let traces = Diagnostics::new(&traced, !host.upstreams().catalog().upstreams.is_empty(), host.redactor())?.wanted();
        Ok(Desk { evaluator: Arc::new(host.evaluator(settings)), pool: Host::pool(1), tell: None, traces, evaluated: 0 })
    }

    /// Evaluates a program and leaves a trace of it, where one is wanted.
    pub(super) fn watched(&mut self, host: &mut Host, call: Call, past: PriorState) -> Evaluation {
        self.evaluated += 1;
        let id = self.evaluated.to_string();
        let watch = self.traces.as_ref().map(|traces| {
            let mut watch = traces.begin("lisp_eval", &RequestMeta { id: &id, protocol_version: None, origin: None, meta: None });
            watch.arguments(&call);
            watch
        });
        let evaluation = self.evaluate(host, call, past);
        if let Some(watch) = watch {
            let shown = evaluation.outcome.as_ref().map_or("", |value| &value.text);
            watch.evaluated(&evaluation, shown, Profile::Debug.budget());
        }
        evaluation
    }

    /// Evaluates on a thread of the pool. A signal stops the program; a second one stops waiting for it.
    pub(super) fn evaluate(&self, host: &mut Host, call: Call, past: PriorState) -> Evaluation {
        let evaluator = Arc::clone(&self.evaluator);
        let cancel = Cancel::default();
        let stop = cancel.clone();
        let (send, mut receive) = oneshot::channel();
        let redactor = host.redactor();
        let watched = self.tell.map(|tell| Watched { tell, redactor: host.redactor() });
        self.pool.spawn(
            move || match watched {
                Some(watched) => evaluator.evaluate_within(&call, &cancel, past, None, &watched),
                None => evaluator.evaluate(&call, &cancel, past, None),
            },
            move |result| {
                // Nobody waits any more after a second signal.
                let _ = send.send(result.unwrap_or_else(|error| Evaluation::unfinished(&error, &redactor, 1000)));
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
}
