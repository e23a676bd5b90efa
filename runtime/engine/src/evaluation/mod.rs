//! Evaluates one program, from the source text to the complete [`Evaluation`], on a [fiber](ptc_schedule::fibers) or, for a command
//! line, on a thread.
//!
//! - [`call`]: the validated arguments of `lisp_eval`.
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
pub mod reason;
mod stored;
pub mod to_json;
pub mod validated;

use std::sync::Arc;
use std::time::{Duration, Instant};

use ptc_catalog::{Catalog, StoredProgram};
use ptc_check::{Finding, FindingKind};
use ptc_lisp::limits::{Cancel, Limits};
use ptc_lisp::missing_keys::MissingKey;
use ptc_lisp::{Bindings, Deadline, ErrorKind, Kind, Program, Run, Value, fiber, json, print};

pub use call::{ArgumentLimits, Call};
pub use called::CalledTools;
pub use hooks::EvalHooks;
pub use isolation::{IsolatedRun, Isolation};
pub use outcome::{Evaluation, Failure, InSession, Preview};
pub use reason::Reason;
pub use validated::Validated;

use self::stored::StoredPrograms;
use self::validated::Bounds;
use ptc_json_schema::Schema;
use ptc_schedule::ProcessorLease;
use ptc_schedule::alloc;
use ptc_secrets::Redactor;
use ptc_text::truncate_utf8;
use ptc_upstream::access::{Access, Denial};
use ptc_upstream::caller_token::CallerToken;
use ptc_upstream::{Upstreams, WaitLimits, nothing_written};

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

/// A call that is ready to run.
struct Prepared {
    program: Arc<Program>,
    context: Option<Value>,
    /// Bytes of the context's values.
    context_bytes: i64,
    schema: Option<Arc<Schema>>,
    /// Notes about keys that the program reads but output schemas do not have.
    notes: Vec<String>,
}

/// Counts the memory that the calling thread allocates for a program before it runs.
struct InputMemory<'p> {
    processor: Option<&'p ProcessorLease>,
    before: i64,
    counted: i64,
}

impl<'p> InputMemory<'p> {
    fn new(processor: Option<&'p ProcessorLease>) -> Self {
        InputMemory { processor, before: alloc::live_bytes(), counted: 0 }
    }

    /// Counts what was allocated since. False if the process has no memory for it, or the call was cancelled.
    fn count(&mut self) -> bool {
        let bytes = alloc::live_bytes() - self.before;
        let change = bytes - std::mem::replace(&mut self.counted, bytes);
        self.processor.is_none_or(|processor| processor.count_bytes(change))
    }
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

    fn prepare(
        &self,
        call: &Call,
        past: &PriorState,
        bounds: &Bounds<'_>,
        memory: &mut InputMemory<'_>,
        around: &dyn EvalHooks,
    ) -> Result<Prepared, Failure> {
        let deadline = bounds.deadline();
        let explain = |error: ptc_lisp::Error| match error.kind {
            ErrorKind::Timeout | ErrorKind::Cancelled => bounds.stopped("the program was read and checked"),
            _ => self.failure(&ptc_check::add_call_hint(error, &call.program, self.catalog()), &call.program),
        };
        let context = call.context.as_deref().map(|raw| self.context(raw, bounds, memory)).transpose()?;
        let context_bytes = memory.counted;
        let context = around.context(context)?;
        let schema = call.output_schema.as_deref().map(|raw| validated::schema(raw).map(Arc::new)).transpose()?;
        bounds.check("the arguments were read")?;
        let (program, schema) = if let Some(stored) = call.stored {
            let ready = self.stored.get(stored, &around.tools(), explain)?;
            validated::arguments(&ready.args, context.as_ref().unwrap_or(&Value::nil()), bounds)?;
            (Arc::clone(&ready.program), schema.or_else(|| ready.output.clone()))
        } else {
            let program = Program::compile_until(&call.program, &past.bindings, &around.tools(), &deadline).map_err(explain)?;
            (Arc::new(program), schema)
        };
        let (reach, hidden) = self.authorize(&program, past, &around.tools(), &deadline)?;
        let mut findings = ptc_check::check_until(&program, self.catalog(), &deadline).map_err(explain)?;
        findings.extend(around.check(&program));
        let missing = ptc_check::missing_keys(&program, self.catalog(), &deadline);
        let (closed, open): (Vec<_>, Vec<_>) = missing.into_iter().partition(|missing| missing.is_closed);
        findings.extend(
            closed.into_iter().map(|missing| Finding { kind: FindingKind::Fails(ErrorKind::ToolError), ..missing.finding }),
        );
        let keys = open.into_iter().map(|missing| missing.finding);
        let mut notes = notes::of_text(keys, &call.program, "keys that output schemas do not have");
        let listed: Vec<Finding> = findings.extract_if(.., |finding| finding.kind == FindingKind::ResultUsedAsList).collect();
        notes.extend(notes::of_text(listed.into_iter(), &call.program, "results that are taken for lists"));
        notes.extend(reach);
        bounds.check("the program was read and checked")?;
        // The checks need the program as it is written.
        #[cfg(feature = "coverage")]
        let program = around.coverage().and_then(|collector| collector.instrument(&program)).unwrap_or(program);
        match (findings.into_iter().filter(Finding::is_certain).min_by_key(|finding| finding.span), hidden) {
            (None, None) => Ok(Prepared { program, context, context_bytes, schema, notes }),
            (None, Some(denial)) => Err(self.hidden_tool(denial, &call.program)),
            (Some(finding), denial) => Err(Failure { denial, ..self.failure(&finding.into_error(&call.program), &call.program) }),
        }
    }

