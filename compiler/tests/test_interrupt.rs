//! Tests `ptc-compile test` when a signal arrives, with a real process.

#![expect(clippy::unwrap_used, reason = "a test stops where anything is wrong")]

use std::io::Write;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::cassette::Folder;

const TESTS: &str = "(ns slow)
(deftest quick (is true))
(deftest endless (is (= 1 (run-program \"endless.clj\"))))
(deftest later (is true))";

/// Runs one test after the other, and sends a signal while the second one runs.
fn interrupted(folder: &Folder, signal: &str, options: &[&str]) -> Output {
    folder.write("slow_test.clj", TESTS);
    let program = folder.0.path().join("endless.clj");
    let _ = std::fs::remove_file(&program);
    assert!(Command::new("mkfifo").arg(&program).status().unwrap().success());
    let process = folder.start(&[&["test", "slow_test.clj", "--jobs", "1"], options].concat());
    // The writer waits until the process reads the program, in the second test.
    let writer = std::thread::spawn(move || std::fs::write(program, "(loop [] (recur))"));
    let deadline = Instant::now() + Duration::from_mins(1);
    while !writer.is_finished() {
        assert!(Instant::now() < deadline, "the second test does not read its program");
        std::thread::sleep(Duration::from_millis(5));
    }
    writer.join().unwrap().unwrap();
    assert!(Command::new("kill").args([signal, &process.id().to_string()]).status().unwrap().success());
    process.wait_with_output().unwrap()
}

#[test]
fn tests_run_at_the_same_time() {
    let folder = Folder::recorded();
    folder.write(
        "both_test.clj",
        "(ns both)\n(deftest a (is (= 1 (run-program \"a.clj\"))))\n(deftest b (is (= 2 (run-program \"b.clj\"))))",
    );
    let programs = ["a.clj", "b.clj"].map(|name| folder.0.path().join(name));
    assert!(Command::new("mkfifo").args(&programs).status().unwrap().success());
    let mut process = folder.start(&["test", "both_test.clj", "--jobs", "2"]);
    let (done, written) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        // Each pipe is opened when a test reads it, and neither test ends before both are open.
        let pipes = programs.map(|path| std::fs::OpenOptions::new().write(true).open(path).unwrap());
        for (mut pipe, text) in pipes.into_iter().zip(["1", "2"]) {
            pipe.write_all(text.as_bytes()).unwrap();
        }
        done.send(()).unwrap();
    });
    if written.recv_timeout(Duration::from_mins(1)).is_err() {
        process.kill().unwrap();
        panic!("the second test does not start before the first one ends");
    }
    let output = String::from_utf8(process.wait_with_output().unwrap().stdout).unwrap();
    assert!(output.starts_with("2 tests, 2 assertions: 0 failed, 0 errors ("), "{output}");
}

#[test]
fn interrupted_run_reports_its_results_and_the_tests_that_were_not_run() {
    let folder = Folder::recorded();
    let output = interrupted(&folder, "-INT", &["--report", "junit=results.xml", "--report", "json=results.json"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(130), "{text}");
    assert!(text.starts_with("3 tests, 1 assertion: 0 failed, 0 errors, 2 not run ("), "{text}");
    let xml = folder.read("results.xml");
    assert!(
        xml.contains("<testsuite name=\"slow_test.clj\" tests=\"3\" failures=\"0\" errors=\"0\"")
            && xml.contains(" skipped=\"2\""),
        "{xml}"
    );
    assert_eq!(xml.matches("<skipped message=\"the run was interrupted\"/>").count(), 2, "{xml}");
    let json = folder.read("results.json");
    let verdicts: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["verdict"].clone()).collect();
    assert_eq!(verdicts, ["passed".into(), "not_run".into(), "not_run".into(), serde_json::Value::Null], "{json}");
    assert!(json.contains(r#""errors":0,"not_run":2,"#), "{json}");
}

#[test]
fn exit_code_is_that_of_the_signal_also_with_other_options() {
    let folder = Folder::recorded();
    let checked = interrupted(&folder, "-TERM", &["--faults", "--properties"]);
    assert_eq!(checked.status.code(), Some(143), "{checked:?}");
    folder.write("results.xml", "");
    let unwritten = interrupted(&folder, "-INT", &["--report", "junit=results.xml/in-a-file"]);
    assert_eq!(unwritten.status.code(), Some(130), "{unwritten:?}");
    let said = String::from_utf8(unwritten.stderr).unwrap();
    assert!(said.contains("results.xml/in-a-file"), "{said}");
    let watched = interrupted(&folder, "-INT", &["--watch"]);
    assert_eq!(watched.status.code(), Some(130), "the first run was interrupted: {watched:?}");
    assert!(String::from_utf8(watched.stdout).unwrap().contains(", 2 not run ("));
}
