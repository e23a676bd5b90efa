//! Checks the table of builtins: every row is documented, and every example prints the documented value.

use std::collections::BTreeSet;

use ptc_lisp::{Program, Run, builtins, host_functions, print};

fn rows() -> impl Iterator<Item = &'static builtins::Builtin> {
    builtins::all().chain(host_functions::all())
}

fn printed(program: &str) -> Result<String, String> {
    let compiled = Program::compile(program).map_err(|e| e.render(program))?;
    let outcome = Run::new(&compiled).execute();
    outcome.result.map(|value| print::readable(&value)).map_err(|e| e.render(program))
}

#[test]
fn every_example_prints_the_documented_value() {
    let mut wrong = Vec::new();
    for row in builtins::all() {
        for (program, expected) in row.notes.examples() {
            match printed(program) {
                Ok(actual) if actual == expected => {}
                Ok(actual) => wrong.push(format!("{program} prints {actual}, not {expected}")),
                Err(fault) => wrong.push(format!("{program} fails: {fault}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{} examples are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_row_is_complete() {
    let mut seen = BTreeSet::new();
    for row in rows() {
        let name = format!("{}/{}", row.namespace, row.name);
        assert!(seen.insert(name.clone()), "{name} has two rows");
        assert!(row.notes.arglists().next().is_some(), "{name} has no argument list");
        assert!(row.notes.arglists().all(|list| list.starts_with('[') && list.ends_with(']')), "{name} has a bad argument list");
        assert!(row.notes.doc().ends_with(['.', '…']), "{name}: its documentation is not a sentence: {}", row.notes.doc());
        assert!(!row.notes.doc().contains('\n'), "{name}: its documentation is more than a line");
        assert!(row.max.is_none_or(|max| max >= row.min), "{name} takes no number of arguments");
    }
    for row in builtins::all() {
        assert!(row.notes.examples().next().is_some(), "{} has no example", row.full_name());
        assert!(
            builtins::find(&row.full_name()).is_some_and(|found| std::ptr::eq(found, row)),
            "{} finds another row",
            row.full_name()
        );
    }
}

#[test]
fn table_has_expected_minimum_of_builtins() {
    assert!(builtins::all().count() >= 250, "only {} rows", builtins::all().count());
}
