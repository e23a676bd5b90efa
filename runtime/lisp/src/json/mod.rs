//! JSON: decoding to values and encoding of values.

mod decode;
mod encode;
mod measure;
mod plain;
mod shape;
mod walk;

pub(crate) use decode::decode_metered;
pub use decode::{DecodeError, decode, decode_exact, decode_exact_while};
pub(crate) use encode::encode_metered;
pub use encode::{EncodeError, encode, encode_named_until, encode_to, encode_until};
pub use measure::{Size, Unmeasured, measure};
pub use walk::Walk;
