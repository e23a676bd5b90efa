//! The thread of the server that starts worker processes, watches those that are idle, and reaps those that have ended.
//!
//! The kernel kills a worker when the *thread* that has started it ends (`PR_SET_PDEATHSIG`, `man 2 prctl`), so that one thread
//! starts all of them, and lives as long as the server. No thread that runs programs waits for the end of a process.

use std::io;
use std::process::Command;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::idle::IdleWorkers;
use crate::process::{CountedChild, no_thread, wait_holding};

/// How often idle workers are looked at.
const WATCH_INTERVAL: Duration = Duration::from_millis(250);

/// How often the end of killed processes is looked for.
const REAP_INTERVAL: Duration = Duration::from_millis(10);

/// Sends requests to the thread. The thread ends when all copies of this are dropped.
#[derive(Clone)]
pub(crate) struct ProcessThread(Sender<Request>);

type Started = io::Result<CountedChild>;

enum Request {
    Start(Box<Command>, oneshot::Sender<Started>),
    Reap(CountedChild),
    /// A worker is idle.
    Watch,
    #[cfg(test)]
    Block(Receiver<()>),
}

impl ProcessThread {
    /// Starts the thread. It watches the workers in `idle`. `count` counts the processes that it has started and that were not reaped.
    ///
    /// # Errors
    ///
    /// Returns an error if the system has no thread.
    pub(crate) fn start(idle: Weak<IdleWorkers>, count: Arc<AtomicUsize>) -> io::Result<ProcessThread> {
        let (requests, received) = channel();
        std::thread::Builder::new().name("workers".into()).spawn(move || serve(&received, &idle, &count))?;
        Ok(ProcessThread(requests))
    }

    /// Starts a process.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub(crate) fn spawn(&self, command: Command) -> Started {
        let (reply, child) = oneshot::channel();
        self.0.send(Request::Start(Box::new(command), reply)).map_err(|_| no_thread())?;
        wait_holding(child).map_err(|_| no_thread())?
    }

    /// Waits for the end of a process that was killed.
    pub(crate) fn reap(&self, process: CountedChild) {
        // Without the thread, the process that adopts those of an ended server reaps it.
        let _ = self.0.send(Request::Reap(process));
    }

    /// Makes the thread watch idle workers.
    pub(crate) fn watch(&self) {
        let _ = self.0.send(Request::Watch);
    }

    /// Makes the thread wait until the other end of the channel is dropped.
    #[cfg(test)]
    pub(crate) fn block(&self, until: Receiver<()>) {
        let _ = self.0.send(Request::Block(until));
    }
}

fn serve(requests: &Receiver<Request>, idle: &Weak<IdleWorkers>, count: &Arc<AtomicUsize>) {
    let mut dying: Vec<CountedChild> = Vec::new();
    // When idle workers are looked at next, if there are any.
    let mut watch_at: Option<Instant> = None;
    loop {
        let until_watch = watch_at.map(|time| time.saturating_duration_since(Instant::now()));
        let until_reap = (!dying.is_empty()).then_some(REAP_INTERVAL);
        let request = match until_watch.into_iter().chain(until_reap).min() {
            Some(wait) => requests.recv_timeout(wait),
            None => requests.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match request {
            Ok(Request::Start(mut command, reply)) => {
                let started = command.spawn().map(|child| CountedChild::new(child, Arc::clone(count)));
                if let Err(Ok(mut process)) = reply.send(started) {
                    let _ = process.child.kill();
                    dying.push(process);
                }
            }
            Ok(Request::Reap(process)) => dying.push(process),
            Ok(Request::Watch) => watch_at = watch_at.or_else(|| Some(Instant::now() + WATCH_INTERVAL)),
            #[cfg(test)]
            Ok(Request::Block(until)) => drop(until.recv()),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) if dying.is_empty() => return,
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(REAP_INTERVAL),
        }
        dying.retain_mut(|process| matches!(process.child.try_wait(), Ok(None)));
        if watch_at.is_some_and(|time| time <= Instant::now()) {
            let has_idle = idle.upgrade().is_some_and(|idle| idle.watch());
            watch_at = has_idle.then(|| Instant::now() + WATCH_INTERVAL);
        }
    }
}
