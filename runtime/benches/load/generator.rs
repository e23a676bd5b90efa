//! The generator sends streams of requests over kept connections. It runs on one thread, with a task for each connection and each
//! stream, but none for a request.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime};
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;
use tokio::task::{JoinSet, spawn_local};

use crate::connection::Connection;
use crate::mcp::{Outcome, Request, next_number};
use crate::record::{Class, Record};

/// Maximum number of open connections, below what servers accept from one address. Further requests wait here, and their latency
/// includes that wait.
pub(crate) const MAX_CONNECTIONS: usize = 4000;
/// Delay before a refused program is sent again, if the refusal names no delay.
const REFUSED_PAUSE: Duration = Duration::from_millis(100);
/// Delay before a program is sent again after its connection failed.
const FAILED_PAUSE: Duration = Duration::from_millis(100);
/// Time limit for the last answers after the last request was sent.
const DRAIN: Duration = Duration::from_mins(1);

/// Requests that are measured together. They are sent in rotation.
pub(crate) struct Stream {
    pub(crate) name: String,
    pub(crate) requests: Vec<Request>,
    pub(crate) plan: Plan,
}

/// When the requests of a stream are sent.
#[derive(Clone, Copy)]
pub(crate) enum Plan {
    /// At a fixed rate, independent of answers.
    Rate { per_second: f64, lasts: Duration },
    /// All at once. With `again`, each program is sent again when it has ended, for this duration.
    AtOnce { programs: usize, again: Option<Duration> },
}

/// A request that is due.
#[derive(Clone, Copy)]
struct Job {
    stream: usize,
    planned: Instant,
}

struct Generator {
    address: SocketAddr,
    started: Instant,
    streams: Vec<RefCell<Requests>>,
    plans: Vec<Plan>,
    queue: RefCell<VecDeque<Job>>,
    /// Number of connections that wait for work.
    idle: Cell<usize>,
    open: Cell<usize>,
    /// Number of requests without an outcome and of unfinished plans.
    pending: Cell<usize>,
    /// Tasks of connections and plans, which are aborted at the end of a run.
    tasks: RefCell<JoinSet<()>>,
    work: Notify,
    done: Notify,
}

/// The requests of a stream, the index of the next one, and the outcomes.
struct Requests {
    all: Vec<Request>,
    next: usize,
    record: Record,
}

/// Runs all streams to their end and returns a record for each. `warm` connections are opened in advance.
pub(crate) async fn run(address: SocketAddr, warm: usize, streams: Vec<Stream>) -> Vec<Record> {
    let mut connections = Vec::new();
    for _ in 0..warm.min(MAX_CONNECTIONS) {
        // An unreachable server makes the requests fail, not the generator.
        connections.extend(Connection::open(address).await.ok());
    }
    let plans: Vec<Plan> = streams.iter().map(|stream| stream.plan).collect();
    let requests = |stream: Stream| RefCell::new(Requests { all: stream.requests, next: 0, record: Record::new(stream.name) });
    let generator = Rc::new(Generator {
        address,
        started: Instant::now(),
        streams: streams.into_iter().map(requests).collect(),
        plans: plans.clone(),
        queue: RefCell::default(),
        idle: Cell::new(0),
        open: Cell::new(connections.len()),
        pending: Cell::new(plans.len()),
        tasks: RefCell::default(),
        work: Notify::new(),
        done: Notify::new(),
    });
    for connection in connections {
        generator.spawn(Rc::clone(&generator).serve(Some(connection)));
    }
    let mut longest = Duration::ZERO;
    for (stream, plan) in plans.into_iter().enumerate() {
        longest = longest.max(match plan {
            Plan::Rate { lasts, .. } => lasts,
            Plan::AtOnce { again, .. } => again.unwrap_or_default(),
        });
        generator.spawn(Rc::clone(&generator).follow(stream, plan));
    }
    let _ = tokio::time::timeout(longest + DRAIN, generator.done.notified()).await;
    let mut tasks = generator.tasks.take();
    tasks.shutdown().await;
    let waited = generator.started.elapsed();
    let take = |requests: &RefCell<Requests>| {
        let mut record = std::mem::replace(&mut requests.borrow_mut().record, Record::new(String::new()));
        record.close(waited);
        record
    };
    generator.streams.iter().map(take).collect()
}