    /// Returns the failure of a program that calls a tool which is hidden from its caller, or does not exist.
    fn hidden_tool(&self, denial: Box<Denial>, source: &str) -> Failure {
        let (server, tool) =
            denial.hidden.as_ref().map_or((None, None), |called| (called.server.as_deref(), called.tool.as_deref()));
        let fault = ptc_upstream::unknown_tool(self.catalog(), server.unwrap_or_default(), tool);
        let (kind, message, trace) = (fault.kind, fault.message, Box::default());
        let error = ptc_lisp::Error { kind, message, hint: fault.hint, span: None, position: None, value: None, trace };
        Failure { denial: Some(denial), ..self.failure(&error, source) }
    }

    /// Checks that the caller may call every tool that the program can reach. Returns a note if names of tools are computed when the
    /// program runs, and the denial of a tool that is hidden from the caller. Functions of earlier programs are checked again, since the
    /// caller may have fewer rights than before.
    fn authorize(
        &self,
        program: &Program,
        past: &PriorState,
        tools: &[&str],
        deadline: &Deadline,
    ) -> Result<(Option<String>, Option<Box<Denial>>), Failure> {
        let Some(access) = &self.access else { return Ok((None, None)) };
        let called = access.called_tools(program, &past.bindings, &past.results, tools, deadline);
        let denial = access.denial_of_program(self.upstreams.catalog(), &called);
        let (hidden, denial) = denial
            .map(Box::new)
            .map_or((None, None), |denial| if denial.is_hidden() { (Some(denial), None) } else { (None, Some(denial)) });
        if let Some(denial) = denial {
            let failure = Failure::plain(Reason::Forbidden, self.redact(&denial.message)).with_feedback(denial.hint.clone());
            return Err(Failure { denial: Some(denial), ..failure });
        }
        let is_computed = called.iter().any(|called| called.server.is_none() || called.tool.is_none());
        Ok((is_computed.then(|| notes::REACH_UNKNOWN.to_owned()), hidden))
    }

    /// Checks that a program could use a context, within the limits of a program.
    ///
    /// # Errors
    ///
    /// Returns the failure of such a program.
    pub fn check_context(&self, raw: &str, cancel: &Cancel) -> Result<(), Failure> {
        let Limits { wall_clock, memory_bytes, .. } = self.limits;
        let bounds = Bounds { started: Instant::now(), wall_clock, memory_bytes, cancel };
        self.context(raw, &bounds, &mut InputMemory::new(None)).map(drop)
    }

