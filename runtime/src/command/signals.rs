//! Signals that end a process in order: with its child processes, and theirs.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Signals that ask a process to end.
#[derive(Debug)]
pub struct Endings(Vec<(&'static str, Signal)>);

impl Endings {
    /// Takes over those that ask for an end: termination, the end of the terminal, quitting; with `interrupt` also the key for that.
    /// What the parent of this process had it ignore, as `nohup` does, stays ignored. Needs a Tokio runtime around it.
    pub fn listen(interrupt: bool) -> io::Result<Endings> {
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
        wanted.map(|(name, kind)| Ok((name, signal(kind)?))).collect::<io::Result<_>>().map(Endings)
    }

    /// Waits for one of them; its name.
    pub async fn come(&mut self) -> &'static str {
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

/// The signals that this process ignores, a bit each; none where the system does not tell.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
