//! From an evaluation to the JSON of a tool result.

use std::borrow::Cow;

use ptc_lisp::Kind;
use serde::Serialize;
use serde_json::value::RawValue;

use super::metrics::Metrics;
use super::{Budget, Profile};
use crate::evaluation::{Evaluation, Failure, Preview, Reason, Validated};
use crate::protocol::revision::Era;
use crate::upstream::CallRecord;

/// Characters of a printed line; the rest of a longer one is left out.
const LINE_CHARS: usize = 2_000;

/// What stands before a value, as in a REPL.
pub const PREFIX: &str = "user=> ";

/// An evaluation's data as the documents name them. What is `None` or false is left out.
#[derive(Debug, Default, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "the documented flags")]
pub struct Payload<'a> {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prints: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    feedback: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<bool>,
    /// Something was left out that is not the value's preview.
    #[serde(skip_serializing_if = "is_false")]
    output_truncated: bool,
    #[serde(skip_serializing_if = "is_false")]
    prints_truncated: bool,
    #[serde(skip_serializing_if = "is_false")]
    feedback_truncated: bool,
    /// Exact or absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    validated: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    validated_preview: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    validated_bytes: Option<usize>,
    #[serde(skip_serializing_if = "is_false")]
    validated_preview_truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<Memory<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream_calls: Option<Calls<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ptc_metrics: Option<Metrics>,
}

/// What a session keeps of an evaluation.
#[derive(Debug, Serialize)]
struct Memory<'a> {
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    changed_keys: &'a [String],
    stored_keys: &'a [String],
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Calls<'a> {
    Full(&'a [CallRecord]),
    Failed(Vec<FailedCall<'a>>),
}

/// A failed upstream call in a compact answer.
#[derive(Debug, Serialize)]
struct FailedCall<'a> {
    server: &'static str,
    tool: &'a str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
}

#[derive(Serialize)]
struct ToolResult<'a> {
    content: [Text<'a>; 1],
    #[serde(rename = "structuredContent", skip_serializing_if = "Option::is_none")]
    structured_content: Option<&'a Payload<'a>>,
    #[serde(rename = "isError")]
    is_error: bool,
    #[serde(rename = "resultType", skip_serializing_if = "Option::is_none")]
    result_type: Option<&'static str>,
}

#[derive(Serialize)]
struct Text<'a> {
    r#type: &'static str,
    text: &'a str,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape that serde calls")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// The raw JSON of a tool result.
pub fn tool_result(evaluation: &Evaluation, profile: Profile, era: Era) -> String {
    let whole = profile.budget();
    let most = whole.envelope_bytes;
    let fits = |budget| Some(render(evaluation, profile, budget, era)).filter(|json| json.len() <= most);
    // A value is worth more than what was printed on the way to it, and a validated one more than its preview.
    let without_prints = Budget { print_entries: 0, ..whole };
    let short = Budget { preview_bytes: whole.preview_bytes / 8, ..without_prints };
    fits(whole)
        .or_else(|| fits(without_prints))
        .or_else(|| fits(short))
        .or_else(|| fits(Budget { validated_bytes: 0, ..short }))
        .unwrap_or_else(|| reduced(evaluation, profile, era, most))
}

fn render(evaluation: &Evaluation, profile: Profile, budget: Budget, era: Era) -> String {
    let payload = (profile != Profile::Slim).then(|| payload(evaluation, profile, budget));
    let text = match (&payload, profile) {
        (Some(payload), Profile::Debug) => serde_json::to_string(payload).unwrap_or_default(),
        _ => text(evaluation, budget),
    };
    envelope(evaluation, &text, payload.as_ref(), era)
}