    /// Decodes `context` within the limits of the program.
    fn context(&self, raw: &str, bounds: &Bounds<'_>, memory: &mut InputMemory<'_>) -> Result<Value, Failure> {
        let limit = self.limits.memory_bytes;
        let mut check = || match memory.count() {
            _ if u64::try_from(memory.counted).is_ok_and(|bytes| bytes > limit) => Err(Failure::context_too_large(limit)),
            has_memory => match memory.processor {
                Some(processor) if !has_memory && !bounds.cancel.is_cancelled() => Err(Failure::no_memory(processor)),
                _ => bounds.check("the context was read"),
            },
        };
        let mut ended = Ok(());
        let decoded = decode_context(raw, &mut || {
            ended = check();
            ended.is_ok()
        });
        ended?;
        check()?;
        decoded
    }

    fn run(
        &self,
        call: &Call,
        prepared: Prepared,
        past: PriorState,
        processor: Option<&ProcessorLease>,
        bounds: &Bounds<'_>,
        around: &dyn EvalHooks,
    ) -> Box<Evaluation> {
        let Prepared { program, context, context_bytes, schema, notes: on_keys } = prepared;
        let (started, cancel) = (bounds.started, bounds.cancel);
        let patience = WaitLimits {
            deadline: started.checked_add(self.limits.wall_clock),
            cancel: cancel.clone(),
            client_key: processor.map(|processor| processor.client_key().clone()).unwrap_or_default(),
            most_in_flight: processor.map(ProcessorLease::max_in_flight),
            access: self.access.clone(),
            caller: self.caller.clone(),
        };
        let host = self.upstreams.program(patience);
        let limits = self.limits.clone();
        let mut run = Run::new(&program)
            .limits(limits)
            .host(around.host(&host))
            .gauge(alloc::live_bytes)
            .cancel(cancel.clone())
            .started(started);
        if let Some(share) = processor.map(ProcessorLease::share).or_else(|| around.share()) {
            run = run.share(share);
        }
        if !past.called.is_empty() {
            run = run.has_answers();
        }
        run = run.bindings(past.bindings).history(past.results);
        if let Some(context) = &context {
            run = run.context(context.clone()).input_bytes(context_bytes);
        }
        let outcome = run.execute();
        let checked = outcome.result.as_ref().map_err(|error| self.failure(error, &call.program)).and_then(|value| {
            let validate = |schema| validated::validate(schema, value, bounds, &self.redactor);
            Ok((self.preview(value), schema.as_deref().map(validate).transpose()?))
        });
        let (preview, validated) = match checked {
            Ok((preview, validated)) => (Ok(preview), validated),
            Err(failure) => (Err(failure.with_denial(host.denial().as_deref())), None),
        };
        let report = around.report(&host, preview.is_err());
        let calls = (!self.upstreams.catalog().upstreams.is_empty()).then_some(report.calls);
        // This comes after the preview, which marks the status of the results that it shows as read.
        let failed_calls = outcome.failed_calls.unchecked();
        let unchecked_calls = failed_calls.iter().map(|calls| {
            let tool = self.redact(&format!("{}/{}", calls.server, calls.tool));
            (tool, calls.count)
        });
        let unchecked_calls = unchecked_calls.collect();
        let unchecked = notes::failed_calls(failed_calls, calls.as_ref().map_or(0, Vec::len));
        // Some missing keys were already reported by the static analysis.
        let is_new = |missing: &&MissingKey| !on_keys.iter().any(|note| note.contains(&format!("'{}'", missing.key)));
        let missing: Vec<MissingKey> = outcome.missing_keys.iter().filter(is_new).cloned().collect();
        let missing = notes::keys_not_found(self.catalog(), calls.as_deref().unwrap_or_default(), &past.called, &missing);
        // Arguments of stored programs may be optional.
        let given = context.as_ref().filter(|_| call.stored.is_none());
        let on_context = given.and_then(|context| notes::context_keys(&outcome.missing_context_keys, context));
        let unread = if outcome.result.is_ok() { notes::unread_pages(host.unread_pages()) } else { Vec::new() };
        let notes = on_keys
            .into_iter()
            .chain(missing)
            .chain(on_context)
            .chain(outcome.mixed_comparison.as_ref().map(notes::mixed_comparison))
            .chain(unchecked)
            .chain(notes::misspelt(report.misspelt))
            .chain(unread)
            .chain(report.notes);
        let notes = notes.map(|note| self.redact(&note)).collect();
        Box::new(Evaluation {
            outcome: preview,
            validated,
            notes,
            unchecked_calls,
            returned: outcome.returned,
            value: outcome.result.ok(),
            bindings: outcome.bindings,
            session: None,
            prints: outcome.prints.iter().map(|line| self.redact(line)).collect(),
            calls,
            steps: outcome.steps,
            peak_bytes: outcome.peak_bytes,
            started: None,
            analysis: Duration::ZERO,
            duration: Duration::ZERO,
            queued: Duration::ZERO,
            processor_wait: Duration::ZERO,
            processor: None,
            context,
        })
    }

