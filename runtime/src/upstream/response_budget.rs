//! Bytes of answers that are still being read. They count as memory of the program that waits for the answer.
//!
//! The reservation belongs to the task that makes the call, as a [`stage`](super::stage) does: everything that runs inside [`scope`] resizes
//! it with [`reserve`].

use std::sync::{Mutex, PoisonError};

use ptc_lisp::host::{Account, Reservation};

use super::fault::{Reason, UpstreamError};

/// The reservation of one call. `None` without an account, or once the call is over.
type CallReservation = Mutex<Option<Reservation>>;

tokio::task_local! {
    static RESERVATION: CallReservation;
}

/// Runs a call whose answer counts in `account`, the memory of its program. Returns the result and the reservation of the bytes that the
/// call holds at its end.
pub(super) async fn scope<T>(account: Option<Account>, work: impl Future<Output = T>) -> (T, Option<Reservation>) {
    // If the account has no room left, the first byte of the answer finds out.
    let reservation = account.and_then(|account| account.reserve(0).ok());
    let scoped = async {
        let result = work.await;
        (result, RESERVATION.with(|held| held.lock().unwrap_or_else(PoisonError::into_inner).take()))
    };
    RESERVATION.scope(Mutex::new(reservation), scoped).await
}

/// Sets the number of bytes that the call of this task holds now.
///
/// # Errors
///
/// The program has no memory for that many bytes, which ends it.
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
