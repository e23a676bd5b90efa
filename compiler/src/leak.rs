//! Leaks a deployment's model into the static types of generated tables.
//!
//! The memory is never freed. A compiler ends soon, and an embedding program leaks one deployment for each config that it serves.

use ptc_catalog as ptc;

use crate::config::model::{self, CredentialSource, Transport};
use crate::ir;

/// A deployment as the compiler's model and as the runtime's tables.
#[non_exhaustive]
pub struct StaticDeployment {
    /// The model, for rendering.
    pub model: ir::Deployment,
    /// The tables, for the runtime.
    pub tables: &'static ptc::Deployment,
}

impl StaticDeployment {
    /// Leaks the model once.
    pub fn new(model: ir::Deployment) -> Self {
        let tables = leak_static(&model);
        StaticDeployment { model, tables }
    }
}

/// Converts a deployment to the types of generated code, as `ptc_runtime::embed::Builder::deployment` takes them.
/// [`crate::pinned::read`] makes the model of a config by its lock file.
pub fn leak_static(deployment: &ir::Deployment) -> &'static ptc::Deployment {
    let credentials = deployment.credentials.iter().map(|c| ptc::Binding { name: text(&c.name), source: source(&c.source) });
    let catalog = ptc::Catalog {
        digest: text(&deployment.catalog_digest),
        search_index: &[],
        upstreams: list(deployment.upstreams.iter().map(upstream)),
    };
    Box::leak(Box::new(ptc::Deployment {
        name: text(&deployment.name),
        server_name: text(&deployment.server_name),
        compiler: text(&deployment.compiler),
        config_digest: text(&deployment.config_digest),
        credentials: list(credentials),
        catalog: Box::leak(Box::new(catalog)),
        programs: list(deployment.programs.iter().map(|program| ptc::StoredProgram {
            name: text(&program.name),
            description: text(&program.description),
            source: text(&program.source),
            digest: text(&program.digest),
            args: text(&program.args),
            output_schema: text(&program.output_schema),
        })),
        policy: deployment.policy.as_ref().map(policy),
    }))
}

/// Leaks a policy.
fn policy(policy: &model::Policy) -> &'static ptc::Policy {
    Box::leak(Box::new(ptc::Policy { rules: list(policy.rules.iter().map(rule)) }))
}

fn rule(rule: &model::Rule) -> ptc::Rule {
    ptc::Rule {
        name: text(&rule.name.value),
        when: list(rule.when.iter().map(|condition| condition.value.map(|value| text(value)))),
        allow: list(rule.allow.iter().map(|grant| ptc::Grant {
            upstream: text(&grant.upstream.value),
            tools: list(grant.tools.iter().map(|tool| text(&tool.value))),
            arguments: list(grant.arguments.iter().map(|(name, values)| ptc::PermittedValues {
                name: text(&name.value),
                values: list(values.iter().map(|value| text(value))),
            })),
        })),
        calls_per_program: rule.calls_per_program,
        calls_per_minute: rule.calls_per_minute,
    }
}

fn text(text: &str) -> &'static str {
    text.to_owned().leak()
}

fn list<T>(items: impl Iterator<Item = T>) -> &'static [T] {
    items.collect::<Vec<T>>().leak()
}

fn texts(texts: &[String]) -> &'static [&'static str] {
    list(texts.iter().map(|t| text(t)))
}

fn source(source: &CredentialSource) -> ptc::Source {
    match source {
        CredentialSource::Env { var } => ptc::Source::Env { var: text(var) },
        CredentialSource::File { path } => ptc::Source::File { path: text(path) },
        CredentialSource::Literal { value } => ptc::Source::Literal { value: text(value) },
    }
}

fn upstream(upstream: &ir::Upstream) -> ptc::Upstream {
    ptc::Upstream {
        name: text(&upstream.name),
        description: text(&upstream.description),
        transport: transport(upstream),
        tools: ptc::Tools::table(list(upstream.tools.iter().map(tool))),
    }
}

