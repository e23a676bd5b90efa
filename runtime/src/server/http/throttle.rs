//! Delays replies to wrong tokens after repeated failures of an address.
//!
//! Clients behind one proxy share an address, so that the failures of one client must not lock out the others.

use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use litemap::LiteMap;
use tokio::sync::Semaphore;

use super::listener::network_of;
use crate::settings::HttpSettings;

/// Maximum number of addresses whose failures are counted. Requests with wrong tokens from further addresses are refused without
/// a delay.
const MAX_ADDRESSES: usize = 10_000;
/// Delay of the reply to a wrong token after too many failures of its address.
const REPLY_DELAY: Duration = Duration::from_secs(1);
/// Maximum number of delayed replies at the same time. Further replies are sent at once, since delays must not exhaust
/// connections.
const MAX_DELAYED: usize = 64;

/// Counts the failures of each address.
pub(super) struct Throttle {
    window: Duration,
    max_failures: u32,
    block: Duration,
    failures: Mutex<LiteMap<IpAddr, Failures>>,
    delayed: Semaphore,
}

#[derive(Clone, Copy)]
struct Failures {
    since: Instant,
    count: u32,
    throttled_until: Option<Instant>,
}

impl Throttle {
    /// Creates a throttle with the limits of the settings.
    pub(super) fn new(settings: &HttpSettings) -> Throttle {
        Throttle {
            window: settings.auth_rate_limit_window,
            max_failures: settings.auth_rate_limit_max_failures,
            block: settings.auth_rate_limit_block,
            failures: Mutex::default(),
            delayed: Semaphore::new(MAX_DELAYED),
        }
    }

    /// Waits before the reply to a failure, unless too many replies wait already.
    pub(super) async fn delay(&self) {
        if let Ok(_held) = self.delayed.try_acquire() {
            tokio::time::sleep(REPLY_DELAY).await;
        }
    }

    /// Whether failures of an address are delayed.
    pub(super) fn is_blocked(&self, peer: IpAddr, now: Instant) -> bool {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.get(&network_of(peer)).is_some_and(|seen| seen.throttled_until.is_some_and(|until| now < until))
    }

    /// Counts a failure. Returns the seconds for which failures of this address are delayed, if they are.
    pub(super) fn note_failure(&self, peer: IpAddr, now: Instant) -> Option<u64> {
        let peer = network_of(peer);
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.len() >= MAX_ADDRESSES && !failures.contains_key(&peer) {
            failures.retain(|_, seen| now < seen.since + self.window || seen.throttled_until.is_some_and(|until| now < until));
            if failures.len() >= MAX_ADDRESSES {
                return None;
            }
        }
        let seen = failures.entry(peer).or_insert(Failures { since: now, count: 0, throttled_until: None });
        if now >= seen.since + self.window && seen.throttled_until.is_none_or(|until| now >= until) {
            *seen = Failures { since: now, count: 0, throttled_until: None };
        }
        seen.count += 1;
        if seen.count > self.max_failures && seen.throttled_until.is_none_or(|until| now >= until) {
            seen.throttled_until = Some(now + self.block);
        }
        let left = seen.throttled_until?.checked_duration_since(now)?;
        Some(left.as_millis().div_ceil(1000) as u64).filter(|seconds| *seconds > 0)
    }
}
