//! Starts workers, and keeps idle ones.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ptc_log::Level;
use tokio::net::UnixStream;
use tokio::runtime::Handle;

use crate::confinement;
use crate::idle::IdleWorkers;
use crate::message::{self, Settings, ToWorker};
use crate::process::Worker;
use crate::process_thread::ProcessThread;
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
    idle: Arc<IdleWorkers>,
    thread: ProcessThread,
    /// Number of processes that were not reaped. Those that were killed hold their memory until then.
    count: Arc<AtomicUsize>,
}

/// Why a server has no workers.
#[derive(Debug)]
pub enum Error {
    /// The kernel cannot confine them.
    Confinement(confinement::Error),
    /// The thread that starts them cannot be started.
    Thread(io::Error),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Confinement(why) => why.fmt(f),
            Error::Thread(why) => write!(f, "the thread that starts processes cannot be started: {why}"),
        }
    }
}

impl std::error::Error for Error {}

impl Workers {
    /// Creates an empty pool. Workers are connected to the runtime of `handle`.
    ///
    /// # Errors
    ///
    /// Returns what the kernel lacks to confine workers, or an error if there is no thread to start them.
    pub fn new(settings: WorkerSettings, handle: Handle) -> Result<Arc<Workers>, Error> {
        if settings.is_confined {
            confinement::check().map_err(Error::Confinement)?;
        }
        let idle = Arc::<IdleWorkers>::default();
        let count = Arc::<AtomicUsize>::default();
        let thread = ProcessThread::start(Arc::downgrade(&idle), Arc::clone(&count)).map_err(Error::Thread)?;
        Ok(Arc::new(Workers { settings, handle, idle, thread, count }))
    }

    /// Starts idle workers on another thread, so that the first calls need not wait for theirs.
    pub fn warm_up(self: &Arc<Self>, count: usize) {
        let this = Arc::clone(self);
        let start = move || {
            for _ in 0..count.min(this.settings.max_idle) {
                match this.start() {
                    Ok(worker) => this.idle.add_fresh(worker),
                    Err(why) => return ptc_log::line(Level::Error, "no worker process", &[("reason", &why.to_string())]),
                }
            }
        };
        // Without a thread they are started by the first calls.
        let _ = std::thread::Builder::new().name("warm-up".into()).spawn(start);
    }

    /// Returns a worker for a program of this owner.
    pub(crate) fn take(&self, owner: &str) -> io::Result<Worker> {
        if let Some(worker) = self.idle.take(owner) {
            return Ok(worker);
        }
        if self.count.load(Ordering::Relaxed) >= self.settings.most {
            drop(self.idle.take_oldest());
        }
        self.start()
    }

    /// Keeps a worker for later programs of the same owner. The worker that has been idle for longest ends if there are too many.
    pub(crate) fn give_back(&self, owner: &Arc<str>, worker: Worker) {
        self.idle.add(owner, worker, self.settings.max_idle, &self.thread);
    }

    fn start(&self) -> io::Result<Worker> {
        let (ours, theirs) = StdStream::pair()?;
        let WorkerSettings { is_confined, memory_bytes, preview_bytes, max_calls_per_program, .. } = self.settings;
        let settings = Settings { server: std::process::id(), is_confined, memory_bytes, preview_bytes, max_calls_per_program };
        // The socket keeps it until the process reads.
        io::Write::write_all(&mut &ours, &message::encode(&ToWorker::Settings(settings))?)?;
        let mut command = Command::new("/proc/self/exe");
        command
            .args([ARGUMENT, self.settings.name])
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        self.spawn(command, ours)
    }

