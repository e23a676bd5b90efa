//! A fair queue with two levels: owners share by their use, and the sessions of an owner share its part in the same way.
//!
//! `tokio::sync::Semaphore` is first come, first served, so that one caller with many requests starves the others. Crates for
//! weighted fair queueing order packets by size, and support neither two levels nor entries that leave the queue. This
//! implementation uses the ordered set of the standard library. Consumed resources are shared by start-time fair queueing with
//! equal weights (Goyal, Vin and Cheng: Start-time Fair Queuing, SIGCOMM 1996), where the cost of an entry is known only
//! afterwards.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Identifies a client in the fair queue: shares are accounted by owner, and within an owner by session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClientKey {
    /// The owner's name, such as that of a token.
    pub owner: Arc<str>,
    /// A number for the protocol session, or for the connection if there are no sessions.
    pub session: u64,
}

/// The meaning of a key's use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accounting {
    /// Resources that are held and later released, such as slots.
    Occupancy,
    /// Resources that are consumed, such as processor time. The use of a key is its start tag. A key that did not wait for a
    /// while does not accumulate credit: its start tag becomes at least the virtual time.
    Service,
}

/// Keys with their use. The waiting keys are ordered by it.
#[derive(Debug)]
struct Level<K> {
    accounting: Accounting,
    keys: BTreeMap<K, Entry>,
    /// The waiting keys, ordered by use, then by the turn in which they began to wait.
    waiting: BTreeSet<(u64, u64, K)>,
    /// The start tag of the key that was served last, before it was served.
    virtual_time: u64,
    turn: u64,
    /// Number of keys at which idle ones are removed.
    tidy_at: usize,
}

#[derive(Debug, Default)]
struct Entry {
    used: u64,
    /// The turn in which the key began to wait.
    since: Option<u64>,
}

impl Default for ClientKey {
    /// Returns the key of a process with a single client.
    fn default() -> Self {
        ClientKey { owner: "".into(), session: 0 }
    }
}

impl<K: Clone + Ord> Level<K> {
    fn new(accounting: Accounting) -> Self {
        Level { accounting, keys: BTreeMap::new(), waiting: BTreeSet::new(), virtual_time: 0, turn: 0, tidy_at: MAX_IDLE }
    }

    fn used(&self, key: &K) -> u64 {
        self.keys.get(key).map_or(0, |entry| entry.used)
    }

    /// Marks `key` as waiting, if it is not waiting already.
    fn wait(&mut self, key: &K) {
        let entry = self.keys.entry(key.clone()).or_default();
        if entry.since.is_none() {
            self.turn += 1;
            entry.used = entry.used.max(self.virtual_time);
            entry.since = Some(self.turn);
            self.waiting.insert((entry.used, self.turn, key.clone()));
        }
    }

    /// Marks `key` as no longer waiting.
    fn leave(&mut self, key: &K) {
        if let Some(entry) = self.keys.get_mut(key)
            && let Some(since) = entry.since.take()
        {
            self.waiting.remove(&(entry.used, since, key.clone()));
        }
        self.tidy();
    }

    /// Records that `key` was served. If it still waits, it comes after waiting keys with equal use.
    fn served(&mut self, key: &K) {
        if self.accounting == Accounting::Service {
            self.virtual_time = self.virtual_time.max(self.used(key));
        }
        self.change(key, |used| used, true);
    }

    /// Changes the use of `key`.
    fn change(&mut self, key: &K, change: impl FnOnce(u64) -> u64, to_the_end: bool) {
        // An unknown key starts at the virtual time, which stays zero for resources that are held.
        let virtual_time = self.virtual_time;
        let entry = self.keys.entry(key.clone()).or_insert(Entry { used: virtual_time, since: None });
        let used = change(entry.used);
        if let Some(since) = entry.since {
            self.waiting.remove(&(entry.used, since, key.clone()));
            let since = if to_the_end { self.turn + 1 } else { since };
            self.turn = self.turn.max(since);
            entry.since = Some(since);
            self.waiting.insert((used, since, key.clone()));
        }
        entry.used = used;
        self.tidy();
    }

