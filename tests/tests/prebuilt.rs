//! Tests binaries that are made of a prebuilt runtime: they answer like those that cargo links, and refuse what is damaged.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ptc_tests::deployment::{build, prebuilt_runtime, ptc_compile, quickstart, quickstart_ports, workspace};
use ptc_tests::mcp::Client;
use ptc_tests::process::run;
use serde_json::{Value, json};

/// Makes a binary of the quickstart with the prebuilt runtime.
fn prebuilt(folder: &Path) -> PathBuf {
    prebuilt_runtime();
    let output = folder.join("quickstart");
    build(&workspace().join("fixtures/quickstart/upstreams.json"), &output, &["--locked", "--offline", "--link", "prebuilt"]);
    output
}

/// Runs `ptc-compile` on a machine without cargo, with its prebuilt runtimes in `folder`.
fn without_cargo(folder: &Path, args: &[&OsStr]) -> Output {
    let mut command = Command::new(ptc_compile());
    command.current_dir(folder).env_clear().env("HOME", folder).env("PTC_COMPILE_RUNTIMES", folder.join("runtimes"));
    command.args(args).output().expect("ptc-compile is there")
}

/// Members of answers that differ each time.
fn without_times(mut answer: Value) -> Value {
    match &mut answer {
        Value::Object(members) => {
            for key in ["duration_ms", "ptc-compile/build", "uptime_ms"] {
                members.remove(key);
            }
            members.values_mut().for_each(|member| *member = without_times(member.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = without_times(item.take())),
        _ => {}
    }
    answer
}

#[test]
#[ignore = "slow: builds a binary"]
fn both_linkers_give_equal_answers() {
    let folder = tempfile::tempdir().expect("a folder");
    let _ports = quickstart_ports();
    let due = std::fs::read_to_string(workspace().join("fixtures/quickstart/due.clj")).expect("the program is there");
    let mut programs = vec![
        "(tool/servers)".to_owned(),
        "(dir \"petstore\")".to_owned(),
        "(apropos \"visit\")".to_owned(),
        "(mapv doc (mapcat (fn [s] (map (fn [l] (first (clojure.string/split l #\" - \"))) (dir (:name s)))) (tool/servers)))"
            .to_owned(),
        "(tool/call {:server \"petstore\" :tool \"get-pet\" :args {:petId \"x\"}})".to_owned(),
        "(tool/call {:server \"petstore\" :tool \"no-such-tool\"})".to_owned(),
    ];
    // The process of the upstream `notes` also serves the other two.
    programs.insert(0, "(tool/call {:server \"notes\" :tool \"list_notes\"})".to_owned());
    programs.push(due);
    let binaries = [quickstart().to_owned(), prebuilt(folder.path())];
    let [linked, made] = binaries.map(|binary| {
        let mut client = Client::start(&binary, &["--sessions", "--debug-tool", "--response-profile", "structured"]);
        let mut answers = vec![client.initialize(), client.request("tools/list", &json!({}))];
        for program in &programs {
            let call = json!({ "name": "lisp_eval", "arguments": { "program": program } });
            answers.push(client.request("tools/call", &call));
        }
        assert_eq!(client.finish(), Some(0));
        answers.into_iter().map(without_times).collect::<Vec<_>>()
    });
    for (linked, made) in linked.iter().zip(&made) {
        assert_eq!(linked, made);
    }
    assert!(linked.last().is_some_and(|answer| answer.to_string().contains("1985")), "{linked:?}");
    assert_eq!(linked.len(), made.len());
}

#[test]
#[ignore = "slow: builds a binary"]
fn equal_inputs_give_equal_bytes() {
    let (one, other) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let read = |folder: &Path| std::fs::read(prebuilt(folder)).expect("it was built");
    assert!(read(one.path()) == read(other.path()));
}

#[test]
#[ignore = "slow: builds a binary"]
fn binary_with_a_damaged_catalog_does_not_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let binary = prebuilt(folder.path());
    let version: Value = serde_json::from_str(&run(Command::new(&binary).args(["version", "--json"])).success()).expect("JSON");
    assert_eq!(version["linker"], "prebuilt");
    let mut bytes = std::fs::read(&binary).expect("it was built");
    // The catalog is at the end of the file.
    let name = b"list_visits";
    let at = bytes.windows(name.len()).rposition(|window| window == name).expect("a word of the catalog");
    bytes[at] = b'L';
    let damaged = folder.path().join("damaged");
    std::fs::copy(&binary, &damaged).expect("a copy with its permissions");
    std::fs::write(&damaged, bytes).expect("the copy can be written");
    let output = Command::new(&damaged).args(["eval", "1"]).output().expect("it can be started");
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("does not have the digest"), "{message}");

    let empty = Command::new(prebuilt_runtime()).args(["eval", "1"]).output().expect("it can be started");
    assert_eq!(empty.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&empty.stderr).contains("a runtime without a catalog"), "{empty:?}");
}

