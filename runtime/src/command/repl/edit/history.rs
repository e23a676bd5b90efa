//! The history of programs: a file that only its owner can read.

use std::fs::{DirBuilder, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;

/// Returns the path of the history file, which is created with mode 0600 if it does not exist. `None` if there is no folder for
/// it.
pub(super) fn file() -> io::Result<Option<PathBuf>> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let Some(state) = set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state"))) else { return Ok(None) };
    let folder = state.join("ptc-compile");
    DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    let path = folder.join("history");
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path)?;
    // An existing file may have another mode.
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(Some(path))
}
