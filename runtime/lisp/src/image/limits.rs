//! The limits of decoding: the memory of the values, and time.

use std::time::Instant;

use super::DecodeError;
use crate::comparison_budget::Guard;
use crate::deadline::Deadline;
use crate::limits::Cancel;
use crate::machine::Gauge;

/// Items between two checks.
const CHECK_INTERVAL: u32 = 256;

/// The limits of [`decode_within`](super::decode_within), which are those of a program.
#[derive(Debug, Clone, Default)]
pub struct DecodeLimits {
    /// Maximum bytes that decoding may allocate, and the gauge of the thread that decodes. Without it memory has no limit.
    pub memory: Option<(u64, Gauge)>,
    /// The time at which decoding ends.
    pub until: Option<Instant>,
    /// Ends decoding earlier.
    pub cancel: Cancel,
    /// Whether functions are refused. To decode them compiles their programs.
    pub data_only: bool,
}

/// Checks the limits while an image is decoded.
pub(super) struct Meter {
    memory: Option<(u64, Gauge)>,
    /// The gauge at the beginning.
    start: i64,
    items: u32,
    pub(super) deadline: Deadline,
    /// Ends comparisons of values, which maps and sets need, together with the deadline.
    _comparisons: Option<Guard>,
}

impl Meter {
    pub(super) fn new(limits: &DecodeLimits) -> Meter {
        let guard = limits.until.map(|until| Guard::new(until, limits.cancel.clone()));
        Meter {
            memory: limits.memory,
            start: limits.memory.map_or(0, |(_, gauge)| gauge()),
            items: 0,
            deadline: Deadline::new(limits.until, &limits.cancel),
            _comparisons: guard,
        }
    }

    /// Counts one item.
    pub(super) fn step(&mut self) -> Result<(), DecodeError> {
        self.items += 1;
        if self.items < CHECK_INTERVAL { Ok(()) } else { self.check() }
    }

    /// Checks the limits now, after an item that may be large.
    pub(super) fn check(&mut self) -> Result<(), DecodeError> {
        self.items = 0;
        if let Some((limit, gauge)) = self.memory
            && gauge().saturating_sub(self.start) > i64::try_from(limit).unwrap_or(i64::MAX)
        {
            return Err(DecodeError::OutOfMemory(limit));
        }
        if self.deadline.is_passed() { Err(DecodeError::OutOfTime) } else { Ok(()) }
    }
}
