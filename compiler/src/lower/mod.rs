//! Lowers a config and a lock to the [deployment model](crate::ir).
//!
//! Everything that programs and models see of a tool is decided here, from the locked definition alone. Equal locks therefore
//! give equal catalogs.
//!
//! - [`shape`]: renders the shape of a result.
//! - [`doc`]: renders the text of `(doc "server/tool")`.
//! - [`notes`]: renders the lines of that text about arguments and fields of the result.
//! - [`example`]: the example call of a tool, and examples that schemas refuse.
//! - [`sample`]: chooses the values in the example call of that text.
//! - `summary`: summarizes a tool or an upstream in lists.
//! - [`text`]: formats prose on one line, and PTC-Lisp literals.

pub mod doc;
pub mod example;
pub mod notes;
pub mod sample;
pub mod shape;
mod summary;
pub mod text;

use std::collections::BTreeSet;

use ptc_catalog::paging::NOT_PAGED;
use ptc_catalog::{Annotations, Effect, HttpTransport, Paging, Place, Style};

use crate::config::model::{Auth, Config, Transport, Upstream as Entry};
use crate::http_token::is_token;
use crate::ir::{Arg, Body, Credential, Deployment, Operation, Param, Tool, Upstream};
use crate::json::Json;
use crate::json_schema::Schema;
use crate::lock::{Lock, LockedTool, LockedUpstream};
use crate::paging;

/// Returns the only transport that is used for an MCP upstream over HTTP. A lock file without one was written by a compiler that
/// knew only Streamable HTTP.
fn http_transport(transport: &Transport, locked: Option<&LockedUpstream>) -> Option<HttpTransport> {
    match transport {
        Transport::McpHttp(http) if http.is_sse => Some(HttpTransport::Sse),
        Transport::McpHttp(_) => Some(locked?.http_transport.unwrap_or(HttpTransport::Streamable)),
        Transport::McpStdio(_) | Transport::OpenApi(_) => None,
    }
}

/// Returns the deployment of a checked config and a lock that covers it. Stored programs are left out, since they are read from
/// files. Upstreams that the lock does not have get no tools.
pub fn deployment(config: &Config, lock: &Lock, name: &str) -> Deployment {
    let upstreams: Vec<Upstream> = config
        .upstreams
        .iter()
        .map(|(name, entry)| {
            let locked = lock.upstreams.get(name);
            Upstream {
                name: name.clone(),
                description: description(entry.description.as_deref(), locked),
                transport: with_pins(&entry.transport, locked),
                era: locked.and_then(|l| l.era),
                http_transport: http_transport(&entry.transport, locked),
                tools: locked
                    .map(|l| l.tools.iter().map(|(tool, def)| tool_of(Some(entry), name, tool, def)).collect())
                    .unwrap_or_default(),
            }
        })
        .collect();
    let used: BTreeSet<&str> = config.upstreams.values().flat_map(|u| bindings(&u.transport)).collect();
    let credentials = credentials(config, |name| used.contains(name));
    Deployment {
        name: config.name.clone().unwrap_or_else(|| name.to_owned()),
        server_name: config.name.clone().unwrap_or_default(),
        compiler: crate::VERSION.to_owned(),
        config_digest: config.digest.clone(),
        credentials,
        catalog_digest: lock.catalog_digest(),
        upstreams,
        programs: Vec::new(),
        policy: config.policy.clone(),
    }
}

/// Returns a transport with the authorization server that the lock file has, if the config has none.
fn with_pins(transport: &Transport, locked: Option<&LockedUpstream>) -> Transport {
    let mut transport = transport.clone();
    if let (Transport::McpHttp(http), Some(pinned)) = (&mut transport, locked.and_then(|locked| locked.authorization.as_ref())) {
        for auth in &mut http.http.auth {
            if let Auth::OAuth2(oauth) = auth
                && oauth.is_discovered()
            {
                oauth.pinned_issuer.clone_from(&pinned.issuer);
                oauth.pinned_resource.clone_from(&pinned.resource);
                oauth.pinned_proof = pinned.needs_proof;
            }
        }
    }
    transport
}