    /// Removes idle keys once there are many, so that recurring clients keep their entries. The next removal happens when there
    /// are twice as many.
    fn tidy(&mut self) {
        if self.keys.len() > self.tidy_at {
            let accounting = self.accounting;
            // Keys slightly above the virtual time belong to clients that came once, and are not worth the memory.
            self.keys.retain(|_, entry| entry.since.is_some() || accounting == Accounting::Occupancy && entry.used > 0);
            self.tidy_at = 2 * self.keys.len() + MAX_IDLE;
        }
    }
}

/// The sessions of an owner.
#[derive(Debug)]
struct Sessions<T> {
    level: Level<u64>,
    queues: BTreeMap<u64, VecDeque<T>>,
    len: usize,
}

/// The entries of a session that stay when others are displaced.
struct Remaining<const N: usize> {
    count: usize,
    /// The sums of their sizes.
    sizes: [usize; N],
}

/// Waiting items by owner and session.
#[derive(Debug)]
pub struct FairQueue<T> {
    accounting: Accounting,
    owners: Level<Arc<str>>,
    sessions: BTreeMap<Arc<str>, Sessions<T>>,
    len: usize,
    /// Number of owners at which idle ones are removed.
    tidy_at: usize,
}

/// Maximum number of idle keys that are kept.
const MAX_IDLE: usize = 1_000;

impl<T> FairQueue<T> {
    /// Creates an empty queue.
    pub fn new(accounting: Accounting) -> Self {
        FairQueue { accounting, owners: Level::new(accounting), sessions: BTreeMap::new(), len: 0, tidy_at: MAX_IDLE }
    }

    /// Whether no item waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of waiting items.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Appends an item to the queue of its client.
    pub fn push(&mut self, client_key: &ClientKey, item: T) {
        let sessions = self.sessions.entry(Arc::clone(&client_key.owner)).or_insert_with(|| Sessions::new(self.accounting));
        sessions.queues.entry(client_key.session).or_default().push_back(item);
        sessions.level.wait(&client_key.session);
        sessions.len += 1;
        self.owners.wait(&client_key.owner);
        self.len += 1;
    }

    /// Removes and returns the first item of the key with the least use.
    pub fn pop(&mut self) -> Option<T> {
        self.pop_where(|_| true).map(|(_, item)| item)
    }

    /// Like [`FairQueue::pop`], restricted to sessions whose use is accepted.
    pub fn pop_where(&mut self, accepts: impl Fn(u64) -> bool) -> Option<(ClientKey, T)> {
        let least = |owner: &Arc<str>| {
            let (used, _, session) = self.sessions.get(owner)?.level.waiting.first()?;
            accepts(*used).then(|| ClientKey { owner: Arc::clone(owner), session: *session })
        };
        let client_key = self.owners.waiting.iter().find_map(|(_, _, owner)| least(owner))?;
        let item = self.sessions.get_mut(&client_key.owner)?.queues.get_mut(&client_key.session)?.pop_front()?;
        self.owners.served(&client_key.owner);
        if let Some(sessions) = self.sessions.get_mut(&client_key.owner) {
            sessions.level.served(&client_key.session);
        }
        self.left(&client_key);
        Some((client_key, item))
    }

    /// Returns the first item of a client that satisfies `is_it`.
    pub fn find(&mut self, client_key: &ClientKey, is_it: impl Fn(&T) -> bool) -> Option<&mut T> {
        let queue = self.sessions.get_mut(&client_key.owner)?.queues.get_mut(&client_key.session)?;
        queue.iter_mut().find(|item| is_it(item))
    }

