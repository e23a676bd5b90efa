//! Tests `ptc-compile` outside its workspace: only the program and a config, in an empty folder.

#![expect(clippy::unwrap_used, reason = "a test stops where anything is wrong")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use ptc_compiler::json::Json;
use ptc_compiler::lock::{self, Lock, LockedTool, LockedUpstream};

/// Serializes builds, since a build compares the contents of the cache, which another build would change.
static BUILDING: Mutex<()> = Mutex::new(());

/// An empty folder outside the workspace, which is deleted when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("ptc-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// Copies the program into the folder.
    fn copy_program(&self) {
        // If this process wrote the file, a child that another test starts meanwhile would hold it open, and it could not be run.
        let copied = Command::new("cp").args([env!("CARGO_BIN_EXE_ptc-compile"), "ptc-compile"]).current_dir(&self.0).status();
        assert!(copied.unwrap().success());
    }

    /// Copies the program, and writes a config and a lock file that pins its one upstream, whose program does not exist.
    fn install(&self) {
        self.copy_program();
        fs::write(
            self.0.join("clinic.json"),
            r#"{"upstreams": {"notes": {"transport": "mcp_stdio", "command": "no-such-program"}}}"#,
        )
        .unwrap();
        let tool = Json::object()
            .with("name", Json::string("list"))
            .with("inputSchema", Json::object().with("type", Json::string("object")));
        let mut notes = LockedUpstream { transport: "mcp_stdio".into(), all_tools: true, ..LockedUpstream::default() };
        notes.tools.insert("list".into(), LockedTool::new(tool));
        let mut pinned = Lock::default();
        pinned.upstreams.insert("notes".into(), notes);
        fs::write(self.0.join("clinic.lock.json"), lock::write::write(&pinned)).unwrap();
    }

    /// Runs a program of the folder. Only the variables `keep` of this process's environment are passed on.
    fn run(&self, program: &str, args: &[&str], keep: &[&str]) -> Output {
        self.command(program, args, keep).output().unwrap()
    }

    fn command(&self, program: &str, args: &[&str], keep: &[&str]) -> Command {
        let mut command = Command::new(self.0.join(program));
        command.current_dir(&self.0).args(args).env_clear();
        for name in keep {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command.env("PTC_COMPILE_CACHE", cache());
        command
    }
}

/// Returns every compiled runtime in the cache with the time of its last modification.
fn runtimes() -> BTreeMap<PathBuf, SystemTime> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![cache()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let (path, about) = (entry.path(), entry.metadata().unwrap());
            let name = entry.file_name().into_string().unwrap();
            if about.is_dir() {
                waiting.push(path);
            } else if name.starts_with("libptc_runtime-") && path.extension().is_some_and(|kind| kind == "rlib") {
                found.insert(path, about.modified().unwrap());
            }
        }
    }
    found
}

/// The cache is kept between runs, so that each version of the runtime is compiled once.
fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("installed")
}

