//! A client that sends and does not read: how much of it a server takes in, and what that costs.

use std::io::Write;
use std::process::Child;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::figures::resident_kib;

/// Calls that are sent. Fewer where nothing is optimised and the figures mean nothing.
const CALLS: usize = if cfg!(debug_assertions) { 20_000 } else { 1_000_000 };
/// A server that takes nothing for so long takes nothing more.
const STILL: Duration = Duration::from_millis(500);

/// Memory that a server may take for it, in KiB: back-pressure holds the client, and not memory its calls. No load of the machine
/// moves that.
const GROWTH_KIB: u64 = 8 * 1024;

/// Sends `call` over and over while nobody reads, until nothing more is taken; then has `answer` read each answer. What it came to, as
/// text.
pub(crate) fn flood(server: &Child, mut input: impl Write + Send, call: &[u8], mut answer: impl FnMut()) -> String {
    let sent = AtomicUsize::new(0);
    let idle = resident_kib(server);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..CALLS {
                input.write_all(call).unwrap();
                sent.fetch_add(1, Ordering::Relaxed);
            }
        });
        let mut taken = 0;
        let held = loop {
            std::thread::sleep(STILL);
            let now = sent.load(Ordering::Relaxed);
            if now == taken {
                break resident_kib(server);
            }
            taken = now;
        };
        (0..CALLS).for_each(|_| answer());
        let after = resident_kib(server);
        let told = format!(
            "{taken} of {CALLS} calls taken unread, {idle} KiB before, {held} KiB then, {after} KiB when all were answered"
        );
        assert!(held.max(after) <= idle + GROWTH_KIB, "more than {GROWTH_KIB} KiB more: {told}");
        told
    })
}
