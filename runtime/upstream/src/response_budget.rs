//! Counts the bytes of answers that are being read as memory of the program that waits for them.
//!
//! The reservation belongs to the task that makes the call, like its [`stage`](super::stage): code inside [`scope`] resizes it
//! with [`reserve`].

use std::sync::{Mutex, PoisonError};

use ptc_lisp::host::{Account, Reservation};

use super::fault::{Reason, UpstreamError};

/// The reservation of one call. `None` without an account, or after the end of the call.
type CallReservation = Mutex<Option<Reservation>>;

tokio::task_local! {
    static RESERVATION: CallReservation;
}

/// Runs a call whose answer counts in `account`, the memory of its program. Returns the result, and the reservation of the bytes
/// that the call still holds.
pub(super) async fn scope<T>(account: Option<Account>, work: impl Future<Output = T>) -> (T, Option<Reservation>) {
    // If the account is exhausted, the first reservation for the answer fails.
    let reservation = account.and_then(|account| account.reserve(0).ok());
    let scoped = async {
        let result = work.await;
        (result, RESERVATION.with(|held| held.lock().unwrap_or_else(PoisonError::into_inner).take()))
    };
    RESERVATION.scope(Mutex::new(reservation), scoped).await
}

/// Sets the number of bytes that the call of this task holds.
///
/// # Errors
///
/// Fails if the program has no memory for them, which ends the program.
pub(crate) fn reserve(bytes: u64) -> Result<(), UpstreamError> {
    let resize = |held: &CallReservation| match &mut *held.lock().unwrap_or_else(PoisonError::into_inner) {
        Some(reservation) => reservation.resize(usize::try_from(bytes).unwrap_or(usize::MAX)).map_err(|fault| {
            let fault = UpstreamError::new(Reason::ResponseTooLarge, fault.message);
            UpstreamError { refused_bytes: bytes, ..fault }
        }),
        None => Ok(()),
    };
    RESERVATION.try_with(resize).unwrap_or(Ok(()))
}
