//! Finds the pins that a lock lacks for a config, and merges new ones into it.

use std::collections::{BTreeMap, BTreeSet};

use ptc_catalog::{Era, HttpTransport};

use crate::config::model::{Config, SchemaSource, Spanned, Transport, Upstream};
use crate::diag::{Code, Diagnostic, Diagnostics, Subject, quoted, quoted_list, suggest};
use crate::drift;
use crate::json::Json;
use crate::lock::{Address, Authorization, Lock, LockedTool, LockedUpstream, Server};
use crate::lower::example;
use crate::openapi;
use crate::source::Span;

/// The answer of an MCP upstream to `tools/list`.
#[derive(Debug, Clone)]
pub struct Listing {
    /// The protocol era.
    pub era: Era,
    /// The transport, if it is one of the two over HTTP.
    pub http_transport: Option<HttpTransport>,
    /// Name and version of the server.
    pub server: Option<Server>,
    /// The server's instructions for models.
    pub instructions: Option<String>,
    /// The definitions in the server's order.
    pub tools: Vec<Json>,
}

/// A pin that requires a query of an upstream or of the host of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingPin {
    /// The upstream.
    pub upstream: String,
    /// The query.
    pub what: Query,
    /// Why the lock is not sufficient, as a clause: "is not in the lock file".
    pub why: String,
}

/// A query for a missing pin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Query {
    /// `tools/list` of an MCP server.
    Tools,
    /// The document behind a `schema_url`.
    Document,
}

/// Returns the pins that a lock for `config` lacks. Upstreams with a `schema_file` never lack one, because every build reads
/// their document.
pub fn missing_pins(config: &Config, lock: &Lock) -> Vec<MissingPin> {
    config
        .upstreams
        .iter()
        .filter_map(|(name, upstream)| {
            let (what, why) = missing_pin(upstream, lock.upstreams.get(name))?;
            Some(MissingPin { upstream: name.clone(), what, why })
        })
        .collect()
}

/// Warns of a lock file of an older compiler, which does not have how upstreams are reached or which authorization servers they name, so
/// that a change of that cannot be noticed.
pub fn warn_without_addresses(config: &Config, config_path: &str, lock: &Lock, diagnostics: &mut Diagnostics) {
    let locked = |name: &String| lock.upstreams.get(name);
    let without_address = |(name, upstream): &(&String, &Upstream)| {
        locked(name).is_some_and(|locked| locked.address.is_none()) && Address::from_transport(&upstream.transport).is_some()
    };
    let without_authorization = |(name, upstream): &(&String, &Upstream)| {
        locked(name).is_some_and(|locked| locked.authorization.is_none()) && Authorization::is_found(&upstream.transport)
    };
    let reached = |names: &str, verb: &str| format!("how {names} {verb} reached");
    warn_without(config, config_path, &without_address, &reached, diagnostics);
    let authorized = |names: &str, _: &str| format!("the authorization server of {names}");
    warn_without(config, config_path, &without_authorization, &authorized, diagnostics);
}

/// Notes upstreams whose config has another authorization server or resource than the lock file. A change that was accepted there is not
/// drift any more, and logins still go to the server of the config.
pub fn note_other_servers(config: &Config, lock: &Lock, diagnostics: &mut Diagnostics) {
    for (name, upstream) in &config.upstreams {
        let difference = lock.upstreams.get(name).and_then(|locked| drift::config_difference(upstream, locked));
        let Some(difference) = difference else { continue };
        let message = format!("the config of {} has {difference}", quoted(name));
        let hint = "logins and tokens are those of the config: ask the operator of the upstream, and write the new value into the config";
        diagnostics.push(Diagnostic::new(Code::OtherAuthorizationServer, message).at(upstream.place.clone(), "").hint(hint));
    }
}

