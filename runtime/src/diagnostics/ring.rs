//! The last calls of this process.

use std::collections::VecDeque;
use std::sync::Arc;

use jiff::Timestamp;
use litemap::LiteMap;

use super::record::Record;

/// Maximum bytes of memory of all records. Complete payloads are as long as clients make them.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// The newest records within the limits, oldest first.
#[derive(Debug)]
pub struct Ring {
    most: usize,
    records: VecDeque<(usize, Record)>,
    bytes: usize,
    owners: LiteMap<Arc<str>, Usage>,
}

/// The records of an owner.
#[derive(Debug, Default, Clone, Copy)]
struct Usage {
    count: usize,
    bytes: usize,
}

impl Ring {
    /// Creates an empty ring for at most this number of records.
    pub fn new(most: usize) -> Ring {
        Ring { most, records: VecDeque::new(), bytes: 0, owners: LiteMap::new() }
    }

    /// Adds a record and removes others beyond the limits of number and bytes. Each is the oldest one of the owner that has most,
    /// so that the calls of one owner do not displace those of the others. A record that would displace most others
    /// is stored without its payloads.
    pub fn push(&mut self, record: Record) {
        if self.most == 0 {
            return;
        }
        let record = if record.weight() > MAX_BYTES / 4 { record.without_payloads() } else { record };
        let weight = record.weight();
        while self.records.len() >= self.most && self.remove_oldest(|usage| usage.count) {}
        while self.bytes + weight > MAX_BYTES && self.remove_oldest(|usage| usage.bytes) {}
        self.bytes += weight;
        let usage = self.owners.entry(Arc::clone(&record.owner)).or_default();
        *usage = Usage { count: usage.count + 1, bytes: usage.bytes + weight };
        self.records.push_back((weight, record));
    }

    /// Removes the oldest record of the owners whose usage is largest. Returns whether there was one.
    fn remove_oldest(&mut self, by: impl Fn(&Usage) -> usize) -> bool {
        let largest = self.owners.values().map(&by).max();
        let at = self.records.iter().position(|(_, record)| self.owners.get(&record.owner).map(&by) == largest);
        let Some((weight, record)) = at.and_then(|at| self.records.remove(at)) else { return false };
        self.bytes -= weight;
        if let Some(usage) = self.owners.get_mut(&record.owner) {
            *usage = Usage { count: usage.count - 1, bytes: usage.bytes - weight };
            if usage.count == 0 {
                self.owners.remove(&record.owner);
            }
        }
        true
    }

    /// Iterates over the records of an owner from `since` on, newest first.
    pub fn newest(&self, owner: &str, since: Option<Timestamp>) -> impl DoubleEndedIterator<Item = &Record> {
        let own = self.records.iter().rev().map(|(_, record)| record).filter(move |record| *record.owner == *owner);
        own.filter(move |record| since.is_none_or(|since| record.at >= since))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::RequestMeta;
    use super::super::lines::Context;
    use super::*;
    use crate::secrets::Redactor;

    const OWNER: &str = "one";

    fn record(context: usize) -> Record {
        record_of(OWNER, context)
    }

    fn record_of(owner: &str, context: usize) -> Record {
        let asked = RequestMeta { id: "1", owner: &owner.into(), protocol_version: None, origin: None, meta: None };
        let mut record = Record::new("lisp_eval", &asked, Timestamp::now(), &Redactor::none());
        record.context = Some(Context::Value(vec![Value::from(1); context / size_of::<Value>()].into()));
        record
    }

    #[test]
    fn calls_of_an_owner_do_not_displace_those_of_another() {
        let mut ring = Ring::new(10);
        ring.push(record_of("two", 2 * 1024 * 1024));
        for _ in 0..100 {
            ring.push(record(0));
        }
        assert_eq!((ring.newest(OWNER, None).count(), ring.newest("two", None).count()), (9, 1));
        for _ in 0..100 {
            ring.push(record(3 * 1024 * 1024));
        }
        assert_eq!((ring.newest("two", None).count(), ring.newest("three", None).count()), (1, 0));
        for _ in 0..100 {
            ring.push(record_of("three", 0));
        }
        assert_eq!(ring.newest("two", None).count(), 1);
        assert_eq!(ring.owners.values().map(|usage| usage.count).sum::<usize>(), ring.records.len());
        assert_eq!(ring.owners.values().map(|usage| usage.bytes).sum::<usize>(), ring.bytes);
    }

    #[test]
    fn among_equal_owners_the_oldest_record_is_removed() {
        let mut ring = Ring::new(3);
        for owner in ["c", "a", "b", "d", "e"] {
            ring.push(record_of(owner, 0));
        }
        let kept: Vec<&str> = ring.records.iter().map(|(_, record)| &*record.owner).collect();
        assert_eq!(kept, ["b", "d", "e"]);
    }

    #[test]
    fn records_are_bounded_in_number_and_bytes() {
        let mut ring = Ring::new(5000);
        for _ in 0..100 {
            ring.push(record(1024 * 1024));
        }
        assert!((10..16).contains(&ring.records.len()), "{}", ring.records.len());
        assert!(ring.bytes <= MAX_BYTES && ring.bytes == ring.newest(OWNER, None).map(Record::weight).sum::<usize>());
        // A record larger than its share is stored and displaces no other.
        let before = ring.records.len();
        ring.push(record(64 * 1024 * 1024));
        assert_eq!(ring.records.len(), before + 1);
        assert!(ring.newest(OWNER, None).next().is_some_and(|record| record.context.is_none()));
        let mut ring = Ring::new(2);
        for _ in 0..3 {
            ring.push(record(0));
        }
        assert_eq!(ring.records.len(), 2);
    }
}
