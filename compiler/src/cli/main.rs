//! `ptc-compile`: the compiler's command line. Files, processes, network and the terminal live in this folder only.
//!
//! | module | what |
//! |---|---|
//! | `args` | options and subcommands |
//! | `check` | reads a config with all that belongs to it; `--check` |
//! | `commands` | the programs of stdio upstreams, on this machine |
//! | `build` | the default action |
//! | `pin`, `contact` | the lock file of a build; asking upstreams for what it lacks |
//! | `source`, `generate`, `cargo` | where the runtime is; the generated crate; its build |
//! | `sbom` | what a deployment is made of |
//! | `run` | `run [CONFIG]`, `repl [CONFIG]` |
//! | `emit` | what was made of a config, as text |
//! | `live` | a deployment in this process |
//! | `trial` | a program in the new binary |
//! | `files`, `progress` | whole files; what is going on |
//! | `explain` | `explain CODE` |
//! | `operations` | `operations DOCUMENT` |
//! | `drift` | `diff`, `update` |
//! | `manual` | `completions SHELL`, `man DIR` |
//! | `program` | `check-program CONFIG PROGRAM…` |
//! | `console` | what is printed, and where |
//! | `status` | how a run ends |

#![forbid(unsafe_code)]

mod args;
mod build;
mod cargo;
mod check;
mod commands;
mod console;
mod contact;
mod drift;
mod emit;
mod explain;
mod files;
mod generate;
mod live;
mod manual;
mod operations;
mod pin;
mod program;
mod progress;
mod run;
mod sbom;
mod source;
mod status;
mod trial;

use std::panic::{PanicHookInfo, catch_unwind};
use std::process::ExitCode;

use clap::Parser;
use ptc_compiler::config;

use args::{Cli, Command};
use console::Console;
use status::{Failure, Status};

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(report_panic));
    let status = catch_unwind(|| {
        let cli = Cli::try_parse().unwrap_or_else(|error| error.exit());
        run(&cli)
    });
    status.unwrap_or(Status::Failed.into())
}

fn run(cli: &Cli) -> ExitCode {
    let console = Console::new(match &cli.command {
        Some(Command::Operations(args)) => args.messages,
        Some(Command::Diff(args)) => args.messages,
        Some(Command::Update(args)) => args.messages,
        Some(Command::CheckProgram(args)) => args.messages,
        _ => cli.build.messages,
    });
    let result = match &cli.command {
        Some(Command::Explain(args)) => explain::run(args, &console),
        Some(Command::Operations(args)) => operations::run(args, &console),
        Some(Command::Diff(args)) => drift::diff(args, &console),
        Some(Command::Update(args)) => drift::update(args, &console),
        Some(Command::CheckProgram(args)) => program::run(args, &console),
        Some(Command::Schema) => {
            console.data(&format!("{:#}\n", config::schema::schema()));
            Ok(Status::Clean)
        }
        Some(Command::Completions(args)) => Ok(manual::completions(args, &console)),
        Some(Command::Man(args)) => manual::pages(args, &console),
        Some(Command::Run(args)) => return run::run(args),
        Some(Command::Repl(args)) => return run::repl(args),
        Some(Command::Viewer(args)) => return ptc_runtime::command::viewer("ptc-compile viewer", &args.folder, args.port),
        None if cli.build.check => check::run(&cli.build, &console),
        None => build::run(&cli.build, &console),
    };
    let status = result.unwrap_or_else(|failure| {
        console.failure(&failure);
        Status::Failed
    });
    status.into()
}

/// A panic is a fault of this program: say so, in a sentence, and where.
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
