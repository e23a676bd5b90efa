//! `repl`: programs one after another, each with the definitions and results of those before it. `-e`, or a program on standard input,
//! makes a script of it; on a terminal it is a conversation.
//!
//! - `plain`: lines as a terminal gives them.
//! - `edit`: a line editor with history, completion, colours and hints, where the feature `line-editing` is on.

#[cfg(feature = "line-editing")]
mod edit;
mod plain;

use std::fmt::Write as _;
use std::io::{IsTerminal, Read, Write as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use ptc_lisp::json;

use super::eval::{evaluate, object, printed, sentence};
use super::host::Host;
use super::{FAILED, Origin, unusable, written};
use crate::evaluation::{Call, Evaluation, Evaluator, Failure, Past, Reason};
use crate::pool::Pool;
use crate::profile::Profile;
use crate::settings::Settings;
use plain::Lines;

/// What a program is asked for with.
const PROMPT: &str = "user=> ";
/// Results that `*1 *2 *3` name.
const RECENT: usize = 3;
/// Bytes of a value as JSON.
const JSON_BYTES: usize = 16 * 1024 * 1024;

/// Commands of the prompt: how they are written, and what they do.
const COMMANDS: [(&str, &str); 6] = [
    (":help [NAME]", "this, or what NAME is: a builtin, an upstream's tool as upstream/tool"),
    (":tools", "upstreams and their tools, as far as they are known"),
    (":display text|envelope|json", "how results are shown: as values, as a client gets them, as JSON"),
    (":limits", "what one program may use"),
    (":time", "show how long each program takes, or stop showing it"),
    (":quit", "end, as the end of input does"),
];

/// What was typed at a prompt.
enum Typed {
    /// A command, or a program of which nothing is open.
    Text(String),
    /// Something that was given up.
    Nothing,
    /// The end of the conversation.
    End,
}

/// Who asks for programs.
enum Asking {
    Plain(Lines),
    #[cfg(feature = "line-editing")]
    Edited(edit::Editor),
}

impl Asking {
    fn read(&mut self, host: &mut Host) -> Typed {
        match self {
            Asking::Plain(lines) => lines.read(host),
            #[cfg(feature = "line-editing")]
            Asking::Edited(editor) => editor.read(host),
        }
    }

    /// Tells what later programs can name.
    #[cfg_attr(not(feature = "line-editing"), expect(unused_variables, clippy::unused_self, reason = "plain lines know nothing"))]
    fn learn(&self, past: &Past) {
        #[cfg(feature = "line-editing")]
        if let Asking::Edited(editor) = self {
            editor.learn(&past.bindings);
        }
    }

    /// Text as it is shown: where colours are wanted, in those of the language.
    #[cfg_attr(not(feature = "line-editing"), expect(clippy::unused_self, reason = "plain lines have no colours"))]
    fn painted(&self, text: &str) -> String {
        #[cfg(feature = "line-editing")]
        if let Asking::Edited(editor) = self {
            return editor.painted(text);
        }
        text.to_owned()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Display {
    Text,
    Envelope,
    Json,
}

/// Runs `programs`, or what standard input has. With `json` results are shown as a client gets them, one object a line.
pub(super) fn run(origin: &Origin, mut settings: Settings, programs: &[String], json: bool) -> ExitCode {
    settings.response_profile = Profile::Debug;
    let host = match Host::new(origin, &settings) {
        Ok(host) => host,
        Err(why) => return unusable(origin.deployment.name, &why.sentences()),
    };
    let evaluator = Arc::new(host.evaluator(&settings));
    let display = if json { Display::Envelope } else { Display::Text };
    let (pool, past) = (Host::pool(1), Past::default());
    let mut repl = Repl { host, evaluator, pool, past, settings, display, timed: false };
    let code = if !programs.is_empty() {
        repl.script(programs)
    } else if std::io::stdin().is_terminal() {
        repl.converse(origin)
    } else {
        match standard_input() {
            Ok(program) => repl.script(&[program]),
            Err(fault) => unusable(origin.deployment.name, &[format!("standard input: {fault}")]),
        }
    };
    repl.host.shut_down();
    code
}

fn standard_input() -> std::io::Result<String> {
    let mut program = String::new();
    std::io::stdin().lock().read_to_string(&mut program)?;
    Ok(program)
}

struct Repl {
    host: Host,
    evaluator: Arc<Evaluator>,
    pool: Pool,
    past: Past,
    settings: Settings,
    display: Display,
    timed: bool,
}

impl Repl {
    /// One after the other, up to the first that fails.
    fn script(&mut self, programs: &[String]) -> ExitCode {
        for program in programs {
            let evaluation = self.evaluate(program);
            if self.display == Display::Envelope {
                written(&object(&evaluation));
                if evaluation.outcome.is_err() {
                    return ExitCode::from(FAILED);
                }
                continue;
            }
            if let Err(failure) = &evaluation.outcome {
                let _ = writeln!(std::io::stderr().lock(), "{}", sentence(failure));
                return ExitCode::from(FAILED);
            }
            written(&printed(&evaluation));
        }
        ExitCode::SUCCESS
    }

    fn converse(&mut self, origin: &Origin) -> ExitCode {
        let catalog = origin.deployment.catalog;
        written(&format!("{} upstreams. :help lists commands, :quit ends.\n", catalog.upstreams.len()));
        let mut asking = self.asking();
        loop {
            let source = match asking.read(&mut self.host) {
                Typed::Text(source) => source,
                Typed::Nothing => continue,
                Typed::End => return ExitCode::SUCCESS,
            };
            let words: Vec<&str> = source.split_whitespace().collect();
            match words.as_slice() {
                [] => {}
                [":quit"] => return ExitCode::SUCCESS,
                words => {
                    if let Some(text) = self.command(words) {
                        written(&shown(&text));
                    } else {
                        self.answer(&source, &asking);
                        asking.learn(&self.past);
                    }
                }
            }
        }
    }

    #[cfg(feature = "line-editing")]
    fn asking(&self) -> Asking {
        let editor = edit::Editor::start(Arc::clone(self.host.upstreams()), self.settings.terminal);
        editor.map_or_else(|| Asking::Plain(Lines::of_standard_input()), Asking::Edited)
    }

    #[cfg(not(feature = "line-editing"))]
    #[expect(clippy::unused_self, reason = "an editor would look into it")]
    fn asking(&self) -> Asking {
        Asking::Plain(Lines::of_standard_input())
    }

    /// What a command says; `None` where the words are none.
    fn command(&mut self, words: &[&str]) -> Option<String> {
        Some(match *words {
            [":help"] => COMMANDS.iter().fold(String::new(), |mut text, (usage, what)| {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{usage:<30} {what}");
                text
            }),
            [":help", name] => {
                let evaluation = self.run(&format!("(doc {})", quoted(name)), Past::default());
                match (&evaluation.value, &evaluation.outcome) {
                    (Some(text), Ok(_)) => format!("{}\n", text.as_str().unwrap_or("nothing is known of it")),
                    (_, Err(failure)) => format!("{}\n", sentence(failure)),
                    (None, Ok(_)) => String::new(),
                }
            }
            [":tools"] => self.tools(),
            [":display", "text"] => self.shows(Display::Text),
            [":display", "envelope"] => self.shows(Display::Envelope),
            [":display", "json"] => self.shows(Display::Json),
            [":display", ..] => "expected :display text, :display envelope or :display json\n".to_owned(),
            [":limits"] => {
                let s = &self.settings;
                format!(
                    "{} s, {} bytes of memory, {} upstream calls of {} s each, {} discovery forms\n",
                    s.program_timeout.as_secs_f64(),
                    s.program_memory_limit_bytes,
                    s.max_upstream_calls_per_program,
                    s.upstream_call_timeout.as_secs_f64(),
                    s.max_catalog_ops_per_program,
                )
            }
            [":time"] => {
                self.timed = !self.timed;
                format!("times are {}\n", if self.timed { "shown" } else { "not shown" })
            }
            _ => return None,
        })
    }

    fn shows(&mut self, display: Display) -> String {
        self.display = display;
        String::new()
    }

    fn tools(&self) -> String {
        let mut text = String::new();
        for upstream in self.host.upstreams().catalog().upstreams {
            let unlisted = if self.host.upstreams().is_unlisted(upstream.name) { " (not listed yet)" } else { "" };
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}{unlisted}", upstream.name);
            for tool in upstream.tools {
                let _ = writeln!(text, "  {}/{}", upstream.name, tool.name);
            }
        }
        if text.is_empty() { "there are no upstreams\n".to_owned() } else { text }
    }

    /// Evaluates and shows.
    fn answer(&mut self, source: &str, asking: &Asking) {
        let evaluation = self.evaluate(source);
        // Lines that were printed, then the value or the fault.
        let mut text: String = evaluation.prints.iter().map(|line| shown(line) + "\n").collect();
        match (self.display, &evaluation.outcome) {
            (Display::Envelope, _) => text = object(&evaluation),
            (_, Err(failure)) => text += &(shown(&sentence(failure)) + "\n"),
            (Display::Text, Ok(value)) => text += &(asking.painted(&shown(&value.text)) + "\n"),
            (Display::Json, Ok(_)) => match evaluation.value.as_ref().map(|value| json::encode(value, JSON_BYTES)) {
                Some(Ok(json)) => text += &(self.host.redactor().redact_string(json) + "\n"),
                Some(Err(why)) => drop(writeln!(text, "it has no JSON: {why}")),
                None => {}
            },
        }
        if self.timed {
            let _ = writeln!(text, "{:.1?}", Duration::from_micros(evaluation.duration.as_micros() as u64));
        }
        written(&text);
    }

    /// Evaluates a program and keeps what it leaves.
    fn evaluate(&mut self, source: &str) -> Evaluation {
        let past = Past { bindings: self.past.bindings.clone(), results: self.past.results.clone() };
        let evaluation = self.run(source, past);
        match (&evaluation.outcome, &evaluation.value) {
            (Ok(_), Some(value)) => {
                self.past.bindings = evaluation.bindings.clone();
                self.past.results.insert(0, value.clone());
                self.past.results.truncate(RECENT);
            }
            (Err(failure), _) => self.keep(failure),
            (Ok(_), None) => {}
        }
        evaluation
    }

    /// Defines `*e`.
    fn keep(&mut self, failure: &Failure) {
        let program = format!("(def *e {{:reason :{} :message {}}})", failure.reason.name(), quoted(&failure.message));
        let past = Past { bindings: self.past.bindings.clone(), results: Vec::new() };
        let kept = self.run(&program, past);
        if kept.outcome.is_ok() {
            self.past.bindings = kept.bindings;
        }
    }

    fn run(&mut self, source: &str, past: Past) -> Evaluation {
        match Call::of_program(source.to_owned(), &self.settings) {
            Ok(call) => evaluate(&mut self.host, &self.evaluator, &self.pool, call, past),
            Err(message) => Evaluation::refused(Failure::plain(Reason::ArgsError, message)),
        }
    }
}

/// A string as programs write it: JSON's escapes are theirs.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Text without what would command a terminal.
fn shown(text: &str) -> String {
    text.replace(|c: char| c.is_control() && c != '\n' && c != '\t', "\u{fffd}")
}