/// Warns of upstreams of which the lock file lacks something. `what` describes it, from the names and "is" or "are".
fn warn_without(
    config: &Config,
    config_path: &str,
    lacks: &dyn Fn(&(&String, &Upstream)) -> bool,
    what: &dyn Fn(&str, &str) -> String,
    diagnostics: &mut Diagnostics,
) {
    let mut lacking = config.upstreams.iter().filter(lacks);
    let Some((first, upstream)) = lacking.next() else { return };
    let others = lacking.count();
    let more = if others == 0 { String::new() } else { format!(" and {others} more") };
    let verb = if others == 0 { "is" } else { "are" };
    let message = format!("the lock file does not have {}", what(&format!("{}{more}", quoted(first)), verb));
    diagnostics.push(
        Diagnostic::new(Code::LockWithoutAddress, message)
            .at(upstream.place.clone(), "a change of this would not be noticed")
            .hint(format!("`ptc-compile update {config_path}` adds it")),
    );
}

fn missing_pin(upstream: &Upstream, locked: Option<&LockedUpstream>) -> Option<(Query, String)> {
    let what = match &upstream.transport {
        Transport::OpenApi(entry) => match entry.schema.value {
            SchemaSource::File(_) => return None,
            SchemaSource::Url(_) => Query::Document,
        },
        _ => Query::Tools,
    };
    let Some(locked) = locked else { return Some((what, "is not in the lock file".to_owned())) };
    let transport = upstream.transport.name();
    if locked.transport != transport {
        return Some((what, format!("is locked as `{}`, the config says `{transport}`", locked.transport)));
    }
    if let Transport::OpenApi(entry) = &upstream.transport {
        let same = locked.document.as_ref().is_some_and(|d| d.selection == openapi::selection(entry));
        return (!same).then(|| (what, "selects other operations than the lock file has".to_owned()));
    }
    if let Some(now) = Address::from_transport(&upstream.transport)
        && let Some(difference) = locked.address.as_ref().and_then(|locked| now.difference(locked))
    {
        return Some((what, difference));
    }
    match &upstream.include_tools {
        None if !locked.all_tools => Some((what, "grants all tools, the lock file has a selection".to_owned())),
        None => None,
        Some(wanted) => {
            let wanted = wanted.iter().map(|tool| tool.value.as_str());
            let missing: Vec<&str> = wanted.filter(|tool| !locked.tools.contains_key(*tool)).collect();
            let verb = if missing.len() == 1 { "is" } else { "are" };
            let why = || format!("grants {}, which {verb} not in the lock file", quoted_list(missing.iter().copied()));
            (!missing.is_empty()).then(|| (what, why()))
        }
    }
}

/// Merges the lock for a config from new listings, new documents and the old lock, without tools that are no longer granted. All
/// queries of [`missing_pins`] must be answered; an upstream without a pin is left out.
pub fn merge(config: &Config, old: &Lock, fresh: BTreeMap<String, LockedUpstream>) -> Lock {
    let mut fresh = fresh;
    let policy_digest = config.policy.as_ref().map(|policy| policy.digest.clone());
    let mut lock = Lock { policy_digest, ..Lock::default() };
    for (name, upstream) in &config.upstreams {
        let pinned = old.upstreams.get(name);
        let Some(mut locked) = fresh.remove(name).or_else(|| pinned.cloned()) else { continue };
        for (tool, locked) in &mut locked.tools {
            let Some(known) = pinned.and_then(|pinned| pinned.tools.get(tool)) else { continue };
            if known.digest == locked.digest {
                locked.paging.clone_from(&known.paging);
            }
        }
        if let Some(pinned) = pinned {
            keep_observations(pinned, &mut locked);
        }
        if !Authorization::is_pinned(&upstream.transport) {
            locked.authorization = None;
        } else if locked.authorization.is_none() && !Authorization::is_found(&upstream.transport) {
            // An upstream at the same address that does not answer now, or has no metadata now, has not named another server.
            let same = pinned.filter(|pinned| pinned.address == locked.address);
            locked.authorization = same.and_then(|pinned| pinned.authorization.clone());
        }
        if let Some(wanted) = &upstream.include_tools {
            let wanted: BTreeSet<&str> = wanted.iter().map(|tool| tool.value.as_str()).collect();
            locked.tools.retain(|tool, _| wanted.contains(tool.as_str()));
            locked.all_tools = false;
        }
        lock.upstreams.insert(name.clone(), locked);
    }
    lock
}

