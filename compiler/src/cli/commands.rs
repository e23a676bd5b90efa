//! Finds the commands of stdio upstreams on this machine in the same way as the runtime does when it starts them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ptc_compiler::config::model::{Config, EnvPart, McpStdio, Transport};
use ptc_compiler::diag::{Code, Diagnostic, Diagnostics, quoted};

/// The commands of this program that serve upstreams.
const SERVING: [&str; 2] = ["demo", "mock"];

/// Reports every upstream whose command is this program, or the binary at `output`. Links and `PATH` are resolved. `ptc-compile demo`
/// and `ptc-compile mock` are upstreams.
pub(crate) fn check_self(config: &Config, folder: &Path, output: Option<&Path>, diagnostics: &mut Diagnostics) {
    let this = std::env::current_exe().ok().map(|path| (real(&path), "ptc-compile itself"));
    let built = output.map(|path| (real(path), "the binary that is being built"));
    // Relative commands start from the config's folder. In a binary without `--config-dir` they start from the binary's own
    // folder.
    let folders: Vec<&Path> = std::iter::once(folder).chain(output.and_then(Path::parent)).collect();
    for (name, stdio) in children(config) {
        let is_serving = stdio.args.first().is_some_and(|arg| SERVING.contains(&&**arg));
        let Some(program) = candidates(stdio, &folders).into_iter().map(|path| real(&path)).find(|path| {
            // The binary to be built may not exist yet.
            path.is_file() || built.as_ref().is_some_and(|(built, _)| built == path)
        }) else {
            continue;
        };
        let this = this.iter().filter(|_| !is_serving);
        if let Some((_, what)) = this.chain(&built).find(|(path, _)| *path == program) {
            diagnostics.push(
                Diagnostic::new(Code::SelfAsUpstream, format!("the upstream {} is {what}", quoted(name)))
                    .at(stdio.command.place.clone(), "would start itself")
                    .hint("name the server that was meant"),
            );
        }
    }
}

/// Warns of every command that is not on this machine.
pub(crate) fn check_found(config: &Config, folder: &Path, diagnostics: &mut Diagnostics) {
    for (name, stdio) in children(config) {
        if let Some(cd) = stdio.cd.as_ref().filter(|cd| !folder.join(&cd.value).is_dir()) {
            let message = format!("the folder {} of the upstream {} is not on this machine", quoted(&cd.value), quoted(name));
            diagnostics.push(
                Diagnostic::new(Code::CommandNotFound, message)
                    .at(cd.place.clone(), "there is no such folder")
                    .hint("make it, or correct its name; where the server runs elsewhere, check there"),
            );
        }
        let command = &stdio.command.value;
        if candidates(stdio, &[folder]).iter().any(|path| is_program(path)) {
            continue;
        }
        if command.contains('/') && folder.join(command).is_file() {
            let message = format!("the command {} of the upstream {} cannot be run", quoted(command), quoted(name));
            diagnostics.push(
                Diagnostic::new(Code::CommandNotFound, message)
                    .at(stdio.command.place.clone(), "a file that may not be executed")
                    .hint("if it is a program, permit it with `chmod +x`; a script may need its interpreter as the command"),
            );
            continue;
        }
        let whereabouts = if command.contains('/') { "there is no such program" } else { "not in PATH" };
        let message = format!("the command {} of the upstream {} is not on this machine", quoted(command), quoted(name));
        diagnostics.push(
            Diagnostic::new(Code::CommandNotFound, message)
                .at(stdio.command.place.clone(), whereabouts)
                .hint("install it, or correct its name; where the server runs elsewhere, check there"),
        );
    }
}

fn children(config: &Config) -> impl Iterator<Item = (&str, &McpStdio)> {
    config.upstreams.iter().filter_map(|(name, upstream)| match &upstream.transport {
        Transport::McpStdio(stdio) => Some((name.as_str(), stdio)),
        Transport::McpHttp(_) | Transport::OpenApi(_) => None,
    })
}

/// Returns where the program may be: in each of `folders` if the command has a slash, else the first match in the `PATH` that the
/// child is given.
fn candidates(stdio: &McpStdio, folders: &[&Path]) -> Vec<PathBuf> {
    let command = Path::new(&stdio.command.value);
    if stdio.command.value.contains('/') {
        return folders.iter().map(|folder| folder.join(command)).collect();
    }
    let path = match stdio.env.get("PATH") {
        Some(parts) => parts.iter().map(resolved).collect(),
        None => std::env::var_os("PATH").unwrap_or_default(),
    };
    let all = std::env::split_paths(&path).map(|folder| folder.join(command));
    // Only the first program that can be started is used.
    all.filter(|path| is_program(path)).take(1).collect()
}

fn resolved(part: &EnvPart) -> OsString {
    match part {
        EnvPart::Text(text) => text.into(),
        EnvPart::Var(name) => std::env::var_os(name).unwrap_or_default(),
    }
}

/// Resolves links. Returns an absolute path if the file does not exist yet.
fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path)
        .or_else(|_| {
            // The folder may exist even if the file does not.
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            Ok::<_, std::io::Error>(std::fs::canonicalize(folder)?.join(path.file_name().unwrap_or_default()))
        })
        .or_else(|_| std::path::absolute(path))
        .unwrap_or_else(|_| path.to_owned())
}

#[cfg(unix)]
pub(crate) fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
pub(crate) fn is_program(path: &Path) -> bool {
    path.is_file()
}
