//! Signals for an orderly shutdown, including child processes.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that request a shutdown.
#[derive(Debug)]
pub struct ShutdownSignals(Vec<(&'static str, Signal)>);

impl ShutdownSignals {
    /// Listens for SIGTERM, SIGHUP and SIGQUIT, and with `interrupt` for SIGINT. Signals that the parent process had set to be
    /// ignored, as `nohup` does, stay ignored. Must be called inside a Tokio runtime.
    pub fn listen(interrupt: bool) -> io::Result<ShutdownSignals> {
        let ignored = ignored();
        let all = [
            ("SIGTERM", SignalKind::terminate()),
            ("SIGHUP", SignalKind::hangup()),
            ("SIGQUIT", SignalKind::quit()),
            ("SIGINT", SignalKind::interrupt()),
        ];
        let wanted = all.into_iter().filter(|(name, kind)| {
            let bit = 1_u64 << (kind.as_raw_value() - 1);
            (interrupt || *name != "SIGINT") && ignored & bit == 0
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

/// Returns the signals that this process ignores, one bit each. Returns 0 if the system does not provide them.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