/// Copies what was observed of tools: the shapes of results, if the tool is called as before, and the example of a call, if the schema
/// of a changed definition still permits it. Of tools that are called as before, the descriptions, those of their arguments, and the output
/// schemas may differ.
pub fn keep_observations(pinned: &LockedUpstream, locked: &mut LockedUpstream) {
    let request = |tool: &LockedTool| {
        let [input, operation] = ["inputSchema", "_ptc"].map(|key| tool.definition.get(key));
        (input.map(drift::without_annotations), operation.cloned())
    };
    for (name, tool) in &mut locked.tools {
        let Some(known) = pinned.tools.get(name) else { continue };
        if known.observed.is_some() && request(known) == request(tool) {
            tool.observed.clone_from(&known.observed);
        }
        if let Some(example) = &known.example
            && (known.digest == tool.digest || example::fault(example, &tool.definition).is_none())
        {
            tool.example = Some(example.clone());
        }
    }
}

/// Returns the tools whose recorded example only the old lock has, as upstream and tool.
pub fn dropped_examples<'l>(old: &'l Lock, new: &'l Lock) -> impl Iterator<Item = (&'l str, &'l str)> {
    new.upstreams.iter().flat_map(|(upstream, now)| {
        let had = |tool: &str| old.upstreams.get(upstream).and_then(|was| was.tools.get(tool)?.example.as_ref()).is_some();
        let dropped = now.tools.iter().filter(move |(name, tool)| tool.example.is_none() && had(name));
        dropped.map(|(name, _)| (upstream.as_str(), name.as_str()))
    })
}

/// Selects the granted tools of a listing.
pub fn select_tools(name: &str, upstream: &Upstream, listing: Listing, diagnostics: &mut Diagnostics) -> LockedUpstream {
    if listing.tools.is_empty() {
        let message = format!("the upstream `{name}` offers no tools");
        diagnostics.push(Diagnostic::new(Code::NoTools, message).at(upstream.place.clone(), "nothing to call"));
    }
    let wanted: Option<BTreeSet<&str>> =
        upstream.include_tools.as_ref().map(|list| list.iter().map(|tool| tool.value.as_str()).collect());
    let mut offered: BTreeMap<String, Json> = BTreeMap::new();
    // Names of tools that are already reported.
    let mut broken = BTreeSet::new();
    for (at, tool) in listing.tools.into_iter().enumerate() {
        // Ignore malformed tools that are not granted. A duplicate of a granted name still matters.
        if let (Some(wanted), Some(tool_name)) = (&wanted, tool.get("name").and_then(Json::as_str))
            && !wanted.contains(tool_name)
        {
            offered.entry(tool_name.to_owned()).or_insert(tool);
            continue;
        }
        match check_definition(&tool) {
            Ok(tool_name) if offered.contains_key(&tool_name) => diagnostics.push(
                Diagnostic::new(Code::BadListing, format!("the upstream `{name}` offers two tools named `{tool_name}`"))
                    .about(Subject::upstream(name).tool(&tool_name))
                    .at(upstream.place.clone(), ""),
            ),
            Ok(tool_name) => {
                offered.insert(tool_name, tool);
            }
            Err(reason) => {
                broken.extend(tool.get("name").and_then(Json::as_str).map(str::to_owned));
                diagnostics.push(
                    Diagnostic::new(Code::BadListing, format!("tool {} of the upstream `{name}` {reason}", at + 1))
                        .at(upstream.place.clone(), ""),
                );
            }
        }
    }
    for wanted in upstream.include_tools.iter().flatten() {
        if !offered.contains_key(&wanted.value) && !broken.contains(&wanted.value) {
            diagnostics.push(not_offered(name, wanted, &offered));
        }
    }
    let granted = |tool: &str| wanted.as_ref().is_none_or(|wanted| wanted.contains(tool));
    LockedUpstream {
        transport: upstream.transport.name().to_owned(),
        address: Address::from_transport(&upstream.transport),
        // The listing does not have it.
        authorization: None,
        era: Some(listing.era),
        http_transport: listing.http_transport,
        server: listing.server,
        instructions: listing.instructions,
        all_tools: upstream.include_tools.is_none(),
        document: None,
        tools: offered.into_iter().filter(|(tool, _)| granted(tool)).map(|(tool, def)| (tool, LockedTool::new(def))).collect(),
    }
}

