//! Compares programs with the answers of real Clojure in `tests/differential/**/*.cases`, which `regenerate.clj` in that folder
//! writes.
//!
//! A case is a program, whose further lines are indented, then Clojure's answer as `;=> value` or `;=! ExceptionClass`. Where
//! PTC-Lisp intentionally differs, `;ptc value ; title` or `;ptc !kind ; title` gives its answer and the entry of
//! `DIVERGENCES.md` with the reason. Values are compared in PTC-Lisp's order, doubles to nine digits.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use ptc_lisp::{Limits, Program, Run, Value, print};

const DIVERGENCES: &str = include_str!("../DIVERGENCES.md");

/// Minimum number of cases. Fewer mean that the folder is incomplete.
const MIN_CASES: usize = 5_500;

enum Answer {
    Value(Value),
    Fault(&'static str),
}

fn answer(program: &str) -> Answer {
    let compiled = match Program::compile(program) {
        Ok(compiled) => compiled,
        Err(fault) => return Answer::Fault(fault.kind.name()),
    };
    let limits = Limits::default().wall_clock(std::time::Duration::from_secs(30));
    match Run::new(&compiled).limits(limits).execute().result {
        Ok(value) => Answer::Value(value),
        Err(fault) => Answer::Fault(fault.kind.name()),
    }
}

fn close(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(x), Some(y)) if x.is_finite() && y.is_finite() && a != b => (x - y).abs() <= 1e-9 * x.abs().max(y.abs()),
        _ => match (a, b) {
            (Value::Vector(x), Value::Vector(y)) => x.len() == y.len() && x.iter().zip(y).all(|(x, y)| close(x, y)),
            (Value::Map(x), Value::Map(y)) => {
                x.len() == y.len() && x.iter().zip(y.iter()).all(|((k, v), (l, w))| k == l && close(v, w))
            }
            (Value::Regex(x), Value::Regex(y)) => x.source() == y.source(),
            _ => a == b,
        },
    }
}

/// Compares a program's answer with the expectation.
fn verify(program: &str, expected: &str) -> Result<(), String> {
    let actual = answer(program);
    if let Some(kind) = expected.strip_prefix('!') {
        return match actual {
            // Clojure reports classes and PTC-Lisp kinds, so that any fault matches a class.
            Answer::Fault(found) if kind.starts_with(char::is_uppercase) || found == kind => Ok(()),
            Answer::Fault(found) => Err(format!("fails with {found}, not {kind}")),
            Answer::Value(value) => Err(format!("gives {}, not a fault ({kind})", print::readable(&value))),
        };
    }
    let Answer::Value(wanted) = answer(expected) else {
        return Err(format!("its answer {expected} cannot be read"));
    };
    match actual {
        Answer::Value(value) if close(&value, &wanted) => Ok(()),
        Answer::Value(value) => Err(format!("gives {}, not {expected}", print::readable(&value))),
        Answer::Fault(kind) => Err(format!("fails with {kind}, not {expected}")),
    }
}

/// A program with its expected answers. Faults are written as `!kind`.
struct Case {
    line: usize,
    program: String,
    clojure: Option<String>,
    /// PTC-Lisp's own answer, with the title of the divergence.
    ours: Option<(String, String)>,
}

impl Case {
    fn verdict(&self) -> Result<(), String> {
        let Some(clojure) = &self.clojure else { return Err("has no answer: run regenerate.clj".to_owned()) };
        let Some((answer, reason)) = &self.ours else { return verify(&self.program, clojure) };
        if !DIVERGENCES.lines().any(|line| line.strip_prefix("## ") == Some(reason)) {
            return Err(format!("{reason:?} is not an entry of DIVERGENCES.md"));
        }
        if verify(&self.program, clojure).is_ok() {
            return Err("answers as Clojure does: the line ;ptc says nothing".to_owned());
        }
        verify(&self.program, answer)
    }
}

/// Parses the cases of a file.
fn cases(text: &str) -> Vec<Case> {
    let mut found = Vec::new();
    let mut lines = text.lines().enumerate().peekable();
    while let Some((at, line)) = lines.next() {
        if line.trim().is_empty() || line.starts_with(';') {
            continue;
        }
        let mut program = line.to_owned();
        while let Some((_, more)) = lines.next_if(|(_, line)| line.starts_with(' ')) {
            program.push('\n');
            program.push_str(more);
        }
        let mut case = Case { line: at + 1, program, clojure: None, ours: None };
        while let Some((_, line)) = lines.next_if(|(_, line)| line.starts_with(";=") || line.starts_with(";ptc ")) {
            if let Some((answer, reason)) = line.strip_prefix(";ptc ").and_then(|line| line.rsplit_once(" ; ")) {
                case.ours = Some((answer.trim().to_owned(), reason.trim().to_owned()));
            } else if let Some(value) = line.strip_prefix(";=> ") {
                case.clojure = Some(value.to_owned());
            } else if let Some(class) = line.strip_prefix(";=! ") {
                case.clojure = Some(format!("!{class}"));
            }
        }
        found.push(case);
    }
    found
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, paths)?;
        } else if path.extension().is_some_and(|extension| extension == "cases") {
            paths.push(path);
        }
    }
    Ok(())
}

/// Calls `visit` with each case and the name of its file.
fn each_case(mut visit: impl FnMut(&str, &Case)) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differential");
    let mut paths = Vec::new();
    collect(&folder, &mut paths).expect("the folder of the cases");
    paths.sort();
    for path in paths {
        let name = path.strip_prefix(&folder).unwrap_or(&path).display().to_string();
        for case in cases(&std::fs::read_to_string(&path).expect("a file with cases")) {
            visit(&name, &case);
        }
    }
}

/// Returns the programs of all cases.
#[cfg(feature = "coverage")]
pub(crate) fn programs() -> Vec<String> {
    let mut all = Vec::new();
    each_case(|_, case| all.push(case.program.clone()));
    all
}

#[test]
fn programs_give_the_results_of_clojure() {
    let (mut count, mut wrong, mut report) = (0, 0, String::new());
    each_case(|name, case| {
        count += 1;
        if let Err(complaint) = case.verdict() {
            wrong += 1;
            let _ = write!(report, "\n{name}:{}: {}\n    {complaint}", case.line, case.program);
        }
    });
    assert_eq!(wrong, 0, "{wrong} of {count} cases differ:{report}");
    assert!(count >= MIN_CASES, "only {count} cases were found");
}
