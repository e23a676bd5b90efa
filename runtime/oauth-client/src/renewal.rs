//! Renews the access tokens of a login with its refresh token (RFC 6749, section 6).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ptc_log::{self as log, Level};
use ptc_secrets::Redactor;
use ptc_upstream::http::access_token::TokenSourceConfig;
use ptc_upstream::offload::offload;
use ptc_upstream::{Reason, UpstreamError};
use ring::digest::{Digest, SHA256, digest};
use url::Url;

use crate::answer::TokenResponse;
use crate::discovery;
use crate::endpoint::{RequestError, TokenEndpoint};
use crate::party::Party;
use crate::pin;
use crate::source::TABLE_BYTES;
use crate::store::{Found, Login, LoginKey, StoreError, TokenStore};

/// Time limit for waiting until another process has renewed the tokens. It is longer than a request.
const LOCK_TIMEOUT: Duration = Duration::from_secs(15);

/// Time limit for asking whether the upstream still names the issuer. Finding the token endpoint needs time after it.
const NAMES_TIMEOUT: Duration = Duration::from_secs(4);

/// Maximum characters of scopes that a message shows.
const MAX_SHOWN_SCOPE: usize = 500;

/// The login of one upstream.
pub(crate) struct Renewal {
    store: TokenStore,
    key: LoginKey,
    /// The URL of the upstream.
    upstream: &'static str,
    /// What a person runs.
    command: String,
    /// The digest of the access token that this process used last.
    last: Mutex<Option<Digest>>,
    /// The renewed login, if the store could not take it.
    unstored: Mutex<Option<CurrentLogin>>,
}

/// The login that is renewed next.
#[derive(Clone)]
struct CurrentLogin {
    login: Arc<Login>,
    /// The digest of the access token in the store. After a new login, the store has another one. It keeps this one if a process finds that
    /// its refresh token is refused.
    in_store: Digest,
}

impl CurrentLogin {
    /// Whether this was to take the place of a stored login.
    fn replaces(&self, stored: &Login) -> bool {
        self.in_store.as_ref() == digest(&SHA256, stored.access_token.as_bytes()).as_ref()
    }
}

impl Renewal {
    /// Finds the store. Nothing is read yet.
    ///
    /// # Errors
    ///
    /// There is no folder for the store.
    pub(crate) fn new(config: &TokenSourceConfig<'_>) -> Result<Renewal, UpstreamError> {
        let store = match &config.token_store {
            None => String::new(),
            Some(folder) => format!(" --store {}", folder.display()),
        };
        Ok(Renewal {
            store: TokenStore::new(config.token_store.clone()).map_err(|why| UpstreamError::new(Reason::AuthFailed, why))?,
            key: LoginKey::new(config.url, config.oauth),
            upstream: config.url,
            command: format!("ptc-compile login CONFIG {}{store}", config.upstream).trim_end().to_owned(),
            last: Mutex::default(),
            unstored: Mutex::default(),
        })
    }

