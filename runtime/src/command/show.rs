//! Prints evaluations: values on standard output, faults on standard error.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::process::ExitCode;

use ptc_lisp::{Value, json};
use serde::Serialize;

use super::{FAILED, written};
#[cfg(feature = "line-editing")]
use crate::command::paint;
use crate::secrets::Redactor;
use crate::settings::Settings;
use ptc_engine::evaluation::{Evaluation, Failure};
use ptc_engine::response::{Profile, answer};

/// Maximum bytes of a value as JSON. A value may contain the same part many times, so that its memory does not limit its length.
const JSON_BYTES: usize = 1 << 28;

/// The output format of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Display {
    /// Printed lines and the value as text, truncated if long.
    Text,
    /// The answer that a client would receive, as one JSON object per line.
    Envelope,
    /// The complete value as JSON.
    Json,
}

impl Display {
    /// The names of the formats.
    pub(super) const WORDS: [&'static str; 3] = ["text", "envelope", "json"];

    pub(super) fn parse(word: &str) -> Option<Display> {
        let at = Display::WORDS.iter().position(|own| *own == word)?;
        [Display::Text, Display::Envelope, Display::Json].get(at).copied()
    }
}

/// How the results of `eval` and `repl` are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ResultOptions {
    pub(super) display: Display,
    /// Whether an unchecked failed call makes the exit code that of a failed program.
    pub(super) fail_on_call_errors: bool,
}

/// Prints the results of programs.
pub(super) struct View {
    display: Display,
    fail_on_call_errors: bool,
    redactor: Redactor,
    /// Maximum bytes of printed lines that are kept of a run.
    print_bytes: usize,
    /// Whether standard output is a terminal. If so, a value follows the prompt's prefix, and control characters are replaced.
    prompts: bool,
    colors: Colors,
}

/// Which streams use colours.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Colors {
    pub(super) output: bool,
    pub(super) error: bool,
}

impl Colors {
    #[cfg(feature = "line-editing")]
    pub(super) fn from_settings(settings: &Settings) -> Colors {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let wanted = |terminal: bool| settings.terminal.color.unwrap_or(terminal && !refused && !dumb);
        Colors { output: wanted(std::io::stdout().is_terminal()), error: wanted(std::io::stderr().is_terminal()) }
    }

    #[cfg(not(feature = "line-editing"))]
    pub(super) fn from_settings(_: &Settings) -> Colors {
        Colors::default()
    }
}

impl View {
    pub(super) fn new(options: ResultOptions, settings: &Settings, redactor: Redactor) -> View {
        let ResultOptions { display, fail_on_call_errors } = options;
        let (print_bytes, prompts) = (settings.limits().print_bytes, std::io::stdout().is_terminal());
        View { display, fail_on_call_errors, redactor, print_bytes, prompts, colors: Colors::from_settings(settings) }
    }

    /// Prints the result of a program. Returns the exit code of a command that ends with it.
    pub(super) fn program(&self, evaluation: &Evaluation) -> ExitCode {
        let mut failed = self.is_failed(evaluation);
        if self.display == Display::Envelope {
            let shown = written(&for_output(object(evaluation), self.prompts));
            return if failed { ExitCode::from(FAILED) } else { shown };
        }
        let (mut output, mut messages) = self.printed(evaluation);
        match (&evaluation.outcome, &evaluation.value) {
            (Err(failure), _) => messages += &self.fault(&sentence(failure)),
            (Ok(preview), _) if self.display == Display::Text => {
                let before = if self.prompts { answer::PREFIX } else { "" };
                // Writing to a string cannot fail.
                let _ = writeln!(
                    output,
                    "{before}{}",
                    painted(&self.replace_control_chars(preview.text.clone()), self.colors.output)
                );
                if preview.truncated {
                    messages += "note: the value was cut; --display json writes all of it\n";
                }
            }
            (Ok(_), value) => match value.as_ref().map(|value| whole(value, &self.redactor)) {
                Some(Ok(json)) => output += &(for_output(json, self.prompts) + "\n"),
                Some(Err(why)) => {
                    failed = true;
                    messages += &self.fault(&why);
                }
                None => {}
            },
        }
        messages += &notes(evaluation);
        let shown = told(&output, &messages);
        if failed { ExitCode::from(FAILED) } else { shown }
    }

    fn is_failed(&self, evaluation: &Evaluation) -> bool {
        evaluation.outcome.is_err() || self.fail_on_call_errors && !evaluation.unchecked_calls.is_empty()
    }

    /// Prints the lines or the fault of a program whose value is not shown.
    pub(super) fn load(&self, evaluation: &Evaluation) -> Result<(), ExitCode> {
        if self.is_failed(evaluation) {
            return Err(self.program(evaluation));
        }
        let (output, mut messages) = self.printed(evaluation);
        messages += &notes(evaluation);
        told(&output, &messages);
        Ok(())
    }

