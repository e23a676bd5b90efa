//! Writes cassettes while programs run: each file is replaced in one step, so that no reader sees a part of one.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Replaces a file. It keeps its permissions; a new file can be read by its owner only.
///
/// # Errors
///
/// The file, or a temporary file in its folder, cannot be written.
pub(super) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let permissions = fs::metadata(path).map_or_else(|_| Permissions::from_mode(0o600), |old| old.permissions());
    let mut file = tempfile::Builder::new().prefix(".cassette-").suffix(".tmp").permissions(permissions).tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
