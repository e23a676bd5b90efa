//! Runs tests until they end or a signal arrives. After a signal the results so far are reported.

use std::path::PathBuf;

use ptc_lisp::limits::Cancel;
use ptc_runtime::command::ShutdownSignals;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

use super::deployments::Deployments;
use super::{FileResults, Test, run_files};
use crate::console::Console;
use crate::{Failure, Status};

/// The signals that end this process.
pub(super) struct Interruptible {
    runtime: Runtime,
    signals: ShutdownSignals,
}

impl Interruptible {
    /// Listens for signals.
    ///
    /// # Errors
    ///
    /// The operating system does not allow it.
    pub(super) fn new() -> Result<Interruptible, Failure> {
        let failed = |error: std::io::Error| Failure::new(format!("cannot take over the signals that end a process: {error}"));
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let signals = {
            let _inside = runtime.enter();
            ShutdownSignals::listen(true, true).map_err(failed)?
        };
        Ok(Interruptible { runtime, signals })
    }

    /// Runs files on a thread of their own. If a signal arrives, also returns the status of a process that it ends; another signal ends
    /// this process at once.
    pub(super) fn run(
        &mut self,
        args: &Test,
        paths: Vec<PathBuf>,
        deployments: Deployments,
        console: &Console,
    ) -> (Result<FileResults, Failure>, Option<Status>) {
        let (done, mut ran) = oneshot::channel();
        let cancel = Cancel::default();
        let (args, console, ended) = (args.clone(), console.clone(), cancel.clone());
        std::thread::spawn(move || {
            let _ = done.send(run_files(&args, paths, &deployments, ended, &console));
        });
        let signals = &mut self.signals;
        let (ran, interrupted) = self.runtime.block_on(async {
            let status = tokio::select! {
                ran = &mut ran => return (ran, None),
                signal = signals.recv() => Status::ended_by(signal),
            };
            cancel.cancel();
            tokio::select! {
                ran = ran => (ran, Some(status)),
                _ = signals.recv() => status.exit(),
            }
        });
        (ran.unwrap_or_else(|_| Err(Failure::new("the run of the tests has panicked"))), interrupted)
    }

    /// Waits until a future ends. Returns `None` if a signal arrives before.
    pub(super) fn until_signal<T>(&mut self, future: impl Future<Output = T>) -> Option<T> {
        let signals = &mut self.signals;
        self.runtime.block_on(async {
            tokio::select! {
                output = future => Some(output),
                _ = signals.recv() => None,
            }
        })
    }
}
