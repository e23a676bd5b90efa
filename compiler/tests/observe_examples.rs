//! Tests the example calls that `observe --examples` stores in the lock file: `tests/recorded_examples` has a tool with its calls, and
//! beside it the stored example and the call in `doc`.
//!
//! `UPDATE_EXPECT=1 cargo test -p ptc-compiler observe_examples::` writes the expected results; review the difference before committing.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops where anything is wrong")]

use std::fs;
use std::path::Path;

use ptc_compiler::config::{self, Config};
use ptc_compiler::diag::Diagnostics;
use ptc_compiler::json::Json;
use ptc_compiler::lock::{self, Lock, LockedTool, LockedUpstream};
use ptc_compiler::lower;
use ptc_compiler::lower::example;
use ptc_compiler::serve::observe::Observations;
use ptc_compiler::source::Sources;
use serde_json::{Value, json};

use crate::cassette::Folder;

fn config(example: Option<&Value>) -> Config {
    let overriding = example.map(|example| json!({ "get": { "example": example } }));
    let entry = json!({ "transport": "mcp_stdio", "command": "srv", "tool_overrides": overriding.unwrap_or(json!({})) });
    let secret = json!({ "source": "literal", "value": "literal-hunter2" });
    let text = json!({ "credentials": { "key": secret }, "upstreams": { "srv": entry } }).to_string();
    let mut sources = Sources::default();
    let file = sources.add("upstreams.json", text);
    config::read(&sources, file, &mut Diagnostics::default()).unwrap()
}

/// Returns the example that the lock has after the calls of a case, what happened, and the call that `doc` shows.
fn observed(case: &Value) -> String {
    let mut definition = json!({ "name": "get", "inputSchema": case["input"] });
    if let Some(defaults) = case.get("default_args") {
        definition["_ptc"] = json!({ "operationId": "get", "path": "/", "defaultArgs": defaults });
    }
    let config = config(case.get("override"));
    let tool = LockedTool {
        example: case.get("known").map(|known| Json::from(known).sorted()),
        ..LockedTool::new(Json::from(&definition))
    };
    let mut lock = Lock::default();
    let upstream = LockedUpstream { transport: "mcp_stdio".into(), ..LockedUpstream::default() };
    lock.upstreams.entry("srv".into()).or_insert(upstream).tools.insert("get".into(), tool);
    let mut all = Observations::default();
    for call in case["calls"].as_array().unwrap() {
        all.add_args("srv", "get", &Json::from(call));
    }
    let outcomes = all.apply_examples(&config, &mut lock, &|tool, args| example::fault(args, &tool.definition).is_none());
    let outcome = outcomes.first().map_or("not wanted".to_owned(), |(.., outcome)| format!("{outcome:?}"));
    let stored = lock.upstreams["srv"].tools["get"].example.as_ref().map_or("none".to_owned(), Json::canonical);
    let deployment = lower::deployment(&config, &lock, "d");
    let doc = &deployment.upstreams[0].tools[0].doc;
    let call = doc.lines().find(|line| line.starts_with("call: ")).unwrap();
    format!("{outcome}\nin the lock: {stored}\n{call}\n")
}

#[test]
fn examples_are_chosen_as_expected() {
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded_examples");
    let (mut wrong, mut count) = (Vec::new(), 0);
    for file in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if file.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        count += 1;
        let case: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        let (actual, expected) = (observed(&case), file.with_extension("txt"));
        if update {
            fs::write(&expected, actual).unwrap();
        } else if fs::read_to_string(&expected).unwrap_or_default() != actual {
            wrong.push(format!("{}:\n{actual}", file.display()));
        }
    }
    assert!(count > 10 && wrong.is_empty(), "not as expected (UPDATE_EXPECT=1 accepts):\n{}", wrong.join("\n"));
}

