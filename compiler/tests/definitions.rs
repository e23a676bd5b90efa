//! Tests how the compiler lowers the tool definitions in `tests/definitions`. The expected result is beside each file.
//!
//! `UPDATE_EXPECT=1 cargo test -p ptc-compiler definitions::` writes the expected results; review the difference before
//! committing.

#![expect(clippy::unwrap_used, reason = "a test stops where anything is wrong")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use ptc_catalog::Type;
use ptc_compiler::diag::Diagnostics;
use ptc_compiler::json::Json;
use ptc_compiler::lock::LockedTool;
use ptc_compiler::lower;
use ptc_compiler::source::Sources;
use ptc_compiler::tree;

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/definitions");
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn answer(file: &Path) -> String {
    let mut sources = Sources::default();
    let mut diagnostics = Diagnostics::default();
    let id = sources.add("definition", fs::read_to_string(file).unwrap());
    let definition = Json::from(&tree::parse(&sources, id, &mut diagnostics).expect("the case is JSON"));
    let name = definition.get("name").and_then(Json::as_str).unwrap().to_owned();
    let tool = lower::tool("srv", &name, &LockedTool::new(definition));
    let mut out = format!("description: {}\nclosed: {}\n", tool.description, tool.closed);
    for arg in &tool.args {
        let types: Vec<&str> =
            Type::ALL.iter().filter(|(kind, _)| arg.types.0 & *kind as u8 != 0).map(|(_, name)| *name).collect();
        let need = if arg.required { "required" } else { "optional" };
        writeln!(out, "{need} {} [{}] {} {:?}", arg.name, types.join(" "), arg.label, arg.allowed).unwrap();
    }
    writeln!(out, "----\n{}", tool.doc).unwrap();
    out
}

#[test]
fn definitions_are_read_as_expected() {
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let mut wrong = Vec::new();
    let files = cases();
    for file in files.iter().filter(|f| f.extension().is_some_and(|e| e == "json")) {
        let expected = file.with_extension("txt");
        let actual = answer(file);
        if update {
            fs::write(&expected, actual).unwrap();
        } else if fs::read_to_string(&expected).unwrap_or_default() != actual {
            wrong.push(format!("{}:\n{actual}", file.display()));
        }
    }
    for orphan in files.iter().filter(|f| f.extension().is_some_and(|e| e == "txt") && !f.with_extension("json").is_file()) {
        wrong.push(format!("{} belongs to no case", orphan.display()));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns a tool with `members` arguments and result fields, each with 200 values and a long description.
fn wide(members: usize) -> String {
    let values: Vec<String> = (0..200).map(|n| format!("\"value-{n}\"")).collect();
    let member = |n| {
        let prose = "what it means ".repeat(20);
        format!(r#""m{n}": {{"type": "string", "enum": [{}], "maxLength": {n}, "description": "{prose}"}}"#, values.join(","))
    };
    let properties = (0..members).map(member).collect::<Vec<_>>().join(",");
    let schema = format!(r#"{{"type": "object", "properties": {{{properties}}}}}"#);
    format!(r#"{{"inputSchema": {schema}, "outputSchema": {schema}}}"#)
}

fn doc_of(text: String) -> String {
    let (mut sources, mut diagnostics) = (Sources::default(), Diagnostics::default());
    let id = sources.add("definition", text);
    let definition = Json::from(&tree::parse(&sources, id, &mut diagnostics).expect("JSON"));
    lower::tool("srv", "wide", &LockedTool::new(definition)).doc
}

#[test]
fn notes_on_a_wide_tool_are_shortened_and_then_counted() {
    let few = doc_of(wide(3));
    assert!(few.contains("what it means what") && few.contains("\"value-40\"") && few.contains(" and 1"), "{few}");
    let more = doc_of(wide(30));
    assert!(!more.contains("what it means") && more.contains("one of \"value-0\""), "{more}");
    assert!(more.contains("at most 12 characters"), "bounds are shown before prose: {more}");
    for members in [100, 1_000] {
        let text = doc_of(wide(members));
        let (arguments, result) = text.split_once("\nresult:").expect("fields of the result");
        assert!(arguments.lines().last().is_some_and(|line| line.starts_with("  and ") && line.ends_with(" more")), "{text}");
        assert!(result.lines().last().is_some_and(|line| line.starts_with("  and ") && line.ends_with(" more")), "{text}");
        let notes = text.split_once("returns: ").map(|(_, rest)| rest.len());
        assert!(notes.is_some_and(|bytes| bytes < 9_000), "{members} members: {notes:?}");
    }
}
