//! Computes a digest of the runtime's own sources, so that a binary can report what it was built from.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use sha2::{Digest, Sha256};

/// Folders of the packages that pinned binaries link, relative to this one.
const PACKAGES: [&str; 22] = [
    "",
    "cassette",
    "catalog",
    "check",
    "engine",
    "isolation",
    "json",
    "json-schema",
    "lisp",
    "log",
    "oauth-client",
    "otlp",
    "policy",
    "regex",
    "resource-server",
    "schedule",
    "search",
    "secrets",
    "session-redis",
    "text",
    "upstream",
    "viewer",
];

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    println!("cargo:rerun-if-changed=build.rs");
    let mut files = Vec::new();
    for package in PACKAGES {
        let folder = root.join(package);
        let sources = folder.join("src");
        println!("cargo:rerun-if-changed={}", sources.display());
        collect(&sources, &mut files)?;
    }
    files.sort();
    let mut digest = Sha256::new();
    for file in &files {
        let path = file.strip_prefix(&root)?.to_str().ok_or("paths are UTF-8")?.replace('\\', "/");
        digest.update(path.as_bytes());
        digest.update([0]);
        let bytes = fs::read(file)?;
        digest.update(bytes.len().to_le_bytes());
        digest.update(bytes);
    }
    let mut hex = String::from("sha256:");
    for byte in digest.finalize() {
        write!(hex, "{byte:02x}")?;
    }
    println!("cargo:rustc-env=PTC_RUNTIME_DIGEST={hex}");
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
