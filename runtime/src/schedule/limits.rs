//! The limits of the scheduler with their sources.

use std::fmt;

use super::container;

/// Maximum number of parallel branches of all programs, in addition to the branch that started them.
const BRANCHES: usize = 4_096;

/// Threads per processor. A program stays on its thread, and with this number two computing programs are rarely on the same
/// thread.
const THREADS_PER_PROCESSOR: usize = 16;

/// Number of threads that are reserved for other purposes if the number of threads is limited.
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
    /// The machine.
    Machine,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Default => f.write_str("default"),
            Source::Set(name) => f.write_str(name),
            Source::Cgroup(file) => write!(f, "cgroup {file}"),
            Source::Machine => f.write_str("machine"),
        }
    }
}

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
        ];
        rows.extend(self.in_flight_per_session.as_ref().map(|limit| row("in_flight_per_session", limit)));
        rows
    }

    /// Returns the default limits: 1,000 programs in flight, 1,024 queued for 2 s, one computing program per processor, and half
    /// of the memory.
    pub fn detect() -> ScheduleLimits {
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        let (memory, source) = container::memory_bytes();
        let mut limits = ScheduleLimits {
            processors: Limit { value: processors, source: Source::Machine },
            in_flight: Limit::default_of(1_000),
            in_flight_per_session: None,
            queued: 1_024,
            queue_timeout_ms: Limit::default_of(2_000),
            memory_budget_bytes: Limit { value: memory / 2, source },
            branches: Limit::default_of(BRANCHES),
            threads: Limit::default_of(processors * THREADS_PER_PROCESSOR),
        };
        if let Some((threads, file)) = container::max_threads() {
            let most = (threads.saturating_sub(OTHER_THREADS) / 2).max(2);
            if limits.threads.value > most {
                limits.threads = Limit { value: most, source: Source::Cgroup(file) };
            }
        }
        limits
    }
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
}
