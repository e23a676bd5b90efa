//! Converts the deployment model to the tables of `ptc_catalog`. Every name, escape and literal of the generated tables is
//! decided here, so that templates only insert them. Booleans are converted too, because the template engine would write `True`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use ptc_catalog::{Annotations, Era, HttpTransport, IdentityProvider, ListingLimits, OAuth2};

use super::literal::{boolean, bytes, option, string, strings};
use crate::config::model::{
    Auth, Condition, CredentialSource, EnvPart, HttpOptions, InheritEnv, Policy, Proxy, Rule, Sandbox, Transport,
};
use crate::ir;

/// The values of `catalog.rs`. All fields are Rust expressions.
#[derive(Debug, Serialize)]
pub(super) struct Catalog {
    name: String,
    server_name: String,
    compiler: String,
    config_digest: String,
    credentials: Vec<Binding>,
    digest: String,
    search_index: String,
    upstreams: Vec<Upstream>,
    programs: Vec<Program>,
    policy: String,
    constants: Vec<Constant>,
}

/// A named constant and its expression.
#[derive(Debug, Serialize)]
struct Constant {
    name: String,
    kind: &'static str,
    value: String,
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
    /// Name of the static item that holds the tools.
    table: String,
    tools: Vec<Tool>,
}

#[derive(Debug, Serialize)]
struct Tool {
    name: String,
    description: String,
    args: Vec<String>,
    closed: &'static str,
    doc: String,
    definition: String,
    digest: String,
    annotations: String,
    effects: String,
    operation: Option<Operation>,
    paging: String,
    call_timeout_ms: String,
}

#[derive(Debug, Serialize)]
struct Operation {
    id: String,
    path: String,
    params: String,
    default_args: String,
    answers: String,
    method: String,
    body: String,
}

impl Catalog {
    /// Returns the tables without the deployment's name, which is that of the output file.
    pub(super) fn without_name(self) -> Catalog {
        Catalog { name: String::new(), ..self }
    }

    pub(super) fn new(deployment: &ir::Deployment) -> Self {
        let credentials = deployment.credentials.iter();
        let mut upstreams: Vec<Upstream> = deployment.upstreams.iter().enumerate().map(|(at, u)| upstream(at, u)).collect();
        let mut constants = share("ARG", "ptc::Arg", tools(&mut upstreams).flat_map(|tool| &mut tool.args));
        constants.extend(share(
            "ANNOTATIONS",
            "ptc::Annotations",
            tools(&mut upstreams).flat_map(|tool| [&mut tool.annotations, &mut tool.effects]),
        ));
        Catalog {
            name: string(&deployment.name),
            server_name: string(&deployment.server_name),
            compiler: string(&deployment.compiler),
            config_digest: string(&deployment.config_digest),
            credentials: credentials.map(|c| Binding { name: string(&c.name), source: source(&c.source) }).collect(),
            digest: string(&deployment.catalog_digest),
            search_index: bytes(&ptc_search::index_of(crate::leak::leak_static(deployment).catalog)),
            upstreams,
            programs: deployment.programs.iter().map(program).collect(),
            policy: option(deployment.policy.as_ref().map(policy)),
            constants,
        }
    }
}

