//! Reads lines from a terminal without editing: for terminals without further capabilities, and for binaries without line
//! editing.

use std::io::BufRead;

use ptc_lisp::{ErrorKind, Program};
use tokio::sync::mpsc;

use super::{PROMPT, Typed};
use crate::command::services::{Ended, Services};
use crate::command::written;

/// The prompt while a form is open.
const CONTINUED: &str = "  #_=> ";

/// Reads whole forms from lines.
pub(super) struct Lines(mpsc::UnboundedReceiver<String>);

impl Lines {
    /// Starts a thread that reads lines of standard input. It ends with the process.
    pub(super) fn of_standard_input() -> Lines {
        let (send, receive) = mpsc::unbounded_channel();
        let reader = std::thread::Builder::new().name("terminal".into());
        // Without the thread the channel is closed, which ends the session.
        let _ = reader.spawn(move || {
            let mut input = std::io::stdin().lock();
            let mut line = String::new();
            while input.read_line(&mut line).is_ok_and(|read| read > 0) && send.send(std::mem::take(&mut line)).is_ok() {}
        });
        Lines(receive)
    }

    /// Prompts until no form is open.
    pub(super) fn read(&mut self, services: &mut Services) -> Typed {
        let mut text = String::new();
        loop {
            written(if text.is_empty() { PROMPT } else { CONTINUED });
            match services.until(self.0.recv()) {
                Ended::Signal("SIGINT") => {
                    written("\n");
                    return Typed::Nothing;
                }
                Ended::Done(Some(line)) => text.push_str(&line),
                Ended::Done(None) | Ended::Signal(_) => {
                    written("\n");
                    return Typed::End;
                }
            }
            if !is_open(&text) {
                return Typed::Text(text);
            }
        }
    }
}

/// Whether a form, a string or a pattern is not closed yet.
pub(super) fn is_open(source: &str) -> bool {
    Program::compile(source).is_err_and(|error| error.kind == ErrorKind::ParseError && error.message.ends_with("is never closed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_form_is_recognised() {
        for (source, open) in [
            ("(+ 1", true),
            ("(+ 1 2)", false),
            ("\"a", true),
            ("#\"a", true),
            ("[1 {:a (f", true),
            (")", false),
            ("(] ", false),
            ("", false),
            ("; (", false),
        ] {
            assert_eq!(is_open(source), open, "{source}");
        }
    }
}
