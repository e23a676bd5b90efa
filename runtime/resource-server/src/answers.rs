//! Answers of the authorization server about opaque tokens, which are kept for a short time by the digest of the token.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ptc_runtime::server::http::access_token::TokenError;
use ptc_runtime::server::identity::Identity;

/// Time for which an answer is used.
const MAX_AGE: Duration = Duration::from_secs(30);
/// Time for which a token counts as recently active. An active token is asked about again and again, and must not wait behind guesses.
const KNOWN_AGE: Duration = Duration::from_hours(1);
/// Maximum number of answers that are kept.
const MAX_ANSWERS: usize = 10_000;
/// Maximum number of answers that are kept while the next one refuses its token. Anybody can cause refusals, which must not displace the
/// others.
const MAX_REFUSALS: usize = MAX_ANSWERS / 2;

/// The identity of a token, or why it is refused.
pub(crate) type Answer = Result<Identity, TokenError>;

type Digest = [u8; 32];

/// The kept answers, each with the time at which it was received.
#[derive(Default)]
pub(crate) struct Answers(Mutex<HashMap<Digest, (Instant, Answer)>>);

impl Answers {
    /// Returns the answer about a token, if it may still be used.
    pub(crate) fn get(&self, digest: &Digest) -> Option<Answer> {
        self.all().get(digest).filter(|(at, _)| at.elapsed() < MAX_AGE).map(|(_, answer)| answer.clone())
    }

    /// Whether the last answer about a token was that it is active, and is recent enough to show that the token was not guessed.
    pub(crate) fn was_active(&self, digest: &Digest) -> bool {
        self.all().get(digest).is_some_and(|(at, answer)| answer.is_ok() && at.elapsed() < KNOWN_AGE)
    }

    /// Keeps an answer that was received now, if there is room.
    pub(crate) fn keep(&self, digest: Digest, answer: Answer) {
        self.keep_since(digest, answer, Instant::now());
    }

    fn keep_since(&self, digest: Digest, answer: Answer, at: Instant) {
        let mut all = self.all();
        // A token that was withdrawn is no longer known, also without room.
        all.remove(&digest);
        // Active tokens that are in use take precedence over those that were, and these over refusals.
        let (most, ages) =
            if answer.is_ok() { (MAX_ANSWERS, &[KNOWN_AGE, MAX_AGE][..]) } else { (MAX_REFUSALS, &[KNOWN_AGE][..]) };
        for of_active in ages {
            if all.len() >= most {
                all.retain(|_, (at, answer)| at.elapsed() < if answer.is_ok() { *of_active } else { MAX_AGE });
            }
        }
        if all.len() < most {
            all.insert(digest, (at, answer));
        }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Digest, (Instant, Answer)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFUSED: Answer = Err(TokenError::Scope);

    fn active() -> Identity {
        Identity::clone(&Identity::of_owner("oauth:https://id.example alice"))
    }

    fn digest(number: usize) -> Digest {
        let mut digest = [0; 32];
        digest[..8].copy_from_slice(&number.to_le_bytes());
        digest
    }

    #[test]
    fn active_token_stays_known_longer_than_its_answer() {
        let (answers, token) = (Answers::default(), digest(1));
        let keep = |answer, age| answers.keep_since(token, answer, Instant::now().checked_sub(age).unwrap_or_else(Instant::now));
        keep(Ok(active()), Duration::ZERO);
        assert!(answers.get(&token).is_some_and(|answer| answer.is_ok()) && answers.was_active(&token));
        keep(Ok(active()), MAX_AGE);
        assert!(answers.get(&token).is_none() && answers.was_active(&token));
        keep(REFUSED, Duration::ZERO);
        assert!(answers.get(&token).is_some_and(|answer| answer.is_err()) && !answers.was_active(&token));
    }

    #[test]
    fn refusals_displace_no_active_token() {
        let answers = Answers::default();
        answers.keep(digest(0), Ok(active()));
        let old = Instant::now().checked_sub(MAX_AGE).unwrap_or_else(Instant::now);
        answers.keep_since(digest(1), Ok(active()), old);
        for guess in 2..MAX_REFUSALS + 1000 {
            answers.keep(digest(guess), REFUSED);
        }
        assert!(answers.get(&digest(0)).is_some() && answers.was_active(&digest(1)));
        assert_eq!(answers.all().len(), MAX_REFUSALS);
        answers.keep(digest(2 * MAX_ANSWERS), Ok(active()));
        assert!(answers.get(&digest(2 * MAX_ANSWERS)).is_some(), "there is room for active tokens");
    }
}
