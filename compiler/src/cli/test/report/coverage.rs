//! The coverage of programs as a table.

use std::fmt::Write;

use crate::test::coverage::{ProgramCoverage, Ratio};

const HEADER: [&str; 5] = ["coverage", "forms", "branches", "uncovered lines", "partial branches"];

/// Renders one row for each program, and one for all if there are several.
pub(in super::super) fn table(programs: &[ProgramCoverage]) -> String {
    if programs.is_empty() {
        return "coverage: the tests run no program\n".to_owned();
    }
    let row = |program: &ProgramCoverage| {
        let [uncovered, partial] = [&program.uncovered_lines, &program.partial_branches].map(|lines| ranges(lines));
        [program.file.clone(), shown(program.forms), shown(program.branches), uncovered, partial]
    };
    let mut rows = vec![HEADER.map(str::to_owned)];
    rows.extend(programs.iter().map(row));
    if programs.len() > 1 {
        let (mut forms, mut branches) = (Ratio::default(), Ratio::default());
        for program in programs {
            forms += program.forms;
            branches += program.branches;
        }
        rows.push(["all".to_owned(), shown(forms), shown(branches), String::new(), String::new()]);
    }
    let mut widths = [0; HEADER.len()];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut out = String::new();
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            // Writing to a string cannot fail.
            let _ = write!(line, "{cell:width$}  ");
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

fn shown(ratio: Ratio) -> String {
    let Ratio { covered, total } = ratio;
    match ratio.percentage() {
        Some(percentage) => format!("{covered}/{total} {percentage} %"),
        None => "none".to_owned(),
    }
}

/// Renders sorted numbers, with ranges such as `3-5`.
fn ranges(numbers: &[usize]) -> String {
    let runs = numbers.chunk_by(|one, next| one + 1 == *next);
    let run = |run: &[usize]| match run {
        [first, .., last] => format!("{first}-{last}"),
        [only] => only.to_string(),
        [] => String::new(),
    };
    runs.map(run).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::ranges;

    #[test]
    fn consecutive_lines_are_ranges() {
        assert_eq!(ranges(&[1, 3, 4, 5, 8, 9]), "1, 3-5, 8-9");
        assert_eq!(ranges(&[]), "");
    }
}