fn tools(upstreams: &mut [Upstream]) -> impl Iterator<Item = &mut Tool> {
    upstreams.iter_mut().flat_map(|upstream| &mut upstream.tools)
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

fn policy(policy: &Policy) -> String {
    let rules: Vec<String> = policy.rules.iter().map(rule).collect();
    format!("&ptc::Policy {{ rules: &[{}] }}", rules.join(", "))
}

fn rule(rule: &Rule) -> String {
    let conditions = rule.when.iter().map(|condition| match &condition.value {
        Condition::Owner(name) => format!("ptc::Condition::Owner({})", string(name)),
        Condition::Scope(scope) => format!("ptc::Condition::Scope({})", string(scope)),
        Condition::Group(group) => format!("ptc::Condition::Group({})", string(group)),
        Condition::Claim(name, value) => format!("ptc::Condition::Claim({}, {})", string(name), string(value)),
    });
    let grants = rule.allow.iter().map(|grant| {
        let arguments = grant.arguments.iter().map(|(name, values)| {
            let values = strings(values.iter().map(String::as_str));
            format!("ptc::PermittedValues {{ name: {}, values: &[{values}] }}", string(&name.value))
        });
        format!(
            "ptc::Grant {{ upstream: {}, tools: &[{}], arguments: &[{}] }}",
            string(&grant.upstream.value),
            strings(grant.tools.iter().map(|tool| tool.value.as_str())),
            arguments.collect::<Vec<_>>().join(", "),
        )
    });
    format!(
        "ptc::Rule {{ name: {}, when: &[{}], allow: &[{}], calls_per_program: {}, calls_per_minute: {} }}",
        string(&rule.name.value),
        conditions.collect::<Vec<_>>().join(", "),
        grants.collect::<Vec<_>>().join(", "),
        option(rule.calls_per_program),
        option(rule.calls_per_minute),
    )
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
    let http_transport = option(upstream.http_transport.map(|transport| match transport {
        HttpTransport::Streamable => "ptc::HttpTransport::Streamable",
        HttpTransport::Sse => "ptc::HttpTransport::Sse",
    }));
    match &upstream.transport {
        Transport::McpStdio(t) => {
            let env: Vec<String> =
                t.env.iter().map(|(name, parts)| format!("({}, &[{}])", string(name), env_parts(parts))).collect();
            format!(
                "ptc::Transport::McpStdio(ptc::McpStdio {{ command: {}, args: &[{}], env: &[{}], inherit_env: {}, cd: {}, sandbox: {}, \
                 handshake_timeout_ms: {}, idle_timeout_ms: {}, max_response_bytes: {}, max_concurrent_calls: {}, listing: {}, era: {era} }})",
                string(&t.command.value),
                strings(t.args.iter().map(String::as_str)),
                env.join(", "),
                inherit_env(&t.inherit_env),
                option(t.cd.as_ref().map(|cd| string(&cd.value))),
                option(t.sandbox.as_ref().map(sandbox)),
                t.handshake_timeout_ms,
                option(t.idle_timeout_ms),
                t.max_response_bytes,
                t.max_concurrent_calls,
                listing_limits(t.listing),
            )
        }
        Transport::McpHttp(t) => format!(
            "ptc::Transport::McpHttp(ptc::McpHttp {{ url: {}, {}, handshake_timeout_ms: {}, listing: {}, era: {era}, \
             http_transport: {http_transport} }})",
            string(&t.url.value),
            http(&t.http),
            t.handshake_timeout_ms,
            listing_limits(t.listing),
        ),
        Transport::OpenApi(t) => {
            let origins = strings(t.server_origins.iter().map(|origin| origin.value.as_str()));
            let base_url = string(&t.base_url.value);
            let (key, max) = (option(t.idempotency_header.as_deref().map(string)), t.max_request_bytes);
            format!(
                "ptc::Transport::OpenApi(ptc::OpenApi {{ base_url: {base_url}, server_origins: &[{origins}], idempotency_header: {key}, \
                 max_request_bytes: {max}, {} }})",
                http(&t.http)
            )
        }
    }
}

fn listing_limits(limits: ListingLimits) -> String {
    if limits == ListingLimits::DEFAULT {
        return "ptc::ListingLimits::DEFAULT".to_owned();
    }
    format!("ptc::ListingLimits {{ max_bytes: {}, max_tools: {} }}", limits.max_bytes, limits.max_tools)
}

/// Returns the fields that both HTTP transports have.
fn http(options: &HttpOptions) -> String {
    let auth: Vec<String> = options.auth.iter().map(auth).collect();
    let headers: Vec<String> =
        options.static_headers.iter().map(|(name, value)| format!("({}, {})", string(name), string(value))).collect();
    format!(
        "auth: &[{}], static_headers: &[{}], request_timeout_ms: {}, connect_timeout_ms: {}, max_response_bytes: {}, \
         max_concurrent_calls: {}, proxy: {}",
        auth.join(", "),
        headers.join(", "),
        options.request_timeout_ms,
        options.connect_timeout_ms,
        options.max_response_bytes,
        options.max_concurrent_calls,
        option(options.proxy.as_ref().map(proxy)),
    )
}

fn proxy(proxy: &Proxy) -> String {
    format!(
        "ptc::Proxy {{ url: {}, auth: {}, no_proxy: &[{}] }}",
        string(&proxy.url.value),
        option(proxy.auth.as_deref().map(string)),
        strings(proxy.no_proxy.iter().map(String::as_str)),
    )
}

fn auth(auth: &Auth) -> String {
    match auth {
        Auth::Bearer { binding } => format!("ptc::Auth::Bearer {{ binding: {} }}", string(binding)),
        Auth::Basic { binding } => format!("ptc::Auth::Basic {{ binding: {} }}", string(binding)),
        Auth::CustomHeader { header, binding } => {
            format!("ptc::Auth::CustomHeader {{ header: {}, binding: {} }}", string(header), string(binding))
        }
        Auth::ApiKey { place, name, binding } => {
            format!(
                "ptc::Auth::ApiKey {{ place: ptc::KeyPlace::{place:?}, name: {}, binding: {} }}",
                string(name),
                string(binding)
            )
        }
        Auth::ClientCertificate { binding } => format!("ptc::Auth::ClientCertificate {{ binding: {} }}", string(binding)),
        Auth::OAuth2(oauth) => {
            let oauth = oauth.map(|text| string(text));
            let OAuth2 { grant, token_url, client_id, client_auth, binding, key_id, issuer, scope, resource, .. } = &oauth;
            let OAuth2 { audience, subject, subject_type, pinned_issuer, pinned_resource, pinned_proof, .. } = &oauth;
            let identity_provider = option(oauth.identity_provider.as_ref().map(identity_provider));
            format!(
                "ptc::Auth::OAuth2(ptc::OAuth2 {{ grant: ptc::GrantType::{grant:?}, token_url: {token_url}, client_id: {client_id}, \
                 client_auth: ptc::ClientAuth::{client_auth:?}, binding: {binding}, key_id: {key_id}, issuer: {issuer}, \
                 scope: {scope}, resource: {resource}, audience: {audience}, subject: {subject}, \
                 subject_type: ptc::TokenType::{subject_type:?}, identity_provider: {identity_provider}, \
                 pinned_issuer: {pinned_issuer}, pinned_resource: {pinned_resource}, pinned_proof: {pinned_proof} }})"
            )
        }
    }
}

/// Writes an identity provider, whose texts are literals already.
fn identity_provider(provider: &IdentityProvider<String>) -> String {
    let IdentityProvider { token_url, client_id, client_auth, binding, key_id, issuer } = provider;
    format!(
        "ptc::IdentityProvider {{ token_url: {token_url}, client_id: {client_id}, client_auth: ptc::ClientAuth::{client_auth:?}, \
         binding: {binding}, key_id: {key_id}, issuer: {issuer} }}"
    )
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

fn sandbox(sandbox: &Sandbox) -> String {
    format!(
        "ptc::Sandbox {{ read: &[{}], write: &[{}], network: {}, memory_mb: {}, processes: {}, open_files: {}, cpu_seconds: {} }}",
        strings(sandbox.read.iter().map(|path| path.value.as_str())),
        strings(sandbox.write.iter().map(|path| path.value.as_str())),
        boolean(sandbox.network),
        option(sandbox.memory_mb),
        option(sandbox.processes),
        option(sandbox.open_files),
        option(sandbox.cpu_seconds),
    )
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
        effects: annotations(tool.effects),
        operation: tool.operation.as_ref().map(operation),
        paging: string(&tool.paging),
        call_timeout_ms: option(tool.call_timeout_ms),
    }
}

fn annotations(annotations: Annotations) -> String {
    format!(
        "ptc::Annotations {{ read_only: {}, destructive: {}, idempotent: {}, open_world: {} }}",
        option(annotations.read_only),
        option(annotations.destructive),
        option(annotations.idempotent),
        option(annotations.open_world),
    )
}

fn arg(arg: &ir::Arg) -> String {
    format!(
        "ptc::Arg {{ name: {}, required: {}, types: ptc::Types({}), label: {}, allowed: {} }}",
        string(&arg.name),
        boolean(arg.required),
        arg.types.0,
        string(&arg.label),
        string(&arg.allowed.join("\n")),
    )
}

fn operation(operation: &ir::Operation) -> Operation {
    let defaults: Vec<String> =
        operation.default_args.iter().map(|(name, json)| format!("({}, {})", string(name), string(json))).collect();
    Operation {
        id: string(&operation.id),
        path: string(&operation.path),
        params: string(&operation.params()),
        default_args: defaults.join(", "),
        method: string(&operation.method),
        body: body(&operation.body),
        answers: match operation.answers() {
            text if text.is_empty() => "ptc::Answers::JSON".to_owned(),
            text => format!("ptc::Answers({})", string(&text)),
        },
    }
}

fn body(body: &ir::Body) -> String {
    if body.media_type.is_empty() {
        return "ptc::Body::NONE".to_owned();
    }
    let (media_type, required, needs) = (string(&body.media_type), boolean(body.required), string(&body.needs.join("\n")));
    format!("ptc::Body {{ media_type: {media_type}, required: {required}, needs: {needs} }}")
}

/// Replaces each expression that occurs more than once by a constant named `PREFIX_0`, `PREFIX_1` and so on, and returns the
/// constants. The operations of an API have many arguments in common, and rustc compiles a name faster than a struct expression.
fn share<'a>(prefix: &str, kind: &'static str, expressions: impl Iterator<Item = &'a mut String>) -> Vec<Constant> {
    let expressions: Vec<&mut String> = expressions.collect();
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for expression in &expressions {
        *counts.entry(expression.as_str()).or_default() += 1;
    }
    let shared: BTreeSet<String> = counts.into_iter().filter(|(_, count)| *count > 1).map(|(text, _)| text.to_owned()).collect();
    let mut names: BTreeMap<&str, String> = BTreeMap::new();
    let mut constants = Vec::new();
    for expression in expressions {
        let Some(value) = shared.get(expression.as_str()) else { continue };
        let name = names.entry(value).or_insert_with(|| {
            let name = format!("{prefix}_{}", constants.len());
            constants.push(Constant { name: name.clone(), kind, value: value.clone() });
            name
        });
        expression.clone_from(name);
    }
    constants
}
