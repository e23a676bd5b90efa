//! One worker process, as seen by the server: what it uses, and its end.

use std::io;
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use ptc_schedule::park_holding;
use rustix::net::{RecvFlags, recv};
use tokio::net::UnixStream;

use crate::process_thread::ProcessThread;

/// Processor time that an idle worker may use: it still releases the values of its last program.
const MAX_IDLE_TIME: Duration = Duration::from_millis(50);

/// Bytes by which an idle worker may grow. The system counts the memory of a process roughly.
const MAX_IDLE_GROWTH: u64 = 1024 * 1024;

/// How often, and after how long, the end of a process that has closed its socket is looked for.
const END_CHECKS: u32 = 20;
const END_CHECK_INTERVAL: Duration = Duration::from_micros(250);

/// A process that counts until this is dropped, which is when it was reaped: until then it holds its memory.
pub(crate) struct CountedChild {
    pub(crate) child: Child,
    count: Arc<AtomicUsize>,
}

impl CountedChild {
    /// Takes over a process, which `count` counts.
    pub(crate) fn new(child: Child, count: Arc<AtomicUsize>) -> CountedChild {
        count.fetch_add(1, Ordering::Relaxed);
        CountedChild { child, count }
    }
}

impl Drop for CountedChild {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A worker process. It is killed when this is dropped.
pub(crate) struct Worker {
    /// `None` once it has ended.
    process: Option<CountedChild>,
    id: u32,
    thread: ProcessThread,
    pub(crate) socket: UnixStream,
}

/// What a process has used until now. `None` is what the system does not report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Usage {
    processor: Option<Duration>,
    private_bytes: Option<u64>,
}

impl Worker {
    /// Takes over a process. `thread` reaps it.
    pub(crate) fn new(process: CountedChild, socket: UnixStream, thread: ProcessThread) -> Worker {
        Worker { id: process.child.id(), process: Some(process), thread, socket }
    }

    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        self.process.as_mut().is_some_and(|process| matches!(process.child.try_wait(), Ok(None)))
    }

    /// Whether the worker has sent nothing that was not received.
    pub(crate) fn is_silent(&self) -> bool {
        let received = recv(&self.socket, &mut [0_u8; 1][..], RecvFlags::DONTWAIT | RecvFlags::PEEK);
        matches!(received, Err(rustix::io::Errno::AGAIN))
    }

    /// Returns the bytes of memory that only this process holds, if the system reports it.
    pub(crate) fn private_bytes(&self) -> Option<u64> {
        private_bytes(self.id)
    }

    /// Waits a short time for the end of a process that has closed its socket, and returns how it ended.
    pub(crate) fn end(mut self) -> Option<ExitStatus> {
        for _ in 0..END_CHECKS {
            if let Some(Ok(Some(status))) = self.process.as_mut().map(|process| process.child.try_wait()) {
                self.process = None;
                return Some(status);
            }
            // Other programs use the thread meanwhile.
            park_holding(Some(Instant::now() + END_CHECK_INTERVAL));
        }
        None
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if self.is_alive()
            && let Some(mut process) = self.process.take()
        {
            let _ = process.child.kill();
            // The end of a process takes long if it holds much memory. Nothing here waits for it.
            self.thread.reap(process);
        }
    }
}

impl Usage {
    /// Returns what a process has used. It must be a child that was not reaped.
    pub(crate) fn read(process: u32) -> Usage {
        Usage { processor: processor_time(process), private_bytes: private_bytes(process) }
    }

    /// Whether a process that used this when it became idle has been idle since. `now` is what it has used now.
    ///
    /// # Errors
    ///
    /// Returns what the process has done.
    pub(crate) fn check_idle(&self, now: &Usage) -> Result<(), String> {
        if let (Some(before), Some(now)) = (self.processor, now.processor)
            && let used = now.saturating_sub(before)
            && used > MAX_IDLE_TIME
        {
            return Err(format!("it used {} ms of processor time while it was idle", used.as_millis()));
        }
        if let (Some(before), Some(now)) = (self.private_bytes, now.private_bytes)
            && let grown = now.saturating_sub(before)
            && grown > MAX_IDLE_GROWTH
        {
            return Err(format!("it grew by {grown} bytes while it was idle"));
        }
        Ok(())
    }
}

fn private_bytes(process: u32) -> Option<u64> {
    let statm = std::fs::read_to_string(format!("/proc/{process}/statm")).ok()?;
    let mut pages = statm.split_ascii_whitespace().skip(1).map_while(|number| number.parse::<u64>().ok());
    let (resident, shared) = (pages.next()?, pages.next()?);
    Some(resident.saturating_sub(shared) * rustix::param::page_size() as u64)
}

/// Returns the processor time of all threads of a process.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
fn processor_time(process: u32) -> Option<Duration> {
    let mut clock: libc::clockid_t = 0;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    #[expect(unsafe_code, reason = "the calls write to the variables that they are given, and nothing else")]
    let is_known = unsafe {
        libc::clock_getcpuclockid(process.cast_signed(), &raw mut clock) == 0 && libc::clock_gettime(clock, &raw mut time) == 0
    };
    let (seconds, nanoseconds) = (u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?);
    is_known.then(|| Duration::new(seconds, nanoseconds))
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))))]
fn processor_time(_: u32) -> Option<Duration> {
    None
}

/// Waits for a future on the calling fiber or thread. A fiber keeps its processor, and its thread runs others meanwhile.
pub(crate) fn wait_holding<F: Future>(future: F) -> F::Output {
    let waker = ptc_lisp::fiber::waker();
    let mut future = std::pin::pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        park_holding(None);
    }
}

/// Returns the error of a server whose thread for processes is gone.
pub(crate) fn no_thread() -> io::Error {
    io::Error::other("the thread that starts processes is gone")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_that_computes_or_grows_is_not_idle() {
        let usage = |ms: u64, mib: u64| Usage { processor: Some(Duration::from_millis(ms)), private_bytes: Some(mib << 20) };
        let before = usage(100, 8);
        assert_eq!(before.check_idle(&usage(120, 9)), Ok(()));
        assert_eq!(before.check_idle(&usage(100, 2)), Ok(()), "it may release memory");
        assert!(before.check_idle(&usage(200, 8)).is_err_and(|why| why.contains("100 ms of processor time")));
        assert!(before.check_idle(&usage(100, 12)).is_err_and(|why| why.contains("grew by 4194304 bytes")));
        assert_eq!(before.check_idle(&Usage { processor: None, private_bytes: None }), Ok(()));
    }

    #[test]
    fn usage_of_a_process_is_known() {
        let before = Usage::read(std::process::id());
        let until = Instant::now() + Duration::from_millis(200);
        let block = std::hint::black_box(vec![1_u8; 64 << 20]);
        while Instant::now() < until {}
        let after = Usage::read(std::process::id());
        drop(block);
        assert!(after.private_bytes > before.private_bytes.map(|bytes| bytes + (32 << 20)), "{before:?} {after:?}");
        assert!(after.processor > before.processor.map(|time| time + Duration::from_millis(10)), "{before:?} {after:?}");
    }
}