impl Drop for Folder {
    fn drop(&mut self) {
        // If the folder cannot be removed, it stays in the system's temporary folder, which is harmless.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
#[ignore = "slow: builds a binary"]
fn installed_compiler_builds_in_an_empty_folder() {
    let _alone = BUILDING.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = Folder::new("installed");
    folder.install();
    let built = folder.run(
        "ptc-compile",
        &["clinic.json", "--locked", "--eval", "(+ 1 2)"],
        &["PATH", "HOME", "CARGO_HOME", "RUSTUP_HOME"],
    );
    assert!(built.status.success(), "{}{}", text(&built.stdout), text(&built.stderr));
    assert!(text(&built.stdout).contains("\nuser=> 3\n"), "{}", text(&built.stdout));
    let asked = folder.run("target/ptc/clinic", &["eval", "(dir \"notes\")"], &[]);
    assert!(text(&asked.stdout).contains("list"), "{}{}", text(&asked.stdout), text(&asked.stderr));
    shows_no_path(&folder.0.join("target/ptc/clinic"));
}

/// Checks the build with a linker that does not support the folding option, such as GNU's.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn a_linker_that_cannot_fold(folder: &Folder, keep: &[&str]) {
    use std::os::unix::fs::PermissionsExt;

    // The script is found in `PATH` before the machine's own linker. If cargo's configuration named another linker, cargo would
    // compile everything again.
    let linker = folder.0.join("cc");
    let script = "#!/bin/sh\ncase \"$*\" in *--icf*) echo \"unrecognized option '--icf=all'\" >&2; exit 1;; esac\n\
        PATH=${PATH#*:}\nexec cc \"$@\"\n";
    fs::write(&linker, script).unwrap();
    fs::set_permissions(&linker, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command =
        folder.command("ptc-compile", &["upstreams.json", "-o", "plain", "--serve", "stdio", "--locked", "--offline"], keep);
    let path = format!("{}:{}", folder.0.display(), std::env::var("PATH").unwrap());
    let runtime = runtimes();
    let built = command.env("PATH", path).output().unwrap();
    assert!(built.status.success(), "{}", text(&built.stderr));
    assert_eq!(runtimes(), runtime, "the runtime is compiled once");
    assert!(folder.0.join("plain").metadata().unwrap().len() > folder.0.join("gate").metadata().unwrap().len());
}

/// Checks that the binary contains neither the path of the build nor the paths of its sources.
fn shows_no_path(binary: &Path) {
    let bytes = fs::read(binary).unwrap();
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().display().to_string();
    let mut paths = vec![workspace];
    for name in ["HOME", "CARGO_HOME", "PTC_COMPILE_CACHE"] {
        paths.extend(std::env::var(name).ok().filter(|path| path.len() > 1));
    }
    for path in paths {
        // The separator is part of the pattern, since `/root` alone occurs in many texts.
        let needle = format!("{path}{}", std::path::MAIN_SEPARATOR);
        let found = bytes.windows(needle.len()).position(|part| part == needle.as_bytes());
        let around = found.map(|at| String::from_utf8_lossy(bytes.get(at..at + 120).unwrap_or_default()).into_owned());
        assert_eq!(around, None, "the binary names {path}");
    }
}

#[test]
#[ignore = "slow: builds a binary"]
fn config_with_a_document_needs_no_other_files() {
    let _alone = BUILDING.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = Folder::new("document");
    folder.copy_program();
    fs::write(
        folder.0.join("upstreams.json"),
        r#"{"upstreams": {"shop": {"transport": "openapi", "base_url": "https://shop.example.com", "schema_file": "shop.json",
            "include_operations": ["listOrders"]}}}"#,
    )
    .unwrap();
    fs::write(
        folder.0.join("shop.json"),
        r#"{"openapi": "3.0.3", "paths": {"/orders": {"get": {"operationId": "listOrders",
            "responses": {"200": {"content": {"application/json": {}}}}}}}}"#,
    )
    .unwrap();
    let keep = ["PATH", "HOME", "CARGO_HOME", "RUSTUP_HOME"];
    let built =
        folder.run("ptc-compile", &["upstreams.json", "-o", "gate", "--serve", "stdio", "--eval", "(dir \"shop\")"], &keep);
    assert!(built.status.success(), "{}{}", text(&built.stdout), text(&built.stderr));
    assert!(text(&built.stdout).contains("list-orders"), "{}", text(&built.stdout));
    let written = fs::read_to_string(folder.0.join("upstreams.lock.json")).unwrap();
    assert!(written.contains("list-orders") && written.contains("sha256:"), "{written}");
    shows_no_path(&folder.0.join("gate"));
    // The written lock can be built from, and the next deployment compiles only its own crate.
    let runtime = runtimes();
    let again = folder.run("ptc-compile", &["upstreams.json", "-o", "next", "--serve", "stdio", "--locked", "--offline"], &keep);
    assert!(again.status.success(), "{}", text(&again.stderr));
    assert_eq!((runtime.is_empty(), runtimes()), (false, runtime), "the runtime is compiled once");
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    a_linker_that_cannot_fold(&folder, &keep);
    let listening = folder.run("gate", &["--http"], &keep);
    let said = text(&listening.stderr);
    assert!(!listening.status.success() && said.contains("`--serve http`"), "{said}");
}

#[test]
fn missing_toolchain_is_reported_with_instructions() {
    let folder = Folder::new("bare");
    folder.install();
    let built = folder.run("ptc-compile", &["clinic.json"], &[]);
    assert_eq!(built.status.code(), Some(2));
    let said = text(&built.stderr);
    assert!(said.contains("no Rust toolchain") && said.contains("rustup"), "{said}");
}
