//! `ptc-compile`: the compiler's command line. Only this folder, and the library's module `serve`, use files, processes and the
//! network; only this folder uses the terminal.
//!
//! | module | purpose |
//! |---|---|
//! | `answers` | answers of upstreams that are generated, or have a fault |
//! | `args` | the commands |
//! | `build_args`, `client_args`, `command_args` | options of commands; `shared_args` are those of several |
//! | `build` | the default action: builds a binary, in the stages of the following rows |
//! | `load` | reads a config with all files that belong to it |
//! | `environment`, `commands`, `sandbox` | checks the secrets, commands and paths of this machine |
//! | `resolve_lock`, `query_upstreams`, `authorization` | the lock file of a build; queries upstreams and their authorization servers |
//! | `deployment` | makes the deployment from config and lock file, and checks its programs |
//! | `link` | puts the deployment into a binary; `runtimes` |
//! | `source`, `generate`, `cargo`, `cargo_lock` | finds the runtime; writes the generated crate; builds it; checks its packages |
//! | `children` | the environment of processes that this program starts |
//! | `check` | `--check`: the same stages without a binary |
//! | `sbom` | the software bill of materials |
//! | `run` | `run [CONFIG]`, `repl [CONFIG]` |
//! | `frozen` | the deployment of a config, from files alone |
//! | `login` | `login CONFIG`, `logout CONFIG`: the tokens of upstreams for which a person logs in |
//! | `record`, `cassette` | `record CONFIG`: records answers of upstreams; opens them for replay |
//! | `observe`, `upstream_runs` | `observe CONFIG`: infers result shapes; runs programs with real upstreams |
//! | `emit` | the texts of `--emit` |
//! | `bundle`, `bundle_args` | `--emit mcpb`, `--emit server-json`; their options |
//! | `smoke_test` | evaluates a program in the new binary |
//! | `files`, `progress` | atomic writes; progress lines |
//! | `import`, `discover`, `installed_packages` | `import FILE…`: the configs of MCP clients; the packages on this machine |
//! | `init` | `init`: makes a first config |
//! | `install` | `install BINARY`, `uninstall BINARY` |
//! | `attest` | `attest BINARY`, `verify BINARY` |
//! | `explain` | `explain CODE` |
//! | `operations` | `operations DOCUMENT` |
//! | `drift` | `diff`, `update` |
//! | `demo` | `demo`: the upstreams of the quickstart |
//! | `mock`, `mcp_server` | `mock CONFIG`: serves the upstreams of a lock file; the MCP server of `demo` and `mock` |
//! | `http_server` | the HTTP server of `demo` and `mock` |
//! | `manual` | `completions SHELL`, `man DIR` |
//! | `policy` | `policy explain CONFIG` |
//! | `program` | `check-program CONFIG PROGRAM…` |
//! | `console` | prints data and messages |
//! | `status` | exit codes and failures |
//! | `schema` | `schema [KIND]` |
//! | `test` | `test [PATH…]` |
//! | `version` | `version` |

#![forbid(unsafe_code)]

mod answers;
mod args;
mod attest;
mod authorization;
mod build;
mod build_args;
mod bundle;
mod bundle_args;
mod call_sites;
mod cargo;
mod cargo_lock;
mod cassette;
mod check;
mod children;
mod client_args;
mod command_args;
mod commands;
mod console;
mod const_args;
mod defaults;
mod demo;
mod deployment;
mod discover;
mod drift;
mod emit;
mod environment;
mod explain;
mod files;
mod frozen;
mod generate;
mod http_server;
mod import;
mod init;
mod install;
mod installed_packages;
mod link;
mod load;
mod login;
mod manual;
mod mcp_server;
mod mock;
mod numbers;
mod observe;
mod operations;
mod parts;
mod policy;
mod program;
mod progress;
mod query_upstreams;
mod record;
mod resolve_lock;
mod run;
mod sandbox;
mod sbom;
mod schema;
mod shared_args;
mod smoke_test;
mod source;
mod status;
mod test;
mod tools_list_size;
mod upstream_runs;
mod version;

use std::ffi::{OsStr, OsString};
use std::panic::{PanicHookInfo, catch_unwind};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ColorChoice, CommandFactory, FromArgMatches, ValueEnum};
use ptc_compiler::diag::suggest;

use crate::shared_args::{Color, Messages};
use args::{Cli, Command};
use console::Console;
use status::{Failure, Status};

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(report_panic));
    let status = catch_unwind(|| {
        let args: Vec<OsString> = std::env::args_os().collect();
        let color = color(&args);
        let cli = match misspelt(&args) {
            Some(failure) => Err(failure),
            None => parse(args, color),
        };
        run_or_refuse(cli, color)
    });
    status.unwrap_or(Status::Failed.into())
}

/// Parses the command line. If clap reports a fault, or prints help, the process ends.
fn parse(args: Vec<OsString>, color: Color) -> Result<Cli, Failure> {
    let choice = match color {
        Color::Auto => ColorChoice::Auto,
        Color::Always => ColorChoice::Always,
        Color::Never => ColorChoice::Never,
    };
    let matches = Cli::command().color(choice).try_get_matches_from(args);
    let cli = matches.and_then(|matches| Cli::from_arg_matches(&matches));
    cli.map_err(|error| second_config(&error).unwrap_or_else(|| error.exit()))
}

/// Reports a second config, which clap takes for an unknown command.
fn second_config(error: &clap::Error) -> Option<Failure> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let is_command = Cli::command().get_subcommands().any(|command| command.get_name() == word);
    (error.kind() == ErrorKind::ArgumentConflict && !is_command)
        .then(|| Failure::new(format!("expected one config at a time, found `{word}` too")).hint("run ptc-compile once for each"))
}

