//! The connections of an MCP server that is called on behalf of callers: one for each access token with which they come.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::fault::UpstreamError;
use crate::lifecycle::{Lifecycle, Live};

/// Maximum number of connections. The one that was used least recently is given up for the next caller.
const MAX_SESSIONS: usize = 128;
/// Time without a call after which a connection is given up, when the next call of any caller comes.
const MAX_IDLE: Duration = Duration::from_mins(15);

/// The connections, by the digest of the caller's token.
pub(crate) struct CallerSessions<C>(Mutex<Option<HashMap<[u8; 32], Known<C>>>>);

struct Known<C> {
    lifecycle: Arc<Lifecycle<C>>,
    used_at: Instant,
}

impl<C> Default for CallerSessions<C> {
    fn default() -> Self {
        CallerSessions(Mutex::new(Some(HashMap::new())))
    }
}

impl<C: Live> CallerSessions<C> {
    fn lock(&self) -> MutexGuard<'_, Option<HashMap<[u8; 32], Known<C>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the connection for the token with this digest. One that is given up ends when its calls have ended. The server is not told:
    /// the request for that would need the token of its caller, which is not kept for it.
    ///
    /// # Errors
    ///
    /// The server shuts down.
    pub(crate) fn get(&self, digest: [u8; 32]) -> Result<Arc<Lifecycle<C>>, UpstreamError> {
        let mut sessions = self.lock();
        let known = sessions.as_mut().ok_or_else(|| UpstreamError::unavailable("the server is shutting down"))?;
        let now = Instant::now();
        known.retain(|_, session| now.duration_since(session.used_at) < MAX_IDLE);
        if !known.contains_key(&digest) {
            let oldest = known.iter().min_by_key(|(_, session)| session.used_at).map(|(digest, _)| *digest);
            if let Some(oldest) = oldest.filter(|_| known.len() >= MAX_SESSIONS) {
                known.remove(&oldest);
            }
        }
        let session = known.entry(digest).or_insert_with(|| Known { lifecycle: Lifecycle::new(), used_at: now });
        session.used_at = now;
        Ok(Arc::clone(&session.lifecycle))
    }

    /// Closes all connections permanently.
    pub(crate) fn close(&self) {
        for (_, session) in self.lock().take().into_iter().flatten() {
            session.lifecycle.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fake;

    impl Live for Fake {
        fn failure(&self) -> Option<UpstreamError> {
            None
        }
    }

    fn digest(number: usize) -> [u8; 32] {
        let mut digest = [0; 32];
        digest[..8].copy_from_slice(&number.to_be_bytes());
        digest
    }

    #[test]
    fn each_token_has_a_connection_and_the_number_is_limited() {
        let sessions = CallerSessions::<Fake>::default();
        let first = sessions.get(digest(0)).expect("a connection");
        assert!(Arc::ptr_eq(&first, &sessions.get(digest(0)).expect("a connection")));
        for number in 1..=MAX_SESSIONS {
            assert!(!Arc::ptr_eq(&first, &sessions.get(digest(number)).expect("a connection")));
        }
        assert_eq!(sessions.lock().as_ref().map(HashMap::len), Some(MAX_SESSIONS));
        assert!(!Arc::ptr_eq(&first, &sessions.get(digest(0)).expect("a connection")), "the oldest was given up");
        sessions.close();
        assert!(sessions.get(digest(1)).is_err());
    }
}
