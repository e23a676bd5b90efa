//! Renders the catalog as one HTML page, for people who review a deployment and for people who write programs against it. The
//! page loads no other files, and all text of upstreams in it is escaped.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use minijinja::AutoEscape;
use ptc_catalog::{EffectKind, ListingLimits};
use ptc_secrets::heuristics;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::literal::shown;
use super::{RenderError, policy_sentences, template};
use crate::config::model::{Auth, HttpOptions, Sandbox, Transport};
use crate::ir::{self, Deployment};
use crate::lower::{self, text::duration};

/// The page's script, which searches, opens and closes entries. The page's content security policy allows it by digest, so that
/// no other script runs.
static SCRIPT: &str = include_str!("../../../templates/catalog.js");

/// Maximum number of allowed values of an argument that the page lists.
const LISTED: usize = 40;

#[derive(Debug, Serialize)]
struct View {
    name: String,
    compiler: String,
    catalog_digest: String,
    config_digest: String,
    tool_count: usize,
    upstreams: Vec<Upstream>,
    /// The rules of the policy. Empty without a policy.
    rules: Vec<String>,
    script: minijinja::Value,
    script_digest: String,
}

#[derive(Debug, Serialize)]
struct Upstream {
    name: String,
    anchor: String,
    description: String,
    facts: Vec<Fact>,
    tools: Vec<Tool>,
}

#[derive(Debug, Serialize)]
struct Fact {
    name: &'static str,
    value: String,
}

#[derive(Debug, Serialize)]
struct Tool {
    name: String,
    anchor: String,
    description: String,
    /// The text that the search compares, in lower case.
    search: String,
    marks: Vec<Mark>,
    args: Vec<Arg>,
    others: &'static str,
    result: String,
    request: String,
    digest: String,
    doc: String,
}

#[derive(Debug, Serialize)]
struct Mark {
    class: &'static str,
    text: &'static str,
}

#[derive(Debug, Serialize)]
struct Arg {
    name: String,
    label: String,
    needed: &'static str,
    allowed: String,
}

/// Renders one page with every upstream and tool.
///
/// # Errors
///
/// Returns [`RenderError`] if a template cannot be rendered, which is a fault of the compiler.
pub fn html(deployment: &Deployment) -> Result<String, RenderError> {
    let script = SCRIPT.trim();
    let view = View {
        name: shown(&deployment.name),
        compiler: shown(&deployment.compiler),
        catalog_digest: deployment.catalog_digest.clone(),
        config_digest: deployment.config_digest.clone(),
        tool_count: deployment.tool_count(),
        upstreams: deployment.upstreams.iter().map(upstream).collect(),
        rules: deployment.policy.as_ref().map(policy_sentences).unwrap_or_default(),
        script: minijinja::Value::from_safe_string(script.to_owned()),
        script_digest: format!("sha256-{}", STANDARD.encode(Sha256::digest(script.as_bytes()))),
    };
    template("catalog.html", include_str!("../../../templates/catalog.html.j2"), AutoEscape::Html, view)
}

fn upstream(upstream: &ir::Upstream) -> Upstream {
    Upstream {
        name: shown(&upstream.name),
        anchor: shown(&upstream.name),
        description: shown(&upstream.description),
        facts: facts(upstream),
        tools: upstream.tools.iter().map(|tool| self::tool(&upstream.name, tool)).collect(),
    }
}

