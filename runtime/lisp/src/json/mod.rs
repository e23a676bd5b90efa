//! JSON text to values and back.

mod decode;
mod encode;

pub use decode::{DecodeError, decode};
pub use encode::{EncodeError, encode};
