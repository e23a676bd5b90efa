//! Finds files with tests.

use std::path::{Path, PathBuf};

use crate::Failure;

/// The end of the names of files with tests.
pub(super) const TESTS: &str = "_test.clj";
/// The end of the names of files with cases.
pub(super) const CASES: &str = "_cases.json";

/// Maximum depth of folders.
const MAX_DEPTH: usize = 32;

/// Returns the files among `paths`, and those with tests in the folders among them, sorted.
pub(super) fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            search(path, 0, &mut found)?;
        } else {
            found.push(path.clone());
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// Returns the files with tests in a folder, without those in folders below it.
pub(super) fn beside(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    search(folder, MAX_DEPTH, &mut found)?;
    found.sort();
    Ok(found)
}

/// Searches a folder. Hidden folders and `target` are left out.
fn search(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let folder = if folder == Path::new("") { Path::new(".") } else { folder };
    let unreadable = |error: std::io::Error| Failure::new(format!("cannot read the folder `{}`: {error}", folder.display()));
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
            found.push(path);
        }
    }
    Ok(())
}
