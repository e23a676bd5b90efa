//! Tests the README: its program is the quickstart's, and its output is the compiler's.

use std::process::Command;

use ptc_tests::deployment::{ptc_compile, quickstart_ports, workspace};
use ptc_tests::process::run;

use crate::dependencies::rust_files;

fn file(path: &str) -> String {
    let path = workspace().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the text of the first block in that language.
fn block<'t>(readme: &'t str, language: &str) -> &'t str {
    let (_, rest) = readme.split_once(&format!("```{language}\n")).expect("the README has such a block");
    rest.split_once("```").expect("the block ends").0
}

#[test]
#[ignore = "slow: builds a binary"]
fn program_of_the_readme_gives_the_shown_result() {
    let readme = file("README.md");
    let program = file("fixtures/quickstart/due.clj");
    assert_eq!(block(&readme, "clojure"), program);

    let _ports = quickstart_ports();
    let mut command = Command::new(ptc_compile());
    command.current_dir(workspace()).args(["fixtures/quickstart/upstreams.json", "--locked", "--eval", &program]);
    let printed = run(&mut command).success();
    assert!(printed.contains(block(&readme, "text")), "not in the README's block:\n{printed}");
    for row in ["upstream ", "total ", "clients pay ", "catalog ", "binary ", "time ", "next: "] {
        assert!(printed.lines().any(|line| line.starts_with(row)), "no {row:?} in\n{printed}");
    }
}

#[test]
fn every_folder_of_the_workspace_is_listed() {
    let readme = file("README.md");
    for entry in std::fs::read_dir(workspace()).expect("the workspace can be read") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().into_string().expect("plain names");
        if entry.path().is_dir() && !name.starts_with('.') && name != "target" {
            assert!(readme.contains(&format!("`{name}/`")), "{name} is not on the README's map");
        }
    }
}

#[test]
fn each_promise_names_a_test_that_exists() {
    let page = file("SECURITY.md");
    let (_, promises) = page.split_once("## What is promised").expect("the page has promises");
    let (promises, _) = promises.split_once("## ").expect("something follows");
    let rows: Vec<&str> = promises.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert!(rows.len() > 10, "{promises}");
    let folders = ["compiler", "runtime", "tests/tests"].map(|folder| rust_files(&workspace().join(folder)));
    for row in rows {
        let (_, tests) = row.trim_end_matches(" |").rsplit_once(" | ").expect("a row has two cells");
        for name in tests.split(", ").map(|name| name.trim_matches('`')) {
            // A test is a function, or a row of a table that runs one function with several arguments.
            let (function, row_of_table) = (format!("fn {name}()"), format!("::{name}\""));
            let is_test = |text: &String| text.contains(&function) || text.contains(&row_of_table);
            let exists = workspace().join(name).is_file() || folders.iter().flatten().any(|(_, text)| is_test(text));
            assert!(exists, "no test has the name {name}: {row}");
        }
    }
}
