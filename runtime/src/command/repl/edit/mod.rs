//! A line editor for a terminal, with history, forms over several lines, completion, highlighting, and hints.
//!
//! - `known`: names that a program can use.
//! - `place`: the syntactic position of the cursor.
//! - `complete`, `hint`: completions and hints for that position.
//! - `history`: programs of earlier sessions.
//!
//! The editor blocks on a separate thread, since the main thread drives connections.

mod complete;
mod hint;
mod history;
mod known;
mod place;

use std::borrow::Cow;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use ptc_lisp::Bindings;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::{Hint, Hinter};
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{ColorMode, CompletionType, Config, Context, Helper};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::plain::is_open;
use super::{PROMPT, Typed};
use crate::command::paint;
use crate::command::services::{Ended, Services};
use crate::command::show::Colors;
use crate::log::{self, Level};
use crate::settings::Settings;
use crate::upstream::Upstreams;
use known::Known;

/// Maximum number of programs in the history.
const KEPT: usize = 1_000;
/// Disables bracketed paste.
const NO_PASTE_MARKS: &str = "\u{1b}[?2004l";

/// The editor of an interactive session.
pub(super) struct Editor {
    ask: Sender<()>,
    typed: UnboundedReceiver<Typed>,
    known: Arc<Known>,
    /// The terminal's settings before the first prompt.
    mode: Option<Termios>,
}

impl Editor {
    /// Starts an editor on the terminal of standard input. Returns `None` if the terminal supports only lines.
    pub(super) fn start(upstreams: Arc<Upstreams>, settings: &Settings) -> Option<Editor> {
        if std::env::var_os("TERM").is_some_and(|term| term == "dumb") {
            return None;
        }
        let colored = Colors::from_settings(settings).output;
        let known = Arc::new(Known::new(upstreams));
        let mode = tcgetattr(std::io::stdin()).ok();
        let (ask, asked) = channel();
        let (send, typed) = unbounded_channel();
        let helper = Assistant { known: Arc::clone(&known), colored };
        let history = if settings.terminal.no_history { None } else { history_file() };
        let editor = editor(helper, history.as_ref())
            .map_err(|why| log::line(Level::Warn, "no line editing", &[("reason", &why.to_string())]))
            .ok()?;
        let thread = std::thread::Builder::new().name("terminal".into());
        thread.spawn(move || run_interactive(editor, history.as_deref(), &asked, &send)).ok()?;
        Some(Editor { ask, typed, known, mode })
    }

    /// Prompts for a program.
    pub(super) fn read(&mut self, services: &mut Services) -> Typed {
        if self.ask.send(()).is_err() {
            return Typed::End;
        }
        loop {
            match services.until(self.typed.recv()) {
                Ended::Done(typed) => {
                    services.forget_interrupt();
                    return typed.unwrap_or(Typed::End);
                }
                // The editor receives the interrupt itself, or is about to read.
                Ended::Signal("SIGINT") => {}
                Ended::Signal(_) => {
                    self.leave();
                    return Typed::End;
                }
            }
        }
    }

    /// Replaces the definitions that can be completed.
    pub(super) fn learn(&self, bindings: &Bindings) {
        self.known.learn(bindings);
    }

    /// Restores the terminal's settings, since the thread that changed them is still reading.
    fn leave(&self) {
        let mut output = std::io::stdout().lock();
        // Errors are ignored: the terminal may be gone.
        let _ = output.write_all(NO_PASTE_MARKS.as_bytes()).and_then(|()| output.write_all(b"\n")).and_then(|()| output.flush());
        if let Some(mode) = &self.mode {
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, mode);
        }
    }
}

fn history_file() -> Option<PathBuf> {
    history::file().unwrap_or_else(|why| {
        log::line(Level::Warn, "programs are not kept", &[("reason", &why.to_string())]);
        None
    })
}

type Lines = rustyline::Editor<Assistant, FileHistory>;

fn editor(helper: Assistant, history: Option<&PathBuf>) -> rustyline::Result<Lines> {
    let config = Config::builder()
        .max_history_size(KEPT)?
        .history_ignore_dups(true)?
        .history_ignore_space(true)
        .completion_type(CompletionType::List)
        .color_mode(if helper.colored { ColorMode::Forced } else { ColorMode::Disabled })
        .build();
    let mut editor = Lines::with_config(config)?;
    editor.set_helper(Some(helper));
    if let Some(path) = history {
        // An unreadable history is overwritten.
        let _ = editor.load_history(path);
    }
    Ok(editor)
}

/// Reads a program for each request until the session ends.
fn run_interactive(mut editor: Lines, history: Option<&Path>, asked: &Receiver<()>, send: &UnboundedSender<Typed>) {
    let prompt = (PROMPT, paint::colored(paint::PROMPT, PROMPT));
    while asked.recv().is_ok() {
        let typed = match editor.readline(&prompt) {
            Ok(text) => {
                if editor.add_history_entry(text.as_str()).unwrap_or(false)
                    && let Some(path) = history
                {
                    // A full disk is reported at the start of the next session.
                    let _ = editor.append_history(path);
                }
                Typed::Text(text)
            }
            Err(ReadlineError::Interrupted | ReadlineError::Signal(_)) => Typed::Nothing,
            Err(_) => Typed::End,
        };
        if send.send(typed).is_err() {
            break;
        }
    }
}

/// Completion, hints and highlighting for the editor.
struct Assistant {
    known: Arc<Known>,
    colored: bool,
}

impl Helper for Assistant {}

impl Completer for Assistant {
    type Candidate = String;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        let (before, after) = line.split_at_checked(pos).unwrap_or((line, ""));
        Ok(complete::candidates(&self.known, before, after))
    }
}

/// A hint that cannot be accepted as input.
struct Shown(String);

impl Hint for Shown {
    fn display(&self) -> &str {
        &self.0
    }

    fn completion(&self) -> Option<&str> {
        None
    }
}

impl Hinter for Assistant {
    type Hint = Shown;

    fn hint(&self, line: &str, pos: usize, _: &Context<'_>) -> Option<Shown> {
        if pos < line.len() { None } else { hint::hint(&self.known, line).map(Shown) }
    }
}

impl Highlighter for Assistant {
    fn highlight<'l>(&self, line: &'l str, pos: usize) -> Cow<'l, str> {
        paint::painted(line, Some(pos)).into()
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        paint::colored(paint::HINT, hint).into()
    }

    fn highlight_char(&self, _: &str, _: usize, _: CmdKind) -> bool {
        self.colored
    }
}

impl Validator for Assistant {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if is_open(context.input()) { ValidationResult::Incomplete } else { ValidationResult::Valid(None) })
    }
}
