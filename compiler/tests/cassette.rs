//! Tests `record`, and the replay of cassettes without upstreams.

#![expect(clippy::unwrap_used, reason = "a test stops where anything is wrong")]

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;

use ptc_compiler::serve::Source;
use ptc_compiler::serve::cassette::{Cassette, Player};
use ptc_runtime::embed::Request;
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) const SECRET: &str = "canary-5d1e/q2 \"quoted\" value";

/// `echo` answers with its secret and its arguments, `count` with a number that grows with every call, and `fail` with an error that has
/// the secret.
const CALLS: &str = r#"
    *'"name":"echo"'*) result='{"content":[{"type":"text","text":"said '$escaped'\nto '$(printf %s "$line" | sed -n 's/.*"a":"\([a-z]*\)".*/\1/p')'"}]}' ;;
    *'"name":"count"'*) count=$((count + 1)); result='{"content":[],"structuredContent":{"n":'$count'}}' ;;
    *'"name":"fail"'*) result='{"isError":true,"content":[{"type":"text","text":"no '$escaped'"}]}' ;;
"#;

/// Returns an MCP server as a shell script. `start` is run first, `tools` have the same `properties`, and `calls` are the branches of a
/// `case` that set the `result` of a call by its `line`.
pub(crate) fn server(start: &str, properties: &str, tools: &[&str], calls: &str) -> String {
    const SCRIPT: &str = r#"
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
    *'"tools/list"'*) result='{"tools":[TOOLS]}' ;;
