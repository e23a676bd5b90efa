//! Renders `README.md` of the generated crate.

use minijinja::AutoEscape;
use serde::Serialize;

use super::{RenderError, markdown, template};
use crate::config::model::{CredentialSource, Transport};
use crate::ir::Deployment;

#[derive(Debug, Serialize)]
struct View<'a> {
    name: String,
    compiler: &'static str,
    catalog_digest: &'a str,
    config_digest: &'a str,
    credentials: Vec<Credential>,
    upstreams: Vec<Upstream>,
}

#[derive(Debug, Serialize)]
struct Credential {
    name: String,
    source: String,
}

#[derive(Debug, Serialize)]
struct Upstream {
    name: String,
    transport: &'static str,
    description: String,
    tools: Vec<Tool>,
}

#[derive(Debug, Serialize)]
struct Tool {
    name: String,
    description: String,
}

pub(super) fn readme(deployment: &Deployment) -> Result<String, RenderError> {
    let upstreams = deployment.upstreams.iter().map(|upstream| Upstream {
        name: markdown::code(&upstream.name),
        transport: match upstream.transport {
            Transport::McpStdio(_) => "MCP, stdio",
            Transport::McpHttp(_) => "MCP, HTTP",
            Transport::OpenApi(_) => "OpenAPI",
        },
        description: markdown::text(&upstream.description),
        tools: upstream
            .tools
            .iter()
            .map(|t| Tool { name: markdown::code(&t.name), description: markdown::text(&t.description) })
            .collect(),
    });
    let credentials = deployment.credentials.iter().map(|credential| Credential {
        name: markdown::code(&credential.name),
        source: match &credential.source {
            CredentialSource::Env { var } => format!("environment variable {}", markdown::code(var)),
            CredentialSource::File { path } => format!("file {}", markdown::code(path)),
            CredentialSource::Literal { .. } => "compiled into the binary".to_owned(),
        },
    });
    let view = View {
        name: super::container::comment(&deployment.name),
        compiler: crate::VERSION,
        catalog_digest: &deployment.catalog_digest,
        config_digest: &deployment.config_digest,
        credentials: credentials.collect(),
        upstreams: upstreams.collect(),
    };
    template("README.md", include_str!("../../../templates/README.md.j2"), AutoEscape::None, view)
}
