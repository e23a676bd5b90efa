//! `--help`, from the table of settings.

use std::fmt::Write;

use ptc_catalog::Deployment;

use crate::settings::flag::{Default, Flag, Group};
use crate::settings::flags;

/// The help text of a deployment.
pub(super) fn render(deployment: &'static Deployment) -> String {
    let name = deployment.name;
    let catalog = deployment.catalog;
    let with_upstreams = !catalog.upstreams.is_empty();
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "An MCP server with one tool, lisp_eval, over {} upstreams with {} tools.\n\n\
         Usage:\n  {name} [start] [flags]                   serve MCP on standard input and output\n  \
         {name} eval [--json] PROGRAM|- [flags]   evaluate one program\n  {name} version [--json]\n",
        catalog.upstreams.len(),
        catalog.tool_count(),
    );
    for (group, heading) in Group::ALL {
        let _ = write!(text, "\n{heading}:\n");
        for flag in flags().filter(|flag| flag.group == group) {
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
    text
}

fn default(flag: &Flag, with_upstreams: bool) -> String {
    match flag.default {
        Default::Unset(what) => format!("default: {what}"),
        _ => format!("default: {}", flag.default_text(with_upstreams).unwrap_or_default()),
    }
}
