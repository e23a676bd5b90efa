//! Writes the config and its lock file, checks them, and builds.

use std::path::Path;

use clap::Parser;
use ptc_compiler::clients::CLIENTS;

use super::args::Init;
use super::prompt::Prompts;
use super::target::Target;
use super::{Decided, Pins, found};
use crate::args::Cli;
use crate::build_args::Build;
use crate::console::Console;
use crate::{Failure, Status, build, check, files, generate, resolve_lock, source};

/// Ends a run whose questions are answered.
pub(super) fn finish(
    args: &Init,
    target: &Target,
    decided: &Decided,
    prompts: &mut Prompts,
    console: &Console,
) -> Result<Status, Failure> {
    let path = target.path.as_path();
    let text = target.text_with(&decided.single, console)?;
    let Some(mut draft) = found::draft(path, &text, console) else {
        console.message("nothing was written\n");
        return Ok(Status::Findings);
    };
    let pins = decided.pins(&mut draft);
    target.check_unchanged()?;
    files::write_if_changed(path, text.as_bytes())?;
    console.message(&format!("wrote {}\n", path.display()));
    if !matches!(decided.pins, Pins::None) {
        let pinned = resolve_lock::pin(path, pins, console);
        if !matches!(pinned, Ok(true)) {
            let how = format!("the tools are not pinned: correct {0}, then run `ptc-compile update {0}`\n", path.display());
            console.message(&how);
            return pinned.map(|_| Status::Findings);
        }
    }
    let checked = check::run(&build_args(path, &["--check"])?, console)?;
    if checked != Status::Clean {
        return Ok(checked);
    }
    // If the user ends the input here, the config is complete.
    let asks = prompts.are_asked() && !args.build && !args.no_build;
    let builds = args.build
        || asks
            && prompts
                .confirm("Build the binary? The first build on a machine takes some minutes", "--build", true)
                .unwrap_or(false);
    let config = build::shell_word(&path.display().to_string());
    if !builds {
        console.data(&format!(
            "\nnext: ptc-compile repl {config}   # asks without building, such as (dir \"{name}\")\n      \
             ptc-compile {config}   # builds the binary, and says how to ask it\n      \
             ptc-compile install BINARY --client {client}   # adds the binary to a client\n",
            name = decided.name,
            client = client(),
        ));
        return Ok(checked);
    }
    let built = build::run(&build_args(path, &[])?, console)?;
    if built == Status::Clean {
        let binary = source::find(None)?.default_output(&generate::name(path, None));
        console.data(&format!(
            "      ptc-compile install {} --client {}   # adds it to a client\n",
            build::shell_word(&binary.display().to_string()),
            client()
        ));
    }
    Ok(built)
}

/// Returns the name of a client for examples.
fn client() -> &'static str {
    CLIENTS.iter().map(|row| row.name).find(|name| *name == "claude-code").unwrap_or("cursor")
}

/// Returns the options of a build without further choices.
fn build_args(path: &Path, options: &[&str]) -> Result<Build, Failure> {
    let words = ["ptc-compile".into()].into_iter().chain(options.iter().map(Into::into)).chain(["--".into(), path.into()]);
    let cli = Cli::try_parse_from(words.collect::<Vec<std::ffi::OsString>>());
    cli.map(|cli| cli.build).map_err(|error| Failure::new(format!("cannot build `{}`: {error}", path.display())))
}
