//! The tokens of logins: a file with mode 0600 for each login, which is replaced atomically.
//!
//! A file belongs to one upstream at one authorization server, with one client and one set of scopes: see [`LoginKey`]. A lock beside it
//! makes processes that share the folder renew one at a time. The keyring of the system is not used: a server without a session of a
//! person, such as a container, cannot open it, and the compiler and the server must find the same tokens.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ptc_catalog::OAuth2;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use url::Url;
use zeroize::{Zeroize as _, Zeroizing};

use crate::answer::TokenResponse;
use crate::challenge;
use crate::proof::ProofKey;

/// Interval at which a lock is tried again.
const LOCK_INTERVAL: Duration = Duration::from_millis(20);

/// What a login is bound to. A login with another key is not used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoginKey {
    /// The origin of the upstream, so that a token does not reach another host.
    upstream: String,
    issuer: String,
    token_url: String,
    client_id: String,
    scope: String,
    resource: String,
}

impl LoginKey {
    /// Returns the key of an upstream at `url`.
    pub(crate) fn new(url: &str, oauth: &OAuth2) -> LoginKey {
        LoginKey {
            upstream: Url::parse(url).map(|url| url.origin().ascii_serialization()).unwrap_or_default(),
            issuer: oauth.issuer.to_owned(),
            token_url: oauth.token_url.to_owned(),
            client_id: oauth.client_id.to_owned(),
            scope: oauth.scope.to_owned(),
            resource: oauth.resource.to_owned(),
        }
    }

    /// Returns the name of the file: a digest of all parts, each with its length.
    fn file_name(&self) -> String {
        let LoginKey { upstream, issuer, token_url, client_id, scope, resource } = self;
        let parts = [upstream, issuer, token_url, client_id, scope, resource].map(|part| format!("{}:{part}", part.len()));
        format!("{}.json", URL_SAFE_NO_PAD.encode(digest(&SHA256, parts.concat().as_bytes())))
    }
}

/// The tokens of one login. They are overwritten when it is dropped. It deliberately has no `Debug`.
#[derive(Serialize, Deserialize)]
pub struct Login {
    pub(crate) key: LoginKey,
    /// The endpoint that issued the tokens. They are sent to no other.
    pub(crate) token_endpoint: String,
    /// Empty if the server issued none, or has refused it.
    pub(crate) refresh_token: String,
    pub(crate) access_token: String,
    /// When the access token was requested, in seconds since 1970.
    pub(crate) issued_at: u64,
    /// The lifetime of the access token in seconds, if it is known.
    pub(crate) expires_in: Option<u64>,
    /// The scopes that were requested.
    #[serde(default)]
    pub(crate) scope: String,
    /// What the config does not have. `None` if it has everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) found: Option<Found>,
}

/// The client and the authorization server that a login has found. It deliberately has no `Debug`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Found {
    /// The issuer to which the client and the tokens belong.
    pub(crate) issuer: String,
    /// The parameter `resource`.
    pub(crate) resource: String,
    /// Where the upstream names its issuer. Empty if the config has it, or if the upstream has no such metadata.
    pub(crate) resource_metadata: String,
    /// The identifier of the client: registered, or that of the config.
    pub(crate) client_id: String,
    /// The name of its form of authentication.
    pub(crate) client_auth: String,
    /// Empty for a public client.
    pub(crate) client_secret: String,
    /// The private key to which the tokens are bound (RFC 9449), as [`ProofKey::read`] reads it. Empty for bearer tokens.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) proof_key: String,
}

impl Found {
    /// Returns the key to which the tokens are bound. `None` for bearer tokens.
    ///
    /// # Errors
    ///
    /// The stored key is damaged.
    pub(crate) fn proof_key(&self) -> Result<Option<Arc<ProofKey>>, &'static str> {
        (!self.proof_key.is_empty()).then(|| ProofKey::read(&self.proof_key).map(Arc::new)).transpose()
    }
}

impl Drop for Found {
    fn drop(&mut self) {
        self.client_secret.zeroize();
        self.proof_key.zeroize();
    }
}

impl Drop for Login {
    fn drop(&mut self) {
        self.refresh_token.zeroize();
        self.access_token.zeroize();
    }
}

