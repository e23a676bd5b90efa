//! Checks the page of differences from Clojure: every entry has a reason and cases, and every case runs.

use std::collections::BTreeSet;
use std::time::Duration;

use ptc_lisp::limits::Limits;
use ptc_lisp::{Program, Run, print};

const PAGE: &str = include_str!("../DIVERGENCES.md");

/// A line of a `clj` block: `program ;=> ours ; clojure: theirs`.
struct Case<'p> {
    program: &'p str,
    ours: &'p str,
    theirs: &'p str,
}

struct Entry<'p> {
    title: &'p str,
    reason: String,
    cases: Vec<Case<'p>>,
}

fn case(line: &str) -> Option<Case<'_>> {
    let (program, answers) = line.rsplit_once(" ;=> ")?;
    let (ours, theirs) = answers.rsplit_once(" ; clojure: ")?;
    let case = Case { program: program.trim(), ours: ours.trim(), theirs: theirs.trim() };
    (!case.program.is_empty() && !case.ours.is_empty() && !case.theirs.is_empty()).then_some(case)
}

/// Returns the entries of the page, and the lines of its blocks that are not cases.
fn entries() -> (Vec<Entry<'static>>, Vec<&'static str>) {
    let (mut entries, mut bad, mut inside) = (Vec::<Entry>::new(), Vec::new(), false);
    for line in PAGE.lines() {
        if line.starts_with("```") {
            inside = line == "```clj";
            continue;
        }
        if let Some(title) = line.strip_prefix("## ") {
            entries.push(Entry { title, reason: String::new(), cases: Vec::new() });
            continue;
        }
        let Some(entry) = entries.last_mut() else { continue };
        if !inside {
            entry.reason.push_str(line);
        } else if !line.trim().is_empty() {
            match case(line) {
                Some(case) => entry.cases.push(case),
                None => bad.push(line),
            }
        }
    }
    (entries, bad)
}

fn answer(program: &str) -> String {
    // Some cases count steps to a limit, which takes longer than a second on a busy machine.
    let mut limits = Limits::default();
    limits.wall_clock = Duration::from_mins(2);
    let result = Program::compile(program).and_then(|program| Run::new(&program).limits(limits).execute_on_thread().result);
    result.map_or_else(|fault| format!("!{}", fault.kind), |value| print::readable(&value))
}

#[test]
fn every_documented_divergence_has_the_documented_result() {
    let (entries, bad) = entries();
    let mut wrong: Vec<String> = bad.iter().map(|line| format!("no case: {line}")).collect();
    for case in entries.iter().flat_map(|entry| &entry.cases) {
        let actual = answer(case.program);
        if actual != case.ours {
            wrong.push(format!("{} gives {actual}, not {}", case.program, case.ours));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_divergence_has_title_reason_and_case() {
    let (entries, _) = entries();
    let (mut titles, mut programs) = (BTreeSet::new(), BTreeSet::new());
    assert!(entries.len() >= 10, "only {} entries", entries.len());
    for entry in &entries {
        assert!(titles.insert(entry.title), "two entries are called {:?}", entry.title);
        assert!(entry.reason.len() > 20, "{:?} gives no reason", entry.title);
        assert!(entry.cases.iter().any(|case| case.ours != case.theirs), "{:?} shows no difference", entry.title);
        for case in &entry.cases {
            assert!(programs.insert(case.program), "{} is repeated", case.program);
        }
    }
}
