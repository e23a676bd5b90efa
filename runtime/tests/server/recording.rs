//! The recording of programs into cassettes, in a binary that was built for it.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::Test;
use crate::peer::{Peer, server};

/// The tests of this module.
pub(crate) const TESTS: &[Test] = &[
    ("recording::programs_are_recorded_in_a_thread", || programs_are_recorded("thread")),
    ("recording::programs_are_recorded_in_a_process", || programs_are_recorded("process")),
    ("recording::binary_without_the_recorder_names_its_build_option", binary_without_the_recorder_names_its_build_option),
    ("recording::folder_that_cannot_be_used_is_reported", folder_that_cannot_be_used_is_reported),
    ("recording::everything_before_sigterm_is_written", everything_before_sigterm_is_written),
    ("recording::failed_writes_share_a_warning", failed_writes_share_a_warning),
    ("recording::rule_without_effect_is_reported_at_the_end", rule_without_effect_is_reported_at_the_end),
    ("recording::binary_replays_a_recording_without_its_upstream", binary_replays_a_recording_without_its_upstream),
];

fn call(server: &mut Peer, program: &str) -> String {
    let params = json!({ "name": "lisp_eval", "arguments": { "program": program } });
    server.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string());
    server.receive()
}

/// Returns the texts of the files in a folder.
pub(crate) fn texts(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").path());
    files.map(|file| std::fs::read_to_string(file).expect("a text")).collect()
}