    /// Returns printed lines for standard output and for standard error. If standard output is JSON, it contains nothing else.
    fn printed(&self, evaluation: &Evaluation) -> (String, String) {
        let lines: String = evaluation.prints.iter().flat_map(|line| [line, "\n"]).collect();
        let (output, mut messages) = match self.display {
            Display::Text => (self.replace_control_chars(lines), String::new()),
            Display::Envelope | Display::Json => (String::new(), replace_control_chars(lines)),
        };
        if evaluation.prints.iter().map(|line| line.len() + 1).sum::<usize>() > self.print_bytes {
            let _ = writeln!(messages, "note: what the program printed was cut after {} bytes", self.print_bytes);
        }
        (output, messages)
    }

    fn fault(&self, sentence: &str) -> String {
        format!("{}\n", fault(format!("error: {sentence}"), self.colors.error))
    }

    /// Replaces control characters if standard output is a terminal.
    fn replace_control_chars(&self, text: String) -> String {
        if self.prompts { replace_control_chars(text) } else { text }
    }
}

/// Replaces control characters, which upstreams may have sent to a terminal.
pub(super) fn replace_control_chars(text: String) -> String {
    let commands = |c: char| c.is_control() && c != '\n' && c != '\t';
    if text.contains(commands) { text.replace(commands, "\u{fffd}") } else { text }
}

/// Formats JSON for standard output. For a terminal the control characters U+007F to U+009F are escaped, since JSON requires
/// escapes only below U+0020. They occur only in strings, in which escapes are equivalent.
pub(super) fn for_output(json: String, is_terminal: bool) -> String {
    let commands = |c: char| ('\u{7f}'..='\u{9f}').contains(&c);
    if !is_terminal || !json.contains(commands) {
        return json;
    }
    json.chars().fold(String::new(), |mut text, c| {
        if commands(c) {
            // Writing to a string cannot fail.
            let _ = write!(text, "\\u{:04x}", u32::from(c));
        } else {
            text.push(c);
        }
        text
    })
}

/// Writes data to standard output and messages to standard error. Returns the exit code of writing the data.
fn told(output: &str, messages: &str) -> ExitCode {
    let shown = written(output);
    // There is no way to report a failure of standard error.
    let _ = std::io::stderr().lock().write_all(messages.as_bytes());
    shown
}

/// Encodes a value as JSON. The error explains why that is impossible.
pub(super) fn whole(value: &Value, redactor: &Redactor) -> Result<String, String> {
    let json = json::encode(value, JSON_BYTES).map_err(|why| format!("the value cannot be shown as JSON: {why}"))?;
    Ok(redactor.redact_text(json))
}

/// Returns the documented data of the `debug` profile, with the duration and a readable error.
pub(super) fn object(evaluation: &Evaluation) -> String {
    #[derive(Serialize)]
    struct Object<'a> {
        #[serde(flatten)]
        payload: answer::Payload<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        duration_ms: f64,
    }
    let error = evaluation.outcome.as_ref().err().map(sentence);
    let duration_ms = evaluation.duration.as_micros() as f64 / 1000.0;
    let object = Object { payload: answer::payload(evaluation, Profile::Debug, Profile::Debug.budget()), error, duration_ms };
    let mut text = serde_json::to_string(&object).unwrap_or_default();
    text.push('\n');
    text
}

/// Formats the notes of an evaluation, one per line.
pub(super) fn notes(evaluation: &Evaluation) -> String {
    replace_control_chars(evaluation.notes.iter().flat_map(|note| ["note: ", note, "\n"]).collect())
}

/// Formats a failure for people.
pub(super) fn sentence(failure: &Failure) -> String {
    let mut text = format!("{}: {}", failure.reason.name(), failure.message);
    if !failure.feedback.is_empty() {
        text.push('\n');
        text.push_str(&failure.feedback);
    }
    text
}

/// Highlights a value if colours are enabled.
#[cfg(feature = "line-editing")]
pub(super) fn painted(text: &str, colored: bool) -> String {
    if colored { paint::painted(text, None) } else { text.to_owned() }
}

/// Formats a fault for people: without control characters, and highlighted if colours are enabled.
#[cfg(feature = "line-editing")]
pub(super) fn fault(sentence: String, colored: bool) -> String {
    let sentence = replace_control_chars(sentence);
    if colored { paint::fault(&sentence) } else { sentence }
}

#[cfg(not(feature = "line-editing"))]
pub(super) fn painted(text: &str, _: bool) -> String {
    text.to_owned()
}

#[cfg(not(feature = "line-editing"))]
pub(super) fn fault(sentence: String, _: bool) -> String {
    replace_control_chars(sentence)
}
