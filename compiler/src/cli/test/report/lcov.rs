//! The coverage of programs as an LCOV tracefile, in the form of `geninfo(1)`.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::test::coverage::ProgramCoverage;

/// Renders one section for each program.
pub(in super::super) fn render(programs: &[ProgramCoverage]) -> String {
    let mut out = String::new();
    for program in programs {
        section(program, &mut out);
    }
    out
}

fn section(program: &ProgramCoverage, out: &mut String) {
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(out, "TN:\nSF:{}", program.file);
    // The names of functions are unique in a section, but a program may define a name again.
    let mut functions: BTreeMap<&str, (usize, u64)> = BTreeMap::new();
    for (line, name, calls) in &program.functions {
        functions.entry(name).or_insert((*line, 0)).1 += calls;
    }
    for (name, (line, _)) in &functions {
        let _ = writeln!(out, "FN:{line},{name}");
    }
    for (name, (_, calls)) in &functions {
        let _ = writeln!(out, "FNDA:{calls},{name}");
    }
    if !functions.is_empty() {
        let called = functions.values().filter(|(_, calls)| *calls > 0).count();
        let _ = writeln!(out, "FNF:{}\nFNH:{called}", functions.len());
    }
    for (block, (line, arms)) in program.arms.iter().enumerate() {
        let is_reached = arms.iter().any(|count| *count > 0);
        for (arm, count) in arms.iter().enumerate() {
            let count = if is_reached { count.to_string() } else { "-".to_owned() };
            let _ = writeln!(out, "BRDA:{line},{block},{arm},{count}");
        }
    }
    if program.branches.total > 0 {
        let _ = writeln!(out, "BRF:{}\nBRH:{}", program.branches.total, program.branches.covered);
    }
    for (line, count) in &program.lines {
        let _ = writeln!(out, "DA:{line},{count}");
    }
    let evaluated = program.lines.values().filter(|count| **count > 0).count();
    let _ = writeln!(out, "LF:{}\nLH:{evaluated}\nend_of_record", program.lines.len());
}
