//! The answers that clients have not read yet, by owner.
//!
//! An answer counts in the memory budget until it is written. Owners whose clients do not read get no further answers once the
//! waiting ones exceed the owner's share, so that they cannot use up the budget.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Scheduler;
use super::budget::Claim;

/// Answers that wait for their clients may use this fraction (1/N) of the memory budget. Their owners share it equally.
const ANSWER_BUDGET_DIVISOR: u64 = 4;

/// Time after which an answer waits for its client. A client that reads takes its answer earlier, even if many are sent at once.
const UNREAD_AFTER: Duration = Duration::from_secs(1);

/// All answers that are not written.
#[derive(Debug, Default)]
pub(super) struct UnreadAnswers {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    by_owner: HashMap<Arc<str>, Owned>,
    next: u64,
}

/// The answers of an owner.
#[derive(Debug, Default)]
struct Owned {
    bytes: u64,
    /// When an answer was ready, and its bytes, by number, oldest first.
    answers: BTreeMap<u64, (Instant, u64)>,
}

/// The memory of an answer, which counts until this is dropped.
pub struct AnswerReservation {
    scheduler: Arc<Scheduler>,
    owner: Arc<str>,
    number: u64,
    _claim: Claim,
}

/// The error of an owner whose clients do not read their answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswersUnread {
    /// Bytes of the answers that wait.
    pub waiting: u64,
    /// Bytes that may wait.
    pub limit: u64,
}

impl std::fmt::Display for AnswersUnread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let AnswersUnread { waiting, limit } = self;
        write!(
            f,
            "the answer was discarded: earlier answers to this owner that are not read take {waiting} bytes, they may take {limit} \
             (a quarter of --memory-budget-bytes, which all owners with unread answers share)"
        )
    }
}

impl Scheduler {
    /// Counts an answer of `bytes` to a client of `owner` until it is written.
    pub fn hold_answer(self: &Arc<Self>, owner: &Arc<str>, bytes: usize) -> Result<AnswerReservation, AnswersUnread> {
        let limit = self.budget.limit() / ANSWER_BUDGET_DIVISOR;
        let number = self.budget.answers().add(owner, bytes as u64, limit, Instant::now())?;
        let (scheduler, owner) = (Arc::clone(self), Arc::clone(owner));
        Ok(AnswerReservation { scheduler, owner, number, _claim: self.budget.claim(bytes) })
    }
}

impl UnreadAnswers {
    /// Adds an answer and returns its number, unless answers to its owner wait that exceed the owner's part of `limit`.
    fn add(&self, owner: &Arc<str>, bytes: u64, limit: u64, now: Instant) -> Result<u64, AnswersUnread> {
        let mut state = self.lock();
        let State { by_owner, next } = &mut *state;
        let limit = limit / by_owner.len().max(1) as u64;
        let owned = by_owner.entry(Arc::clone(owner)).or_default();
        if owned.bytes > limit {
            let waits = |(since, _): &&(Instant, u64)| now.duration_since(*since) >= UNREAD_AFTER;
            let waiting = owned.answers.values().take_while(waits).map(|(_, bytes)| bytes).sum();
            if waiting > limit {
                return Err(AnswersUnread { waiting, limit });
            }
        }
        owned.bytes += bytes;
        owned.answers.insert(*next, (now, bytes));
        *next += 1;
        Ok(*next - 1)
    }

    fn remove(&self, owner: &Arc<str>, number: u64) {
        let mut state = self.lock();
        let Some(owned) = state.by_owner.get_mut(owner) else { return };
        if let Some((_, bytes)) = owned.answers.remove(&number) {
            owned.bytes -= bytes;
        }
        if owned.answers.is_empty() {
            state.by_owner.remove(owner);
        }
    }

    /// Returns the bytes of the answers to an owner.
    pub(super) fn bytes(&self, owner: &str) -> i64 {
        self.lock().by_owner.get(owner).map_or(0, |owned| i64::try_from(owned.bytes).unwrap_or(i64::MAX))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AnswerReservation {
    fn drop(&mut self) {
        self.scheduler.budget.answers().remove(&self.owner, self.number);
    }
}

impl std::fmt::Debug for AnswerReservation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AnswerReservation").field("owner", &self.owner).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owner_whose_unread_answers_exceed_its_share_gets_no_more() {
        let answers = UnreadAnswers::default();
        let (one, other): (Arc<str>, Arc<str>) = ("one".into(), "other".into());
        let start = Instant::now();
        let later = start + UNREAD_AFTER;
        // Answers that are written soon are not limited.
        let numbers: Vec<u64> = (0..3).map(|_| answers.add(&one, 50, 100, start).expect("it fits")).collect();
        assert_eq!(answers.add(&one, 1, 100, later), Err(AnswersUnread { waiting: 150, limit: 100 }));
        let number = answers.add(&other, 40, 100, later).expect("another owner is not affected");
        // Two owners have half of it each.
        answers.remove(&one, numbers[0]);
        answers.remove(&one, numbers[1]);
        let added = answers.add(&one, 10, 100, later).expect("it fits");
        assert_eq!(answers.add(&one, 1, 100, later + UNREAD_AFTER), Err(AnswersUnread { waiting: 60, limit: 50 }));
        assert_eq!((answers.bytes("one"), answers.bytes("other"), answers.bytes("none")), (60, 40, 0));
        for (owner, number) in [(&one, numbers[2]), (&one, added), (&other, number)] {
            answers.remove(owner, number);
        }
        assert!(answers.lock().by_owner.is_empty());
    }
}
