//! Files that may have secrets or personal data: each is replaced in one step, and can be read by its owner only.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Prefix and suffix of the names of temporary files.
const PREFIX: &str = ".ptc-";
const SUFFIX: &str = ".tmp";

/// The age from which on no process can still be writing a temporary file.
const LEFTOVER_AGE: Duration = Duration::from_mins(1);

/// Replaces a file. It keeps its permissions; a new file can be read by its owner only.
///
/// # Errors
///
/// The file, or a temporary file in its folder, cannot be written.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(PREFIX).suffix(SUFFIX).tempfile_in(folder)?;
    // The permissions of a temporary file would be limited by the umask.
    let permissions = fs::metadata(path).map_or_else(|_| Permissions::from_mode(0o600), |old| old.permissions());
    file.as_file().set_permissions(permissions)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Removes the temporary files that processes left in a folder when they were killed. Files of the last minute stay, since another
/// process may be writing them.
///
/// # Errors
///
/// The folder cannot be listed.
pub(crate) fn remove_leftovers(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let is_temporary = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX));
        let changed = entry.metadata().and_then(|file| file.modified());
        let is_old = |changed| SystemTime::now().duration_since(changed).is_ok_and(|age| age >= LEFTOVER_AGE);
        if is_temporary && changed.is_ok_and(is_old) {
            // On a disk that is read-only it stays. The first recording reports the disk.
            let _ = fs::remove_file(entry.path());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn only_old_temporary_files_are_removed() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        for (name, age) in [(".ptc-a.tmp", 0), (".ptc-b.tmp", 90), ("ptc-c.cassette.json", 90), ("d.tmp", 90)] {
            let file = File::create(folder.path().join(name))?;
            file.set_modified(SystemTime::now() - Duration::from_secs(age))?;
        }
        remove_leftovers(folder.path())?;
        let mut left: Vec<_> = fs::read_dir(folder.path())?.flatten().map(|entry| entry.file_name()).collect();
        left.sort();
        assert_eq!(left, [".ptc-a.tmp", "d.tmp", "ptc-c.cassette.json"]);
        Ok(())
    }
}
