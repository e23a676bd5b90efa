//! The default action: from a config to a pinned binary.

use crate::args::Build;
use crate::check;
use crate::console::Console;
use crate::{Failure, Status};

/// `ptc-compile CONFIG`
pub(crate) fn run(args: &Build, console: &Console) -> Result<Status, Failure> {
    check::run(args, console)
}
