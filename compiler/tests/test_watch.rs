//! Tests `ptc-compile test --watch`, with a real process and real changes of files.

#![expect(clippy::unwrap_used, reason = "a test stops where anything is wrong")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::cassette::Folder;

/// Time limit for the results of a change. It is only reached if there are none.
const PATIENCE: Duration = Duration::from_mins(1);

struct Watching {
    process: Child,
    lines: Receiver<String>,
}

impl Watching {
    fn start(folder: &Folder, options: &[&str]) -> Watching {
        let mut process = folder.start(&[&["test", "--watch"], options].concat());
        let (send, lines) = channel();
        let streams: [Box<dyn std::io::Read + Send>; 2] =
            [Box::new(process.stdout.take().unwrap()), Box::new(process.stderr.take().unwrap())];
        for stream in streams {
            let send = send.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(stream).lines() {
                    if send.send(line.unwrap()).is_err() {
                        break;
                    }
                }
            });
        }
        Watching { process, lines }
    }

    /// Returns the lines until it waits for changes.
    fn run(&self) -> String {
        let mut text = String::new();
        loop {
            let line = self.lines.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("it does not run: {text}"));
            text += &line;
            text.push('\n');
            // The results and the message come over two streams.
            if text.contains("watching ") && text.contains(" failed, ") {
                return text;
            }
        }
    }

    fn interrupt(mut self) -> Option<i32> {
        assert!(Command::new("kill").args(["-INT", &self.process.id().to_string()]).status().unwrap().success());
        self.process.wait().unwrap().code()
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.process.kill();
    }
}

fn folder() -> Folder {
    let folder = Folder::recorded();
    folder.write("one.clj", "(+ 1 2)");
    folder.write("one_test.clj", "(ns one-test)\n(deftest value (is (= 3 (run-program \"one.clj\"))))");
    let program = r#"(:value (tool/call {:server \"s\" :tool \"echo\" :args {:a \"ann\"}}))"#.replace("\\\"", "\"");
    folder.write("call.clj", &program);
    folder.write(
        "call_test.clj",
        "(ns call-test {:cassette \"c.json\"})\n(deftest text (is (= \"said [REDACTED]\\nto ann\" (run-program \"call.clj\"))))",
    );
    folder
}

/// Writes a file as editors and `update` do: another one takes its place, so that no run sees a part of it.
fn replace(folder: &Folder, name: &str, text: &str) {
    folder.write("new.tmp", text);
    std::fs::rename(folder.0.path().join("new.tmp"), folder.0.path().join(name)).unwrap();
}

#[test]
fn changed_files_run_the_tests_that_depend_on_them() {
    let folder = folder();
    let watching = Watching::start(&folder, &[]);
    let first = watching.run();
    assert!(first.contains("2 tests, 2 assertions: 0 failed, 0 errors"), "{first}");
    replace(&folder, "one.clj", "(+ 2 2)");
    let program = watching.run();
    assert!(program.contains("changed: one.clj") && program.contains("FAIL one-test/value"), "{program}");
    assert!(program.contains("\n1 test, 1 assertion: 1 failed"), "only what depends on the program: {program}");
    let cassette = folder.read("c.json");
    replace(&folder, "c.json", &cassette.replace("to ann", "to bob"));
    let recorded = watching.run();
    assert!(recorded.contains("FAIL call-test/text") && recorded.contains("1 test, 1 assertion: 1 failed"), "{recorded}");
    replace(&folder, "c.json", &cassette);
    assert!(watching.run().contains("1 test, 1 assertion: 0 failed"));
    replace(&folder, "two_test.clj", "(ns two-test)\n(deftest new (is true))");
    let new = watching.run();
    assert!(new.contains("1 test, 1 assertion: 0 failed"), "{new}");
    assert_eq!(watching.interrupt(), Some(1), "one-test still fails");
}

#[test]
fn config_that_could_not_be_opened_is_opened_when_its_files_change() {
    let folder = folder();
    let config = folder.read("upstreams.json");
    let mut with_program: serde_json::Value = serde_json::from_str(&config).unwrap();
    let program = serde_json::json!({ "file": "stored.clj", "description": "Adds numbers." });
    with_program.as_object_mut().unwrap().insert("programs".to_owned(), serde_json::json!({ "stored": program }));
    folder.write("upstreams.json", &with_program.to_string());
    let watching = Watching::start(&folder, &["call_test.clj"]);
    let first = watching.run();
    assert!(first.contains("ERROR call_test.clj") && first.contains("the config upstreams.json cannot be used"), "{first}");
    folder.write("stored.clj", "(+ 1 2)");
    let second = watching.run();
    assert!(second.contains("stored.clj\n") && second.contains("1 test, 1 assertion: 0 failed"), "{second}");
    assert_eq!(watching.interrupt(), Some(0));
}

#[test]
fn changes_of_the_lock_file_are_seen_and_the_exit_code_is_that_of_the_last_runs() {
    let folder = folder();
    let lock = folder.read("upstreams.lock.json");
    let watching = Watching::start(&folder, &["call_test.clj"]);
    assert!(watching.run().contains("1 test, 1 assertion: 0 failed"));
    replace(&folder, "upstreams.lock.json", "{");
    let broken = watching.run();
    assert!(broken.contains("ERROR call_test.clj"), "{broken}");
    replace(&folder, "upstreams.lock.json", &lock);
    assert!(watching.run().contains("1 test, 1 assertion: 0 failed"));
    assert_eq!(watching.interrupt(), Some(0));
    let refused = folder.run(&["test", "--watch", "--format", "junit"], false);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("--watch does not go with --format junit"), "{refused:?}");
}
