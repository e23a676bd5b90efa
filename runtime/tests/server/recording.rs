//! The recording of programs into cassettes, in a binary that was built for it.

use std::path::Path;

use serde_json::json;

use crate::Test;
use crate::peer::{Peer, server};

/// The tests of this module.
pub(crate) const TESTS: &[Test] = &[
    ("recording::programs_are_recorded_in_a_thread", || programs_are_recorded("thread")),
    ("recording::programs_are_recorded_in_a_process", || programs_are_recorded("process")),
    ("recording::binary_without_the_recorder_names_its_build_option", binary_without_the_recorder_names_its_build_option),
    ("recording::folder_that_cannot_be_used_is_reported", folder_that_cannot_be_used_is_reported),
];

fn call(server: &mut Peer, program: &str) -> String {
    let params = json!({ "name": "lisp_eval", "arguments": { "program": program } });
    server.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string());
    server.receive()
}

fn texts(folder: &Path) -> Vec<String> {
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
