//! The tokens of logins, in a folder (`file`) or in the keyring of the system (`keyring`).
//!
//! A stored login belongs to one upstream at one authorization server, with one client and one set of scopes: see [`LoginKey`]. A lock
//! makes processes that share the store renew one at a time. A folder is the default: a server without a desktop session, such as a
//! container, cannot open a keyring.

mod file;
#[cfg(feature = "keyring")]
mod keyring;
mod stored;

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ptc_upstream::http::access_token::KEYRING;
use zeroize::Zeroizing;

use crate::challenge;

pub(crate) use stored::Found;
pub use stored::{Login, LoginKey};

/// Interval at which a lock is tried again.
const LOCK_INTERVAL: Duration = Duration::from_millis(20);

/// Why the store cannot be used, as a clause without any token.
pub(crate) type StoreError = String;

/// A store of logins.
#[derive(Debug, Clone)]
pub struct TokenStore {
    /// The folder of the locks and of the recorded scopes, and of the logins if they are files.
    folder: PathBuf,
    medium: Medium,
}

#[derive(Debug, Clone, Copy)]
enum Medium {
    Files,
    #[cfg(feature = "keyring")]
    Keyring,
}

impl TokenStore {
    /// Returns the store in `store`, which is a folder, or `keyring` for the keyring of the system. The default is the folder
    /// `$XDG_STATE_HOME/ptc-compile/tokens`, or the same below `~/.local/state`. It has the locks of a keyring.
    ///
    /// # Errors
    ///
    /// There is no home directory, or the keyring is not linked.
    pub fn new(store: Option<PathBuf>) -> Result<TokenStore, StoreError> {
        let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let state = || variable("XDG_STATE_HOME").or_else(|| Some(variable("HOME")?.join(".local/state")));
        let is_keyring = store.as_ref().is_some_and(|store| store.as_os_str() == OsStr::new(KEYRING));
        #[cfg(feature = "keyring")]
        let medium = if is_keyring { Medium::Keyring } else { Medium::Files };
        #[cfg(not(feature = "keyring"))]
        let medium = if is_keyring { return Err(WITHOUT_KEYRING.into()) } else { Medium::Files };
        let folder = store.filter(|_| !is_keyring).or_else(|| Some(state()?.join("ptc-compile/tokens")));
        let folder = folder.ok_or("there is no home directory: set HOME, or XDG_STATE_HOME to an absolute path")?;
        Ok(TokenStore { folder, medium })
    }

    /// Checks that the keyring can be opened, and asks the person to unlock it. Folders are checked when they are used.
    ///
    /// # Errors
    ///
    /// There is no keyring, or it remains locked.
    #[cfg_attr(not(feature = "keyring"), expect(clippy::unused_async, reason = "files do not wait"))]
    pub(crate) async fn check(&self) -> Result<(), StoreError> {
        match self.medium {
            Medium::Files => Ok(()),
            #[cfg(feature = "keyring")]
            Medium::Keyring => keyring::check().await.map_err(|why| why.to_string()),
        }
    }

    /// Returns the login of a key, if there is one.
    ///
    /// # Errors
    ///
    /// The store cannot be read, can be read by other users, or has no login of this key in its place.
    #[cfg_attr(not(feature = "keyring"), expect(clippy::unused_async, reason = "files do not wait"))]
    pub async fn read(&self, key: &LoginKey) -> Result<Option<Login>, StoreError> {
        let (bytes, place) = match self.medium {
            Medium::Files => {
                let path = self.path(key, "json");
                (file::read(&path)?, path.display().to_string())
            }
            #[cfg(feature = "keyring")]
            Medium::Keyring => (keyring::read(&key.digest()).await.map_err(|why| why.to_string())?, KEYRING.to_owned()),
        };
        let Some(bytes) = bytes else { return Ok(None) };
        let described = |why: &str| format!("the token store {place} {why}: log in again");
        let login: Login = serde_json::from_slice(&bytes).map_err(|_| described("is damaged"))?;
        if login.key == *key { Ok(Some(login)) } else { Err(described("has the tokens of another login")) }
    }

    /// Records scopes that the upstream needs in addition, which the next login requests.
    ///
    /// # Errors
    ///
    /// The folder cannot be written.
    pub(crate) fn note_scope(&self, key: &LoginKey, scope: &str) -> io::Result<()> {
        // The file is read before it is opened, which empties it.
        let all = challenge::union(&[&self.noted_scope(key), scope]);
        let open = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(self.path(key, "scope"));
        open?.write_all(all.as_bytes())
    }

    /// Returns the scopes that were recorded since the last login.
    pub(crate) fn noted_scope(&self, key: &LoginKey) -> String {
        let text = ptc_secrets::read_file(&self.path(key, "scope")).ok();
        let text = text.as_deref().and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default();
        challenge::union(&[text])
    }

