//! Builds the programs of a release, and the documents about them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use ptc_packages::sbom::{self, Subject};
use ptc_packages::{notices, portable};
use serde_json::Value;

use super::Release;
use super::platform::Platform;
use super::tree::{DOCUMENTS, LIBRARY, Tree};
use crate::error::Error;

/// Shells with the files of their completions.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/ptc-compile"),
    ("fish", "share/fish/vendor_completions.d/ptc-compile.fish"),
    ("zsh", "share/zsh/site-functions/_ptc-compile"),
];

/// Builds the programs and returns the files of every package.
///
/// # Errors
///
/// If a program cannot be built or started, or a file cannot be read.
pub(super) fn release(root: &Path) -> Result<Release, Error> {
    // One after the other: together, the programs would have the features of both.
    for package in ["ptc-compiler", "ptc-prebuilt"] {
        output(cargo(root).args(["build", "--release", "--locked", "--package", package]))?;
    }
    let target = root.join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()));
    let program = |name: &str| read(&target.join("release").join(format!("{name}{}", std::env::consts::EXE_SUFFIX)));
    let compiler = target.join("release").join(format!("ptc-compile{}", std::env::consts::EXE_SUFFIX));
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let (compiler_bytes, runtime) = (program("ptc-compile")?, program("ptc-runtime")?);
    let platform = Platform::new(&host(root)?, [&compiler_bytes, &runtime])?;

    let mut tree = Tree::default();
    tree.program("bin/ptc-compile", compiler_bytes);
    tree.program(&format!("{LIBRARY}/ptc-runtime"), runtime);
    for (shell, path) in COMPLETIONS {
        tree.file(path, output(Command::new(&compiler).args(["completions", shell]))?);
    }
    let pages = target.join("xtask/man");
    if pages.exists() {
        std::fs::remove_dir_all(&pages).map_err(Error::at("remove", &pages))?;
    }
    output(Command::new(&compiler).arg("man").arg(&pages))?;
    for entry in std::fs::read_dir(&pages).map_err(Error::at("read", &pages))?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        tree.file(&format!("share/man/man1/{name}"), read(&entry.path())?);
    }
    for name in ["LICENSE-APACHE", "LICENSE-MIT", "CHANGELOG.md", "SECURITY.md"] {
        tree.file(&format!("{DOCUMENTS}/{name}"), read(&root.join(name))?);
    }
    let lock = String::from_utf8_lossy(&read(&root.join("Cargo.lock"))?).into_owned();
    let (packages, texts) = linked(root, "compiler", "ptc-compile", &platform)?;
    let subject = Subject {
        name: "ptc-compile",
        reference: "ptc-compile",
        properties: Vec::new(),
        services: Vec::new(),
        tool_version: &version,
    };
    let bill = sbom::document(&subject, &packages, &lock).map_err(|error| Error::new(error.to_string()))?;
    tree.file(&format!("{DOCUMENTS}/ptc-compile.cdx.json"), bill.into_bytes());
    tree.file(&format!("{DOCUMENTS}/ptc-compile.notices"), texts.into_bytes());
    let (packages, texts) = linked(root, "runtime/prebuilt", "ptc-runtime", &platform)?;
    tree.file(&format!("{LIBRARY}/ptc-runtime.packages.json"), format!("{packages:#}\n").into_bytes());
    tree.file(&format!("{LIBRARY}/ptc-runtime.notices"), texts.into_bytes());
    tree.finish();
    Ok(Release { version, platform, tree })
}

/// Returns what is linked into the program of a package: its packages, without paths, and their licence texts.
fn linked(root: &Path, folder: &str, program: &str, platform: &Platform) -> Result<(Value, String), Error> {
    let manifest = root.join(folder).join("Cargo.toml");
    let mut command = cargo(root);
    command.args(["metadata", "--format-version", "1", "--locked", "--filter-platform", &platform.triple, "--manifest-path"]);
    let mut metadata = json(&output(command.arg(&manifest))?)?;
    // `cargo metadata` has the features of the whole workspace; `cargo tree` has those of this package alone.
    let mut command = cargo(root);
    command.args(["tree", "--locked", "--edges", "normal,build", "--prefix", "none", "--format", "{p}", "--target"]);
    let lines = output(command.arg(&platform.triple).arg("--manifest-path").arg(&manifest))?;
    let lines = String::from_utf8_lossy(&lines).into_owned();
    let used: BTreeSet<(&str, &str)> = lines
        .lines()
        .filter_map(|line| line.split_once(" v"))
        .map(|(name, rest)| (name, rest.split(' ').next().unwrap_or(rest)))
        .collect();
    retain(&mut metadata, &used);
    let error = |error: ptc_packages::Error| Error::new(error.to_string());
    Ok((portable(&metadata).map_err(error)?, notices::document(program, &metadata).map_err(error)?))
}

/// Removes dependencies on packages that are not in `used`.
fn retain(metadata: &mut Value, used: &BTreeSet<(&str, &str)>) {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let members = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    let absent: BTreeSet<String> = members(metadata.get("packages"))
        .iter()
        .filter(|package| !used.contains(&(&*text(package.get("name")), &*text(package.get("version")))))
        .map(|package| text(package.get("id")))
        .collect();
    let nodes = metadata.pointer_mut("/resolve/nodes").and_then(Value::as_array_mut);
    for deps in nodes.into_iter().flatten().filter_map(|node| node.get_mut("deps").and_then(Value::as_array_mut)) {
        deps.retain(|dependency| !absent.contains(&text(dependency.get("pkg"))));
    }
}

/// Returns the folder of the workspace.
pub(super) fn workspace() -> Result<PathBuf, Error> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).map(Path::to_owned).ok_or_else(|| Error::new("this package is not in its workspace"))
}

/// Returns the platform for which cargo builds.
fn host(root: &Path) -> Result<String, Error> {
    let said = output(cargo(root).arg("-vV"))?;
    let said = String::from_utf8_lossy(&said);
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| Error::new("cargo does not say for which platform it builds"))
}

fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    // Variables of this package. Build scripts of others would see them and run again each time.
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")) {
            command.env_remove(name);
        }
    }
    command
}

/// Runs a command and returns what it writes on standard output. Its standard error is that of this program.
fn output(command: &mut Command) -> Result<Vec<u8>, Error> {
    let output = command.stderr(std::process::Stdio::inherit()).output();
    let output = output.map_err(|error| Error::new(format!("cannot start {command:?}: {error}")))?;
    if output.status.success() { Ok(output.stdout) } else { Err(Error::new(format!("{command:?} ended with {}", output.status))) }
}

fn json(text: &[u8]) -> Result<Value, Error> {
    serde_json::from_slice(text).map_err(|error| Error::new(format!("a program did not print JSON: {error}")))
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(Error::at("read", path))
}
