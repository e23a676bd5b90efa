//! Converts an evaluation to the JSON of a tool result.

use std::borrow::Cow;

use ptc_lisp::Kind;
use ptc_lisp::print::{MAX_CUT_MARK, push_cut_mark, split_cut_mark};
use ptc_text::truncate_utf8;
use serde::Serialize;
use serde_json::value::RawValue;

use super::metrics::Metrics;
use super::{Budget, Profile};
use crate::evaluation::{Evaluation, Failure, Preview, Reason, Validated};
use crate::protocol::revision::Era;
use ptc_upstream::CallRecord;

/// Minimum bytes of a truncated printed line, including its mark.
const MIN_CUT_BYTES: usize = 2 * MAX_CUT_MARK;

/// The prefix of a value, as in a REPL.
pub const PREFIX: &str = "user=> ";

/// The data of an evaluation with the documented names. Members that are `None` or false are omitted.
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
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    missing_scopes: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prints: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    feedback: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<bool>,
    /// Whether anything other than the value's preview was omitted.
    #[serde(skip_serializing_if = "is_false")]
    output_truncated: bool,
    #[serde(skip_serializing_if = "is_false")]
    prints_truncated: bool,
    #[serde(skip_serializing_if = "is_false")]
    feedback_truncated: bool,
    /// The complete value, or absent.
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

/// The state of a session after an evaluation.
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

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde requires this signature")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// Returns the raw JSON of a tool result.
pub fn tool_result(evaluation: &Evaluation, profile: Profile, era: Era) -> String {
    let whole = profile.budget();
    let most = whole.envelope_bytes;
    let fits = |budget| Some(render(evaluation, profile, budget, era)).filter(|json| json.len() <= most);
    // A value has priority over printed lines, and a validated value over its preview.
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

/// Reduces an answer in the last resort: each part is within its budget, but together they exceed the limit as JSON.
fn reduced(evaluation: &Evaluation, profile: Profile, era: Era, most: usize) -> String {
    // One byte of text takes at most six bytes of JSON, and the debug profile contains the text twice.
    let text = text(evaluation, Budget { print_entries: 0, preview_bytes: most / 16, ..profile.budget() });
    let (text, _) = truncate_utf8(&text, most / 16);
    // The notes are at the end of the text, where truncation would remove them first.
    let notes = evaluation.notes.join("\n");
    let notes = truncate_utf8(&notes, most / 32).0;
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
            payload.message = Some(truncate_utf8(&failure.message, most / 32).0);
            payload.feedback = Some(Cow::Borrowed(notes));
        }
    }
    envelope(evaluation, &text, (profile != Profile::Slim).then_some(&payload), era)
}

/// Returns the tool result of a stored program. A result that matches its schema is the answer in every profile, followed by
/// notes.
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
    // The protocol requires structured content to be an object.
    let structured_content = Some(&validated.json)
        .filter(|json| json.starts_with('{') && !validated.is_deep)
        .and_then(|json| serde_json::from_str(json).ok());
    // Notes are a separate text, since some clients parse the first one as JSON.
    let notes = bracketed(&evaluation.notes);
    let texts = [validated.json.as_str(), notes.trim_start()];
    let content = texts.into_iter().filter(|text| !text.is_empty()).map(|text| Text { r#type: "text", text }).collect();
    let result_type = (era == Era::Stateless).then_some("complete");
    serde_json::to_string(&StoredResult { content, structured_content, is_error: false, result_type }).unwrap_or_default()
}

/// Returns a tool result that is data in every profile, with the same members as text and as structured content.
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

/// Returns a tool result that refuses a call.
pub fn refusal(reason: Reason, message: impl Into<String>, feedback: &str, profile: Profile, era: Era) -> String {
    let mut failure = Failure::plain(reason, message);
    feedback.clone_into(&mut failure.feedback);
    tool_result(&Evaluation::refused(failure), profile, era)
}

/// Returns the data of an evaluation for a profile: everything for `debug`, otherwise the parts on which a client acts.
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
            payload.message = Some(truncate_utf8(&failure.message, budget.feedback_bytes).0);
            payload.retry_after_ms = failure.retry_after_ms;
            payload.missing_scopes = failure.missing_scopes();
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

/// Returns the metrics of the upstream calls for an answer within a budget.
pub fn metrics(evaluation: &Evaluation, budget: Budget) -> Option<Metrics> {
    let calls = evaluation.calls.as_ref()?;
    let value = evaluation.outcome.as_ref().ok().filter(|value| !value.nil);
    let result = value.map(|value| result(value, budget.preview_bytes));
    let metrics = Metrics::measure(&result.unwrap_or_default(), &printed(evaluation, budget).0, calls);
    Some(metrics.waited(evaluation.queued, evaluation.processor_wait))
}

/// Whether an answer within a budget is incomplete.
pub fn is_cut(evaluation: &Evaluation, value: &Preview, budget: Budget) -> bool {
    let is_there = |validated: &Validated| budget.holds(validated);
    value.truncated
        || value.text.len() > budget.preview_bytes
        || printed(evaluation, budget).1
        || !evaluation.validated.as_ref().is_none_or(is_there)
}

/// Formats an evaluation as text for a model.
fn text(evaluation: &Evaluation, budget: Budget) -> String {
    let (mut prints, prints_truncated) = printed(evaluation, budget);
    match evaluation.prints.len() - prints.len() {
        0 if prints_truncated => prints.push("[prints truncated]".to_owned()),
        0 => {}
        more => prints.push(format!("[prints truncated: {more} more lines]")),
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
            let (message, _) = truncate_utf8(&failure.message, budget.feedback_bytes);
            let mut text = String::new();
            if let Some(prints) = prints {
                text = prints + "\n\n<error>\n";
            }
            text.extend([failure.reason.name(), ": ", message]);
            if !failure.feedback.is_empty() {
                text.push('\n');
                text.push_str(truncate_utf8(&failure.feedback, budget.feedback_bytes).0);
            }
            if evaluation.session.is_some() {
                text.push_str("\n[rolled back]");
            }
            text + &bracketed(&evaluation.notes)
        }
    }
}

