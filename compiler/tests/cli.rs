//! `ptc-compile` as a process: exit codes, streams, formats.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ptc-compile"))
        .args(args)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/check"))
        .env_remove("NO_COLOR")
        .output()
        .expect("ptc-compile can be started")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is UTF-8")
}

/// A file that is gone when the test ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, content: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("ptc-cli-{}-{name}", std::process::id()));
        fs::write(&path, content).expect("a scratch file can be written");
        Scratch(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("scratch paths are UTF-8")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn exit_codes_tell_clean_findings_and_failure_apart() {
    let latin1 = Scratch::new("latin1.json", b"{ \"upstreams\": { \"gr\xf6\xdfe\": {} } }");
    let cases: &[(&[&str], i32, &str)] = &[
        (&["--check", "good_minimal/upstreams.json"], 0, "no faults in 1 upstream"),
        (&["--check", "shape_repeated_items/upstreams.json"], 0, "found 2 warnings"),
        (&["--check", "--deny-warnings", "shape_repeated_items/upstreams.json"], 1, "found 2 warnings"),
        (&["--check", "json_empty_file/upstreams.json"], 1, "found 1 error"),
        (&["--check", "no-such-file.json"], 2, "cannot read `no-such-file.json`"),
        (&["--check", "good_minimal"], 2, "help: name a file in it, such as `good_minimal/upstreams.json`"),
        (&["--check", latin1.path()], 2, "byte 20 is not UTF-8"),
        (&[], 2, "<CONFIG>"),
        (&["--no-such-option"], 2, "--no-such-option"),
        (&["--runtime-source", "registry", "good_minimal/upstreams.json"], 2, "[possible values: workspace, embedded]"),
        (&["--check", "--check", "good_minimal/upstreams.json"], 2, "cannot be used multiple times"),
        (&["--check", "--eval", "1", "good_minimal/upstreams.json"], 2, "--eval"),
        (&["explain", "PTC9999"], 2, "there is no diagnostic code `PTC9999`"),
        (&["--help"], 0, ""),
        (&["--version"], 0, ""),
        (&["explain"], 0, ""),
    ];
    for (args, code, message) in cases {
        let output = run(args);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(*code), "{args:?}: {stderr}");
        assert!(stderr.contains(message), "{args:?} should say `{message}`, said: {stderr}");
    }
}

#[test]
fn findings_are_messages_and_json_is_data() {
    let full = run(&["--check", "credentials_unresolved/upstreams.json"]);
    assert!(full.stdout.is_empty());
    assert!(text(&full.stderr).contains(" --> credentials_unresolved/upstreams.json:10:42\n"), "{}", text(&full.stderr));

    let json = run(&["--check", "--format", "json", "credentials_unresolved/upstreams.json"]);
    assert!(json.stderr.is_empty(), "{}", text(&json.stderr));
    let stdout = text(&json.stdout);
    let first: serde_json::Value = serde_json::from_str(stdout.lines().next().expect("one line a finding")).expect("JSON");
    assert_eq!(first["code"], "PTC0304");
    assert_eq!(first["at"]["path"], "credentials_unresolved/upstreams.json");
    assert_eq!((&first["at"]["line"], &first["at"]["column"]), (&10.into(), &42.into()));
    assert_eq!(first["hints"][0], "did you mean `github-token`?");
}

#[test]
fn colours_are_for_terminals_unless_asked_for() {
    let config = "credentials_unresolved/upstreams.json";
    assert!(!text(&run(&["--check", config]).stderr).contains('\u{1b}'));
    let always = text(&run(&["--check", "--color", "always", config]).stderr);
    assert!(always.contains('\u{1b}'));
    let mut bare = String::new();
    for (at, part) in always.split('\u{1b}').enumerate() {
        bare.push_str(if at == 0 { part } else { part.split_once('m').map_or(part, |(_, rest)| rest) });
    }
    assert_eq!(bare, text(&run(&["--check", "--color", "never", config]).stderr));
}

#[test]
fn explain_takes_codes_as_people_write_them() {
    for code in ["PTC0204", "ptc0204", "204", "0204"] {
        let output = run(&["explain", code]);
        let stdout = text(&output.stdout);
        assert!(stdout.starts_with("PTC0204 (error): "), "{code}: {stdout}");
        assert!(stdout.contains("## Fix") && stdout.contains("mcp_stdio"), "{code}: {stdout}");
        assert!(output.stderr.is_empty());
    }
}
