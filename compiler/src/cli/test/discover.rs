//! Finds files with tests.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::Failure;

/// The end of the names of files with tests.
pub(super) const TESTS: &str = "_test.clj";
/// The end of the names of files with cases.
pub(super) const CASES: &str = "_cases.json";

/// Maximum depth of folders.
const MAX_DEPTH: usize = 32;

/// Files with tests, and the folders in which they were searched for.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The files, sorted.
    pub(super) files: Vec<PathBuf>,
    pub(super) folders: BTreeSet<PathBuf>,
}

/// Returns the files among `paths`, and those with tests in the folders among them.
pub(super) fn files(paths: &[PathBuf]) -> Result<Found, Failure> {
    let mut found = Found::default();
    for path in paths {
        if path.is_dir() {
            search(path, 0, &mut found)?;
        } else {
            found.files.push(path.clone());
        }
    }
    found.files.sort();
    found.files.dedup();
    Ok(found)
}

/// Searches a folder. Hidden folders and `target` are left out.
fn search(folder: &Path, depth: usize, found: &mut Found) -> Result<(), Failure> {
    let folder = if folder == Path::new("") { Path::new(".") } else { folder };
    let unreadable = |error: std::io::Error| Failure::new(format!("cannot read the folder `{}`: {error}", folder.display()));
    found.folders.insert(folder.to_owned());
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if folder == Path::new(".") { PathBuf::from(&name) } else { entry.path() };
        // Links to folders are not followed, since they may lead back.
        if entry.file_type().map_err(unreadable)?.is_dir() {
            if !name.starts_with('.') && name != "target" && depth < MAX_DEPTH {
                search(&path, depth + 1, found)?;
            }
        } else if name.ends_with(TESTS) || name.ends_with(CASES) {
            found.files.push(path);
        }
    }
    Ok(())
}
