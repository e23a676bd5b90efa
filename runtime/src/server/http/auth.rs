//! Authentication with bearer tokens. A valid token is always accepted at once. Replies to wrong tokens are delayed after
//! repeated failures.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;

use super::throttle::Throttle;
use super::tokens_file::Tokens;
use crate::digest::{hex, sha256};
use crate::server::identity::Identity;
use crate::settings::HttpSettings;
use crate::settings::http::MIN_TOKEN_BYTES;

/// The owner of all clients that need no token, or only a generated one.
const LOOPBACK: &str = "loopback";

/// Authenticates requests.
pub struct Authenticator {
    /// The single token of the settings with its owner.
    single: Option<([u8; 32], Arc<Identity>)>,
    file: Option<TokensFile>,
    /// The identity of all clients if no credential is required.
    open: Option<Arc<Identity>>,
    throttle: Option<Throttle>,
}

/// The file of `--http-tokens-file`, and the tokens that were valid when it was last read without a fault.
struct TokensFile {
    path: PathBuf,
    tokens: Mutex<Arc<Tokens>>,
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

impl Authenticator {
    /// Creates an authenticator with the credentials of the settings.
    ///
    /// # Errors
    ///
    /// Returns a sentence if the file of tokens is invalid.
    pub fn new(settings: &HttpSettings) -> Result<Authenticator, String> {
        // A token identifies one owner, whose sessions are found again after a restart and by every replica with the same token.
        // A generated token changes with each start. Its owner is therefore the machine, as without a token.
        let single = settings.auth_token.as_ref().map(|token| {
            let digest = sha256(token.text().as_bytes());
            let owner = if settings.token_is_generated { LOOPBACK.to_owned() } else { format!("token:{}", hex(&digest)) };
            (digest, Identity::of_owner(&owner))
        });
        let file = settings.tokens_file.as_ref().map(|path| TokensFile::read(path.clone()));
        let file = file.transpose().map_err(|why| format!("--http-tokens-file: {why}"))?;
        let open = (!settings.has_credentials()).then(|| Identity::of_owner(LOOPBACK));
        let throttle = (settings.auth_rate_limit && open.is_none()).then(|| Throttle::new(settings));
        Ok(Authenticator { single, file, open, throttle })
    }

    /// Returns the identity of the request's token. Takes up to a second for a wrong token after repeated failures of its
    /// address.
    ///
    /// # Errors
    ///
    /// Returns [`Denied`] if a token is required and the request has none, or a wrong one.
    pub async fn authenticate(&self, peer: IpAddr, headers: &HeaderMap) -> Result<Arc<Identity>, Denied> {
        let checked = self.check(peer, headers, Instant::now());
        if let (Err(Denied::Throttled(_)), Some(throttle)) = (&checked, &self.throttle) {
            throttle.delay().await;
        }
        checked
    }

    /// Like [`Authenticator::authenticate`], without the delay.
    fn check(&self, peer: IpAddr, headers: &HeaderMap, now: Instant) -> Result<Arc<Identity>, Denied> {
        let denied = match self.identify(headers) {
            Err(Denied::Invalid) => Denied::Invalid,
            other => return other,
        };
        let throttled = self.throttle.as_ref().and_then(|throttle| throttle.note_failure(peer, now));
        Err(throttled.map_or(denied, Denied::Throttled))
    }

    /// Returns the identity of the request's token. Failures are not counted.
    fn identify(&self, headers: &HeaderMap) -> Result<Arc<Identity>, Denied> {
        if let Some(identity) = &self.open {
            return Ok(Arc::clone(identity));
        }
        let shown = headers.get(AUTHORIZATION).ok_or(Denied::Missing)?;
        let token = bearer(shown.as_bytes()).ok_or(Denied::Invalid)?;
        let single = self.single.as_ref().filter(|(expected, _)| is_same(expected, &sha256(token)));
        let found = single.map(|(_, identity)| Arc::clone(identity)).or_else(|| self.file.as_ref()?.find(token));
        found.ok_or(Denied::Invalid)
    }

    /// Whether a request has a valid token or needs none. Failures are not counted.
    pub fn knows(&self, headers: &HeaderMap) -> bool {
        self.identify(headers).is_ok()
    }

    /// Whether clients need no credential.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Whether there can be more than one owner.
    pub fn has_owners(&self) -> bool {
        self.file.is_some()
    }

    /// Reads the file of tokens again. Returns the number of its tokens, or `None` if there is no file.
    ///
    /// # Errors
    ///
    /// Returns a sentence if the file is invalid. The earlier tokens stay valid.
    pub fn reload(&self) -> Result<Option<usize>, String> {
        let Some(file) = &self.file else { return Ok(None) };
        let tokens = Tokens::read(&file.path)?;
        let count = tokens.count();
        *file.tokens.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(tokens);
        Ok(Some(count))
    }
}

impl TokensFile {
    fn read(path: PathBuf) -> Result<TokensFile, String> {
        let tokens = Mutex::new(Arc::new(Tokens::read(&path)?));
        Ok(TokensFile { path, tokens })
    }

    /// Returns the identity of a token. Its length is checked because a digest does not show whether its token can be guessed.
    fn find(&self, token: &[u8]) -> Option<Arc<Identity>> {
        let tokens = Arc::clone(&self.tokens.lock().unwrap_or_else(PoisonError::into_inner));
        tokens.find(token).filter(|_| token.len() >= MIN_TOKEN_BYTES).cloned()
    }
}

/// Returns the token of `Bearer token`. The scheme is case-insensitive.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

/// Compares digests in constant time, so that the duration reveals nothing about the expected one.
pub(super) fn is_same(one: &[u8; 32], other: &[u8; 32]) -> bool {
    one.iter().zip(other).fold(0, |differ, (a, b)| std::hint::black_box(differ | (a ^ b))) == 0
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
        Authenticator::new(&settings).expect("there is no file")
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
