//! The sources of the callers on whose behalf one upstream is called.
//!
//! A source belongs to one access token of a caller, so that no caller gets a token that was issued for another one, nor one for an earlier
//! token with more rights. A source keeps the digest of the caller's token, and not the token.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ptc_upstream::UpstreamError;
use ptc_upstream::caller_token;
use ptc_upstream::http::access_token::{AccessToken, TokenFuture, TokenSource};
use reqwest::header::HeaderMap;

use crate::source::{Client, Source};

/// Maximum number of sources of one upstream. The one that was used least recently is given up for the next caller.
const MAX_CALLERS: usize = 128;
/// Time without a call after which a source is given up, when the next call of any caller comes. Its tokens take memory, also those that
/// have expired.
const MAX_IDLE: Duration = Duration::from_mins(15);

/// Maximum bytes of the redactors of the callers' tokens of one upstream: some 60 tokens of 1,000 bytes. Those that were used least recently
/// are given up; the one in use is kept.
const MAX_REDACTOR_BYTES: usize = 64 * 1024 * 1024;

/// The sources of the callers of one upstream.
pub(crate) struct Callers {
    client: Arc<Client>,
    known: Mutex<Known<Source>>,
}

/// The sources by the digest of the caller's token, with the time of the last call.
type Known<S> = HashMap<[u8; 32], (S, Instant)>;

impl Callers {
    /// Creates a set without callers.
    pub(crate) fn new(client: Arc<Client>) -> Callers {
        Callers { client, known: Mutex::default() }
    }

    /// Returns the source for the caller's token with this digest.
    fn source(&self, digest: [u8; 32]) -> Source {
        let mut known = self.lock();
        let now = Instant::now();
        known.retain(|_, (_, used_at)| now.duration_since(*used_at) < MAX_IDLE);
        if !known.contains_key(&digest) {
            let oldest = known.iter().min_by_key(|(_, (_, used_at))| *used_at).map(|(digest, _)| *digest);
            if let Some(oldest) = oldest.filter(|_| known.len() >= MAX_CALLERS) {
                known.remove(&oldest);
            }
        }
        let (source, used_at) = known.entry(digest).or_insert_with(|| (Source::of_caller(Arc::clone(&self.client)), now));
        *used_at = now;
        source.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Known<Source>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives up the sources that were used least recently until at most `max` bytes are left, and at least one source.
fn limit_bytes<S>(known: &mut Known<S>, max: usize, bytes: impl Fn(&S) -> usize) {
    let mut total: usize = known.values().map(|(source, _)| bytes(source)).sum();
    while total > max && known.len() > 1 {
        let Some(oldest) = known.iter().min_by_key(|(_, (_, used_at))| *used_at).map(|(digest, _)| *digest) else { return };
        let given_up = known.remove(&oldest);
        total -= given_up.map_or(0, |(source, _)| bytes(&source));
    }
}

impl TokenSource for Callers {
    fn token<'s>(&'s self, refused: Option<&'s AccessToken>, deadline: Instant) -> TokenFuture<'s> {
        Box::pin(async move {
            let caller = caller_token::current().ok_or_else(|| caller_token::missing(self.client.endpoint.upstream()))?;
            let token = self.source(caller.digest()).token_for(Some(caller), refused, deadline).await;
            limit_bytes(&mut self.lock(), MAX_REDACTOR_BYTES, Source::redactor_bytes);
            token
        })
    }

    fn forbidden(&self, headers: &HeaderMap) -> Option<UpstreamError> {
        self.client.forbidden(headers).map(|(fault, _)| fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_used_least_recently_are_given_up_until_the_bytes_are_within_the_limit() {
        let start = Instant::now();
        let known = |bytes: &[usize]| -> Known<usize> {
            let second = |number: usize| start + Duration::from_secs(number as u64);
            bytes.iter().enumerate().map(|(number, bytes)| ([number as u8; 32], (*bytes, second(number)))).collect()
        };
        for (bytes, left) in [
            (&[10, 20, 30][..], &[0, 1, 2][..]),
            (&[10, 60, 30], &[0, 1, 2]),
            (&[11, 60, 30], &[1, 2]),
            (&[0, 11, 60, 30], &[2, 3]),
            (&[10, 10, 200], &[2]),
            (&[], &[]),
        ] {
            let mut known = known(bytes);
            limit_bytes(&mut known, 100, |bytes| *bytes);
            let mut found: Vec<u8> = known.keys().map(|digest| digest[0]).collect();
            found.sort_unstable();
            assert_eq!(found, left, "{bytes:?}");
        }
    }
}
