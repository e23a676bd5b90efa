//! The limits of the scheduler with their sources.

use std::{fmt, io};

use tokio::runtime::{Builder, Runtime};

use super::container;

/// Maximum number of parallel branches of all programs, in addition to the branch that started them.
const BRANCHES: usize = 4_096;

/// Threads per processor. A program stays on its thread, and with this number two computing programs are rarely on the same
/// thread.
const THREADS_PER_PROCESSOR: usize = 16;

/// Threads that wait for files, for the resolver of host names, or for code that blocks. Tokio has the same default.
const BLOCKING_THREADS: usize = 512;

/// Threads that wait for a remote session store. Evaluations wait for theirs as fibers.
const STORE_THREADS: usize = 8;

/// Number of threads that are reserved for other purposes and for child processes if the number of threads is limited.
const OTHER_THREADS: usize = 32;

/// The limits of a scheduler.
#[derive(Debug, Clone)]
pub struct ScheduleLimits {
    /// Maximum number of programs that compute at the same time.
    pub processors: Limit<usize>,
    /// Maximum number of programs in flight.
    pub in_flight: Limit<usize>,
    /// Maximum number of programs in flight of one protocol session. Its further programs wait.
    pub in_flight_per_session: Option<Limit<usize>>,
    /// Maximum number of calls in the queue.
    pub queued: usize,
    /// Queue timeout in milliseconds.
    pub queue_timeout_ms: Limit<u64>,
    /// Maximum bytes of programs, sessions and requests.
    pub memory_budget_bytes: Limit<u64>,
    /// Maximum number of branches of `pmap` and `pcalls` that run at the same time, in addition to one per program.
    pub branches: Limit<usize>,
    /// Number of threads on which programs run. Each runs many programs.
    pub threads: Limit<usize>,
    /// Maximum number of threads that wait for files, for the resolver of host names, or for code that blocks.
    pub blocking_threads: Limit<usize>,
    /// Maximum number of threads that wait for a remote session store.
    pub store_threads: Limit<usize>,
}

/// A limit in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit<T> {
    /// The value.
    pub value: T,
    /// The source of the value.
    pub source: Source,
}

/// The source of a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The default.
    Default,
    /// A flag or an environment variable, by its name, or the code of an embedding program.
    Set(String),
    /// The container, with the file of its cgroup.
    Cgroup(&'static str),
    /// The processors on which the process may run, as set by `taskset` or a service manager.
    Affinity,
    /// The machine.
    Machine,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Default => f.write_str("default"),
            Source::Set(name) => f.write_str(name),
            Source::Cgroup(file) => write!(f, "cgroup {file}"),
            Source::Affinity => f.write_str("processor affinity"),
            Source::Machine => f.write_str("machine"),
        }
    }
}

/// Bytes of the memory budget for each process of a program that runs in one.
const PROCESS_BYTES: u64 = 8 * 1024 * 1024;

impl<T> Limit<T> {
    /// Creates a limit with its default value.
    pub fn default_of(value: T) -> Self {
        Limit { value, source: Source::Default }
    }
}

impl ScheduleLimits {
    /// Returns the limits in force: name, value and source.
    pub fn in_force(&self) -> Vec<(&'static str, u64, String)> {
        fn row<T: TryInto<u64> + Copy>(name: &'static str, limit: &Limit<T>) -> (&'static str, u64, String) {
            (name, limit.value.try_into().unwrap_or(u64::MAX), limit.source.to_string())
        }
        let mut rows = vec![
            row("processors", &self.processors),
            row("in_flight", &self.in_flight),
            row("queued", &Limit::default_of(self.queued)),
            row("queue_timeout_ms", &self.queue_timeout_ms),
            row("memory_budget_bytes", &self.memory_budget_bytes),
            row("branches", &self.branches),
            row("threads", &self.threads),
            row("blocking_threads", &self.blocking_threads),
            row("store_threads", &self.store_threads),
        ];
        rows.extend(self.in_flight_per_session.as_ref().map(|limit| row("in_flight_per_session", limit)));
        rows
    }

