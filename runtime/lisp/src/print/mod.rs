//! Prints values as text.

mod cut_mark;
mod preview;
mod readable;

pub use cut_mark::{MAX_CUT_MARK, push_cut_mark, split_cut_mark};
pub use preview::{Preview, excerpt, preview};
pub(crate) use preview::{cut, preview_line};
pub use readable::readable;
pub(crate) use readable::{Strings, is_longer, work_of, write_atom, write_quoted, write_while};
