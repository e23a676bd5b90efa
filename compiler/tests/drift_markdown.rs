//! Tests the Markdown of `diff` and `update`, with upstreams whose names and descriptions are markup, and with stored programs.
//!
//! `UPDATE_EXPECT=1 cargo test -p ptc-compiler drift_markdown::` writes the expected documents; review the difference before
//! committing.

#![expect(clippy::unwrap_used, reason = "a test stops where anything is wrong")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use pulldown_cmark::{Event, Options, Parser, Tag};
use tempfile::TempDir;

/// Returns the folder with the config, the programs, the tools before and after, and the expected documents.
fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/markdown")
}

fn read(name: &str) -> String {
    fs::read_to_string(data().join(name)).unwrap()
}

/// Returns a folder with the config and the programs, whose upstreams offer the tools of a file.
fn folder(tools: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["upstreams.json", "weekly.clj", "sweep.clj", "manual.clj"] {
        fs::copy(data().join(name), folder.path().join(name)).unwrap();
    }
    fs::write(folder.path().join("shop.sh"), include_str!("../../fixtures/shop.sh")).unwrap();
    offer(&folder, &read(tools));
    folder
}

/// Sets the tools that each upstream offers.
fn offer(folder: &TempDir, tools: &str) {
    let tools: serde_json::Value = serde_json::from_str(tools).unwrap();
    for (upstream, tools) in tools.as_object().unwrap() {
        let folder = folder.path().join(upstream);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("tools.json"), format!("{}\n", serde_json::json!({ "tools": tools }))).unwrap();
    }
}

fn run(folder: &TempDir, command: &str) -> Output {
    let mut compile = Command::new(env!("CARGO_BIN_EXE_ptc-compile"));
    compile.args(command.split_whitespace()).current_dir(folder.path()).output().unwrap()
}

/// Returns the exit code and the document of a command.
fn markdown(folder: &TempDir, command: &str) -> (Option<i32>, String) {
    let output = run(folder, &format!("{command} --format markdown"));
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

fn pinned() -> TempDir {
    let folder = folder("before.json");
    let output = run(&folder, "update upstreams.json");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    folder
}

fn assert_expected(name: &str, actual: &str) {
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(data().join(name), actual).unwrap();
    } else {
        assert_eq!(actual, read(name), "not as expected (UPDATE_EXPECT=1 accepts)");
    }
}

#[test]
fn document_has_changes_with_severity_and_stored_programs() {
    let folder = pinned();
    offer(&folder, &read("after.json"));
    let (code, text) = markdown(&folder, "diff upstreams.json");
    assert_eq!(code, Some(1), "{text}");
    assert_expected("expected.md", &text);
    let (_, details) = markdown(&folder, "diff upstreams.json --details --fail-on never");
    assert_expected("expected_details.md", &details);
    // `update` writes the same document.
    assert_eq!(markdown(&folder, "update upstreams.json"), (Some(0), text));
    let (code, text) = markdown(&folder, "diff upstreams.json");
    assert!(code == Some(0) && text.starts_with("No upstream differs from the lock file.\n\n### Findings\n"), "{text}");
}

#[test]
fn document_without_changes_and_warnings_is_one_sentence() {
    let folder = pinned();
    let tools = serde_json::json!([{ "name": "read", "inputSchema": { "type": "object", "properties": { "page": {} } } }]);
    offer(&folder, &serde_json::json!({ "docs": tools, "shop": tools }).to_string());
    assert!(run(&folder, "update upstreams.json").status.success());
    let document = markdown(&folder, "diff upstreams.json");
    assert_eq!(document, (Some(0), "No upstream differs from the lock file.\n".to_owned()));
}

/// Text that is not code has only the characters of plain words, and the document has no markup but its own.
#[test]
fn texts_of_upstreams_are_escaped_and_mention_no_user() {
    for name in ["expected.md", "expected_details.md"] {
        let text = read(name);
        let mut headings = 0;
        for event in Parser::new_ext(&text, Options::all()) {
            match event {
                Event::Start(Tag::Heading { .. }) => headings += 1,
                Event::Start(Tag::Paragraph | Tag::List(None) | Tag::Item | Tag::Strong)
                | Event::End(_)
                | Event::Code(_)
                | Event::SoftBreak => {}
                Event::Text(text) => {
                    let is_plain = |c: char| c.is_alphanumeric() || " .,;:?!()\"'“”‘’→…-".contains(c);
                    assert!(text.chars().all(is_plain) && !text.contains("www."), "{name}: {text}");
                }
                other => panic!("{name}: {other:?}"),
            }
        }
        assert_eq!(headings, 5, "{name}");
        let is_caller = |line: &str| line.contains("tored programs") && line.contains("manual");
        assert!(!text.lines().any(is_caller) && text.contains("`manual` calls no tool that changed"), "{text}");
        // Backticks and pipes of names are shown.
        assert!(text.contains("@octocat") && text.contains("<img src=x>"), "{text}");
    }
}

