//! Outcomes of the requests of one stream.

use std::collections::BTreeMap;
use std::time::Duration;

/// Class of an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// The answer has the expected value.
    Answered,
    /// The server rejected the request, or one of its concurrency limits rejected an upstream call.
    Refused,
    /// The program ran and ended with another result, such as a timeout.
    Ended,
    /// There was no answer, or it was not a valid protocol message.
    Failed,
}

/// Outcomes and latencies of one stream.
pub(crate) struct Record {
    pub(crate) name: String,
    pub(crate) sent: usize,
    /// Latencies in microseconds by outcome.
    outcomes: BTreeMap<Class, BTreeMap<String, Vec<u32>>>,
}

impl Record {
    pub(crate) fn new(name: String) -> Record {
        Record { name, sent: 0, outcomes: BTreeMap::new() }
    }

    pub(crate) fn note(&mut self, class: Class, reason: &str, latency: Duration) {
        let reasons = self.outcomes.entry(class).or_default();
        let micros = u32::try_from(latency.as_micros()).unwrap_or(u32::MAX);
        match reasons.get_mut(reason) {
            Some(all) => all.push(micros),
            None => drop(reasons.insert(reason.to_owned(), vec![micros])),
        }
    }

    /// Counts requests without an outcome as failures.
    pub(crate) fn close(&mut self, waited: Duration) {
        let noted: usize = self.outcomes.values().flat_map(BTreeMap::values).map(Vec::len).sum();
        for _ in noted..self.sent {
            self.note(Class::Failed, "no answer", waited);
        }
    }

    /// Returns the number of requests in a class by reason.
    pub(crate) fn reasons(&self, class: Class) -> impl Iterator<Item = (&str, usize)> {
        let reasons = self.outcomes.get(&class);
        reasons.into_iter().flatten().map(|(reason, all)| (reason.as_str(), all.len()))
    }

    pub(crate) fn count(&self, class: Class) -> usize {
        self.reasons(class).map(|(_, count)| count).sum()
    }

    /// Returns the number of requests with a reason, in any class.
    pub(crate) fn count_reason(&self, reason: &str) -> usize {
        self.outcomes.values().filter_map(|reasons| reasons.get(reason)).map(Vec::len).sum()
    }

    /// Returns the latencies of expected answers at quantiles such as 0.99, or zero if there are none.
    pub(crate) fn quantiles<const N: usize>(&self, shares: [f64; N]) -> [Duration; N] {
        let mut all: Vec<u32> = self.latencies(Class::Answered).collect();
        all.sort_unstable();
        shares.map(|share| {
            // The nearest rank: at least this share of all latencies is less than or equal to it.
            let rank = (all.len() as f64 * share).ceil() as usize;
            all.get(rank.max(1) - 1).map_or(Duration::ZERO, |micros| Duration::from_micros(u64::from(*micros)))
        })
    }

    /// Returns the shortest time until a refusal.
    pub(crate) fn fastest_refusal(&self) -> Option<Duration> {
        self.latencies(Class::Refused).min().map(|micros| Duration::from_micros(u64::from(micros)))
    }

    fn latencies(&self, class: Class) -> impl Iterator<Item = u32> {
        self.outcomes.get(&class).into_iter().flat_map(BTreeMap::values).flatten().copied()
    }
}
