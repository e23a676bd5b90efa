//! The packages for npm: `ptc-compile-OS-CPU-VERSION.tgz` has the programs, and `ptc-compile-VERSION.tgz` starts those of its platform.

use serde_json::{Value, json};

use super::tree::Tree;
use super::{Package, Release, archive};
use crate::error::Error;

/// The program of the package without programs.
const LAUNCHER: &str = include_str!("launcher.js");

pub(super) fn packages(release: &Release) -> Result<[Package; 2], Error> {
    let version = &release.version;
    let (os, cpu) = release.platform.npm;
    let platform = format!("ptc-compile-{os}-{cpu}");
    let mut programs = release.tree.below("package/");
    let described = described(
        &platform,
        version,
        &json!({ "description": format!("ptc-compile for {os} on {cpu}"), "os": [os], "cpu": [cpu], "libc": ["glibc"] }),
    );
    programs.file("package/package.json", described);
    let mut launcher = Tree::default();
    launcher.program("package/bin/ptc-compile.js", LAUNCHER.into());
    for (path, file) in release.tree.0.iter().filter(|(path, _)| path.contains("/LICENSE-")) {
        let name = path.rsplit('/').next().unwrap_or(path);
        launcher.file(&format!("package/{name}"), file.bytes.clone());
    }
    let described = self::described(
        "ptc-compile",
        version,
        &json!({
            "description": "Compiles a list of tool servers into one MCP server whose tools are fixed",
            "bin": { "ptc-compile": "bin/ptc-compile.js" },
            "engines": { "node": ">=18" },
            "optionalDependencies": { platform.as_str(): version },
        }),
    );
    launcher.file("package/package.json", described);
    Ok([pack(&platform, version, &programs)?, pack("ptc-compile", version, &launcher)?])
}

/// Returns a `package.json`.
fn described(name: &str, version: &str, other: &Value) -> Vec<u8> {
    let mut json = json!({ "name": name, "version": version, "license": "MIT OR Apache-2.0" });
    if let (Some(members), Some(other)) = (json.as_object_mut(), other.as_object()) {
        members.extend(other.clone());
    }
    format!("{json:#}\n").into_bytes()
}

fn pack(name: &str, version: &str, tree: &Tree) -> Result<Package, Error> {
    let bytes = archive::tar_gz(tree, false).map_err(Error::writing(name))?;
    Ok(Package { name: format!("{name}-{version}.tgz"), bytes })
}
