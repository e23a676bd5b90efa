//! Programs whose answers real Clojure gave: `tests/differential/*.cases`, written by `regenerate.clj` beside them.
//!
//! A case is a program on one line, then `;=> value` or `;=! ExceptionClass` as Clojure answered. Where PTC-Lisp documents
//! another answer, `;ptc value ; reason` (or `;ptc !kind ; reason`) says so. Values are compared in PTC-Lisp's order
//! contract, doubles to nine digits.

use std::path::Path;

use ptc_lisp::{Limits, Program, Run, Value, print};

enum Answer {
    Value(Value),
    Fault(&'static str),
}

fn answer(program: &str) -> Answer {
    let compiled = match Program::compile(program) {
        Ok(compiled) => compiled,
        Err(fault) => return Answer::Fault(fault.kind.name()),
    };
    let limits = Limits { wall_clock: std::time::Duration::from_secs(30), ..Limits::default() };
    match Run::new(&compiled).limits(limits).execute().result {
        Ok(value) => Answer::Value(value),
        Err(fault) => Answer::Fault(fault.kind.name()),
    }
}

fn close(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(x), Some(y)) if x.is_finite() && y.is_finite() && a != b => (x - y).abs() <= 1e-9 * x.abs().max(y.abs()),
        _ => match (a, b) {
            (Value::Vector(x), Value::Vector(y)) => {
                x.len() == y.len() && x.as_slice().iter().zip(y.as_slice()).all(|(x, y)| close(x, y))
            }
            (Value::Regex(x), Value::Regex(y)) => x.source() == y.source(),
            _ => a == b,
        },
    }
}

/// What is wrong with a case, if anything.
fn judge(program: &str, expected: &str) -> Result<(), String> {
    let actual = answer(program);
    if let Some(kind) = expected.strip_prefix('!') {
        return match actual {
            // Clojure names its classes, PTC-Lisp its kinds: any fault agrees with a class.
            Answer::Fault(found) if kind.starts_with(char::is_uppercase) || found == kind => Ok(()),
            Answer::Fault(found) => Err(format!("{program}\n    fails with {found}, not {kind}")),
            Answer::Value(value) => Err(format!("{program}\n    gives {}, not a fault", print::readable(&value))),
        };
    }
    let Answer::Value(wanted) = answer(expected) else {
        return Err(format!("{program}\n    its answer {expected} cannot be read"));
    };
    match actual {
        Answer::Value(value) if close(&value, &wanted) => Ok(()),
        Answer::Value(value) => Err(format!("{program}\n    gives {}, not {expected}", print::readable(&value))),
        Answer::Fault(kind) => Err(format!("{program}\n    fails with {kind}, not {expected}")),
    }
}

#[test]
fn programs_answer_as_clojure_does() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differential");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let (mut count, mut wrong) = (0, Vec::new());
    for path in paths.iter().filter(|path| path.extension().is_some_and(|e| e == "cases")) {
        let text = std::fs::read_to_string(path).unwrap();
        let mut lines = text.lines().peekable();
        while let Some(program) = lines.next() {
            if program.trim().is_empty() || program.starts_with(';') {
                continue;
            }
            let mut expected = None;
            while let Some(line) = lines.next_if(|line| line.starts_with(";=") || line.starts_with(";ptc ")) {
                if let Some(value) = line.strip_prefix(";ptc ") {
                    expected = Some(value.split(" ; ").next().unwrap_or(value).trim().to_owned());
                } else if expected.is_none() {
                    expected = line
                        .strip_prefix(";=> ")
                        .map(str::to_owned)
                        .or_else(|| line.strip_prefix(";=! ").map(|k| format!("!{k}")));
                }
            }
            count += 1;
            match expected {
                Some(expected) => wrong.extend(judge(program, &expected).err()),
                None => wrong.push(format!("{program}\n    has no answer: run regenerate.clj")),
            }
        }
    }
    assert!(count > 400, "only {count} cases were found");
    assert!(wrong.is_empty(), "{} of {count} cases differ:\n{}", wrong.len(), wrong.join("\n"));
}
