//! Reads files of programs.
//!
//! A program begins with a line `; title` at the start of the file or after an empty line. If the program has a mistake, the next
//! line is `;! words`, and the answer must contain each of the words, or `;? reason`, which explains why the mistake cannot be
//! detected.

use std::collections::HashSet;
use std::path::PathBuf;

use ptc_tests::deployment::workspace;

/// One program of a corpus.
#[derive(Debug)]
pub(crate) struct Program {
    /// The name of the file without its extension.
    pub(crate) class: String,
    /// File, line and title.
    pub(crate) place: String,
    pub(crate) text: String,
    pub(crate) expectation: Expectation,
}

/// The expected outcome of a program.
#[derive(Debug)]
pub(crate) enum Expectation {
    /// A value without a fault or a note.
    Value,
    /// A fault or a note that contains all of these words.
    Says(Vec<String>),
    /// The mistake cannot be detected, for this reason.
    NotDetectable(String),
}

/// Returns the folder of the corpora and of the upstreams.
pub(crate) fn folder() -> PathBuf {
    workspace().join("tests/programs")
}

/// Returns all programs of a corpus, by file and line.
pub(crate) fn read(corpus: &str) -> Vec<Program> {
    let folder = folder().join(corpus);
    let listed = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = listed.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    let mut programs = Vec::new();
    for file in files.iter().filter(|file| file.extension().is_some_and(|ending| ending == "clj")) {
        let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let class = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        parse(corpus, &class, &text, &mut programs);
    }
    let mut seen = HashSet::new();
    for program in &programs {
        let has_mistake = !matches!(program.expectation, Expectation::Value);
        if let Expectation::NotDetectable(reason) = &program.expectation {
            assert!(reason.split(' ').count() > 3, "{}: a reason, not {reason:?}", program.place);
        }
        assert_eq!(has_mistake, corpus == "mistakes", "{}: the line `;!` or `;?`", program.place);
        assert!(seen.insert(program.text.split_whitespace().collect::<String>()), "{}: the text occurs twice", program.place);
    }
    programs
}

fn parse(corpus: &str, class: &str, text: &str, programs: &mut Vec<Program>) {
    let mut is_new = true;
    for (at, line) in text.lines().enumerate() {
        if let (true, Some(title)) = (is_new, line.strip_prefix("; ")) {
            let place = format!("{corpus}/{class}.clj:{} {title}", at + 1);
            programs.push(Program { class: class.to_owned(), place, text: String::new(), expectation: Expectation::Value });
            is_new = false;
            continue;
        }
        is_new = line.is_empty();
        let Some(program) = programs.last_mut() else { continue };
        if let Some(words) = line.strip_prefix(";! ") {
            program.expectation = Expectation::Says(words.split_whitespace().map(str::to_owned).collect());
        } else if let Some(reason) = line.strip_prefix(";? ") {
            program.expectation = Expectation::NotDetectable(reason.to_owned());
        } else {
            program.text.push_str(line);
            program.text.push('\n');
        }
    }
}