    /// Starts a process that has the other end of a socket.
    fn spawn(&self, command: Command, socket: StdStream) -> io::Result<Worker> {
        socket.set_nonblocking(true)?;
        let socket = {
            let _runtime = self.handle.enter();
            UnixStream::from_std(socket)?
        };
        let process = self.thread.spawn(command)?;
        Ok(Worker::new(process, socket, self.thread.clone()))
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

    fn pool(runtime: &tokio::runtime::Runtime) -> Arc<Workers> {
        let settings = WorkerSettings {
            name: "none",
            is_confined: false,
            memory_bytes: 0,
            preview_bytes: 0,
            max_calls_per_program: 0,
            max_idle: 2,
            most: 2,
        };
        Workers::new(settings, runtime.handle().clone()).unwrap()
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap()
    }

    /// Starts a process that runs no programs, with the other end of its socket.
    fn running(workers: &Workers, script: &str) -> (Worker, StdStream) {
        let (ours, theirs) = StdStream::pair().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        (workers.spawn(command, ours).unwrap(), theirs)
    }

    const IDLE: &str = "exec sleep 60";

    /// Returns the state of a process, which `man 5 proc` describes. `None` if it was reaped.
    fn state(process: u32) -> Option<String> {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        stat.rsplit(") ").next().and_then(|rest| rest.split(' ').next()).map(str::to_owned)
    }

    fn wait_until(what: &str, is_so: impl Fn() -> bool) {
        let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while !is_so() {
            assert!(std::time::Instant::now() < until, "{what}");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    #[test]
    fn worker_is_reused_by_the_same_owner_only() {
        let runtime = runtime();
        let workers = pool(&runtime);
        let (one, two) = (Arc::from("one"), Arc::from("two"));
        let ((worker_of_one, _one), (worker_of_two, _two)) = (running(&workers, IDLE), running(&workers, IDLE));
        let of_one = worker_of_one.id();
        workers.give_back(&one, worker_of_one);
        workers.give_back(&two, worker_of_two);
        let worker = workers.take("one").unwrap();
        assert_eq!(worker.id(), of_one);
        workers.give_back(&one, worker);
        // The worker of `two` has been idle for longest, and ends before a third one starts.
        let third = workers.take("three").unwrap();
        wait_until("the killed worker is reaped", || workers.count.load(Ordering::Relaxed) == 2);
        drop(third);
        let worker = workers.take("one").unwrap();
        assert_eq!(worker.id(), of_one);
        // A worker that ended while it was idle is not used.
        let process = rustix::process::Pid::from_raw(of_one.cast_signed()).unwrap();
        rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
        wait_until("it ends", || state(of_one).is_none_or(|state| state == "Z"));
        workers.give_back(&one, worker);
        assert_ne!(workers.take("one").unwrap().id(), of_one);
    }

    #[test]
    fn idle_worker_that_computes_is_killed() {
        let runtime = runtime();
        let workers = pool(&runtime);
        let owner = Arc::from("one");
        let (worker, _socket) = running(&workers, "while :; do :; done");
        let id = worker.id();
        workers.give_back(&owner, worker);
        wait_until("it is killed and reaped", || state(id).is_none() && workers.count.load(Ordering::Relaxed) == 0);
    }

    #[test]
    fn worker_that_grew_or_sent_something_while_idle_is_not_used_again() {
        let runtime = runtime();
        let workers = pool(&runtime);
        let owner = Arc::from("one");
        let grows = "sleep 0.05; x=$(head -c 4000000 /dev/zero | tr '\\0' x); exec 3>&-; sleep 60";
        let (worker, _socket) = running(&workers, grows);
        let id = worker.id();
        workers.give_back(&owner, worker);
        wait_until("it grows, and is killed", || state(id).is_none());
        let (worker, mut socket) = running(&workers, IDLE);
        let id = worker.id();
        workers.give_back(&owner, worker);
        io::Write::write_all(&mut socket, b"x").unwrap();
        assert_ne!(workers.take("one").unwrap().id(), id);
        wait_until("it is killed", || state(id).is_none());
    }

    #[test]
    fn end_of_a_killed_worker_is_awaited_by_the_thread_for_processes() {
        let runtime = runtime();
        let workers = pool(&runtime);
        let (worker, _socket) = running(&workers, IDLE);
        let id = worker.id();
        let (unblock, until) = std::sync::mpsc::channel();
        workers.thread.block(until);
        drop(worker);
        wait_until("it is killed", || state(id).is_none_or(|state| state == "Z"));
        assert_eq!(state(id).as_deref(), Some("Z"), "the thread that dropped it has not waited for it");
        assert_eq!(workers.count.load(Ordering::Relaxed), 1, "it counts until it is reaped");
        drop(unblock);
        wait_until("it is reaped", || state(id).is_none() && workers.count.load(Ordering::Relaxed) == 0);
    }
}
