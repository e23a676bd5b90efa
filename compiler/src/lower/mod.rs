//! From config and lock to the [deployment model](crate::ir).
//!
//! Everything that a program or a model will see of a tool is decided here, and only from the locked definition: the same
//! lock gives the same catalog.
//!
//! - [`schema`]: JSON Schema read for arguments, types and bounds.
//! - [`shape`]: the shape of a result.
//! - [`doc`]: the text of `(doc "server/tool")`.
//! - [`notes`]: the lines of that text on arguments and on fields of the result.
//! - [`sample`]: the values of the call in that text.
//! - [`paging`]: how the list of a tool is paged.
//! - [`text`]: one-line prose, PTC-Lisp literals.

pub mod doc;
pub mod notes;
pub mod paging;
pub mod sample;
pub mod schema;
pub mod shape;
pub mod text;

use std::collections::BTreeSet;

use ptc_catalog::paging::NOT_PAGED;
use ptc_catalog::{Annotations, Place, Style};

use crate::config::model::{Auth, Config, Transport};
use crate::ir::{Arg, Credential, Deployment, Json, Operation, Param, Tool, Upstream};
use crate::lock::{Lock, LockedTool, LockedUpstream};

/// The deployment of a checked config and a lock that covers it, without stored programs: those are read from files. Upstreams that the lock does not know have no tools.
pub fn deployment(config: &Config, lock: &Lock, name: &str, config_digest: &str) -> Deployment {
    let upstreams: Vec<Upstream> = config
        .upstreams
        .iter()
        .map(|(name, entry)| {
            let locked = lock.upstreams.get(name);
            Upstream {
                name: name.clone(),
                description: description(entry.description.as_deref(), locked),
                transport: entry.transport.clone(),
                era: locked.and_then(|l| l.era),
                tools: locked
                    .map(|l| {
                        l.tools
                            .iter()
                            .map(|(tool, def)| {
                                self::tool_with(name, tool, def, entry.tool_paging.get(tool).map(|paging| &paging.value))
                            })
                            .collect()
                    })
                    .unwrap_or_default(),
            }
        })
        .collect();
    let used: BTreeSet<&str> = config.upstreams.values().flat_map(|u| auth(&u.transport)).map(binding).collect();
    let credentials = credentials(config, |name| used.contains(name));
    Deployment {
        name: name.to_owned(),
        compiler: crate::VERSION.to_owned(),
        config_digest: config_digest.to_owned(),
        credentials,
        catalog_digest: lock.catalog_digest(),
        upstreams,
        programs: Vec::new(),
    }
}

/// Bindings of a config, without their values.
pub fn credentials(config: &Config, kept: impl Fn(&str) -> bool) -> Vec<Credential> {
    let all = config.credentials.iter().filter(|(name, _)| kept(name));
    all.map(|(name, binding)| Credential { name: name.clone(), source: binding.source.clone() }).collect()
}

/// One tool of a definition.
pub fn tool(server: &str, name: &str, locked: &LockedTool) -> Tool {
    tool_with(server, name, locked, None)
}

/// The same with what the config says of its pages.
fn tool_with(server: &str, name: &str, locked: &LockedTool, paging: Option<&Json>) -> Tool {
    let definition = &locked.definition;
    let input = definition.get("inputSchema").cloned().unwrap_or_else(Json::object);
    let operation = operation(definition);
    let (mut args, mut closed) = schema::Schema::new(&input).arguments();
    if let Some(operation) = &operation {
        closed = true;
        optional_where_defaulted(&mut args, operation);
    }
    let prose = definition.get("description").and_then(Json::as_str).or_else(|| definition.get("title").and_then(Json::as_str));
    let result = definition.get("outputSchema").map_or_else(|| "any".to_owned(), shape::shape);
    let configured = paging.or_else(|| definition.get("_ptc")?.get("paging"));
    let inferred = locked.paging.clone();
    let is_configured_off = configured.and_then(Json::as_bool) == Some(false);
    let paging = match configured {
        Some(configured) => paging::configured(configured, inferred.as_ref()),
        None => inferred,
    };
    let pages = match &paging {
        Some(paging) => Some(paging.described()),
        None if is_configured_off => None,
        None => paging::is_decided_by_answer(definition, &args).then(|| "the first answer tells how".to_owned()),
    };
    Tool {
        name: name.to_owned(),
        description: text::one_line(prose.unwrap_or_default(), text::SHORT),
        doc: doc::doc(server, name, definition, &args, &result, pages.as_deref()),
        result,
        args,
        closed,
        definition: locked.canonical.clone(),
        digest: locked.digest.clone(),
        annotations: annotations(definition),
        operation,
        paging: if is_configured_off { NOT_PAGED.to_owned() } else { paging.map(|p| p.to_string()).unwrap_or_default() },
    }
}

/// An argument that is sent anyway need not be given.
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

/// What is configured, else the first words that the upstream says of itself.
fn description(configured: Option<&str>, locked: Option<&LockedUpstream>) -> String {
    let said = || {
        let locked = locked?;
        locked.instructions.as_deref().or(locked.server.as_ref().map(|s| s.name.as_str()))
    };
    configured.map_or_else(|| text::one_line(said().unwrap_or_default(), text::SHORT), |d| text::one_line(d, text::SHORT))
}

/// The emitters of a transport.
pub fn auth(transport: &Transport) -> &[Auth] {
    match transport {
        Transport::McpStdio(_) => &[],
        Transport::McpHttp(http) => &http.http.auth,
        Transport::OpenApi(api) => &api.http.auth,
    }
}

/// The binding that an emitter sends.
pub fn binding(auth: &Auth) -> &str {
    match auth {
        Auth::Bearer { binding } | Auth::Basic { binding } | Auth::CustomHeader { binding, .. } => binding,
    }
}

fn annotations(definition: &Json) -> Annotations {
    let hint = |key| definition.get("annotations").and_then(|a| a.get(key)).and_then(Json::as_bool);
    Annotations {
        read_only: hint("readOnlyHint"),
        destructive: hint("destructiveHint"),
        idempotent: hint("idempotentHint"),
        open_world: hint("openWorldHint"),
    }
}

/// The `_ptc` member that [`openapi`](crate::openapi) puts into a definition.
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
    })
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
    })
}
