//! Extracts a program from a planner's answer.

use std::borrow::Cow;

use serde_json::Value;

use crate::upstream::fault::excerpt;

/// One answer of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Completion {
    /// The text. Empty if there is none.
    pub text: String,
    /// The text of a refusal.
    pub refusal: Option<String>,
    /// Whether it contains a function call of the protocol.
    pub calls_functions: bool,
    /// Whether it was truncated at the maximum number of tokens.
    pub cut: bool,
    /// Token usage as reported by the provider.
    pub usage: Option<Usage>,
}

/// Numbers of tokens as reported by the provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the request.
    pub prompt: u64,
    /// Tokens of the answer.
    pub completion: u64,
    /// All tokens, including others that the provider counts.
    pub total: u64,
}

/// An answer that is not a completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// It is an error, with a code like an HTTP status.
    Said {
        /// The code.
        code: Option<u16>,
        /// Its message.
        message: String,
    },
    /// It has an unknown form.
    Garbage(String),
}

/// Why no program can be extracted from a completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExtractError {
    /// It was truncated and may lack its end.
    Cut,
    /// It is a function call instead of text.
    CallsFunctions,
    /// It has no text.
    Empty,
    /// It is prose.
    Prose,
}

/// Maximum bytes of an unknown answer in a message.
const SHOWN: usize = 200;

/// Parses the body of an answer.
///
/// # Errors
///
/// Returns [`Fault::Said`] if the answer reports an error, and [`Fault::Garbage`] if it is not JSON or has no message.
pub fn read(body: &[u8]) -> Result<Completion, Fault> {
    let shown = || excerpt(&String::from_utf8_lossy(body), SHOWN).into_owned();
    let Ok(answer) = serde_json::from_slice::<Value>(body) else {
        return Err(Fault::Garbage(format!("the endpoint's answer is not JSON: {}", shown())));
    };
    let choice = answer.pointer("/choices/0");
    let error = answer.get("error").or_else(|| choice?.get("error")).filter(|error| !error.is_null());
    if let Some(error) = error {
        let code = error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
        let message = error.get("message").and_then(Value::as_str).map_or_else(|| error.to_string(), str::to_owned);
        return Err(Fault::Said { code, message: format!("the endpoint says an error: {}", excerpt(&message, SHOWN)) });
    }
    let Some(message) = choice.and_then(|choice| choice.get("message")).filter(|message| message.is_object()) else {
        return Err(Fault::Garbage(format!("the endpoint's answer has no choices[0].message: {}", shown())));
    };
    let finish = choice.and_then(|choice| choice.get("finish_reason")).and_then(Value::as_str).unwrap_or_default();
    let refusal = message.get("refusal").and_then(Value::as_str).map(str::to_owned);
    let filtered = (finish == "content_filter").then(|| "the provider's content filter stopped the answer".to_owned());
    let calls = message.get("tool_calls").and_then(Value::as_array).is_some_and(|calls| !calls.is_empty());
    Ok(Completion {
        text: text(message.get("content")),
        refusal: refusal.or(filtered),
        calls_functions: calls || message.get("function_call").is_some_and(Value::is_object),
        cut: finish == "length",
        usage: usage(answer.get("usage")),
    })
}

/// Returns the text of a message, which is a string or a list of parts.
fn text(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
        _ => String::new(),
    }
}

/// Returns the token usage. Providers that do not count omit the member or send 0.
fn usage(usage: Option<&Value>) -> Option<Usage> {
    let count = |name| usage?.get(name)?.as_u64();
    let (prompt, completion) = (count("prompt_tokens").unwrap_or(0), count("completion_tokens").unwrap_or(0));
    let total = count("total_tokens").unwrap_or(prompt + completion);
    (prompt + completion > 0).then_some(Usage { prompt, completion, total })
}

impl Completion {
    /// Extracts the program.
    ///
    /// # Errors
    ///
    /// Returns [`ExtractError::CallsFunctions`] or [`ExtractError::Empty`] if there is no text, [`ExtractError::Cut`] if the
    /// text was truncated, and [`ExtractError::Prose`] if it has no code block and does not start like a program.
    pub fn program(&self) -> Result<Cow<'_, str>, ExtractError> {
        let text = strip_reasoning(&self.text).trim();
        if text.is_empty() {
            return Err(if self.calls_functions { ExtractError::CallsFunctions } else { ExtractError::Empty });
        }
        if self.cut {
            return Err(ExtractError::Cut);
        }
        let blocks = blocks(text);
        match blocks.as_slice() {
            // Text without a fence is a program only if it starts like one. Otherwise prose would be read as symbols.
            [] if text.starts_with(['(', ';', '[', '{', '#']) && text.contains('(') => Ok(Cow::Borrowed(text)),
            [] => Err(ExtractError::Prose),
            [one] => Ok(Cow::Borrowed(one)),
            several => Ok(Cow::Owned(several.join("\n"))),
        }
    }
}

