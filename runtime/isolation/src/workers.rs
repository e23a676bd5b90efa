//! Starts workers, and keeps idle ones.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ptc_log::Level;
use tokio::net::UnixStream;
use tokio::runtime::Handle;

use crate::confinement;
use crate::connection::lock;
use crate::message::{self, Settings, ToWorker};
use crate::worker::ARGUMENT;

/// The settings of all workers of a server.
#[derive(Debug, Clone, Copy)]
pub struct WorkerSettings {
    /// The name of the deployment, which `ps` shows.
    pub name: &'static str,
    /// Whether the kernel confines workers.
    pub is_confined: bool,
    /// Maximum bytes of a program's values.
    pub memory_bytes: u64,
    /// Maximum bytes of the preview of a value.
    pub preview_bytes: usize,
    /// Maximum number of calls of one program.
    pub max_calls_per_program: u32,
    /// Maximum number of idle workers.
    pub max_idle: usize,
    /// Number of workers from which on an idle one ends before another one starts.
    pub most: usize,
}

/// The workers of a server.
///
/// As many exist as programs are in flight, and some idle ones. A worker that has run a program of an owner runs programs of no
/// other owner, so that a program that has taken over its worker reaches no other owner.
pub struct Workers {
    pub(crate) settings: WorkerSettings,
    pub(crate) handle: Handle,
    idle: Mutex<Vec<(Option<Arc<str>>, Worker)>>,
    /// Number of processes.
    count: Arc<AtomicUsize>,
}

/// A worker process. It is killed when this is dropped.
pub(crate) struct Worker {
    child: Child,
    count: Arc<AtomicUsize>,
    pub(crate) socket: UnixStream,
}

impl Workers {
    /// Creates an empty pool. Workers are connected to the runtime of `handle`.
    ///
    /// # Errors
    ///
    /// Returns what the kernel lacks to confine workers.
    pub fn new(settings: WorkerSettings, handle: Handle) -> Result<Arc<Workers>, confinement::Error> {
        if settings.is_confined {
            confinement::check()?;
        }
        Ok(Arc::new(Workers { settings, handle, idle: Mutex::default(), count: Arc::default() }))
    }

    /// Starts idle workers on another thread, so that the first calls need not wait for theirs.
    pub fn warm_up(self: &Arc<Self>, count: usize) {
        let this = Arc::clone(self);
        let start = move || {
            for _ in 0..count.min(this.settings.max_idle) {
                match this.start() {
                    Ok(worker) => lock(&this.idle).push((None, worker)),
                    Err(why) => return ptc_log::line(Level::Error, "no worker process", &[("reason", &why.to_string())]),
                }
            }
        };
        // Without a thread they are started by the first calls.
        let _ = std::thread::Builder::new().name("workers".into()).spawn(start);
    }

    /// Returns a worker for a program of this owner.
    pub(crate) fn take(&self, owner: &str) -> io::Result<Worker> {
        let mut idle = lock(&self.idle);
        loop {
            let of_owner = idle.iter().rposition(|(of, _)| of.as_deref() == Some(owner));
            let Some(at) = of_owner.or_else(|| idle.iter().rposition(|(of, _)| of.is_none())) else { break };
            let (_, mut worker) = idle.remove(at);
            // One that ended while it was idle must not fail this program.
            if worker.is_alive() {
                return Ok(worker);
            }
        }
        let surplus =
            if self.count.load(Ordering::Relaxed) < self.settings.most || idle.is_empty() { None } else { Some(idle.remove(0)) };
        drop(idle);
        drop(surplus);
        self.start()
    }

    /// Keeps a worker for later programs of the same owner. The worker that has been idle for longest ends if there are too many.
    pub(crate) fn give_back(&self, owner: &Arc<str>, worker: Worker) {
        let mut idle = lock(&self.idle);
        idle.push((Some(Arc::clone(owner)), worker));
        let surplus = if idle.len() > self.settings.max_idle { Some(idle.remove(0)) } else { None };
        drop(idle);
        drop(surplus);
    }

    fn start(&self) -> io::Result<Worker> {
        let (ours, theirs) = StdStream::pair()?;
        ours.set_nonblocking(true)?;
        let WorkerSettings { is_confined, memory_bytes, preview_bytes, max_calls_per_program, .. } = self.settings;
        let settings = Settings { is_confined, memory_bytes, preview_bytes, max_calls_per_program };
        // The socket keeps it until the process reads.
        io::Write::write_all(&mut &ours, &message::encode(&ToWorker::Settings(settings))?)?;
        let socket = {
            let _runtime = self.handle.enter();
            UnixStream::from_std(ours)?
        };
        let child = Command::new("/proc/self/exe")
            .args([ARGUMENT, self.settings.name])
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        self.count.fetch_add(1, Ordering::Relaxed);
        Ok(Worker { child, count: Arc::clone(&self.count), socket })
    }
}

impl Worker {
    fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Returns the bytes of memory that only this process holds, if the system reports it.
    pub(crate) fn private_bytes(&self) -> Option<u64> {
        let statm = std::fs::read_to_string(format!("/proc/{}/statm", self.child.id())).ok()?;
        let mut pages = statm.split_ascii_whitespace().skip(1).map_while(|number| number.parse::<u64>().ok());
        let (resident, shared) = (pages.next()?, pages.next()?);
        Some(resident.saturating_sub(shared) * rustix::param::page_size() as u64)
    }

    /// Ends the process and returns how it ended.
    pub(crate) fn end(mut self) -> Option<ExitStatus> {
        // A process that has just closed its socket says how it ended.
        for _ in 0..20 {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            std::thread::sleep(std::time::Duration::from_micros(250));
        }
        None
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
        if self.is_alive() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

impl std::fmt::Debug for Workers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workers").field("settings", &self.settings).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worker_is_reused_by_the_same_owner_only() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        let settings = WorkerSettings {
            name: "none",
            is_confined: false,
            memory_bytes: 0,
            preview_bytes: 0,
            max_calls_per_program: 0,
            max_idle: 2,
            most: 2,
        };
        let workers = Workers::new(settings, runtime.handle().clone()).unwrap();
        // The processes only live; they run no programs.
        let living = || {
            let (ours, _) = StdStream::pair().unwrap();
            ours.set_nonblocking(true).unwrap();
            let _runtime = runtime.enter();
            workers.count.fetch_add(1, Ordering::Relaxed);
            let child = Command::new("sleep").arg("60").spawn().unwrap();
            Worker { child, count: Arc::clone(&workers.count), socket: UnixStream::from_std(ours).unwrap() }
        };
        let (one, two) = (Arc::from("one"), Arc::from("two"));
        let (worker_of_one, worker_of_two) = (living(), living());
        let of_one = worker_of_one.child.id();
        workers.give_back(&one, worker_of_one);
        workers.give_back(&two, worker_of_two);
        let worker = workers.take("one").unwrap();
        assert_eq!(worker.child.id(), of_one);
        workers.give_back(&one, worker);
        // The worker of `two` has been idle for longest, and ends before a third one starts.
        let third = workers.take("three").unwrap();
        assert_eq!(workers.count.load(Ordering::Relaxed), 2);
        drop(third);
        let mut worker = workers.take("one").unwrap();
        assert_eq!(worker.child.id(), of_one);
        // A worker that ended while it was idle is not used.
        worker.child.kill().unwrap();
        worker.child.wait().unwrap();
        workers.give_back(&one, worker);
        assert_ne!(workers.take("one").unwrap().child.id(), of_one);
    }
}
