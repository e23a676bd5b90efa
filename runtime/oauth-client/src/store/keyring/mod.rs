//! Logins in the keyring of the system: the Secret Service of a Linux desktop, or the keychain of macOS.
//!
//! An entry has the service `ptc-compile`, and as user the digest of what the login is bound to. The content is that of a file.

#[cfg(target_os = "macos")]
mod keychain;
#[cfg(target_os = "linux")]
mod secret_service;

use std::fmt;
use std::time::Duration;

use zeroize::Zeroizing;

#[cfg(target_os = "macos")]
use keychain as system;
#[cfg(target_os = "linux")]
use secret_service as system;

/// The service to which all entries belong.
const SERVICE: &str = "ptc-compile";

/// Time limit for one access, in which a person can unlock the keyring.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The content of an entry, which is overwritten when it is dropped.
type Secret = Zeroizing<Vec<u8>>;

/// Why the keyring cannot be used.
#[derive(Debug)]
pub(super) enum Error {
    /// Nothing answers as a keyring.
    Absent(String),
    /// It remains locked, or the person has refused the access.
    Locked,
    /// There is no default collection, in which new entries are.
    NoCollection,
    /// The time limit has passed.
    Timeout,
    /// Another failure of the keyring.
    Failed(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the keyring of the system ")?;
        let advice = match self {
            Error::Absent(why) => {
                write!(f, "cannot be reached: {why}")?;
                "log in to a desktop session that has one"
            }
            Error::Locked => {
                f.write_str("is locked")?;
                "unlock it"
            }
            Error::NoCollection => {
                f.write_str("has no default collection")?;
                "create one with the keyring's program"
            }
            Error::Timeout => {
                write!(f, "has not answered within {} s", TIMEOUT.as_secs())?;
                "unlock it"
            }
            Error::Failed(why) => {
                write!(f, "has failed: {why}")?;
                "repeat the command"
            }
        };
        write!(f, "; {advice}, or keep the tokens in files (`--store FOLDER`, and `--token-store FOLDER` of the server)")
    }
}

/// Checks that the keyring can be opened, and asks the person to unlock it.
///
/// # Errors
///
/// As [`Error`] says, like all functions of this module.
pub(super) async fn check() -> Result<(), Error> {
    limited(TIMEOUT, system::check()).await
}

/// Returns the content of an entry, if there is one.
pub(super) async fn read(user: &str) -> Result<Option<Secret>, Error> {
    limited(TIMEOUT, system::read(user)).await
}

/// Creates or replaces an entry.
pub(super) async fn write(user: &str, label: &str, secret: Secret) -> Result<(), Error> {
    limited(TIMEOUT, system::write(user, label, secret)).await
}

/// Removes an entry, if there is one.
pub(super) async fn remove(user: &str) -> Result<(), Error> {
    limited(TIMEOUT, system::remove(user)).await
}

async fn limited<T>(limit: Duration, access: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    tokio::time::timeout(limit, access).await.unwrap_or(Err(Error::Timeout))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn keyring_that_does_not_answer_is_given_up_with_advice() {
        let outcome = limited(Duration::from_millis(10), std::future::pending::<Result<(), Error>>()).await;
        let message = outcome.expect_err("it does not answer").to_string();
        assert!(message.contains("has not answered within 30 s; unlock it, or keep the tokens in files"), "{message}");
    }
}
