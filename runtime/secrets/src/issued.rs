//! Secrets that are obtained while the server runs, such as access tokens.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use zeroize::Zeroizing;

use super::MIN_SECRET_CHARS;
use super::encodings::EncodedSecrets;
use super::patterns::Patterns;

/// Maximum number of secrets of one owner that are kept: the current access and refresh tokens and their predecessors, which calls that
/// began earlier may still send. The oldest is forgotten first.
const MAX_PER_OWNER: usize = 8;

/// The issued secrets of a deployment. All clones of its redactor share them.
///
/// The patterns are separate from those of the resolved secrets, so that a new token does not rebuild the tables of the others. Until
/// the first token is issued, a search costs one load of a flag.
#[derive(Default)]
pub(super) struct IssuedSecrets {
    any: AtomicBool,
    patterns: RwLock<Option<Arc<Patterns>>>,
    /// Locked while patterns are built, so that two additions do not overwrite each other.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The secrets of each owner, oldest first.
    owners: Vec<(String, VecDeque<Zeroizing<String>>)>,
    /// Sets that receive the same secrets.
    followers: Vec<Arc<IssuedSecrets>>,
}

impl IssuedSecrets {
    /// Returns the patterns, if any secret was issued.
    pub(super) fn patterns(&self) -> Option<Arc<Patterns>> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        self.patterns.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes `follower` receive the secrets of this set, and those that are added later.
    pub(super) fn share_with(&self, follower: &Arc<IssuedSecrets>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        for (owner, kept) in &state.owners {
            for secret in kept {
                follower.add(owner, secret);
            }
        }
        state.followers.push(Arc::clone(follower));
    }

    /// Adds a secret of `owner`. One that is too short to be redacted is ignored.
    pub(super) fn add(&self, owner: &str, secret: &str) {
        if secret.chars().count() < MIN_SECRET_CHARS {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        for follower in &state.followers {
            follower.add(owner, secret);
        }
        let owners = &mut state.owners;
        let at = owners.iter().position(|(name, _)| name == owner).unwrap_or_else(|| {
            owners.push((owner.to_owned(), VecDeque::new()));
            owners.len() - 1
        });
        let Some((_, kept)) = owners.get_mut(at) else { return };
        match kept.iter().position(|known| known.as_str() == secret) {
            // A token that is issued again is the newest, and the patterns contain it already.
            Some(at) => {
                let known = kept.remove(at);
                kept.extend(known);
                return;
            }
            None => kept.push_back(Zeroizing::new(secret.to_owned())),
        }
        if kept.len() > MAX_PER_OWNER {
            kept.pop_front();
        }
        let mut encodings = EncodedSecrets::default();
        for secret in owners.iter().flat_map(|(_, kept)| kept) {
            encodings.add(secret);
        }
        encodings.sort_and_dedup();
        let patterns = Arc::new(Patterns::new(encodings));
        *self.patterns.write().unwrap_or_else(PoisonError::into_inner) = Some(patterns);
        self.any.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{REDACTED, Redactor, StreamRedactor};

    const FIRST: &str = "not-a-real-token-one";

    #[test]
    fn issued_secret_is_redacted_by_earlier_clones_and_derived_redactors() {
        let redactor = Redactor::new(["resolved-s3cret"]);
        let (clone, derived) = (redactor.clone(), redactor.with("another-s3cret"));
        assert_eq!(clone.redact_str(FIRST), FIRST);
        redactor.add_issued("crm", FIRST);
        for redactor in [&redactor, &clone, &derived] {
            assert_eq!(redactor.redact_str(&format!("{FIRST} resolved-s3cret")), format!("{REDACTED} {REDACTED}"));
            let json = redactor.redact_bytes(format!(r#"{{"a":["{FIRST}",1],"b":"resolved-s3cret"}}"#).into_bytes());
            assert_eq!(String::from_utf8(json).unwrap(), format!(r#"{{"a":["{REDACTED}",1],"b":"{REDACTED}"}}"#));
        }
        assert_eq!(derived.redact_str("another-s3cret"), REDACTED);
        let mut stream = StreamRedactor::new(clone);
        let mut sent = stream.feed(b"x not-a-real-");
        sent.extend(stream.feed(b"token-one y"));
        sent.extend(stream.finish());
        assert_eq!(String::from_utf8(sent).unwrap(), format!("x {REDACTED} y"));
    }

    #[test]
    fn later_redactor_receives_the_issued_secrets_of_an_earlier_one() {
        let (earlier, later) = (Redactor::none(), Redactor::new(["resolved-s3cret"]));
        earlier.add_issued("crm", FIRST);
        earlier.share_issued_with(&later);
        earlier.share_issued_with(&earlier.clone());
        earlier.add_issued("crm", "not-a-real-token-two");
        assert_eq!(later.redact_str(&format!("{FIRST} not-a-real-token-two")), format!("{REDACTED} {REDACTED}"));
    }

    #[test]
    fn only_the_newest_secrets_of_each_owner_are_kept() {
        let redactor = Redactor::none();
        let token = |number: usize| format!("not-a-real-token-{number:04}");
        redactor.add_issued("mail", FIRST);
        redactor.add_issued("crm", "short");
        for number in 0..10 {
            redactor.add_issued("crm", &token(number));
            redactor.add_issued("crm", &token(0));
        }
        let redacted = |text: &str| redactor.redact_str(text) == REDACTED;
        assert!(redacted(FIRST), "another owner keeps its own");
        assert!(redacted(&token(0)), "it was issued again and again");
        assert!(redacted(&token(5)) && redacted(&token(3)) && !redacted(&token(1)) && !redacted("short"));
    }
}
