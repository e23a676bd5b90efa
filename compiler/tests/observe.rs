//! Tests the inference of result shapes from answers: `tests/observed` has answers of a tool, and beside them what the lock file and
//! `doc` have of them. Tests `observe` with an upstream.
//!
//! `UPDATE_EXPECT=1 cargo test -p ptc-compiler observe::` writes the expected results; review the difference before committing.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops where anything is wrong")]

use std::fs;
use std::path::{Path, PathBuf};

use fastrand::Rng;
use ptc_compiler::json::Json;
use ptc_compiler::lock::{Lock, LockedTool, LockedUpstream};
use ptc_compiler::lower;
use ptc_compiler::serve::observe::{Observations, Shape};
use serde_json::{Map, Value, json};

use crate::cassette::Folder;

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/observed");
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn lock() -> Lock {
    let tool = LockedTool::new(Json::parse(r#"{"name": "get", "inputSchema": {"type": "object"}}"#).unwrap());
    let mut lock = Lock::default();
    let upstream = lock.upstreams.entry("srv".into()).or_insert_with(LockedUpstream::default);
    upstream.tools.insert("get".into(), tool);
    lock
}

fn observed(answers: &[Value]) -> String {
    let mut all = Observations::default();
    for answer in answers {
        all.add("srv", "get", &Json::from(answer));
    }
    let mut lock = lock();
    all.apply(&mut lock, false);
    let tool = &lock.upstreams["srv"].tools["get"];
    let doc = lower::tool("srv", "get", tool).doc;
    let returns = doc.find("returns: ").unwrap();
    format!("{}\n----\n{}\n", &doc[returns..], tool.observed.as_ref().unwrap().schema.pretty())
}

#[test]
fn observed_shape_is_kept_if_only_descriptions_have_changed() {
    let upstream = |definition: &str, observed: bool| {
        let mut tool = LockedTool::new(Json::parse(definition).unwrap());
        let schema = Json::parse(r#"{"type": "string"}"#).unwrap();
        tool.observed = observed.then_some(ptc_compiler::lock::Observed { answers: 2, schema });
        let mut upstream = LockedUpstream::default();
        upstream.tools.insert("get".into(), tool);
        upstream
    };
    let before =
        r#"{"name": "get", "inputSchema": {"type": "object", "properties": {"id": {"type": "string", "description": "A"}}}}"#;
    for (after, is_kept) in [
        (before.replace(r#""A""#, r#""The id.""#), true),
        (before.replace(r#""name""#, r#""description": "Gets.", "name""#), true),
        (before.replace(r#"{"type": "string""#, r#"{"type": "integer""#), false),
        // A member with this name is not a description.
        (before.replace(r#""id""#, r#""description""#), false),
    ] {
        let mut locked = upstream(&after, false);
        ptc_compiler::resolve::keep_observations(&upstream(before, true), &mut locked);
        assert_eq!(locked.tools["get"].observed.is_some(), is_kept, "{after}");
    }
}

#[test]
fn shapes_are_inferred_as_expected() {
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let mut wrong = Vec::new();
    for file in cases().iter().filter(|file| file.extension().is_some_and(|extension| extension == "json")) {
        let answers: Vec<Value> = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
        let (actual, expected) = (observed(&answers), file.with_extension("txt"));
        if update {
            fs::write(&expected, actual).unwrap();
        } else if fs::read_to_string(&expected).unwrap_or_default() != actual {
            wrong.push(format!("{}:\n{actual}", file.display()));
        }
    }
    assert!(wrong.is_empty(), "not as expected (UPDATE_EXPECT=1 accepts):\n{}", wrong.join("\n"));
}

/// Replaces each text by one that no other text is equal to.
fn make_unique(value: &mut Value, count: &mut usize) {
    match value {
        Value::String(text) => {
            *count += 1;
            *text = format!("canary {count}");
        }
        Value::Array(items) => items.iter_mut().for_each(|item| make_unique(item, count)),
        Value::Object(members) => members.values_mut().for_each(|value| make_unique(value, count)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[test]
fn shape_has_no_text_of_the_answers() {
    let (mut rng, mut count) = (Rng::with_seed(27), 0);
    for _ in 0..300 {
        let mut values: Vec<Value> = (0..rng.usize(1..40)).map(|_| some_value(&mut rng, 3)).collect();
        for value in &mut values {
            make_unique(value, &mut count);
        }
        let schema = shape(&values).to_schema().canonical();
        assert!(!schema.contains("canary"), "{schema}");
    }
    assert!(count > 1000, "{count}");
}

/// Returns a value with up to `depth` levels.
fn some_value(rng: &mut Rng, depth: usize) -> Value {
    let texts = [
        "",
        "open",
        "shut",
        "x y",
        "2026-01-31",
        "2026-01-31T09:30:00Z",
        "https://example.com",
        "ada@example.com",
        "{\"a\": 1}",
        "[1, \"a\"]",
        "id,size\n1,2\n",
        "id,name\na,Ada\n",
        "{\"a\": 1}\n{\"b\": \"x\"}\n",
        "```json\n{\"a\": 1}\n```\n",
        "| a | b |\n|---|---|\n| 1 | 2 |\n",
        "123e4567-e89b-12d3-a456-426614174000",
    ];
    let names = ["id", "status", "a", "b", "kind", "ada@example.com", "2026-01-31"];
    match rng.usize(..if depth == 0 { 6 } else { 10 }) {
        0 => Value::Null,
        1 => json!(rng.bool()),
        2 => json!(rng.i8(..)),
        3 => json!(rng.f64()),
        4 | 5 => json!(rng.choice(texts).unwrap()),
        6 | 7 => (0..rng.usize(..4)).map(|_| some_value(rng, depth - 1)).collect(),
        _ => {
            // Names that are data are rare, so that most objects are not maps.
            let names = if rng.u8(..6) == 0 { &names[..] } else { &names[..5] };
            let members: Map<String, Value> =
                (0..rng.usize(..5)).map(|_| (names[rng.usize(..names.len())].to_owned(), some_value(rng, depth - 1))).collect();
            Value::Object(members)
        }
    }
}

fn shape(values: &[Value]) -> Shape {
    let mut all = Shape::default();
    for value in values {
        all.merge(Shape::of(&Json::from(value)));
    }
    all
}

fn assert_admits(schema: &Json, values: &[Value]) {
    let schema: Value = serde_json::from_str(&schema.canonical()).unwrap();
    let validator = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
    for value in values {
        let errors: Vec<String> = validator.iter_errors(value).map(|error| error.to_string()).collect();
        assert_eq!(errors, [""; 0], "{value}\n{schema:#}");
    }
}

#[test]
fn shape_admits_the_values_that_it_was_inferred_from_in_any_order() {
    let mut rng = Rng::with_seed(26);
    for _ in 0..500 {
        // Values of one kind meet more often if there are many.
        let depth = rng.usize(..4);
        let values: Vec<Value> = (0..rng.usize(1..30)).map(|_| some_value(&mut rng, depth)).collect();
        let (first, second) = values.split_at(rng.usize(..=values.len()));
        let whole = shape(&values);
        let (mut forward, mut backward) = (shape(first), shape(second));
        forward.merge(shape(second));
        backward.merge(shape(first));
        assert_eq!((&forward, &backward), (&whole, &whole));
        let schema = whole.to_schema();
        assert_admits(&schema, &values);
        assert_eq!(Shape::from_schema(&schema).to_schema(), schema, "a schema is read as it was written");

        // The lock file has the schema of the first values, to which others are added.
        let mut stored = Shape::from_schema(&shape(first).to_schema());
        stored.merge(shape(second));
        assert_admits(&stored.to_schema(), if first.is_empty() { second } else { &values });
    }
}

#[test]
fn empty_text_does_not_hide_what_the_other_texts_hold() {
    let table = json!("id,name\n1,Ada\n");
    let expected = shape(std::slice::from_ref(&table)).to_schema();
    let stored = |text: &str| Shape::from_schema(&shape(&[json!(text)]).to_schema());
    for empty in ["", " \n"] {
        // It comes before the table or after it, in one run or in another.
        assert_eq!(shape(&[json!(empty), table.clone()]).to_schema(), expected);
        assert_eq!(shape(&[table.clone(), json!(empty)]).to_schema(), expected);
        let mut later = stored(empty);
        later.merge(Shape::of(&Json::from(&table)));
        assert_eq!(later.to_schema(), expected);
    }
    let mut other = stored("No orders.");
    other.merge(Shape::of(&Json::from(&table)));
    assert_eq!(other.to_schema().canonical(), r#"{"type":"string"}"#);
}

#[test]
fn large_shapes_are_cut() {
    let wide: Map<String, Value> = (0..40).map(|at| (format!("m{}", "x".repeat(at)), json!({ "a": "x" }))).collect();
    let value = json!({ "a": wide, "b": wide, "c": [[[[[[[[[[[[[[[1]]]]]]]]]]]]]]] });
    let nested: Map<String, Value> = (0..40).map(|at| (format!("n{}", "y".repeat(at)), value.clone())).collect();
    let value = Value::Object(nested);
    let schema = shape(std::slice::from_ref(&value)).to_schema();
    assert!(schema.canonical().len() <= 32 * 1024, "{}", schema.canonical().len());
    assert_admits(&schema, std::slice::from_ref(&value));
}

/// A program with two answers of `count` and one of `echo`.
const PROGRAM: &str = r#"
(let [call (fn [tool args] (tool/call {:server "s" :tool tool :args args}))]
  [(:value (call "echo" {:a "ann"})) (:message (call "fail" {})) (mapv (fn [_] (call "count" {})) (range 2)) 1])
"#;

fn tool(folder: &Folder, name: &str) -> Value {
    let lock: Value = serde_json::from_str(&folder.read("upstreams.lock.json")).unwrap();
    lock["upstreams"]["s"]["tools"][name].clone()
}

#[test]
fn observed_shapes_are_stored_shown_kept_and_dropped() {
    let folder = Folder::new();
    folder.write("program.clj", PROGRAM);
    let before = folder.read("upstreams.lock.json");
    let observed = folder.run(&["observe", "upstreams.json", "program.clj"], true);
    assert_eq!(observed.code, Some(0), "{observed:?}");
    assert!(observed.stderr.contains("s/count: {:n integer}, observed in 2 answers\n"), "{observed:?}");
    let count = json!({
        "answers": 2,
        "schema": { "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] },
    });
    assert_eq!(tool(&folder, "count")["observed"], count);
    assert_eq!(tool(&folder, "echo")["observed"], json!({ "answers": 1, "schema": { "type": "string" } }));
    assert_eq!(tool(&folder, "fail").get("observed"), None, "a failure is not an answer");
    let doc = folder
        .run(&["repl", "upstreams.json", "--catalog-snapshot-mode", "frozen", "-e", "(doc \"upstream:s/count\")"], true)
        .success();
    assert!(doc.contains("returns: Result<{:n integer}>, observed in 2 answers"), "{doc}");

    // A live catalog lists the tools itself, and takes the observed shapes from the lock file.
    let live = [
        "repl",
        "upstreams.json",
        "--catalog-snapshot-mode",
        "live",
        "-e",
        "(do (dir \"upstream:s\") (doc \"upstream:s/count\"))",
    ];
    let doc = folder.run(&live, true).success();
    assert!(doc.contains("returns: Result<{:n integer}>, observed in 2 answers"), "{doc}");

    // More answers add to the shape, `update` keeps it, and `--replace` forgets it.
    folder.run(&["observe", "upstreams.json", "program.clj"], true).success();
    assert_eq!(tool(&folder, "count")["observed"]["answers"], 4);
    let kept = folder.read("upstreams.lock.json");
    folder.run(&["update", "upstreams.json"], true).success();
    assert_eq!(folder.read("upstreams.lock.json"), kept);
    folder.run(&["upstreams.json", "--check", "--locked"], true).success();
    folder.run(&["observe", "upstreams.json", "program.clj", "--replace"], true).success();
    assert_eq!(tool(&folder, "count")["observed"], count);

    // A reader that changes the shape by hand is found out.
    folder.write("upstreams.lock.json", &kept.replacen("\"answers\": 4", "\"answers\": 400", 1));
    let changed = folder.run(&["upstreams.json", "--check"], true);
    assert!(changed.stderr.contains("PTC0603"), "{changed:?}");
    folder.write("upstreams.lock.json", &kept);

    // Other arguments, other answers. Without observations, the file is as it was.
    let server = folder.read("server.sh");
    folder.write("server.sh", &server.replace("\"properties\":{\"a\"", "\"properties\":{\"b\""));
    let diff = folder.run(&["diff", "upstreams.json", "--details"], true);
    assert!(
        diff.stderr.contains("note[PTC0633]") && diff.stderr.contains("what was observed of its answers is dropped"),
        "{diff:?}"
    );
    folder.run(&["update", "upstreams.json"], true).success();
    assert_eq!(tool(&folder, "count").get("observed"), None);
    folder.write("server.sh", &server);
    folder.run(&["update", "upstreams.json"], true).success();
    assert_eq!(folder.read("upstreams.lock.json"), before);
}

#[test]
fn cassettes_are_observed_without_their_upstreams() {
    let folder = Folder::recorded();
    let before = folder.read("upstreams.lock.json");
    folder.run(&["observe", "upstreams.json", "--cassette", "c.json"], false).success();
    let observed = folder.read("upstreams.lock.json");
    assert_eq!(tool(&folder, "count")["observed"]["answers"], 3);
    assert!(!observed.contains("canary") && !observed.contains("REDACTED"), "{observed}");
    folder.write("upstreams.lock.json", &before);
    folder.run(&["observe", "upstreams.json", "--cassette", "c.json", "--cassette", "c.json"], false).success();
    assert_eq!(tool(&folder, "count")["observed"]["answers"], 6);
    let missing = folder.run(&["observe", "upstreams.json", "--cassette", "upstreams.json"], false);
    assert!(missing.stderr.contains("the cassette upstreams.json cannot be used: cassette: expected"), "{missing:?}");
}

#[test]
fn recording_observes_the_answers_of_a_new_cassette() {
    let folder = Folder::new();
    let record = ["record", "upstreams.json", "program.clj", "-o", "c.json"];
    folder.run(&record, true).success();
    let again = folder.run(&[&record[..], &["--observe"]].concat(), true);
    let command = "if its answers are not observed yet, use `ptc-compile observe upstreams.json --cassette c.json`";
    assert!(again.stderr.contains("observed nothing: the cassette is unchanged") && again.stderr.contains(command), "{again:?}");
    assert!(tool(&folder, "count").get("observed").is_none());
    std::fs::remove_file(folder.0.path().join("c.json")).unwrap();
    folder.run(&[&record[..], &["--observe"]].concat(), true).success();
    assert_eq!(tool(&folder, "count")["observed"]["answers"], 3);
}

#[test]
fn changed_shapes_are_reported() {
    let folder = Folder::new();
    let answers = |server: &Folder, from: &str, to: &str| server.write("server.sh", &server.read("server.sh").replace(from, to));
    folder.write("program.clj", PROGRAM);
    let observe = ["observe", "upstreams.json", "program.clj"];
    let first = folder.run(&observe, true);
    assert!(first.code == Some(0) && !first.stderr.contains("PTC0633"), "{first:?}");
    // More answers of the same shape do not change it.
    let same = folder.run(&observe, true);
    assert!(same.code == Some(0) && !same.stderr.contains("PTC0633"), "{same:?}");
    answers(&folder, r#"{"n":'$count'}"#, r#"{"m":true}"#);
    let added = folder.run(&[&observe[..], &["--format", "short"]].concat(), true);
    let expected = "note[PTC0633]: `count` of `s` was observed to answer {:m boolean? :n integer?}, which was {:n integer}";
    assert!(added.code == Some(0) && added.stderr.contains(expected), "{added:?}");
    assert_eq!(added.stderr.matches("PTC0633").count(), 1, "{added:?}");
    // `record --observe` says the same, and the exit code is that of the command.
    answers(&folder, r#"{"m":true}"#, r#"{"m":"yes"}"#);
    let record = ["record", "upstreams.json", "program.clj", "-o", "c.json", "--observe", "--format", "json", "--deny-warnings"];
    let recorded = folder.run(&record, true);
    let finding: Value = serde_json::from_str(recorded.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(
        (recorded.code, &finding["code"], &finding["severity"]),
        (Some(0), &json!("PTC0633"), &json!("note")),
        "{recorded:?}"
    );
    // `--replace` forgets the earlier shape.
    answers(&folder, r#"{"m":"yes"}"#, r#"{"n":1}"#);
    let replaced = folder.run(&[&observe[..], &["--replace"]].concat(), true);
    assert!(replaced.stderr.contains("was observed to answer {:n integer}, which was {:m "), "{replaced:?}");
}

#[test]
fn reads_of_places_that_no_answer_has_are_warnings() {
    let folder = Folder::new();
    folder.run(&["observe", "upstreams.json", "program.clj"], true).success();
    for (read, warning) in [
        ("(:n value)", None),
        ("(:nn value)", Some("the value has no 'nn'")),
        ("(:other value)", Some("the value has no 'other'")),
        ("(:x (:n value))", Some("what is at [:n] is an integer, which has no 'x'")),
    ] {
        folder.write("read.clj", &format!(r#"(let [value (tool/value {{:server "s" :tool "count"}})] {read})"#));
        let checked = folder.run(&["check-program", "upstreams.json", "read.clj", "--format", "short"], true);
        let found: Vec<&str> = checked.stderr.lines().filter(|line| line.contains("PTC0814")).collect();
        match warning {
            None => assert!(found.is_empty() && checked.code == Some(0), "{read}: {checked:?}"),
            Some(warning) => {
                assert!(
                    found.len() == 1 && found[0].contains("warning[PTC0814]") && found[0].contains(warning),
                    "{read}: {checked:?}"
                );
            }
        }
    }
}