    /// Removes the first item of a client that satisfies `is_it`.
    pub fn remove(&mut self, client_key: &ClientKey, is_it: impl Fn(&T) -> bool) -> Option<T> {
        let queue = self.sessions.get_mut(&client_key.owner)?.queues.get_mut(&client_key.session)?;
        let item = queue.iter().position(is_it).and_then(|at| queue.remove(at))?;
        self.left(client_key);
        Some(item)
    }

    /// Returns the client of an entry that is the first of its session and satisfies `is_it`.
    pub fn find_first(&self, is_it: impl Fn(&T) -> bool) -> Option<ClientKey> {
        self.sessions.iter().find_map(|(owner, sessions)| {
            let is_it = |queue: &VecDeque<T>| queue.front().is_some_and(&is_it);
            let (session, _) = sessions.queues.iter().find(|(_, queue)| is_it(queue))?;
            Some(ClientKey { owner: Arc::clone(owner), session: *session })
        })
    }

    /// Removes entries from a full queue to make space for a newcomer of `client_key`. Each is the newest entry of the owner that
    /// has most, and among the sessions of that owner of the one that has most. Sizes, such as a number of entries and of bytes,
    /// are given by `size` for an entry, in `newcomer` for the newcomer, and in `excess` for what has to leave. Removes nothing
    /// and returns `None` if the newcomer would have most itself before there is enough space.
    pub fn displace<const N: usize>(
        &mut self,
        client_key: &ClientKey,
        newcomer: [usize; N],
        mut excess: [usize; N],
        size: impl Fn(&T) -> [usize; N],
    ) -> Option<Vec<T>> {
        let mut staying: BTreeMap<&Arc<str>, BTreeMap<u64, Remaining<N>>> = BTreeMap::new();
        for (owner, sessions) in &self.sessions {
            for (session, queue) in &sessions.queues {
                let sum = |sum: [usize; N], item: &T| zip_with(sum, size(item), usize::saturating_add);
                let sizes = queue.iter().fold([0; N], sum);
                staying.entry(owner).or_default().insert(*session, Remaining { count: queue.len(), sizes });
            }
        }
        // Sessions in the order in which their newest entries leave.
        let mut leaving: Vec<ClientKey> = Vec::new();
        while let Some(by) = excess.iter().position(|excess| *excess > 0) {
            let by = |sizes: &[usize; N]| sizes.get(by).copied().unwrap_or(0);
            let of_owner = |sessions: &BTreeMap<u64, Remaining<N>>| sessions.values().map(|session| by(&session.sizes)).sum();
            let own = staying.get(&client_key.owner);
            let own_size = own.map_or(0, of_owner) + by(&newcomer);
            let (most, owner) = staying.iter().map(|(owner, sessions)| (of_owner(sessions), Arc::clone(owner))).max()?;
            let (owner, least) = if most > own_size {
                (owner, 0)
            } else {
                let own = own.and_then(|sessions| sessions.get(&client_key.session));
                (Arc::clone(&client_key.owner), own.map_or(0, |session| by(&session.sizes)) + by(&newcomer))
            };
            let sessions = staying.get_mut(&owner)?;
            let (session, stays) = sessions.iter_mut().max_by_key(|(_, session)| by(&session.sizes))?;
            if by(&stays.sizes) <= least {
                return None;
            }
            stays.count -= 1;
            let newest = size(self.sessions.get(&owner)?.queues.get(session)?.get(stays.count)?);
            stays.sizes = zip_with(stays.sizes, newest, usize::saturating_sub);
            excess = zip_with(excess, newest, usize::saturating_sub);
            leaving.push(ClientKey { owner, session: *session });
        }
        Some(leaving.iter().filter_map(|client_key| self.pop_newest(client_key)).collect())
    }

    fn pop_newest(&mut self, client_key: &ClientKey) -> Option<T> {
        let newest = self.sessions.get_mut(&client_key.owner)?.queues.get_mut(&client_key.session)?.pop_back()?;
        self.left(client_key);
        Some(newest)
    }

