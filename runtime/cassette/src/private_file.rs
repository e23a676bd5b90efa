//! Files that may have secrets or personal data: each is replaced in one step, and can be read by its owner only.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Replaces a file. It keeps its permissions; a new file can be read by its owner only.
///
/// # Errors
///
/// The file, or a temporary file in its folder, cannot be written.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    // The permissions of a temporary file would be limited by the umask.
    let permissions = fs::metadata(path).map_or_else(|_| Permissions::from_mode(0o600), |old| old.permissions());
    file.as_file().set_permissions(permissions)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
