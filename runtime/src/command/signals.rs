//! Signals for an orderly shutdown, including child processes.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that request a shutdown.
#[derive(Debug)]
pub struct ShutdownSignals(Vec<(&'static str, Signal)>);

/// SIGHUP of a process that reads files again when it arrives.
#[cfg(feature = "http-server")]
#[derive(Debug, Default)]
pub(super) struct Hangups(Option<Signal>);

#[cfg(feature = "http-server")]
impl Hangups {
    /// Listens for SIGHUP if `is_wanted`, also if the parent process had set it to be ignored. Must be called inside a Tokio
    /// runtime.
    ///
    /// # Errors
    ///
    /// Returns an error if the operating system does not allow a handler.
    pub(super) fn listen(is_wanted: bool) -> io::Result<Hangups> {
        is_wanted.then(|| signal(SignalKind::hangup())).transpose().map(Hangups)
    }

    /// Waits for SIGHUP, forever if it is not wanted.
    pub(super) async fn recv(&mut self) {
        let arrived = match &mut self.0 {
            Some(signal) => signal.recv().await,
            None => None,
        };
        if arrived.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

impl ShutdownSignals {
    /// Listens for SIGTERM and SIGQUIT, with `hangup` for SIGHUP, and with `interrupt` for SIGINT. Signals that the parent process had set to be
    /// ignored, as `nohup` does, stay ignored. Must be called inside a Tokio runtime.
    ///
    /// # Errors
    ///
    /// Returns an error if the operating system does not allow a handler.
    pub fn listen(interrupt: bool, hangup: bool) -> io::Result<ShutdownSignals> {
        let ignored = ignored();
        let all = [
            ("SIGTERM", SignalKind::terminate()),
            ("SIGHUP", SignalKind::hangup()),
            ("SIGQUIT", SignalKind::quit()),
            ("SIGINT", SignalKind::interrupt()),
        ];
        let wanted = all.into_iter().filter(|(name, kind)| {
            let bit = 1_u64 << (kind.as_raw_value() - 1);
            (interrupt || *name != "SIGINT") && (hangup || *name != "SIGHUP") && ignored & bit == 0
        });
        wanted.map(|(name, kind)| Ok((name, signal(kind)?))).collect::<io::Result<_>>().map(ShutdownSignals)
    }

    /// Waits for a signal and returns its name.
    pub async fn recv(&mut self) -> &'static str {
        poll_fn(|context| {
            for (name, signal) in &mut self.0 {
                if signal.poll_recv(context).is_ready() {
                    return Poll::Ready(*name);
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// Interrupts (SIGINT) of this process.
#[derive(Debug)]
pub(super) struct Interrupts {
    /// Whether an interrupt arrived that has not been received or forgotten. The signal handler sets it. Tokio learns of a signal
    /// later, when its event loop runs, which may be after the next program has begun.
    arrived: Arc<AtomicBool>,
    signal: Signal,
}

impl Interrupts {
    /// Listens for SIGINT. Must be called inside a Tokio runtime.
    ///
    /// # Errors
    /// If the system does not allow a handler.
    pub(super) fn listen() -> io::Result<Interrupts> {
        let arrived = Arc::new(AtomicBool::new(false));
        // Handlers run in the order of their registration, so the flag is set before Tokio wakes anybody.
        signal_hook::flag::register(SignalKind::interrupt().as_raw_value(), Arc::clone(&arrived))?;
        Ok(Interrupts { arrived, signal: signal(SignalKind::interrupt())? })
    }

    /// Waits for an interrupt.
    pub(super) async fn recv(&mut self) {
        loop {
            if self.signal.recv().await.is_none() {
                std::future::pending::<()>().await;
            }
            if self.arrived.swap(false, Ordering::AcqRel) {
                return;
            }
        }
    }

    /// Discards an interrupt that arrived before there was anything to stop.
    #[cfg(any(feature = "line-editing", test))]
    pub(super) fn forget(&self) {
        self.arrived.store(false, Ordering::Release);
    }
}

/// Returns the signals that this process ignores, one bit each. Returns 0 if the system does not provide them.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::signal::unix::SignalKind;

    use super::Interrupts;

    #[test]
    fn forgotten_interrupt_is_not_received_later() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let mut interrupts = runtime.block_on(async { Interrupts::listen() }).expect("a handler");
        let mut is_received = |forgotten: bool| {
            // The signal is sent to this thread, so that it has been handled when the call returns.
            signal_hook::low_level::raise(SignalKind::interrupt().as_raw_value()).expect("a valid signal");
            if forgotten {
                interrupts.forget();
            }
            runtime.block_on(async { tokio::time::timeout(Duration::from_millis(200), interrupts.recv()).await.is_ok() })
        };
        assert!(is_received(false));
        assert!(!is_received(true));
    }
}
