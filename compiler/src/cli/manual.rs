//! Runs `completions SHELL` and `man DIR`. The command line of ptc-compile comes from clap. That of pinned binaries, and of `run`
//! and `repl`, which parse it themselves, comes from the runtime's table of settings.

use std::path::Path;
use std::process::{Command as Process, Stdio};

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, Command, CommandFactory, ValueHint};
use clap_complete::Shell;
use ptc_runtime::command::{COMMANDS, EVALUATING};
use ptc_runtime::settings::flag::{Default, Group, Kind};
use ptc_runtime::settings::{Flag, Purpose, REPL_NAMES, REPL_VARIABLES, flags};

use crate::args::Cli;
use crate::command_args::{Completions, Man};
use crate::console::Console;
use crate::parts::PARTS;
use crate::{Failure, Status};

/// The properties of a pinned binary that decide its command line.
struct Binary {
    name: String,
    /// The optional features of the runtime in it.
    abilities: Vec<String>,
}

/// The features of a binary that was built without further options.
const USUAL: [&str; 2] = ["http", "http-server"];

/// Prints the completion script for a shell.
pub(crate) fn completions(args: &Completions, console: &Console) -> Result<Status, Failure> {
    let (mut command, name) = match &args.binary {
        Some(binary) => {
            let binary = Binary::resolve(binary)?;
            (pinned(&binary, true), binary.name)
        }
        None => (own(), "ptc-compile".to_owned()),
    };
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, name.as_str(), &mut script);
    let mut script = String::from_utf8_lossy(&script).into_owned();
    if args.shell == Shell::Bash {
        // The generator writes a hyphen of the program's name in two different ways, so that the script would not find what
        // follows a command.
        script = script.replace(&(name.replace('-', "__subcmd__") + "__subcmd__"), &(name.replace('-', "__") + "__subcmd__"));
    }
    console.data(&script);
    Ok(Status::Clean)
}

/// Writes a man page for each command.
pub(crate) fn pages(args: &Man, console: &Console) -> Result<Status, Failure> {
    let command = match &args.binary {
        Some(binary) => pinned(&Binary::resolve(binary)?, false),
        None => own(),
    };
    let unwritten = |why| Failure::new(format!("cannot write pages into `{}`: {why}", args.folder.display()));
    std::fs::create_dir_all(&args.folder).map_err(unwritten)?;
    clap_mangen::generate_to(command, &args.folder).map_err(unwritten)?;
    console.message(&format!("wrote {}\n", args.folder.display()));
    Ok(Status::Clean)
}

impl Binary {
    /// Resolves a path or a name to a binary. Not every text is a valid name, since scripts and files are named after it.
    fn resolve(binary: &str) -> Result<Binary, Failure> {
        let path = Path::new(binary);
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if name.is_empty() || name.starts_with(['.', '-']) || !name.chars().all(plain) {
            let failure =
                Failure::new(format!("`{binary}` is not a valid name for a binary: expected letters, digits, `.`, `_` and `-`"));
            return Err(failure.hint("name it as it is called, or give its path"));
        }
        let abilities =
            if binary.contains('/') { abilities(path)? } else { USUAL.iter().map(|&ability| ability.to_owned()).collect() };
        Ok(Binary { name: name.to_owned(), abilities })
    }

    /// Whether the binary has the setting.
    fn takes(&self, flag: &Flag) -> bool {
        !flag.is_of_config() && flag.is_built_with(|needed| self.abilities.iter().any(|ability| ability == needed))
    }
}

/// Asks a binary which features it was built with.
fn abilities(binary: &Path) -> Result<Vec<String>, Failure> {
    let unasked = |why: String| Failure::new(format!("cannot ask `{}` what it was built with: {why}", binary.display()));
    let output = Process::new(binary).args(["version", "--json"]).stdin(Stdio::null()).output();
    let output = output.map_err(|why| unasked(why.to_string()))?;
    let told: serde_json::Value =
        serde_json::from_slice(&output.stdout).map_err(|why| unasked(format!("its `version --json` is not JSON: {why}")))?;
    let abilities = told.get("abilities").and_then(serde_json::Value::as_array);
    let abilities = abilities.ok_or_else(|| unasked("its `version --json` has no `abilities`".into()))?;
    Ok(abilities.iter().filter_map(|ability| ability.as_str().map(str::to_owned)).collect())
}

