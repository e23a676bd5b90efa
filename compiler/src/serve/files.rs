//! Reads files beside a config.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::openapi::Text;
use crate::source::decode;

/// Returns the folder of a config. Relative paths in the config start there.
pub fn folder(config: &Path) -> PathBuf {
    match config.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Reads a file beside the config, such as a `schema_file`, of at most `max_bytes`. `limit` names that limit in the error, for
/// example "the limit of `schema_max_bytes`".
///
/// # Errors
///
/// A sentence: the file cannot be read, is larger than `max_bytes`, or is not UTF-8.
pub fn read(folder: &Path, path: &str, max_bytes: u64, limit: &str) -> Result<Text, String> {
    let path = if folder == Path::new(".") { PathBuf::from(path) } else { folder.join(path) };
    let file = File::open(&path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    file.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > max_bytes {
        return Err(format!("it is larger than {max_bytes} bytes, {limit}"));
    }
    let text = decode(bytes).map_err(|fault| fault.to_string())?;
    Ok(Text::new(path.display().to_string(), text))
}
