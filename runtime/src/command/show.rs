//! How evaluations are shown: values on standard output, faults on standard error.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::process::ExitCode;

use ptc_lisp::{Value, json};
use serde::Serialize;

use super::{FAILED, written};
#[cfg(feature = "line-editing")]
use crate::command::paint;
use crate::evaluation::{Evaluation, Failure};
use crate::response::{Profile, answer};
use crate::secrets::Redactor;
use crate::settings::Settings;

/// Bytes of a value as JSON. A value may hold one part in many places, so that memory does not bound it.
const JSON_BYTES: usize = 1 << 28;

/// What is shown of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Display {
    /// What it printed and its value as text, cut where it is long.
    Text,
    /// What a client gets, as one object a line.
    Envelope,
    /// Its value as JSON, whole.
    Json,
}

impl Display {
    /// How they are written.
    pub(super) const WORDS: [&'static str; 3] = ["text", "envelope", "json"];

    pub(super) fn of(word: &str) -> Option<Display> {
        let at = Display::WORDS.iter().position(|own| *own == word)?;
        [Display::Text, Display::Envelope, Display::Json].get(at).copied()
    }
}

/// Shows what programs of a command line give.
pub(super) struct View {
    display: Display,
    redactor: Redactor,
    /// Bytes of printed lines that a run keeps.
    print_bytes: usize,
    /// A terminal gets what stands before a value in a conversation, a file the value alone.
    prompts: bool,
    colors: Colors,
}

/// Which streams are in colour.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Colors {
    pub(super) output: bool,
    pub(super) error: bool,
}

impl Colors {
    #[cfg(feature = "line-editing")]
    pub(super) fn of(settings: &Settings) -> Colors {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let wanted = |terminal: bool| settings.terminal.color.unwrap_or(terminal && !refused && !dumb);
        Colors { output: wanted(std::io::stdout().is_terminal()), error: wanted(std::io::stderr().is_terminal()) }
    }

    #[cfg(not(feature = "line-editing"))]
    pub(super) fn of(_: &Settings) -> Colors {
        Colors::default()
    }
}

impl View {
    pub(super) fn new(display: Display, settings: &Settings, redactor: Redactor) -> View {
        let print_bytes = settings.limits().print_bytes;
        View { display, redactor, print_bytes, prompts: std::io::stdout().is_terminal(), colors: Colors::of(settings) }
    }

    /// Shows what a program gave; how a command ends that ends with it.
    pub(super) fn program(&self, evaluation: &Evaluation) -> ExitCode {
        if self.display == Display::Envelope {
            let shown = written(&for_output(object(evaluation), self.prompts));
            return if evaluation.outcome.is_err() { ExitCode::from(FAILED) } else { shown };
        }
        let (mut output, mut messages) = self.printed(evaluation);
        let mut failed = evaluation.outcome.is_err();
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

    /// Shows what came of a program whose value nobody asked for: lines that it printed, or its fault.
    pub(super) fn load(&self, evaluation: &Evaluation) -> Result<(), ExitCode> {
        if evaluation.outcome.is_err() {
            return Err(self.program(evaluation));
        }
        let (output, mut messages) = self.printed(evaluation);
        messages += &notes(evaluation);
        told(&output, &messages);
        Ok(())
    }

    /// Printed lines, as standard output and standard error have them: what is to be read as JSON has no other lines.
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
        format!("{}\n", fault(&replace_control_chars(format!("error: {sentence}")), self.colors.error))
    }

    /// What goes to standard output: a file gets every byte, a terminal no commands.
    fn replace_control_chars(&self, text: String) -> String {
        if self.prompts { replace_control_chars(text) } else { text }
    }
}

/// Text without what would command a terminal: upstreams may have sent it.
pub(super) fn replace_control_chars(text: String) -> String {
    let commands = |c: char| c.is_control() && c != '\n' && c != '\t';
    if text.contains(commands) { text.replace(commands, "\u{fffd}") } else { text }
}

/// JSON for standard output: a file gets every byte, a terminal gets what would command it as escapes. Of such characters JSON
/// escapes by itself those below a space alone; here they can stand in strings only, where an escape means the same.
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

/// Data, then messages; of the data how that went.
fn told(output: &str, messages: &str) -> ExitCode {
    let shown = written(output);
    // Nobody is left to tell if that fails.
    let _ = std::io::stderr().lock().write_all(messages.as_bytes());
    shown
}

/// A value as JSON, or why it has none.
pub(super) fn whole(value: &Value, redactor: &Redactor) -> Result<String, String> {
    let json = json::encode(value, JSON_BYTES).map_err(|why| format!("the value cannot be shown as JSON: {why}"))?;
    Ok(redactor.redact_text(json))
}

/// The documented data of the `debug` profile, with the time it took and an error as people read it.
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

/// The notes of an evaluation, a line each.
pub(super) fn notes(evaluation: &Evaluation) -> String {
    replace_control_chars(evaluation.notes.iter().flat_map(|note| ["note: ", note, "\n"]).collect())
}

/// A failure as people read it.
pub(super) fn sentence(failure: &Failure) -> String {
    let mut text = format!("{}: {}", failure.reason.name(), failure.message);
    if !failure.feedback.is_empty() {
        text.push('\n');
        text.push_str(&failure.feedback);
    }
    text
}

/// A value in colours, where they are wanted.
#[cfg(feature = "line-editing")]
pub(super) fn painted(text: &str, colored: bool) -> String {
    if colored { paint::painted(text, None) } else { text.to_owned() }
}

/// The same for a fault.
#[cfg(feature = "line-editing")]
pub(super) fn fault(sentence: &str, colored: bool) -> String {
    if colored { paint::fault(sentence) } else { sentence.to_owned() }
}

#[cfg(not(feature = "line-editing"))]
pub(super) fn painted(text: &str, _: bool) -> String {
    text.to_owned()
}

#[cfg(not(feature = "line-editing"))]
pub(super) fn fault(sentence: &str, _: bool) -> String {
    sentence.to_owned()
}