#[test]
fn upstream_that_cannot_be_compared_does_not_hide_others() {
    let folder = pinned();
    offer(&folder, &read("after.json"));
    fs::remove_file(folder.path().join("docs/tools.json")).unwrap();
    let (code, text) = markdown(&folder, "diff upstreams.json --fail-on never");
    assert_eq!(code, Some(1), "{text}");
    for said in ["The comparison is incomplete", "- **error** PTC0606", "### `shop` `1`"] {
        assert!(text.contains(said), "should say `{said}`:\n{text}");
    }
    fs::remove_file(folder.path().join("shop/tools.json")).unwrap();
    let (code, text) = markdown(&folder, "diff upstreams.json --fail-on never");
    assert_eq!(code, Some(1), "{text}");
    for said in ["No changed tool was found.", "The comparison is incomplete", "- **error** PTC0606"] {
        assert!(text.contains(said), "should say `{said}`:\n{text}");
    }
    assert!(!text.contains("No upstream differs") && !text.contains("Stored programs"), "{text}");
}

#[test]
fn document_of_many_changes_fits_into_a_pull_request() {
    let folder = pinned();
    let tools = |from: u32| -> serde_json::Value {
        let tool = |at: u32| {
            let text = format!("{at} ").repeat(100);
            serde_json::json!({ "name": format!("tool_{at}"), "description": text, "inputSchema": { "type": "object" } })
        };
        (from..from + 600).map(tool).collect::<Vec<_>>().into()
    };
    offer(&folder, &serde_json::json!({ "docs": tools(0), "shop": tools(0) }).to_string());
    let (_, text) = markdown(&folder, "diff upstreams.json --details");
    assert!(text.len() < 65_536, "{}", text.len());
    assert!(text.contains(" lines are left out, because a pull request has no room for more."), "{text}");
    assert!(text.contains("`orders` is gone"), "the most severe changes come first: {text}");
}

#[test]
fn errors_of_a_later_upstream_come_before_notes_of_an_earlier_one() {
    let folder = folder("before.json");
    let tools = |schema: &dyn Fn(u32) -> serde_json::Value, title: &str| -> serde_json::Value {
        let tool = |at: u32| serde_json::json!({ "name": format!("tool_{at:0>60}"), "title": title, "inputSchema": schema(at) });
        (0..300).map(tool).collect::<Vec<_>>().into()
    };
    let open = |_: u32| serde_json::json!({ "type": "object", "properties": { "a": { "maximum": 9 } } });
    let narrow = |_: u32| serde_json::json!({ "type": "object", "properties": { "a": { "maximum": 1 } } });
    // The first section has one error and many notes. The second one has as many errors as have room.
    let one_narrow = |at: u32| if at == 0 { narrow(at) } else { open(at) };
    offer(&folder, &serde_json::json!({ "docs": tools(&open, "A"), "shop": tools(&open, "A") }).to_string());
    assert!(run(&folder, "update upstreams.json").status.success());
    offer(&folder, &serde_json::json!({ "docs": tools(&one_narrow, "B"), "shop": tools(&narrow, "A") }).to_string());
    let (code, text) = markdown(&folder, "diff upstreams.json --details");
    assert_eq!(code, Some(1));
    assert!(text.len() < 65_536, "{}", text.len());
    let count = |severity: &str| text.matches(&format!("- **{severity}** PTC06")).count();
    assert_eq!(count("error"), 301, "{text}");
    assert!(text.contains("lines are left out") && (1..299).contains(&count("note")), "{text}");
}

