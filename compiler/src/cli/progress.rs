//! Shows progress: lines that are updated on a terminal, and plain lines elsewhere.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::console::Console;

/// The progress line of one task.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Starts a task, which `what` describes in a few words, such as "compiling the runtime".
    pub(crate) fn start(console: &Console, what: &str) -> Self {
        Progress { bar: started(console, what, |bar| bar) }
    }

    /// Shows the current step, on a terminal only.
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

/// Progress lines of parallel work. Dropping it removes all lines.
pub(crate) struct ProgressGroup {
    bars: MultiProgress,
}

impl ProgressGroup {
    /// Makes a group without lines.
    pub(crate) fn new() -> Self {
        ProgressGroup { bars: MultiProgress::new() }
    }

    /// Adds a line.
    pub(crate) fn start(&self, console: &Console, what: &str) -> Line {
        Line { bar: started(console, what, |bar| self.bars.add(bar)) }
    }
}

impl Drop for ProgressGroup {
    fn drop(&mut self) {
        // If the terminal is gone, there is nothing to clear.
        let _ = self.bars.clear();
    }
}

/// One line of a group. Its elapsed time stops when it is dropped.
pub(crate) struct Line {
    bar: Option<ProgressBar>,
}

impl Line {
    /// Shows the outcome in a word or two, on a terminal only.
    pub(crate) fn end(self, how: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{}: {how}", bar.message()));
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.abandon();
        }
    }
}

/// Starts a spinner on a terminal, and prints the text once elsewhere. `place` adds the spinner to a group before it is drawn.
fn started(console: &Console, what: &str, place: impl FnOnce(ProgressBar) -> ProgressBar) -> Option<ProgressBar> {
    if !std::io::stderr().is_terminal() {
        console.message(&format!("{what}\n"));
        return None;
    }
    let bar = place(ProgressBar::new_spinner()).with_message(what.to_owned());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix}{msg} {elapsed:.dim}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(100));
    Some(bar)
}
