//! `eval` runs one program and prints its value on standard output.

use std::io::Read;
use std::process::ExitCode;
use std::sync::Arc;

use ptc_lisp::limits::Cancel;
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::line::Source;
use super::live::{PrintHooks, PrintLine};
use super::services::{Ended, Services};
use super::show::{ResultOptions, View};
use super::{Origin, ended_early, unusable};
use crate::diagnostics::{Diagnostics, DiagnosticsSettings, RequestMeta};
use crate::pool::Pool;
use crate::settings::Settings;
use ptc_engine::evaluation::{Call, Evaluation, Evaluator, Failure, PriorState, Reason};
use ptc_engine::response::Profile;

/// Evaluates a program. `context` is a JSON object that the program reads as `data/NAME`.
pub(super) fn run(
    origin: &Origin,
    mut settings: Settings,
    program: &Source,
    context: Option<String>,
    options: ResultOptions,
) -> ExitCode {
    let name = origin.deployment.name;
    // Local runs print the full answer, not the model-sized one.
    settings.response_profile = Profile::Debug;
    let settings = &settings;
    let source = match program.read(settings) {
        Ok(source) => source,
        Err(fault) => return unusable(name, &[fault]),
    };
    let mut services = match Services::new(origin, settings) {
        Ok(services) => services,
        Err(why) => return unusable(name, &why.sentences()),
    };
    let mut local = match LocalEvaluator::new(&services, settings) {
        Ok(local) => local,
        Err(why) => return ended_early(name, services, &why),
    };
    let context = match context.map(|text| serde_json::from_str::<Box<RawValue>>(&text)).transpose() {
        Ok(context) => context,
        Err(fault) => return unusable(name, &[format!("--context: not JSON: {fault}")]),
    };
    let limits = settings.argument_limits();
    let call = Call::of_program(source, limits).and_then(|call| match context {
        Some(context) => call.with_context(context.get().to_owned(), limits),
        None => Ok(call),
    });
    let mut evaluation = match call {
        Ok(call) => local.evaluate_traced(&mut services, call, PriorState::default()),
        Err(message) => Evaluation::refused(Failure::plain(Reason::ArgsError, message)),
    };
    let view = View::new(options, settings, services.redactor());
    services.shut_down();
    evaluation.calls.get_or_insert_default();
    view.program(&evaluation)
}

impl Source {
    /// Returns the text of the program, or the reason why it cannot be read.
    pub(super) fn read(&self, settings: &Settings) -> Result<String, String> {
        match self {
            Source::Text(text) => Ok(text.clone()),
            Source::File(path) => {
                let read = std::fs::File::open(path).and_then(|file| whole(file, settings));
                read.map_err(|fault| format!("{}: {fault}", path.display()))
            }
            Source::Input => input(settings),
        }
    }
}

/// Reads the program on standard input.
fn input(settings: &Settings) -> Result<String, String> {
    match whole(std::io::stdin().lock(), settings) {
        Ok(text) if text.trim().is_empty() => Err("standard input: expected a program, found nothing".to_owned()),
        Ok(text) => Ok(text),
        Err(fault) => Err(format!("standard input: {fault}")),
    }
}

/// Reads the text of a program, up to one byte more than the limit.
fn whole(from: impl Read, settings: &Settings) -> std::io::Result<String> {
    let most = settings.max_program_bytes as u64 + 1;
    let mut bytes = Vec::new();
    from.take(most).read_to_end(&mut bytes)?;
    // The truncation may have split a character.
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

/// Evaluates programs for a command line.
pub(super) struct LocalEvaluator {
    evaluator: Arc<Evaluator>,
    pool: Pool,
    /// Receives lines as they are printed.
    pub(super) print_line: Option<PrintLine>,
    /// Writes trace files, if enabled.
    traces: Option<Arc<Diagnostics>>,
    evaluated: u64,
}

impl LocalEvaluator {
    /// Creates an evaluator. The error is a sentence about the trace folder.
    pub(super) fn new(services: &Services, settings: &Settings) -> Result<LocalEvaluator, String> {
        // Only trace files are useful without a server.
        let traced = DiagnosticsSettings { tool: false, counted: false, ..settings.diagnostics.clone() };
        let traces =
            Diagnostics::new(&traced, !services.upstreams().catalog().upstreams.is_empty(), services.redactor())?.if_enabled();
        Ok(LocalEvaluator {
            evaluator: Arc::new(services.evaluator(settings)),
            pool: Pool::new(ptc_lisp::STACK_BYTES + ptc_lisp::STACK_SLACK_BYTES, 2),
            print_line: None,
            traces,
            evaluated: 0,
        })
    }

    /// Evaluates a program and writes its trace, if enabled.
    pub(super) fn evaluate_traced(&mut self, services: &mut Services, call: Call, past: PriorState) -> Box<Evaluation> {
        self.evaluated += 1;
        let id = self.evaluated.to_string();
        let watch = self.traces.as_ref().map(|traces| {
            let mut watch = traces.begin(
                "lisp_eval",
                &RequestMeta { id: &id, owner: &"eval".into(), protocol_version: None, origin: None, meta: None },
            );
            watch.arguments(&call);
            watch
        });
        let evaluation = self.evaluate(services, call, past);
        if let Some(watch) = watch {
            let shown = evaluation.outcome.as_ref().map_or("", |value| &value.text);
            watch.evaluated(&evaluation, shown, Profile::Debug.budget());
        }
        evaluation
    }

    /// Evaluates on a thread of the pool. A signal cancels the program; a second one stops waiting for it.
    pub(super) fn evaluate(&self, services: &mut Services, call: Call, past: PriorState) -> Box<Evaluation> {
        let evaluator = Arc::clone(&self.evaluator);
        let cancel = Cancel::default();
        let stop = cancel.clone();
        let (send, mut receive) = oneshot::channel();
        let redactor = services.redactor();
        let hooks = self.print_line.map(|print_line| PrintHooks { print_line, redactor: services.redactor() });
        self.pool.spawn(
            move || match hooks {
                Some(hooks) => evaluator.evaluate_within(&call, &cancel, past, None, &hooks),
                None => evaluator.evaluate(&call, &cancel, past, None),
            },
            move |result| {
                // After a second signal the receiver is gone.
                let _ = send.send(result.unwrap_or_else(|error| Evaluation::unfinished(&error, &redactor, 1000)));
            },
        );
        let done = match services.until(&mut receive) {
            Ended::Done(done) => done.ok(),
            Ended::Signal(_) => {
                stop.cancel();
                match services.until(receive) {
                    Ended::Done(done) => done.ok(),
                    Ended::Signal(_) => None,
                }
            }
        };
        done.unwrap_or_else(|| Evaluation::refused(Failure::plain(Reason::Cancelled, "the evaluation was stopped")))
    }
}