impl Generator {
    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.tasks.borrow_mut().spawn_local(task);
    }

    async fn follow(self: Rc<Self>, stream: usize, plan: Plan) {
        match plan {
            Plan::AtOnce { programs, .. } => (0..programs).for_each(|_| self.submit(stream, self.started)),
            Plan::Rate { per_second, lasts } => {
                let timer = Timer::new();
                let interval = Duration::from_secs_f64(1.0 / per_second);
                let count = (lasts.as_secs_f64() * per_second).round() as u32;
                for arrival in 0..count {
                    let planned = self.started + interval * arrival;
                    timer.wait_until(planned).await;
                    self.submit(stream, planned);
                }
            }
        }
        self.settle();
    }

    /// Passes a request to an idle connection, to a new one, or to the first one that becomes idle.
    fn submit(self: &Rc<Self>, stream: usize, planned: Instant) {
        self.pending.set(self.pending.get() + 1);
        self.streams[stream].borrow_mut().record.sent += 1;
        self.queue.borrow_mut().push_back(Job { stream, planned });
        if self.idle.get() > 0 {
            self.idle.set(self.idle.get() - 1);
            self.work.notify_one();
        } else if self.open.get() < MAX_CONNECTIONS {
            self.open.set(self.open.get() + 1);
            self.spawn(Rc::clone(self).serve(None));
        }
    }

    /// Sends requests over one connection, and reconnects if it was lost.
    async fn serve(self: Rc<Self>, mut connection: Option<Connection>) {
        let mut request = Vec::new();
        loop {
            let Some(job) = self.next_job() else {
                // No notification can be missed: the future registers itself before this task yields.
                self.idle.set(self.idle.get() + 1);
                self.work.notified().await;
                continue;
            };
            let number = next_number();
            let at = self.take_request(job.stream, number, &mut request);
            if let Err(error) = self.exchange(&mut connection, job, at, number, &request).await {
                connection = None;
                let failed = Outcome { class: Class::Failed, reason: &error.to_string(), retry_after_ms: None };
                self.finish(job, &failed);
            }
        }
    }

    fn next_job(&self) -> Option<Job> {
        self.queue.borrow_mut().pop_front()
    }

    /// Copies the next request of a stream into `bytes` and returns its index.
    fn take_request(&self, stream: usize, number: u32, bytes: &mut Vec<u8>) -> usize {
        let mut requests = self.streams[stream].borrow_mut();
        let at = requests.next;
        requests.next = (at + 1) % requests.all.len();
        bytes.clear();
        bytes.extend_from_slice(requests.all[at].bytes(number));
        at
    }

    async fn exchange(
        self: &Rc<Self>,
        connection: &mut Option<Connection>,
        job: Job,
        at: usize,
        number: u32,
        request: &[u8],
    ) -> std::io::Result<()> {
        let usable = match connection {
            Some(open) => open.is_usable()?,
            None => false,
        };
        if !usable {
            *connection = Some(Connection::open(self.address).await?);
        }
        let Some(open) = connection else { return Ok(()) };
        let reply = open.exchange(request).await?;
        let requests = self.streams[job.stream].borrow();
        let outcome = requests.all[at].classify(number, reply.status, reply.body);
        drop(requests);
        self.finish(job, &outcome);
        Ok(())
    }

    /// Records an outcome, and sends the program again if its plan requires that.
    fn finish(self: &Rc<Self>, job: Job, outcome: &Outcome<'_>) {
        let latency = job.planned.elapsed();
        self.streams[job.stream].borrow_mut().record.note(outcome.class, outcome.reason, latency);
        if let Plan::AtOnce { again: Some(lasts), .. } = self.plans[job.stream] {
            let pause = match outcome.class {
                Class::Refused => outcome.retry_after_ms.map_or(REFUSED_PAUSE, Duration::from_millis),
                Class::Failed => FAILED_PAUSE,
                Class::Answered | Class::Ended => Duration::ZERO,
            };
            let again = Instant::now() + pause;
            if again < self.started + lasts {
                self.submit_later(job.stream, again, pause);
            }
        }
        self.settle();
    }

    fn submit_later(self: &Rc<Self>, stream: usize, again: Instant, pause: Duration) {
        if pause.is_zero() {
            return self.submit(stream, again);
        }
        self.pending.set(self.pending.get() + 1);
        let generator = Rc::clone(self);
        drop(spawn_local(async move {
            tokio::time::sleep(pause).await;
            generator.submit(stream, again);
            generator.settle();
        }));
    }

    /// Decrements the number of pending requests and plans.
    fn settle(&self) {
        self.pending.set(self.pending.get() - 1);
        if self.pending.get() == 0 {
            self.done.notify_one();
        }
    }
}

/// A timer with the kernel's precision. Tokio's timer has a resolution of a millisecond.
struct Timer(AsyncFd<OwnedFd>);

impl Timer {
    #[expect(deprecated, reason = "`register` is unsafe; a descriptor that the timer owns and never replaces is sound here")]
    fn new() -> Timer {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        Timer(AsyncFd::new(timerfd_create(TimerfdClockId::Monotonic, flags).unwrap()).unwrap())
    }

    async fn wait_until(&self, moment: Instant) {
        while let Some(left) = moment.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            let value = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
            let interval = Timespec { tv_sec: 0, tv_nsec: 0 };
            let time = Itimerspec { it_interval: interval, it_value: value };
            timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::empty(), &time).unwrap();
            let mut ready = self.0.readable().await.unwrap();
            let _ = rustix::io::read(self.0.get_ref(), &mut [0; 8]);
            ready.clear_ready();
        }
    }
}
