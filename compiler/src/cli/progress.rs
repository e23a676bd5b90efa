//! What is going on, while it goes on: lines that change on a terminal, plain lines elsewhere.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::console::Console;

/// One stretch of work.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Starts a stretch of work, told in a few words: "compiling the runtime".
    pub(crate) fn start(console: &Console, what: &str) -> Self {
        Progress { bar: started(console, what, |bar| bar) }
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
        // On a terminal that is gone there is nothing to clear.
        let _ = self.bars.clear();
    }
}

/// One line of several. Its time stands still once it is dropped.
pub(crate) struct Line {
    bar: Option<ProgressBar>,
}

impl Line {
    /// How it ended, in a word or two; shown on a terminal only.
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

/// A line that moves, where there is a terminal; elsewhere it is said once. `place` puts it among others before it is drawn.
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