/// Returns the text after the `<think>` block that some models write.
fn strip_reasoning(text: &str) -> &str {
    let text = text.trim_start();
    match text.strip_prefix("<think>") {
        Some(thought) => thought.split_once("</think>").map_or("", |(_, rest)| rest),
        None => text,
    }
}

/// Returns the fenced code blocks without a tag or with a tag for a Lisp.
fn blocks(text: &str) -> Vec<&str> {
    const LISPS: [&str; 7] = ["", "clojure", "clj", "lisp", "ptc-lisp", "ptc_lisp", "edn"];
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((_, open)) = rest.split_once("```") {
        let (tag, body) = open.split_once('\n').unwrap_or((open, ""));
        // An unclosed fence reaches to the end.
        let (block, after) = body.split_once("```").unwrap_or((body, ""));
        if LISPS.contains(&tag.trim().to_ascii_lowercase().as_str()) && !block.trim().is_empty() {
            found.push(block.trim());
        }
        rest = after;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(text: &str) -> Result<String, ExtractError> {
        Completion { text: text.into(), ..Completion::default() }.program().map(Cow::into_owned)
    }

    #[test]
    fn programs_are_extracted_from_replies_of_models() {
        for text in [
            "(return 1)",
            "```clojure\n(return 1)\n```",
            "Here it is:\n```lisp\n(return 1)\n```\nIt returns 1.",
            "```\n(return 1)\n```",
            "```clojure\n(return 1)",
            "<think>\nMaybe (fail 1)?\n</think>\n(return 1)",
            "```json\n{\"not\": \"this\"}\n```\n```clj\n(return 1)\n```",
        ] {
            assert_eq!(program(text).as_deref(), Ok("(return 1)"), "{text}");
        }
        assert_eq!(program("```clojure\n(def a 1)\n```\nand\n```clojure\n(return a)\n```").unwrap(), "(def a 1)\n(return a)");
        assert_eq!(program("; a comment\n(return 1)").unwrap(), "; a comment\n(return 1)");
        for (text, why) in [
            ("I would rather not.", ExtractError::Prose),
            ("It is 42 (I think).", ExtractError::Prose),
            ("```python\nprint(1)\n```", ExtractError::Prose),
            ("[1 2 3]", ExtractError::Prose),
            ("<think>on and on", ExtractError::Empty),
            (" \n", ExtractError::Empty),
        ] {
            assert_eq!(program(text), Err(why), "{text}");
        }
        let cut = Completion { text: "(tool/call {})".into(), cut: true, ..Completion::default() };
        assert_eq!(cut.program(), Err(ExtractError::Cut));
    }

    #[test]
    fn completions_are_parsed_leniently_without_guessing() {
        let read = |text: &str| read(text.as_bytes());
        let whole = r#"{"choices":[{"message":{"content":"(return 1)"},"finish_reason":"stop"}],
                        "usage":{"prompt_tokens":11,"completion_tokens":5,"total_tokens":20}}"#;
        let usage = Some(Usage { prompt: 11, completion: 5, total: 20 });
        assert_eq!(read(whole), Ok(Completion { text: "(return 1)".into(), usage, ..Completion::default() }));
        let parts =
            r#"{"choices":[{"message":{"content":[{"type":"text","text":"(a"},{"type":"text","text":")"}]}}],"usage":{}}"#;
        assert_eq!(read(parts), Ok(Completion { text: "(a)".into(), ..Completion::default() }));
        let refusal = r#"{"choices":[{"message":{"content":null,"refusal":"No."}}]}"#;
        assert_eq!(read(refusal).unwrap().refusal.as_deref(), Some("No."));
        let filtered = r#"{"choices":[{"message":{"content":""},"finish_reason":"content_filter"}]}"#;
        assert!(read(filtered).unwrap().refusal.is_some());
        let calls = r#"{"choices":[{"message":{"content":null,"tool_calls":[{"id":"1"}]}}]}"#;
        assert_eq!(read(calls).unwrap().program(), Err(ExtractError::CallsFunctions));
        let said = r#"{"error":{"code":429,"message":"slow down"}}"#;
        assert!(matches!(read(said), Err(Fault::Said { code: Some(429), .. })));
        for garbage in ["", "<html>", "[]", "{}", r#"{"choices":[]}"#, r#"{"choices":[{"message":"x"}]}"#] {
            assert!(matches!(read(garbage), Err(Fault::Garbage(_))), "{garbage}");
        }
    }
}
