//! The queue of answers to a client on standard output.
//!
//! The thread that has an answer writes it, together with answers that others have queued meanwhile. This needs no handover to
//! another thread, and many answers share one system call. If the client does not read, a thread of the outbox writes the rest, so
//! that the threads of programs do not block. Senders then wait for space in the queue, fibers without their threads, and finally
//! the reader of requests waits too.

use std::fs::File;
#[cfg(target_os = "linux")]
use std::io::IoSlice;
use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use ptc_lisp::fiber;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
#[cfg(target_os = "linux")]
use rustix::io::{Errno, ReadWriteFlags, pwritev2};
use rustix::pipe::PIPE_BUF;

/// Maximum size in bytes of the queue while a write is in progress. A single larger answer is still accepted.
const HIGH_WATER: usize = 1024 * 1024;

/// Maximum number of senders that wait for space while further requests are read.
const MAX_WAITING: usize = 1024;

/// The offset with which `pwritev2` writes at the current position, as `write` does.
#[cfg(target_os = "linux")]
const CURRENT_POSITION: u64 = u64::MAX;

/// Where answers are written.
pub trait Output: Write + Send + 'static {
    /// Writes as much as is possible without blocking, and returns how many bytes that is.
    ///
    /// # Errors
    ///
    /// Returns the error of the output, such as that of a closed pipe. An output that takes no bytes now is not an error.
    fn write_now(&mut self, bytes: &[u8]) -> std::io::Result<usize>;
}

impl Output for File {
    fn write_now(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        #[cfg(target_os = "linux")]
        match pwritev2(&*self, &[IoSlice::new(bytes)], CURRENT_POSITION, ReadWriteFlags::NOWAIT) {
            Ok(written) => return Ok(written),
            Err(Errno::AGAIN | Errno::INTR) => return Ok(0),
            // Old kernels do not know the flag, and terminals and some file systems do not support it.
            Err(Errno::NOSYS | Errno::OPNOTSUPP | Errno::INVAL) => {}
            Err(fault) => return Err(fault.into()),
        }
        // A pipe that is ready has space for that much and no more is certain. Files are always ready.
        let mut descriptor = [PollFd::new(self, PollFlags::OUT)];
        let takes = bytes.len() <= PIPE_BUF && poll(&mut descriptor, Some(&Timespec::default())).is_ok_and(|ready| ready > 0);
        if takes { self.write(bytes) } else { Ok(0) }
    }
}

/// A queue of answers for an output.
pub struct Outbox<W> {
    shared: Arc<Shared<W>>,
}

struct Shared<W> {
    state: Mutex<State>,
    /// Notified when a write is handed over to the thread of the outbox.
    handed_over: Condvar,
    output: Mutex<W>,
    broken: Box<dyn Fn() + Send + Sync>,
}

#[derive(Default)]
struct State {
    queue: Vec<u8>,
    writing: bool,
    broken: bool,
    /// Wakers of senders and others that wait until the queue shrinks.
    waiting: Vec<Waker>,
    thread: WriterThread,
}

/// The thread that writes when a write may block.
#[derive(Default, PartialEq, Eq)]
enum WriterThread {
    #[default]
    NotStarted,
    Idle,
    Writes,
    Closed,
}

impl<W: Output> Outbox<W> {
    /// Makes an outbox for `output`. `broken` is called once, when a write fails permanently.
    pub fn new(output: W, broken: impl Fn() + Send + Sync + 'static) -> Self {
        let (state, handed_over) = (Mutex::default(), Condvar::new());
        Outbox { shared: Arc::new(Shared { state, handed_over, output: Mutex::new(output), broken: Box::new(broken) }) }
    }

    /// Sends a line. `placed` is dropped when the line enters the queue, since its memory is bounded here from then on.
    pub fn send<T>(&self, line: &[u8], placed: T) {
        self.shared.wait(None, |state| state.queue.len() > HIGH_WATER);
        // This is done before the client can see the answer and send its next call, and without the lock, since it may start the
        // next call or answer it.
        drop(placed);
        let mut state = self.shared.lock();
        if state.broken {
            return;
        }
        state.queue.extend_from_slice(line);
        if !state.writing {
            state.writing = true;
            self.shared.write_queue(state, false);
        }
    }