/// Returns the names and sources of the bindings of a config whose names satisfy `kept`.
pub fn credentials(config: &Config, kept: impl Fn(&str) -> bool) -> Vec<Credential> {
    let all = config.credentials.iter().filter(|(name, _)| kept(name));
    all.map(|(name, binding)| Credential { name: name.clone(), source: binding.source.clone() }).collect()
}

/// Lowers one locked tool.
pub fn tool(server: &str, name: &str, locked: &LockedTool) -> Tool {
    tool_of(None, server, name, locked)
}

/// Returns `call_timeout_ms` in the `operation_overrides` of an operation.
fn timeout_of_operation(locked: &LockedTool) -> Option<u64> {
    match locked.definition.get("_ptc")?.get("callTimeoutMs")? {
        Json::Number(time) => time.parse().ok(),
        _ => None,
    }
}

/// Like [`tool`], but also applies what the entry of the config says about the tool.
fn tool_of(entry: Option<&Entry>, server: &str, name: &str, locked: &LockedTool) -> Tool {
    let overriding = entry.and_then(|entry| entry.tool_overrides.get(name));
    let described = overriding.and_then(|overriding| overriding.description.as_deref());
    let described = described.map(|text| locked.definition.clone().with("description", Json::string(text)));
    let definition = described.as_ref().unwrap_or(&locked.definition);
    let call_timeout_ms = overriding.and_then(|overriding| overriding.call_timeout_ms);
    let call_timeout_ms =
        call_timeout_ms.or_else(|| timeout_of_operation(locked)).or_else(|| entry.and_then(|entry| entry.call_timeout_ms));
    let example = example::of_tool(entry, name, locked).map(|example| example.args);
    let example = example.filter(|example| example::fault(example, definition).is_none()).cloned();
    let annotations = declared(definition);
    let effects = relied_on(entry, name, definition);
    let input = definition.get("inputSchema").cloned().unwrap_or_else(Json::object);
    let operation = operation(definition);
    let (mut args, mut closed) = Schema::new(&input).arguments();
    if let Some(operation) = &operation {
        closed = true;
        optional_where_defaulted(&mut args, operation);
    }
    let prose = definition.get("description").and_then(Json::as_str).unwrap_or_default();
    let observed = locked.observed.as_ref().filter(|_| declared_output(definition).is_none());
    let schema = observed.map(|observed| &observed.schema).or_else(|| definition.get("outputSchema"));
    let result = doc::Returned {
        shape: schema.map_or_else(|| "any".to_owned(), shape::shape),
        schema,
        source: observed.map(|observed| format!(", {}", observed.source())).unwrap_or_default(),
    };
    let configured = configured_paging(entry, name, definition);
    let is_configured_off = configured.and_then(Json::as_bool) == Some(false);
    let paging = paging_of(configured, locked);
    let pages = match &paging {
        Some(paging) => Some(paging.described()),
        None if is_configured_off => None,
        None => paging::is_decided_by_answer(definition, &args).then(|| "the first answer shows how".to_owned()),
    };
    Tool {
        name: name.to_owned(),
        description: summary::summary(summary::title(name, definition), prose),
        doc: doc::doc(server, name, definition, &args, &result, &doc::Stated { effects, pages, call_timeout_ms, example }),
        result: result.shape + &result.source,
        observed: locked.observed.clone(),
        args,
        closed,
        definition: locked.canonical.clone(),
        digest: locked.digest.clone(),
        annotations,
        effects,
        operation,
        paging: if is_configured_off { NOT_PAGED.to_owned() } else { paging.map(|p| p.to_string()).unwrap_or_default() },
        call_timeout_ms,
    }
}

/// Returns the output schema that a tool declares. `None` also for a schema that says nothing about members or items, as some
/// frameworks generate for any object.
pub fn declared_output(definition: &Json) -> Option<&Json> {
    let output = definition.get("outputSchema")?;
    (!["any", "object", "array"].contains(&shape::shape(output).as_str())).then_some(output)
}

