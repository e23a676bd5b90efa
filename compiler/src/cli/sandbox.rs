//! Checks the sandboxes of child processes.

use std::path::Path;

use ptc_compiler::config::model::{Config, Transport};
use ptc_compiler::diag::{Code, Diagnostic, Diagnostics, quoted};
use ptc_text::join_limited;

/// Maximum number of upstreams that are named.
const SHOWN: usize = 5;

/// Refuses paths of sandboxes that do not exist. If the config has no error, recommends sandboxes for the upstreams without one.
pub(crate) fn check(config: &Config, folder: &Path, diagnostics: &mut Diagnostics) {
    let mut without = Vec::new();
    for (name, upstream) in &config.upstreams {
        let Transport::McpStdio(stdio) = &upstream.transport else { continue };
        let Some(sandbox) = &stdio.sandbox else {
            if !diagnostics.is_silenced(Code::NoSandbox, &stdio.command.place) {
                without.push((quoted(name), &stdio.command.place));
            }
            continue;
        };
        for path in sandbox.paths().filter(|path| matches!(folder.join(&path.value).try_exists(), Ok(false))) {
            let message = format!("the path {} in the sandbox of {} does not exist", quoted(&path.value), quoted(name));
            let hint = if path.value.starts_with('~') {
                "no shell replaces `~`: write the path of the folder"
            } else {
                "create it, or correct the path; the server does not start the child without it"
            };
            diagnostics
                .push(Diagnostic::new(Code::SandboxPath, message).at(path.place.clone(), "this path does not exist").hint(hint));
        }
    }
    if diagnostics.has_errors() {
        return;
    }
    // All upstreams together, so that the other findings of a config with many of them stay visible.
    if let Some((_, place)) = without.first() {
        let names: Vec<&str> = without.iter().map(|(name, _)| name.as_str()).collect();
        let (child, has) = if names.len() == 1 { ("the child process", "has") } else { ("the child processes", "have") };
        let message = format!("{child} of {} {has} no sandbox", join_limited(&names, ", ", SHOWN));
        diagnostics.push(
            Diagnostic::new(Code::NoSandbox, message)
                .at((*place).clone(), "may use all that the server's user may")
                .hint("list what it needs: \"sandbox\": { \"read\": [\"/data\"], \"network\": false }"),
        );
    }
}
