//! Reads a file with tests.

use std::path::{Path, PathBuf};

use ptc_lisp::form::{Form, FormKind};
use ptc_lisp::reader;

use super::bench::Inputs;
use super::edn;
use super::expand::{Expander, Site};

/// A file with tests.
#[derive(Debug)]
pub(super) struct TestFile {
    /// The path as given.
    pub(super) path: String,
    /// `:config` of the namespace, or the nearest `upstreams.json`.
    pub(super) config: Option<PathBuf>,
    /// `:cassette` of the namespace.
    pub(super) cassette: Option<PathBuf>,
    /// The tests in their order.
    pub(super) tests: Vec<Test>,
    /// The assertions of the file.
    pub(super) sites: Vec<Site>,
    namespace: String,
    /// The top-level forms, as PTC-Lisp.
    parts: Vec<Part>,
    runs_programs: bool,
}

/// A test.
#[derive(Debug)]
pub(super) struct Test {
    /// The name without the namespace.
    pub(super) name: String,
    /// The line of the test.
    pub(super) line: usize,
    /// Why the test cannot be run. The other tests of the file can be.
    pub(super) error: Option<FileError>,
}

/// A top-level form.
#[derive(Debug)]
struct Part {
    /// The index of the test whose body it is. `None` if it belongs to all tests.
    test: Option<usize>,
    line: usize,
    text: String,
}

/// Why a file, or one of its tests, cannot be used.
#[derive(Debug)]
pub(super) struct FileError {
    /// The line of the fault.
    pub(super) line: usize,
    /// A sentence.
    pub(super) message: String,
}

impl TestFile {
    /// Reads a file.
    pub(super) fn read(path: &Path, source: &str) -> Result<TestFile, FileError> {
        let forms = reader::read(source).map_err(|error| {
            let line = error.span.map_or(1, |span| line_of(source, span.start));
            FileError { line, message: format!("{}: {}", error.kind, error.message) }
        })?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut file = TestFile {
            path: path.display().to_string(),
            config: nearest_config(path),
            cassette: None,
            tests: Vec::new(),
            sites: Vec::new(),
            namespace: stem,
            parts: Vec::new(),
            runs_programs: false,
        };
        let mut expander = Expander::new(source);
        for form in &forms {
            let line = line_of(source, form.span.start);
            let items = match &form.kind {
                FormKind::List(items) => items.as_slice(),
                _ => &[],
            };
            let head = items.first().and_then(Form::symbol).map(|name| expander.local(name));
            let (test, text) = match head {
                Some("ns") => (None, file.namespace(source, items, &mut expander)?),
                Some("deftest") => {
                    let [_, name, body @ ..] = items else {
                        return Err(FileError { line, message: "deftest needs a name".to_owned() });
                    };
                    let Some(name) = name.symbol() else {
                        return Err(FileError { line, message: format!("deftest needs a name, found {}", name.description()) });
                    };
                    if file.tests.iter().any(|test| test.name == name) {
                        return Err(FileError { line, message: format!("there are two tests named {name}") });
                    }
                    let (text, error) = match expander.body(form, body) {
                        Ok(text) => (text, None),
                        Err(error) => (String::new(), Some(error)),
                    };
                    file.tests.push(Test { name: name.to_owned(), line, error });
                    (Some(file.tests.len() - 1), text)
                }
                _ => (None, expander.form(form)?),
            };
            file.parts.push(Part { test, line, text });
        }
        file.runs_programs = expander.runs_programs;
        file.sites = expander.sites;
        Ok(file)
    }

    /// Returns the config and the cassette.
    pub(super) fn inputs(&self) -> Inputs {
        Inputs { path: self.path.clone(), config: self.config.clone(), cassette: self.cassette.clone() }
    }

    /// Returns the name of a test with its namespace.
    pub(super) fn full_name(&self, test: &str) -> String {
        format!("{}/{test}", self.namespace)
    }