impl Login {
    /// Makes a login of an answer to a request for `scope`. Without a new refresh token, the `earlier` one remains valid (RFC 6749,
    /// section 6).
    pub(crate) fn new(
        key: LoginKey,
        token_endpoint: &Url,
        response: &TokenResponse,
        earlier: &str,
        scope: &str,
        found: Option<Found>,
    ) -> Login {
        Login {
            scope: scope.to_owned(),
            found,
            key,
            token_endpoint: token_endpoint.to_string(),
            refresh_token: response.refresh_token.as_deref().unwrap_or(earlier).to_owned(),
            access_token: response.access_token.clone(),
            issued_at: now(),
            expires_in: response.lifetime.map(|lifetime| lifetime.as_secs()),
        }
    }

    /// Whether tokens can be renewed without a person.
    pub fn has_refresh_token(&self) -> bool {
        !self.refresh_token.is_empty()
    }

    /// Returns the URL of the authorization server: its issuer, or its token endpoint if only that is known.
    pub fn server(&self) -> &str {
        let found = self.found.as_ref().map_or("", |found| &found.issuer);
        [found, &self.key.issuer, &self.token_endpoint].into_iter().find(|url| !url.is_empty()).unwrap_or_default()
    }

    /// Returns the scopes that were requested, separated by spaces.
    pub fn scope(&self) -> &str {
        if self.scope.is_empty() { &self.key.scope } else { &self.scope }
    }

    /// Returns the remaining lifetime of the access token. `None` if it is not known.
    pub fn remaining(&self) -> Option<Duration> {
        let elapsed = now().saturating_sub(self.issued_at);
        self.expires_in.map(|lifetime| Duration::from_secs(lifetime.saturating_sub(elapsed)))
    }

    /// Returns the age of the access token if another process has renewed it, so that it need not be renewed yet.
    pub(crate) fn fresh_since(&self) -> Option<Duration> {
        let age = now().saturating_sub(self.issued_at);
        let is_fresh = self.expires_in.is_none_or(|lifetime| age < lifetime - lifetime.div_ceil(5).min(60));
        is_fresh.then(|| Duration::from_secs(age))
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Why the store cannot be used, as a clause without any token.
pub(crate) type StoreError = String;

/// A folder with logins.
#[derive(Debug, Clone)]
pub struct TokenStore {
    folder: PathBuf,
}

impl TokenStore {
    /// Returns the store in `folder`, or in the default folder: `$XDG_STATE_HOME/ptc-compile/tokens`, or the same below
    /// `~/.local/state`.
    ///
    /// # Errors
    ///
    /// There is no home directory.
    pub fn new(folder: Option<PathBuf>) -> Result<TokenStore, StoreError> {
        let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let state = || variable("XDG_STATE_HOME").or_else(|| Some(variable("HOME")?.join(".local/state")));
        let folder = folder.or_else(|| Some(state()?.join("ptc-compile/tokens")));
        let folder = folder.ok_or("there is no home directory: name the folder of the token store")?;
        Ok(TokenStore { folder })
    }

    /// Returns the login of a key, if there is one.
    ///
    /// # Errors
    ///
    /// The file cannot be read, can be read by other users, or is not a login of this key.
    pub fn read(&self, key: &LoginKey) -> Result<Option<Login>, StoreError> {
        let path = self.folder.join(key.file_name());
        let described = |why: &str| format!("the token store {} {why}", path.display());
        match fs::metadata(&path) {
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(why) => return Err(described(&format!("cannot be read: {why}"))),
            Ok(found) if found.permissions().mode() & 0o077 != 0 => {
                return Err(described("can be read by other users: log in again after `chmod 600`"));
            }
            Ok(_) => {}
        }
        let bytes = ptc_secrets::read_file(&path).map_err(|_| described("cannot be read"))?;
        let login: Login = serde_json::from_slice(&bytes).map_err(|_| described("is damaged: log in again"))?;
        if login.key == *key { Ok(Some(login)) } else { Err(described("has the tokens of another login: log in again")) }
    }

    /// Records scopes that the upstream needs in addition, which the next login requests.
    ///
    /// # Errors
    ///
    /// The folder cannot be written.
    pub(crate) fn note_scope(&self, key: &LoginKey, scope: &str) -> io::Result<()> {
        // The file is read before it is opened, which empties it.
        let all = challenge::union(&[&self.noted_scope(key), scope]);
        let open = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(self.scope_file(key));
        open?.write_all(all.as_bytes())
    }

    /// Returns the scopes that were recorded since the last login.
    pub(crate) fn noted_scope(&self, key: &LoginKey) -> String {
        let text = ptc_secrets::read_file(&self.scope_file(key)).ok();
        let text = text.as_deref().and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default();
        challenge::union(&[text])
    }

    fn scope_file(&self, key: &LoginKey) -> PathBuf {
        self.folder.join(key.file_name()).with_extension("scope")
    }

    /// Waits until no other process uses the login of a key.
    ///
    /// # Errors
    ///
    /// The folder cannot be written, or the lock is not released before the deadline.
    pub(crate) async fn lock(&self, key: &LoginKey, deadline: Instant) -> Result<LockedLogin, StoreError> {
        let described = |why: &dyn std::fmt::Display| format!("the token store {} cannot be used: {why}", self.folder.display());
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder).map_err(|why| described(&why))?;
        let path = self.folder.join(key.file_name()).with_extension("lock");
        let open = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path);
        let file = open.map_err(|why| described(&why))?;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(LockedLogin { store: self.clone(), key: key.clone(), _lock: file }),
                Err(TryLockError::Error(why)) => return Err(described(&why)),
                Err(TryLockError::WouldBlock) if Instant::now() >= deadline => {
                    return Err(described(&"another process has locked it"));
                }
                Err(TryLockError::WouldBlock) => tokio::time::sleep(LOCK_INTERVAL).await,
            }
        }
    }
}

