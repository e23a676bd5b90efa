//! Tests the packages of `cargo xtask dist`. Each is installed from its file into an empty folder. Without cargo, it builds the
//! quickstart's config, and the new binary answers.

#![expect(clippy::indexing_slicing, reason = "a test stops where an answer lacks what it looks at")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use ptc_tests::deployment::{cargo, quickstart_ports, workspace};
use ptc_tests::peers::{npm_file, python_module};
use ptc_tests::process::run;
use serde_json::Value;
use tempfile::TempDir;

/// Programs that a package manager or an upstream needs. All others, and cargo among them, are not in `PATH`.
const PROGRAMS: [&str; 9] = ["awk", "bash", "cat", "env", "node", "npx", "sh", "tail", "tr"];

/// Maximum processor time from a client's config to a first answer, in seconds.
const MAX_PROCESSOR_SECONDS: f64 = 10.0;

/// Returns the folder with all packages, which are built once.
fn packages() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let output = workspace().join("target/dist-under-test");
        run(cargo().args(["xtask", "dist", "--output"]).arg(&output)).success();
        output
    })
}

/// Returns the one package whose name begins and ends so.
fn package(begin: &str, end: &str) -> PathBuf {
    let entries = fs::read_dir(packages()).expect("the packages are there").flatten();
    let name = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    let mut found = entries.map(|entry| entry.path()).filter(|path| name(path).starts_with(begin) && name(path).ends_with(end));
    let first = found.next().unwrap_or_else(|| panic!("no package {begin}…{end}"));
    assert!(found.next().is_none(), "two packages {begin}…{end}");
    first
}

/// An empty folder with an installed package.
struct Installed {
    folder: TempDir,
    /// The folder of `ptc-compile`.
    programs: PathBuf,
}

impl Installed {
    /// Installs a package into a folder with `install`, which returns the folder of `ptc-compile`.
    fn new(install: impl FnOnce(&Path) -> PathBuf) -> Installed {
        let folder = tempfile::tempdir().expect("a folder");
        let programs = install(folder.path());
        let tools = folder.path().join("tools");
        fs::create_dir(&tools).expect("a folder");
        for name in PROGRAMS {
            let found = run(Command::new("sh").args(["-c", &format!("command -v {name}")])).success();
            symlink(found.trim_end(), tools.join(name)).expect("a link");
        }
        fs::create_dir(folder.path().join("work")).expect("a folder");
        Installed { folder, programs }
    }

    fn command(&self, program: &str) -> Command {
        let path = std::env::join_paths([self.programs.clone(), self.folder.path().join("tools")]).expect("a path");
        let work = self.folder.path().join("work");
        let mut command = Command::new(program);
        command.current_dir(&work).env_clear().env("HOME", &work).env("PATH", path);
        command
    }

    /// Runs a line of a shell, and returns what it prints.
    fn sh(&self, line: &str) -> String {
        run(self.command("/bin/sh").args(["-c", line])).success()
    }

    /// Builds the quickstart's config, and checks the binary and the documents.
    fn builds_the_quickstart(&self) {
        let _ports = quickstart_ports();
        self.sh("! command -v cargo && ptc-compile demo --write .");
        let printed = self.sh("ptc-compile upstreams.json --locked --output ./pinned --sbom sbom.json --notices notices.txt");
        assert!(printed.lines().any(|line| line.starts_with("linker ") && line.contains("prebuilt")), "{printed}");
        assert_eq!(self.sh("./pinned eval \"$(cat due.clj)\"").trim_end(), "{\"Ada\" 1985 \"Grace\" 1640 \"Ken\" 1660}");

        let work = self.folder.path().join("work");
        let bill: Value = serde_json::from_slice(&fs::read(work.join("sbom.json")).expect("it was written")).expect("JSON");
        let components = bill["components"].as_array().expect("components");
        let named = |name: &str| components.iter().any(|component| component["name"] == name);
        assert!(named("ptc-image") && named("tokio") && !named("clap"), "{bill}");
        assert!(!bill.to_string().contains("/work") && !bill.to_string().contains("file:"), "paths of the build: {bill}");
        let notices = fs::read_to_string(work.join("notices.txt")).expect("it was written");
        assert!(notices.contains("tokio ") && notices.contains("Permission is hereby granted"), "{notices}");
    }
}

/// Checks the checksums of all installed files below `prefix`.
fn checksums_hold(prefix: &Path) {
    let sums = prefix.join("share/doc/ptc-compile/SHA256SUMS");
    run(Command::new("sha256sum").args(["--check", "--strict", "--quiet"]).arg(sums).current_dir(prefix)).success();
}

/// Unpacks an archive into a folder.
fn unpack(archive: &Path, folder: &Path) {
    run(Command::new("tar").arg("--extract").arg("--file").arg(archive).arg("--directory").arg(folder)).success();
}

