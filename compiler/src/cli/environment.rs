//! Checks that concern this machine: commands and secrets.

use ptc_compiler::config::model::Transport;
use ptc_compiler::diag::{Code, Diagnostic};
use ptc_compiler::leak;
use ptc_compiler::lock::Lock;
use ptc_compiler::lower;
use ptc_runtime::secrets::Secrets;

use crate::build_args::Build;
use crate::commands;
use crate::load::Checked;

/// Checks the machine. No command may be this program or the one to be built. With `--check-env` every command and secret must be
/// present.
pub(crate) fn check(args: &Build, checked: &mut Checked) {
    if args.agentic {
        // An unused binding may be the key of the planner's model.
        checked.diagnostics.forget(Code::UnusedBinding);
    }
    let Checked { config: Some(config), folder, diagnostics, .. } = &mut *checked else { return };
    commands::check_self(config, folder, args.output.as_deref(), diagnostics);
    if args.check_env {
        commands::check_found(config, folder, diagnostics);
        secrets(checked);
    }
}

/// Reports every secret that cannot be read on this machine, with the same check that the server makes when it starts.
fn secrets(checked: &mut Checked) {
    let Some(config) = &checked.config else { return };
    // The deployment has no tools here, because only the secrets of upstreams are checked.
    let deployment = leak::leak_static(&lower::deployment(config, &Lock::default(), "check-env"));
    ptc_runtime::secrets::seal();
    for missing in Secrets::resolve(deployment, &checked.folder).err().unwrap_or_default() {
        let binding = missing.binding.and_then(|name| config.credentials.get(name)).map(|binding| binding.place.clone());
        let upstream = missing.upstreams.first().and_then(|name| config.upstreams.get(*name));
        let variable = || match (missing.variable, upstream.map(|upstream| &upstream.transport)) {
            (Some(name), Some(Transport::McpStdio(stdio))) => stdio.env_places.get(name).cloned(),
            _ => None,
        };
        let mut diagnostic = Diagnostic::new(Code::SecretUnavailable, missing.to_string());
        if let Some(place) = binding.or_else(variable).or_else(|| upstream.map(|upstream| upstream.place.clone())) {
            diagnostic = diagnostic.at(place, "");
        }
        checked.diagnostics.push(diagnostic);
    }
}
