//! Shows progress: lines that are updated on a terminal, and plain lines elsewhere.

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use ptc_text::join_limited;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::console::{Console, to_stderr};

/// The progress line of one task.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Starts a task, which `what` describes in a few words, such as "compiling the runtime".
    pub(crate) fn start(console: &Console, what: &str) -> Self {
        Progress { bar: started(console, what) }
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

/// The progress of asking many upstreams: on a terminal one line with a count and the slowest upstreams, elsewhere one line for each
/// upstream that has finished. Dropping it removes the line from the terminal.
pub(crate) struct QueryProgress {
    state: Arc<Mutex<State>>,
    bar: Option<ProgressBar>,
    is_json: bool,
}

/// Which upstreams have been asked.
struct State {
    total: usize,
    /// The upstreams that have not finished, with the time when they were asked, in this order.
    waiting: Vec<(String, Instant)>,
    /// The upstreams that have finished. One that is tried once more leaves this set until then.
    done: BTreeSet<String>,
}

/// An upstream has finished: a line of `--json` on standard error.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ProgressEvent<'a> {
    /// The outcome of one upstream.
    Progress {
        /// Number of upstreams that have finished.
        done: usize,
        /// Number of upstreams that are asked.
        total: usize,
        /// The name of this upstream.
        upstream: &'a str,
        /// Whether its tools could not be read. Such an upstream may be tried once more.
        failed: bool,
        /// Number of its tools. Absent for OpenAPI documents and failures.
        #[serde(skip_serializing_if = "Option::is_none")]
        tools: Option<usize>,
        /// Time since it was asked.
        seconds: f64,
    },
}

impl QueryProgress {
    /// Starts to show the progress of `total` upstreams.
    pub(crate) fn start(console: &Console, total: usize) -> QueryProgress {
        let state = Arc::new(Mutex::new(State { total, waiting: Vec::new(), done: BTreeSet::new() }));
        let is_json = console.is_json();
        let bar = (!is_json && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::new_spinner();
            let shown = Arc::clone(&state);
            if let Ok(style) = ProgressStyle::with_template("{spinner} {asking}") {
                let line = move |_: &ProgressState, out: &mut dyn std::fmt::Write| {
                    // Writing to a string cannot fail.
                    let _ = out.write_str(&lock(&shown).line());
                };
                bar.set_style(style.with_key("asking", line));
            }
            bar.enable_steady_tick(Duration::from_millis(100));
            bar
        });
        QueryProgress { state, bar, is_json }
    }

    /// Notes that an upstream is asked. The result is called at the end, with the number of tools or `Err`.
    pub(crate) fn asked(&self, upstream: &str) -> Box<dyn FnOnce(Result<Option<usize>, ()>) + Send> {
        let name = upstream.to_owned();
        let begun = Instant::now();
        {
            let mut state = lock(&self.state);
            state.done.remove(&name);
            state.waiting.push((name.clone(), begun));
        }
        let (state, is_silent, is_json) = (Arc::clone(&self.state), self.bar.is_some(), self.is_json);
        Box::new(move |outcome| {
            let (done, total) = lock(&state).finish(&name);
            let seconds = (begun.elapsed().as_secs_f64() * 10.0).round() / 10.0;
            let (failed, tools) = (outcome.is_err(), outcome.ok().flatten());
            if is_json {
                let event = ProgressEvent::Progress { done, total, upstream: &name, failed, tools, seconds };
                to_stderr(&format!("{}\n", json!(event)));
            } else if !is_silent {
                let how = match (failed, tools) {
                    (true, _) => "failed".to_owned(),
                    (false, Some(1)) => "1 tool".to_owned(),
                    (false, Some(tools)) => format!("{tools} tools"),
                    (false, None) => "document".to_owned(),
                };
                to_stderr(&format!("{done}/{total} {name} {how} {seconds:.1} s\n"));
            }
        })
    }
}

impl Drop for QueryProgress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl State {
    /// Notes that an upstream has finished. Returns how many have, and how many are asked.
    fn finish(&mut self, name: &str) -> (usize, usize) {
        self.waiting.retain(|(waiting, _)| waiting != name);
        self.done.insert(name.to_owned());
        (self.done.len(), self.total)
    }

    /// Returns the line for a terminal.
    fn line(&self) -> String {
        const SHOWN: usize = 3;
        let slowest: Vec<String> =
            self.waiting.iter().map(|(name, begun)| format!("{name} {} s", begun.elapsed().as_secs())).collect();
        let names = join_limited(&slowest, ", ", SHOWN);
        format!("{}/{} upstreams asked, waiting for {names}", self.done.len(), self.total)
    }
}

/// Returns the state. A panic elsewhere does not make a progress line wrong.
fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a spinner on a terminal, and prints the text once elsewhere.
fn started(console: &Console, what: &str) -> Option<ProgressBar> {
    if !std::io::stderr().is_terminal() {
        console.message(&format!("{what}\n"));
        return None;
    }
    let bar = ProgressBar::new_spinner().with_message(what.to_owned());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix}{msg} {elapsed:.dim}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(100));
    Some(bar)
}