/// A login that no other process changes. The lock is released when it is dropped.
pub(crate) struct LockedLogin {
    store: TokenStore,
    key: LoginKey,
    _lock: File,
}

impl LockedLogin {
    /// Returns the current login.
    ///
    /// # Errors
    ///
    /// As [`TokenStore::read`].
    pub(crate) fn read(&self) -> Result<Option<Login>, StoreError> {
        self.store.read(&self.key)
    }

    /// Creates the file that will replace the login, before a token is requested: if the folder cannot be written, the current refresh
    /// token is not used up.
    ///
    /// # Errors
    ///
    /// The folder cannot be written.
    pub(crate) fn prepare(&self) -> Result<Replacement, StoreError> {
        let target = self.store.folder.join(self.key.file_name());
        let path = target.with_extension("tmp");
        // The rest of a process that ended while it wrote. The lock is ours, so that no other process writes it now.
        let _ = fs::remove_file(&path);
        let file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&path);
        let file = file.map_err(|why| format!("the token store {} cannot be written: {why}", self.store.folder.display()))?;
        Ok(Replacement { file, path, target, is_done: false })
    }

    /// Forgets the scopes that were recorded since the last login.
    pub(crate) fn forget_scope(&self) {
        // Usually there are none. Scopes that remain are requested again, which does no harm.
        let _ = fs::remove_file(self.store.scope_file(&self.key));
    }

    /// Removes the login.
    ///
    /// # Errors
    ///
    /// The file cannot be removed.
    pub(crate) fn remove(&self) -> Result<(), StoreError> {
        self.forget_scope();
        match fs::remove_file(self.store.folder.join(self.key.file_name())) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => {
                Err(format!("the token store {} cannot be written: {why}", self.store.folder.display()))
            }
            _ => Ok(()),
        }
    }
}

/// A new file of a login. It is removed unless it is committed.
pub(crate) struct Replacement {
    file: File,
    path: PathBuf,
    target: PathBuf,
    is_done: bool,
}

impl Replacement {
    /// Writes the login, and puts it in the place of the current one.
    ///
    /// # Errors
    ///
    /// The file cannot be written. The current login is unchanged.
    pub(crate) fn commit(mut self, login: &Login) -> Result<(), StoreError> {
        let failed =
            |why: &dyn std::fmt::Display, path: &Path| format!("the token store {} cannot be written: {why}", path.display());
        let bytes = Zeroizing::new(serde_json::to_vec(login).map_err(|why| failed(&why, &self.target))?);
        let written = self.file.write_all(&bytes).and_then(|()| self.file.sync_all());
        written.and_then(|()| fs::rename(&self.path, &self.target)).map_err(|why| failed(&why, &self.target))?;
        self.is_done = true;
        Ok(())
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if !self.is_done {
            // It contains no complete login. The next replacement removes it too.
            let _ = fs::remove_file(&self.path);
        }
    }
}
