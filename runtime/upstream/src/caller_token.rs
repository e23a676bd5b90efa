//! The access token with which a caller came, for upstreams that are called on its behalf (RFC 8693).
//!
//! It belongs to the task that makes a call, as its stage does, so that only an authorization server's client reads it. A binary without the
//! feature `access-token` has no value of the type [`CallerToken`], so that carrying it costs nothing.

#[cfg(all(feature = "http", not(feature = "access-token")))]
pub(crate) use disabled::inherit;
#[cfg(not(feature = "access-token"))]
pub use disabled::{CallerToken, current, scope};
#[cfg(not(feature = "access-token"))]
pub(crate) use disabled::{carry, redactor};
#[cfg(feature = "access-token")]
pub use enabled::{CallerToken, current, missing, scope};
#[cfg(feature = "access-token")]
pub(crate) use enabled::{carry, inherit, redact_with, redactor};

#[cfg(feature = "access-token")]
mod enabled {
    use std::cell::RefCell;
    use std::fmt;
    use std::sync::Arc;

    use ptc_secrets::Redactor;
    use zeroize::Zeroizing;

    use crate::fault::{Reason, UpstreamError};

    /// An access token that was verified. Clones share it, and the last one erases it.
    #[derive(Clone)]
    pub struct CallerToken(Arc<Inner>);

    struct Inner {
        text: Zeroizing<String>,
        digest: [u8; 32],
    }

    impl CallerToken {
        /// Keeps a verified token. `digest` is a cryptographic hash function.
        pub fn new(text: &str, digest: impl FnOnce(&[u8]) -> [u8; 32]) -> Option<CallerToken> {
            Some(CallerToken(Arc::new(Inner { text: Zeroizing::new(text.to_owned()), digest: digest(text.as_bytes()) })))
        }

        /// Returns the token.
        pub fn text(&self) -> &str {
            &self.0.text
        }

        /// Returns its digest, by which what was made for it is found again.
        pub fn digest(&self) -> [u8; 32] {
            self.0.digest
        }
    }

    impl fmt::Debug for CallerToken {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("CallerToken(..)")
        }
    }

    /// A call for a caller.
    #[derive(Clone, Default)]
    struct Call {
        caller: Option<CallerToken>,
        /// Redacts the token that the call sends. Each caller has its own, since one that knows all tokens would be too large.
        redactor: RefCell<Option<Redactor>>,
    }

    tokio::task_local! {
        static CALL: Call;
    }

    /// Runs `work` for a caller.
    pub fn scope<T>(caller: Option<CallerToken>, work: impl Future<Output = T>) -> impl Future<Output = T> {
        CALL.scope(Call { caller, redactor: RefCell::default() }, work)
    }

    fn call() -> Call {
        CALL.try_with(Call::clone).unwrap_or_default()
    }

    /// Runs `work`, which is a task of its own, for the caller of the current task.
    pub(crate) fn inherit<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
        CALL.scope(call(), work)
    }

    /// Like [`inherit`], for work on another thread.
    pub(crate) fn carry<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
        let call = call();
        move || CALL.sync_scope(call, work)
    }

    /// Returns the token of the caller for whom this task works. `None` if there is no caller, or if it came without a token.
    pub fn current() -> Option<CallerToken> {
        CALL.try_with(|call| call.caller.clone()).ok().flatten()
    }

    /// Makes [`redactor`] return this in the current task.
    pub(crate) fn redact_with(redactor: &Redactor) {
        let _ = CALL.try_with(|call| *call.redactor.borrow_mut() = Some(redactor.clone()));
    }

    /// Returns the redactor of the token that this task sends for its caller. It finds the other secrets too.
    pub(crate) fn redactor() -> Option<Redactor> {
        CALL.try_with(|call| call.redactor.borrow().clone()).ok().flatten()
    }

    /// Returns the error of a call on behalf of a caller that came without a token.
    pub fn missing(upstream: &str) -> UpstreamError {
        let message = format!(
            "no access token for '{upstream}': it is called on behalf of the caller, whose own access token is exchanged for it, and this caller \
             came without one; call over HTTP with an access token of the issuer of --http-oauth-issuer"
        );
        UpstreamError::new(Reason::AuthFailed, message)
    }
}

#[cfg(not(feature = "access-token"))]
mod disabled {
    use ptc_secrets::Redactor;

    /// An access token that was verified. This build has none.
    #[derive(Debug, Clone)]
    pub enum CallerToken {}

    impl CallerToken {
        /// Returns `None`.
        pub fn new(_: &str, _: impl FnOnce(&[u8]) -> [u8; 32]) -> Option<CallerToken> {
            None
        }
    }

    /// Returns `work`.
    pub fn scope<T>(_: Option<CallerToken>, work: impl Future<Output = T>) -> impl Future<Output = T> {
        work
    }

    /// Returns `work`.
    #[cfg(feature = "http")]
    pub(crate) fn inherit<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
        work
    }

    /// Returns `work`.
    pub(crate) fn carry<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
        work
    }

    /// Returns `None`.
    pub fn current() -> Option<CallerToken> {
        None
    }

    /// Returns `None`.
    pub(crate) fn redactor() -> Option<Redactor> {
        None
    }
}
