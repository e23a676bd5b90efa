//! Keeps the keys of the issuer, and fetches them again within limits.
//!
//! Keys are fetched for the first token, when they are old, and for a token that no known key verifies: the issuer may have a new key, also
//! under the id of an earlier one. Anybody can send such a token, so that there is at most one fetch in an interval. While the issuer cannot
//! be reached, known keys are used until they are too old, and attempts become rarer.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jsonwebtoken::{Algorithm, DecodingKey, Header};
use ptc_runtime::log::{self, Level};
use ptc_runtime::server::http::access_token::TokenError;

use crate::discovery::Issuer;
use crate::key_set::KeySet;
use crate::token::{OTHER_ALGORITHM, WRONG_SIGNATURE};

/// Age from which on keys are fetched again, as a multiple of the minimum interval. This is how a withdrawn key becomes invalid.
const REFRESH: u32 = 20;
/// Age from which on keys are not used, as a multiple of the minimum interval.
const MAX_AGE: u32 = 240;
/// First pause after a failed fetch. It doubles with each failure.
const MIN_BACKOFF: Duration = Duration::from_secs(1);
/// Maximum pause after failed fetches.
const MAX_BACKOFF: Duration = Duration::from_mins(1);

/// The keys of an issuer.
pub(crate) struct KeyCache {
    issuer: Issuer,
    /// Minimum time between two fetches while there are keys.
    interval: Duration,
    fetched: Mutex<Option<Arc<Fetched>>>,
    /// Held during a fetch, so that all tokens wait for the same one.
    schedule: tokio::sync::Mutex<Schedule>,
}

struct Fetched {
    keys: KeySet,
    at: Instant,
}

#[derive(Default)]
struct Schedule {
    /// Time of the next permitted fetch.
    next: Option<Instant>,
    failures: u32,
}

impl Schedule {
    fn is_due(&self) -> bool {
        self.next.is_none_or(|next| next <= Instant::now())
    }
}

impl KeyCache {
    /// Creates a cache. Nothing is fetched yet.
    pub(crate) fn new(issuer: Issuer, interval: Duration) -> Arc<KeyCache> {
        Arc::new(KeyCache { issuer, interval, fetched: Mutex::default(), schedule: tokio::sync::Mutex::default() })
    }

    /// Returns what `verify` returns for the keys that the token with this header may be signed with. It is called again with newer keys if
    /// these may change the outcome.
    ///
    /// # Errors
    ///
    /// Returns [`TokenError::Unavailable`] if there are no keys, or if newer ones may verify the token and cannot be fetched: the client
    /// must not throw its token away. Otherwise returns the error of `verify`.
    pub(crate) async fn verify_with_keys<T>(
        self: &Arc<Self>,
        header: &Header,
        verify: impl Fn(&[DecodingKey]) -> Result<T, TokenError>,
    ) -> Result<T, TokenError> {
        let verify_with = |fetched: &Fetched| verify(&fetched.find(header.kid.as_deref(), header.alg)?);
        let mut refused = None;
        if let Some(fetched) = self.fetched() {
            self.refresh(&fetched);
            let verified = verify_with(&fetched);
            if !verified.as_ref().is_err_and(depends_on_keys) {
                return verified;
            }
            refused = Some((fetched.at, verified));
        }
        self.fetch_since(refused.as_ref().map(|(at, _)| *at)).await;
        let newest = self.fetched().ok_or(TokenError::Unavailable)?;
        let verified = match refused {
            // The same keys would refuse it again.
            Some((at, verified)) if at == newest.at => verified,
            _ => verify_with(&newest),
        };
        let is_undecided = verified.as_ref().is_err_and(depends_on_keys) && self.schedule.lock().await.failures > 0;
        if is_undecided { Err(TokenError::Unavailable) } else { verified }
    }

    /// Fetches the keys again if they are old. Tokens with known keys do not wait for it.
    fn refresh(self: &Arc<Self>, known: &Fetched) {
        if known.at.elapsed() >= self.interval * REFRESH && self.schedule.try_lock().is_ok_and(|schedule| schedule.is_due()) {
            drop(tokio::spawn(Arc::clone(self).fetch(Some(known.at))));
        }
    }

    /// Fetches the keys as [`KeyCache::fetch`] does. A client that disconnects does not end a fetch for which others wait.
    async fn fetch_since(self: &Arc<Self>, seen: Option<Instant>) {
        let _ = tokio::spawn(Arc::clone(self).fetch(seen)).await;
    }

    /// Returns the keys, unless they are too old.
    fn fetched(&self) -> Option<Arc<Fetched>> {
        let fetched = self.fetched.lock().unwrap_or_else(PoisonError::into_inner).clone();
        fetched.filter(|fetched| fetched.at.elapsed() < self.interval * MAX_AGE)
    }

    /// Fetches the keys, if that is permitted and no other task has fetched them since `seen`.
    async fn fetch(self: Arc<Self>, seen: Option<Instant>) {
        let mut schedule = self.schedule.lock().await;
        let known = self.fetched();
        let is_newer = known.as_ref().map(|fetched| fetched.at) != seen;
        if is_newer || !schedule.is_due() {
            return;
        }
        let outcome = self.issuer.fetch_keys().await;
        let now = Instant::now();
        match outcome {
            Ok(keys) => {
                if schedule.failures > 0 {
                    log::line(Level::Info, "keys of access tokens fetched again", &[]);
                }
                *schedule = Schedule { next: Some(now + self.interval), failures: 0 };
                *self.fetched.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(Fetched { keys, at: now }));
            }
            Err(why) => {
                let pause = MIN_BACKOFF.saturating_mul(1 << schedule.failures.min(16)).min(MAX_BACKOFF);
                // With known keys, a fetch is only an attempt to find more.
                let pause = if known.is_some() { pause.max(self.interval) } else { pause };
                *schedule = Schedule { next: Some(now + pause), failures: schedule.failures + 1 };
                let hint = if known.is_some() { "the earlier keys stay in use" } else { "no access token can be verified" };
                log::line(Level::Warn, "keys of access tokens not fetched", &[("reason", &why), ("hint", hint)]);
            }
        }
    }
}

const UNKNOWN_KEY: TokenError = TokenError::Untrusted("the issuer has no key with the id of the token");

/// Whether newer keys of the issuer may verify a token that was refused with this error.
fn depends_on_keys(error: &TokenError) -> bool {
    [UNKNOWN_KEY, OTHER_ALGORITHM, WRONG_SIGNATURE].contains(error)
}

impl Fetched {
    fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Result<Vec<DecodingKey>, TokenError> {
        let keys = self.keys.find(id, algorithm);
        match id {
            _ if !keys.is_empty() => Ok(keys),
            Some(id) if self.keys.contains(id) => Err(OTHER_ALGORITHM),
            _ => Err(UNKNOWN_KEY),
        }
    }
}
