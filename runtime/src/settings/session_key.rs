//! The secrets that seal sessions in a store.

use std::fmt;

use zeroize::Zeroizing;

use super::Settings;
use super::http::AuthToken;

/// Minimum length of a key in bytes.
const MIN_KEY_BYTES: usize = 32;

/// One or more secrets, the first of which seals. All of them open what was sealed with them, so that the secret can be replaced
/// without the loss of sessions. The `Debug` output omits them, and they are overwritten when they are dropped.
#[derive(Clone)]
pub struct SessionKeys(Vec<Zeroizing<String>>);

impl SessionKeys {
    /// Parses keys between white space, usually one per line. Returns `None` if there is none, or if one is too short or contains
    /// characters other than printable ASCII.
    pub fn parse(text: &str) -> Option<SessionKeys> {
        let valid = |key: &str| key.len() >= MIN_KEY_BYTES && key.bytes().all(|byte| byte.is_ascii_graphic());
        let keys: Vec<&str> = text.split_whitespace().collect();
        let all_valid = !keys.is_empty() && keys.iter().copied().all(valid);
        all_valid.then(|| SessionKeys(keys.into_iter().map(|key| Zeroizing::new(key.to_owned())).collect()))
    }

    /// Iterates over the secrets. The first one seals.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|key| key.as_str())
    }
}

impl From<&AuthToken> for SessionKeys {
    fn from(token: &AuthToken) -> SessionKeys {
        SessionKeys(vec![Zeroizing::new(token.text().to_owned())])
    }
}

impl fmt::Debug for SessionKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionKeys({})", self.0.len())
    }
}

impl Settings {
    /// Returns the keys of sessions in a store: those that the operator gave, or the token of HTTP clients. A generated token is not
    /// used, since it is lost when the process ends.
    pub fn sealing_keys(&self) -> Option<SessionKeys> {
        let token = self.http.auth_token.as_ref().filter(|_| self.http.on && !self.http.token_is_generated);
        self.session_keys.clone().or_else(|| token.map(SessionKeys::from))
    }
}

#[cfg(test)]
mod tests {
    use super::SessionKeys;

    #[test]
    fn session_keys_are_long_printable_and_hidden() {
        let (new, old) = ("n".repeat(32), "o".repeat(40));
        let keys = SessionKeys::parse(&format!("{new}\n{old}\n")).expect("two keys");
        assert_eq!(keys.iter().collect::<Vec<_>>(), [new.as_str(), old.as_str()]);
        assert_eq!(format!("{keys:?}"), "SessionKeys(2)");
        for wrong in ["", "\n", "short", &format!("{new}\nshort"), &"é".repeat(32)] {
            assert!(SessionKeys::parse(wrong).is_none(), "{wrong}");
        }
    }
}