/// Returns the name of a valid definition, or the fault of an invalid one.
fn check_definition(tool: &Json) -> Result<String, String> {
    let Json::Object(_) = tool else { return Err("is not an object".to_owned()) };
    let Some(name) = tool.get("name").and_then(Json::as_str).filter(|n| !n.is_empty()) else {
        return Err("has no name".to_owned());
    };
    match tool.get("inputSchema") {
        Some(input @ Json::Object(_)) => match input_fault(input) {
            None => Ok(name.to_owned()),
            Some(what) => Err(format!("(`{name}`) has an inputSchema {what}")),
        },
        Some(_) => Err(format!("(`{name}`) has an inputSchema that is not an object")),
        None => Err(format!("(`{name}`) has no inputSchema")),
    }
}

/// Returns why no arguments can match an input schema. Arguments are always an object.
fn input_fault(input: &Json) -> Option<String> {
    let is_object = |kind: &Json| kind.as_str() == Some("object");
    match input.get("type") {
        Some(kind) if !is_object(kind) && !kind.elements().iter().any(is_object) => {
            return Some(format!("of the type {}, and arguments are an object", kind.canonical()));
        }
        _ => {}
    }
    let properties = input.get("properties").filter(|properties| !matches!(properties, Json::Object(_)));
    properties.map(|_| "whose `properties` are not an object".to_owned())
}

fn not_offered(name: &str, wanted: &Spanned<String>, offered: &BTreeMap<String, Json>) -> Diagnostic {
    let message = format!("the upstream `{name}` offers no tool `{}`", wanted.value);
    let diagnostic = Diagnostic::new(Code::ToolNotOffered, message)
        .about(Subject::upstream(name).tool(&wanted.value))
        .at(wanted.place.clone(), "");
    match suggest::hint(&wanted.value, "tool", offered.keys().map(String::as_str)) {
        Some(hint) => diagnostic.hint(hint),
        None => diagnostic,
    }
}

/// Returns a finding if the lock file has another policy than the config. `config_path` is for the command in the hint.
pub fn policy_change(config: &Config, config_path: &str, old: &Lock, new: &Lock) -> Option<Diagnostic> {
    let message = match (&old.policy_digest, &new.policy_digest) {
        (before, after) if before == after => return None,
        (None, _) => "the lock file does not have the policy of the config",
        (_, None) => "the lock file has a policy, and the config has none",
        _ => "the lock file has another policy than the config",
    };
    let place = match &config.policy {
        Some(policy) => policy.place.clone(),
        None => Span { file: config.file, range: 0..0 },
    };
    let hint = format!("`ptc-compile update {config_path}` pins the policy; review the change and commit the lock file");
    Some(Diagnostic::new(Code::LockStale, message).at(place, "").hint(hint))
}

/// Returns one finding for each upstream whose pinned tools or own description would change, and one if the policy would.
/// `config_path` is for the command in the hints.
pub fn changes(config: &Config, config_path: &str, old: &Lock, new: &Lock) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = policy_change(config, config_path, old, new).into_iter().collect();
    for (name, upstream) in &config.upstreams {
        let (before, after) = (old.upstreams.get(name), new.upstreams.get(name));
        let changes = drift::changes(name, upstream, before, after);
        let what = match changes.tools.iter().next() {
            None if changes.is_empty() => continue,
            None => "describes itself differently than in the lock file".to_owned(),
            Some((tool, _)) if changes.tools.len() == 1 => {
                let has = |side: Option<&LockedUpstream>| side.is_some_and(|upstream| upstream.tools.contains_key(tool));
                match (has(before), has(after)) {
                    (false, _) => format!("now has `{tool}`, which is not in the lock file"),
                    (_, false) => format!("no longer has `{tool}`, which is in the lock file"),
                    _ => format!("now has another definition of `{tool}` than the lock file"),
                }
            }
            Some(_) => {
                format!("now has other tools than the lock file: {}", drift::counts(&changes))
            }
        };
        let about = Subject::upstream(name).change(&what);
        let about = match changes.tools.keys().next() {
            Some(tool) if changes.tools.len() == 1 => about.tool(tool),
            _ => about,
        };
        found.push(
            Diagnostic::new(Code::LockStale, format!("the upstream `{name}` {what}"))
                .about(about)
                .at(upstream.place.clone(), "")
                .hint(drift::update_hint(config_path, name)),
        );
    }
    found
}