/// Returns the command line of ptc-compile, with the runtime's settings in the commands that leave parsing to the runtime.
fn own() -> Command {
    // The runtime prints the help of these commands.
    let served = |command: Command, purpose: Purpose| {
        let usage = format!("ptc-compile {} [CONFIG] [OPTIONS]", command.get_name());
        let command = command.disable_help_flag(false).override_usage(usage);
        let command = command.args(flags().filter(|flag| flag.is_built(PARTS.linked()) && flag.applies_to(purpose)).map(option));
        command.mut_arg("rest", |rest| rest.value_name("CONFIG").num_args(0..=1).value_hint(ValueHint::FilePath))
    };
    let run = |command: Command| served(command, Purpose::Serve);
    let repl = |command: Command| {
        let command = evaluating(served(command, Purpose::Repl), "repl");
        let variables = REPL_VARIABLES.map(|(name, other)| format!("{name} goes before {other}.")).join("\n");
        let command = command.after_help(variables);
        REPL_NAMES.iter().fold(command, |command, (short, name)| command.mut_arg(*name, |flag| flag.visible_alias(*short)))
    };
    Cli::command().mut_subcommand("run", run).mut_subcommand("repl", repl)
}

/// Adds the options of `eval` or `repl`.
fn evaluating(command: Command, name: &str) -> Command {
    command.args(EVALUATING.iter().filter(|option| option.only.is_none_or(|only| only == name)).map(|option| {
        let arg = Arg::new(option.value.or(option.long).unwrap_or_default()).help(option.help);
        let arg = option.long.into_iter().fold(arg, Arg::long);
        let arg = option.short.into_iter().fold(arg, Arg::short);
        let arg = match option.value {
            None => arg.action(ArgAction::SetTrue),
            Some("FILE") => arg.value_name("FILE").value_hint(ValueHint::FilePath),
            Some(value) => arg.value_name(value),
        };
        let arg = if option.only == Some("repl") { arg.action(ArgAction::Append) } else { arg };
        if option.words.is_empty() { arg } else { arg.value_parser(PossibleValuesParser::new(option.words)) }
    }))
}

/// Returns the command line of a pinned binary. Settings are valid before and after a command; `everywhere` declares that for
/// each.
fn pinned(binary: &Binary, everywhere: bool) -> Command {
    let command = Command::new(binary.name.clone())
        .about("An MCP server with one tool, lisp_eval, over the upstreams that it was built with")
        .disable_help_subcommand(true)
        .args(flags().filter(|flag| binary.takes(flag)).map(|flag| option(flag).global(everywhere)));
    command.subcommands(COMMANDS.iter().map(|usage| {
        let command = Command::new(usage.name).about(usage.what);
        match usage.name {
            "eval" => evaluating(command, "eval")
                .arg(Arg::new("program").value_name("PROGRAM").required(true).help("A program; - is standard input")),
            "repl" => evaluating(command, "repl"),
            "version" => command.arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("One JSON object")),
            _ => command,
        }
    }))
}

/// Converts a setting to an option of a command line.
fn option(flag: &'static Flag) -> Arg {
    let heading = Group::ALL.iter().find(|(group, _)| *group == flag.group).map(|(_, heading)| *heading);
    let default = match flag.default {
        Default::Unset(what) => format!("default: {what}"),
        _ => format!("default: {}", flag.default_text(true).unwrap_or_default()),
    };
    let option = Arg::new(flag.name)
        .long(flag.name)
        .help(format!("{} [{default}]", flag.help).replace('…', "..."))
        .help_heading(heading)
        .env(flag.env);
    let option = option.hide_env_values(true);
    let name = flag.placeholder();
    let name = name.trim_matches(['<', '>']).replace('…', "...");
    match flag.kind {
        Kind::Switch { .. } => option.action(ArgAction::SetTrue),
        Kind::Choice { words, .. } => option.value_parser(PossibleValuesParser::new(words)).value_name(flag.name.to_uppercase()),
        Kind::Folder { .. } => option.value_name(name).value_hint(ValueHint::DirPath),
        Kind::File { .. } => option.value_name(name).value_hint(ValueHint::FilePath),
        Kind::Integer { .. } | Kind::Text { .. } | Kind::Secret { .. } => option.value_name(name),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn command_line_definitions_are_consistent() {
        super::own().debug_assert();
        let gate = super::Binary::resolve("gate").expect("a name");
        super::pinned(&gate, true).debug_assert();
        super::pinned(&gate, false).debug_assert();
    }
}