/// Returns a deployment with observed shapes as the output schemas of the tools that declare none, for checks that only warn. `None`
/// if there are no such tools.
pub fn with_observed_schemas(deployment: &Deployment) -> Option<Deployment> {
    let mut deployment = deployment.clone();
    let mut has_any = false;
    for tool in deployment.upstreams.iter_mut().flat_map(|upstream| &mut upstream.tools) {
        let Some(observed) = &tool.observed else { continue };
        let Some(definition) = Json::parse(&tool.definition).filter(|definition| declared_output(definition).is_none()) else {
            continue;
        };
        tool.definition = definition.with("outputSchema", with_observed_names_only(&observed.schema)).canonical();
        has_any = true;
    }
    has_any.then_some(deployment)
}

/// Returns an observed schema that excludes names which no answer had. The lock file has the schema without this, because other answers
/// may have further names.
fn with_observed_names_only(schema: &Json) -> Json {
    match schema {
        Json::Object(members) => {
            let inner = |(name, value): &(String, Json)| match (name.as_str(), value) {
                ("properties", Json::Object(members)) => {
                    let members = members.iter().map(|(name, schema)| (name.clone(), with_observed_names_only(schema)));
                    (name.clone(), Json::Object(members.collect()))
                }
                _ => (name.clone(), with_observed_names_only(value)),
            };
            let closed = Json::Object(members.iter().map(inner).collect());
            let is_open = closed.get("properties").is_some() && closed.get("additionalProperties").is_none();
            if is_open { closed.with("additionalProperties", Json::Bool(false)) } else { closed }
        }
        Json::Array(items) => Json::Array(items.iter().map(with_observed_names_only).collect()),
        other => other.clone(),
    }
}

/// Returns how the list of a locked tool is paged, or `None` if neither the config nor the schemas of the tool tell.
pub fn paging(entry: &Entry, name: &str, locked: &LockedTool) -> Option<Paging> {
    paging_of(configured_paging(Some(entry), name, &locked.definition), locked)
}

/// Returns what the config says about the paging of a tool: an object, or `false` for a tool that is not paged.
fn configured_paging<'a>(entry: Option<&'a Entry>, name: &str, definition: &'a Json) -> Option<&'a Json> {
    let overriding = entry.and_then(|entry| Some(&entry.tool_overrides.get(name)?.paging.as_ref()?.value));
    overriding.or_else(|| definition.get("_ptc")?.get("paging"))
}

fn paging_of(configured: Option<&Json>, locked: &LockedTool) -> Option<Paging> {
    match configured {
        Some(Json::Bool(false)) => None,
        Some(configured) => paging::configured(configured, locked.paging.as_ref()),
        None => locked.paging.clone(),
    }
}

/// Makes an argument optional if it has a default, which is sent anyway.
fn optional_where_defaulted(args: &mut [Arg], operation: &Operation) {
    for arg in args.iter_mut() {
        if operation.default_args.iter().any(|(name, _)| *name == arg.name) {
            arg.required = false;
        }
    }
    let count = args.iter().filter(|a| a.required).count();
    args.sort_by_key(|a| !a.required);
    if let Some(optional) = args.get_mut(count..) {
        optional.sort_by(|a, b| a.name.cmp(&b.name));
    }
}

/// Returns the configured description, else the beginning of the upstream's own description of itself.
fn description(configured: Option<&str>, locked: Option<&LockedUpstream>) -> String {
    let said = || {
        let locked = locked?;
        locked.instructions.as_deref().or(locked.server.as_ref().map(|s| s.name.as_str()))
    };
    summary::summary(None, configured.or_else(said).unwrap_or_default())
}

/// Returns the elements of `auth` of a transport.
pub fn auth(transport: &Transport) -> &[Auth] {
    transport.http().map_or(&[], |http| &http.auth)
}

/// Returns the credential bindings that a transport uses: of `auth`, and of its proxy.
pub(crate) fn bindings(transport: &Transport) -> impl Iterator<Item = &str> {
    let of_proxy = transport.proxy().and_then(|proxy| proxy.auth.as_deref());
    auth(transport).iter().flat_map(Auth::bindings).map(String::as_str).chain(of_proxy)
}