/// Returns the transport of an upstream and its limits, as names and values.
fn facts(upstream: &ir::Upstream) -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut fact = |name, value: String| facts.push(Fact { name, value: shown(&value) });
    fact("transport", upstream.transport.name().to_owned());
    match &upstream.transport {
        Transport::McpStdio(stdio) => {
            fact("command", stdio.command.value.clone());
            if let Some(sandbox) = &stdio.sandbox {
                sandboxed(sandbox, &mut fact);
            }
            fact("first connection", duration(stdio.handshake_timeout_ms));
            if let Some(time) = stdio.idle_timeout_ms {
                fact("ended without a call for", duration(time));
            }
            fact("largest answer", bytes(stdio.max_response_bytes));
            fact("calls at a time", stdio.max_concurrent_calls.to_string());
            listing_limits(stdio.listing, &mut fact);
        }
        Transport::McpHttp(mcp) => {
            fact("address", heuristics::without_query(&mcp.url.value).to_owned());
            fact("first connection", duration(mcp.handshake_timeout_ms));
            http(&mcp.http, &mut fact);
            listing_limits(mcp.listing, &mut fact);
        }
        Transport::OpenApi(api) => {
            fact("address", heuristics::without_query(&api.base_url.value).to_owned());
            http(&api.http, &mut fact);
        }
    }
    for auth in lower::auth(&upstream.transport) {
        let scheme = match (auth, auth.parameter()) {
            (Auth::CustomHeader { .. } | Auth::ApiKey { .. }, Some((place, name))) => format!("{place} {name}"),
            (Auth::OAuth2(oauth), _) => {
                let scopes = if oauth.scope.is_empty() { String::new() } else { format!(" with scopes {}", oauth.scope) };
                let server = if oauth.is_discovered() { "the server that the upstream names" } else { oauth.server() };
                let client = if oauth.client_id.is_empty() { "that registers itself" } else { &oauth.client_id };
                let client =
                    if oauth.client_id.is_empty() && !oauth.grant.needs_login() { "without an identifier" } else { client };
                let whom = match &oauth.subject {
                    _ if oauth.is_on_behalf() => " on behalf of the caller".to_owned(),
                    subject if subject.is_empty() => String::new(),
                    subject => format!(" for the token of binding {subject}"),
                };
                let provider = oauth.identity_provider.as_ref().map(|provider| heuristics::without_query(provider.server()));
                let assertion = provider.map(|url| format!(", with an assertion of {url}")).unwrap_or_default();
                format!("oauth2 token of {}{scopes}, client {client}{whom}{assertion}", heuristics::without_query(server))
            }
            _ => auth.scheme().to_owned(),
        };
        // A public client has no credential.
        let source = if auth.binding().is_empty() { String::new() } else { format!(" from binding {}", auth.binding()) };
        fact("auth", format!("{scheme}{source}"));
    }
    if let Some(proxy) = upstream.transport.proxy() {
        fact("proxy", heuristics::without_query(&proxy.url.value).to_owned());
        if let Some(binding) = &proxy.auth {
            fact("auth of the proxy", format!("from binding {binding}"));
        }
        if !proxy.no_proxy.is_empty() {
            fact("without the proxy", proxy.no_proxy.join(", "));
        }
    }
    facts
}

fn listing_limits(limits: ListingLimits, fact: &mut impl FnMut(&'static str, String)) {
    fact("largest list of tools", format!("{}, {} tools", bytes(limits.max_bytes), limits.max_tools));
}

fn sandboxed(sandbox: &Sandbox, fact: &mut impl FnMut(&'static str, String)) {
    for (name, paths) in [("may read", &sandbox.read), ("may change", &sandbox.write)] {
        if !paths.is_empty() {
            fact(name, paths.iter().map(|path| path.value.as_str()).collect::<Vec<_>>().join(", "));
        }
    }
    fact("network", if sandbox.network { "permitted" } else { "denied" }.to_owned());
}

fn http(options: &HttpOptions, fact: &mut impl FnMut(&'static str, String)) {
    fact("to connect", duration(options.connect_timeout_ms));
    fact("one request", duration(options.request_timeout_ms));
    fact("largest answer", bytes(options.max_response_bytes));
    fact("calls at a time", options.max_concurrent_calls.to_string());
}

fn tool(server: &str, tool: &ir::Tool) -> Tool {
    let args: Vec<Arg> = tool.args.iter().map(arg).collect();
    let names: Vec<&str> = tool.args.iter().map(|arg| arg.name.as_str()).collect();
    Tool {
        name: shown(&tool.name),
        anchor: shown(&format!("{server}/{}", tool.name)),
        description: shown(&tool.description),
        search: shown(&format!("{server} {} {} {}", tool.name, names.join(" "), tool.doc)).to_lowercase(),
        marks: marks(tool),
        others: if tool.closed { "Other arguments are refused." } else { "Other arguments are passed on." },
        args,
        result: shown(&tool.result),
        request: tool
            .operation
            .as_ref()
            .map(|operation| shown(&format!("{} {}", operation.method, operation.path)))
            .unwrap_or_default(),
        digest: tool.digest.clone(),
        doc: shown(&tool.doc),
    }
}

fn marks(tool: &ir::Tool) -> Vec<Mark> {
    let effect = tool.effect();
    let (class, text) = match effect.kind {
        EffectKind::Read => ("good", "read-only"),
        EffectKind::Write if effect.destructive == Some(true) => ("bad", "may destroy"),
        EffectKind::Write => ("bad", "changes things"),
        EffectKind::Unknown => ("soft", "effects unknown"),
    };
    let mut marks = vec![Mark { class, text }];
    if effect.idempotent == Some(true) && !effect.is_read() {
        marks.push(Mark { class: "soft", text: "idempotent" });
    }
    marks
}

fn arg(arg: &ir::Arg) -> Arg {
    let mut allowed: Vec<&str> = arg.allowed.iter().take(LISTED).map(String::as_str).collect();
    if arg.allowed.len() > LISTED {
        allowed.push("…");
    }
    Arg {
        name: shown(&arg.name),
        label: shown(&arg.label),
        needed: if arg.required { "required" } else { "optional" },
        allowed: shown(&allowed.join(", ")),
    }
}

fn bytes(count: u64) -> String {
    const MIB: u64 = 1024 * 1024;
    if count.is_multiple_of(MIB) { format!("{} MiB", count / MIB) } else { format!("{count} bytes") }
}
