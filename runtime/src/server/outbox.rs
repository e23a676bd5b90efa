//! The queue of answers to the client.
//!
//! The thread that has an answer writes it, together with the answers that other threads have queued meanwhile. This needs no
//! separate thread and no hand-over, and writes many answers in one system call. If the client does not read, sending blocks, and
//! reading stops in consequence.

use std::io::Write;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A queue of answers for an output.
pub struct Outbox<W> {
    state: Mutex<State>,
    drained: Condvar,
    output: Mutex<W>,
    broken: Box<dyn Fn() + Send + Sync>,
}

#[derive(Default)]
struct State {
    queue: Vec<u8>,
    writing: bool,
    broken: bool,
    /// Number of threads that wait for `drained`. Notifying a condition variable is a system call even if no thread waits.
    waiting: usize,
}

/// Maximum bytes that wait behind a write in progress. A larger answer is queued alone.
const HIGH_WATER: usize = 1024 * 1024;

impl<W: Write> Outbox<W> {
    /// Creates an outbox for `output`. `broken` is called once, when a write fails.
    pub fn new(output: W, broken: impl Fn() + Send + Sync + 'static) -> Self {
        Outbox { state: Mutex::default(), drained: Condvar::new(), output: Mutex::new(output), broken: Box::new(broken) }
    }

    /// Sends a line. `placed` is dropped as soon as the line may enter the queue, since it then counts in the limit of the queue.
    pub fn send<T>(&self, line: &[u8], placed: T) {
        let mut state = self.lock();
        while state.writing && state.queue.len() > HIGH_WATER && !state.broken {
            state.waiting += 1;
            state = self.drained.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
        // It is dropped before the client can see the answer and send its next call. This happens without the lock, since it may
        // start or answer the next call.
        drop(state);
        drop(placed);
        let mut state = self.lock();
        if state.broken {
            return;
        }
        state.queue.extend_from_slice(line);
        if state.writing {
            return;
        }
        state.writing = true;
        let mut batch = Vec::new();
        while !state.queue.is_empty() && !state.broken {
            std::mem::swap(&mut batch, &mut state.queue);
            self.notify(&state);
            drop(state);
            let written = self.write(&batch);
            batch.clear();
            batch.shrink_to(64 * 1024);
            state = self.lock();
            if written.is_err() {
                state.broken = true;
                state.queue = Vec::new();
                (self.broken)();
            }
        }
        state.writing = false;
        if state.queue.capacity() < batch.capacity() {
            std::mem::swap(&mut batch, &mut state.queue);
        }
        self.notify(&state);
    }

    /// Waits until everything is written, for at most `most`.
    pub fn settle(&self, most: Duration) {
        let mut state = self.lock();
        state.waiting += 1;
        let waited = self.drained.wait_timeout_while(state, most, |state| state.writing && !state.broken);
        waited.unwrap_or_else(PoisonError::into_inner).0.waiting -= 1;
    }

    fn notify(&self, state: &State) {
        if state.waiting > 0 {
            self.drained.notify_all();
        }
    }

    fn write(&self, batch: &[u8]) -> std::io::Result<()> {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        output.write_all(batch)?;
        output.flush()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

    /// An output whose writes wait until the test permits them.
    struct Gated(Receiver<()>, Arc<Mutex<Vec<u8>>>);

    impl Write for Gated {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.recv().map_err(|_| std::io::ErrorKind::BrokenPipe)?;
            self.1.lock().expect("the test holds it briefly").extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    struct Bench {
        go: SyncSender<()>,
        seen: Arc<Mutex<Vec<u8>>>,
        outbox: Arc<Outbox<Gated>>,
        broken: Arc<AtomicUsize>,
    }

    fn gated() -> Bench {
        let (go, wait) = sync_channel(1000);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let broken = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&broken);
        let outbox = Outbox::new(Gated(wait, Arc::clone(&seen)), move || {
            count.fetch_add(1, Ordering::SeqCst);
        });
        Bench { go, seen, outbox: Arc::new(outbox), broken }
    }

    #[test]
    fn every_line_once_and_whole() {
        let Bench { go, seen, outbox, .. } = gated();
        let senders: Vec<_> = (0..8)
            .map(|n| {
                let outbox = Arc::clone(&outbox);
                std::thread::spawn(move || (0..50).for_each(|m| outbox.send(format!("{n}-{m}\n").as_bytes(), ())))
            })
            .collect();
        for _ in 0..400 {
            go.send(()).expect("the outbox lives");
        }
        for sender in senders {
            sender.join().expect("no sender panics");
        }
        let text = String::from_utf8(seen.lock().expect("nobody else").clone()).expect("ASCII");
        let mut lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 400);
        lines.sort_unstable();
        lines.dedup();
        assert_eq!(lines.len(), 400);
    }

    #[test]
    fn a_client_that_does_not_read_holds_senders_back() {
        let Bench { go, outbox, broken, .. } = gated();
        let sent = Arc::new(AtomicUsize::new(0));
        let sender = {
            let (outbox, sent) = (Arc::clone(&outbox), Arc::clone(&sent));
            std::thread::spawn(move || {
                // The first thread is blocked in its write.
                let writer = Arc::clone(&outbox);
                let stuck = std::thread::spawn(move || writer.send(b"x", ()));
                while !outbox.lock().writing {
                    std::thread::yield_now();
                }
                let line = vec![b'x'; 64 * 1024];
                for _ in 0..100 {
                    outbox.send(&line, ());
                    sent.fetch_add(1, Ordering::SeqCst);
                }
                stuck.join().expect("it returns once the output breaks");
            })
        };
        while sent.load(Ordering::SeqCst) < 17 {
            std::thread::yield_now();
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert_eq!(sent.load(Ordering::SeqCst), 17);
        drop(go);
        sender.join().expect("a broken output frees all senders");
        assert_eq!(broken.load(Ordering::SeqCst), 1);
    }
}
