//! What users of the macro see: every file of `tests/ui` is a program, checked by the real compiler. Beside a program that is not to
//! compile stands what the compiler says of it; all others compile.
//!
//! `UPDATE_EXPECT=1 cargo test -p ptc-macros --test ui` writes what is said; read the difference before committing.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The crate that the programs are binaries of. It has the profile of this workspace, so that what both use is compiled once.
const MANIFEST: &str = r#"
[package]
name = "ptc-macros-ui"
version = "0.0.0"
edition = "2024"

[dependencies]
ptc-catalog = { path = "WORKSPACE/runtime/catalog" }
ptc-macros = { path = "WORKSPACE/macros" }
serde = { version = "1", features = ["derive"] }
serde_json = "1"

[profile.dev]
debug = "line-tables-only"

[workspace]
"#;

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder can be made");
    for path in listed(from) {
        let target = to.join(path.file_name().expect("entries have names"));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).expect("a file can be copied");
        }
    }
}

fn listed(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder can be listed");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry can be read").path()).collect();
    paths.sort();
    paths
}

/// What the compiler says of each program, by the program's name: places and messages, without the compiler's own drawings, which change
/// from version to version.
fn said() -> BTreeMap<String, String> {
    let workspace = here().parent().expect("the package lies in the workspace");
    let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let project = tmp.join("ui");
    let _ = fs::remove_dir_all(project.join("src"));
    copy(&here().join("tests/configs"), &project.join("configs"));
    let programs: Vec<PathBuf> =
        listed(&here().join("tests/ui")).into_iter().filter(|path| path.extension().is_some_and(|e| e == "rs")).collect();
    fs::create_dir_all(project.join("src/bin")).expect("a folder can be made");
    for path in &programs {
        fs::copy(path, project.join("src/bin").join(path.file_name().expect("programs have names"))).expect("it can be copied");
    }
    fs::write(project.join("Cargo.toml"), MANIFEST.replace("WORKSPACE", &workspace.display().to_string())).expect("a manifest");
    fs::copy(workspace.join("Cargo.lock"), project.join("Cargo.lock")).expect("a lock file");
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["check", "--bins", "--keep-going", "--offline", "--message-format=json", "--quiet"])
        .current_dir(&project)
        .env("CARGO_TARGET_DIR", tmp.parent().expect("it lies in the target directory"))
        .output()
        .expect("cargo can be started");
    let name = |path: &PathBuf| path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let mut said: BTreeMap<String, String> = programs.iter().map(|path| (name(path), String::new())).collect();
    let mut seen = 0;
    for line in String::from_utf8(output.stdout).expect("cargo speaks UTF-8").lines() {
        let message: Value = serde_json::from_str(line).expect("each line is one JSON object");
        let at = |path: &str| message.pointer(path).unwrap_or(&Value::Null);
        seen += usize::from(at("/target/kind/0") == "bin");
        let (Some(program), Some("error")) = (at("/target/name").as_str(), at("/message/level").as_str()) else {
            continue;
        };
        let text = at("/message/message").as_str().unwrap_or_default();
        let span = at("/message/spans/0");
        // The count of errors at the end has no place.
        if let (Some(said), false) = (said.get_mut(program), span.is_null()) {
            writeln!(said, "{}:{}: {}", at("/message/spans/0/line_start"), at("/message/spans/0/column_start"), text.trim())
                .expect("a string takes all");
        }
    }
    assert!(seen > 0, "cargo checked nothing: {}", String::from_utf8_lossy(&output.stderr));
    said
}

#[test]
fn programs_compile_or_say_what_is_wrong() {
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let mut wrong = Vec::new();
    for (program, said) in said() {
        let expected = here().join("tests/ui").join(format!("{program}.txt"));
        if update && !said.is_empty() {
            fs::write(&expected, &said).expect("it can be written");
        } else if fs::read_to_string(&expected).unwrap_or_default() != said {
            wrong.push(format!("== {program}\n{said}"));
        }
    }
    assert!(wrong.is_empty(), "not as expected (UPDATE_EXPECT=1 accepts):\n{}", wrong.join("\n"));
}
