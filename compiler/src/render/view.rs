//! The one bridge from the deployment model to `ptc_catalog`: every name, escape and literal of the generated tables is
//! decided here, so that templates only put them in place. That goes for booleans too: the template engine writes `True`.

use serde::Serialize;

use ptc_catalog::{Annotations, Era, Place, Style};

use super::literal::{boolean, option, string, strings};
use crate::config::model::{Auth, CredentialSource, EnvPart, HttpOptions, InheritEnv, Transport};
use crate::ir;

/// `catalog.rs`: all fields are Rust expressions.
#[derive(Debug, Serialize)]
pub(super) struct Catalog {
    name: String,
    compiler: String,
    config_digest: String,
    credentials: Vec<Binding>,
    digest: String,
    upstreams: Vec<Upstream>,
    programs: Vec<Program>,
}

#[derive(Debug, Serialize)]
struct Program {
    name: String,
    description: String,
    source: String,
    digest: String,
    args: String,
    output_schema: String,
}

#[derive(Debug, Serialize)]
struct Binding {
    name: String,
    source: String,
}

#[derive(Debug, Serialize)]
struct Upstream {
    name: String,
    description: String,
    transport: String,
    /// Name of the static that holds the tools.
    table: String,
    tools: Vec<Tool>,
}

#[derive(Debug, Serialize)]
struct Tool {
    name: String,
    description: String,
    args: Vec<Arg>,
    closed: &'static str,
    doc: String,
    definition: String,
    digest: String,
    annotations: String,
    operation: Option<Operation>,
}

#[derive(Debug, Serialize)]
struct Arg {
    name: String,
    required: &'static str,
    types: u8,
    label: String,
    allowed: String,
}

#[derive(Debug, Serialize)]
struct Operation {
    id: String,
    path: String,
    params: Vec<Param>,
    default_args: String,
}

#[derive(Debug, Serialize)]
struct Param {
    name: String,
    place: &'static str,
    style: &'static str,
    explode: &'static str,
    allow_reserved: &'static str,
}

impl Catalog {
    pub(super) fn new(deployment: &ir::Deployment) -> Self {
        let credentials = deployment.credentials.iter();
        Catalog {
            name: string(&deployment.name),
            compiler: string(&deployment.compiler),
            config_digest: string(&deployment.config_digest),
            credentials: credentials.map(|c| Binding { name: string(&c.name), source: source(&c.source) }).collect(),
            digest: string(&deployment.catalog_digest),
            upstreams: deployment.upstreams.iter().enumerate().map(|(at, u)| upstream(at, u)).collect(),
            programs: deployment.programs.iter().map(program).collect(),
        }
    }
}

fn program(program: &ir::Program) -> Program {
    Program {
        name: string(&program.name),
        description: string(&program.description),
        source: string(&program.source),
        digest: string(&program.digest),
        args: string(&program.args),
        output_schema: string(&program.output_schema),
    }
}

fn source(source: &CredentialSource) -> String {
    match source {
        CredentialSource::Env { var } => format!("ptc::Source::Env {{ var: {} }}", string(var)),
        CredentialSource::File { path } => format!("ptc::Source::File {{ path: {} }}", string(path)),
        CredentialSource::Literal { value } => format!("ptc::Source::Literal {{ value: {} }}", string(value)),
    }
}

fn upstream(at: usize, upstream: &ir::Upstream) -> Upstream {
    Upstream {
        name: string(&upstream.name),
        description: string(&upstream.description),
        transport: transport(upstream),
        table: format!("TOOLS_{at}"),
        tools: upstream.tools.iter().map(tool).collect(),
    }
}

fn transport(upstream: &ir::Upstream) -> String {
    let era = option(upstream.era.map(|era| match era {
        Era::Handshake => "ptc::Era::Handshake",
        Era::Stateless => "ptc::Era::Stateless",
    }));
    match &upstream.transport {
        Transport::McpStdio(t) => {
            let env: Vec<String> =
                t.env.iter().map(|(name, parts)| format!("({}, &[{}])", string(name), env_parts(parts))).collect();
            format!(
                "ptc::Transport::McpStdio(ptc::McpStdio {{ command: {}, args: &[{}], env: &[{}], inherit_env: {}, cd: {}, \
                 handshake_timeout_ms: {}, max_response_bytes: {}, era: {era} }})",
                string(&t.command.value),
                strings(t.args.iter().map(String::as_str)),
                env.join(", "),
                inherit_env(&t.inherit_env),
                option(t.cd.as_deref().map(string)),
                t.handshake_timeout_ms,
                t.max_response_bytes,
            )
        }
        Transport::McpHttp(t) => format!(
            "ptc::Transport::McpHttp(ptc::McpHttp {{ url: {}, {}, handshake_timeout_ms: {}, proxy: {}, era: {era} }})",
            string(&t.url.value),
            http(&t.http),
            t.handshake_timeout_ms,
            option(t.proxy.as_deref().map(string)),
        ),
        Transport::OpenApi(t) => {
            format!("ptc::Transport::OpenApi(ptc::OpenApi {{ base_url: {}, {} }})", string(&t.base_url.value), http(&t.http))
        }
    }
}