    fn preview(&self, value: &Value) -> Preview {
        if let Some(text) = value.as_str().filter(|text| self.is_documentation(text)) {
            let text = self.redact(text);
            let (text, truncated) = truncate_utf8(&text, self.preview_bytes);
            return Preview { text: text.to_owned(), truncated, nil: false };
        }
        let print::Preview { text, truncated, .. } = print::preview(value, self.preview_bytes);
        Preview { text: self.redact(&text), truncated, nil: value.is_nil() }
    }

    /// Whether a text is the output of `doc` for one or several names. Such a text is shown as lines instead of a literal.
    fn is_documentation(&self, text: &str) -> bool {
        let catalog = self.catalog();
        let is_entry = |entry: &str| {
            let (name, rest) = entry.split_once('\n').unwrap_or((entry, ""));
            match name.split_once('/').and_then(|(server, tool)| catalog.upstream(server)?.tool(tool)) {
                Some(tool) => self.redactor.redact_str(tool.doc) == entry,
                None => rest.starts_with("Description: ") && rest.contains("\nKind: ") && rest.contains("\nSignatures: "),
            }
        };
        !text.is_empty() && text.split("\n\n").all(is_entry)
    }

    fn failure(&self, error: &ptc_lisp::Error, source: &str) -> Failure {
        let reason = Reason::from_kind(error.kind);
        let value = error.value.as_ref().map(|value| self.preview(value));
        let span = error.span.filter(|_| error.trace.earlier.is_none());
        if let (Reason::Fail, Some(value)) = (reason, value) {
            return Failure { value: Some(value.clone()), span, ..Failure::plain(reason, value.text) };
        }
        let message = if reason.says_kind(error.kind) {
            error.message.clone()
        } else {
            format!("{}: {}", error.kind.name(), error.message)
        };
        // The rendering begins with kind and message, which are separate fields of the failure.
        let rendered = error.render(source);
        let head = format!("{}: {}", error.kind.name(), error.message);
        let place = rendered.strip_prefix(&head).unwrap_or(&rendered).trim_start_matches('\n');
        Failure { feedback: self.redact(place), span, ..Failure::plain(reason, self.redact(&message)) }
    }

    /// Redacts a failure. Errors about arguments quote them.
    fn clean(&self, failure: Failure) -> Failure {
        Failure { message: self.redact(&failure.message), feedback: self.redact(&failure.feedback), ..failure }
    }

    fn redact(&self, text: &str) -> String {
        self.redactor.redact_str(text).into_owned()
    }
}

/// Maximum bytes of a panic's message in an answer.
const PANIC_BYTES: usize = 4096;

/// Decodes `context` while `go_on` returns true, and checks its keys, which become names under `data/`.
fn decode_context(raw: &str, go_on: &mut dyn FnMut() -> bool) -> Result<Value, Failure> {
    let refuse = |message: String| Failure::plain(Reason::ArgsError, message);
    let value = json::decode_exact_while(raw.as_bytes(), go_on)
        .map_err(|fault| refuse(format!("argument `context` is not valid: {fault}")))?;
    if value.kind() != Kind::Map {
        return Err(refuse("argument `context` must be a JSON object".into()));
    }
    for (key, _) in value.entries().into_iter().flatten() {
        match key.as_name() {
            Some("") => return Err(refuse("argument `context` keys must be non-empty".into())),
            Some(name) if name.contains('/') => {
                let message =
                    format!("argument `context` keys may not contain `/`, which separates a namespace from a name: {name:?}");
                return Err(refuse(message));
            }
            _ => {}
        }
    }
    Ok(value)
}

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