fn programs_are_recorded(isolation: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let recordings = folder.path().join("recordings");
    let mut server = Peer::of(
        server("aggregator").args(["--isolate", isolation, "--scrub-pattern", "ann[0-9]"]).arg("--record-dir").arg(&recordings),
    );
    let answer = call(&mut server, r#"(:value (tool/call {:server "child" :tool "echo" :args {:text "to ann1"}}))"#);
    assert!(answer.contains("to ann1"), "{answer}");
    call(&mut server, "(+ 1 2)");
    server.input = None;
    let (status, log) = server.end();
    assert!(status.success(), "{log}");
    let recorded = texts(&recordings);
    let [text] = &recorded[..] else { panic!("a program without calls makes no file: {recorded:?}") };
    let cassette = ptc_cassette::Cassette::read("recorded", text).expect("a cassette");
    assert_eq!(cassette.requests(), 1, "{text}");
    assert!(text.contains("child/echo") && text.contains("to scrubbed-1") && !text.contains("ann1"), "{text}");
}

fn echo(text: &str) -> String {
    format!(r#"(:value (tool/call {{:server "child" :tool "echo" :args {{:text "{text}"}}}}))"#)
}

/// Starts a server that records into a folder.
fn recorder(folder: &Path, flags: &[&str]) -> Peer {
    Peer::of(server("aggregator").arg("--record-dir").arg(folder).args(flags))
}

fn everything_before_sigterm_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = recorder(folder.path(), &[]);
    for number in 0..5 {
        server.ask("1", &echo(&format!("number {number}")));
    }
    let long = "x".repeat(30_000);
    server.ask("2", &echo(&long));
    // This program has made one call, and waits for another one.
    server.call("3", &format!(r#"(do {} (tool/call {{:server "child" :tool "hang"}}))"#, echo("before the signal")));
    let heard = r#"(:value (tool/call {:server "child" :tool "heard"}))"#;
    while !server.ask("4", heard).contains("call") {}
    let start = Instant::now();
    server.signal(Signal::TERM);
    let (status, log) = server.end();
    assert!(status.success(), "{log}");
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    let recorded = texts(folder.path());
    let numbers = (0..5).map(|number| format!("\"args\": {{\"text\": \"number {number}\"}}"));
    for text in numbers.chain([long, "before the signal".to_owned()]) {
        assert_eq!(recorded.iter().filter(|recording| recording.contains(&text)).count(), 1, "{text}: {log}");
    }
    assert!(!log.contains("not recorded"), "{log}");
}

fn failed_writes_share_a_warning() {
    let folder = tempfile::tempdir().expect("a folder");
    let recordings = folder.path().join("recordings");
    let mut server = recorder(&recordings, &[]);
    assert!(server.ask("1", "(+ 1 2)").contains('3'));
    // No permission would stop a test of root.
    std::fs::remove_dir(&recordings).expect("the folder is empty");
    for _ in 0..4 {
        let answer = server.ask("2", &echo("an answer"));
        assert!(answer.contains("an answer"), "{answer}");
    }
    server.input = None;
    let (status, log) = server.end();
    assert!(status.success(), "{log}");
    let warnings: Vec<&str> = log.lines().filter(|line| line.contains("not recorded")).collect();
    let [first, others] = &warnings[..] else { panic!("two warnings: {log}") };
    assert!(first.contains(r#""event":"a program is not recorded""#) && first.contains(r#""programs":1,"calls":1"#), "{first}");
    assert!(
        others.contains(r#""event":"programs are not recorded""#) && others.contains(r#""programs":3,"calls":3"#),
        "{others}"
    );
    assert!(others.contains("No such file"), "{others}");
}

fn rule_without_effect_is_reported_at_the_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let rules = ["--scrub-pattern", "ann[0-9]", "--scrub-pattern", "zebra", "--scrub", "child/echo:name"];
    let mut server = recorder(folder.path(), &rules);
    // The used rule selects something in one program only.
    server.ask("1", &echo("to ann1"));
    server.ask("2", &echo("to bob"));
    server.input = None;
    let (_, log) = server.end();
    let reported: Vec<&str> = log.lines().filter(|line| line.contains("a rule has no effect")).collect();
    assert_eq!(reported.len(), 2, "{log}");
    for rule in ["zebra", "child/echo:name"] {
        let sentence = format!("the rule {rule} selects nothing in the recorded answers");
        assert!(reported.iter().any(|line| line.contains(&sentence)), "{log}");
    }
}

fn binary_replays_a_recording_without_its_upstream() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut recording = recorder(folder.path(), &[]);
    recording.ask("1", &echo("to ann"));
    recording.input = None;
    assert!(recording.end().0.success());
    let file = std::fs::read_dir(folder.path()).expect("a folder").next().expect("a file").expect("a file").path();
    let cassette = format!("cassette:{}", file.display());
    let eval = |role: &str, program: &str| {
        let mut command = server(role);
        command.env("PTC_TEST_UPSTREAM", "/no/such/program").args(["eval", "--upstreams", &cassette, program]);
        let output = command.output().expect("it runs");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr))
    };
    assert_eq!(eval("aggregator", &echo("to ann")), (Some(0), "\"to ann\"\n".to_owned()));
    let (code, unknown) = eval("aggregator", &echo("to bob"));
    assert!(code == Some(1) && unknown.contains("has no answer to child/echo"), "{unknown}");
    let (code, error) = eval("aggregator without parts", &echo("to ann"));
    let expected = "--upstreams: this binary was built without it; build it with `--recording` (crate ptc-cassette)";
    assert!(code == Some(2) && error.contains(expected), "{error}");
    std::fs::write(&file, "{}").expect("a file");
    let (code, refused) = eval("aggregator", "1");
    assert!(code == Some(2) && refused.contains("cannot be used: cassette: expected"), "{refused}");
    std::fs::write(&file, r#"{"cassette": 2}"#).expect("a file");
    let (code, refused) = eval("aggregator", "1");
    let expected = "version 2 of the format, and this program reads version 1; a binary of a newer version replays it";
    assert!(code == Some(2) && refused.contains(expected), "{refused}");
}

fn binary_without_the_recorder_names_its_build_option() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = server("aggregator without parts").arg("--record-dir").arg(folder.path()).output().expect("it runs");
    let error = String::from_utf8_lossy(&output.stderr);
    let expected = "--record-dir: this binary was built without it; build it with `--recording` (crate ptc-cassette)";
    assert!(output.status.code() == Some(2) && error.contains(expected), "{error}");
    assert!(texts(folder.path()).is_empty());
}

fn folder_that_cannot_be_used_is_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    std::fs::write(&file, "").expect("a file");
    for (flags, expected) in [
        (vec!["--record-dir", file.to_str().expect("text")], "--record-dir"),
        (
            vec!["--record-dir", folder.path().to_str().expect("text"), "--scrub", "child/ecko:a"],
            "--scrub child/ecko:a: no upstream",
        ),
        (vec!["--record-dir", folder.path().to_str().expect("text"), "--scrub-pattern", "("], "--scrub-pattern (: "),
        (vec!["--scrub", "child/echo:a"], "give --record-dir"),
    ] {
        let output = server("aggregator").args(&flags).output().expect("it runs");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && error.contains(expected), "{flags:?}: {error}");
    }
}
