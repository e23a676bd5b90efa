//! What programs write as if they ran in Java: static methods, dot methods, constants.
//!
//! A dot method is a row of its own; what it does depends on its first argument, and a receiver of the wrong kind is a fault
//! that names the right ones.

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