    /// Returns the program of a test, whose forms are at their lines of the file. `id` identifies its run.
    pub(super) fn program(&self, test: usize, id: u64) -> String {
        let decode = if self.runs_programs { edn::DECODE } else { "" };
        let mut text = format!("(def ptc-test-id {id}) {decode} ");
        let mut line = 1;
        for part in self.parts.iter().filter(|part| part.test.is_none_or(|of| of == test)) {
            text.extend(std::iter::repeat_n('\n', part.line.saturating_sub(line)));
            text.push_str(&part.text);
            text.push(' ');
            line = part.line.max(line) + part.text.matches('\n').count();
        }
        text
    }

    /// Reads the form `ns`. Returns it without what PTC-Lisp does not have: the metadata, and `clojure.test`.
    fn namespace(&mut self, source: &str, items: &[Form<'_>], expander: &mut Expander<'_>) -> Result<String, FileError> {
        let mut text = "(ns".to_owned();
        for (at, item) in items.iter().enumerate().skip(1) {
            let line = line_of(source, item.span.start);
            match &item.kind {
                FormKind::Symbol(name) if at == 1 => {
                    (*name).clone_into(&mut self.namespace);
                    text.push_str(" tests");
                }
                FormKind::Map(entries) => self.metadata(line, entries)?,
                FormKind::List(clause) if clause.first().and_then(Form::keyword) == Some("require") => {
                    text.push_str(" (:require");
                    for library in clause.iter().skip(1) {
                        if let Some(parts) = parts_of_test(library) {
                            let alias = parts.iter().skip_while(|part| part.keyword() != Some("as")).nth(1);
                            expander.aliases.extend(alias.and_then(Form::symbol).map(str::to_owned));
                        } else {
                            text.push(' ');
                            text.push_str(slice(source, library));
                        }
                    }
                    text.push(')');
                }
                _ => {
                    text.push(' ');
                    text.push_str(slice(source, item));
                }
            }
        }
        text.push(')');
        Ok(text)
    }

    fn metadata(&mut self, line: usize, entries: &[Form<'_>]) -> Result<(), FileError> {
        for entry in entries.chunks(2) {
            let [key, value] = entry else { continue };
            let FormKind::String(path) = &value.kind else {
                return Err(FileError { line, message: format!("expected a path in quotes, found {}", value.description()) });
            };
            let path = Some(Path::new(&self.path).with_file_name(&**path));
            match key.keyword() {
                Some("config") => self.config = path,
                Some("cassette") => self.cassette = path,
                _ => {
                    let message = "the metadata of a namespace of tests has the keys :config and :cassette".to_owned();
                    return Err(FileError { line, message });
                }
            }
        }
        Ok(())
    }
}

/// Returns the nearest `upstreams.json` in the folder of a file or above it.
pub(super) fn nearest_config(file: &Path) -> Option<PathBuf> {
    let beside = file.with_file_name("upstreams.json");
    if beside.is_file() {
        return Some(beside);
    }
    let absolute = std::path::absolute(file).ok()?;
    absolute.ancestors().skip(1).map(|folder| folder.join("upstreams.json")).find(|path| path.is_file())
}

/// Returns the parts of `library` in `(:require library)`, if it is `clojure.test`.
fn parts_of_test<'f, 's>(library: &'f Form<'s>) -> Option<&'f [Form<'s>]> {
    let parts = match &library.kind {
        FormKind::Vector(parts) => parts.as_slice(),
        _ => std::slice::from_ref(library),
    };
    (parts.first()?.symbol()? == "clojure.test").then_some(parts)
}

/// Returns the line of a position, from 1 on.
pub(super) fn line_of(source: &str, at: u32) -> usize {
    source.get(..at as usize).map_or(1, |before| before.matches('\n').count() + 1)
}

/// Returns the text of a form.
pub(super) fn slice<'s>(source: &'s str, form: &Form<'_>) -> &'s str {
    source.get(form.span.start as usize..form.span.end as usize).unwrap_or_default()
}
