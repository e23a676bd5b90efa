//! `cargo xtask dist`: builds `ptc-compile` and the prebuilt runtime, and packs both for several package managers. Nothing is
//! published. Equal sources give packages with equal bytes on one machine.
//!
//! - `build`: builds the programs, and asks them for completions and man pages
//! - `tree`: the files that every package has
//! - `platform`: the names of this platform, and the oldest C library that the programs run with
//! - `archive`: tar and zip files without times and owners
//! - `tarball`, `deb`, `npm`, `wheel`, `container`: a package each

mod archive;
mod build;
mod container;
mod deb;
mod npm;
mod platform;
mod tarball;
mod tree;
mod wheel;

use std::path::{Path, PathBuf};

use clap::Args;

use crate::error::Error;
use platform::Platform;
use tree::Tree;

/// `cargo xtask dist`
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The folder of the packages, whose files with the same names are replaced [default: target/dist in the workspace]
    #[arg(long, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

/// What every package is made of.
struct Release {
    /// The version of the workspace.
    version: String,
    platform: Platform,
    tree: Tree,
}

/// A file of the output folder.
struct Package {
    name: String,
    bytes: Vec<u8>,
}

/// Builds all packages, and a file with their checksums.
///
/// # Errors
///
/// If a program cannot be built, or a file cannot be read or written.
pub(crate) fn run(options: &Options) -> Result<(), Error> {
    let root = build::workspace()?;
    let release = build::release(&root)?;
    let output = options.output.clone().unwrap_or_else(|| root.join("target/dist"));
    let mut packages = vec![tarball::package(&release)?, deb::package(&release)?, wheel::package(&release)?];
    packages.extend(npm::packages(&release)?);
    packages.push(container::package(&release)?);
    let sums = tree::checksums(packages.iter().map(|package| (&*package.name, &*package.bytes)));
    packages.push(Package { name: "SHA256SUMS".to_owned(), bytes: sums.into_bytes() });
    std::fs::create_dir_all(&output).map_err(Error::at("create", &output))?;
    for package in packages {
        write(&output.join(&package.name), &package.bytes)?;
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "this is a command")]
fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    std::fs::write(path, bytes).map_err(Error::at("write", path))?;
    println!("{:>10}  {}", bytes.len(), path.display());
    Ok(())
}
