//! Runs `install BINARY` and `uninstall BINARY`, which edit the config of an MCP client.

use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use ptc_compiler::clients::{CLIENTS, Row};
use ptc_compiler::import::masked;
use ptc_compiler::install::{self, Error, Server};

use crate::client_args::Install;
use crate::console::Console;
use crate::files::replace_kept_private;
use crate::{Failure, Status, commands, discover};

/// Number of unchanged lines that are shown around a change.
const CONTEXT: usize = 3;

/// The edit of one config.
struct Edit<'a> {
    row: &'static Row,
    config: PathBuf,
    server: Server<'a>,
    /// The text of the config, or `None` if it does not exist.
    text: Option<String>,
}

/// Adds the binary to the config.
pub(crate) fn install(args: &Install, console: &Console) -> Result<Status, Failure> {
    let (name, command) = server(args)?;
    if !commands::is_program(Path::new(&command)) {
        let failure = Failure::new(format!("`{}` is not a program", args.binary.display()));
        return Err(failure.hint("name the binary that `ptc-compile CONFIG -o PATH` has built"));
    }
    let edit = Edit::new(args, Server { name: &name, command: &command })?;
    match install::add(edit.row.client, edit.text.as_deref().unwrap_or_default(), edit.server) {
        Ok(new) => edit.apply(Some(&new), args.yes, console, "added"),
        Err(Error::Unchanged) => {
            console.message(&format!("{} has the entry `{name}` already\n", edit.config.display()));
            Ok(Status::Clean)
        }
        Err(Error::NotEditable) => {
            console.data(&install::lines(edit.row.client, edit.server));
            let failure =
                Failure::new(format!("`{}` is YAML, which is not edited: comments would be lost", edit.config.display()));
            Err(failure.hint("add the lines above to it"))
        }
        Err(error) => Err(edit.failure(&error)),
    }
}

/// Removes the binary from the config.
pub(crate) fn uninstall(args: &Install, console: &Console) -> Result<Status, Failure> {
    let (name, command) = server(args)?;
    let edit = Edit::new(args, Server { name: &name, command: &command })?;
    let Some(text) = &edit.text else {
        return Err(Failure::new(format!("there is no `{}`", edit.config.display())).hint("`--config FILE` names another config"));
    };
    // If nothing else has changed since the binary was added, the file becomes what it was.
    let is_made_from = |old: &str| install::add(edit.row.client, old, edit.server).as_deref() == Ok(text);
    match std::fs::read_to_string(edit.backup()) {
        Ok(old) if is_made_from(&old) => return edit.apply(Some(&old), args.yes, console, "removed"),
        Err(_) if is_made_from("") => return edit.apply(None, args.yes, console, "removed"),
        _ => {}
    }
    match install::remove(edit.row.client, text, edit.server) {
        Ok(new) => edit.apply(Some(&new), args.yes, console, "removed"),
        Err(Error::NotEditable) => {
            let failure =
                Failure::new(format!("`{}` is YAML, which is not edited: comments would be lost", edit.config.display()));
            Err(failure.hint(format!("remove the entry `{name}` from it")))
        }
        Err(error) => Err(edit.failure(&error)),
    }
}

/// Returns the name of the entry, and the absolute path of the binary.
fn server(args: &Install) -> Result<(String, String), Failure> {
    let path = std::path::absolute(&args.binary).ok().map(|path| path.components().collect::<PathBuf>());
    let command = path.as_deref().and_then(Path::to_str).map(str::to_owned);
    let stem =
        args.binary.file_name().and_then(|name| name.to_str()).map(|name| name.trim_end_matches(std::env::consts::EXE_SUFFIX));
    let name = args.name.clone().or_else(|| stem.map(str::to_owned)).filter(|name| !name.is_empty());
    match (name, command) {
        (Some(name), Some(command)) => Ok((name, command)),
        _ => Err(Failure::new(format!("`{}` is not the path of a binary", args.binary.display()))),
    }
}

