//! Prints data to stdout and messages to stderr.

use std::io::{ErrorKind, IsTerminal, Write};

use ptc_compiler::diag::render::{self, Style};
use ptc_compiler::diag::text::on_lines;
use ptc_compiler::diag::{Diagnostics, Severity};
use ptc_compiler::source::Sources;

use crate::shared_args::{Color, Format, Messages};
use crate::{Failure, Status};

/// The output of a command: a terminal, a pipe or a file.
#[derive(Debug, Clone)]
pub(crate) struct Console {
    messages: Messages,
    color: bool,
}

impl Console {
    /// Makes a console according to the options and, for colours, the environment.
    pub(crate) fn new(messages: Messages) -> Self {
        let color = match messages.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
                let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
                !refused && !dumb && std::io::stderr().is_terminal()
            }
        };
        Console { messages, color }
    }

    /// Prints data.
    #[expect(clippy::unused_self, reason = "callers print through a console, which decides where the text goes")]
    pub(crate) fn data(&self, text: &str) {
        write(&mut std::io::stdout().lock(), text);
    }

    /// Prints a message.
    #[expect(clippy::unused_self, reason = "callers print through a console, which decides where the text goes")]
    pub(crate) fn message(&self, text: &str) {
        to_stderr(text);
    }

    /// Prints the result of a command: text for people, or one line of JSON if that format was chosen. If the findings are a
    /// document of their own on stdout, the result is a message.
    pub(crate) fn result(&self, text: &str, json: impl FnOnce() -> serde_json::Value) {
        match self.messages.format() {
            Format::Full | Format::Short => self.data(text),
            Format::Json => self.data(&format!("{}\n", json())),
            Format::Sarif | Format::Github | Format::Markdown => self.message(text),
        }
    }

    /// Whether the command writes one Markdown document, which has the findings too.
    pub(crate) fn is_markdown(&self) -> bool {
        self.messages.format() == Format::Markdown
    }

    /// Whether results are printed as JSON lines.
    pub(crate) fn is_json(&self) -> bool {
        self.messages.format() == Format::Json
    }

    /// Whether findings are printed in a format that other programs read, such as SARIF.
    pub(crate) fn is_for_tools(&self) -> bool {
        self.messages.format().is_for_tools()
    }

    /// Prints why the run cannot continue.
    pub(crate) fn failure(&self, failure: &Failure) {
        // A failure may have texts of upstreams or of files.
        let (word, failure) = (self.style().paint(Severity::Error, "error:"), failure.to_string());
        to_stderr(&format!("{word} {}\n", on_lines(&failure)));
    }

    /// Prints all findings and a line that counts them. Returns the status of a run with these findings.
    pub(crate) fn findings(&self, sources: &Sources, diagnostics: &Diagnostics) -> Status {
        match self.messages.format() {
            Format::Full => to_stderr(&render::full(sources, diagnostics, self.style())),
            Format::Short => to_stderr(&render::short(sources, diagnostics, self.style())),
            Format::Json => self.data(&render::json_lines(sources, diagnostics)),
            Format::Sarif => self.data(&render::sarif(sources, diagnostics)),
            Format::Github => self.data(&render::github(sources, diagnostics)),
            // The document of the command has them.
            Format::Markdown => {}
        }
        if !self.messages.format().is_for_tools()
            && !self.is_markdown()
            && let Some(summary) = render::summary(diagnostics, self.style())
        {
            to_stderr(&format!("{summary}\n"));
        }
        let worst = if self.messages.deny_warnings { Severity::Warning } else { Severity::Error };
        if diagnostics.worst() >= Some(worst) { Status::Findings } else { Status::Clean }
    }

    /// Returns the style of printed text.
    pub(crate) fn style(&self) -> Style {
        if self.color { Style::Color } else { Style::Plain }
    }
}

/// Writes to stderr. A failure of that cannot be reported.
pub(crate) fn to_stderr(text: &str) {
    write(&mut std::io::stderr().lock(), text);
}

fn write(stream: &mut impl Write, text: &str) {
    // A reader that has gone away, such as `| head`, is not an error.
    if let Err(error) = stream.write_all(text.as_bytes()).and_then(|()| stream.flush())
        && error.kind() != ErrorKind::BrokenPipe
    {
        std::process::exit(2);
    }
}
