//! Measures the arguments of a call, reserves their bytes in the program's memory, and encodes them.
//!
//! A value with shared parts can be small although its JSON text is large. The text is therefore measured before any of it is
//! allocated, and its bytes are reserved in the memory account of the run. They stay reserved until the last thread releases
//! them, since they wait in the queue of a child or in the buffers of a connection, outside the program's own threads.

use bytes::Bytes;
use ptc_lisp::host::{Account, Fault, Reservation};
use ptc_lisp::json::{self, EncodeError, Unmeasured};
use ptc_lisp::{Cancel, ErrorKind, Value};

/// Maximum bytes of the arguments of one call, as JSON.
pub(crate) const MAX_ARGUMENT_BYTES: usize = 8 * 1024 * 1024;
/// Maximum number of arguments of one call.
pub const MAX_ARGUMENTS: usize = 1_000;
/// Maximum depth of an argument. The encoder keeps a frame for each level.
const MAX_DEPTH: u32 = 10_000;

/// The limits of encoding arguments.
#[derive(Debug, Clone, Default)]
pub struct Bounds {
    /// The end of the evaluation.
    pub deadline: Option<std::time::Instant>,
    /// Cancels the evaluation.
    pub cancel: Cancel,
    /// The memory account of the run. `None` if a host is called outside a run.
    pub account: Option<Account>,
}

impl Bounds {
    /// Whether the program has ended or was cancelled.
    pub fn is_over(&self) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= std::time::Instant::now())
            || self.cancel.is_cancelled()
            || self.account.as_ref().is_some_and(Account::is_over)
    }

    /// Reserves bytes in the memory of the program, if there is a run.
    ///
    /// # Errors
    ///
    /// Returns the fault that ends the program if its values and reservations together would exceed its limit.
    pub fn reserve(&self, bytes: usize) -> Result<Option<Reservation>, Fault> {
        self.account.as_ref().map(|account| account.reserve(bytes)).transpose()
    }

    /// Creates the fault of a program that has ended. The program itself determines which limit was exceeded.
    pub fn stopped() -> Fault {
        Fault::new(ErrorKind::Timeout, "the program ended while the arguments of a call were checked")
    }
}

/// Why a value cannot be sent.
#[derive(Debug)]
pub enum Unsendable {
    /// The JSON text is too long.
    TooLarge,
    /// The value is invalid, with the rest of a sentence.
    Invalid(String),
    /// The program has ended, or has no memory for the text.
    Fault(Fault),
}

/// Returns the bytes of the JSON text of `value`, at most `max_bytes`.
///
/// # Errors
///
/// Returns [`Unsendable::Invalid`] if the value nests more than 10,000 levels deep, [`Unsendable::TooLarge`] if the text is
/// longer than `max_bytes`, and [`Unsendable::Fault`] if the program ends meanwhile.
pub fn measure(value: &Value, max_bytes: usize, bounds: &Bounds) -> Result<usize, Unsendable> {
    if value.depth() > MAX_DEPTH {
        return Err(Unsendable::Invalid(format!("it nests more than {MAX_DEPTH} levels deep")));
    }
    match json::measure(value, max_bytes, &|| bounds.is_over()) {
        Ok(size) => Ok(size.bytes),
        Err(Unmeasured::TooLarge) => Err(Unsendable::TooLarge),
        Err(Unmeasured::Stopped) => Err(Unsendable::Fault(Bounds::stopped())),
    }
}

/// Appends the JSON text of a value, whose size [`measure`] returned as `bytes`.
///
/// # Errors
///
/// Returns [`Unsendable::Invalid`] if the value has no JSON form, [`Unsendable::TooLarge`] if the text is longer than `bytes`,
/// and [`Unsendable::Fault`] if the program ends meanwhile.
pub fn encode(text: &mut String, value: &Value, bytes: usize, bounds: &Bounds) -> Result<(), Unsendable> {
    json::encode_to(text, value, bytes, &|| bounds.is_over()).map_err(|why| match why {
        EncodeError::TooLarge { .. } if bounds.is_over() => Unsendable::Fault(Bounds::stopped()),
        EncodeError::TooLarge { .. } => Unsendable::TooLarge,
        EncodeError::Unsupported { .. } | EncodeError::OneKey { .. } => Unsendable::Invalid(why.to_string()),
    })
}

/// Returns `text` as bytes. `reservation` is released when the last clone of them is dropped.
pub(crate) fn counted(text: impl Into<Vec<u8>>, reservation: Option<Reservation>) -> Bytes {
    struct Counted(Vec<u8>, #[expect(dead_code, reason = "it is kept for its drop")] Option<Reservation>);
    impl AsRef<[u8]> for Counted {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    Bytes::from_owner(Counted(text.into(), reservation))
}