/// Returns the value of `--color` before the rest of the command line is parsed.
fn color(args: &[OsString]) -> Color {
    let args: Vec<&str> = args.iter().map_while(|arg| arg.to_str()).take_while(|arg| *arg != "--").collect();
    let apart = args.windows(2).filter_map(|pair| match pair {
        ["--color", value] => Some(*value),
        _ => None,
    });
    let word = args.iter().filter_map(|arg| arg.strip_prefix("--color=")).chain(apart).last();
    word.and_then(|word| Color::from_str(word, false).ok()).unwrap_or(Color::Auto)
}

/// Words that other compilers use as commands, with what does the same here.
const OTHER_WORDS: &[(&str, &str)] = &[
    ("new", "init"),
    ("setup", "init"),
    ("lint", "--check CONFIG"),
    ("check", "--check CONFIG"),
    ("validate", "--check CONFIG"),
    ("build", "CONFIG"),
    ("compile", "CONFIG"),
    ("serve", "run CONFIG"),
    ("start", "run CONFIG"),
];

/// Reports a first word that is neither a command nor a file, but similar to a command.
fn misspelt(args: &[OsString]) -> Option<Failure> {
    let word = args.get(1)?.to_str()?;
    let command = Cli::command();
    let names = || command.get_subcommands().map(clap::Command::get_name);
    if word.starts_with('-') || names().any(|name| name == word) || std::fs::exists(OsStr::new(word)).unwrap_or(true) {
        return None;
    }
    let (_, near) = OTHER_WORDS
        .iter()
        .find(|(other, _)| *other == word)
        .copied()
        .or_else(|| Some((word, suggest::closest_match(word, names())?)))?;
    Some(Failure::new(format!("there is no command and no file `{word}`")).hint(format!("did you mean `ptc-compile {near}`?")))
}

fn run_or_refuse(cli: Result<Cli, Failure>, color: Color) -> ExitCode {
    match cli {
        Ok(cli) => run(&cli),
        Err(failure) => {
            Console::new(Messages { color, ..Messages::default() }).failure(&failure);
            Status::Failed.into()
        }
    }
}

fn run(cli: &Cli) -> ExitCode {
    let console = Console::new(match &cli.command {
        Some(Command::Operations(args)) => args.messages,
        Some(Command::Diff(args)) => args.messages,
        Some(Command::Update(args)) => args.messages,
        Some(Command::CheckProgram(args)) => args.messages,
        Some(Command::Record(args)) => args.messages,
        Some(Command::Observe(args)) => args.messages,
        Some(Command::Mock(args)) => args.messages,
        Some(Command::Import(args)) => args.messages,
        _ => cli.build.messages,
    });
    let result = match &cli.command {
        Some(Command::Init(args)) => init::run(args, &console),
        Some(Command::Import(args)) => import::run(args, &console),
        Some(Command::Install(args)) => install::install(args, &console),
        Some(Command::Uninstall(args)) => install::uninstall(args, &console),
        Some(Command::Attest(args)) => attest::attest(args, &console),
        Some(Command::Verify(args)) => attest::verify(args, &console),
        Some(Command::Explain(args)) => explain::run(args, &console),
        Some(Command::Operations(args)) => operations::run(args, &console),
        Some(Command::Diff(args)) => drift::diff(args, &console),
        Some(Command::Update(args)) => drift::update(args, &console),
        Some(Command::CheckProgram(args)) => program::run(args, &console),
        Some(Command::Policy(args)) => policy::run(args, &console),
        Some(Command::Record(args)) => record::run(args, &console),
        Some(Command::Observe(args)) => observe::run(args, &console),
        Some(Command::Login(args)) => login::login(args, &console),
        Some(Command::Logout(args)) => login::logout(args, &console),
        Some(Command::Test(args)) => test::run(args, &console),
        Some(Command::Schema(args)) => {
            console.data(&format!("{:#}\n", schema::schema(args.kind)));
            Ok(Status::Clean)
        }
        Some(Command::Demo(args)) => demo::run(args, &console),
        Some(Command::Mock(args)) => mock::run(args, &console),
        Some(Command::Runtimes(args)) => link::runtimes::run(args, &console),
        Some(Command::Completions(args)) => manual::completions(args, &console),
        Some(Command::Man(args)) => manual::pages(args, &console),
        Some(Command::Version(args)) => {
            console.data(&version::render(args.json));
            Ok(Status::Clean)
        }
        Some(Command::Help(args)) => {
            let words = ["ptc-compile".into()].into_iter().chain(args.command.clone()).chain(["--help".into()]);
            let color = cli.build.messages.color;
            return run_or_refuse(parse(words.map(OsString::from).collect(), color), color);
        }
        Some(Command::Run(args)) => return run::run(args),
        Some(Command::Repl(args)) => return run::repl(args),
        Some(Command::Viewer(args)) => return ptc_viewer::command::run("ptc-compile viewer", &args.folder, args.port),
        None if cli.build.check => check::run(&cli.build, &console),
        None => build::run(&cli.build, &console),
    };
    let status = result.unwrap_or_else(|failure| {
        console.failure(&failure);
        Status::Failed
    });
    status.into()
}

/// Reports a panic as a fault of this program, in a sentence and with its position.
fn report_panic(info: &PanicHookInfo<'_>) {
    let place = info.location().map_or_else(String::new, |at| format!(" at {}:{}", at.file(), at.line()));
    let reason = info
        .payload()
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| info.payload().downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    console::to_stderr(&format!(
        "error: ptc-compile met a fault of its own{place}: {reason}\nhelp: please report it with the config that led here\n"
    ));
}
