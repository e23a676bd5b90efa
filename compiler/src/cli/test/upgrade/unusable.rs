//! Tests that cannot be run, with the reason.

use std::path::Path;

use ptc_compiler::diag::quoted;

use super::{Effects, Upgrade};
use crate::test::file::FileError;

/// Tests of a file that cannot be run: all, or one.
pub(crate) struct UnusableTests {
    /// The path.
    pub(crate) file: String,
    /// The text of the file. Empty if it cannot be read.
    pub(crate) text: String,
    /// The line, from 1.
    pub(crate) line: usize,
    /// The reason as a clause.
    pub(crate) reason: String,
    pub(crate) hint: Option<String>,
    /// Whether the tests can be run with their own config, which is not the compared one.
    pub(crate) is_of_other_config: bool,
    /// Whether the other tests of the file can be run.
    pub(crate) is_one_of_file: bool,
}

impl UnusableTests {
    pub(super) fn new(file: &str, text: &str, line: usize, reason: String) -> UnusableTests {
        let (file, text) = (file.to_owned(), text.to_owned());
        UnusableTests { file, text, line, reason, hint: None, is_of_other_config: false, is_one_of_file: false }
    }

    /// Describes one test of a file whose other tests can be run.
    pub(super) fn one(file: &str, text: &str, error: &FileError) -> UnusableTests {
        UnusableTests { is_one_of_file: true, ..UnusableTests::new(file, text, error.line, error.message.clone()) }
    }
}

impl Effects {
    /// Adds a file that cannot be used. Several of its tests may have the same reason at the same line.
    pub(super) fn add_unusable(&mut self, tests: UnusableTests) {
        if !self.unusable.iter().any(|known| known.file == tests.file && known.line == tests.line && known.reason == tests.reason)
        {
            self.unusable.push(tests);
        }
    }
}

impl Upgrade<'_> {
    /// Describes tests that have another config, or none.
    pub(super) fn of_other_config(&self, config: Option<&Path>, unusable: impl Fn(String) -> UnusableTests) -> UnusableTests {
        let own = quoted(&self.config.display().to_string());
        let hint = || Some(format!("the tests of {own} name it as `:config`, or as `config` of a case"));
        match config {
            None => UnusableTests {
                hint: hint(),
                ..unusable("the file names no config, and its folder has no `upstreams.json`".to_owned())
            },
            Some(config) => {
                let other = quoted(&config.display().to_string());
                if config.exists() {
                    UnusableTests { is_of_other_config: true, ..unusable(format!("they are tests of the config {other}")) }
                } else {
                    UnusableTests { hint: hint(), ..unusable(format!("its config {other} does not exist")) }
                }
            }
        }
    }
}
