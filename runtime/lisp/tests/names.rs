//! Checks that every documented name of PTC-Lisp resolves.

use ptc_lisp::{Program, Run, Value, print};

const NAMES: &str = include_str!("names.txt");

fn names() -> impl Iterator<Item = &'static str> {
    NAMES.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with([';', '[']) || *line == "[")
}

fn answer(program: &str) -> Result<Value, String> {
    let compiled = Program::compile(program).map_err(|fault| fault.render(program))?;
    Run::new(&compiled).execute_on_thread().result.map_err(|fault| fault.render(program))
}

#[test]
fn required_names_are_bound_and_documented() {
    let (mut count, mut missing) = (0, Vec::new());
    for name in names() {
        count += 1;
        let described = answer(&format!("(let [m (meta {name:?})] [(:description m) (count (:signatures m))])"));
        match described.as_ref().map(print::readable).as_deref() {
            Ok(known) if !known.starts_with("[nil") && !known.starts_with("[\"\"") && !known.ends_with(" 0]") => {}
            _ => missing.push(name),
        }
    }
    assert!(count > 600, "only {count} names");
    assert!(missing.is_empty(), "{} of {count} names are missing: {}", missing.len(), missing.join(" "));
}
