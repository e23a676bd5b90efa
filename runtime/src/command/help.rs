//! `--help`, from the table of settings.

use std::fmt::Write as _;

use ptc_catalog::Deployment;

use crate::settings::flag::{Default, Flag, Group};
use crate::settings::flags;

/// A command of a pinned binary.
pub struct Usage {
    /// Its word.
    pub name: &'static str,
    /// What stands behind it, settings aside.
    pub takes: &'static str,
    /// What it does.
    pub what: &'static str,
}

/// Every command of a pinned binary; the first is the one that a command line without a word means.
pub static COMMANDS: &[Usage] = &[
    Usage { name: "start", takes: "", what: "serve MCP on standard input and output" },
    Usage { name: "eval", takes: "[--json] PROGRAM|-", what: "evaluate one program" },
    Usage { name: "repl", takes: "[--json] [-e PROGRAM]...", what: "evaluate programs one after the other" },
    Usage { name: "version", takes: "[--json]", what: "what it was built from" },
];

/// The help text of a pinned binary.
pub(super) fn pinned(deployment: &'static Deployment) -> String {
    let catalog = deployment.catalog;
    let with_upstreams = !catalog.upstreams.is_empty();
    let mut text = format!(
        "An MCP server with one tool, lisp_eval, over {} upstreams with {} tools.\n\nUsage:\n",
        catalog.upstreams.len(),
        catalog.tool_count(),
    );
    for (at, Usage { name, takes, what }) in COMMANDS.iter().enumerate() {
        let word = if at == 0 { format!("[{name}]") } else { (*name).to_owned() };
        let usage = format!("{} {word} {takes}{}[flags]", deployment.name, if takes.is_empty() { "" } else { " " });
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {usage:<48} {what}");
    }
    settings(&mut text, with_upstreams, |flag| !flag.is_of_config());
    text
}

/// The help text of `ptc-compile repl`.
pub(super) fn repl(program: &str) -> String {
    let mut text = format!(
        "Evaluates programs one after the other: those of -e, else one on standard input, else those of a terminal.\n\n\
         Usage:\n  {program} [CONFIG] [--json] [-e PROGRAM]... [flags]\n\n\
         --max-tool-calls and --max-catalog-ops are short for the flags of a program's calls and discovery forms.\n\
         PTC_RUNNER_UPSTREAMS goes before PTC_RUNNER_MCP_UPSTREAMS.\n",
    );
    settings(&mut text, true, |_| true);
    text
}

/// The help text of `ptc-compile run`.
pub(super) fn run(program: &str) -> String {
    let mut text = format!(
        "Serves a config as its pinned binary would, without building one: MCP on standard input and output.\n\n\
         Usage:\n  {program} [CONFIG] [flags]\n\n\
         CONFIG is usually upstreams.json. The lock file beside it is used where it covers an upstream; nothing is written.\n",
    );
    settings(&mut text, true, |_| true);
    text
}

fn settings(text: &mut String, with_upstreams: bool, shown: impl Fn(&Flag) -> bool) {
    for (group, heading) in Group::ALL {
        if !flags().any(|flag| flag.group == group && shown(flag)) {
            continue;
        }
        // Writing to a string cannot fail.
        let _ = write!(text, "\n{heading}:\n");
        for flag in flags().filter(|flag| flag.group == group && shown(flag)) {
            let left = format!("--{} {}", flag.name, flag.placeholder());
            let _ = write!(
                text,
                "  {:<50} {} [{}]\n  {:<50} {}\n",
                left.trim_end(),
                flag.help,
                default(flag, with_upstreams),
                "",
                flag.env
            );
        }
    }
    text.push_str("\nA flag goes before its environment variable, and that before the default.\n");
}

fn default(flag: &Flag, with_upstreams: bool) -> String {
    match flag.default {
        Default::Unset(what) => format!("default: {what}"),
        _ => format!("default: {}", flag.default_text(with_upstreams).unwrap_or_default()),
    }
}