    /// Returns the use of a client's session.
    pub fn used(&self, client_key: &ClientKey) -> u64 {
        self.sessions.get(&client_key.owner).map_or(0, |sessions| sessions.level.used(&client_key.session))
    }

    /// Adds to the use of a client.
    pub fn add(&mut self, client_key: &ClientKey, amount: u64) {
        self.owners.change(&client_key.owner, |used| used.saturating_add(amount), false);
        let sessions = self.sessions.entry(Arc::clone(&client_key.owner)).or_insert_with(|| Sessions::new(self.accounting));
        sessions.level.change(&client_key.session, |used| used.saturating_add(amount), false);
        self.tidy();
    }

    /// Subtracts from the use of a client.
    pub fn subtract(&mut self, client_key: &ClientKey, amount: u64) {
        self.owners.change(&client_key.owner, |used| used.saturating_sub(amount), false);
        if let Some(sessions) = self.sessions.get_mut(&client_key.owner) {
            sessions.level.change(&client_key.session, |used| used.saturating_sub(amount), false);
        }
        self.tidy();
    }

    /// Updates the keys after an item of a client was removed.
    fn left(&mut self, client_key: &ClientKey) {
        self.len -= 1;
        let Some(sessions) = self.sessions.get_mut(&client_key.owner) else { return };
        sessions.len -= 1;
        if sessions.queues.get(&client_key.session).is_some_and(VecDeque::is_empty) {
            sessions.queues.remove(&client_key.session);
            sessions.level.leave(&client_key.session);
        }
        if sessions.len == 0 {
            self.owners.leave(&client_key.owner);
        }
        self.tidy();
    }

    fn tidy(&mut self) {
        if self.sessions.len() > self.tidy_at {
            let is_idle = |sessions: &Sessions<T>| sessions.len == 0 && sessions.level.keys.values().all(|entry| entry.used == 0);
            let accounting = self.accounting;
            self.sessions.retain(|_, sessions| sessions.len > 0 || accounting == Accounting::Occupancy && !is_idle(sessions));
            self.tidy_at = 2 * self.sessions.len() + MAX_IDLE;
        }
    }
}

fn zip_with<const N: usize>(mut left: [usize; N], right: [usize; N], combine: impl Fn(usize, usize) -> usize) -> [usize; N] {
    for (left, right) in left.iter_mut().zip(right) {
        *left = combine(*left, right);
    }
    left
}

