//! The answers that clients have not read yet, by owner and session.
//!
//! An answer counts in the memory budget until it is written. Clients that do not read get no further answers once the waiting
//! ones exceed their share, so that they cannot use up the budget. Owners divide the memory equally. Inside an owner, a session
//! may take as much as the sessions of the owner leave free, so that one session that does not read leaves half of it to others,
//! and two leave a third (Choudhury and Hahne: Dynamic Queue Length Thresholds for Shared-Memory Packet Switches, 1998).

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::budget::Claim;
use super::fair::ClientKey;
use super::{Refusal, Scheduler};

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
    owners: HashMap<Arc<str>, OwnerAnswers>,
    next: u64,
}

/// The answers to an owner, and of these, the answers that wait.
#[derive(Debug, Default)]
struct OwnerAnswers {
    bytes: u64,
    waiting: u64,
    sessions: HashMap<u64, SessionAnswers>,
    /// The answers that do not wait yet, by number, oldest first.
    fresh: BTreeMap<u64, FreshAnswer>,
}

/// The answers to a session, and of these, the answers that wait.
#[derive(Debug, Default)]
struct SessionAnswers {
    bytes: u64,
    waiting: u64,
}

/// An answer that does not wait yet.
#[derive(Debug)]
struct FreshAnswer {
    since: Instant,
    session: u64,
    bytes: u64,
}

/// The memory of an answer, which counts until this is dropped.
pub struct AnswerReservation {
    scheduler: Arc<Scheduler>,
    client_key: ClientKey,
    number: u64,
    bytes: u64,
    _claim: Claim,
}

/// The error of a client whose answer does not fit, since it or other clients of its owner do not read theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnreadLimitExceeded {
    /// Bytes of the answers that wait for the session.
    pub session: u64,
    /// Bytes of the answers that wait for all sessions of the owner.
    pub owner: u64,
    /// Bytes that may wait for the owner.
    pub limit: u64,
}

impl std::fmt::Display for UnreadLimitExceeded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let UnreadLimitExceeded { session, owner, limit } = self;
        write!(
            f,
            "earlier answers that were not read take {session} bytes in this session and {owner} in all sessions of its owner, they \
             may take {limit} together (a quarter of --memory-budget-bytes, which all owners with unread answers share), and in one \
             session as much as the others leave"
        )
    }
}

impl Scheduler {
    /// Counts an answer of `bytes` to a client until it is written.
    ///
    /// # Errors
    ///
    /// Returns [`UnreadLimitExceeded`] if the answers that already wait for the session and for its owner exceed the owner's
    /// share of the limit.
    pub fn hold_answer(self: &Arc<Self>, client_key: &ClientKey, bytes: usize) -> Result<AnswerReservation, UnreadLimitExceeded> {
        let limit = self.budget.limit() / ANSWER_BUDGET_DIVISOR;
        let number = self.budget.answers().add(client_key, bytes as u64, limit, Instant::now());
        let number = number.inspect_err(|_| self.count(Refusal::AnswerDiscarded))?;
        let (scheduler, client_key) = (Arc::clone(self), client_key.clone());
        Ok(AnswerReservation { scheduler, client_key, number, bytes: bytes as u64, _claim: self.budget.claim(bytes) })
    }
}

impl OwnerAnswers {
    /// Counts the answers as waiting that are old enough at `now`. Each answer is counted once.
    fn age(&mut self, now: Instant) {
        while let Some(oldest) = self.fresh.first_entry()
            && now.duration_since(oldest.get().since) >= UNREAD_AFTER
        {
            let FreshAnswer { session, bytes, .. } = oldest.remove();
            self.waiting += bytes;
            self.sessions.entry(session).or_default().waiting += bytes;
        }
    }
}

impl UnreadAnswers {
    /// Adds an answer and returns its number, unless the waiting answers exceed the share of its client.
    fn add(&self, client_key: &ClientKey, bytes: u64, limit: u64, now: Instant) -> Result<u64, UnreadLimitExceeded> {
        let mut state = self.lock();
        let State { owners, next } = &mut *state;
        let limit = limit / owners.len().max(1) as u64;
        let of_owner = owners.entry(Arc::clone(&client_key.owner)).or_default();
        of_owner.age(now);
        let (session, owner) =
            (of_owner.sessions.get(&client_key.session).map_or(0, |session| session.waiting), of_owner.waiting);
        if owner + session > limit {
            return Err(UnreadLimitExceeded { session, owner, limit });
        }
        of_owner.bytes += bytes;
        of_owner.sessions.entry(client_key.session).or_default().bytes += bytes;
        of_owner.fresh.insert(*next, FreshAnswer { since: now, session: client_key.session, bytes });
        *next += 1;
        Ok(*next - 1)
    }