    /// Waits while many senders wait for space: the client does not read, and each further request would add to them.
    pub fn wait_for_reader(&self) {
        self.shared.wait(None, |state| state.waiting.len() >= MAX_WAITING);
    }

    /// Waits until everything is written, for at most `most`.
    pub fn settle(&self, most: Duration) {
        self.shared.wait(Some(Instant::now() + most), |_| true);
    }
}

impl<W> Drop for Outbox<W> {
    fn drop(&mut self) {
        self.shared.lock().thread = WriterThread::Closed;
        self.shared.handed_over.notify_one();
    }
}

impl<W> Shared<W> {
    /// Waits while a write is in progress and `blocked` is true.
    fn wait(&self, until: Option<Instant>, blocked: impl Fn(&State) -> bool) {
        let mut state = self.lock();
        while state.writing && !state.broken && blocked(&state) && until.is_none_or(|until| Instant::now() < until) {
            state.waiting.push(fiber::waker());
            drop(state);
            fiber::park(until);
            state = self.lock();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn output(&self) -> MutexGuard<'_, W> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W: Output> Shared<W> {
    /// Writes until the queue is empty. Unless `may_block`, the thread of the outbox takes over what would block.
    fn write_queue<'s>(self: &'s Arc<Self>, mut state: MutexGuard<'s, State>, mut may_block: bool) {
        let mut batch = Vec::new();
        while !state.queue.is_empty() && !state.broken {
            std::mem::swap(&mut batch, &mut state.queue);
            wake(state);
            let written = if may_block { self.write(&batch) } else { self.output().write_now(&batch) };
            state = self.lock();
            match written {
                Ok(written) if written < batch.len() => {
                    state.queue.splice(..0, batch.drain(written..));
                    if self.hand_over(&mut state) {
                        return;
                    }
                    may_block = true;
                }
                Ok(_) => {}
                Err(_) => {
                    state.broken = true;
                    state.queue = Vec::new();
                    (self.broken)();
                }
            }
            batch.clear();
            batch.shrink_to(64 * 1024);
        }
        state.writing = false;
        if state.queue.capacity() < batch.capacity() {
            std::mem::swap(&mut batch, &mut state.queue);
        }
        wake(state);
    }

    /// Has the thread of the outbox write. Returns `false` if the system cannot start it.
    fn hand_over(self: &Arc<Self>, state: &mut State) -> bool {
        if state.thread == WriterThread::NotStarted {
            let shared = Arc::clone(self);
            let thread = std::thread::Builder::new().name("answers".into()).stack_size(256 * 1024);
            if thread.spawn(move || shared.write_when_handed_over()).is_err() {
                return false;
            }
        }
        state.thread = WriterThread::Writes;
        self.handed_over.notify_one();
        true
    }

    fn write_when_handed_over(self: &Arc<Self>) {
        let mut state = self.lock();
        loop {
            match state.thread {
                WriterThread::Closed => return,
                WriterThread::Writes => {
                    state.thread = WriterThread::Idle;
                    self.write_queue(state, true);
                    state = self.lock();
                }
                WriterThread::NotStarted | WriterThread::Idle => {
                    state = self.handed_over.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// Writes everything, and returns how many bytes that is.
    fn write(&self, batch: &[u8]) -> std::io::Result<usize> {
        let mut output = self.output();
        output.write_all(batch)?;
        output.flush()?;
        Ok(batch.len())
    }
}

/// Releases the lock and wakes all that wait. Each checks its condition again.
fn wake(mut state: MutexGuard<'_, State>) {
    let waiting = std::mem::take(&mut state.waiting);
    drop(state);
    waiting.into_iter().for_each(Waker::wake);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};

    use crate::fibers::Fibers;

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

    impl Output for Gated {
        fn write_now(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            if bytes.len() < LARGE { self.write(bytes) } else { Ok(0) }
        }
    }

    /// From this size on, a write is handed over.
    const LARGE: usize = 100 * 1024;

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
    fn every_line_is_written_completely_and_once() {
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
        let text = String::from_utf8(seen.lock().expect("the lock is not poisoned").clone()).expect("ASCII");
        let mut lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 400);
        lines.sort_unstable();
        lines.dedup();
        assert_eq!(lines.len(), 400);
    }

    #[test]
    fn senders_wait_for_a_client_that_does_not_read() {
        let Bench { go, outbox, broken, .. } = gated();
        let sent = Arc::new(AtomicUsize::new(0));
        let sender = {
            let (outbox, sent) = (Arc::clone(&outbox), Arc::clone(&sent));
            std::thread::spawn(move || {
                // The first thread is blocked in its write.
                let writer = Arc::clone(&outbox);
                let stuck = std::thread::spawn(move || writer.send(b"x", ()));
                while !outbox.shared.lock().writing {
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

    /// Sends a line that the thread of the outbox writes, and waits until it does.
    fn send_and_block(outbox: &Outbox<Gated>) {
        outbox.send(&vec![b'x'; LARGE], ());
        while !outbox.shared.lock().queue.is_empty() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn fibers_that_wait_for_space_release_their_thread() {
        let Bench { go, seen, outbox, .. } = gated();
        let fibers = Fibers::new(1);
        let (sent, answers) = channel();
        send_and_block(&outbox);
        for size in [HIGH_WATER + 1, 1] {
            let (outbox, sent) = (Arc::clone(&outbox), sent.clone());
            fibers.spawn(move || outbox.send(&vec![b'x'; size], ()), move |_| sent.send(size).expect("the test waits"));
        }
        // The first waits in the queue, and the second waits for space.
        assert_eq!(answers.recv(), Ok(HIGH_WATER + 1));
        let (run, other) = channel();
        fibers.spawn(|| 5, move |five| run.send(five).expect("the test waits"));
        assert_eq!(other.recv(), Ok(Ok(5)));
        assert!(answers.try_recv().is_err());
        go.send(()).expect("the outbox lives");
        assert_eq!(answers.recv(), Ok(1));
        (0..2).for_each(|_| go.send(()).expect("the outbox lives"));
        outbox.settle(Duration::from_secs(20));
        assert_eq!(seen.lock().expect("the lock is not poisoned").len(), LARGE + HIGH_WATER + 2);
    }

    #[test]
    fn reader_waits_while_many_senders_wait() {
        let Bench { go, outbox, .. } = gated();
        let fibers = Fibers::new(1);
        send_and_block(&outbox);
        outbox.send(&vec![b'x'; HIGH_WATER + 1], ());
        outbox.wait_for_reader();
        for _ in 0..MAX_WAITING {
            let outbox = Arc::clone(&outbox);
            fibers.spawn(move || outbox.send(b"x", ()), |_| ());
        }
        while outbox.shared.lock().waiting.len() < MAX_WAITING {
            std::thread::yield_now();
        }
        let (read, reads) = channel();
        let reader = Arc::clone(&outbox);
        let reader = std::thread::spawn(move || {
            reader.wait_for_reader();
            read.send(()).expect("the test waits");
        });
        assert!(reads.recv_timeout(Duration::from_millis(50)).is_err());
        (0..3).for_each(|_| go.send(()).expect("the outbox lives"));
        reads.recv().expect("it reads again");
        reader.join().expect("no panic");
    }

    #[test]
    fn write_to_a_full_pipe_returns_zero() {
        let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
        let (mut reader, mut writer) = (File::from(reader), File::from(writer));
        assert_eq!(writer.write_now(&[b'x'; PIPE_BUF]).expect("it is open"), PIPE_BUF);
        let mut written = PIPE_BUF;
        loop {
            match writer.write_now(&[b'x'; PIPE_BUF]).expect("it is open") {
                0 => break,
                more => written += more,
            }
        }
        assert_eq!(writer.write_now(b"x").expect("it is open"), 0);
        reader.read_exact(&mut vec![0; written]).expect("as much as was written");
        assert_eq!(writer.write_now(b"x").expect("it is open"), 1);
        drop(reader);
        assert!(writer.write_now(b"x").is_err());
    }

    #[test]
    fn rest_of_a_line_is_written_by_the_writer_thread() {
        let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
        let mut reader = File::from(reader);
        let outbox = Outbox::new(File::from(writer), || ());
        let line = |byte: u8, size: usize| [vec![byte; size], b"\n".to_vec()].concat();
        let lines = [line(b'a', 300 * 1024), line(b'b', 10), line(b'c', 200 * 1024)];
        for line in &lines {
            outbox.send(line, ());
        }
        let mut read = vec![0; lines.iter().map(Vec::len).sum()];
        reader.read_exact(&mut read).expect("everything is written");
        assert!(read == lines.concat());
    }
}
