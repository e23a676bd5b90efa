//! Renders the texts of `--emit`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Component, Path};

use ptc_catalog::Type;
use ptc_compiler::config::model::{Config, SchemaSource, Transport};
use ptc_compiler::ir::{Deployment, Tool};
use ptc_compiler::json::Json;
use ptc_compiler::lock::{self, Lock};
use ptc_compiler::render::BaseImages;
use ptc_compiler::{openapi, render};

use crate::build_args::{Build, Emit};
use crate::{Failure, bundle, load, resolve_lock};

/// Renders one of the texts. Equal locks give equal bytes. Returns `None` for a bundle, which is not a text.
pub(crate) fn text(
    what: Emit,
    deployment: &Deployment,
    lock: &Lock,
    config: &Config,
    args: &Build,
    images: &BaseImages,
) -> Result<Option<String>, Failure> {
    let path = load::config_path(args)?;
    let rendered = match what {
        Emit::Rust => render::catalog(deployment),
        Emit::Args => render::args(deployment),
        Emit::Docs => Ok(docs(deployment)),
        Emit::Lock => Ok(lock::write::write(lock)),
        Emit::Html => render::html(deployment),
        Emit::Container => render::dockerfile(deployment, &context(config, lock, path)?, images),
        Emit::Dockerignore => Ok(render::dockerignore(&context(config, lock, path)?)),
        Emit::K8s => render::kubernetes(deployment),
        Emit::CatalogJson => Ok(catalog(deployment).pretty()),
        Emit::ServerJson => Ok(bundle::registry_entry(deployment, args)?),
        Emit::Mcpb => return Ok(None),
    };
    rendered.map(Some).map_err(|error| Failure::new(error.to_string()))
}

/// Returns the files that a build of the config reads. All of them must be in the config's folder, since a build in a container
/// sees only that folder.
fn context(config: &Config, lock: &Lock, path: &Path) -> Result<render::Context, Failure> {
    let mut files: BTreeSet<String> = config.programs.values().map(|program| program.file.value.clone()).collect();
    for (name, upstream) in &config.upstreams {
        let Transport::OpenApi(api) = &upstream.transport else { continue };
        let SchemaSource::File(file) = &api.schema.value else { continue };
        files.insert(file.clone());
        let document = lock.upstreams.get(name).and_then(|locked| locked.document.as_ref());
        files.extend(document.iter().flat_map(|document| document.files.keys()).map(|part| openapi::beside(file, part)));
    }
    let is_inside =
        |file: &&String| Path::new(file).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if let Some(outside) = files.iter().find(|file| !is_inside(file)) {
        return Err(Failure::new(format!("`{outside}` is outside of the config's folder, from which the container is built"))
            .hint("move it beside the config"));
    }
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(render::Context { config: name(path), lock: name(&resolve_lock::path(path)), files })
}

/// Returns the `doc` texts with a heading for each upstream, and the rules of the policy.
fn docs(deployment: &Deployment) -> String {
    let mut out = String::new();
    for upstream in &deployment.upstreams {
        // Writing to a string cannot fail, here or below.
        let _ = writeln!(out, "# {}\n\n{}\n", upstream.name, upstream.description);
        for tool in &upstream.tools {
            let _ = writeln!(out, "{}\n", tool.doc.trim_end());
        }
    }
    if let Some(policy) = &deployment.policy {
        let _ = writeln!(out, "# Policy\n\nA call that no rule permits is refused. The first rule that permits it decides.\n");
        for (at, rule) in render::policy_sentences(policy).iter().enumerate() {
            let _ = writeln!(out, "{}. {rule}", at + 1);
        }
    }
    out
}

/// Returns the upstreams with their tools. Arguments are in the order of `doc`.
fn catalog(deployment: &Deployment) -> Json {
    let upstreams = deployment.upstreams.iter().map(|upstream| {
        Json::object()
            .with("name", Json::string(&*upstream.name))
            .with("description", Json::string(&*upstream.description))
            .with("tools", Json::Array(upstream.tools.iter().map(tool).collect()))
    });
    Json::object()
        .with("name", Json::string(&*deployment.name))
        .with("compiler", Json::string(&*deployment.compiler))
        .with("catalogDigest", Json::string(&*deployment.catalog_digest))
        .with("configDigest", Json::string(&*deployment.config_digest))
        .with("upstreams", Json::Array(upstreams.collect()))
}

fn tool(tool: &Tool) -> Json {
    let args = tool.args.iter().map(|arg| {
        let types = Type::ALL.iter().filter(|(kind, _)| arg.types.0 & *kind as u8 != 0).map(|(_, name)| Json::string(*name));
        Json::object()
            .with("name", Json::string(&*arg.name))
            .with("required", Json::Bool(arg.required))
            .with("type", Json::string(&*arg.label))
            .with("types", Json::Array(types.collect()))
    });
    let mut out = Json::object()
        .with("name", Json::string(&*tool.name))
        .with("description", Json::string(&*tool.description))
        .with("digest", Json::string(&*tool.digest))
        .with("closed", Json::Bool(tool.closed))
        .with("args", Json::Array(args.collect()));
    if let Some(operation) = &tool.operation {
        out.set("operationId", Json::string(&*operation.id));
    }
    let said = tool.annotations;
    for (name, hint) in [
        ("readOnlyHint", said.read_only),
        ("destructiveHint", said.destructive),
        ("idempotentHint", said.idempotent),
        ("openWorldHint", said.open_world),
    ] {
        if let Some(hint) = hint {
            out.set(name, Json::Bool(hint));
        }
    }
    out
}
