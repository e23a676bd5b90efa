//! Renders the `Dockerfile` of a deployment.

use std::collections::BTreeSet;
use std::path::Path;

use minijinja::AutoEscape;
use serde::Serialize;

use super::base_images::{BaseImage, BaseImages, NoSuchStage, Stage};
use super::image_names::{HOME, label, path_in_image};
use super::needs::Needs;
use super::{RenderError, build_digest, template};
use crate::config::model::{McpStdio, Transport};
use crate::config::packages::{Fetched, Installer, fetched};
use crate::ir::Deployment;
use crate::json::quote;

/// Numeric id of the user that runs the server. It has no name and no privileges in the image.
pub(super) const USER: u32 = 65532;

/// Port on which the server listens: the default of `--http-port`.
pub(super) const PORT: u16 = 7332;

/// Image of the build stage, which has Rust and a C toolchain. All images use one release of Debian, so that the binary finds the
/// C library it was linked with.
const BUILD: &str = concat!("rust:", env!("CARGO_PKG_RUST_VERSION"), "-slim-trixie");

/// The smallest image with that C library and TLS root certificates. It has no shell.
const PLAIN: &str = "gcr.io/distroless/cc-debian13:nonroot";
const NODE: &str = "node:24-trixie-slim";
const DEBIAN: &str = "debian:trixie-slim";
const UV: &str = "ghcr.io/astral-sh/uv:0.9";

/// Commands of upstreams that need the Node image, and commands that need uv, which fetches Python.
const OF_NODE: &[&str] = &["node", "npm", "npx"];
const OF_UV: &[&str] = &["uv", "uvx"];

/// Commands that every image with Debian's tools has.
const OF_SHELL: &[&str] = &["bash", "env", "sh"];

/// Installs packages where `npx` finds them without contacting the registry: in the folder in which upstreams start.
const NPM_INSTALL: [&str; 6] = ["npm", "install", "--prefix", HOME, "--no-fund", "--no-audit"];

/// Number of hexadecimal digits of the build's digest in the image's tag.
const TAG: usize = 12;

/// Names of the files that a build in a container reads.
#[derive(Debug, Clone)]
pub struct Context {
    /// The config's file name.
    pub config: String,
    /// The lock file beside it.
    pub lock: String,
    /// OpenAPI documents and programs as the config names them: relative to its folder, and inside it.
    pub files: BTreeSet<String>,
}

#[derive(Debug, Serialize)]
struct View {
    name: String,
    image: String,
    config: String,
    npm: Option<String>,
    uv_tools: Vec<String>,
    compiler: &'static str,
    build: String,
    base: String,
    uv: Option<String>,
    unpinned: Vec<Unpinned>,
    copies: Vec<String>,
    command: String,
    home: &'static str,
    entrypoint: String,
    certificates: bool,
    writes: bool,
    others: String,
    variables: Vec<String>,
    port: u16,
    user: u32,
}

/// A stage that starts from a tag.
#[derive(Debug, Serialize)]
struct Unpinned {
    stage: &'static str,
    tag: String,
}

/// Returns the tag from which the stage that runs the server starts.
fn runtime_tag(deployment: &Deployment) -> &'static str {
    let programs = programs(deployment);
    let is = |known: &[&str]| programs.iter().any(|program| known.contains(program));
    match (is(OF_NODE), is(OF_UV) || is(OF_SHELL) || programs.iter().any(|program| !is_in_image(program))) {
        (true, _) => NODE,
        (false, true) => DEBIAN,
        (false, false) => PLAIN,
    }
}

/// Returns the images from which the stages of a deployment's `Dockerfile` start.
///
/// # Errors
///
/// Returns an error if an image is pinned for a stage that the file does not have.
pub fn base_images(deployment: &Deployment, pinned: &[BaseImage]) -> Result<BaseImages, NoSuchStage> {
    let uv = programs(deployment).iter().any(|program| OF_UV.contains(program));
    let stages = [(Stage::Build, BUILD), (Stage::Runtime, runtime_tag(deployment))];
    BaseImages::new(stages.into_iter().chain(uv.then_some((Stage::Uv, UV))), pinned)
}

