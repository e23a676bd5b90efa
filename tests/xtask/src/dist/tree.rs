//! The files that every package has, below the folder into which it is installed.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ptc_packages::sha256;

/// Where `ptc-compile` looks for the prebuilt runtime, beside the folder of its own program.
pub(super) const LIBRARY: &str = "lib/ptc-compile";

/// The folder of licences, bill of materials and checksums.
pub(super) const DOCUMENTS: &str = "share/doc/ptc-compile";

/// A file with its content.
#[derive(Debug, Clone)]
pub(super) struct File {
    pub(super) bytes: Vec<u8>,
    /// Whether it is a program.
    pub(super) executable: bool,
}

/// Files by path.
#[derive(Debug, Clone, Default)]
pub(super) struct Tree(pub(super) BTreeMap<String, File>);

impl Tree {
    pub(super) fn program(&mut self, path: &str, bytes: Vec<u8>) {
        self.0.insert(path.to_owned(), File { bytes, executable: true });
    }

    pub(super) fn file(&mut self, path: &str, bytes: Vec<u8>) {
        self.0.insert(path.to_owned(), File { bytes, executable: false });
    }

    /// Adds the checksums of all files.
    pub(super) fn finish(&mut self) {
        let sums = checksums(self.0.iter().map(|(path, file)| (&**path, &*file.bytes)));
        self.file(&format!("{DOCUMENTS}/SHA256SUMS"), sums.into_bytes());
    }

    /// Returns the files with paths that begin with `prefix`.
    pub(super) fn below(&self, prefix: &str) -> Tree {
        Tree(self.0.iter().map(|(path, file)| (format!("{prefix}{path}"), file.clone())).collect())
    }
}

/// Returns the checksums of files as `sha256sum --check` reads them.
pub(super) fn checksums<'a>(files: impl Iterator<Item = (&'a str, &'a [u8])>) -> String {
    let mut sums = String::new();
    for (path, bytes) in files {
        // Writing to a string cannot fail.
        let _ = writeln!(sums, "{}  {path}", sha256(bytes));
    }
    sums
}
