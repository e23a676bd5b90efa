//! The wheel for PyPI. It has no Python code: `pip` puts the programs and their files into the environment.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use super::tree::{DOCUMENTS, Tree};
use super::{Package, Release, archive};
use crate::error::Error;

pub(super) fn package(release: &Release) -> Result<Package, Error> {
    let (version, platform) = (&release.version, &release.platform);
    let stem = format!("ptc_compile-{version}");
    let tag = format!("py3-none-manylinux_{}_{}_{}", platform.glibc.0, platform.glibc.1, platform.python);
    let info = format!("{stem}.dist-info");
    let mut tree = Tree::default();
    for (path, file) in &release.tree.0 {
        // Programs of the scheme `scripts` go beside Python, all others below the environment's folder.
        let place = path.strip_prefix("bin/").map_or_else(|| format!("data/{path}"), |name| format!("scripts/{name}"));
        tree.0.insert(format!("{stem}.data/{place}"), file.clone());
    }
    for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
        if let Some(file) = release.tree.0.get(&format!("{DOCUMENTS}/{name}")) {
            tree.file(&format!("{info}/licenses/{name}"), file.bytes.clone());
        }
    }
    let metadata = format!(
        "Metadata-Version: 2.4\nName: ptc-compile\nVersion: {version}\n\
         Summary: Compiles a list of tool servers into one MCP server whose tools are fixed\n\
         License-Expression: MIT OR Apache-2.0\nLicense-File: LICENSE-APACHE\nLicense-File: LICENSE-MIT\n"
    );
    tree.file(&format!("{info}/METADATA"), metadata.into_bytes());
    let wheel = format!("Wheel-Version: 1.0\nGenerator: cargo xtask dist\nRoot-Is-Purelib: false\nTag: {tag}\n");
    tree.file(&format!("{info}/WHEEL"), wheel.into_bytes());
    let record = format!("{info}/RECORD");
    let mut rows = String::new();
    for (path, file) in &tree.0 {
        // Writing to a string cannot fail.
        let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(&file.bytes));
        let _ = writeln!(rows, "{path},sha256={digest},{}", file.bytes.len());
    }
    let _ = writeln!(rows, "{record},,");
    tree.file(&record, rows.into_bytes());
    let name = format!("{stem}-{tag}.whl");
    let bytes = archive::zip(&tree).map_err(Error::writing(&name))?;
    Ok(Package { name, bytes })
}
