//! Authentication with bearer tokens. Each token is verified first, and only replies to wrong ones are delayed after repeated failures:
//! wrong tokens of an address do not make its valid ones wait. An opaque token that the authorization server has to be asked about is the
//! exception, since guesses must not cause requests without limit: it waits for its turn, and gets 503 if that takes too long.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use hyper::header::{AUTHORIZATION, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{HeaderMap, StatusCode};

use super::access_token::{Inquiry, TokenError, TokenVerifier};
use super::reply::Reply;
use super::route;
use super::throttle::Throttle;
use super::tokens_file::Tokens;
use crate::digest::{hex, sha256};
use crate::log::{self, Level};
use crate::server::identity::Identity;
use crate::settings::HttpSettings;
use crate::settings::http::MIN_TOKEN_BYTES;
use crate::upstream::caller_token::CallerToken;

/// The owner of all clients that need no token, or only a generated one.
const LOOPBACK: &str = "loopback";

/// The client at the other end of a connection.
#[derive(Debug, Clone)]
pub struct Peer {
    /// Its address.
    pub address: IpAddr,
    /// The identity of the certificate that it has shown.
    pub certificate: Option<Arc<Identity>>,
}

impl Peer {
    /// Creates a client that has shown no certificate.
    pub fn at(address: IpAddr) -> Peer {
        Peer { address, certificate: None }
    }
}

/// Authenticates requests.
pub struct Authenticator {
    /// The single token of the settings with its owner.
    single: Option<([u8; 32], Arc<Identity>)>,
    file: Option<TokensFile>,
    /// Verifies access tokens of an authorization server.
    verifier: Option<Arc<dyn TokenVerifier>>,
    /// The identity of all clients if no credential is required.
    open: Option<Arc<Identity>>,
    accepts_certificates: bool,
    throttle: Option<Throttle>,
}

/// The file of `--http-tokens-file`, and the tokens that were valid when it was last read without a fault.
struct TokensFile {
    path: PathBuf,
    tokens: Mutex<Arc<Tokens>>,
}