#[test]
#[ignore = "slow: builds packages"]
fn tarball_works_where_it_is_unpacked() {
    let installed = Installed::new(|folder| {
        unpack(&package("ptc-compile-", "-unknown-linux-gnu.tar.gz"), folder);
        let prefix = fs::read_dir(folder).expect("a folder").flatten().next().expect("one folder").path();
        checksums_hold(&prefix);
        for path in ["share/man/man1/ptc-compile.1", "share/bash-completion/completions/ptc-compile"] {
            assert!(prefix.join(path).is_file(), "{path}");
        }
        prefix.join("bin")
    });
    installed.builds_the_quickstart();
    let sums = packages().join("SHA256SUMS");
    run(Command::new("sha256sum").args(["--check", "--strict", "--quiet"]).arg(sums).current_dir(packages())).success();
}

#[test]
#[ignore = "slow: builds packages"]
fn deb_package_is_installed_by_dpkg() {
    let deb = package("ptc-compile_", ".deb");
    let control = run(Command::new("dpkg-deb").arg("--info").arg(&deb)).success();
    assert!(control.contains("Package: ptc-compile") && control.contains("Depends: libc6 (>= 2."), "{control}");
    let installed = Installed::new(|folder| {
        let mut dpkg = Command::new("dpkg");
        dpkg.arg("--root").arg(folder).args(["--force-not-root", "--force-depends", "--install"]).arg(&deb);
        fs::create_dir_all(folder.join("var/lib/dpkg/updates")).expect("a folder");
        fs::create_dir_all(folder.join("var/lib/dpkg/info")).expect("a folder");
        for name in ["available", "status"] {
            fs::write(folder.join("var/lib/dpkg").join(name), "").expect("a file");
        }
        run(&mut dpkg).success();
        checksums_hold(&folder.join("usr"));
        folder.join("usr/bin")
    });
    installed.builds_the_quickstart();
}

#[test]
#[ignore = "slow: builds packages"]
fn npm_packages_are_installed_by_npm() {
    let installed = Installed::new(|folder| {
        let mut npm = Command::new("npm");
        npm.args(["install", "--offline", "--no-audit", "--no-fund", "--global", "--prefix"]).arg(folder.join("prefix"));
        npm.env("npm_config_cache", folder.join("cache"));
        let version = env!("CARGO_PKG_VERSION");
        run(npm.arg(package("ptc-compile-linux-", ".tgz")).arg(packages().join(format!("ptc-compile-{version}.tgz")))).success();
        folder.join("prefix/bin")
    });
    installed.builds_the_quickstart();

    // Exit codes and messages are those of the program.
    let refused = run(installed.command("/bin/sh").args(["-c", "ptc-compile no-such-file.json"]));
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("no-such-file.json"), "{refused:?}");
}

#[test]
#[ignore = "slow: builds packages"]
fn wheel_is_installed_by_pip() {
    let installed = Installed::new(|folder| {
        let environment = folder.join("venv");
        run(python_module("venv").arg(&environment)).success();
        let mut pip = Command::new(environment.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--no-index", "--disable-pip-version-check"]);
        run(pip.arg(package("ptc_compile-", ".whl"))).success();
        checksums_hold(&environment);
        environment.join("bin")
    });
    installed.builds_the_quickstart();
}

/// Checks the files that the image has. Building it needs a container engine and a registry.
#[test]
#[ignore = "slow: builds packages"]
fn context_of_the_container_has_all_that_its_dockerfile_copies() {
    let installed = Installed::new(|folder| {
        unpack(&package("ptc-compile-", "-container-amd64.tar.gz"), folder);
        let dockerfile = fs::read_to_string(folder.join("Dockerfile")).expect("a Dockerfile");
        assert!(dockerfile.contains("\nCOPY usr /usr\n") && dockerfile.contains("ENTRYPOINT [\"ptc-compile\"]"), "{dockerfile}");
        checksums_hold(&folder.join("usr"));
        folder.join("usr/bin")
    });
    installed.builds_the_quickstart();
}

/// The config is the one that the published package `server-memory` shows its users.
#[test]
#[ignore = "slow: builds packages"]
fn first_answer_from_a_published_config_takes_ten_seconds_of_processor_time() {
    let installed = Installed::new(|folder| {
        unpack(&package("ptc-compile-", "-unknown-linux-gnu.tar.gz"), folder);
        fs::read_dir(folder).expect("a folder").flatten().next().expect("one folder").path().join("bin")
    });
    let page = fs::read_to_string(npm_file("@modelcontextprotocol/server-memory/README.md")).expect("a page");
    let config = page.split("```json\n").filter_map(|block| block.split("```").next()).find(|block| block.contains("npx"));
    let work = installed.folder.path().join("work");
    fs::write(work.join(".mcp.json"), config.expect("a config")).expect("it can be written");
    // npx takes the server from here, and not from a registry.
    symlink(npm_file(""), work.join("node_modules")).expect("a link");
    let printed = run(installed.command("bash").arg(workspace().join("tests/peers/first_answer.sh")));
    let lines: Vec<&str> = printed.stdout.lines().rev().take(2).collect();
    let [seconds, answer] = lines.as_slice() else { panic!("{printed:?}") };
    assert_eq!(*answer, "9", "{printed:?}");
    let seconds: f64 = seconds.parse().unwrap_or_else(|_| panic!("{printed:?}"));
    assert!(seconds < MAX_PROCESSOR_SECONDS, "{seconds} s: {printed:?}");
}
