//! Java interop as programs write it: static methods, dot methods, constants.
//!
//! A dot method is one row for all receivers. Its behaviour depends on the kind of its first argument. A receiver of an
//! unsupported kind raises a fault that names the supported ones.

pub(super) mod amount;
mod constant;
pub(super) mod construct;
pub(super) mod number;
pub(super) mod offset;
pub(super) mod string;
pub(super) mod time;

pub use constant::Constant;
pub use constant::all as constants;
pub(crate) use constant::find as constant;
pub(crate) use constant::members;
