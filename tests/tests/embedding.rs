//! A Rust program with the tables of `catalog!` inside, and tools of its own beside them.

use std::fs;

use ptc_compiler::diag::Diagnostics;
use ptc_compiler::diag::render::{self, Style};
use ptc_compiler::openapi::Text;
use ptc_compiler::source::Sources;
use ptc_compiler::{live, pinned};
use ptc_runtime::embed::{Args, Engine, Request, Tool};
use ptc_tests::deployment::workspace;

#[path = "../examples/batch/main.rs"]
#[expect(dead_code, reason = "its main")]
mod batch;

mod upstreams {
    ptc_macros::catalog!("../fixtures/quickstart/upstreams.json");
}

#[test]
fn programs_see_the_catalog_of_the_macro_and_own_tools() {
    let shout = Tool::new("shout", "(text :string) -> :string", |args: Args| Ok(args.text("text").map(str::to_uppercase)));
    let engine = Engine::builder().deployment(&upstreams::DEPLOYMENT).tool(shout.expect("a tool")).build().expect("an engine");
    let program = "(map (fn [server] (tool/shout {:text (get server \"name\")})) (tool/servers))";
    assert_eq!(engine.run(Request::new(program)).preview(), Ok("[\"NOTES\" \"PETSTORE\" \"VISITS\"]"));
    // What is wrong about a call is found before anything is called, as in a pinned binary.
    let answer = engine.run(Request::new("(tool/shout {:text \"a\"}) (tool/call {:server \"petstor\" :tool \"x\"})"));
    assert_eq!((answer.preview(), answer.tool_calls.len()), (Err("runtime_error"), 0));
}

/// What a program does that is given its config when it runs.
#[test]
fn a_config_that_is_known_at_run_time_only() {
    let folder = workspace().join("fixtures/quickstart");
    let (mut sources, mut diagnostics) = (Sources::default(), Diagnostics::default());
    let model = pinned::read("upstreams.json", "clinic", &mut sources, &mut diagnostics, &mut |path, _| {
        let text = fs::read_to_string(folder.join(path)).map_err(|why| why.to_string())?;
        Ok(Text { path: path.to_owned(), text })
    });
    let model = model.unwrap_or_else(|| panic!("{}", render::full(&sources, &diagnostics, Style::Plain)));
    let engine = Engine::builder().deployment(live::leak(&model)).build().expect("an engine");
    assert_eq!(engine.run(Request::new("(count (tool/servers))")).preview(), Ok("3"));
    let listed = |engine: &Engine| engine.run(Request::new("(dir \"petstore\")")).preview().map(str::to_owned).ok();
    let compiled = Engine::builder().deployment(&upstreams::DEPLOYMENT).build().expect("an engine");
    assert_eq!(listed(&engine), listed(&compiled));
}

#[test]
fn the_batch_writes_a_line_for_each_file() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in [
        ("notes.txt", "{"),
        ("b.json", r#"{"rows": [{"amount": 12345678901234567890}, {"amount": 1}]}"#),
        ("a.json", r#"{"rows": [{"amount": 1}, {"amount": 2.5}]}"#),
        ("c.json", "{"),
        ("d.json", r#"{"rows": 5}"#),
        ("e.json", r#"{"rows": [{"amount": "one"}]}"#),
    ] {
        fs::write(folder.path().join(name), text).expect("written");
    }
    let mut out = Vec::new();
    let failed = batch::run(folder.path(), &mut out).expect("it runs");
    let out = String::from_utf8(out).expect("text");
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!((failed, lines.len()), (3, 5), "{out}");
    assert_eq!(lines[0], r#"{"file":"a.json","result":{"file":"a.json","total":3.5}}"#);
    assert_eq!(lines[1], r#"{"file":"b.json","result":{"file":"b.json","total":12345678901234567891}}"#);
    assert!(lines[2].starts_with(r#"{"file":"c.json","error":"EOF while parsing"#), "{}", lines[2]);
    assert!(lines[3].starts_with(r#"{"file":"d.json","error":"args_error: arguments.input.rows: "#), "{}", lines[3]);
    assert!(lines[4].starts_with(r#"{"file":"e.json","error":"runtime_error: arithmetic_error"#), "{}", lines[4]);
}
