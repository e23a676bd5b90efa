//! Tests how the operations of the OpenAPI documents in `tests/documents` are lowered. The file beside each document has the
//! tools, their requests, and their `doc` texts. Folders there have further files of the documents.
//!
//! `UPDATE_EXPECT=1 cargo test -p ptc-compiler documents::` writes the expected results; review the difference before
//! committing.

#![expect(clippy::unwrap_used, reason = "a test stops where anything is wrong")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use ptc_compiler::diag::{Diagnostics, render};
use ptc_compiler::ir::Body;
use ptc_compiler::openapi::Text;
use ptc_compiler::source::Sources;
use ptc_compiler::{config, lower, openapi};

const CONFIG: &str = r#"{"upstreams": {"api": {"transport": "openapi", "base_url": "https://api.example.com/v1", "schema_file": "FILE",
  "allow_writes": true, "include_operations": ["*" WRITES]}}}"#;

fn answer(file: &Path) -> String {
    let (mut sources, mut diagnostics) = (Sources::default(), Diagnostics::default());
    let name = file.file_name().unwrap().to_str().unwrap();
    // A pattern does not include operations that write.
    let text = Text::new(name, fs::read_to_string(file).unwrap());
    let folder = file.parent().unwrap();
    let read = |path: &str| Ok(Text::new(path, fs::read_to_string(folder.join(path)).map_err(|error| error.to_string())?));
    let listed = openapi::list(&mut Sources::default(), text, None, &mut Diagnostics::default(), &mut |path, _| read(path));
    let listed = listed.unwrap_or_default();
    let writes = listed.iter().filter(|operation| !ptc_catalog::effect::is_safe(&operation.method));
    let writes: Vec<String> = writes.map(|operation| format!(", \"{} {}\"", operation.method, operation.path)).collect();
    let id = sources.add("upstreams.json", CONFIG.replace("FILE", name).replace("WRITES", &writes.concat()));
    let config = config::read(&sources, id, &mut diagnostics).unwrap();
    let documents = openapi::read(&mut sources, &config, &mut diagnostics, &mut |wanted| read(wanted.path));
    let mut out = render::short(&sources, &diagnostics, render::Style::Plain);
    for (name, locked) in &documents.get("api").unwrap().tools {
        let tool = lower::tool("api", name, locked);
        let operation = tool.operation.unwrap();
        writeln!(out, "---- {name}: {} {}", operation.method, operation.path).unwrap();
        let Body { media_type, required, needs } = &operation.body;
        if !media_type.is_empty() {
            let required = if *required { ", required" } else { "" };
            writeln!(out, "  body {media_type}{required}").unwrap();
        }
        for need in needs {
            writeln!(out, "  needs {need}").unwrap();
        }
        for line in operation.params().lines() {
            writeln!(out, "  {line}").unwrap();
        }
        for line in operation.answers().lines() {
            writeln!(out, "  {line}").unwrap();
        }
        for (name, value) in &operation.default_args {
            writeln!(out, "  {name} = {value}").unwrap();
        }
        writeln!(out, "{}", tool.doc).unwrap();
    }
    out
}

#[test]
fn operations_match_the_expectation_of_their_document() {
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/documents");
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.is_file());
    files.sort();
    let mut wrong = Vec::new();
    let (expected, documents): (Vec<&PathBuf>, Vec<&PathBuf>) =
        files.iter().partition(|file| file.extension().is_some_and(|end| end == "txt"));
    for file in &documents {
        let (beside, actual) = (file.with_extension("txt"), answer(file));
        if update {
            fs::write(&beside, actual).unwrap();
        } else if fs::read_to_string(&beside).unwrap_or_default() != actual {
            wrong.push(format!("{}:\n{actual}", file.display()));
        }
    }
    for orphan in expected.iter().filter(|text| !documents.iter().any(|file| file.with_extension("txt") == ***text)) {
        wrong.push(format!("{} belongs to no document", orphan.display()));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