    /// Returns the path of a file for a login.
    fn path(&self, key: &LoginKey, extension: &str) -> PathBuf {
        self.folder.join(key.digest()).with_extension(extension)
    }

    /// Waits until no other process uses the login of a key.
    ///
    /// # Errors
    ///
    /// The folder cannot be written, or the lock is not released before the deadline.
    pub(crate) async fn lock(&self, key: &LoginKey, deadline: Instant) -> Result<LockedLogin, StoreError> {
        let described = |why: &dyn std::fmt::Display| format!("the token store {} cannot be used: {why}", self.folder.display());
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder).map_err(|why| described(&why))?;
        let open = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(self.path(key, "lock"));
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

#[cfg(not(feature = "keyring"))]
const WITHOUT_KEYRING: &str = "this binary cannot open the keyring of the system: build it with `--keyring` (feature keyring of \
                               ptc-oauth-client), or name the folder of the token store";

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
    pub(crate) async fn read(&self) -> Result<Option<Login>, StoreError> {
        self.store.read(&self.key).await
    }

    /// Prepares the replacement of the login before a token is requested: if the store cannot be written, the current refresh token is
    /// not used up. The keyring needs no preparation: it was unlocked for [`read`](Self::read) or [`TokenStore::check`].
    ///
    /// # Errors
    ///
    /// The folder cannot be written.
    pub(crate) fn prepare(&self) -> Result<Replacement, StoreError> {
        match self.store.medium {
            Medium::Files => file::Replacement::new(self.store.path(&self.key, "json")).map(Replacement::File),
            #[cfg(feature = "keyring")]
            Medium::Keyring => Ok(Replacement::Keyring),
        }
    }

    /// Forgets the scopes that were recorded since the last login.
    pub(crate) fn forget_scope(&self) {
        // Usually there are none. Scopes that remain are requested again, which does no harm.
        let _ = fs::remove_file(self.store.path(&self.key, "scope"));
    }

    /// Removes the login.
    ///
    /// # Errors
    ///
    /// The store cannot be written.
    #[cfg_attr(not(feature = "keyring"), expect(clippy::unused_async, reason = "files do not wait"))]
    pub(crate) async fn remove(&self) -> Result<(), StoreError> {
        self.forget_scope();
        match self.store.medium {
            Medium::Files => file::remove(&self.store.path(&self.key, "json")),
            #[cfg(feature = "keyring")]
            Medium::Keyring => keyring::remove(&self.key.digest()).await.map_err(|why| why.to_string()),
        }
    }
}

/// The next state of a login, which is not stored yet.
pub(crate) enum Replacement {
    File(file::Replacement),
    #[cfg(feature = "keyring")]
    Keyring,
}

impl Replacement {
    /// Puts the login in the place of the current one if it is a file. Returns the work that remains if it is not.
    ///
    /// # Errors
    ///
    /// The store cannot be written. The current login is unchanged.
    pub(crate) fn commit_file(self, login: &Login) -> Result<Option<Replacement>, StoreError> {
        match self {
            Replacement::File(file) => file.commit(&encoded(login)?).map(|()| None),
            #[cfg(feature = "keyring")]
            Replacement::Keyring => Ok(Some(Replacement::Keyring)),
        }
    }

    /// Puts the login in the place of the current one.
    ///
    /// # Errors
    ///
    /// The store cannot be written. The current login is unchanged.
    #[cfg_attr(not(feature = "keyring"), expect(clippy::unused_async, reason = "files do not wait"))]
    pub(crate) async fn commit(self, login: &Login) -> Result<(), StoreError> {
        let bytes = encoded(login)?;
        match self {
            Replacement::File(file) => file.commit(&bytes),
            #[cfg(feature = "keyring")]
            Replacement::Keyring => {
                let (name, upstream) = (login.key.digest(), login.key.upstream());
                keyring::write(&name, &format!("ptc-compile: tokens for {upstream}"), bytes).await.map_err(|why| why.to_string())
            }
        }
    }
}

fn encoded(login: &Login) -> Result<Zeroizing<Vec<u8>>, StoreError> {
    serde_json::to_vec(login).map(Zeroizing::new).map_err(|why| format!("the login cannot be stored: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_name_means_the_keyring() {
        let store = |name: &str| TokenStore::new(Some(name.into()));
        for name in ["./keyring", "keyring/", "Keyring", "/keyring"] {
            let store = store(name).expect("a folder");
            assert!(matches!(store.medium, Medium::Files) && store.folder.as_os_str() == name, "{name}");
        }
        #[cfg(not(feature = "keyring"))]
        assert_eq!(store(KEYRING).expect_err("it is not linked"), WITHOUT_KEYRING);
        #[cfg(feature = "keyring")]
        assert!(
            store(KEYRING)
                .is_ok_and(|store| matches!(store.medium, Medium::Keyring) && store.folder.ends_with("ptc-compile/tokens"))
        );
    }
}
