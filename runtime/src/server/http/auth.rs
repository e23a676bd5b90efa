//! Bearer tokens, and addresses that guess at them.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;
use litemap::LiteMap;

use crate::digest::{hex, sha256, short};
use crate::settings::HttpSettings;

/// Addresses that are remembered for their failures. An attacker with more of them than that is for the network to stop.
const MOST_ADDRESSES: usize = 10_000;

/// Checks tokens.
pub struct Gate {
    /// Digest of the token; `None` lets everybody pass.
    expected: Option<[u8; 32]>,
    owner: Owner,
    limiter: Option<Limiter>,
}

/// Whose sessions a request may use.
#[derive(Debug, Clone)]
pub struct Owner {
    /// Its name inside this server.
    pub id: Arc<str>,
    /// What log lines call it.
    pub hash: Arc<str>,
}

/// Why a request may not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// It shows no token.
    Missing,
    /// It shows a wrong one.
    Invalid,
    /// Its address has shown too many wrong ones; whole seconds until it is heard again.
    Blocked(u64),
}

struct Limiter {
    window: Duration,
    most: u32,
    block: Duration,
    failures: Mutex<LiteMap<IpAddr, Failures>>,
}

#[derive(Clone, Copy)]
struct Failures {
    since: Instant,
    count: u32,
    blocked_until: Option<Instant>,
}

impl Gate {
    /// A gate for the token of the settings.
    pub fn new(settings: &HttpSettings) -> Gate {
        let expected = settings.auth_token.as_ref().map(|token| sha256(token.text().as_bytes()));
        // One token is one owner: its sessions are found again after a restart, and by every replica that has the same token.
        let id = expected.map_or_else(|| "loopback".to_owned(), |digest| format!("token:{}", hex(&digest)));
        let owner = Owner { hash: short(&id).into(), id: id.into() };
        let limiter = (settings.auth_rate_limit && expected.is_some()).then(|| Limiter {
            window: settings.auth_rate_limit_window,
            most: settings.auth_rate_limit_max_failures,
            block: settings.auth_rate_limit_block,
            failures: Mutex::default(),
        });
        Gate { expected, owner, limiter }
    }

    /// Who asks.
    pub fn pass(&self, peer: IpAddr, headers: &HeaderMap, now: Instant) -> Result<Owner, Denied> {
        let Some(expected) = &self.expected else { return Ok(self.owner.clone()) };
        if let Some(seconds) = self.limiter.as_ref().and_then(|limiter| limiter.blocked(peer, now)) {
            return Err(Denied::Blocked(seconds));
        }
        let shown = headers.get(AUTHORIZATION).map(|value| bearer(value.as_bytes()));
        let passes = shown.flatten().is_some_and(|token| same(expected, &sha256(token)));
        if let Some(limiter) = &self.limiter {
            limiter.note(peer, passes, now);
        }
        match (passes, shown) {
            (true, _) => Ok(self.owner.clone()),
            (false, None) => Err(Denied::Missing),
            (false, Some(_)) => Err(Denied::Invalid),
        }
    }
}

impl Limiter {
    fn blocked(&self, peer: IpAddr, now: Instant) -> Option<u64> {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let left = failures.get(&peer)?.blocked_until?.checked_duration_since(now)?;
        Some(left.as_millis().div_ceil(1000) as u64).filter(|seconds| *seconds > 0)
    }

    fn note(&self, peer: IpAddr, passes: bool, now: Instant) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if passes {
            failures.remove(&peer);
            return;
        }
        if failures.len() >= MOST_ADDRESSES && !failures.contains_key(&peer) {
            failures.retain(|_, seen| now < seen.since + self.window || seen.blocked_until.is_some_and(|until| now < until));
            if failures.len() >= MOST_ADDRESSES {
                return;
            }
        }
        let seen = failures.entry(peer).or_insert(Failures { since: now, count: 0, blocked_until: None });
        if now >= seen.since + self.window {
            *seen = Failures { since: now, count: 0, blocked_until: None };
        }
        seen.count += 1;
        if seen.count >= self.most {
            seen.blocked_until = Some(now + self.block);
        }
    }
}

/// The token of `Bearer token`; the scheme's case does not matter.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

/// Compares without telling by its time how much was right. Digests of equal length: their bytes follow no guess.
fn same(one: &[u8; 32], other: &[u8; 32]) -> bool {
    one.iter().zip(other).fold(0, |differ, (a, b)| std::hint::black_box(differ | (a ^ b))) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::http::AuthToken;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    fn gate(token: Option<&str>) -> Gate {
        let settings = HttpSettings {
            auth_token: token.and_then(AuthToken::of),
            auth_rate_limit_window: Duration::from_secs(60),
            auth_rate_limit_max_failures: 3,
            auth_rate_limit_block: Duration::from_secs(30),
            ..HttpSettings::default()
        };
        Gate::new(&settings)
    }

    fn headers(authorization: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(value) = authorization {
            headers.insert(AUTHORIZATION, value.parse().expect("a header's value"));
        }
        headers
    }

    #[test]
    fn tokens() {
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
            assert_eq!(gate(Some(TOKEN)).pass(peer, &headers(shown), now).err(), expected, "{shown:?}");
        }
        assert!(gate(None).pass(peer, &headers(None), now).is_ok());
    }

    #[test]
    fn too_many_failures_block_an_address_for_a_while() {
        let gate = gate(Some(TOKEN));
        let (peer, other) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let right = headers(Some("Bearer 0123456789abcdef0123456789abcdef"));
        // What went right in between forgets what went wrong.
        for _ in 0..2 {
            assert_eq!(gate.pass(peer, &headers(None), at(0)).err(), Some(Denied::Missing));
        }
        assert!(gate.pass(peer, &right, at(0)).is_ok());
        for _ in 0..3 {
            assert_eq!(gate.pass(peer, &headers(Some("Bearer x")), at(1)).err(), Some(Denied::Invalid));
        }
        assert_eq!(gate.pass(peer, &right, at(2)).err(), Some(Denied::Blocked(29)));
        assert!(gate.pass(other, &right, at(2)).is_ok());
        // Heard again, and blocked again at once: the window is longer than the block.
        assert_eq!(gate.pass(peer, &headers(None), at(32)).err(), Some(Denied::Missing));
        assert_eq!(gate.pass(peer, &right, at(33)).err(), Some(Denied::Blocked(29)));
        assert!(gate.pass(peer, &right, at(70)).is_ok());
    }
}
