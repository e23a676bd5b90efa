//! The numbers of the scheduler, and where each comes from.

use std::fmt;

use super::container;

/// Branches of all programs that run beside the branch that started them.
const BRANCHES: usize = 4_096;

/// Threads for each processor. A program stays on its thread, and two that compute are rarely on the same one of so many.
const THREADS_PER_PROCESSOR: usize = 16;

/// Threads that are left for everything else where the number of threads is limited.
const OTHER_THREADS: usize = 32;

/// What a scheduler allows.
#[derive(Debug, Clone)]
pub struct ScheduleLimits {
    /// Programs that compute at a time.
    pub processors: Limit<usize>,
    /// Programs in flight.
    pub in_flight: Limit<usize>,
    /// Programs in flight of one protocol session; others of it wait.
    pub in_flight_per_session: Option<usize>,
    /// Calls that may wait for a place.
    pub queued: usize,
    /// Milliseconds that each may wait.
    pub queue_timeout_ms: Limit<u64>,
    /// Bytes of programs, sessions and requests.
    pub memory_budget_bytes: Limit<u64>,
    /// Branches of `pmap` and `pcalls` that run at a time, beyond one of each program.
    pub branches: Limit<usize>,
    /// Threads on which programs run. Each runs many.
    pub threads: Limit<usize>,
}

/// A limit in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit<T> {
    /// Its value.
    pub value: T,
    /// Where it comes from.
    pub source: Source,
}

/// Where a limit comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Nobody set it.
    Default,
    /// A flag or an environment variable, by its name; or the code of an embedding program.
    Set(String),
    /// The container, as the file of its cgroup says.
    Cgroup(&'static str),
    /// What the machine has.
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
    /// A limit that nobody set.
    pub fn default_of(value: T) -> Self {
        Limit { value, source: Source::Default }
    }
}

impl ScheduleLimits {
    /// The limits in force: name, value and where it comes from.
    pub fn in_force(&self) -> [(&'static str, u64, String); 7] {
        fn row<T: TryInto<u64> + Copy>(name: &'static str, limit: &Limit<T>) -> (&'static str, u64, String) {
            (name, limit.value.try_into().unwrap_or(u64::MAX), limit.source.to_string())
        }
        [
            row("processors", &self.processors),
            row("in_flight", &self.in_flight),
            row("queued", &Limit::default_of(self.queued)),
            row("queue_timeout_ms", &self.queue_timeout_ms),
            row("memory_budget_bytes", &self.memory_budget_bytes),
            row("branches", &self.branches),
            row("threads", &self.threads),
        ]
    }

    /// What is allowed where nobody sets anything: 1,000 programs in flight, 1,024 queued for 2 s, as many that compute as there are
    /// processors, and half of the memory.
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
