//! Runs `install BINARY` and `uninstall BINARY`.

use crate::args::Install;
use crate::console::Console;
use crate::{Failure, Status};

pub(crate) fn install(_args: &Install, _console: &Console) -> Result<Status, Failure> {
    Err(Failure::new("not there yet"))
}

pub(crate) fn uninstall(_args: &Install, _console: &Console) -> Result<Status, Failure> {
    Err(Failure::new("not there yet"))
}