impl<T> Sessions<T> {
    fn new(accounting: Accounting) -> Self {
        Sessions { level: Level::new(accounting), queues: BTreeMap::new(), len: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client_key(owner: &str, session: u64) -> ClientKey {
        ClientKey { owner: owner.into(), session }
    }

    fn all(queue: &mut FairQueue<&'static str>) -> Vec<&'static str> {
        std::iter::from_fn(|| queue.pop()).collect()
    }

    #[test]
    fn queue_alternates_between_owners_and_between_their_sessions() {
        let mut queue = FairQueue::new(Accounting::Occupancy);
        for (owner, session, item) in [("a", 1, "a1"), ("a", 1, "a1+"), ("a", 2, "a2"), ("b", 3, "b3"), ("b", 3, "b3+")] {
            queue.push(&client_key(owner, session), item);
        }
        assert_eq!(all(&mut queue), ["a1", "b3", "a2", "b3+", "a1+"]);
        // Of many clients that came once, few are kept.
        for number in 0..5_000 {
            queue.push(&client_key(&number.to_string(), number), "x");
            queue.pop();
        }
        assert!(queue.sessions.len() <= MAX_IDLE + 1 && queue.owners.keys.len() <= MAX_IDLE + 1);
    }

    #[test]
    fn key_with_the_least_usage_is_next() {
        let mut queue = FairQueue::new(Accounting::Occupancy);
        queue.add(&client_key("a", 1), 3);
        queue.add(&client_key("b", 2), 1);
        for (owner, session, item) in [("a", 1, "a"), ("a", 9, "a9"), ("b", 2, "b"), ("c", 3, "c")] {
            queue.push(&client_key(owner, session), item);
        }
        assert_eq!(all(&mut queue), ["c", "b", "a9", "a"]);
        queue.subtract(&client_key("a", 1), 3);
        queue.subtract(&client_key("b", 2), 1);
        assert!(queue.owners.keys.values().all(|entry| entry.used == 0));
    }

    #[test]
    fn idle_key_gets_no_credit() {
        let mut queue = FairQueue::new(Accounting::Service);
        for _ in 0..10 {
            queue.push(&client_key("a", 1), "a");
            assert_eq!(queue.pop(), Some("a"));
            queue.add(&client_key("a", 1), 100);
        }
        // `b` was absent. It goes first once, and is then level with `a`.
        queue.push(&client_key("a", 1), "a");
        queue.push(&client_key("b", 2), "b");
        assert_eq!(queue.pop(), Some("b"));
        queue.add(&client_key("b", 2), 150);
        queue.push(&client_key("b", 2), "b");
        assert_eq!(all(&mut queue), ["a", "b"]);
    }

    #[test]
    fn session_at_its_limit_is_skipped() {
        let mut queue = FairQueue::new(Accounting::Occupancy);
        queue.add(&client_key("a", 1), 2);
        queue.push(&client_key("a", 1), "a");
        let next = |queue: &mut FairQueue<&'static str>| queue.pop_where(|held| held < 2).map(|(_, item)| item);
        assert_eq!(next(&mut queue), None);
        queue.push(&client_key("a", 2), "other");
        assert_eq!(next(&mut queue), Some("other"));
        queue.subtract(&client_key("a", 1), 1);
        assert_eq!(next(&mut queue), Some("a"));
    }

    #[test]
    fn new_entry_displaces_the_newest_of_the_largest_owner() {
        let mut queue = FairQueue::new(Accounting::Occupancy);
        for (owner, session, item) in [("a", 1, "1"), ("a", 1, "2"), ("a", 1, "3"), ("a", 2, "4"), ("b", 3, "5")] {
            queue.push(&client_key(owner, session), item);
        }
        let one = |_: &&str| [1];
        assert_eq!(queue.displace(&client_key("a", 1), [1], [1], one), None);
        assert_eq!(queue.displace(&client_key("a", 2), [1], [1], one), Some(vec!["3"]));
        assert_eq!(queue.displace(&client_key("b", 3), [1], [1], one), Some(vec!["2"]));
        assert_eq!(queue.len(), 3);
        assert_eq!(queue.remove(&client_key("b", 3), |item| *item == "5"), Some("5"));
        assert_eq!(all(&mut queue), ["1", "4"]);
    }

    #[test]
    fn new_entry_that_does_not_fit_displaces_nothing() {
        let mut queue = FairQueue::new(Accounting::Occupancy);
        for (owner, session, item) in [("a", 1, "1"), ("a", 1, "2"), ("a", 1, "3"), ("b", 3, "long one"), ("b", 3, "4")] {
            queue.push(&client_key(owner, session), item);
        }
        let bytes = |item: &&str| [1, item.len()];
        // Of `b` the newest entry leaves first, and one long entry is more than three short ones.
        assert_eq!(queue.displace(&client_key("c", 4), [1, 2], [0, 3], bytes), Some(vec!["4", "long one"]));
        // All entries of `a` together are not enough.
        assert_eq!(queue.displace(&client_key("c", 4), [1, 2], [0, 2], bytes), None);
        assert_eq!(queue.displace(&client_key("c", 4), [1, 2], [1, 2], bytes), None);
        assert_eq!(queue.displace(&client_key("c", 4), [1, 1], [1, 2], bytes), Some(vec!["3", "2"]));
        assert_eq!(all(&mut queue), ["1"]);
    }
}
