//! Reads files beside a config.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::input::{Text, Unreadable, Wanted};
use crate::source::decode;

/// Returns the folder of a config. Relative paths in the config start there.
pub fn folder(config: &Path) -> PathBuf {
    match config.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Reads a file beside the config in `folder`, such as a `schema_file`. The path of the text begins with `folder`.
///
/// # Errors
///
/// The file cannot be read, is too large, is not UTF-8, or is not in the folder that must contain it.
pub fn read(folder: &Path, wanted: &Wanted<'_>) -> Result<Text, Unreadable> {
    let Wanted { path, max_bytes, within, .. } = *wanted;
    let beside = |path: &str| if folder == Path::new(".") { PathBuf::from(path) } else { folder.join(path) };
    let path = beside(path);
    let failed = |error: std::io::Error| error.to_string();
    // The path that is compared is also the one that is opened.
    let real = if within.is_some() { path.canonicalize().map_err(failed)? } else { path.clone() };
    if let Some(within) = within
        && !real.starts_with(beside(within).canonicalize().map_err(failed)?)
    {
        return Err(Unreadable::Outside);
    }
    let file = File::open(&real).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > max_bytes {
        return Err(Unreadable::TooLarge(max_bytes));
    }
    let text = decode(bytes).map_err(|fault| fault.to_string())?;
    Ok(Text::new(path.display().to_string(), text))
}