#[test]
#[ignore = "slow: builds a binary"]
fn machine_without_cargo_builds_with_the_prebuilt_runtime() {
    let folder = tempfile::tempdir().expect("a folder");
    let runtime = prebuilt_runtime();
    let config = workspace().join("fixtures/quickstart/upstreams.json");
    let args = [config.as_os_str(), OsStr::new("--locked"), OsStr::new("-o"), OsStr::new("pinned")];
    let output = without_cargo(folder.path(), &args);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(printed.lines().any(|line| line.starts_with("linker ") && line.contains("prebuilt")), "{printed}");
    let answer = run(Command::new(folder.path().join("pinned")).args(["eval", "(count (tool/servers))"])).success();
    assert_eq!(answer.trim_end(), "3");

    // `--link rust` still says what is missing.
    let args = [&args[..], &[OsStr::new("--link"), OsStr::new("rust")]].concat();
    let output = without_cargo(folder.path(), &args);
    assert!(String::from_utf8_lossy(&output.stderr).contains("no Rust toolchain"), "{output:?}");
    assert!(runtime.is_file());
}

#[test]
#[ignore = "slow: builds a binary"]
fn runtime_that_does_not_fit_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let runtime = std::fs::read(prebuilt_runtime()).expect("it was built");
    let replaced = |from: &str, to: &str| {
        assert_eq!(from.len(), to.len());
        let mut bytes = runtime.clone();
        let prefix = b"\nptc-prebuilt-runtime ";
        let at = bytes.windows(prefix.len()).position(|window| window == prefix).expect("a stamp");
        let length = bytes[at..].windows(from.len()).position(|window| window == from.as_bytes()).expect("a part of the stamp");
        bytes[at + length..][..from.len()].copy_from_slice(to.as_bytes());
        let path = folder.path().join("runtime");
        std::fs::write(&path, bytes).expect("it can be written");
        path
    };
    let add = |path: &Path| without_cargo(folder.path(), &["runtimes".as_ref(), "add".as_ref(), path.as_os_str()]);
    let stderr = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();

    let other = add(&replaced(" sha256:", " sha256:").with_file_name("absent"));
    assert!(!other.status.success() && stderr(&other).contains("cannot read"), "{other:?}");
    let version = env!("CARGO_PKG_VERSION");
    let other = add(&replaced(version, "9.9.9"));
    assert!(!other.status.success() && stderr(&other).contains("has version 9.9.9"), "{other:?}");
    let other = add(ptc_compile());
    assert!(!other.status.success() && stderr(&other).contains("is not a prebuilt runtime"), "{other:?}");

    // One for another platform is kept, and used for this platform only.
    let target = "x86_64-unknown-linux-gnu";
    let foreign = "x86_64-unknown-linux-abc";
    if runtime.windows(target.len()).any(|window| window == target.as_bytes()) {
        let config = workspace().join("fixtures/quickstart/upstreams.json");
        let build = || {
            let args = [
                config.as_os_str(),
                "--locked".as_ref(),
                "-o".as_ref(),
                "foreign".as_ref(),
                "--target".as_ref(),
                foreign.as_ref(),
            ];
            without_cargo(folder.path(), &args)
        };
        let missing = build();
        assert!(stderr(&missing).contains(&format!("no prebuilt runtime for {foreign}")), "{missing:?}");
        let added = add(&replaced(target, foreign));
        assert!(added.status.success(), "{added:?}");
        let built = build();
        assert!(built.status.success(), "{built:?}");
        assert!(String::from_utf8_lossy(&built.stdout).contains(foreign), "{built:?}");
        let listed = without_cargo(folder.path(), &["runtimes".as_ref(), "list".as_ref()]);
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        assert!(listed.lines().any(|line| line.starts_with(foreign) && line.ends_with("usable")), "{listed}");

        // A runtime that changed after it was added is not used.
        let kept = std::fs::read_dir(folder.path().join("runtimes")).expect("a store").flatten().next().expect("one runtime");
        let path = kept.path().join("ptc-runtime");
        let mut bytes = std::fs::read(&path).expect("it was added");
        bytes.push(0);
        std::fs::write(&path, bytes).expect("it can be written");
        let changed = build();
        assert!(stderr(&changed).contains("has changed since it was added"), "{changed:?}");
    }
}