fn envelope(evaluation: &Evaluation, text: &str, payload: Option<&Payload<'_>>, era: Era) -> String {
    let result = ToolResult {
        content: [Text { r#type: "text", text }],
        structured_content: payload,
        is_error: evaluation.outcome.is_err(),
        result_type: (era == Era::Stateless).then_some("complete"),
    };
    serde_json::to_string(&result).unwrap_or_default()
}

/// The last resort: every part was within its budget, and together, written as JSON, they are not.
fn reduced(evaluation: &Evaluation, profile: Profile, era: Era, most: usize) -> String {
    // A byte of text takes six of JSON at most, and debug says it twice.
    let text = text(evaluation, Budget { print_entries: 0, preview_bytes: most / 16, ..profile.budget() });
    let (text, _) = cut(&text, most / 16);
    // Notes end the text, where a cut falls first.
    let notes = evaluation.notes.join("\n");
    let notes = cut(&notes, most / 32).0;
    let note = if notes.is_empty() { String::new() } else { format!("\n\n[{notes}]") };
    let text = format!("{text}\n\n[truncated]{note}");
    let prints_truncated = !evaluation.prints.is_empty();
    let mut payload = Payload { truncated: Some(true), output_truncated: true, prints_truncated, ..Payload::default() };
    payload.session = evaluation.session.as_ref().map(|session| &session.metadata);
    match &evaluation.outcome {
        Ok(_) => {
            payload.status = "ok";
            payload.result = evaluation.outcome.as_ref().ok().map(|value| result(value, most / 16));
            if let Some(validated) = &evaluation.validated {
                payload.validated_preview = Some(&validated.preview.text);
                payload.validated_preview_truncated = validated.preview.truncated;
                payload.validated_bytes = Some(validated.json.len());
            }
            if profile == Profile::Debug {
                payload.prints = Some(Vec::new());
            }
            payload.feedback = (profile == Profile::Debug || !notes.is_empty()).then_some(Cow::Borrowed(notes));
        }
        Err(failure) => {
            payload.status = "error";
            payload.reason = Some(failure.reason.name());
            payload.message = Some(cut(&failure.message, most / 32).0);
            payload.feedback = Some(Cow::Borrowed(notes));
        }
    }
    envelope(evaluation, &text, (profile != Profile::Slim).then_some(&payload), era)
}

/// The same for a call of a stored program: a result that its schema vouches for is the answer, in every profile. Notes follow it.
pub fn stored_result(evaluation: &Evaluation, profile: Profile, era: Era) -> String {
    #[derive(Serialize)]
    struct StoredResult<'a> {
        content: Vec<Text<'a>>,
        #[serde(rename = "structuredContent", skip_serializing_if = "Option::is_none")]
        structured_content: Option<&'a RawValue>,
        #[serde(rename = "isError")]
        is_error: bool,
        #[serde(rename = "resultType", skip_serializing_if = "Option::is_none")]
        result_type: Option<&'static str>,
    }
    let (Ok(_), Some(validated)) = (&evaluation.outcome, &evaluation.validated) else {
        return tool_result(evaluation, profile, era);
    };
    // The protocol has objects only as structured content.
    let structured_content = Some(&validated.json)
        .filter(|json| json.starts_with('{') && !validated.is_deep)
        .and_then(|json| serde_json::from_str(json).ok());
    // Notes are a text of their own: the first is JSON for those that read it as such.
    let notes = bracketed(&evaluation.notes);
    let texts = [validated.json.as_str(), notes.trim_start()];
    let content = texts.into_iter().filter(|text| !text.is_empty()).map(|text| Text { r#type: "text", text }).collect();
    let result_type = (era == Era::Stateless).then_some("complete");
    serde_json::to_string(&StoredResult { content, structured_content, is_error: false, result_type }).unwrap_or_default()
}

/// The raw JSON of a tool result that is data in every profile: the same members as text and as structured content.
pub fn data_result(members: &serde_json::Map<String, serde_json::Value>, is_error: bool, era: Era) -> String {
    #[derive(Serialize)]
    struct DataResult<'a> {
        content: [Text<'a>; 1],
        #[serde(rename = "structuredContent")]
        structured_content: &'a serde_json::Map<String, serde_json::Value>,
        #[serde(rename = "isError")]
        is_error: bool,
        #[serde(rename = "resultType", skip_serializing_if = "Option::is_none")]
        result_type: Option<&'static str>,
    }
    let text = serde_json::to_string(members).unwrap_or_default();
    let content = [Text { r#type: "text", text: &text }];
    let result_type = (era == Era::Stateless).then_some("complete");
    serde_json::to_string(&DataResult { content, structured_content: members, is_error, result_type }).unwrap_or_default()
}

/// The raw JSON of a tool result that refuses a call.
pub fn refusal(reason: Reason, message: impl Into<String>, feedback: &str, profile: Profile, era: Era) -> String {
    let mut failure = Failure::plain(reason, message);
    feedback.clone_into(&mut failure.feedback);
    tool_result(&Evaluation::refused(failure), profile, era)
}

/// An evaluation's data in a profile: everything in `debug`, what a client acts on otherwise.
pub fn payload(evaluation: &Evaluation, profile: Profile, budget: Budget) -> Payload<'_> {
    let full = profile == Profile::Debug;
    let (prints, prints_truncated) = printed(evaluation, budget);
    let mut payload = Payload { upstream_calls: calls(evaluation, full), ..Payload::default() };
    if let Some(session) = &evaluation.session {
        payload.session = Some(&session.metadata);
        let keeps = evaluation.outcome.is_ok() && !session.stored.is_empty();
        payload.memory = keeps.then_some(Memory { changed_keys: &session.changed, stored_keys: &session.stored });
    }
    payload.output_truncated = prints_truncated;
    match &evaluation.outcome {
        Ok(value) => {
            payload.status = "ok";
            payload.result = (!value.nil).then(|| result(value, budget.preview_bytes));
            let is_cut = is_cut(evaluation, value, budget);
            payload.truncated = (full || is_cut).then_some(is_cut);
            let notes = evaluation.notes.join("\n");
            payload.feedback = (full || !notes.is_empty()).then_some(Cow::Owned(notes));
            if let Some(validated) = &evaluation.validated {
                let whole = budget.holds(validated).then_some(validated.json.as_str());
                payload.validated = whole.and_then(|json| serde_json::from_str(json).ok());
                if payload.validated.is_none() {
                    payload.validated_preview = Some(&validated.preview.text);
                    payload.validated_preview_truncated = validated.preview.truncated;
                    payload.validated_bytes = Some(validated.json.len());
                    payload.output_truncated = true;
                }
            }
        }
        Err(failure) => {
            payload.status = "error";
            payload.reason = Some(failure.reason.name());
            payload.message = Some(cut(&failure.message, budget.feedback_bytes).0);
            payload.retry_after_ms = failure.retry_after_ms;
            payload.result = failure.value.as_ref().map(|value| Cow::Borrowed(value.text.as_str()));
            let (mut feedback, feedback_truncated) = feedback(failure, budget.feedback_bytes);
            for note in &evaluation.notes {
                feedback.to_mut().extend(["\n", note]);
            }
            payload.feedback = Some(feedback);
            payload.feedback_truncated = feedback_truncated;
            let is_cut = prints_truncated || failure.value.as_ref().is_some_and(|value| value.truncated);
            payload.truncated = is_cut.then_some(true);
        }
    }
    payload.ptc_metrics = full.then(|| metrics(evaluation, budget)).flatten();
    payload.prints_truncated = prints_truncated;
    let always = full && evaluation.outcome.is_ok();
    payload.prints = Some(prints).filter(|prints| always || !prints.is_empty());
    payload
}

/// What its upstream calls came to beside an answer within that budget.
pub fn metrics(evaluation: &Evaluation, budget: Budget) -> Option<Metrics> {
    let calls = evaluation.calls.as_ref()?;
    let value = evaluation.outcome.as_ref().ok().filter(|value| !value.nil);
    let result = value.map(|value| result(value, budget.preview_bytes));
    let metrics = Metrics::of(&result.unwrap_or_default(), &printed(evaluation, budget).0, calls);
    Some(metrics.waited(evaluation.queued, evaluation.processor_wait))
}

/// Whether an answer within that budget leaves anything out.
pub fn is_cut(evaluation: &Evaluation, value: &Preview, budget: Budget) -> bool {
    let is_there = |validated: &Validated| budget.holds(validated);
    value.truncated
        || value.text.len() > budget.preview_bytes
        || printed(evaluation, budget).1
        || !evaluation.validated.as_ref().is_none_or(is_there)
}

/// An evaluation as text for a model.
fn text(evaluation: &Evaluation, budget: Budget) -> String {
    let (mut prints, prints_truncated) = printed(evaluation, budget);
    if prints_truncated {
        prints.push("[prints truncated]".to_owned());
    }
    let prints = (!prints.is_empty()).then(|| format!("<prints>\n{}", prints.join("\n")));
    match &evaluation.outcome {
        Ok(value) => {
            let mut text = String::with_capacity(value.text.len() + PREFIX.len());
            if let Some(prints) = prints {
                text = prints + "\n\n<result>\n";
            }
            text.push_str(&with_definitions(evaluation, value, budget));
            if value.truncated || value.text.len() > budget.preview_bytes {
                text.push_str("\n\n[truncated]");
            }
            text + &bracketed(&evaluation.notes)
        }
        Err(failure) => {
            let (message, _) = cut(&failure.message, budget.feedback_bytes);
            let mut text = format!("{}: {message}", failure.reason.name());
            if !failure.feedback.is_empty() {
                text.push('\n');
                text.push_str(cut(&failure.feedback, budget.feedback_bytes).0);
            }
            if evaluation.session.is_some() {
                text.push_str("\n[rolled back]");
            }
            if let Some(prints) = prints {
                text.extend(["\n\n", &prints]);
            }
            text + &bracketed(&evaluation.notes)
        }
    }
}

/// Notes in the text of an answer: each in brackets after an empty line.
fn bracketed(notes: &[String]) -> String {
    notes.iter().map(|note| format!("\n\n[{note}]")).collect()
}

/// A value with the names that its session has new. A program that ends in `def` has said all with the name.
fn with_definitions(evaluation: &Evaluation, value: &Preview, budget: Budget) -> String {
    let stored = evaluation.session.as_ref().map(|session| session.changed.join(", ")).filter(|names| !names.is_empty());
    let is_definition = evaluation.value.as_ref().is_some_and(|value| value.kind() == Kind::Var);
    match stored {
        Some(names) if is_definition => format!("[stored: {names}]"),
        Some(names) => format!("{}\n[stored: {names}]", result(value, budget.preview_bytes)),
        None => result(value, budget.preview_bytes).into_owned(),
    }
}

/// A value behind its prefix.
pub fn shown(value: &Preview) -> Cow<'_, str> {
    Cow::Owned(format!("{PREFIX}{}", value.text))
}

/// The same, cut where it has more bytes than that.
fn result(value: &Preview, most: usize) -> Cow<'_, str> {
    let (text, is_cut) = cut(&value.text, most);
    if is_cut { format!("{PREFIX}{text}…").into() } else { shown(value) }
}

fn feedback(failure: &Failure, most: usize) -> (Cow<'_, str>, bool) {
    if failure.feedback.is_empty() {
        let (text, truncated) = cut(&failure.message, most);
        return (text.into(), truncated);
    }
    let whole = format!("{}\n{}", failure.message, failure.feedback);
    let (text, truncated) = cut(&whole, most);
    if truncated { (text.to_owned().into(), true) } else { (whole.into(), false) }
}

fn calls(evaluation: &Evaluation, full: bool) -> Option<Calls<'_>> {
    let calls = evaluation.calls.as_ref()?;
    if full {
        return Some(Calls::Full(calls));
    }
    // A compact success leaves calls out: the program has dealt with those that failed.
    evaluation.outcome.as_ref().err()?;
    let failed: Vec<_> = calls
        .iter()
        .filter(|call| call.status != "ok")
        .map(|call| FailedCall { server: call.server, tool: &call.tool, status: call.status, reason: call.reason })
        .collect();
    (!failed.is_empty()).then_some(Calls::Failed(failed))
}

/// The printed lines that a budget lets through, and whether any was left out.
fn printed(evaluation: &Evaluation, budget: Budget) -> (Vec<String>, bool) {
    let mut left = budget.print_bytes;
    let (mut kept, mut whole) = (Vec::new(), true);
    for line in evaluation.prints.iter().take(budget.print_entries) {
        let most = line.char_indices().nth(LINE_CHARS).map_or(line.len(), |(end, _)| end);
        let (begin, is_cut) = cut(line, most);
        let line = if is_cut { format!("{begin}…") } else { begin.to_owned() };
        // With a comma, as a list in JSON has it.
        let encoded = serde_json::to_string(&line).map_or(line.len(), |json| json.len()) + 1;
        let Some(rest) = left.checked_sub(encoded) else { break };
        left = rest;
        kept.push(line);
        whole &= !is_cut;
    }
    let truncated = !whole || kept.len() < evaluation.prints.len();
    (kept, truncated)
}

/// The longest prefix of at most that many bytes that ends between characters, and whether anything was cut.
pub(crate) fn cut(text: &str, most: usize) -> (&str, bool) {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    (text.get(..end).unwrap_or(text), end < text.len())
}
