//! `completions SHELL`, `man DIR`: from the command line of ptc-compile, and from the runtime's table of settings for pinned binaries
//! and for `run` and `repl`, which read that table themselves.

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, Command, CommandFactory, ValueHint};
use clap_complete::Shell;
use ptc_runtime::command::{COMMANDS, REPL_NAMES};
use ptc_runtime::settings::flag::{Default, Group, Kind};
use ptc_runtime::settings::{Flag, flags};

use crate::args::{Cli, Completions, Man};
use crate::console::Console;
use crate::{Failure, Status};

/// Prints the script that a shell reads.
pub(crate) fn completions(args: &Completions, console: &Console) -> Status {
    let (mut command, name) = match &args.binary {
        Some(name) => (pinned(name, true), name.clone()),
        None => (own(), "ptc-compile".to_owned()),
    };
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, name.as_str(), &mut script);
    let mut script = String::from_utf8_lossy(&script).into_owned();
    if args.shell == Shell::Bash {
        // The generator writes a hyphen of the program's name in two ways, so that the script looks in vain for what follows a
        // command.
        script = script.replace(&(name.replace('-', "__subcmd__") + "__subcmd__"), &(name.replace('-', "__") + "__subcmd__"));
    }
    console.data(&script);
    Status::Clean
}

/// Writes a page for each command.
pub(crate) fn pages(args: &Man, console: &Console) -> Result<Status, Failure> {
    let command = match &args.binary {
        Some(name) => pinned(name, false),
        None => own(),
    };
    let unwritten = |why| Failure::new(format!("cannot write pages into `{}`: {why}", args.folder.display()));
    std::fs::create_dir_all(&args.folder).map_err(unwritten)?;
    clap_mangen::generate_to(command, &args.folder).map_err(unwritten)?;
    console.message(&format!("wrote {}\n", args.folder.display()));
    Ok(Status::Clean)
}

/// The command line of ptc-compile, with the settings of those commands that leave them to the runtime.
fn own() -> Command {
    // Their help is the runtime's.
    let served = |command: Command| {
        let usage = format!("ptc-compile {} [CONFIG] [OPTIONS]", command.get_name());
        let command = command.disable_help_flag(false).override_usage(usage).args(flags().map(option));
        command.mut_arg("rest", |rest| rest.value_name("CONFIG").num_args(0..=1).value_hint(ValueHint::FilePath))
    };
    let repl = |command: Command| {
        let programs =
            Arg::new("program").short('e').value_name("PROGRAM").action(ArgAction::Append).help("Evaluate it; repeatable");
        let json = Arg::new("json").long("json").action(ArgAction::SetTrue).help("Results as one JSON object a line");
        let command = served(command).arg(programs).arg(json);
        REPL_NAMES.iter().fold(command, |command, (short, name)| command.mut_arg(*name, |flag| flag.visible_alias(*short)))
    };
    Cli::command().mut_subcommand("run", served).mut_subcommand("repl", repl)
}

/// The command line of a pinned binary. Settings stand before and after its commands: `everywhere` says so of each.
fn pinned(name: &str, everywhere: bool) -> Command {
    let settings = flags().filter(|flag| !flag.is_of_config());
    let json = || Arg::new("json").long("json").action(ArgAction::SetTrue).help("One JSON object");
    let command = Command::new(name.to_owned())
        .about("An MCP server with one tool, lisp_eval, over the upstreams that it was built with")
        .disable_help_subcommand(true)
        .args(settings.map(|flag| option(flag).global(everywhere)));
    command.subcommands(COMMANDS.iter().map(|usage| {
        let command = Command::new(usage.name).about(usage.what);
        let command = if usage.takes.contains("--json") { command.arg(json()) } else { command };
        match usage.name {
            "eval" => {
                command.arg(Arg::new("program").value_name("PROGRAM").required(true).help("A program; - is standard input"))
            }
            "repl" => command.arg(Arg::new("program").short('e').value_name("PROGRAM").action(ArgAction::Append)),
            _ => command,
        }
    }))
}

/// A setting as an option of a command line.
fn option(flag: &'static Flag) -> Arg {
    let heading = Group::ALL.iter().find(|(group, _)| *group == flag.group).map(|(_, heading)| *heading);
    let default = match flag.default {
        Default::Unset(what) => format!("default: {what}"),
        _ => format!("default: {}", flag.default_text(true).unwrap_or_default()),
    };
    let option =
        Arg::new(flag.name).long(flag.name).help(format!("{} [{default}]", flag.help)).help_heading(heading).env(flag.env);
    let option = option.hide_env_values(true);
    let name = flag.placeholder();
    let name = name.trim_matches(['<', '>']).to_owned();
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
    fn the_command_lines_are_consistent() {
        super::own().debug_assert();
        super::pinned("gate", true).debug_assert();
        super::pinned("gate", false).debug_assert();
    }
}
