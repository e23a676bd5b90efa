//! A client that sends requests and does not read answers. Measures how many bytes a server accepts from it, and at what cost.

use std::io::Write;
use std::process::Child;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::figures::resident_kib;

/// Maximum number of calls that are sent. It is smaller in unoptimised builds, whose figures are meaningless.
const CALLS: usize = if cfg!(debug_assertions) { 20_000 } else { 1_000_000 };
/// If the server accepts nothing for this long, it has stopped accepting.
const STILL: Duration = Duration::from_millis(500);

/// Maximum growth of the server's memory in KiB. Back-pressure has to stop the client before its calls fill the server's memory.
/// This figure does not depend on the load of the machine.
const GROWTH_KIB: u64 = 8 * 1024;

/// Sends `call` repeatedly without reading answers until the server accepts nothing more, and then calls `answer` to read each
/// answer. Returns the result as text.
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
