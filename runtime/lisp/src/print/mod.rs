//! Values as text.

mod preview;
mod readable;

pub(crate) use preview::preview_line;
pub use preview::{Preview, excerpt, preview};
pub use readable::readable;
pub(crate) use readable::{Strings, is_longer, work_of, write_atom, write_quoted, write_while};
