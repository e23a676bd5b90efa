//! Where the config goes: a new file, or one that exists and is extended or replaced.

use std::path::PathBuf;

use ptc_compiler::import::{self, AddError, Single};

use super::args::Init;
use super::prompt::{Prompts, Question};
use crate::console::Console;
use crate::{Failure, load};

/// The file of the config.
pub(super) struct Target {
    pub(super) path: PathBuf,
    /// The text of the config to which the upstream is added.
    text: Option<String>,
    /// Whether the user has chosen to replace an existing config.
    replaces: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Existing {
    Add,
    Replace,
    Keep,
}

impl Target {
    /// Decides what happens to a config that exists: by the options, or by asking.
    pub(super) fn decide(args: &Init, prompts: &mut Prompts) -> Result<Target, Failure> {
        let path = args.output.clone();
        if !path.exists() {
            return Ok(Target { path, text: None, replaces: false });
        }
        let existing = match (args.add, args.force) {
            (true, _) => Existing::Add,
            (_, true) => Existing::Replace,
            _ if prompts.are_asked() => {
                let text =
                    format!("`{}` exists. Add the upstream to it (a), replace it (r), or stop (s)\nAnswer", path.display());
                let question = Question { text: &text, default: Some("a"), flag: "--add" };
                prompts.ask(&question, |answer| match answer {
                    "a" | "add" => Ok(Existing::Add),
                    "r" | "replace" => Ok(Existing::Replace),
                    "s" | "stop" => Ok(Existing::Keep),
                    _ => Err("answer `a`, `r` or `s`".to_owned()),
                })?
            }
            _ => Existing::Keep,
        };
        match existing {
            Existing::Add => Ok(Target { text: Some(load::read_text(&path)?), path, replaces: false }),
            Existing::Replace => Ok(Target { path, text: None, replaces: true }),
            Existing::Keep => {
                let failure = Failure::new(format!("`{}` exists, and stays as it is", path.display()));
                Err(failure.hint("`--add` adds the upstream to it, `--force` replaces it, and `--output` names another file"))
            }
        }
    }

    /// Whether the config to which the upstream is added has one of this name.
    pub(super) fn has_upstream(&self, name: &str) -> bool {
        self.text.as_deref().is_some_and(|text| import::has_upstream(text, name))
    }

    /// Checks that the file is as it was when the questions began, since what another program has written must not be lost.
    ///
    /// # Errors
    ///
    /// The file has changed, or there is one now.
    pub(super) fn check_unchanged(&self) -> Result<(), Failure> {
        let is_unchanged = match &self.text {
            Some(text) => load::read_text(&self.path)? == *text,
            None => self.replaces || !self.path.exists(),
        };
        if is_unchanged {
            return Ok(());
        }
        let failure = Failure::new(format!("another program has changed `{}` in the meantime", self.path.display()));
        Err(failure.hint("nothing was written; run `ptc-compile init` again"))
    }

    /// Returns the text of the file with an upstream.
    pub(super) fn text_with(&self, single: &Single, console: &Console) -> Result<String, Failure> {
        let Some(text) = &self.text else { return Ok(single.text()) };
        // A new file has these as comments.
        for comment in single.comments() {
            console.message(&format!("note: {comment}\n"));
        }
        single.add_to(text).map_err(|error| {
            let failure = |why: String| Failure::new(format!("cannot add the upstream to `{}`: {why}", self.path.display()));
            match error {
                AddError::NotAConfig => failure("it is not a config with an object `upstreams`".to_owned())
                    .hint(format!("`ptc-compile --check {}` shows its faults", self.path.display())),
                AddError::NameTaken => {
                    failure("it has an upstream with this name".to_owned()).hint("`--name` chooses another name")
                }
                AddError::CredentialTaken(name) => {
                    failure(format!("it has another credential `{name}`")).hint("`--name` chooses another name")
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn config_that_another_program_has_changed_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("upstreams.json");
        let target = |text: Option<&str>| Target { path: path.clone(), text: text.map(str::to_owned), replaces: false };
        assert!(target(None).check_unchanged().is_ok());
        std::fs::write(&path, "{}").unwrap();
        assert!(target(None).check_unchanged().is_err(), "there is a file now");
        assert!(target(Some("{}")).check_unchanged().is_ok());
        assert!(target(Some("{ }")).check_unchanged().is_err());
        assert!(Target { replaces: true, ..target(None) }.check_unchanged().is_ok());
    }
}
