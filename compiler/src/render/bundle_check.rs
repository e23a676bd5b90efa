//! Reports what a desktop bundle cannot hold. It holds the binary alone, and clients start it on the machines of others. Relative
//! paths refer to the folder of the binary, in which there is nothing else.

use std::path::{Component, Path};

use url::Url;

use super::needs::is_always_set;
use crate::config::is_loopback;
use crate::config::model::{Config, CredentialSource, InheritEnv, McpStdio, Sandbox, Spanned, Transport};
use crate::diag::{Code, Diagnostic, Diagnostics, quoted};
use crate::ir::Deployment;
use crate::source::Span;

/// Folders that nearly every machine with Linux has, and most of which macOS has too.
const EVERYWHERE: [&str; 11] = ["/bin", "/dev", "/etc", "/lib", "/lib64", "/opt", "/proc", "/sys", "/tmp", "/usr", "/var"];

/// Checks the credentials and upstreams of a deployment. The positions are those of its config.
pub fn check(config: &Config, deployment: &Deployment, diagnostics: &mut Diagnostics) {
    for credential in &deployment.credentials {
        let place = config.credentials.get(&credential.name).map(|binding| &binding.place);
        self::credential(&credential.name, &credential.source, place, diagnostics);
    }
    for upstream in &deployment.upstreams {
        match &upstream.transport {
            Transport::McpStdio(stdio) => child(&upstream.name, stdio, diagnostics),
            Transport::McpHttp(http) => address(&upstream.name, &http.url, diagnostics),
            Transport::OpenApi(api) => address(&upstream.name, &api.base_url, diagnostics),
        }
    }
}

fn credential(name: &str, source: &CredentialSource, place: Option<&Span>, diagnostics: &mut Diagnostics) {
    let (code, message, label) = match source {
        CredentialSource::Env { .. } => return,
        CredentialSource::Literal { .. } => (
            Code::SecretInBundle,
            format!("all users of the bundle could read the secret of the credential {}", quoted(name)),
            "would be in the binary",
        ),
        CredentialSource::File { path } if is_relative(path) => (
            Code::RelativeInBundle,
            format!("the bundle lacks the file {} of the credential {}", quoted(path), quoted(name)),
            "not in the bundle",
        ),
        CredentialSource::File { path } => (
            Code::HostPathInBundle,
            format!("the file {} of the credential {} may be on this machine only", quoted(path), quoted(name)),
            "a file of this machine",
        ),
    };
    let mut diagnostic = Diagnostic::new(code, message)
        .hint("use `\"source\": \"env\"`: the client then asks its user for the secret, and keeps it");
    if let Some(place) = place {
        diagnostic = diagnostic.at(place.clone(), label);
    }
    diagnostics.push(diagnostic);
}

fn child(upstream: &str, stdio: &McpStdio, diagnostics: &mut Diagnostics) {
    let Spanned { value: command, place } = &stdio.command;
    let is_path = command.contains('/');
    let started =
        is_path.then_some((&stdio.command, "start a program in PATH, such as `npx` or `uvx`, or run the upstream as a service"));
    let folders = stdio.sandbox.iter().flat_map(Sandbox::paths).chain(&stdio.cd);
    let folders = folders.map(|folder| (folder, "leave it out, or use a path that the machines of all users have"));
    let (relative, absolute): (Vec<_>, Vec<_>) =
        started.into_iter().chain(folders).partition(|(path, _)| is_relative(&path.value));
    for (Spanned { value, place }, hint) in relative {
        // The folder of the binary is there.
        if Path::new(value).components().all(|part| part == Component::CurDir) {
            continue;
        }
        let message = format!("the bundle lacks {} of the upstream {}", quoted(value), quoted(upstream));
        diagnostics.push(Diagnostic::new(Code::RelativeInBundle, message).at(place.clone(), "not in the bundle").hint(hint));
    }
    let of_args = stdio.args.iter().map(|arg| arg.split_once('=').map_or(arg.as_str(), |(_, value)| value));
    let of_args = of_args.filter(|arg| Path::new(arg).is_absolute() && arg.len() > 1);
    let of_args = of_args.map(|path| (path, place, "gets a path of this machine"));
    let absolute = absolute.iter().map(|(path, _)| (path.value.as_str(), &path.place, "a path of this machine"));
    for (path, place, label) in absolute.chain(of_args).filter(|(path, ..)| !is_everywhere(path)) {
        let message = format!("the path {} of the upstream {} may be on this machine only", quoted(path), quoted(upstream));
        diagnostics.push(
            Diagnostic::new(Code::HostPathInBundle, message)
                .at(place.clone(), label)
                .hint("use a path that the machines of all users have"),
        );
    }
    if !is_path {
        let message = format!("the bundle does not contain {} of the upstream {}", quoted(command), quoted(upstream));
        diagnostics.push(
            Diagnostic::new(Code::NotInBundle, message)
                .at(place.clone(), "users must have it in PATH")
                .hint("say so where users get the bundle"),
        );
    }
    if let InheritEnv::Names(names) = &stdio.inherit_env {
        let names: Vec<String> = names.iter().filter(|name| !is_always_set(name)).map(|name| quoted(name)).collect();
        if names.is_empty() {
            return;
        }
        let message = format!(
            "desktop clients may not pass on to the upstream {} what it inherits: {}",
            quoted(upstream),
            names.join(", ")
        );
        diagnostics.push(Diagnostic::new(Code::NotInBundle, message).at(place.clone(), "inherits variables").hint(
            "write a variable that it needs as `\"NAME\": \"${NAME}\"` in `env`: the client then asks its user for the value",
        ));
    }
}

fn address(upstream: &str, url: &Spanned<String>, diagnostics: &mut Diagnostics) {
    if Url::parse(&url.value).is_ok_and(|url| is_loopback(&url)) {
        let message = format!("the upstream {} is a service on the machine of the user", quoted(upstream));
        diagnostics.push(
            Diagnostic::new(Code::NotInBundle, message)
                .at(url.place.clone(), "a loopback address")
                .hint("say where users get the bundle how they start the service"),
        );
    }
}

/// Whether a path of the config depends on the folder of the binary.
fn is_relative(path: &str) -> bool {
    // A path of Windows is absolute there, although not for this compiler.
    let has_drive = path.as_bytes().get(1) == Some(&b':');
    !Path::new(path).is_absolute() && !has_drive
}

fn is_everywhere(path: &str) -> bool {
    EVERYWHERE.iter().any(|known| path.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}
