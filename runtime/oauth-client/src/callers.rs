//! The sources of the callers on whose behalf one upstream is called.
//!
//! A source belongs to one access token of a caller, so that no caller gets a token that was issued for another one, nor one for an earlier
//! token with more rights. A source keeps the digest of the caller's token, and not the token.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ptc_upstream::UpstreamError;
use ptc_upstream::caller_token;
use ptc_upstream::http::access_token::{AccessToken, TokenFuture, TokenSource};
use reqwest::header::HeaderMap;

use crate::source::{Client, Source};

/// Maximum number of sources of one upstream. The one that was used least recently is given up for the next caller.
const MAX_CALLERS: usize = 128;
/// Time without a call after which a source is given up, when the next call of any caller comes. Its tokens take memory, also those that have expired.
const MAX_IDLE: Duration = Duration::from_mins(15);

/// The sources of the callers of one upstream.
pub(crate) struct Callers {
    client: Arc<Client>,
    /// The sources by the digest of the caller's token, with the time of the last call.
    known: Mutex<HashMap<[u8; 32], (Source, Instant)>>,
}

impl Callers {
    /// Creates a set without callers.
    pub(crate) fn new(client: Arc<Client>) -> Callers {
        Callers { client, known: Mutex::default() }
    }

    /// Returns the source for the caller's token with this digest.
    fn source(&self, digest: [u8; 32]) -> Source {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
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
}

impl TokenSource for Callers {
    fn token<'s>(&'s self, refused: Option<&'s AccessToken>, deadline: Instant) -> TokenFuture<'s> {
        Box::pin(async move {
            let caller = caller_token::current().ok_or_else(|| caller_token::missing(self.client.endpoint.upstream()))?;
            self.source(caller.digest()).token_for(Some(caller), refused, deadline).await
        })
    }

    fn forbidden(&self, headers: &HeaderMap) -> Option<UpstreamError> {
        self.client.forbidden(headers).map(|(fault, _)| fault)
    }
}