/// Returns the effects that a definition declares.
pub fn declared(definition: &Json) -> Annotations {
    let hint = |key| definition.get("annotations").and_then(|a| a.get(key)).and_then(Json::as_bool);
    Annotations {
        read_only: hint("readOnlyHint"),
        destructive: hint("destructiveHint"),
        idempotent: hint("idempotentHint"),
        open_world: hint("openWorldHint"),
    }
}

/// Returns the effects that are relied on. An operation has those that its method and its override give. A tool of an MCP server
/// has those that its override states, and those that it declares if the config trusts the server.
fn relied_on(entry: Option<&Entry>, name: &str, definition: &Json) -> Annotations {
    let declared = declared(definition);
    if definition.get("_ptc").is_some() {
        return declared;
    }
    let Some(entry) = entry else { return Annotations::NONE };
    let trusted = if entry.trust_annotations { declared } else { Annotations::NONE };
    let stated = entry.tool_overrides.get(name).map(|overriding| overriding.effects).unwrap_or_default();
    Annotations {
        read_only: stated.read_only.or(trusted.read_only),
        destructive: stated.destructive.or(trusted.destructive),
        idempotent: stated.idempotent.or(trusted.idempotent),
        open_world: trusted.open_world,
    }
}

/// Returns the effect of a tool of an upstream.
pub fn effect(entry: &Entry, name: &str, definition: &Json) -> Effect {
    Effect::new(relied_on(Some(entry), name, definition), definition.get("_ptc").map(method))
}

/// Returns the method of an operation, which is GET where its `_ptc` member names none.
fn method(ptc: &Json) -> &str {
    ptc.get("method").and_then(Json::as_str).filter(|method| is_token(method)).unwrap_or("GET")
}

/// Reads the `_ptc` member that [`openapi`](crate::openapi) puts into a definition.
fn operation(definition: &Json) -> Option<Operation> {
    let ptc = definition.get("_ptc")?;
    let text = |node: &Json, key| node.get(key).and_then(Json::as_str).map(str::to_owned);
    let params = ptc.get("params").map(Json::elements).unwrap_or_default();
    let mut default_args: Vec<(String, String)> = ptc
        .get("defaultArgs")
        .map(Json::members)
        .unwrap_or_default()
        .iter()
        .map(|(name, value)| (name.clone(), value.canonical()))
        .collect();
    default_args.sort();
    Some(Operation {
        id: text(ptc, "operationId")?,
        path: text(ptc, "path")?,
        params: params.iter().filter_map(param).collect(),
        default_args,
        types: lines(ptc, "types"),
        headers: lines(ptc, "headers"),
        method: method(ptc).to_owned(),
        body: Body {
            media_type: text(ptc, "body").filter(|media| !media.contains(char::is_control)).unwrap_or_default(),
            required: ptc.get("bodyRequired").and_then(Json::as_bool) == Some(true),
            needs: lines(ptc, "bodyNeeds"),
        },
    })
}

/// The texts of a list that have one line each.
pub(super) fn lines(node: &Json, key: &str) -> Vec<String> {
    let texts = node.get(key).map(Json::elements).unwrap_or_default().iter().filter_map(Json::as_str);
    texts.filter(|text| !text.contains(char::is_control)).map(str::to_owned).collect()
}

fn param(node: &Json) -> Option<Param> {
    let text = |key| node.get(key).and_then(Json::as_str);
    let line = |key| text(key).filter(|name| !name.contains(char::is_control));
    Some(Param {
        name: line("name")?.to_owned(),
        arg: line("arg").or_else(|| line("name"))?.to_owned(),
        place: Place::named(text("in")?)?,
        style: Style::named(text("style")?)?,
        explode: node.get("explode").and_then(Json::as_bool).unwrap_or(false),
        allow_reserved: node.get("allowReserved").and_then(Json::as_bool).unwrap_or(false),
        media_type: line("contentType").unwrap_or_default().to_owned(),
    })
}
