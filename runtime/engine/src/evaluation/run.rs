//! Runs a prepared program, and collects its value, its failure and its notes.

use std::time::Duration;

use ptc_lisp::Run;
use ptc_lisp::missing_keys::MissingKey;

use super::prepare::Prepared;
use super::validated::{self, Bounds};
use super::{Call, EvalHooks, Evaluation, Evaluator, PriorState, notes};
use ptc_schedule::ProcessorLease;
use ptc_schedule::alloc;
use ptc_upstream::WaitLimits;

impl Evaluator {
    pub(super) fn run(
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
}
