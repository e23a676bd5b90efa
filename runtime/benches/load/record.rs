//! What became of the requests of one stream.

use std::collections::BTreeMap;
use std::time::Duration;

/// Kinds of outcomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// The expected value.
    Answered,
    /// The server did not take the request, or one of its limits on concurrency refused an upstream call.
    Refused,
    /// The program ran and ended otherwise, such as at its time limit.
    Ended,
    /// No answer, or not one of the protocol.
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

    /// Requests that have not come to any outcome are failures.
    pub(crate) fn close(&mut self, waited: Duration) {
        let noted: usize = self.outcomes.values().flat_map(BTreeMap::values).map(Vec::len).sum();
        for _ in noted..self.sent {
            self.note(Class::Failed, "no answer", waited);
        }
    }

    /// Requests by reason of one kind of outcome.
    pub(crate) fn reasons(&self, class: Class) -> impl Iterator<Item = (&str, usize)> {
        let reasons = self.outcomes.get(&class);
        reasons.into_iter().flatten().map(|(reason, all)| (reason.as_str(), all.len()))
    }

    pub(crate) fn count(&self, class: Class) -> usize {
        self.reasons(class).map(|(_, count)| count).sum()
    }

    /// Requests of a reason, in whatever class.
    pub(crate) fn count_reason(&self, reason: &str) -> usize {
        self.outcomes.values().filter_map(|reasons| reasons.get(reason)).map(Vec::len).sum()
    }

    /// Latencies of the expected answers at shares of them, such as 0.99; zero where there are none.
    pub(crate) fn quantiles<const N: usize>(&self, shares: [f64; N]) -> [Duration; N] {
        let mut all: Vec<u32> = self.latencies(Class::Answered).collect();
        all.sort_unstable();
        shares.map(|share| {
            // The nearest rank: at least that share of all latencies is not above it.
            let rank = (all.len() as f64 * share).ceil() as usize;
            all.get(rank.max(1) - 1).map_or(Duration::ZERO, |micros| Duration::from_micros(u64::from(*micros)))
        })
    }

    /// The shortest time to a refusal.
    pub(crate) fn fastest_refusal(&self) -> Option<Duration> {
        self.latencies(Class::Refused).min().map(|micros| Duration::from_micros(u64::from(micros)))
    }

    fn latencies(&self, class: Class) -> impl Iterator<Item = u32> {
        self.outcomes.get(&class).into_iter().flat_map(BTreeMap::values).flatten().copied()
    }
}