/// Another pattern is a warning. For the program whose argument does not match it any more, it is an error.
#[test]
fn findings_about_stored_programs_are_in_all_formats_and_count() {
    let folder = folder("before.json");
    let tools = |pattern: &str| {
        let orders = serde_json::json!({ "name": "orders", "inputSchema": { "type": "object", "properties": {
            "since": { "type": "string", "pattern": pattern }, "most": { "type": "integer" } } } });
        serde_json::json!({ "shop": [orders], "docs": [{ "name": "read", "inputSchema": { "type": "object" } }] }).to_string()
    };
    offer(&folder, &tools("^2026"));
    assert!(run(&folder, "update upstreams.json").status.success());
    offer(&folder, &tools("^2027"));
    for format in ["full", "short", "json", "sarif", "github", "markdown"] {
        let output = run(&folder, &format!("diff upstreams.json --fail-on error --format {format}"));
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(said.contains("PTC0614") && said.contains("PTC0802") && said.contains("weekly.clj"), "{format}: {said}");
        assert_eq!(output.status.code(), Some(1), "{format}: {said}");
    }
    assert_eq!(run(&folder, "diff upstreams.json --fail-on never").status.code(), Some(0));
    // Findings about programs prevent no update, and after it they are not new.
    assert_eq!(run(&folder, "update upstreams.json").status.code(), Some(0));
    assert_eq!(run(&folder, "diff upstreams.json").status.code(), Some(0));
}

#[test]
fn one_comparison_writes_several_reports() {
    let folder = pinned();
    offer(&folder, &read("after.json"));
    let reports = "--report sarif=out/drift.sarif --report markdown=drift.md --report json=drift.json";
    let output = run(&folder, &format!("diff upstreams.json --format github {reports}"));
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(fs::read_to_string(folder.path().join("drift.md")).unwrap(), read("expected.md"));
    for (file, format) in [("out/drift.sarif", "sarif"), ("drift.json", "json")] {
        let alone = run(&folder, &format!("diff upstreams.json --format {format}"));
        assert_eq!(fs::read_to_string(folder.path().join(file)).unwrap(), String::from_utf8(alone.stdout).unwrap(), "{format}");
    }
    assert!(String::from_utf8(output.stdout).unwrap().contains("::error file="));
    // `text` is the name that `test` has for the format for people.
    let text = run(&folder, "diff upstreams.json --format text");
    let message = String::from_utf8(text.stderr).unwrap();
    assert!(text.status.code() == Some(1) && message.contains("\n --> upstreams.json:4:5\n"), "{message}");
    for wrong in ["full=a", "sarif", "sarif=", "text=a"] {
        assert_eq!(run(&folder, &format!("diff upstreams.json --report {wrong}")).status.code(), Some(2), "{wrong}");
    }
}

/// A program may call an operation by its former `operationId`.
#[test]
fn callers_by_the_former_operation_id_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let document = |id: &str| {
        format!(
            r#"{{"openapi": "3.0.3", "info": {{"title": "S", "version": "1"}}, "paths": {{"/orders": {{"get": {{"operationId": "{id}",
            "x-ptc-name": "orders", "responses": {{"200": {{"content": {{"application/json": {{}}}}}}}}}}}}}}}}"#
        )
    };
    write(
        "upstreams.json",
        r#"{"upstreams": {"shop": {"transport": "openapi", "base_url": "https://shop.example.com", "schema_file": "shop.json",
        "include_operations": ["*"]}}, "programs": {"daily": {"file": "daily.clj", "description": "Lists the orders."}}}"#,
    );
    write("daily.clj", "(tool/value {:server \"shop\" :tool \"listOrders\" :args {}})");
    write("shop.json", &document("listOrders"));
    assert!(run(&folder, "update upstreams.json").status.success());
    write("shop.json", &document("getOrders"));
    let (code, text) = markdown(&folder, "diff upstreams.json --fail-on error");
    assert_eq!(code, Some(1), "{text}");
    for said in [
        "Stored programs that call changed tools: `daily`.",
        "PTC0632: `orders` cannot be called as",
        "Stored programs: `daily`.",
    ] {
        assert!(text.contains(said), "should say `{said}`:\n{text}");
    }
}

#[test]
fn markdown_format_is_accepted_by_diff_only() {
    let folder = pinned();
    for command in ["--check upstreams.json", "check-program upstreams.json weekly.clj", "import upstreams.json"] {
        let output = run(&folder, &format!("{command} --format markdown"));
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{command}: {said}");
        assert!(said.contains("invalid value 'markdown' for '--format <FORMAT>'"), "{command}: {said}");
    }
}