/// Formats notes in the text of an answer, each in brackets after an empty line.
fn bracketed(notes: &[String]) -> String {
    notes.iter().flat_map(|note| ["\n\n[", note, "]"]).collect()
}

/// Formats a value with the new names of its session. If the program ends in `def`, its value is already that name.
fn with_definitions(evaluation: &Evaluation, value: &Preview, budget: Budget) -> String {
    let stored = evaluation.session.as_ref().map(|session| session.changed.join(", ")).filter(|names| !names.is_empty());
    let is_definition = evaluation.value.as_ref().is_some_and(|value| value.kind() == Kind::Var);
    match stored {
        Some(names) if is_definition => format!("[stored: {names}]"),
        Some(names) => format!("{}\n[stored: {names}]", result(value, budget.preview_bytes)),
        None => result(value, budget.preview_bytes).into_owned(),
    }
}

/// Formats a value with its prefix.
pub fn shown(value: &Preview) -> Cow<'_, str> {
    Cow::Owned(format!("{PREFIX}{}", value.text))
}

/// Formats a value with its prefix, truncated to `most` bytes.
fn result(value: &Preview, most: usize) -> Cow<'_, str> {
    let (text, is_cut) = truncate_utf8(&value.text, most);
    if is_cut { format!("{PREFIX}{text}…").into() } else { shown(value) }
}

fn feedback(failure: &Failure, most: usize) -> (Cow<'_, str>, bool) {
    if failure.feedback.is_empty() {
        let (text, truncated) = truncate_utf8(&failure.message, most);
        return (text.into(), truncated);
    }
    let whole = format!("{}\n{}", failure.message, failure.feedback);
    let (text, truncated) = truncate_utf8(&whole, most);
    if truncated { (text.to_owned().into(), true) } else { (whole.into(), false) }
}

fn calls(evaluation: &Evaluation, full: bool) -> Option<Calls<'_>> {
    let calls = evaluation.calls.as_ref()?;
    if full {
        return Some(Calls::Full(calls));
    }
    // A compact success omits calls, since the program has handled those that failed.
    evaluation.outcome.as_ref().err()?;
    let failed: Vec<_> = calls
        .iter()
        .filter(|call| call.status != "ok")
        .map(|call| FailedCall { server: call.server, tool: &call.tool, status: call.status, reason: call.reason })
        .collect();
    (!failed.is_empty()).then_some(Calls::Failed(failed))
}

/// Returns the printed lines within a budget, and whether anything was omitted. If the budget is exceeded, the longest lines are
/// truncated to a common length, with a mark that counts the omitted characters. If there are too many lines even then, the last
/// ones are omitted.
fn printed(evaluation: &Evaluation, budget: Budget) -> (Vec<String>, bool) {
    let lines = evaluation.prints.get(..budget.print_entries).unwrap_or(&evaluation.prints);
    // The sizes include quotes and a comma, as in a JSON list.
    let sizes: Vec<usize> = lines.iter().map(|line| line.chars().map(json_bytes).sum::<usize>() + 3).collect();
    let longest = longest_line(&sizes, budget.print_bytes).max(MIN_CUT_BYTES);
    let (mut kept, mut left, mut truncated) = (Vec::new(), budget.print_bytes, false);
    for (line, size) in lines.iter().zip(sizes) {
        let Some(rest) = left.checked_sub(size.min(longest)) else { break };
        left = rest;
        let (body, gone) = split_cut_mark(line);
        truncated |= gone > 0 || size > longest;
        kept.push(if size > longest { shortened(body, gone, longest) } else { line.clone() });
    }
    truncated |= kept.len() < evaluation.prints.len();
    (kept, truncated)
}

