//! Reads and checks a program and its context before it runs, and asks the policy whether the caller may call what it reaches.

use std::sync::Arc;
use std::time::Instant;

use ptc_check::{Finding, FindingKind};
use ptc_lisp::limits::{Cancel, Limits};
use ptc_lisp::{Deadline, ErrorKind, Kind, Program, Value, json};

use super::validated::{self, Bounds};
use super::{Call, EvalHooks, Evaluator, Failure, PriorState, Reason, notes};
use ptc_json_schema::Schema;
use ptc_schedule::ProcessorLease;
use ptc_schedule::alloc;
use ptc_upstream::access::Denial;

/// A call that is ready to run.
pub(super) struct Prepared {
    pub(super) program: Arc<Program>,
    pub(super) context: Option<Value>,
    /// Bytes of the context's values.
    pub(super) context_bytes: i64,
    pub(super) schema: Option<Arc<Schema>>,
    /// Notes about keys that the program reads but output schemas do not have.
    pub(super) notes: Vec<String>,
}

/// Counts the memory that the calling thread allocates for a program before it runs.
pub(super) struct InputMemory<'p> {
    processor: Option<&'p ProcessorLease>,
    before: i64,
    counted: i64,
}

impl<'p> InputMemory<'p> {
    pub(super) fn new(processor: Option<&'p ProcessorLease>) -> Self {
        InputMemory { processor, before: alloc::live_bytes(), counted: 0 }
    }

    /// Counts what was allocated since. False if the process has no memory for it, or the call was cancelled.
    pub(super) fn count(&mut self) -> bool {
        let bytes = alloc::live_bytes() - self.before;
        let change = bytes - std::mem::replace(&mut self.counted, bytes);
        self.processor.is_none_or(|processor| processor.count_bytes(change))
    }
}

impl Evaluator {
    pub(super) fn prepare(
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
}

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