fn transport(upstream: &ir::Upstream) -> ptc::Transport {
    match &upstream.transport {
        Transport::McpStdio(t) => ptc::Transport::McpStdio(ptc::McpStdio {
            command: text(&t.command.value),
            args: texts(&t.args),
            env: list(t.env.iter().map(|(name, parts)| (text(name), list(parts.iter().map(env_part))))),
            inherit_env: match &t.inherit_env {
                model::InheritEnv::Base => ptc::InheritEnv::Base,
                model::InheritEnv::Names(names) => ptc::InheritEnv::Names(texts(names)),
                model::InheritEnv::All => ptc::InheritEnv::All,
            },
            cd: t.cd.as_ref().map(|cd| text(&cd.value)),
            sandbox: t.sandbox.as_ref().map(|sandbox| ptc::Sandbox {
                read: list(sandbox.read.iter().map(|path| text(&path.value))),
                write: list(sandbox.write.iter().map(|path| text(&path.value))),
                network: sandbox.network,
                memory_mb: sandbox.memory_mb,
                processes: sandbox.processes,
                open_files: sandbox.open_files,
                cpu_seconds: sandbox.cpu_seconds,
            }),
            handshake_timeout_ms: t.handshake_timeout_ms,
            idle_timeout_ms: t.idle_timeout_ms,
            max_response_bytes: t.max_response_bytes,
            max_concurrent_calls: t.max_concurrent_calls,
            listing: t.listing,
            era: upstream.era,
        }),
        Transport::McpHttp(t) => ptc::Transport::McpHttp(ptc::McpHttp {
            url: text(&t.url.value),
            auth: auth(&t.http),
            static_headers: headers(&t.http),
            handshake_timeout_ms: t.handshake_timeout_ms,
            request_timeout_ms: t.http.request_timeout_ms,
            connect_timeout_ms: t.http.connect_timeout_ms,
            max_response_bytes: t.http.max_response_bytes,
            max_concurrent_calls: t.http.max_concurrent_calls,
            listing: t.listing,
            proxy: proxy(&t.http),
            era: upstream.era,
            http_transport: upstream.http_transport,
        }),
        Transport::OpenApi(t) => ptc::Transport::OpenApi(ptc::OpenApi {
            base_url: text(&t.base_url.value),
            server_origins: list(t.server_origins.iter().map(|origin| text(&origin.value))),
            idempotency_header: t.idempotency_header.as_deref().map(text),
            max_request_bytes: t.max_request_bytes,
            auth: auth(&t.http),
            static_headers: headers(&t.http),
            request_timeout_ms: t.http.request_timeout_ms,
            connect_timeout_ms: t.http.connect_timeout_ms,
            max_response_bytes: t.http.max_response_bytes,
            max_concurrent_calls: t.http.max_concurrent_calls,
            proxy: proxy(&t.http),
        }),
    }
}

/// Returns the proxy of an HTTP upstream.
fn proxy(http: &model::HttpOptions) -> Option<ptc::Proxy> {
    http.proxy.as_ref().map(|proxy| ptc::Proxy {
        url: text(&proxy.url.value),
        auth: proxy.auth.as_deref().map(text),
        no_proxy: texts(&proxy.no_proxy),
    })
}

fn env_part(part: &model::EnvPart) -> ptc::EnvPart {
    match part {
        model::EnvPart::Text(literal) => ptc::EnvPart::Text(text(literal)),
        model::EnvPart::Var(name) => ptc::EnvPart::Var(text(name)),
    }
}

/// Returns the elements of `auth` of an HTTP upstream.
pub fn auth(http: &model::HttpOptions) -> &'static [ptc::Auth] {
    list(http.auth.iter().map(|auth| match auth {
        model::Auth::Bearer { binding } => ptc::Auth::Bearer { binding: text(binding) },
        model::Auth::Basic { binding } => ptc::Auth::Basic { binding: text(binding) },
        model::Auth::CustomHeader { header, binding } => ptc::Auth::CustomHeader { header: text(header), binding: text(binding) },
        model::Auth::ApiKey { place, name, binding } => {
            ptc::Auth::ApiKey { place: *place, name: text(name), binding: text(binding) }
        }
        model::Auth::ClientCertificate { binding } => ptc::Auth::ClientCertificate { binding: text(binding) },
        model::Auth::OAuth2(oauth) => ptc::Auth::OAuth2(oauth.map(|value| text(value))),
    }))
}

/// Returns the static headers of an HTTP upstream.
pub fn headers(http: &model::HttpOptions) -> &'static [(&'static str, &'static str)] {
    list(http.static_headers.iter().map(|(name, value)| (text(name), text(value))))
}

fn tool(tool: &ir::Tool) -> ptc::Tool {
    ptc::Tool {
        name: text(&tool.name),
        description: text(&tool.description),
        args: list(tool.args.iter().map(|arg| ptc::Arg {
            name: text(&arg.name),
            required: arg.required,
            types: arg.types,
            label: text(&arg.label),
            allowed: text(&arg.allowed.join("\n")),
        })),
        closed: tool.closed,
        doc: text(&tool.doc),
        definition: text(&tool.definition),
        digest: text(&tool.digest),
        annotations: tool.annotations,
        effects: tool.effects,
        operation: tool.operation.as_ref().map(operation),
        paging: text(&tool.paging),
        call_timeout_ms: tool.call_timeout_ms,
    }
}

fn operation(operation: &ir::Operation) -> &'static ptc::Operation {
    Box::leak(Box::new(ptc::Operation {
        id: text(&operation.id),
        path: text(&operation.path),
        params: ptc::Params(operation.params().leak()),
        default_args: list(operation.default_args.iter().map(|(name, json)| (text(name), text(json)))),
        method: text(&operation.method),
        body: ptc::Body {
            media_type: text(&operation.body.media_type),
            required: operation.body.required,
            needs: operation.body.needs.join("\n").leak(),
        },
        answers: ptc::Answers(operation.answers().leak()),
    }))
}
