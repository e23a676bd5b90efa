//! `README.md` of the generated crate.

use minijinja::AutoEscape;
use serde::Serialize;

use super::{RenderError, template};
use crate::config::model::{CredentialSource, Transport};
use crate::ir::Deployment;

#[derive(Debug, Serialize)]
struct View<'a> {
    name: &'a str,
    compiler: &'static str,
    catalog_digest: &'a str,
    config_digest: &'a str,
    credentials: Vec<Credential<'a>>,
    upstreams: Vec<Upstream<'a>>,
}

#[derive(Debug, Serialize)]
struct Credential<'a> {
    name: &'a str,
    source: String,
}

#[derive(Debug, Serialize)]
struct Upstream<'a> {
    name: &'a str,
    transport: &'static str,
    description: String,
    tools: Vec<Tool<'a>>,
}

#[derive(Debug, Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: String,
}

pub(super) fn readme(deployment: &Deployment) -> Result<String, RenderError> {
    let upstreams = deployment.upstreams.iter().map(|upstream| Upstream {
        name: &upstream.name,
        transport: match upstream.transport {
            Transport::McpStdio(_) => "MCP, stdio",
            Transport::McpHttp(_) => "MCP, HTTP",
            Transport::OpenApi(_) => "OpenAPI",
        },
        description: prose(&upstream.description),
        tools: upstream.tools.iter().map(|t| Tool { name: &t.name, description: prose(&t.description) }).collect(),
    });
    let credentials = deployment.credentials.iter().map(|credential| Credential {
        name: &credential.name,
        source: match &credential.source {
            CredentialSource::Env { var } => format!("environment variable `{var}`"),
            CredentialSource::File { path } => format!("file `{path}`"),
            CredentialSource::Literal { .. } => "compiled into the binary".to_owned(),
        },
    });
    let view = View {
        name: &deployment.name,
        compiler: crate::VERSION,
        catalog_digest: &deployment.catalog_digest,
        config_digest: &deployment.config_digest,
        credentials: credentials.collect(),
        upstreams: upstreams.collect(),
    };
    template("README.md", include_str!("../../../templates/README.md.j2"), AutoEscape::None, view)
}

/// Words of upstreams as Markdown text: nothing of them is markup.
fn prose(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '&') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