    /// Returns the name of a limit that is zero, with which no program could run.
    pub fn zero(&self) -> Option<&'static str> {
        let limits = self.in_force();
        limits.into_iter().find(|(name, value, _)| *value == 0 && *name != "branches").map(|(name, ..)| name)
    }

    /// Lowers the default number of programs in flight to the number of processes that memory and container allow, with
    /// 8 MiB and two threads each. A number that was set stays.
    pub fn limit_processes(&mut self) {
        if self.in_flight.source != Source::Default {
            return;
        }
        let by_memory = usize::try_from(self.memory_budget_bytes.value / PROCESS_BYTES).unwrap_or(usize::MAX).max(2);
        if by_memory < self.in_flight.value {
            self.in_flight = Limit { value: by_memory, source: self.memory_budget_bytes.source.clone() };
        }
        if let Some((allowed, file)) = container::max_threads() {
            let by_threads = (allowed.saturating_sub(OTHER_THREADS) / 4).max(2);
            if by_threads < self.in_flight.value {
                self.in_flight = Limit { value: by_threads, source: Source::Cgroup(file) };
            }
        }
    }

    /// Creates a Tokio runtime that the calling thread drives, with the limit on blocking threads.
    ///
    /// # Errors
    ///
    /// Returns the error of the operating system if it does not provide the descriptors for the runtime's events.
    pub fn tokio_runtime(&self) -> io::Result<Runtime> {
        Builder::new_current_thread().max_blocking_threads(self.blocking_threads.value.max(1)).enable_all().build()
    }

    /// Returns the default limits: 1,000 programs in flight, 1,024 queued for 2 s, one computing program per processor, and half
    /// of the memory.
    pub fn detect() -> ScheduleLimits {
        let (processors, processors_source) = container::processors();
        let (memory, source) = container::memory_bytes();
        let [threads, blocking_threads, store_threads] = thread_limits(processors, container::max_threads());
        ScheduleLimits {
            processors: Limit { value: processors, source: processors_source },
            in_flight: Limit::default_of(1_000),
            in_flight_per_session: None,
            queued: 1_024,
            queue_timeout_ms: Limit::default_of(2_000),
            memory_budget_bytes: Limit { value: memory / 2, source },
            branches: Limit::default_of(BRANCHES),
            threads,
            blocking_threads,
            store_threads,
        }
    }
}

/// Divides the threads that the container allows: programs have half of those that are not reserved, blocking code a quarter, and
/// a session store an eighth. Each has at least two, and no more than it has without a container.
fn thread_limits(processors: usize, allowed: Option<(usize, &'static str)>) -> [Limit<usize>; 3] {
    let defaults = [(processors * THREADS_PER_PROCESSOR, 2), (BLOCKING_THREADS, 4), (STORE_THREADS, 8)];
    defaults.map(|(default, divisor)| match allowed {
        Some((allowed, file)) if allowed.saturating_sub(OTHER_THREADS) / divisor < default => {
            Limit { value: (allowed.saturating_sub(OTHER_THREADS) / divisor).max(2), source: Source::Cgroup(file) }
        }
        _ => Limit::default_of(default),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detected_limits_are_usable() {
        let limits = ScheduleLimits::detect();
        assert!(limits.processors.value > 0 && limits.in_flight.value > 0);
        assert!(limits.memory_budget_bytes.value > 16 * 1024 * 1024);
        assert!(
            ["machine", "cgroup memory.max", "cgroup memory.limit_in_bytes"]
                .contains(&limits.memory_budget_bytes.source.to_string().as_str())
        );
    }

    #[test]
    fn all_threads_fit_into_the_limit_of_the_container() {
        let values = |allowed| thread_limits(4, Some((allowed, "pids.max"))).map(|limit| limit.value);
        assert_eq!(thread_limits(4, None), [64, 512, 8].map(Limit::default_of));
        assert_eq!(thread_limits(4, Some((100_000, "pids.max"))), [64, 512, 8].map(Limit::default_of));
        assert_eq!(values(100), [34, 17, 8]);
        assert_eq!(thread_limits(4, Some((100, "pids.max")))[1].source, Source::Cgroup("pids.max"));
        for allowed in OTHER_THREADS..5_000 {
            assert!(values(allowed).iter().sum::<usize>() <= (allowed - OTHER_THREADS).max(8), "{allowed}");
        }
        assert_eq!(values(10), [2, 2, 2]);
    }
}
