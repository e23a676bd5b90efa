//! Logins in a folder: a file with mode 0600 for each, which is replaced atomically.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::StoreError;

/// Returns the content of a file, if there is one.
///
/// # Errors
///
/// The file cannot be read, or can be read by other users.
pub(super) fn read(path: &Path) -> Result<Option<Zeroizing<Vec<u8>>>, StoreError> {
    let described = |why: &str| format!("the token store {} {why}", path.display());
    match fs::metadata(path) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(why) => return Err(described(&format!("cannot be read: {why}"))),
        Ok(found) if found.permissions().mode() & 0o077 != 0 => {
            return Err(described("can be read by other users: log in again after `chmod 600`"));
        }
        Ok(_) => {}
    }
    ptc_secrets::read_file(path).map(Some).map_err(|_| described("cannot be read"))
}

/// Removes a file, if there is one.
///
/// # Errors
///
/// The file cannot be removed.
pub(super) fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(why) if why.kind() != io::ErrorKind::NotFound => Err(unwritable(path, &why)),
        _ => Ok(()),
    }
}

fn unwritable(path: &Path, why: &io::Error) -> StoreError {
    format!("the token store {} cannot be written: {why}", path.display())
}

/// A new file of a login. It is removed unless it is committed.
pub(crate) struct Replacement {
    file: File,
    path: PathBuf,
    target: PathBuf,
    is_done: bool,
}

impl Replacement {
    /// Creates the file that will replace `target`.
    ///
    /// # Errors
    ///
    /// The folder cannot be written.
    pub(super) fn new(target: PathBuf) -> Result<Replacement, StoreError> {
        let path = target.with_extension("tmp");
        // The rest of a process that ended while it wrote. The caller has the lock, so that no other process writes it now.
        let _ = fs::remove_file(&path);
        let file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&path);
        let file = file.map_err(|why| unwritable(target.parent().unwrap_or(&target), &why))?;
        Ok(Replacement { file, path, target, is_done: false })
    }

    /// Writes the content, and puts the file in the place of the current one.
    ///
    /// # Errors
    ///
    /// The file cannot be written. The current one is unchanged.
    pub(super) fn commit(mut self, bytes: &[u8]) -> Result<(), StoreError> {
        let written = self.file.write_all(bytes).and_then(|()| self.file.sync_all());
        written.and_then(|()| fs::rename(&self.path, &self.target)).map_err(|why| unwritable(&self.target, &why))?;
        self.is_done = true;
        Ok(())
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if !self.is_done {
            // It contains no complete login. The next replacement removes it too.
            let _ = fs::remove_file(&self.path);
        }
    }
}