/// The fields that both HTTP transports have.
fn http(options: &HttpOptions) -> String {
    let auth: Vec<String> = options.auth.iter().map(auth).collect();
    let headers: Vec<String> =
        options.static_headers.iter().map(|(name, value)| format!("({}, {})", string(name), string(value))).collect();
    format!(
        "auth: &[{}], static_headers: &[{}], request_timeout_ms: {}, connect_timeout_ms: {}, max_response_bytes: {}",
        auth.join(", "),
        headers.join(", "),
        options.request_timeout_ms,
        options.connect_timeout_ms,
        options.max_response_bytes,
    )
}

fn auth(auth: &Auth) -> String {
    match auth {
        Auth::Bearer { binding } => format!("ptc::Auth::Bearer {{ binding: {} }}", string(binding)),
        Auth::Basic { binding } => format!("ptc::Auth::Basic {{ binding: {} }}", string(binding)),
        Auth::CustomHeader { header, binding } => {
            format!("ptc::Auth::CustomHeader {{ header: {}, binding: {} }}", string(header), string(binding))
        }
    }
}

fn env_parts(parts: &[EnvPart]) -> String {
    let part = |part: &EnvPart| match part {
        EnvPart::Text(text) => format!("ptc::EnvPart::Text({})", string(text)),
        EnvPart::Var(name) => format!("ptc::EnvPart::Var({})", string(name)),
    };
    parts.iter().map(part).collect::<Vec<_>>().join(", ")
}

fn inherit_env(inherit: &InheritEnv) -> String {
    match inherit {
        InheritEnv::Base => "ptc::InheritEnv::Base".to_owned(),
        InheritEnv::Names(names) => format!("ptc::InheritEnv::Names(&[{}])", strings(names.iter().map(String::as_str))),
        InheritEnv::All => "ptc::InheritEnv::All".to_owned(),
    }
}

fn tool(tool: &ir::Tool) -> Tool {
    Tool {
        name: string(&tool.name),
        description: string(&tool.description),
        args: tool.args.iter().map(arg).collect(),
        closed: boolean(tool.closed),
        doc: string(&tool.doc),
        definition: string(&tool.definition),
        digest: string(&tool.digest),
        annotations: annotations(tool.annotations),
        operation: tool.operation.as_ref().map(operation),
    }
}

fn annotations(annotations: Annotations) -> String {
    if annotations == Annotations::NONE {
        return "ptc::Annotations::NONE".to_owned();
    }
    format!(
        "ptc::Annotations {{ read_only: {}, destructive: {}, idempotent: {}, open_world: {} }}",
        option(annotations.read_only),
        option(annotations.destructive),
        option(annotations.idempotent),
        option(annotations.open_world),
    )
}

fn arg(arg: &ir::Arg) -> Arg {
    Arg {
        name: string(&arg.name),
        required: boolean(arg.required),
        types: arg.types.0,
        label: string(&arg.label),
        allowed: string(&arg.allowed.join("\n")),
    }
}

fn operation(operation: &ir::Operation) -> Operation {
    let defaults: Vec<String> =
        operation.default_args.iter().map(|(name, json)| format!("({}, {})", string(name), string(json))).collect();
    Operation {
        id: string(&operation.id),
        path: string(&operation.path),
        params: operation.params.iter().map(param).collect(),
        default_args: defaults.join(", "),
    }
}

fn param(param: &ir::Param) -> Param {
    Param {
        name: string(&param.name),
        place: match param.place {
            Place::Path => "Path",
            Place::Query => "Query",
        },
        style: match param.style {
            Style::Form => "Form",
            Style::SpaceDelimited => "SpaceDelimited",
            Style::PipeDelimited => "PipeDelimited",
            Style::DeepObject => "DeepObject",
            Style::Simple => "Simple",
            Style::Label => "Label",
            Style::Matrix => "Matrix",
            Style::Json => "Json",
        },
        explode: boolean(param.explode),
        allow_reserved: boolean(param.allow_reserved),
    }
}
