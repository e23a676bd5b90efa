//! Renders the manifest of a desktop bundle (MCPB, manifest version 0.3), and reads that of one that was rendered here.

use std::fmt::Write as _;

use serde::Deserialize;

use super::image_names::label;
use super::needs::{Needs, Variable};
use super::{RenderError, build_digest};
use crate::ir::Deployment;
use crate::json::Json;
use crate::lower::text::{SHORT, one_line};

/// The newest version of the manifest that does not need an experimental feature.
const MANIFEST_VERSION: &str = "0.3";

/// The key of the digests in `_meta`, which answers of a server have too.
const BUILD: &str = "ptc-compile/build";

/// Maximum length of a description in the MCP registry, in characters.
pub const MAX_DESCRIPTION: usize = 100;

/// Maximum length of the name in characters. Clients make folders of it.
const MAX_NAME: usize = 50;

/// The parts of a bundle's manifest that its publisher chooses.
#[derive(Debug, Clone)]
pub struct Release<'a> {
    /// The version of the bundle.
    pub version: &'a str,
    /// The author of the bundle; `None` for the name of the deployment.
    pub author: Option<&'a str>,
    /// The purpose of the server in one sentence; `None` for one that names the upstreams.
    pub description: Option<&'a str>,
}

/// A tool of the server.
#[derive(Debug, Clone)]
pub struct OfferedTool {
    /// The name of the tool.
    pub name: String,
    /// The description of the tool. A bundle has the first paragraph.
    pub description: String,
}

/// Returns the path of the binary in the bundle.
pub fn program_in_bundle(deployment: &Deployment, target: &str) -> String {
    let suffix = if target.contains("windows") { ".exe" } else { "" };
    format!("server/{}{suffix}", label(&deployment.name, MAX_NAME))
}

/// Renders the manifest of a bundle with a binary for the platform `target`.
///
/// # Errors
///
/// Returns [`RenderError`] if a template cannot be rendered, which is a fault of the compiler.
pub fn bundle_manifest(
    deployment: &Deployment,
    release: &Release<'_>,
    target: &str,
    tools: &[OfferedTool],
) -> Result<String, RenderError> {
    let program = program_in_bundle(deployment, target);
    let asked: Vec<(String, Variable)> =
        Needs::from_deployment(deployment).variables.into_iter().filter(|(_, v)| is_asked(v)).collect();
    let env = asked
        .iter()
        .fold(Json::object(), |env, (name, _)| env.with(name.clone(), Json::string(format!("${{user_config.{name}}}"))));
    let user_config = asked.iter().fold(Json::object(), |all, (name, variable)| {
        let option = Json::object()
            .with("type", Json::string("string"))
            .with("title", Json::string(name.clone()))
            .with("description", Json::string(purpose(variable)))
            .with("sensitive", Json::Bool(variable.is_secret))
            .with("required", Json::Bool(true));
        all.with(name.clone(), option)
    });
    let config = Json::object()
        .with("command", Json::string(format!("${{__dirname}}/{program}")))
        .with("args", Json::Array(Vec::new()))
        .with("env", env);
    let server =
        Json::object().with("type", Json::string("binary")).with("entry_point", Json::string(program)).with("mcp_config", config);
    let tools = tools.iter().map(|tool| {
        let first = tool.description.split("\n\n").next().unwrap_or_default();
        let described = Json::object().with("name", Json::string(tool.name.clone()));
        if first.is_empty() { described } else { described.with("description", Json::string(one_line(first, SHORT))) }
    });
    let mut manifest = Json::object()
        .with("manifest_version", Json::string(MANIFEST_VERSION))
        .with("name", Json::string(label(&deployment.name, MAX_NAME)))
        .with("display_name", Json::string(deployment.name.clone()))
        .with("version", Json::string(release.version))
        .with("description", Json::string(release.description.map_or_else(|| summary(deployment), str::to_owned)))
        .with("long_description", Json::string(details(deployment)))
        .with("author", Json::object().with("name", Json::string(release.author.unwrap_or(&deployment.name))))
        .with("server", server)
        .with("tools", Json::Array(tools.collect()));
    if let Some(platform) = platform(target) {
        let platforms = Json::Array(vec![Json::string(platform)]);
        manifest.set("compatibility", Json::object().with("platforms", platforms));
    }
    if !asked.is_empty() {
        manifest.set("user_config", user_config);
    }
    let build = Json::object()
        .with("target", Json::string(target))
        .with("build_digest", Json::string(build_digest(deployment)?))
        .with("catalog_digest", Json::string(&*deployment.catalog_digest))
        .with("config_digest", Json::string(&*deployment.config_digest));
    manifest.set("_meta", Json::object().with(BUILD, build));
    Ok(manifest.pretty() + "\n")
}

