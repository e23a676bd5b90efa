//! The last calls of this process.

use std::collections::VecDeque;

use jiff::Timestamp;

use super::record::Record;

/// Maximum bytes of memory of all records. Complete payloads are as long as clients make them.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// The newest records within the limits, oldest first.
#[derive(Debug)]
pub struct Ring {
    most: usize,
    records: VecDeque<(usize, Record)>,
    bytes: usize,
}

impl Ring {
    /// Creates an empty ring for at most this number of records.
    pub fn new(most: usize) -> Ring {
        Ring { most, records: VecDeque::new(), bytes: 0 }
    }

    /// Adds a record and removes the oldest ones beyond the limits of number and bytes. A record that would displace most others
    /// is stored without its payloads.
    pub fn push(&mut self, record: Record) {
        if self.most == 0 {
            return;
        }
        let record = if record.weight() > MAX_BYTES / 4 { record.without_payloads() } else { record };
        let weight = record.weight();
        while self.records.len() >= self.most || self.bytes + weight > MAX_BYTES {
            let Some((gone, _)) = self.records.pop_front() else { break };
            self.bytes -= gone;
        }
        self.bytes += weight;
        self.records.push_back((weight, record));
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
        let asked = RequestMeta { id: "1", owner: &OWNER.into(), protocol_version: None, origin: None, meta: None };
        let mut record = Record::new("lisp_eval", &asked, Timestamp::now(), &Redactor::none());
        record.context = Some(Context::Value(vec![Value::from(1); context / size_of::<Value>()].into()));
        record
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
