//! The arguments of a call on their way out: measured, counted as the program's memory, and then encoded.
//!
//! A value is small where its parts are shared, and its JSON text is not. So the text is measured before a byte of it is allocated, its
//! bytes are reserved in the memory account of the run, and they stay reserved until the last thread lets go of them: they wait in the
//! queue of a child or in the buffers of a connection, outside of the program's own threads.

use bytes::Bytes;
use ptc_lisp::host::{Account, Fault, Reservation};
use ptc_lisp::json::{self, EncodeError, Unmeasured};
use ptc_lisp::{Cancel, ErrorKind, Value};

/// Bytes of the arguments of one call, as JSON.
pub(crate) const MAX_ARGUMENT_BYTES: usize = 8 * 1024 * 1024;
/// Arguments of one call.
pub(crate) const MAX_ARGUMENTS: usize = 1_000;
/// Levels that an argument may nest. The encoder keeps a frame for each.
const MAX_DEPTH: u32 = 10_000;

/// What bounds the encoding of arguments.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bounds {
    /// The end of the evaluation.
    pub(crate) deadline: Option<std::time::Instant>,
    /// Ends it before.
    pub(crate) cancel: Cancel,
    /// The memory of the run; `None` where a host is called outside of a run.
    pub(crate) account: Option<Account>,
}

impl Bounds {
    /// Whether the program that waits is over.
    pub(crate) fn is_over(&self) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= std::time::Instant::now())
            || self.cancel.is_cancelled()
            || self.account.as_ref().is_some_and(Account::is_over)
    }

    /// Counts bytes as memory of the program, where there is a run.
    pub(crate) fn reserve(&self, bytes: usize) -> Result<Option<Reservation>, Fault> {
        self.account.as_ref().map(|account| account.reserve(bytes)).transpose()
    }

    /// The fault of a program that is over: it finds out itself which limit that was.
    pub(crate) fn stopped() -> Fault {
        Fault::new(ErrorKind::Timeout, "the program ended while the arguments of a call were checked")
    }
}

/// Why a value cannot be sent.
#[derive(Debug)]
pub(crate) enum Unsendable {
    /// Its JSON text is longer than allowed.
    TooLarge,
    /// It is wrong, as the rest of a sentence.
    Invalid(String),
    /// The program ended, or has no room for the text.
    Fault(Fault),
}

/// Measures the JSON text of `value`, which may have `max_bytes`.
pub(crate) fn measure(value: &Value, max_bytes: usize, bounds: &Bounds) -> Result<usize, Unsendable> {
    if value.depth() > MAX_DEPTH {
        return Err(Unsendable::Invalid(format!("it nests more than {MAX_DEPTH} levels deep")));
    }
    match json::measure(value, max_bytes, &|| bounds.is_over()) {
        Ok(size) => Ok(size.bytes),
        Err(Unmeasured::TooLarge) => Err(Unsendable::TooLarge),
        Err(Unmeasured::Stopped) => Err(Unsendable::Fault(Bounds::stopped())),
    }
}

/// Appends the JSON text of a value that [`measure`] has found to have `bytes`.
pub(crate) fn encode(text: &mut String, value: &Value, bytes: usize, bounds: &Bounds) -> Result<(), Unsendable> {
    json::encode_to(text, value, bytes, &|| bounds.is_over()).map_err(|why| match why {
        EncodeError::TooLarge { .. } if bounds.is_over() => Unsendable::Fault(Bounds::stopped()),
        EncodeError::TooLarge { .. } => Unsendable::TooLarge,
        EncodeError::Unsupported { .. } | EncodeError::OneKey { .. } => Unsendable::Invalid(why.to_string()),
    })
}

/// `text` as bytes that give `reservation` back when the last clone of them is dropped.
pub(crate) fn counted(text: String, reservation: Option<Reservation>) -> Bytes {
    struct Counted(String, #[expect(dead_code, reason = "it is held for its drop")] Option<Reservation>);
    impl AsRef<[u8]> for Counted {
        fn as_ref(&self) -> &[u8] {
            self.0.as_bytes()
        }
    }
    Bytes::from_owner(Counted(text, reservation))
}