/// Renders the `Dockerfile` of a deployment that serves HTTP.
///
/// # Errors
///
/// Returns [`RenderError`] if a template cannot be rendered, which is a fault of the compiler.
pub fn dockerfile(deployment: &Deployment, context: &Context, images: &BaseImages) -> Result<String, RenderError> {
    let programs = programs(deployment);
    let others: Vec<String> = programs.iter().filter(|program| !is_in_image(program)).map(|p| comment(p)).collect();
    let is_plain = runtime_tag(deployment) == PLAIN;
    let image = |stage: Stage| images.get(stage).map(str::to_owned);
    let installed = |wanted: Installer| -> Vec<&str> {
        let packages = children(deployment).filter_map(|stdio| installable(stdio));
        packages
            .filter(|(installer, _)| *installer == wanted)
            .map(|(_, package)| package)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect()
    };
    let (npm, uv_tools) = (installed(Installer::Npm), installed(Installer::Uv));
    let binary = format!("{HOME}/{}", deployment.name);
    let notices = format!("{HOME}/NOTICES");
    let command = [
        "ptc-compile",
        &context.config,
        "--locked",
        "--runtime-source",
        "embedded",
        "--session-store",
        "redis",
        "--output",
        &binary,
        "--notices",
        &notices,
    ];
    let sources = [&*context.config, &*context.lock].into_iter().chain(context.files.iter().map(String::as_str));
    let view = View {
        name: comment(&deployment.name),
        image: image_reference(&deployment.name, &build_digest(deployment)?),
        config: comment(&context.config),
        npm: (!npm.is_empty()).then(|| list(&[&NPM_INSTALL[..], &npm].concat())),
        uv_tools: uv_tools.iter().map(|package| list(&["uv", "tool", "install", package])).collect(),
        compiler: crate::VERSION,
        build: image(Stage::Build).unwrap_or_default(),
        base: image(Stage::Runtime).unwrap_or_default(),
        uv: image(Stage::Uv),
        unpinned: images.unpinned().map(|(stage, tag)| Unpinned { stage: stage.name(), tag: tag.to_owned() }).collect(),
        copies: sources.map(|path| list(&[path, path])).collect(),
        command: list(&command),
        home: HOME,
        entrypoint: list(&[&binary]),
        certificates: !is_plain,
        writes: !is_plain,
        others: others.join(", "),
        variables: Needs::from_deployment(deployment).variables.into_keys().map(|name| comment(&name)).collect(),
        port: PORT,
        user: USER,
    };
    template("Dockerfile", include_str!("../../../templates/Dockerfile.j2"), AutoEscape::None, view)
}

pub(super) fn children(deployment: &Deployment) -> impl Iterator<Item = &McpStdio> {
    deployment.upstreams.iter().filter_map(|upstream| match &upstream.transport {
        Transport::McpStdio(stdio) => Some(stdio),
        Transport::McpHttp(_) | Transport::OpenApi(_) => None,
    })
}

/// Returns the commands that the upstreams of a deployment start, each once.
fn programs(deployment: &Deployment) -> BTreeSet<&str> {
    children(deployment).map(|stdio| stdio.command.value.as_str()).collect()
}

/// Whether the image contains a command that an upstream starts.
pub(super) fn is_in_image(command: &str) -> bool {
    [OF_NODE, OF_UV, OF_SHELL].iter().any(|known| known.contains(&command))
}

/// Returns the package that is installed in the image for an upstream. `npx` finds it from folders inside [`HOME`] only.
pub(super) fn installable(stdio: &McpStdio) -> Option<(Installer, &str)> {
    let args: Vec<&str> = stdio.args.iter().map(String::as_str).collect();
    let Some(Fetched::Pinned(installer, package)) = fetched(&stdio.command.value, &args) else { return None };
    let is_at_home = stdio.cd.as_ref().is_none_or(|cd| Path::new(&path_in_image(&cd.value)).starts_with(HOME));
    (installer == Installer::Uv || is_at_home).then_some((installer, package))
}

/// Returns the name of a deployment's image with its tag, which is the beginning of the [build's digest](build_digest).
pub fn image_reference(name: &str, build_digest: &str) -> String {
    let tag = build_digest.rsplit(':').next().and_then(|hex| hex.get(..TAG)).unwrap_or("latest");
    format!("{}:{tag}", label(name, 50))
}

/// Renders the `.dockerignore` beside the `Dockerfile`: the build context has only the files that the `Dockerfile` copies.
pub fn dockerignore(context: &Context) -> String {
    let files = ["ptc-compile", &*context.config, &*context.lock].into_iter().chain(context.files.iter().map(String::as_str));
    let mut text = String::from("# The build context has only the files that the Dockerfile copies.\n*\n");
    for file in files {
        let name = file.strip_prefix("./").unwrap_or(file);
        // A line of this file is a pattern, in which these characters have a meaning.
        let escaped: String =
            name.chars().flat_map(|c| ['\\'].into_iter().filter(move |_| r"*?[]\".contains(c)).chain([c])).collect();
        if !name.contains(char::is_control) {
            text.extend(["!", &escaped, "\n"]);
        }
    }
    text
}

/// Formats the words of an instruction in its JSON form, which runs without a shell.
fn list(words: &[&str]) -> String {
    format!("[{}]", words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(", "))
}

pub(super) fn quoted(text: &str) -> String {
    let mut out = String::new();
    quote(text, &mut out);
    out
}

/// Returns a name for a comment, on one line so that it cannot end the comment.
pub(super) fn comment(text: &str) -> String {
    super::literal::shown(&crate::lower::text::one_line(text, 120))
}