CALLS
    *'"id"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id"; continue ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;
    let schema = format!(r#""inputSchema":{{"type":"object","properties":{properties}}}"#);
    let tools: Vec<String> = tools.iter().map(|name| format!(r#"{{"name":"{name}",{schema}}}"#)).collect();
    start.to_owned() + &SCRIPT.replace("TOOLS", &tools.join(",")).replace("CALLS", calls)
}

/// A program that gets text with a secret, a failure, and different answers to equal requests.
pub(crate) const PROGRAM: &str = r#"
(let [call (fn [tool args] (tool/call {:server "s" :tool tool :args args}))]
  [(:value (call "echo" {:a "ann"})) (:reason (call "fail" {})) (:message (call "fail" {}))
   (mapv (fn [_] (:n (:value (call "count" {})))) (range 3))])
"#;

/// A folder with the server, a config with its secret, and the lock file.
pub(crate) struct Folder(pub(crate) TempDir);

impl Folder {
    pub(crate) fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        let start = "escaped=$(printf %s \"$KEY\" | sed 's/\"/\\\\\"/g')\ncount=0\n";
        folder.write("server.sh", &server(start, r#"{"a":{"type":"string"}}"#, &["echo", "count", "fail"], CALLS));
        let entry = json!({
            "transport": "mcp_stdio", "command": "sh", "args": ["server.sh"], "cd": folder.0.path(),
            "env": { "KEY": "${PTC_TEST_CASSETTE_SECRET}" },
        });
        folder.write("upstreams.json", &json!({ "upstreams": { "s": entry } }).to_string());
        folder.write("program.clj", PROGRAM);
        folder.run(&["update", "upstreams.json"], true).success();
        folder
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::create_dir_all(self.0.path().join(name).parent().unwrap()).unwrap();
        std::fs::write(self.0.path().join(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.path().join(name)).unwrap()
    }

    pub(crate) fn run(&self, args: &[&str], has_secret: bool) -> Finished {
        self.run_under(&[env!("CARGO_BIN_EXE_ptc-compile")], args, has_secret)
    }

    pub(crate) fn run_under(&self, program: &[&str], args: &[&str], has_secret: bool) -> Finished {
        let mut command = Command::new(program.first().unwrap());
        command.args(program.iter().skip(1)).args(args).current_dir(self.0.path());
        command.env_remove("PTC_RUNNER_UPSTREAMS").env_remove("PTC_RUNNER_MCP_UPSTREAMS").env("XDG_CONFIG_HOME", "nothing");
        if has_secret {
            command.env("PTC_TEST_CASSETTE_SECRET", SECRET);
        }
        let output = command.output().unwrap_or_else(|error| panic!("{program:?}: {error}: run .ci/peers first"));
        Finished::new(&output)
    }

    /// Starts `ptc-compile`, whose output can be read.
    pub(crate) fn start(&self, args: &[&str]) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ptc-compile"));
        command.args(args).current_dir(self.0.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    pub(crate) fn recorded() -> Folder {
        let folder = Folder::new();
        folder.run(&["record", "upstreams.json", "program.clj", "-o", "c.json"], true).success();
        // From here on the upstream cannot be started.
        std::fs::remove_file(folder.0.path().join("server.sh")).unwrap();
        folder
    }
}

#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Finished {
    fn new(output: &Output) -> Finished {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        Finished { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }

    #[track_caller]
    pub(crate) fn success(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.stdout
    }
}

pub(crate) const REPLAY: [&str; 4] = ["repl", "--upstreams", "cassette:c.json", "upstreams.json"];

/// What `PROGRAM` gives.
pub(crate) const VALUE: &str = "[\"said [REDACTED]\\nto ann\" :tool_error \"no [REDACTED]\" [1 2 3]]\n";

#[test]
fn recorded_program_is_replayed_without_upstream_and_secret() {
    let folder = Folder::recorded();
    let cassette = folder.read("c.json");
    let escaped = json!(SECRET).to_string();
    for spelling in [SECRET, escaped.trim_matches('"')] {
        assert!(!cassette.contains(spelling), "the cassette has the secret: {cassette}");
    }
    let definition = definition(&folder, "s", "count");
    assert!(cassette.contains(&definition), "{cassette}");
    let requests = [
        r#""args": {},
          "replies": [{"value": {"n": 1}}, {"value": {"n": 2}}, {"value": {"n": 3}}]"#,
        r#""args": {"a": "ann"},
          "replies": [{"text": ["said [REDACTED]", "to ann"]}]"#,
        // Equal answers are there once.
        r#""args": {},
          "replies": [{"fault": "tool_error", "message": "no [REDACTED]"}]"#,
    ];
    for request in requests {
        assert!(cassette.contains(request), "{request}\n{cassette}");
    }
    let replayed = folder.run(&[&REPLAY[..], &["-e", PROGRAM, "-e", PROGRAM]].concat(), false).success();
    assert_eq!(replayed, VALUE.repeat(2), "each program starts at the first answer");
    // The last answer is repeated.
    let more = r#"(mapv (fn [_] (:n (tool/value {:server "s" :tool "count"}))) (range 5))"#;
    assert_eq!(folder.run(&[&REPLAY[..], &["-e", more]].concat(), false).success(), "[1 2 3 3 3]\n");
}

#[test]
fn recording_again_changes_nothing_and_failures_write_nothing() {
    let folder = Folder::new();
    let record = ["record", "upstreams.json", "program.clj", "-o", "c.json"];
    folder.run(&record, true).success();
    let cassette = folder.read("c.json");
    let again = folder.run(&record, true);
    assert!(again.stderr.contains("unchanged: c.json with 3 requests"), "{again:?}");
    assert_eq!(folder.read("c.json"), cassette);
    folder.write("one.clj", r#"(tool/value {:server "s" :tool "count"})"#);
    folder.write("failing.clj", "(fail \"on purpose\")");
    let failing = folder.run(&["record", "upstreams.json", "one.clj", "failing.clj", "-o", "new.json"], true);
    assert_eq!(failing.code, Some(2));
    assert!(
        failing.stderr.contains("the program failing.clj failed: fail: ") && failing.stderr.contains("on purpose"),
        "{failing:?}"
    );
    // The second program gets 2 where the first got 1, so that no cassette replays both.
    let conflict = folder.run(&["record", "upstreams.json", "one.clj", "one.clj", "-o", "new.json"], true);
    assert_eq!(conflict.code, Some(2));
    assert!(
        conflict.stderr.contains("`one.clj` and `one.clj` got different answers to the same request of s/count: {}"),
        "{conflict:?}"
    );
    assert!(!folder.0.path().join("new.json").exists());
    let missing = folder.run(&["record", "upstreams.json", "-o", "new.json"], true);
    assert!(missing.stderr.contains("upstreams.json has no stored programs"), "{missing:?}");
}

#[test]
fn record_replaces_no_file_that_is_not_a_cassette() {
    let folder = Folder::new();
    let record = |output: &str| folder.run(&["record", "upstreams.json", "program.clj", "-o", output], true);
    for name in ["program.clj", "upstreams.json", "upstreams.lock.json"] {
        let before = folder.read(name);
        let refused = record(name);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(&format!("`{name}` exists and is not a cassette")), "{refused:?}");
        assert_eq!(folder.read(name), before);
    }
    record("c.json").success();
    let whole = folder.read("c.json");
    for damaged in ["", whole.get(..40).unwrap()] {
        folder.write("c.json", damaged);
        record("c.json").success();
        assert_eq!(folder.read("c.json"), whole);
    }
}

#[test]
fn embedding_program_replays_the_quickstart() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/quickstart");
    let text = std::fs::read_to_string(folder.join("due.cassette.json")).unwrap();
    let served = Source::file(folder.join("upstreams.json")).open_blocking().unwrap();
    let catalog = served.deployment().catalog;
    let cassette = Cassette::read("due.cassette.json", &text).unwrap();
    assert_eq!(cassette.to_string(), text, "it has the form that `record` writes");
    cassette.check(catalog).unwrap();
    let player = Arc::new(Player::new("due.cassette.json", &cassette, catalog));
    let engine = served.engine().upstreams(|upstreams| upstreams.interceptor = Some(player)).build().unwrap();
    let program = std::fs::read_to_string(folder.join("due.clj")).unwrap();
    let answers: Vec<String> = (0..1000).map(|_| engine.run(Request::new(&*program)).preview().unwrap().to_owned()).collect();
    let expected = "{\"Ada\" 1985 \"Grace\" 1640 \"Ken\" 1660}";
    assert!(answers.iter().all(|answer| answer == expected), "{:?}", answers.first());
}

#[test]
fn failures_of_the_connection_are_recorded_with_a_warning() {
    let folder = Folder::new();
    folder.write("program.clj", r#"(:reason (tool/call {:server "s" :tool "count"}))"#);
    std::fs::remove_file(folder.0.path().join("server.sh")).unwrap();
    let recorded = folder.run(&["record", "upstreams.json", "program.clj", "-o", "c.json"], true);
    assert_eq!(recorded.code, Some(0), "{recorded:?}");
    assert!(recorded.stderr.contains("warning: the cassette has failures that say nothing about the requests"), "{recorded:?}");
    assert!(recorded.stderr.contains(": s/count\n") && folder.read("c.json").contains("upstream_unavailable"), "{recorded:?}");
}

#[test]
fn unknown_request_ends_the_program_and_shows_the_nearest() {
    let folder = Folder::recorded();
    let run = |program: &str| folder.run(&[&REPLAY[..], &["-e", program]].concat(), false);
    let other = run(r#"(:ok (tool/call {:server "s" :tool "echo" :args {:a "bob"}}))"#);
    assert_eq!(other.code, Some(1));
    let expected = "the cassette c.json has no answer to s/echo with {\"a\":\"bob\"}; the nearest recorded request is {\"a\":\"ann\"}, which \
                    differs in args.a";
    assert!(other.stderr.contains(expected) || other.stdout.contains(expected), "{other:?}");
    // Arguments are checked and budgets are counted as for an upstream.
    let invalid = run(r#"(tool/call {:server "s" :tool "echo" :args {:a 1}})"#);
    assert!(format!("{invalid:?}").contains("rejected args"), "{invalid:?}");
    let many = r#"(frequencies (map (fn [_] (:reason (tool/call {:server "s" :tool "count"}))) (range 60)))"#;
    assert_eq!(run(many).success(), "{nil 50 :cap_exhausted 10}\n");
}

#[test]
fn cassette_that_cannot_be_replayed_is_refused() {
    let folder = Folder::recorded();
    let cassette = folder.read("c.json");
    let refused = |args: &[&str], expected: &[&str]| {
        let refused = folder.run(args, false);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        for text in expected {
            assert!(refused.stderr.contains(text), "{text}: {refused:?}");
        }
    };
    let with = |text: &str, expected: &[&str]| {
        folder.write("c.json", text);
        refused(&[&REPLAY[..], &["-e", "1"]].concat(), expected);
    };
    let changed = cassette.replace(&definition(&folder, "s", "count"), "sha256:0");
    let again = "`ptc-compile record upstreams.json PROGRAM… -o c.json` records the programs again";
    with(&changed, &["it was recorded with another lock file: s/count changed since then", again]);
    with(&cassette.replace("s/count", "s/gone"), &["s/gone not in it any more", again]);
    let version = |other: &str| cassette.replace("\"cassette\": 1", &format!("\"cassette\": {other}"));
    let newer = "a newer version of ptc-compile wrote it: it has version 9 of the format, and this program reads version 1";
    with(&version("9"), &[newer, "use a newer version of ptc-compile; or `ptc-compile record", "again with this version"]);
    for other in ["0", "1.5", "-2", "\"2\"", "null"] {
        with(&version(other), &[&format!("expected a cassette of version 1, found version {other}"), again]);
    }
    with(
        &cassette.replace("\"cassette\":", "\"seed\": 1, \"cassette\":"),
        &["expected an object with `cassette` and `tools` only"],
    );
    with("{}", &["the cassette c.json cannot be used: cassette: expected"]);
    with("{,", &["c.json:1:2"]);
    // Mistakes of an edit by hand.
    for (from, to, expected) in [
        ("\"value\":", "\"vaule\":", "expected a reply with `value`"),
        ("\"fault\": \"tool_error\"", "\"fault\": \"tool_eror\"", "expected a reason of failed calls"),
        ("\"fault\": \"tool_error\"", "\"fault\": \"tool_error\", \"text\": \"x\"", "a reply with one of"),
        ("\"args\":", "\"arguments\": 1, \"args\":", "expected an object with `args`"),
        ("\"definition\":", "\"digest\": 1, \"definition\":", "expected an object with `definition`"),
        ("\"args\":", "\"accept\": 1, \"args\":", "expected `accept`, a string"),
        ("\"args\":", "\"body\": \"no\", \"args\":", "expected `body`, true or false"),
        ("\"value\":", "\"message\": \"x\", \"value\":", "expected `message` only beside `fault`"),
        ("\"value\":", "\"latency_ms\": -1, \"value\":", "expected `latency_ms`, an integer"),
        ("\"value\":", "\"headers\": 1, \"value\":", "expected `headers`, an object"),
    ] {
        assert!(cassette.contains(from), "{from}: {cassette}");
        with(&cassette.replacen(from, to, 1), &["the cassette c.json cannot be used: s/", expected]);
    }
    folder.write("c.json", &cassette);
    let live = ["--catalog-snapshot-mode", "live"];
    refused(&[&REPLAY[..], &live].concat(), &["does not go with"]);
    refused(&["repl", "--upstreams", "c.json", "upstreams.json"], &["--upstreams: expected `cassette:`"]);
    refused(&["repl", "--upstreams", "cassette:c.json"], &["and there is no config"]);
    std::fs::remove_file(folder.0.path().join("upstreams.lock.json")).unwrap();
    let unpinned = folder.run(&[&REPLAY[..], &["-e", "1"]].concat(), false);
    assert_eq!(unpinned.code, Some(1), "{unpinned:?}");
    assert!(unpinned.stderr.contains("there is no lock file"), "{unpinned:?}");
}

/// Returns the digest of a tool in the lock file.
pub(crate) fn definition(folder: &Folder, upstream: &str, tool: &str) -> String {
    let lock: Value = serde_json::from_str(&folder.read("upstreams.lock.json")).unwrap();
    let digest = lock.pointer(&format!("/upstreams/{upstream}/tools/{tool}/digest")).and_then(Value::as_str);
    digest.unwrap_or_else(|| panic!("no digest of {tool} in {}: {lock:#}", Path::new("upstreams.lock.json").display())).to_owned()
}

#[test]
fn scrubbed_cassette_replays_without_the_scrubbed_texts() {
    let folder = Folder::new();
    let record = |rule: &[&str]| {
        let command = ["record", "upstreams.json", "program.clj", "-o", "c.json"];
        folder.run(&[&command[..], rule].concat(), true)
    };
    let unused = record(&["--scrub", "s/count:m"]);
    assert_eq!(unused.code, Some(2), "{unused:?}");
    assert!(unused.stderr.contains("the rule s/count:m selects nothing"), "{unused:?}");
    assert!(!folder.0.path().join("c.json").exists());
    let scrubbed = record(&["--scrub-pattern", "an+"]);
    assert!(scrubbed.stderr.contains("scrubbed 1 value\n"), "{scrubbed:?}");
    scrubbed.success();
    let cassette = folder.read("c.json");
    assert!(cassette.contains("to scrubbed-1") && cassette.contains(r#""a": "scrubbed-1""#), "{cassette}");
}
