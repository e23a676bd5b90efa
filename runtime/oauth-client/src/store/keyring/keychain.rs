//! The keychain of macOS.

use security_framework::base::Error as KeychainError;
use security_framework::passwords::{delete_generic_password, get_generic_password, set_generic_password};
use tokio::sync::oneshot;
use zeroize::Zeroizing;

use super::{Error, SERVICE, Secret};

/// `errSecItemNotFound`, `errSecAuthFailed`, `errSecInteractionNotAllowed`, `errSecUserCanceled`.
const NOT_FOUND: i32 = -25_300;
const LOCKED: [i32; 3] = [-25_293, -25_308, -128];

impl From<KeychainError> for Error {
    fn from(error: KeychainError) -> Error {
        if LOCKED.contains(&error.code()) { Error::Locked } else { Error::Failed(error.to_string()) }
    }
}

/// Runs an access in a thread of its own: it blocks while the person is asked. The end of the process does not wait for this thread.
async fn blocking<T: Send + 'static>(access: impl FnOnce() -> Result<T, KeychainError> + Send + 'static) -> Result<T, Error> {
    let (publish, outcome) = oneshot::channel();
    let started = std::thread::Builder::new().name("keychain".to_owned()).spawn(move || {
        // The caller may have given up.
        let _ = publish.send(access());
    });
    started.map_err(|why| Error::Failed(why.to_string()))?;
    Ok(outcome.await.map_err(|_| Error::Failed("the access was given up".to_owned()))??)
}

fn is_missing<T>(outcome: &Result<T, KeychainError>) -> bool {
    outcome.as_ref().is_err_and(|error| error.code() == NOT_FOUND)
}

/// A keychain is unlocked when an entry is read.
pub(super) async fn check() -> Result<(), Error> {
    read("").await.map(drop)
}

pub(super) async fn read(user: &str) -> Result<Option<Secret>, Error> {
    let user = user.to_owned();
    blocking(move || {
        let found = get_generic_password(SERVICE, &user);
        if is_missing(&found) { Ok(None) } else { found.map(Zeroizing::new).map(Some) }
    })
    .await
}

pub(super) async fn write(user: &str, _label: &str, secret: Secret) -> Result<(), Error> {
    let user = user.to_owned();
    blocking(move || set_generic_password(SERVICE, &user, &secret)).await
}

pub(super) async fn remove(user: &str) -> Result<(), Error> {
    let user = user.to_owned();
    blocking(move || {
        let removed = delete_generic_password(SERVICE, &user);
        if is_missing(&removed) { Ok(()) } else { removed }
    })
    .await
}
