//! Reads the body of a request within limits of size and time, and within a memory limit shared by all requests.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};

use crate::schedule::{BudgetReservation, Scheduler};

/// Why a body could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyError {
    /// The body is longer than allowed.
    TooLarge,
    /// The body did not arrive in time.
    TooSlow,
    /// The connection ended early.
    Broken,
    /// The bodies of other requests use all of the memory.
    Overloaded,
}

/// Maximum bytes of bodies that are being read, on all connections together.
const MAX_BODY_MEMORY: u64 = 64 * 1024 * 1024;

/// Such bodies may use this fraction (1/N) of the memory budget.
const BODY_BUDGET_DIVISOR: u64 = 8;

/// The memory for bodies that are being read, on all connections together.
#[derive(Debug)]
pub struct BodyMemory {
    max: usize,
    bytes: AtomicUsize,
}

/// The part of one request, released when it is dropped.
struct BodyReservation<'r> {
    memory: &'r BodyMemory,
    bytes: usize,
    in_budget: BudgetReservation,
}

impl BodyMemory {
    /// Makes a limit for bodies that are not complete, which depends on the memory budget in bytes. One body of `max_body_bytes`
    /// always fits.
    pub fn new(budget: u64, max_body_bytes: usize) -> BodyMemory {
        let max = usize::try_from(MAX_BODY_MEMORY.min(budget / BODY_BUDGET_DIVISOR)).unwrap_or(usize::MAX);
        BodyMemory { max: max.max(max_body_bytes), bytes: AtomicUsize::new(0) }
    }
}

impl BodyReservation<'_> {
    fn reserve(&mut self, bytes: usize) -> Result<(), BodyError> {
        let next = |now: usize| now.checked_add(bytes).filter(|now| *now <= self.memory.max);
        self.memory.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).map_err(|_| BodyError::Overloaded)?;
        self.bytes += bytes;
        self.in_budget.grow(bytes);
        Ok(())
    }
}

impl Drop for BodyReservation<'_> {
    fn drop(&mut self) {
        self.memory.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Reads the whole body: at most `max` bytes, within the time `within`. Its bytes count in the budget of `scheduler` meanwhile.
///
/// # Errors
///
/// Returns [`BodyError`] if the body is too long or too slow, if the connection ends early, or if other bodies use all of
/// `memory`.
pub async fn read(
    mut body: Incoming,
    max: usize,
    within: Duration,
    memory: &BodyMemory,
    scheduler: &Scheduler,
) -> Result<Bytes, BodyError> {
    // Refuse a too long body by its announced length, before it is sent.
    if body.size_hint().lower() > max as u64 {
        return Err(BodyError::TooLarge);
    }
    let mut reservation = BodyReservation { memory, bytes: 0, in_budget: scheduler.hold(0) };
    let whole = async {
        let mut first = Bytes::new();
        // A short body arrives in one frame and is not copied.
        let mut rest: Option<BytesMut> = None;
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|_| BodyError::Broken)?.into_data() else { continue };
            let seen = rest.as_ref().map_or(first.len(), BytesMut::len);
            if seen + data.len() > max {
                return Err(BodyError::TooLarge);
            }
            reservation.reserve(data.len())?;
            match &mut rest {
                Some(rest) => rest.extend_from_slice(&data),
                None if first.is_empty() => first = data,
                None => {
                    let mut all = BytesMut::from(&first[..]);
                    all.extend_from_slice(&data);
                    rest = Some(all);
                }
            }
        }
        Ok(rest.map_or(first, BytesMut::freeze))
    };
    tokio::time::timeout(within, whole).await.unwrap_or(Err(BodyError::TooSlow))
}
