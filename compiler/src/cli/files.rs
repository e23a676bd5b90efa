//! Replaces files atomically: it writes a temporary file in the same folder and renames it.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use ptc_compiler::files::folder;
use ptc_compiler::serve::private_file;

use crate::Failure;

/// Writes a file if its content differs, and creates missing folders. Returns whether it wrote.
pub(crate) fn write_if_changed(path: &Path, bytes: &[u8]) -> Result<bool, Failure> {
    if std::fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(false);
    }
    replace(path, |file| file.write_all(bytes))?;
    Ok(true)
}

/// Returns whether two paths lead to the same file.
pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
    one == other || matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// Copies a program to `to`. The file there is replaced in one step, so that a running program is not disturbed.
pub(crate) fn copy_program(from: &Path, to: &Path) -> Result<u64, Failure> {
    let beside = prepare(to)?;
    let copied = std::fs::copy(from, &beside).and_then(|bytes| std::fs::rename(&beside, to).map(|()| bytes));
    copied.map_err(|error| {
        // Remove the rest of a failed copy. If that fails too, the outcome is the same.
        let _ = std::fs::remove_file(&beside);
        cannot_write(to, &error)
    })
}

/// Writes a program to `path`. The file there is replaced in one step, so that a running program is not disturbed.
pub(crate) fn write_program(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    replace(path, |file| {
        make_executable(file)?;
        file.write_all(bytes)
    })
}

#[cfg(unix)]
fn make_executable(file: &std::fs::File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    // The mode that a linker gives a new program. The umask has applied already when the file was created.
    let mode = file.metadata()?.permissions().mode();
    file.set_permissions(std::fs::Permissions::from_mode(mode | (mode & 0o444) >> 2))
}

/// The name of the file decides whether it is a program.
#[cfg(not(unix))]
fn make_executable(_: &std::fs::File) -> io::Result<()> {
    Ok(())
}

/// Writes a file that may hold secrets: the new file has the permissions of the old one, or is readable by its owner only.
pub(crate) fn replace_kept_private(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    make_folder(path)?;
    private_file::replace(path, bytes).map_err(|error| cannot_write(path, &error))
}

fn replace(path: &Path, fill: impl FnOnce(&mut std::fs::File) -> io::Result<()>) -> Result<(), Failure> {
    let beside = prepare(path)?;
    let written =
        std::fs::File::create(&beside).and_then(|mut file| fill(&mut file)).and_then(|()| std::fs::rename(&beside, path));
    written.map_err(|error| {
        let _ = std::fs::remove_file(&beside);
        cannot_write(path, &error)
    })
}

/// A folder for files that are only needed during a run. It is removed when it is dropped.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Makes a folder beside the file that is made of its content.
    ///
    /// # Errors
    ///
    /// If the folder cannot be made.
    pub(crate) fn beside(path: &Path) -> Result<Scratch, Failure> {
        let folder = prepare(path)?;
        std::fs::create_dir(&folder).map_err(|error| cannot_write(path, &error))?;
        Ok(Scratch(folder))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed does no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Creates the folder of `path`.
fn make_folder(path: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder(path)).map_err(|error| cannot_write(path, &error))
}

/// Creates the folder of `path`, and returns the name of a file in it that no other process or thread uses.
fn prepare(path: &Path) -> Result<PathBuf, Failure> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    make_folder(path)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    Ok(path.with_file_name(format!(".{name}.{}-{count}.tmp", std::process::id())))
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("cannot write `{}`: {error}", path.display()))
}