/// What a manifest says of its bundle.
#[derive(Debug, Clone, Deserialize)]
pub struct Bundled {
    /// The version of the release.
    pub version: String,
    /// The name that clients show.
    pub display_name: String,
    /// One sentence.
    pub description: String,
    #[serde(rename = "_meta")]
    meta: Meta,
}

#[derive(Debug, Clone, Deserialize)]
struct Meta {
    #[serde(rename = "ptc-compile/build")]
    build: Build,
}

#[derive(Debug, Clone, Deserialize)]
struct Build {
    target: String,
    build_digest: String,
}

impl Bundled {
    /// Reads a manifest. Returns `None` if [`bundle_manifest`] did not render it.
    pub fn read(manifest: &[u8]) -> Option<Bundled> {
        serde_json::from_slice(manifest).ok()
    }

    /// The platform of the binary.
    pub fn target(&self) -> &str {
        &self.meta.build.target
    }

    /// The [digest](build_digest) of what the binary was built from.
    pub fn build_digest(&self) -> &str {
        &self.meta.build.build_digest
    }
}

/// Returns the variables for which a client asks its user.
pub fn asked_variables(deployment: &Deployment) -> Vec<String> {
    Needs::from_deployment(deployment)
        .variables
        .into_iter()
        .filter(|(_, variable)| is_asked(variable))
        .map(|(name, _)| name)
        .collect()
}

/// Whether a server that is started without flags needs the variable. A credential that no upstream uses may be the key of a
/// planner, which needs a flag.
pub(super) fn is_asked(variable: &Variable) -> bool {
    variable.is_required && !variable.upstreams.is_empty()
}

/// Describes for whom a variable is.
pub(super) fn purpose(variable: &Variable) -> String {
    let what = if variable.is_secret { "Secret" } else { "Setting" };
    match listed(&variable.upstreams.iter().map(String::as_str).collect::<Vec<_>>()) {
        upstreams if upstreams.is_empty() => what.to_owned(),
        upstreams => format!("{what} for {upstreams}"),
    }
}

/// Describes the server in one sentence.
fn summary(deployment: &Deployment) -> String {
    let upstreams: Vec<&str> = deployment.upstreams.iter().map(|upstream| upstream.name.as_str()).collect();
    let text = match listed(&upstreams) {
        upstreams if upstreams.is_empty() => "Runs short programs in a sandbox".to_owned(),
        upstreams => format!("Runs short programs over the tools of {upstreams}"),
    };
    // A truncated text ends in one more character.
    one_line(&text, MAX_DESCRIPTION - 1)
}

/// Describes the upstreams, with a line for each.
fn details(deployment: &Deployment) -> String {
    let mut text = format!("{}.", summary(deployment));
    for upstream in &deployment.upstreams {
        let tools = upstream.tools.len();
        // Writing to a string cannot fail.
        let _ = write!(text, "\n\n- {} ({tools} tool{})", upstream.name, if tools == 1 { "" } else { "s" });
        if !upstream.description.is_empty() {
            text.extend([": ", &one_line(&upstream.description, SHORT)]);
        }
    }
    text
}

/// Joins names as in a sentence.
fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Returns the name of a platform in manifests.
fn platform(target: &str) -> Option<&'static str> {
    let names = [("linux", "linux"), ("darwin", "darwin"), ("windows", "win32")];
    names.into_iter().find_map(|(part, name)| target.contains(part).then_some(name))
}
