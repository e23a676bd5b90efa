//! Archives without times and owners, so that equal files give equal bytes.

use std::io::{Cursor, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::tree::{File, Tree};

fn mode(file: &File) -> u32 {
    if file.executable { 0o755 } else { 0o644 }
}

/// Returns the files as `.tar.gz`. `folders` adds an entry for each folder, which Debian's package manager needs.
pub(super) fn tar_gz(tree: &Tree, folders: bool) -> std::io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::best()));
    let mut last: Vec<String> = Vec::new();
    for (path, file) in &tree.0 {
        if folders {
            let parents: Vec<String> = path.match_indices('/').filter_map(|(at, _)| path.get(..=at)).map(str::to_owned).collect();
            for folder in parents.iter().filter(|folder| !last.contains(folder)) {
                let mut header = header(tar::EntryType::Directory, 0, 0o755);
                archive.append_data(&mut header, folder, std::io::empty())?;
            }
            last.extend(parents);
        }
        let mut header = header(tar::EntryType::Regular, file.bytes.len() as u64, mode(file));
        archive.append_data(&mut header, path, file.bytes.as_slice())?;
    }
    archive.into_inner()?.finish()
}

fn header(kind: tar::EntryType, size: u64, mode: u32) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(mode);
    header
}

/// Returns the files as `.zip`.
pub(super) fn zip(tree: &Tree) -> zip::result::ZipResult<Vec<u8>> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (path, file) in &tree.0 {
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
        archive.start_file(path.as_str(), options.unix_permissions(mode(file)))?;
        archive.write_all(&file.bytes)?;
    }
    Ok(archive.finish()?.into_inner())
}