/// The reason why authentication fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Denied {
    /// The request has no token. It is not counted as a failure, since clients send such a request to receive the challenge.
    Missing,
    /// The token is wrong. The reason is only for the log.
    Invalid(&'static str),
    /// The token is wrong, after too many failures of its address. Contains the seconds until a failure is answered without a
    /// delay.
    Throttled(u64),
    /// The token is genuine, but not acceptable. It is not counted as a failure: every token expires, and its client must receive
    /// the challenge.
    Unacceptable(&'static str),
    /// The token lacks a required scope.
    Scope,
    /// The authorization server refuses to say anything about the token. It is counted as a failure: each such token has caused a
    /// request.
    Unanswered,
    /// The token cannot be verified now.
    Unavailable,
}

impl Authenticator {
    /// Creates an authenticator with the credentials of the settings. `verifier` verifies access tokens.
    ///
    /// # Errors
    ///
    /// Returns a sentence if the file of tokens is invalid.
    pub fn new(settings: &HttpSettings, verifier: Option<Arc<dyn TokenVerifier>>) -> Result<Authenticator, String> {
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
        Ok(Authenticator { single, file, verifier, open, accepts_certificates: settings.tls_client_ca.is_some(), throttle })
    }

    /// Returns the identity of the request's token, or without a token that of the client's certificate. Takes up to a second for a
    /// wrong token after repeated failures of its address.
    ///
    /// # Errors
    ///
    /// Returns the reply to a request without the required token, or with a wrong one.
    pub async fn authenticate(&self, peer: &Peer, headers: &HeaderMap) -> Result<Arc<Identity>, Reply> {
        // Clients behind one proxy share an address, so that a token of an address that guesses is verified too.
        let guesses = self.throttle.as_ref().is_some_and(|throttle| throttle.is_blocked(peer.address, Instant::now()));
        let denied = match self.identify(peer, headers, if guesses { Inquiry::Limited } else { Inquiry::Permitted }).await {
            Ok(identity) => return Ok(identity),
            Err(denied) => self.throttled(peer.address, denied, Instant::now()),
        };
        if let (Denied::Throttled(_), Some(throttle)) = (denied, &self.throttle) {
            throttle.delay().await;
        }
        Err(self.refusal(peer.address, denied))
    }

    /// Counts a failure. Returns the reason for the reply.
    fn throttled(&self, peer: IpAddr, denied: Denied, now: Instant) -> Denied {
        let throttle = self.throttle.as_ref().filter(|_| matches!(denied, Denied::Invalid(_) | Denied::Unanswered));
        throttle.and_then(|throttle| throttle.note_failure(peer, now)).map_or(denied, Denied::Throttled)
    }

    /// Returns the identity of a request. Failures are not counted.
    async fn identify(&self, peer: &Peer, headers: &HeaderMap, inquiry: Inquiry) -> Result<Arc<Identity>, Denied> {
        if let Some(identity) = &self.open {
            return Ok(Arc::clone(identity));
        }
        // A client with a certificate that sends a token speaks for the owner of the token.
        let Some(shown) = headers.get(AUTHORIZATION) else { return peer.certificate.clone().ok_or(Denied::Missing) };
        let token = bearer(shown.as_bytes()).ok_or(Denied::Invalid("the credential is not a bearer token"))?;
        let single = self.single.as_ref().filter(|(expected, _)| is_same(expected, &sha256(token)));
        let found = single.map(|(_, identity)| Arc::clone(identity)).or_else(|| self.file.as_ref()?.find(token));
        match (found, &self.verifier) {
            (Some(identity), _) => Ok(identity),
            (None, Some(verifier)) => verify(&**verifier, token, inquiry).await,
            (None, None) => Err(Denied::Invalid("the token is not known")),
        }
    }

    /// Returns the identity of a request that has a valid credential or needs none. Failures are not counted, so that the authorization
    /// server is not asked.
    pub(super) async fn known(&self, peer: &Peer, headers: &HeaderMap) -> Option<Arc<Identity>> {
        self.identify(peer, headers, Inquiry::Never).await.ok()
    }

    /// Whether clients need no credential.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Whether there can be more than one owner.
    pub fn has_owners(&self) -> bool {
        self.file.is_some() || self.verifier.is_some() || self.accepts_certificates
    }

    /// Returns the metadata of the protected resource, if a path is that of the metadata.
    pub(super) fn metadata(&self, path: &str) -> Option<&str> {
        self.verifier.as_ref()?.metadata(path)
    }

    /// Returns the challenge to a client whose access token lacks scopes that the policy demands. It also names the scopes that the
    /// token has, since a client would otherwise request a token without them.
    pub(super) fn scope_challenge(&self, identity: &Identity, missing: &[String]) -> Option<String> {
        let verifier = self.verifier.as_ref().filter(|_| !missing.is_empty() && !identity.claims.is_empty())?;
        let scopes = [identity.scopes.as_slice(), missing].concat();
        Some(verifier.challenge(Some(("insufficient_scope", "the access token lacks scopes for this program")), &scopes))
    }

    /// Returns the reply to a request whose authentication failed, and logs the reason.
    fn refusal(&self, peer: IpAddr, denied: Denied) -> Reply {
        let verifier = self.verifier.as_ref();
        let (status, error) = match denied {
            Denied::Missing => (StatusCode::UNAUTHORIZED, None),
            Denied::Invalid(_) => (StatusCode::UNAUTHORIZED, Some(("invalid_token", "the access token is not valid"))),
            Denied::Unacceptable(why) => (StatusCode::UNAUTHORIZED, Some(("invalid_token", why))),
            Denied::Scope => (StatusCode::FORBIDDEN, Some(("insufficient_scope", "the access token lacks a scope"))),
            Denied::Unanswered | Denied::Unavailable => {
                return route::unavailable("access tokens cannot be verified at the moment");
            }
            Denied::Throttled(seconds) => {
                log::line(Level::Warn, "http_auth_rate_limited", &[("source", &peer.to_string())]);
                return Reply::empty(StatusCode::TOO_MANY_REQUESTS).with(RETRY_AFTER, &seconds.to_string());
            }
        };
        if let (Some(_), Denied::Invalid(why) | Denied::Unacceptable(why)) = (verifier, denied) {
            log::line(Level::Info, "access_token_refused", &[("reason", why), ("source", &peer.to_string())]);
        }
        let challenge = match (verifier, error) {
            (Some(verifier), error) => verifier.challenge(error, &[]),
            (None, None) => "Bearer".to_owned(),
            (None, Some((error, _))) => format!("Bearer error=\"{error}\""),
        };
        Reply::empty(status).with(WWW_AUTHENTICATE, &challenge)
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

/// Returns the identity of an access token.
async fn verify(verifier: &dyn TokenVerifier, token: &[u8], inquiry: Inquiry) -> Result<Arc<Identity>, Denied> {
    let token = std::str::from_utf8(token).map_err(|_| Denied::Invalid("the token is not a text"))?;
    // The verifier keeps answers, but not tokens.
    let with_token = |identity| Arc::new(Identity { token: CallerToken::new(token, sha256), ..identity });
    verifier.verify(token, inquiry).await.map(with_token).map_err(|error| match error {
        TokenError::Untrusted(why) => Denied::Invalid(why),
        TokenError::Unacceptable(why) => Denied::Unacceptable(why),
        TokenError::Scope => Denied::Scope,
        TokenError::Unanswered => Denied::Unanswered,
        TokenError::Unavailable => Denied::Unavailable,
    })
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
            auth_token: token.and_then(AuthToken::parse),
            auth_rate_limit_window: Duration::from_mins(1),
            auth_rate_limit_max_failures: 3,
            auth_rate_limit_block: Duration::from_secs(30),
            ..HttpSettings::default()
        };
        Authenticator::new(&settings, None).expect("there is no file")
    }

    /// Counts a failure without its delay.
    async fn check(authenticator: &Authenticator, peer: IpAddr, headers: &HeaderMap, now: Instant) -> Option<Denied> {
        authenticator
            .identify(&Peer::at(peer), headers, Inquiry::Permitted)
            .await
            .err()
            .map(|denied| authenticator.throttled(peer, denied, now))
    }

    const SCHEME: Denied = Denied::Invalid("the credential is not a bearer token");
    const UNKNOWN: Denied = Denied::Invalid("the token is not known");

    fn headers(authorization: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(value) = authorization {
            headers.insert(AUTHORIZATION, value.parse().expect("a header's value"));
        }
        headers
    }

    #[tokio::test]
    async fn bearer_tokens_are_compared_completely() {
        let peer = IpAddr::from([127, 0, 0, 1]);
        let now = Instant::now();
        for (shown, expected) in [
            (None, Some(Denied::Missing)),
            (Some("Basic eDp5"), Some(SCHEME)),
            (Some("Bearer"), Some(SCHEME)),
            (Some("Bearer 0123456789abcdef0123456789abcdeF"), Some(UNKNOWN)),
            (Some("Bearer 0123456789abcdef0123456789abcdef"), None),
            (Some("bearer  0123456789abcdef0123456789abcdef "), None),
        ] {
            let authenticator = authenticator(Some(TOKEN));
            assert_eq!(check(&authenticator, peer, &headers(shown), now).await, expected, "{shown:?}");
            assert_eq!(authenticator.known(&Peer::at(peer), &headers(shown)).await.is_some(), expected.is_none(), "{shown:?}");
        }
        assert!(check(&authenticator(None), peer, &headers(None), now).await.is_none());
    }

    #[tokio::test]
    async fn wrong_tokens_are_throttled_and_the_valid_one_always_passes() {
        let authenticator = authenticator(Some(TOKEN));
        let (peer, other) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let (valid, wrong) = (headers(Some("Bearer 0123456789abcdef0123456789abcdef")), headers(Some("Bearer x")));
        for _ in 0..100 {
            assert_eq!(check(&authenticator, peer, &headers(None), at(0)).await, Some(Denied::Missing));
        }
        for _ in 0..3 {
            assert_eq!(check(&authenticator, peer, &wrong, at(1)).await, Some(UNKNOWN));
        }
        assert_eq!(check(&authenticator, peer, &wrong, at(1)).await, Some(Denied::Throttled(30)));
        assert!(check(&authenticator, peer, &valid, at(2)).await.is_none());
        assert_eq!(check(&authenticator, peer, &wrong, at(2)).await, Some(Denied::Throttled(29)));
        assert_eq!(check(&authenticator, other, &wrong, at(2)).await, Some(UNKNOWN));
        // After the window and the delay have passed, counting restarts.
        assert_eq!(check(&authenticator, peer, &wrong, at(70)).await, Some(UNKNOWN));
    }
}
