//! Limits the calls of owners in a minute, with a token bucket for each owner and rule: it holds as many calls as the limit, and is
//! refilled evenly in a minute.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Number of buckets from which on full ones are removed.
const MANY_BUCKETS: usize = 10_000;

const MINUTE: Duration = Duration::from_mins(1);

/// The buckets of all owners.
#[derive(Debug, Default)]
pub(crate) struct RateLimits(Mutex<Buckets>);

#[derive(Debug, Default)]
struct Buckets {
    /// The buckets, by rule and owner.
    of: HashMap<(u16, Arc<str>), Bucket>,
    /// Number of buckets that the last removal has left.
    left: usize,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    calls: f64,
    at: Instant,
}

impl RateLimits {
    /// Counts a call of an owner that a rule permits.
    ///
    /// # Errors
    ///
    /// Returns the time until the next call is permitted, if the limit is exhausted.
    pub(crate) fn take(&self, rule: u16, owner: &Arc<str>, per_minute: u32, now: Instant) -> Result<(), Duration> {
        let limit = f64::from(per_minute);
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The number doubles between two removals, so that the cost of looking at all buckets is shared by many calls.
        if buckets.of.len() >= MANY_BUCKETS.max(2 * buckets.left) {
            // A bucket is full a minute after its last call.
            buckets.of.retain(|_, bucket| now.saturating_duration_since(bucket.at) < MINUTE);
            buckets.left = buckets.of.len();
        }
        let bucket = buckets.of.entry((rule, Arc::clone(owner))).or_insert(Bucket { calls: limit, at: now });
        let passed = now.saturating_duration_since(bucket.at).as_secs_f64();
        bucket.calls = (bucket.calls + passed * limit / MINUTE.as_secs_f64()).min(limit);
        bucket.at = bucket.at.max(now);
        if bucket.calls < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - bucket.calls) * MINUTE.as_secs_f64() / limit));
        }
        bucket.calls -= 1.0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_is_for_each_owner_and_rule_and_refills_evenly() {
        let (limits, now) = (RateLimits::default(), Instant::now());
        let (a, b): (Arc<str>, Arc<str>) = ("name:a".into(), "name:b".into());
        for _ in 0..6 {
            assert!(limits.take(0, &a, 6, now).is_ok());
        }
        let wait = limits.take(0, &a, 6, now).expect_err("the limit is exhausted");
        assert!((9.0..=10.1).contains(&wait.as_secs_f64()), "{wait:?}");
        assert!(limits.take(0, &b, 6, now).is_ok(), "another owner");
        assert!(limits.take(1, &a, 6, now).is_ok(), "another rule");
        let later = now + Duration::from_secs(11);
        assert!(limits.take(0, &a, 6, later).is_ok());
        assert!(limits.take(0, &a, 6, later).is_err());
    }

    #[test]
    fn full_buckets_are_removed_when_there_are_many() {
        let (limits, now) = (RateLimits::default(), Instant::now());
        let count = || limits.0.lock().unwrap_or_else(PoisonError::into_inner).of.len();
        for owner in 0..MANY_BUCKETS {
            assert!(limits.take(0, &format!("name:{owner}").into(), 1, now).is_ok());
        }
        assert!(limits.take(0, &"name:other".into(), 1, now).is_ok());
        assert_eq!(count(), MANY_BUCKETS + 1, "no bucket is full");
        assert!(limits.take(0, &"name:0".into(), 1, now).is_err());
        for owner in 0..MANY_BUCKETS {
            assert!(limits.take(1, &format!("name:{owner}").into(), 1, now + MINUTE).is_ok());
        }
        assert_eq!(count(), MANY_BUCKETS);
    }
}
