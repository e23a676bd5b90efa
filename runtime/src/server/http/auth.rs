//! Authentication with bearer tokens. A valid token is always accepted at once. Replies to wrong tokens are delayed after
//! repeated failures.
//!
//! Clients behind one proxy share an address, so that the failures of one client must not lock out the others.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;
use litemap::LiteMap;
use tokio::sync::Semaphore;

use crate::digest::{hex, sha256, short};
use crate::settings::HttpSettings;

use super::listener::network_of;

/// Maximum number of addresses whose failures are counted. Requests with wrong tokens from further addresses are refused without
/// a delay.
const MAX_ADDRESSES: usize = 10_000;
/// Delay of the reply to a wrong token after too many failures of its address.
const REPLY_DELAY: Duration = Duration::from_secs(1);
/// Maximum number of delayed replies at the same time. Further replies are sent at once, since delays must not exhaust
/// connections.
const MAX_DELAYED: usize = 64;

/// Authenticates requests.
pub struct Authenticator {
    /// Digest of the token. `None` if no token is required.
    expected: Option<[u8; 32]>,
    owner: Owner,
    throttle: Option<Throttle>,
}

/// The owner of a request, whose sessions it may use.
#[derive(Debug, Clone)]
pub struct Owner {
    /// The internal name.
    pub id: Arc<str>,
    /// The name in log lines.
    pub hash: Arc<str>,
}

/// The reason why authentication fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// The request has no token. It is not counted as a failure, since clients send such a request to receive the challenge.
    Missing,
    /// The token is wrong.
    Invalid,
    /// The token is wrong, after too many failures of its address. Contains the seconds until a failure is answered without a
    /// delay.
    Throttled(u64),
}

/// Counts the failures of each address.
struct Throttle {
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

impl Authenticator {
    /// Creates an authenticator with the token of the settings.
    pub fn new(settings: &HttpSettings) -> Authenticator {
        let expected = settings.auth_token.as_ref().map(|token| sha256(token.text().as_bytes()));
        // A token identifies one owner, whose sessions are found again after a restart and by every replica with the same token.
        // A generated token changes with each start. Its owner is therefore the machine, as without a token.
        let id = match expected.filter(|_| !settings.token_is_generated) {
            Some(digest) => format!("token:{}", hex(&digest)),
            None => "loopback".to_owned(),
        };
        let owner = Owner { hash: short(&id).into(), id: id.into() };
        let throttle = (settings.auth_rate_limit && expected.is_some()).then(|| Throttle {
            window: settings.auth_rate_limit_window,
            max_failures: settings.auth_rate_limit_max_failures,
            block: settings.auth_rate_limit_block,
            failures: Mutex::default(),
            delayed: Semaphore::new(MAX_DELAYED),
        });
        Authenticator { expected, owner, throttle }
    }

    /// Returns the owner of the request's token. Takes up to a second for a wrong token after repeated failures of its address.
    ///
    /// # Errors
    ///
    /// Returns [`Denied`] if a token is required and the request has none, or a wrong one.
    pub async fn authenticate(&self, peer: IpAddr, headers: &HeaderMap) -> Result<Owner, Denied> {
        let checked = self.check(peer, headers, Instant::now());
        if let (Err(Denied::Throttled(_)), Some(throttle)) = (&checked, &self.throttle)
            && let Ok(_held) = throttle.delayed.try_acquire()
        {
            tokio::time::sleep(REPLY_DELAY).await;
        }
        checked
    }

    /// Like [`Authenticator::authenticate`], without the delay.
    fn check(&self, peer: IpAddr, headers: &HeaderMap, now: Instant) -> Result<Owner, Denied> {
        let Some(expected) = &self.expected else { return Ok(self.owner.clone()) };
        let Some(shown) = headers.get(AUTHORIZATION) else { return Err(Denied::Missing) };
        if bearer(shown.as_bytes()).is_some_and(|token| same(expected, &sha256(token))) {
            return Ok(self.owner.clone());
        }
        let throttled = self.throttle.as_ref().and_then(|throttle| throttle.note_failure(peer, now));
        Err(throttled.map_or(Denied::Invalid, Denied::Throttled))
    }

