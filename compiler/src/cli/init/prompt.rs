//! Asks questions on the terminal, one line each. Without a terminal, and with `--yes`, every question has its default answer.

use std::io::IsTerminal;

use ptc_compiler::diag::text::on_one_line;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Editor, Helper};

use crate::Failure;
use crate::console::to_stderr;

/// The terminal, if there is one to ask.
pub(super) struct Prompts {
    editor: Option<Editor<Words, DefaultHistory>>,
}

/// Completes the last of the words with commas between them.
struct Words(Vec<String>);

impl Completer for Words {
    type Candidate = String;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        let before = line.get(..pos).unwrap_or(line);
        let word = before.rsplit(',').next().unwrap_or_default().trim_start();
        let found = self.0.iter().filter(|known| !word.is_empty() && known.starts_with(word)).cloned();
        Ok((before.len() - word.len(), found.collect()))
    }
}

impl Hinter for Words {
    type Hint = String;
}

impl Highlighter for Words {}

impl Validator for Words {}

impl Helper for Words {}

/// A question.
pub(super) struct Question<'a> {
    /// The words before the answer. Of several lines, the last is the prompt.
    pub(super) text: &'a str,
    /// The answer of an empty line.
    pub(super) default: Option<&'a str>,
    /// The option that answers the question too.
    pub(super) flag: &'a str,
}

impl Prompts {
    /// Takes the terminal of standard input and output.
    pub(super) fn start(yes: bool) -> Result<Prompts, Failure> {
        if yes || !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
            return Ok(Prompts { editor: None });
        }
        let config = Config::builder().completion_type(CompletionType::List).build();
        let editor = Editor::with_config(config);
        let mut editor = editor.map_err(|error| Failure::new(format!("cannot read from the terminal: {error}")))?;
        editor.set_helper(Some(Words(Vec::new())));
        Ok(Prompts { editor: Some(editor) })
    }

    /// Whether questions are asked.
    pub(super) fn are_asked(&self) -> bool {
        self.editor.is_some()
    }

    /// Sets the words that the Tab key completes in the next answers.
    pub(super) fn complete(&mut self, words: Vec<String>) {
        if let Some(editor) = &mut self.editor {
            editor.set_helper(Some(Words(words)));
        }
    }

    /// Asks until `parse` accepts an answer.
    ///
    /// # Errors
    ///
    /// The user ends the input with Ctrl-C or Ctrl-D. Without a terminal: there is no default, or `parse` refuses it.
    pub(super) fn ask<T>(
        &mut self,
        question: &Question<'_>,
        mut parse: impl FnMut(&str) -> Result<T, String>,
    ) -> Result<T, Failure> {
        let Question { text, default, flag } = question;
        let Some(editor) = &mut self.editor else {
            let default = default.ok_or_else(|| {
                Failure::new(format!("`{flag}` is missing, and there is no terminal to ask")).hint("`ptc-compile init --help`")
            })?;
            return parse(default).map_err(|why| Failure::new(format!("{flag}: {why}")));
        };
        let (before, last) = text.rsplit_once('\n').unwrap_or(("", text));
        if !before.is_empty() {
            to_stderr(&format!("{before}\n"));
        }
        let prompt = match default {
            Some(default) if !default.is_empty() => format!("{last} [{}]: ", on_one_line(default)),
            _ => format!("{last}: "),
        };
        loop {
            let line = match editor.readline(&prompt) {
                Ok(line) => line,
                // The size of the terminal has changed.
                Err(ReadlineError::Signal(_)) => continue,
                Err(ReadlineError::Interrupted | ReadlineError::Eof) => {
                    return Err(Failure::new("stopped before the end of the questions"));
                }
                Err(error) => return Err(Failure::new(format!("cannot read the answer: {error}"))),
            };
            let answer = match line.trim() {
                "" => default.unwrap_or_default(),
                answer => answer,
            };
            if answer.is_empty() && default.is_none() {
                continue;
            }
            match parse(answer) {
                Ok(answer) => return Ok(answer),
                Err(why) => to_stderr(&format!("{why}\n")),
            }
        }
    }

    /// Asks a question with the answers yes and no.
    pub(super) fn confirm(&mut self, text: &str, flag: &str, default: bool) -> Result<bool, Failure> {
        let text = format!("{text} ({})", if default { "Y/n" } else { "y/N" });
        let question = Question { text: &text, default: Some(""), flag };
        self.ask(&question, |answer| match answer.to_ascii_lowercase().as_str() {
            "" => Ok(default),
            "y" | "yes" => Ok(true),
            "n" | "no" => Ok(false),
            _ => Err("answer `y` or `n`".to_owned()),
        })
    }
}