    /// Returns a token, and when it was requested: that which another process has stored, or a new one. The redactor knows the tokens
    /// before they are used.
    ///
    /// # Errors
    ///
    /// Fails with the reason `auth_expired` if a person must log in. Other errors are those of the request.
    pub(crate) async fn renew(
        &self,
        endpoint: &TokenEndpoint,
        redactor: &Redactor,
    ) -> Result<(TokenResponse, Instant), RequestError> {
        let failed = |why: String| UpstreamError::unavailable(format!("no access token for '{}': {why}", endpoint.upstream()));
        let login = self.store.lock(&self.key, Instant::now() + LOCK_TIMEOUT).await.map_err(failed)?;
        let Some(CurrentLogin { login: stored, in_store }) = self.newest(login.read().await).map_err(failed)? else {
            return Err(self.expired(endpoint, "nothing is stored for it").into());
        };
        if let Some(found) = &stored.found
            && let Some(difference) =
                pin::difference(&endpoint.party().oauth, &found.issuer, &found.resource, !found.proof_key.is_empty())
        {
            return Err(self.expired(endpoint, &format!("the login is for {difference}")).into());
        }
        let (upstream, shared) = (endpoint.upstream(), redactor.clone());
        let stored = offload(table_bytes(&stored), move || {
            learn(&shared, upstream, &stored);
            stored
        });
        let stored = stored.await?;
        let is_new = self.remember(&stored.access_token);
        if let Some(age) = stored.fresh_since().filter(|_| is_new) {
            let proof_key = stored.found.as_ref().map(Found::proof_key).transpose();
            let damaged = |why| self.expired(endpoint, &format!("the stored login {why}"));
            let response = TokenResponse {
                access_token: stored.access_token.clone(),
                refresh_token: None,
                lifetime: stored.expires_in.map(Duration::from_secs),
                proof_key: proof_key.map_err(damaged)?.flatten(),
                redactor: None,
            };
            let now = Instant::now();
            return Ok((response, now.checked_sub(age).unwrap_or(now)));
        }
        if !stored.has_refresh_token() {
            return Err(self.expired(endpoint, "there is no valid refresh token").into());
        }
        let asked_at = Instant::now();
        let party = self.party(endpoint, &stored, redactor, asked_at + NAMES_TIMEOUT).await?;
        let url = endpoint.url_for(&party, &stored, asked_at + LOCK_TIMEOUT).await?;
        if url.as_str() != stored.token_endpoint {
            return Err(self.expired(endpoint, &format!("the issuer has another token endpoint now: {url}")).into());
        }
        let replacement = login.prepare().map_err(failed)?;
        let grant = [("grant_type", "refresh_token"), ("refresh_token", &stored.refresh_token)];
        match endpoint.request_with(&party, &url, &grant, redactor).await {
            Ok(response) => {
                let earlier = &stored.refresh_token;
                let renewed = Login::new(self.key.clone(), &url, &response, earlier, &stored.scope, stored.found.clone());
                let shared = redactor.clone();
                // An upstream could read a stored token, so that the redactor knows it first. A file is replaced in the same piece of work,
                // which a shutdown does not interrupt once it has begun: the server may have replaced the refresh token. It has the lock.
                let (login, renewed, committed) = offload(table_bytes(&renewed), move || {
                    learn(&shared, upstream, &renewed);
                    let committed = replacement.commit_file(&renewed);
                    (login, renewed, committed)
                })
                .await?;
                let committed = match committed {
                    Ok(Some(replacement)) => replacement.commit(&renewed).await,
                    committed => committed.map(drop),
                };
                self.keep(endpoint, CurrentLogin { login: Arc::new(renewed), in_store }, committed);
                drop(login);
                self.remember(&response.access_token);
                Ok((response, asked_at))
            }
            Err(error) if error.code.as_deref() == Some("invalid_client") && stored.found.is_some() => {
                Err(self.expired(endpoint, "the authorization server does not know the registered client any more").into())
            }
            Err(error) if error.code.as_deref() == Some("invalid_grant") => {
                // The refresh token is not sent again, also by other processes.
                let refused = Login {
                    key: self.key.clone(),
                    token_endpoint: stored.token_endpoint.clone(),
                    refresh_token: String::new(),
                    access_token: stored.access_token.clone(),
                    issued_at: stored.issued_at,
                    expires_in: Some(0),
                    scope: stored.scope.clone(),
                    found: stored.found.clone(),
                };
                *self.unstored() = None;
                replacement.commit(&refused).await.map_err(failed)?;
                Err(self.expired(endpoint, "the authorization server refuses the refresh token").into())
            }
            Err(error) => Err(error),
        }
    }

    fn unstored(&self) -> MutexGuard<'_, Option<CurrentLogin>> {
        self.unstored.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the login to renew: that of the store, or the one that was to take its place there and could not.
    ///
    /// # Errors
    ///
    /// The store cannot be read, and it has taken every renewed login.
    fn newest(&self, stored: Result<Option<Login>, StoreError>) -> Result<Option<CurrentLogin>, StoreError> {
        let mut unstored = self.unstored();
        let stored = match stored {
            Ok(stored) => stored,
            // A keyring may still be locked.
            Err(why) => return unstored.clone().map(Some).ok_or(why),
        };
        // After a new login or a logout, the store is right.
        unstored.take_if(|kept| stored.as_ref().is_none_or(|stored| !kept.replaces(stored)));
        Ok(unstored.clone().or_else(|| {
            let login = stored?;
            let in_store = digest(&SHA256, login.access_token.as_bytes());
            Some(CurrentLogin { login: Arc::new(login), in_store })
        }))
    }

