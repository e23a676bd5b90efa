//! The part of the memory budget that the states of sessions and tasks may use together.

use std::sync::Arc;

use super::Scheduler;
use super::budget::{Budget, Claim};

/// States may use this fraction (1/N) of the memory budget.
const STATE_BUDGET_DIVISOR: u64 = 2;

/// The memory of the state that a session or a task keeps between its programs. It counts until this is dropped.
pub struct StateReservation {
    /// The part of the budget for states.
    part: Claim,
    whole: Claim,
}

/// The error of a state that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateMemoryFull {
    /// Bytes of all states with this one.
    pub needed: u64,
    /// Bytes that they may use.
    pub limit: u64,
}

impl std::fmt::Display for StateMemoryFull {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let StateMemoryFull { needed, limit } = self;
        write!(
            f,
            "the sessions and tasks of this server would take {needed} bytes together, they may keep {limit} (half of \
             --memory-budget-bytes)"
        )
    }
}

/// Creates the part of a budget for states.
pub(super) fn part_of(budget: &Budget) -> Arc<Budget> {
    Budget::new(budget.limit() / STATE_BUDGET_DIVISOR)
}

impl Scheduler {
    /// Returns a reservation for the state of a session or a task, which is empty at first.
    pub fn state_memory(&self) -> StateReservation {
        StateReservation { part: self.state_budget.claim(0), whole: self.budget.claim(0) }
    }
}

impl StateReservation {
    /// Counts `bytes` instead of the previous number. A state that does not grow always fits. After an error the previous number
    /// counts.
    ///
    /// # Errors
    ///
    /// Returns [`StateMemoryFull`] if the state grows and all states together would exceed their part of the memory budget.
    pub fn resize(&mut self, bytes: usize) -> Result<(), StateMemoryFull> {
        self.part.try_resize(bytes).map_err(|(needed, limit)| StateMemoryFull { needed, limit })?;
        self.whole.resize(bytes);
        Ok(())
    }
}

impl std::fmt::Debug for StateReservation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StateReservation").field("bytes", &self.part.bytes()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::ScheduleLimits;
    use super::*;

    #[test]
    fn session_states_count_and_use_at_most_half_of_the_budget() {
        let mut limits = ScheduleLimits::detect();
        limits.memory_budget_bytes.value = 1_000;
        let scheduler = Scheduler::new(limits);
        let (mut one, mut other) = (scheduler.state_memory(), scheduler.state_memory());
        assert_eq!((one.resize(400), other.resize(100)), (Ok(()), Ok(())));
        let full = StateMemoryFull { needed: 501, limit: 500 };
        assert_eq!((other.resize(101), scheduler.load().used_bytes), (Err(full), 500));
        assert_eq!((one.resize(300), other.resize(200)), (Ok(()), Ok(())));
        drop(one);
        assert_eq!((other.resize(500), scheduler.load().used_bytes), (Ok(()), 500));
        drop(other);
        assert_eq!(scheduler.load().used_bytes, 0);
    }
}