    /// Whether a request has a valid token or needs none. Failures are not counted.
    pub fn knows(&self, headers: &HeaderMap) -> bool {
        let shown = || headers.get(AUTHORIZATION).and_then(|value| bearer(value.as_bytes()));
        self.expected.as_ref().is_none_or(|expected| shown().is_some_and(|token| same(expected, &sha256(token))))
    }
}

impl Throttle {
    /// Counts a failure. Returns the seconds for which failures of this address are delayed, if they are.
    fn note_failure(&self, peer: IpAddr, now: Instant) -> Option<u64> {
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

/// Returns the token of `Bearer token`. The scheme is case-insensitive.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

/// Compares digests in constant time, so that the duration reveals nothing about the expected one.
fn same(one: &[u8; 32], other: &[u8; 32]) -> bool {
    one.iter().zip(other).fold(0, |differ, (a, b)| std::hint::black_box(differ | (a ^ b))) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::http::AuthToken;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    fn authenticator(token: Option<&str>) -> Authenticator {
        let settings = HttpSettings {
            auth_token: token.and_then(AuthToken::of),
            auth_rate_limit_window: Duration::from_mins(1),
            auth_rate_limit_max_failures: 3,
            auth_rate_limit_block: Duration::from_secs(30),
            ..HttpSettings::default()
        };
        Authenticator::new(&settings)
    }

    fn headers(authorization: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(value) = authorization {
            headers.insert(AUTHORIZATION, value.parse().expect("a header's value"));
        }
        headers
    }

    #[test]
    fn bearer_tokens_are_compared_completely() {
        let peer = IpAddr::from([127, 0, 0, 1]);
        let now = Instant::now();
        for (shown, expected) in [
            (None, Some(Denied::Missing)),
            (Some("Basic eDp5"), Some(Denied::Invalid)),
            (Some("Bearer"), Some(Denied::Invalid)),
            (Some("Bearer 0123456789abcdef0123456789abcdeF"), Some(Denied::Invalid)),
            (Some("Bearer 0123456789abcdef0123456789abcdef"), None),
            (Some("bearer  0123456789abcdef0123456789abcdef "), None),
        ] {
            let authenticator = authenticator(Some(TOKEN));
            assert_eq!(authenticator.check(peer, &headers(shown), now).err(), expected, "{shown:?}");
            assert_eq!(authenticator.knows(&headers(shown)), expected.is_none(), "{shown:?}");
        }
        assert!(authenticator(None).check(peer, &headers(None), now).is_ok());
    }

    #[test]
    fn wrong_tokens_are_throttled_and_the_valid_one_always_passes() {
        let authenticator = authenticator(Some(TOKEN));
        let (peer, other) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let (valid, wrong) = (headers(Some("Bearer 0123456789abcdef0123456789abcdef")), headers(Some("Bearer x")));
        for _ in 0..100 {
            assert_eq!(authenticator.check(peer, &headers(None), at(0)).err(), Some(Denied::Missing));
        }
        for _ in 0..3 {
            assert_eq!(authenticator.check(peer, &wrong, at(1)).err(), Some(Denied::Invalid));
        }
        assert_eq!(authenticator.check(peer, &wrong, at(1)).err(), Some(Denied::Throttled(30)));
        assert!(authenticator.check(peer, &valid, at(2)).is_ok());
        assert_eq!(authenticator.check(peer, &wrong, at(2)).err(), Some(Denied::Throttled(29)));
        assert_eq!(authenticator.check(other, &wrong, at(2)).err(), Some(Denied::Invalid));
        // After the window and the delay have passed, counting restarts.
        assert_eq!(authenticator.check(peer, &wrong, at(70)).err(), Some(Denied::Invalid));
    }
}
