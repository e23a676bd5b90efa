//! Warns of upstreams that will not work, or only slowly, in the image of a deployment.

use url::Url;

use super::base_images::BaseImages;
use super::container::{installable, is_in_image};
use crate::config::is_loopback;
use crate::config::model::{McpStdio, Sandbox, Spanned, Transport};
use crate::config::packages::{Fetched, fetched};
use crate::diag::{Code, Diagnostic, Diagnostics, quoted};
use crate::ir::Deployment;

/// Absolute paths that exist in every image.
const IN_IMAGE: [&str; 4] = ["/tmp", "/app", "/dev", "/proc"];

/// Checks the upstreams of a deployment.
pub fn check(deployment: &Deployment, diagnostics: &mut Diagnostics) {
    for upstream in &deployment.upstreams {
        match &upstream.transport {
            Transport::McpStdio(stdio) => child(&upstream.name, stdio, diagnostics),
            Transport::McpHttp(http) => address("upstream", &upstream.name, &http.url, diagnostics),
            Transport::OpenApi(api) => address("upstream", &upstream.name, &api.base_url, diagnostics),
        }
        if let Some(proxy) = upstream.transport.proxy() {
            address("proxy of the upstream", &upstream.name, &proxy.url, diagnostics);
        }
    }
}

/// Reports the stages of a `Dockerfile` that start from a tag.
pub fn check_base_images(images: &BaseImages, diagnostics: &mut Diagnostics) {
    let unpinned: Vec<String> =
        images.unpinned().map(|(stage, tag)| format!("{} of the stage {}", quoted(tag), stage.name())).collect();
    if unpinned.is_empty() {
        return;
    }
    let message = format!("the Dockerfile starts from tags, which can move to other images: {}", unpinned.join(", "));
    diagnostics.push(
        Diagnostic::new(Code::UnpinnedBaseImage, message)
            .hint("`--base-image STAGE=IMAGE@sha256:…` pins the image of a stage; `docker buildx imagetools inspect IMAGE` shows its digest"),
    );
}

fn child(upstream: &str, stdio: &McpStdio, diagnostics: &mut Diagnostics) {
    let Spanned { value: command, place } = &stdio.command;
    if !is_in_image(command) {
        let message = format!("the image lacks the command {} of the upstream {}", quoted(command), quoted(upstream));
        diagnostics.push(
            Diagnostic::new(Code::CommandNotInImage, message)
                .at(place.clone(), "not in the image")
                .hint("`npx -y PACKAGE@VERSION` and `uvx PACKAGE==VERSION` are installed when the image is built; for other commands, write a \
                     Dockerfile that begins `FROM` this image and adds the command, or run the upstream as a service of its own"),
        );
    }
    let args: Vec<&str> = stdio.args.iter().map(String::as_str).collect();
    let package = match fetched(command, &args) {
        Some(Fetched::Pinned(_, package)) if installable(stdio).is_none() => Some(package),
        Some(Fetched::Other(package)) => Some(package),
        Some(Fetched::Pinned(..)) | None => None,
    };
    if let Some(package) = package {
        let message = format!("the container downloads {} of the upstream {} at each start", quoted(package), quoted(upstream));
        diagnostics.push(
            Diagnostic::new(Code::FetchedAtStart, message)
                .at(place.clone(), "a download at each start")
                .hint("give the package a fixed version and no other options, so that it is installed in the image"),
        );
    }
    let paths = args.iter().map(|arg| arg.split_once('=').map_or(*arg, |(_, value)| value));
    let listed = stdio.sandbox.iter().flat_map(Sandbox::paths).chain(&stdio.cd).map(|path| path.value.as_str());
    for path in paths.chain(listed).filter(|path| is_of_host(path)) {
        let message = format!("the path {} of the upstream {} is not in the image", quoted(path), quoted(upstream));
        diagnostics.push(
            Diagnostic::new(Code::HostPath, message)
                .at(place.clone(), "gets a path of this machine")
                .hint("mount a volume there, or copy the files into the image"),
        );
    }
}

fn is_of_host(path: &str) -> bool {
    let in_image =
        IN_IMAGE.iter().any(|known| path.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')));
    (path.starts_with('/') && path.len() > 1 || path.starts_with("~/")) && !in_image
}

fn address(what: &str, upstream: &str, url: &Spanned<String>, diagnostics: &mut Diagnostics) {
    if Url::parse(&url.value).is_ok_and(|url| is_loopback(&url)) {
        let message = format!("the address of the {what} {} is the container itself", quoted(upstream));
        diagnostics.push(
            Diagnostic::new(Code::LoopbackInContainer, message)
                .at(url.place.clone(), "a loopback address")
                .hint("use the name under which the container reaches the service"),
        );
    }
}
