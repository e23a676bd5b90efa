//! What is going on, while it goes on: a line that changes on a terminal, plain lines elsewhere.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::console::Console;

/// One stretch of work.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Starts a stretch of work, told in a few words: "compiling the runtime".
    pub(crate) fn start(console: &Console, what: &str) -> Self {
        if !std::io::stderr().is_terminal() {
            console.message(&format!("{what}\n"));
            return Progress { bar: None };
        }
        let bar = ProgressBar::new_spinner().with_message(what.to_owned());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix}{msg} {elapsed:.dim}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        Progress { bar: Some(bar) }
    }

    /// What is done right now; shown on a terminal only.
    pub(crate) fn step(&self, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(what.to_owned());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
