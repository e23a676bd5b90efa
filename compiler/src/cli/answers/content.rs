//! The content of an answer as a program reads it.

use ptc_compiler::json::Json;
use ptc_runtime::upstream::intercept::{CallAnswer, CallPayload};

use super::Outcome;

/// The content of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    /// A value.
    Json(Json),
    /// Text.
    Text(String),
}

impl Content {
    /// Returns the content of an answer. `None` for a failure and for an answer without content.
    pub(crate) fn new(outcome: &Outcome) -> Option<Content> {
        match &outcome.as_ref().ok()?.payload {
            CallPayload::None => None,
            CallPayload::Json(bytes) => Json::parse(std::str::from_utf8(bytes).ok()?).map(Content::Json),
            CallPayload::Text(text) => Some(Json::parse(text).map_or_else(|| Content::Text(text.clone()), Content::Json)),
            CallPayload::Plain(text) => Some(Content::Text(text.clone())),
        }
    }

    /// Returns an answer with this content in place of its own.
    pub(crate) fn replace_in(self, answer: &CallAnswer) -> CallAnswer {
        let payload = match (self, &answer.payload) {
            (Content::Json(json), _) => CallPayload::Json(json.canonical().into_bytes()),
            (Content::Text(text), CallPayload::Plain(_)) => CallPayload::Plain(text),
            (Content::Text(text), _) => CallPayload::Text(text),
        };
        CallAnswer { payload, ..answer.clone() }
    }
}

/// Returns the text of an answer for a report.
pub(crate) fn shown(outcome: &Outcome) -> String {
    match (outcome, Content::new(outcome)) {
        (Err(fault), _) => format!("{}: {}", fault.reason.name(), fault.message),
        (_, Some(Content::Json(json))) => json.canonical(),
        (_, Some(Content::Text(text))) => Json::String(text).canonical(),
        (Ok(_), None) => "no content".to_owned(),
    }
}
