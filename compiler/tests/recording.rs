//! Tests what adds to cassettes while programs run: `--cassette-mode new-episodes` and `--record-dir`; and recorded latencies.

#![expect(clippy::unwrap_used, reason = "a test stops where anything is wrong")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::cassette::{Finished, Folder, SECRET};

const EXTEND: [&str; 6] = ["repl", "--upstreams", "cassette:c.json", "--cassette-mode", "new-episodes", "upstreams.json"];
const REPLAY: [&str; 4] = ["repl", "--upstreams", "cassette:c.json", "upstreams.json"];

fn echo(text: &str) -> String {
    format!(r#"(:value (tool/call {{:server "s" :tool "echo" :args {{:a "{text}"}}}}))"#)
}

fn run(folder: &Folder, command: &[&str], programs: &[&str]) -> Finished {
    let programs: Vec<&str> = programs.iter().flat_map(|program| ["-e", program]).collect();
    folder.run(&[command, &programs].concat(), true)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn new_episodes_are_added_and_known_requests_are_not_sent_again() {
    let folder = Folder::new();
    let count = r#"(:n (:value (tool/call {:server "s" :tool "count"})))"#;
    // The first program makes the file, and the second one gets the answer to the first: the upstream would say 2.
    assert_eq!(run(&folder, &EXTEND, &[count, count]).success(), "1\n1\n");
    let path = folder.0.path().join("c.json");
    assert_eq!(mode(&path), 0o600);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    assert_eq!(run(&folder, &EXTEND, &[&echo("ann")]).success(), "\"said [REDACTED]\\nto ann\"\n");
    let cassette = folder.read("c.json");
    assert!(cassette.contains(r#""value": {"n": 1}"#) && !cassette.contains(SECRET), "{cassette}");
    // An edit by hand stays, and shows that the recorded answer is replayed.
    folder.write("c.json", &cassette.replace("to ann", "to ann by hand"));
    let both = format!("[{} {} {count}]", echo("ann"), echo("bob"));
    let expected = "[\"said [REDACTED]\\nto ann by hand\" \"said [REDACTED]\\nto bob\" 1]\n";
    assert_eq!(run(&folder, &EXTEND, &[&both]).success(), expected);
    assert_eq!(mode(&path), 0o640, "the file keeps its permissions");
    fs::remove_file(folder.0.path().join("server.sh")).unwrap();
    assert_eq!(run(&folder, &REPLAY, &[&both]).success(), expected);
    // An upstream that cannot be reached is not a recorded answer.
    let before = folder.read("c.json");
    assert_eq!(
        run(&folder, &EXTEND, &[r#"(:reason (tool/call {:server "s" :tool "fail"}))"#]).success(),
        ":upstream_unavailable\n"
    );
    assert_eq!(folder.read("c.json"), before);
    let left: Vec<_> = fs::read_dir(folder.0.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().ends_with(".tmp")), "{left:?}");
}

#[test]
fn new_episodes_are_scrubbed_with_numbers_that_are_not_in_use() {
    let folder = Folder::new();
    let scrub = [&EXTEND[..], &["--scrub-pattern", "an+"]].concat();
    run(&folder, &scrub, &[&echo("ann")]).success();
    run(&folder, &scrub, &[&echo("hann")]).success();
    let cassette = folder.read("c.json");
    for text in [r#""a": "scrubbed-1""#, "to scrubbed-1", r#""a": "hscrubbed-2""#, "to hscrubbed-2"] {
        assert!(cassette.contains(text), "{text}: {cassette}");
    }
    let invalid = run(&folder, &[&EXTEND[..], &["--scrub-pattern", "("]].concat(), &["1"]);
    assert_eq!(invalid.code, Some(2));
    assert!(invalid.stderr.contains("--scrub-pattern (: "), "{invalid:?}");
}

#[test]
fn settings_of_recording_that_contradict_each_other_are_refused() {
    let folder = Folder::recorded();
    for (flags, expected) in [
        (&["--upstreams", "cassette:c.json", "--record-dir", "rec"][..], "does not go with --upstreams"),
        (&["--cassette-mode", "new-episodes"], "needs the cassette"),
        (&["--replay-latency"], "--replay-latency needs a cassette"),
        (&["--scrub", "s/echo:"], "give --record-dir, or --cassette-mode new-episodes"),
        (&["--scrub-key-env", "KEY"], "give --record-dir, or --cassette-mode new-episodes"),
        (&["--scrub", "echo"], "expected an upstream, a tool and a path"),
        (&["--cassette-mode", "once"], "expected one of strict, new-episodes"),
    ] {
        let refused = folder.run(&[&["repl", "upstreams.json", "-e", "1"], flags].concat(), true);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(expected), "{expected}: {refused:?}");
    }
}

/// Serves with `flags`, and evaluates programs one after the other. Returns the answers and standard error.
pub(crate) fn serve(folder: &Folder, flags: &[&str], programs: &[&str]) -> (Vec<String>, String) {
    serve_with(folder, &[], flags, programs)
}

/// Serves with variables of the environment, as [`serve`] does.
pub(crate) fn serve_with(
    folder: &Folder,
    variables: &[(&str, &str)],
    flags: &[&str],
    programs: &[&str],
) -> (Vec<String>, String) {
    let mut server = Command::new(env!("CARGO_BIN_EXE_ptc-compile"))
        .args(["run", "upstreams.json"])
        .args(flags)
        .current_dir(folder.0.path())
        .env("PTC_TEST_CASSETTE_SECRET", SECRET)
        .envs(variables.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = server.stdin.take().unwrap();
    let mut answers = BufReader::new(server.stdout.take().unwrap()).lines();
    let client = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
    writeln!(stdin, "{}", json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": client })).unwrap();
    answers.next().unwrap().unwrap();
    writeln!(stdin, "{}", json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).unwrap();
    let mut received = Vec::new();
    for (at, program) in programs.iter().enumerate() {
        let params = json!({ "name": "lisp_eval", "arguments": { "program": program } });
        writeln!(stdin, "{}", json!({ "jsonrpc": "2.0", "id": at + 1, "method": "tools/call", "params": params })).unwrap();
        let answer = answers.next().unwrap().unwrap();
        assert!(answer.contains("\"isError\":false") || !answer.contains("\"isError\""), "{answer}");
        received.push(answer);
    }
    drop(stdin);
    let output = server.wait_with_output().unwrap();
    assert!(output.status.success());
    (received, String::from_utf8(output.stderr).unwrap())
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn running_server_records_each_program_into_a_cassette() {
    let folder = Folder::new();
    let programs = [&*echo("one"), "(+ 1 2)", &echo("two"), &echo("three")];
    serve(&folder, &[], &programs);
    let recordings = folder.0.path().join("rec");
    assert!(!recordings.exists(), "recording is off by default");
    serve(&folder, &["--record-dir", "rec", "--record-max-files", "2", "--scrub-pattern", "three"], &programs);
    assert_eq!(mode(&recordings), 0o700);
    let recorded = files(&recordings);
    assert_eq!(recorded.len(), 2, "a program without calls makes no file, and the oldest is removed: {recorded:?}");
    let texts: Vec<String> = recorded.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    assert!(texts.iter().all(|text| !text.contains(SECRET)));
    assert!(recorded.iter().all(|path| mode(path) == 0o600));
    assert!(texts.last().unwrap().contains("to scrubbed-1"), "{texts:?}");
    // Each file is a cassette.
    fs::remove_file(folder.0.path().join("server.sh")).unwrap();
    let cassette = format!("cassette:{}", recorded.first().unwrap().display());
    let replayed = folder.run(&["repl", "--upstreams", &cassette, "upstreams.json", "-e", &echo("two")], false).success();
    assert_eq!(replayed, "\"said [REDACTED]\\nto two\"\n");
}

#[test]
fn recordings_of_a_server_are_bounded_in_bytes() {
    let folder = Folder::new();
    let long = "x".repeat(400);
    let (_, warnings) = serve(
        &folder,
        &["--record-dir", "rec", "--record-max-bytes", "1500"],
        &[&echo(&long), &echo(&"y".repeat(400)), &echo(&"z".repeat(2000))],
    );
    let recorded = files(&folder.0.path().join("rec"));
    let sum: u64 = recorded.iter().map(|path| fs::metadata(path).unwrap().len()).sum();
    assert!(recorded.len() == 1 && sum <= 1500, "{recorded:?}");
    assert!(fs::read_to_string(recorded.first().unwrap()).unwrap().contains("yyyy"), "the oldest is removed");
    assert!(warnings.contains("a program is not recorded"), "{warnings}");
    assert!(warnings.contains("its file would have more than 1500 bytes, the limit of --record-max-bytes"), "{warnings}");
}

#[test]
fn limit_of_bytes_is_that_of_the_file() {
    let folder = Folder::new();
    // In memory, 40 calls take far more than the limit. The file has their answer once.
    let program = format!("(do {} 1)", echo(&"x".repeat(200)).repeat(40));
    let (_, warnings) = serve(&folder, &["--record-dir", "rec", "--record-max-bytes", "1500"], &[&program]);
    let recorded = files(&folder.0.path().join("rec"));
    let [recorded] = &recorded[..] else { panic!("one recording: {recorded:?} {warnings}") };
    assert!(fs::metadata(recorded).unwrap().len() <= 1500 && !warnings.contains("not recorded"), "{warnings}");
}

#[test]
fn recorded_latency_delays_an_answer_only_if_that_is_asked() {
    let folder = Folder::new();
    folder.write("one.clj", &echo("ann"));
    let record = |options: &[&str]| {
        folder.run(&[&["record", "upstreams.json", "one.clj", "-o", "c.json"], options].concat(), true).success();
        folder.read("c.json")
    };
    assert!(!record(&[]).contains("latency"), "equal answers give equal cassettes");
    let cassette = record(&["--latency"]);
    let (before, after) = cassette.split_once("\"latency_ms\": ").unwrap();
    let rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
    let replay = |latency: u32, flags: &[&str]| {
        folder.write("c.json", &format!("{before}\"latency_ms\": {latency}{rest}"));
        let started = Instant::now();
        run(&folder, &[&REPLAY[..], flags].concat(), &[&echo("ann")]).success();
        started.elapsed()
    };
    assert!(replay(60_000, &[]) < Duration::from_mins(1));
    assert!(replay(700, &["--replay-latency"]) >= Duration::from_millis(700));
}