fn read_lock(folder: &Folder) -> Lock {
    let mut sources = Sources::default();
    let mut diagnostics = Diagnostics::default();
    let file = sources.add("upstreams.lock.json", folder.read("upstreams.lock.json"));
    lock::read::read(&sources, file, &mut diagnostics).unwrap_or_else(|| panic!("{:?}", diagnostics.sorted()))
}

fn stored(folder: &Folder, tool: &str) -> Option<String> {
    read_lock(folder).upstreams["s"].tools[tool].example.as_ref().map(Json::canonical)
}

fn docs(folder: &Folder) -> String {
    folder.run(&["upstreams.json", "--emit", "docs", "--locked", "--offline"], true).success()
}

const SHOWN: &str = r#"call: (tool/call {:server "s" :tool "echo" :args {:a "ann"}})"#;
const OBSERVE: [&str; 5] = ["observe", "upstreams.json", "--cassette", "c.json", "--examples"];

#[test]
fn example_of_a_cassette_is_stored_and_shown_only_on_request() {
    let folder = Folder::recorded();
    folder.run(&OBSERVE[..4], false).success();
    assert_eq!(stored(&folder, "echo"), None);
    assert!(!docs(&folder).contains(SHOWN));

    let observed = folder.run(&OBSERVE, false);
    assert!(observed.stderr.contains("s/echo: the smallest call is its example\n"), "{observed:?}");
    assert!(!observed.stderr.contains("ann"), "arguments are values: {observed:?}");
    assert_eq!(stored(&folder, "echo").as_deref(), Some(r#"{"a":"ann"}"#));
    assert_eq!(stored(&folder, "fail"), None, "its only call failed");
    assert!(docs(&folder).contains(SHOWN), "{}", docs(&folder));
    let again = folder.run(&OBSERVE, false);
    assert!(again.stderr.contains("s/echo: its example stays\n"), "{again:?}");

    // `--replace` forgets the example together with the shape.
    let replaced = folder.run(&["observe", "upstreams.json", "--cassette", "c.json", "--replace"], false);
    assert!(replaced.stderr.contains("s/echo: its earlier example is dropped\n"), "{replaced:?}");
    assert_eq!(stored(&folder, "echo"), None);
}

#[test]
fn example_of_a_run_is_stored_without_what_was_redacted() {
    let folder = Folder::new();
    folder.write(
        "program.clj",
        r#"(let [echo (fn [text] (:value (tool/call {:server "s" :tool "echo" :args {:a text}})))] (count (echo (echo "ann"))))"#,
    );
    folder.run(&["observe", "upstreams.json", "program.clj", "--examples"], true).success();
    assert_eq!(stored(&folder, "echo").as_deref(), Some(r#"{"a":"ann"}"#));
    // The argument is an answer that had the secret.
    folder.write(
        "program.clj",
        r#"(do (def answer (:value (tool/call {:server "s" :tool "echo" :args {}}))) (count (:value (tool/call {:server "s" :tool "count" :args {:a answer}}))))"#,
    );
    let observed = folder.run(&["observe", "upstreams.json", "program.clj", "--examples"], true);
    assert!(observed.stderr.contains("s/count: none of its calls can be an example\n"), "{observed:?}");
    assert_eq!(stored(&folder, "count"), None);
}

#[test]
fn example_is_kept_or_dropped_by_update_and_is_no_change_of_the_tool() {
    let folder = Folder::new();
    folder.run(&["record", "upstreams.json", "program.clj", "-o", "c.json"], true).success();
    let plain = folder.read("upstreams.lock.json");
    folder.run(&OBSERVE, false).success();
    let with_example = folder.read("upstreams.lock.json");
    folder.run(&["upstreams.json", "--check", "--locked"], true).success();
    let diff = folder.run(&["diff", "upstreams.json", "--details", "--fail-on", "note"], true);
    assert_eq!(diff.code, Some(0), "{diff:?}");
    folder.run(&["update", "upstreams.json"], true).success();
    assert_eq!(folder.read("upstreams.lock.json"), with_example);

    let server = folder.read("server.sh");
    let with_schema =
        |schema: &str| folder.write("server.sh", &server.replace(r#""a":{"type":"string"}"#, &format!(r#""a":{schema}"#)));
    let dropped = "dropped the example of `echo` of `s`: its schema does not permit it any more\n";
    for (schema, is_kept) in [
        (r#"{"type":"string","description":"A name."}"#, true),
        (r#"{"type":"string","maxLength":9}"#, true),
        (r#"{"type":"integer"}"#, false),
        // The library does not know patterns.
        (r#"{"type":"string","pattern":"^[A-Z]+$"}"#, false),
    ] {
        folder.write("upstreams.lock.json", &with_example);
        with_schema(schema);
        let diff = folder.run(&["diff", "upstreams.json", "--details"], true);
        assert!(!diff.stderr.contains("example"), "{diff:?}");
        let updated = folder.run(&["update", "upstreams.json"], true);
        assert_eq!(updated.stderr.contains(dropped), !is_kept, "{schema}: {updated:?}");
        assert_eq!(stored(&folder, "echo").is_some(), is_kept, "{schema}");
        let checked = folder.run(&["upstreams.json", "--check", "--locked"], true);
        assert!(checked.code == Some(0) && !checked.stderr.contains("PTC0636"), "{checked:?}");
    }

    // Scrubbed arguments are examples only if the whole schema permits them.
    for (schema, is_stored) in [(r#"{"type":"string","pattern":"^[a-z]+$"}"#, false), (r#"{"type":"string"}"#, true)] {
        with_schema(schema);
        folder.run(&["update", "upstreams.json"], true).success();
        folder.run(&["record", "upstreams.json", "program.clj", "-o", "c.json", "--scrub-pattern", "ann"], true).success();
        folder.run(&[&OBSERVE[..], &["--replace"]].concat(), false).success();
        assert_eq!(stored(&folder, "echo").as_deref(), is_stored.then_some(r#"{"a":"scrubbed-1"}"#), "{schema}");
    }
    folder.write("server.sh", &server);
    folder.write("upstreams.lock.json", &plain);
    folder.run(&["update", "upstreams.json"], true).success();
    assert_eq!(folder.read("upstreams.lock.json"), plain);
}

#[test]
fn example_of_the_lock_that_was_edited_is_reported() {
    let folder = Folder::recorded();
    folder.run(&OBSERVE, false).success();
    // The digest of the file has the example.
    let text = folder.read("upstreams.lock.json");
    folder.write("upstreams.lock.json", &text.replace(r#""a": "ann""#, r#""a": "bob""#));
    let checked = folder.run(&["upstreams.json", "--check"], true);
    assert!(checked.code != Some(0) && checked.stderr.contains("PTC0603"), "{checked:?}");
    folder
        .write("upstreams.lock.json", &text.replace("\"example\": {\n            \"a\": \"ann\"\n          }", "\"example\": 1"));
    let checked = folder.run(&["upstreams.json", "--check"], true);
    assert!(checked.stderr.contains("expected an object under `example`, found a number"), "{checked:?}");

    folder.write("upstreams.lock.json", &text);
    for (example, expected) in [
        (
            json!({ "a": 7 }),
            "the lock file has an example of `echo` of `s`: the argument `a` is string, its example is an integer",
        ),
        (json!({ "a": "x".repeat(400) }), "the example has more than 400 bytes"),
    ] {
        let mut lock = read_lock(&folder);
        lock.upstreams.get_mut("s").unwrap().tools.get_mut("echo").unwrap().example = Some(Json::from(&example));
        folder.write("upstreams.lock.json", &lock::write::write(&lock));
        for command in [&["upstreams.json", "--check"][..], &["upstreams.json", "--emit", "docs"]] {
            let run = folder.run(&[command, &["--locked", "--offline"]].concat(), true);
            assert!(run.stderr.contains("warning[PTC0636]") && run.stderr.contains(expected), "{command:?} {run:?}");
            assert!(!run.stdout.contains(SHOWN), "{run:?}");
        }
    }
}
