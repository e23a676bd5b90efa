//! Tests the README: its program is the quickstart's, and its output is the compiler's.

use std::process::Command;

use ptc_tests::deployment::{ptc_compile, workspace};
use ptc_tests::process::run;

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
fn the_program_and_its_answer_are_real() {
    let readme = file("README.md");
    let program = file("fixtures/quickstart/due.clj");
    assert_eq!(block(&readme, "clojure"), program);

    let mut command = Command::new(ptc_compile());
    command.current_dir(workspace()).args(["fixtures/quickstart/upstreams.json", "--locked", "--eval", &program]);
    let printed = run(&mut command).success();
    assert!(printed.contains(block(&readme, "text")), "not in the README's block:\n{printed}");
    for row in ["upstream ", "total ", "clients pay ", "catalog ", "binary ", "time ", "next: "] {
        assert!(printed.lines().any(|line| line.starts_with(row)), "no {row:?} in\n{printed}");
    }
}

#[test]
fn every_folder_of_the_workspace_is_on_the_map() {
    let readme = file("README.md");
    for entry in std::fs::read_dir(workspace()).expect("the workspace can be read") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().into_string().expect("plain names");
        if entry.path().is_dir() && !name.starts_with('.') && name != "target" {
            assert!(readme.contains(&format!("`{name}/`")), "{name} is not on the README's map");
        }
    }
}
