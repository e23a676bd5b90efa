//! `--emit`: what was made of a config, as text.

use std::fmt::Write as _;

use ptc_catalog::Type;
use ptc_compiler::ir::{Deployment, Json, Tool};
use ptc_compiler::lock::{self, Lock};
use ptc_compiler::render;

use crate::Failure;
use crate::args::Emit;

/// One of the texts. The same lock gives the same bytes.
pub(crate) fn text(what: Emit, deployment: &Deployment, lock: &Lock) -> Result<String, Failure> {
    match what {
        Emit::Rust => render::catalog(deployment).map_err(|error| Failure::new(error.to_string())),
        Emit::Args => render::args(deployment).map_err(|error| Failure::new(error.to_string())),
        Emit::Docs => Ok(docs(deployment)),
        Emit::Lock => Ok(lock::write::write(lock)),
        Emit::Html => render::html(deployment).map_err(|error| Failure::new(error.to_string())),
        Emit::CatalogJson => Ok(catalog(deployment).pretty()),
    }
}

/// The `doc` texts, a heading for each upstream.
fn docs(deployment: &Deployment) -> String {
    let mut out = String::new();
    for upstream in &deployment.upstreams {
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(out, "# {}\n\n{}\n", upstream.name, upstream.description);
        for tool in &upstream.tools {
            let _ = writeln!(out, "{}\n", tool.doc.trim_end());
        }
    }
    out
}

/// Upstreams with their tools, arguments in the order of `doc`.
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