/// Returns the size to which the longest of `sizes` must be reduced so that their sum is at most `budget`.
fn longest_line(sizes: &[usize], budget: usize) -> usize {
    let mut sorted = sizes.to_vec();
    sorted.sort_unstable();
    let mut left = budget;
    for (at, size) in sorted.iter().enumerate() {
        let share = left / (sorted.len() - at);
        if *size > share {
            return share;
        }
        left -= size;
    }
    usize::MAX
}

/// Returns the beginning of `body` that fits into `size` bytes of JSON together with a mark that counts the omitted characters.
/// `gone` characters were already omitted before.
fn shortened(body: &str, gone: usize, size: usize) -> String {
    let mut left = size.saturating_sub(MAX_CUT_MARK + 3);
    let mut end = 0;
    for c in body.chars() {
        let Some(rest) = left.checked_sub(json_bytes(c)) else { break };
        left = rest;
        end += c.len_utf8();
    }
    let (kept, rest) = body.split_at(end);
    let mut line = kept.to_owned();
    push_cut_mark(&mut line, gone + rest.chars().count());
    line
}

/// Returns the bytes of a character in a JSON string.
fn json_bytes(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        c => c.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printing(prints: &[String], failed: bool) -> Box<Evaluation> {
        let failure = Failure::plain(Reason::RuntimeError, "no such key");
        let mut evaluation = Evaluation::refused(failure);
        evaluation.prints = prints.to_vec();
        if !failed {
            let preview = Preview { text: "1".to_owned(), truncated: false, nil: false };
            evaluation.outcome = Ok(preview);
        }
        evaluation
    }

    #[test]
    fn longest_printed_lines_are_truncated_first() {
        let budget = Profile::Slim.budget();
        let lines = ["a".to_owned(), "x".repeat(30_000), "b".repeat(2_000), "é\"".repeat(20_000)];
        let (kept, truncated) = printed(&printing(&lines, false), budget);
        assert!(truncated);
        assert_eq!((&kept[0], &kept[2]), (&lines[0], &lines[2]));
        for (line, whole) in [(&kept[1], &lines[1]), (&kept[3], &lines[3])] {
            let (body, gone) = split_cut_mark(line);
            assert_eq!(body.chars().count() + gone, whole.chars().count());
            assert!(whole.starts_with(body) && body.len() > 1_000, "{}", body.len());
        }
        let json = serde_json::to_string(&kept).unwrap();
        assert!(json.len() <= budget.print_bytes + 2 && json.len() > budget.print_bytes - 200, "{}", json.len());
        // The mark of a line that the run has truncated includes both omissions.
        let mut long = "y".repeat(20_000);
        push_cut_mark(&mut long, 5);
        let (kept, truncated) = printed(&printing(&[long], false), budget);
        let (body, gone) = split_cut_mark(&kept[0]);
        assert_eq!((body.len() + gone, truncated), (20_005, true));
    }

    #[test]
    fn printed_lines_that_fit_are_not_truncated() {
        let line = "x".repeat(7_000);
        assert_eq!(printed(&printing(std::slice::from_ref(&line), false), Profile::Slim.budget()), (vec![line], false));
        let short = vec!["l".to_owned(); 500];
        assert_eq!(printed(&printing(&short, false), Profile::Slim.budget()), (short, false));
        let many = vec!["l".repeat(200); 1_000];
        let shown = text(&printing(&many, false), Profile::Slim.budget());
        let lines = shown.matches(" characters cut;").count();
        assert!((40..80).contains(&lines), "{lines}");
        assert!(shown.contains(&format!("\n[prints truncated: {} more lines]\n\n<result>\nuser=> 1", 1_000 - lines)), "{shown}");
    }

    #[test]
    fn printed_lines_precede_an_error() {
        let shown = text(&printing(&["one".to_owned(), "two".to_owned()], true), Profile::Slim.budget());
        assert_eq!(shown, "<prints>\none\ntwo\n\n<error>\nruntime_error: no such key");
        assert_eq!(text(&printing(&[], true), Profile::Slim.budget()), "runtime_error: no such key");
    }
}
