//! The answer to a call.

use std::sync::Arc;

use ptc_compiler::json::Json;
use ptc_compiler::serve::cassette::{Player, request_text};
use ptc_lisp::host::HttpHead;
use ptc_runtime::schedule::ClientKey;
use ptc_runtime::upstream::intercept::{CallAnswer, CallPayload, InterceptedCall, Interception, Interceptor, ProgramInterceptor};

use super::examples::Examples;
use super::observed::ObservedShapes;
use super::report;
use super::rules::Rules;
use crate::answers::Outcome;
use crate::answers::declared_output::DeclaredOutput;
use crate::answers::faults::{Fault, Recorded};
use crate::answers::generate;

/// Determines the answers of all upstreams.
pub(super) struct Answers {
    /// The cassette. All clients share its position, so that the n-th request gets the n-th answer.
    playback: Option<Arc<dyn ProgramInterceptor>>,
    /// Whether answers to requests that the cassette does not have are generated.
    generates: bool,
    examples: Examples,
    observed: ObservedShapes,
    seed: u64,
    rules: Rules,
}

impl Answers {
    pub(super) fn new(
        player: Option<&Arc<Player>>,
        generates: bool,
        examples: Examples,
        observed: ObservedShapes,
        seed: u64,
        rules: Rules,
    ) -> Answers {
        let client_key = ClientKey { owner: "mock".into(), session: 0 };
        Answers { playback: player.map(|player| player.begin(&client_key)), generates, examples, observed, seed, rules }
    }

    /// Returns the answer to a call. `calls` are the calls that the request may stand for: the first one that the cassette has
    /// counts, and without one the first of all.
    ///
    /// # Errors
    ///
    /// Says why there is no answer.
    pub(super) fn answer(&self, calls: &[InterceptedCall]) -> Result<Outcome, String> {
        let Some(call) = calls.first() else { return Err("the request is not a call".to_owned()) };
        let fault = self.rules.next(call);
        let outcome = match self.without_fault(call, calls) {
            // A failure takes the place of any answer.
            Err(_) if fault.is_some_and(Fault::is_failure) => {
                Ok(CallAnswer { payload: CallPayload::None, http_status: None, head: None })
            }
            answer => answer?,
        };
        Ok(match fault {
            Some(fault) => self.with_fault(call, fault, outcome),
            None => outcome,
        })
    }

    fn without_fault(&self, call: &InterceptedCall, calls: &[InterceptedCall]) -> Result<Outcome, String> {
        let Some(playback) = &self.playback else { return self.generated(call) };
        let mut unknown = None;
        for call in calls {
            match playback.answer(call) {
                Interception::Answer(outcome) | Interception::AnswerAfter(_, outcome) => return Ok(outcome),
                Interception::Refuse(fault) => _ = unknown.get_or_insert(fault.message),
                Interception::PassOn => {}
            }
        }
        if self.generates { self.generated(call) } else { Err(unknown.unwrap_or_default()) }
    }

    /// Returns an example of the document or of the output schema, or a generated value. A tool without an output schema answers in its
    /// observed shape. If nothing was observed, it answers with a text, and an operation with any value.
    fn generated(&self, call: &InterceptedCall) -> Result<Outcome, String> {
        let (tool, request) = (call.tool, request_text(call));
        let declared = DeclaredOutput::new(tool);
        let is_operation = tool.operation.is_some();
        let seed = generate::seed_from(&format!("{} {}/{} {request}", self.seed, call.upstream.name, tool.name));
        let example = declared.schema().and_then(|schema| {
            let of_document = tool.operation.and_then(|operation| self.examples.get(call.upstream.name, operation));
            let of_schema = schema.get("examples").map(Json::elements).unwrap_or_default();
            of_document.into_iter().chain(of_schema).find(|example| declared.permits(example)).cloned()
        });
        let answer = example.or_else(|| match (self.observed.get(call.upstream.name, tool.name), declared.schema()) {
            (Some(observed), is_declared) => generate::answer_to(tool, observed, seed, &request)
                .filter(|answer| declared.permits(answer))
                .or_else(|| is_declared.and_then(|_| generate::answer_to(tool, &declared, seed, &request))),
            (None, Some(_)) => generate::answer_to(tool, &declared, seed, &request),
            (None, None) => {
                let any = if is_operation { Json::object() } else { Json::object().with("type", Json::string("string")) };
                generate::answer(&DeclaredOutput::from_schema(Some(any)), seed)
            }
        });
        let payload = match answer {
            // Without an output schema, a tool of an MCP server answers with content, and not with structured content.
            Some(Json::String(text)) if !is_operation && declared.schema().is_none() => CallPayload::Plain(text),
            Some(json) => CallPayload::Json(json.canonical().into_bytes()),
            None => {
                return Err(format!(
                    "no answer of {}/{} that matches its output schema was found; give one in a cassette (--cassette FILE)",
                    call.upstream.name, tool.name
                ));
            }
        };
        let head = is_operation.then(|| HttpHead { status: 200, headers: Vec::new(), failed_body: None });
        Ok(Ok(CallAnswer { payload, http_status: is_operation.then_some(200), head }))
    }

    /// Returns the answer with a fault. Of several places that can have it, the seed and the request choose one.
    fn with_fault(&self, call: &InterceptedCall, fault: &'static Fault, outcome: Outcome) -> Outcome {
        let request = request_text(call);
        let recorded = Recorded::new(call.tool, outcome.clone());
        let (mut variants, _) = fault.variants(&recorded, None);
        if variants.is_empty() || fault.name == "next_page" && recorded.is_for_further_page(&request) {
            let (upstream, tool) = (call.upstream.name, call.tool.name);
            report(&format!("the answer of {upstream}/{tool} to {request} cannot have the fault {}", fault.name));
            return outcome;
        }
        let seed = generate::seed_from(&format!("{} {} {request}", self.seed, fault.name));
        let at = usize::try_from(seed % variants.len() as u64).unwrap_or_default();
        variants.swap_remove(at).outcome
    }
}