    /// Keeps a renewed login in memory if it could not be stored: the authorization server may have replaced the refresh token in the store.
    /// The next renewal stores its successor.
    fn keep(&self, endpoint: &TokenEndpoint, renewed: CurrentLogin, stored: Result<(), StoreError>) {
        let kept = stored.err().map(|why| {
            let reason = format!(
                "{why}; this process keeps them in memory, and tries to store those of the next renewal: if it ends first, a person may have to run `{}`",
                self.command
            );
            log::line(Level::Warn, "renewed tokens not stored", &[("upstream", endpoint.upstream()), ("reason", &*reason)]);
            renewed
        });
        *self.unstored() = kept;
    }

    /// Returns the client and the authorization server of a login. The tokens belong to the issuer that has issued them: if the upstream
    /// names another one, a person must log in there.
    async fn party(
        &self,
        endpoint: &TokenEndpoint,
        stored: &Login,
        redactor: &Redactor,
        deadline: Instant,
    ) -> Result<Arc<Party>, UpstreamError> {
        let Some(found) = &stored.found else { return Ok(Arc::clone(endpoint.party())) };
        if let Ok(upstream) = Url::parse(self.upstream)
            && let Some(false) =
                discovery::still_names(&endpoint.fetcher(deadline), &upstream, &found.resource_metadata, &found.issuer).await
        {
            return Err(self.expired(endpoint, &format!("the upstream names another authorization server than {}", found.issuer)));
        }
        let party = Party::of_found(&endpoint.party().oauth, found, redactor);
        party.map(Arc::new).map_err(|why| self.expired(endpoint, &format!("the stored client {why}")))
    }

    /// Returns the error of a call for which the upstream needs more scopes, and records them for the next login. Scopes that the config
    /// has are a decision of the operator, to which the upstream adds none.
    pub(crate) fn insufficient_scope(&self, endpoint: &TokenEndpoint, scope: &str) -> UpstreamError {
        let is_chosen = !endpoint.party().oauth.scope.is_empty();
        let noted = if is_chosen { Ok(()) } else { self.store.note_scope(&self.key, scope) };
        let shown: String = scope.chars().take(MAX_SHOWN_SCOPE).collect();
        let what = if scope.is_empty() { "more scopes".to_owned() } else { format!("the scopes `{shown}`") };
        let problem = noted.err().map(|why| format!(", which cannot be stored ({why})")).unwrap_or_default();
        let (before, after) = if is_chosen { ("add them to `scopes`, then ", "") } else { ("", ", which requests them") };
        let message = format!(
            "the access token for '{}' is not sufficient: the upstream needs {what}{problem}; {before}a person must run `{}`{after}",
            endpoint.upstream(),
            self.command
        );
        UpstreamError::new(Reason::AuthExpired, message)
    }

    /// Whether the store has another access token than this process uses, as after a new login.
    pub(crate) async fn is_replaced(&self) -> bool {
        let Ok(Some(login)) = self.store.read(&self.key).await else { return false };
        if self.unstored().as_ref().is_some_and(|kept| kept.replaces(&login)) {
            return false;
        }
        let stored = digest(&SHA256, login.access_token.as_bytes());
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().is_some_and(|last| last.as_ref() != stored.as_ref())
    }

    /// Records the token that is used. Returns whether it is another one than before.
    fn remember(&self, access_token: &str) -> bool {
        let digest = digest(&SHA256, access_token.as_bytes());
        let earlier = self.last.lock().unwrap_or_else(PoisonError::into_inner).replace(digest);
        earlier.is_none_or(|earlier| earlier.as_ref() != digest.as_ref())
    }

    fn expired(&self, endpoint: &TokenEndpoint, why: &str) -> UpstreamError {
        let message = format!("no access token for '{}': {why}; a person must run `{}`", endpoint.upstream(), self.command);
        UpstreamError::new(Reason::AuthExpired, message)
    }
}

/// Makes a redactor know the secrets of a login.
fn learn(redactor: &Redactor, upstream: &str, login: &Login) {
    for token in [&login.refresh_token, &login.access_token] {
        redactor.add_issued(upstream, token);
    }
    // An upstream on this machine may be able to read the store. Under an owner of their own, these are not displaced by tokens.
    for secret in login.found.iter().flat_map(|found| [&found.client_secret, &found.proof_key]) {
        redactor.add_issued(&format!("login {upstream}"), secret);
    }
}

/// Returns the size of the tables that [`learn`] builds.
fn table_bytes(login: &Login) -> usize {
    let found = login.found.iter().map(|found| found.client_secret.len() + found.proof_key.len()).sum::<usize>();
    (login.refresh_token.len() + login.access_token.len() + found) * TABLE_BYTES
}
