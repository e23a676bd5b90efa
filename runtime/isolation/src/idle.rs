//! The idle workers of a server.
//!
//! A worker does nothing between two programs. One that computes, grows or sends something then was taken over by a program, and is
//! killed.

use std::sync::{Arc, Mutex};

use ptc_log::Level;

use crate::connection::lock;
use crate::process::{Usage, Worker};
use crate::process_thread::ProcessThread;

#[derive(Default)]
pub(crate) struct IdleWorkers(Mutex<State>);

#[derive(Default)]
struct State {
    /// The worker that has been idle for longest comes first.
    workers: Vec<IdleWorker>,
    /// Whether the thread for processes watches them.
    is_watched: bool,
}

struct IdleWorker {
    worker: Worker,
    /// What runs programs of this owner only. `None` if the worker has run no program.
    last: Option<LastProgram>,
}

/// The state of a worker after its last program.
struct LastProgram {
    owner: Arc<str>,
    usage: Usage,
}

impl IdleWorkers {
    /// Adds a worker that has run no program.
    pub(crate) fn add_fresh(&self, worker: Worker) {
        lock(&self.0).workers.push(IdleWorker { worker, last: None });
    }

    /// Adds a worker that has run a program of this owner. Keeps at most `max` workers: the one that has been idle for longest ends.
    pub(crate) fn add(&self, owner: &Arc<str>, worker: Worker, max: usize, thread: &ProcessThread) {
        let last = LastProgram { owner: Arc::clone(owner), usage: Usage::read(worker.id()) };
        let mut state = lock(&self.0);
        state.workers.push(IdleWorker { worker, last: Some(last) });
        let surplus = if state.workers.len() > max { Some(state.workers.remove(0)) } else { None };
        let was_watched = std::mem::replace(&mut state.is_watched, true);
        drop(state);
        drop(surplus);
        if !was_watched {
            thread.watch();
        }
    }

    /// Takes a worker that has run programs of this owner only, or no program. One that was not idle is killed.
    pub(crate) fn take(&self, owner: &str) -> Option<Worker> {
        loop {
            let mut state = lock(&self.0);
            let of_owner = |idle: &IdleWorker| idle.last.as_ref().is_some_and(|last| &*last.owner == owner);
            let at = state.workers.iter().rposition(of_owner);
            let at = at.or_else(|| state.workers.iter().rposition(|idle| idle.last.is_none()))?;
            let IdleWorker { mut worker, last } = state.workers.remove(at);
            drop(state);
            // One that ended while it was idle must not fail this program.
            if !worker.is_alive() {
                continue;
            }
            let Some(last) = last else { return Some(worker) };
            let checked = last.usage.check_idle(&Usage::read(worker.id()));
            match checked {
                Ok(()) if worker.is_silent() => return Some(worker),
                Ok(()) => report("it sent something while it was idle"),
                Err(why) => report(&why),
            }
        }
    }

    /// Takes the worker that has been idle for longest.
    pub(crate) fn take_oldest(&self) -> Option<Worker> {
        let mut state = lock(&self.0);
        if state.workers.is_empty() { None } else { Some(state.workers.remove(0).worker) }
    }

    /// Kills the workers that are not idle. Returns whether there are workers to watch.
    pub(crate) fn watch(&self) -> bool {
        let usages = |state: &State| -> Vec<(u32, Usage)> {
            state.workers.iter().filter_map(|idle| Some((idle.worker.id(), idle.last.as_ref()?.usage))).collect()
        };
        let mut state = lock(&self.0);
        let before = usages(&state);
        state.is_watched = !before.is_empty();
        drop(state);
        // Calls need not wait for the system.
        let is_busy = |(id, usage): &(u32, Usage)| Some((*id, *usage, usage.check_idle(&Usage::read(*id)).err()?));
        for (id, usage, why) in before.iter().filter_map(is_busy) {
            let mut state = lock(&self.0);
            // It may run a program by now.
            let is_same =
                |idle: &IdleWorker| idle.worker.id() == id && idle.last.as_ref().is_some_and(|last| last.usage == usage);
            let found = state.workers.iter().position(is_same).map(|at| state.workers.remove(at));
            drop(state);
            if found.is_some() {
                report(&why);
            }
        }
        !before.is_empty()
    }
}

fn report(why: &str) {
    ptc_log::line(Level::Warn, "a worker process was killed", &[("reason", why)]);
}
