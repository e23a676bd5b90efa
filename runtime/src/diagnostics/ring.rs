//! The last calls of this process.

use std::collections::VecDeque;

use jiff::Timestamp;

use super::record::Record;

/// Records, oldest first, as many as fit.
#[derive(Debug)]
pub struct Ring {
    most: usize,
    records: VecDeque<Record>,
}

impl Ring {
    /// An empty ring for that many.
    pub fn new(most: usize) -> Ring {
        Ring { most, records: VecDeque::new() }
    }

    /// Adds a record; the oldest goes where there are too many.
    pub fn push(&mut self, record: Record) {
        if self.most == 0 {
            return;
        }
        while self.records.len() >= self.most {
            self.records.pop_front();
        }
        self.records.push_back(record);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Records from `since` on, newest first.
    pub fn newest(&self, since: Option<Timestamp>) -> impl DoubleEndedIterator<Item = &Record> {
        self.records.iter().rev().filter(move |record| since.is_none_or(|since| record.at >= since))
    }
}