    fn remove(&self, client_key: &ClientKey, number: u64, bytes: u64) {
        let mut state = self.lock();
        let Some(of_owner) = state.owners.get_mut(&client_key.owner) else { return };
        let Some(of_session) = of_owner.sessions.get_mut(&client_key.session) else { return };
        of_session.bytes -= bytes;
        of_owner.bytes -= bytes;
        if of_owner.fresh.remove(&number).is_none() {
            of_session.waiting -= bytes;
            of_owner.waiting -= bytes;
        }
        if of_session.bytes == 0 {
            of_owner.sessions.remove(&client_key.session);
        }
        if of_owner.sessions.is_empty() {
            state.owners.remove(&client_key.owner);
        }
    }

    /// Returns the bytes of the answers to an owner.
    pub(super) fn bytes(&self, owner: &str) -> i64 {
        self.lock().owners.get(owner).map_or(0, |of_owner| i64::try_from(of_owner.bytes).unwrap_or(i64::MAX))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AnswerReservation {
    fn drop(&mut self) {
        self.scheduler.budget.answers().remove(&self.client_key, self.number, self.bytes);
    }
}

impl std::fmt::Debug for AnswerReservation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AnswerReservation").field("client_key", &self.client_key).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client_key(owner: &str, session: u64) -> ClientKey {
        ClientKey { owner: owner.into(), session }
    }

    #[test]
    fn owner_above_its_share_of_unread_responses_is_refused() {
        let answers = UnreadAnswers::default();
        let (one, fresh, other) = (client_key("one", 1), client_key("one", 2), client_key("other", 3));
        let start = Instant::now();
        let later = start + UNREAD_AFTER;
        // Answers that are written soon are not limited.
        let numbers: Vec<u64> = (0..3).map(|_| answers.add(&one, 50, 100, start).expect("it fits")).collect();
        let refused = |session| Err(UnreadLimitExceeded { session, owner: 150, limit: 100 });
        assert_eq!((answers.add(&one, 1, 100, later), answers.add(&fresh, 1, 100, later)), (refused(150), refused(0)));
        let number = answers.add(&other, 10, 100, later).expect("another owner is not affected");
        answers.remove(&one, numbers[0], 50);
        answers.remove(&one, numbers[1], 50);
        // Two owners have half of it each.
        let added = answers.add(&fresh, 10, 100, later).expect("it fits");
        let refused = UnreadLimitExceeded { session: 50, owner: 60, limit: 50 };
        assert_eq!(answers.add(&one, 1, 100, later + UNREAD_AFTER), Err(refused));
        assert_eq!((answers.bytes("one"), answers.bytes("other"), answers.bytes("none")), (60, 10, 0));
        for (client_key, number, bytes) in [(&one, numbers[2], 50), (&fresh, added, 10), (&other, number, 10)] {
            answers.remove(client_key, number, bytes);
        }
        assert!(answers.lock().owners.is_empty());
    }

    #[test]
    fn session_that_does_not_read_leaves_a_share_to_others_of_its_owner() {
        let answers = UnreadAnswers::default();
        let (silent, reading) = (client_key("one", 1), client_key("one", 2));
        let (start, later) = (Instant::now(), Instant::now() + UNREAD_AFTER * 2);
        for _ in 0..6 {
            answers.add(&silent, 10, 100, start).expect("nothing waits yet");
        }
        assert_eq!(answers.add(&silent, 1, 100, later), Err(UnreadLimitExceeded { session: 60, owner: 60, limit: 100 }));
        assert!(answers.add(&reading, 10, 100, later).is_ok());
        // Its own answers count twice for a session, so that two sessions that do not read leave a third.
        let full = UnreadLimitExceeded { session: 20, owner: 80, limit: 90 };
        answers.add(&reading, 10, 100, later).expect("it fits");
        assert_eq!(answers.add(&reading, 1, 90, later + UNREAD_AFTER), Err(full));
        assert!(answers.add(&client_key("one", 3), 1, 90, later + UNREAD_AFTER).is_ok());
    }
}