impl<'a> Edit<'a> {
    fn new(args: &Install, server: Server<'a>) -> Result<Self, Failure> {
        let Some(row) = CLIENTS.iter().find(|row| row.name == args.client) else {
            return Err(Failure::new(format!("the client `{}` is not supported", args.client)));
        };
        let found = args.config.clone().or_else(|| discover::of_client(row));
        let Some(config) = found else {
            let failure = Failure::new(format!("the config of {} cannot be found: HOME is not set", row.label));
            return Err(failure.hint("`--config FILE` names it"));
        };
        // A link stays a link.
        let config = std::fs::canonicalize(&config).unwrap_or(config);
        let text = match std::fs::read_to_string(&config) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(Failure::new(format!("cannot read `{}`: {error}", config.display()))),
        };
        Ok(Edit { row, config, server, text })
    }

    fn failure(&self, error: &Error) -> Failure {
        let failure = Failure::new(format!("cannot edit `{}`: {error}", self.config.display()));
        match error {
            Error::Taken => failure.hint(format!("`--name` chooses another name than `{}`", self.server.name)),
            Error::NotThere => failure.hint("`--config` names another file, `--name` another entry"),
            _ => failure,
        }
    }

    /// Returns the path of the backup: beside the config, with the name of the entry.
    fn backup(&self) -> PathBuf {
        let mut name = self.config.file_name().unwrap_or_default().to_os_string();
        let plain: String =
            self.server.name.chars().map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' }).collect();
        name.push(format!(".{plain}.bak"));
        self.config.with_file_name(name)
    }

    /// Shows the change, asks, keeps a backup, and writes the config. Without a new text the file is deleted.
    fn apply(&self, new: Option<&str>, yes: bool, console: &Console, done: &str) -> Result<Status, Failure> {
        let old = self.text.as_deref().unwrap_or_default();
        let difference = self.difference(old, new.unwrap_or_default());
        console.message(&format!("{}:\n{difference}", self.config.display()));
        if !yes && !confirmed(console)? {
            console.message("nothing is changed\n");
            return Ok(Status::Findings);
        }
        let backup = self.backup();
        if self.text.is_some() {
            let copied = std::fs::copy(&self.config, &backup);
            copied.map_err(|error| Failure::new(format!("cannot write the backup `{}`: {error}", backup.display())))?;
        } else {
            // A backup of an earlier file with this name is not of this one.
            let _ = std::fs::remove_file(&backup);
        }
        match new {
            Some(new) => replace_kept_private(&self.config, new.as_bytes())?,
            None => std::fs::remove_file(&self.config)
                .map_err(|error| Failure::new(format!("cannot delete `{}`: {error}", self.config.display())))?,
        }
        let kept = if self.text.is_some() { format!("; the file as it was is {}", backup.display()) } else { String::new() };
        console.message(&format!("{done} `{}`{kept}\n", self.server.name));
        Ok(Status::Clean)
    }

    /// Returns the changed lines with some lines around them. Secrets are masked.
    fn difference(&self, old: &str, new: &str) -> String {
        let (shown_old, shown_new) = (masked(self.row.client, old), masked(self.row.client, new));
        let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
        let same = |(a, b): &(&&str, &&str)| a == b;
        let before = old.iter().zip(&new).take_while(same).count();
        let rest = old.len().min(new.len()) - before;
        let after = old.iter().rev().zip(new.iter().rev()).take_while(same).count().min(rest);
        let part = |text: &str, from: usize, to: usize, sign: &str| -> String {
            let lines = text.lines().skip(from).take(to.saturating_sub(from));
            lines.flat_map(|line| ["  ", sign, " ", line, "\n"]).collect()
        };
        let end = old.len() - after;
        [
            part(&shown_old, before.saturating_sub(CONTEXT), before, " "),
            part(&shown_old, before, end, "-"),
            part(&shown_new, before, new.len() - after, "+"),
            part(&shown_old, end, (end + CONTEXT).min(old.len()), " "),
        ]
        .concat()
    }
}

/// Asks on the terminal.
fn confirmed(console: &Console) -> Result<bool, Failure> {
    let input = std::io::stdin();
    if !input.is_terminal() {
        return Err(Failure::new("the change is not made without a confirmation").hint("`--yes` confirms it"));
    }
    console.message("change the file? [y/N] ");
    let _ = std::io::stderr().flush();
    let mut answer = String::new();
    input.lock().read_line(&mut answer).map_err(|error| Failure::new(format!("cannot read the answer: {error}")))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
