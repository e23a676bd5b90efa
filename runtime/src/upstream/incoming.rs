//! The bytes of answers that are still being read: they count as memory of the program that waits for them.
//!
//! As with a [`stage`](super::stage), they belong to the task that makes the call: whatever runs inside [`counted`] says with [`hold`] how
//! much it holds, however deep it is.

use std::sync::{Mutex, PoisonError};

use ptc_lisp::host::{Account, Reservation};

use super::fault::{Reason, WorldFault};

/// What one call holds.
type Held = Mutex<Option<Reservation>>;

tokio::task_local! {
    static HELD: Held;
}

/// Runs a call of the program whose memory `account` is. The result, with what counts the bytes that the call holds at its end.
pub(super) async fn counted<T>(account: Option<Account>, work: impl Future<Output = T>) -> (T, Option<Reservation>) {
    // Where there is no room left, the first byte finds out.
    let reservation = account.and_then(|account| account.reserve(0).ok());
    let counted = async {
        let result = work.await;
        (result, HELD.with(|held| held.lock().unwrap_or_else(PoisonError::into_inner).take()))
    };
    HELD.scope(Mutex::new(reservation), counted).await
}

/// Says how much of its answer the call of this task holds now. A fault where the program has no memory for that, which ends it.
pub(crate) fn hold(bytes: u64) -> Result<(), WorldFault> {
    let hold = |held: &Held| match &mut *held.lock().unwrap_or_else(PoisonError::into_inner) {
        Some(reservation) => reservation.resize(usize::try_from(bytes).unwrap_or(usize::MAX)).map_err(|fault| {
            let fault = WorldFault::new(Reason::ResponseTooLarge, fault.message);
            WorldFault { refused_bytes: bytes, ..fault }
        }),
        None => Ok(()),
    };
    HELD.try_with(hold).unwrap_or(Ok(()))
}
