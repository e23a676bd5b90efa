//! Reads secrets from files.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use zeroize::Zeroizing;

use super::resolve::Problem;

/// Maximum bytes of a file that contains a secret. Keys and tokens have a few thousand bytes.
pub(super) const MAX_BYTES: usize = 64 * 1024;

/// Returns the content of a regular file or of a link to one. Pipes and devices are rejected, since reading them may not end.
///
/// # Errors
///
/// Returns an error if the path is not a regular file, cannot be read, or has more than 64 KiB.
pub fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>, Problem> {
    let unreadable = |why: std::io::Error| Problem::Unreadable(why.to_string());
    // This check comes before the file is opened, since opening a pipe without a writer blocks.
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(Problem::NoFile);
    }
    // The full capacity is allocated in advance. A reallocation would leave a copy of the secret behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_BYTES + 1));
    File::open(path).map_err(unreadable)?.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() > MAX_BYTES { Err(Problem::TooLong) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_folders_and_oversized_files_are_refused() {
        let folder = std::env::temp_dir().join(format!("ptc-secret-files-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (full, over, link, pipe) = (folder.join("full"), folder.join("over"), folder.join("link"), folder.join("pipe"));
        std::fs::write(&full, vec![b'x'; MAX_BYTES]).unwrap();
        std::fs::write(&over, vec![b'x'; MAX_BYTES + 1]).unwrap();
        std::os::unix::fs::symlink(&full, &link).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for (path, found) in [
            (&*full, Ok(MAX_BYTES)),
            (&*link, Ok(MAX_BYTES)),
            (&*over, Err(Problem::TooLong)),
            (&*pipe, Err(Problem::NoFile)),
            (&*folder, Err(Problem::NoFile)),
            (Path::new("/dev/zero"), Err(Problem::NoFile)),
            (&*folder.join("none"), Err(Problem::Unreadable("No such file or directory (os error 2)".to_owned()))),
        ] {
            assert_eq!(read(path).map(|bytes| bytes.len()), found, "{}", path.display());
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
