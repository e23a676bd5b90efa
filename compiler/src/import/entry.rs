//! Reads one entry of a client's config.

use std::ops::Range;

use super::draft::{Draft, Entry, Kind, Refusal};
use super::keys::{Raw, Setting, Unit};
use super::{Context, Field, Upstream, http, remote, stdio};
use crate::diag::{Code, quoted};
use crate::json::Json;
use crate::tree::{Node, Tree};

/// Maximum of every limit in milliseconds: one day.
const MAX_MS: f64 = 86_400_000.0;

/// The names of transports in all configs.
const KINDS: &[(&str, Kind)] = &[
    ("stdio", Kind::Stdio),
    ("local", Kind::Stdio),
    ("command", Kind::Stdio),
    ("mcp_stdio", Kind::Stdio),
    ("http", Kind::Http),
    ("https", Kind::Http),
    ("remote", Kind::Http),
    ("streamable-http", Kind::Http),
    ("streamablehttp", Kind::Http),
    ("streamable_http", Kind::Http),
    ("mcp_http", Kind::Http),
    ("sse", Kind::Sse),
    ("mcp_sse", Kind::Sse),
    ("openapi", Kind::OpenApi),
];

/// Reads an entry. Returns `None` after a finding if it does not become an upstream.
pub(super) fn read(
    context: &mut Context<'_>,
    key: &str,
    name: &str,
    place: Range<u32>,
    node: &Node,
    switched_off: bool,
) -> Option<Upstream> {
    let entry = Entry { name: name.to_owned(), place };
    if !matches!(node.value, Tree::Object(_)) {
        return left_out(context, &entry, key, "it is not an object", "");
    }
    if switched_off || is_off(node) {
        let message = format!("{} is not imported: {} has switched it off", quoted(key), context.client.label);
        context.report(Code::EntryDisabled, entry.place, message, "switch it on there, and import it again");
        return None;
    }
    let raw = Raw::read(context, node);
    if raw.is_off {
        let message = format!("{} is not imported: {} has switched it off", quoted(key), context.client.label);
        context.report(Code::EntryDisabled, entry.place, message, "switch it on there, and import it again");
        return None;
    }
    let kind = match kind(&raw) {
        Ok(kind) => kind,
        Err(why) => {
            let hint =
                "upstreams are programs that speak MCP on standard input and output, and servers that are reached over HTTP";
            return left_out(context, &entry, key, &why, hint);
        }
    };
    let mut draft = Draft::default();
    let is_http = matches!(kind, Some(Kind::Http | Kind::Sse)) || kind.is_none() && raw.url.is_some();
    let made = if kind == Some(Kind::OpenApi) {
        http::openapi(context, &entry, &raw, &mut draft);
        Ok(())
    } else if is_http {
        http::read(context, &entry, &raw, kind, &mut draft)
    } else {
        read_command(context, &entry, &raw, &mut draft)
    };
    if let Err(Refusal { why, hint }) = made {
        return left_out(context, &entry, key, &why, hint);
    }
    common(context, &raw, &mut draft);
    Some(Upstream { name: entry.name, comments: draft.comments, fields: draft.fields })
}

fn left_out(context: &mut Context<'_>, entry: &Entry, key: &str, why: &str, hint: &str) -> Option<Upstream> {
    let message = format!("{} is not imported: {why}", quoted(key));
    context.report(Code::EntryLeftOut, entry.place.clone(), message, hint);
    None
}

/// Whether an entry is switched off. Goose has the switch in the entry, and the rest in `config`.
fn is_off(node: &Node) -> bool {
    let says = |key: &str, value: bool| node.get(key).and_then(Node::as_bool) == Some(value);
    says("disabled", true) || says("enabled", false)
}

fn kind(raw: &Raw<'_>) -> Result<Option<Kind>, String> {
    let Some(given) = &raw.kind else { return Ok(None) };
    let Some(text) = given.node.as_str() else { return Err(format!("{} is not a text", quoted(&given.key))) };
    let lower = text.to_ascii_lowercase();
    match KINDS.iter().find(|(name, _)| *name == lower) {
        Some((_, kind)) => Ok(Some(*kind)),
        None => Err(format!("it is of the kind {}, which upstreams cannot be", quoted(text))),
    }
}

fn read_command(context: &mut Context<'_>, entry: &Entry, raw: &Raw<'_>, draft: &mut Draft) -> Result<(), Refusal> {
    match remote::read(raw) {
        Some(bridge) => http::bridged(context, entry, raw, &bridge, draft),
        None => stdio::read(context, entry, raw, draft),
    }
}

/// Adds what all transports have.
fn common(context: &mut Context<'_>, raw: &Raw<'_>, draft: &mut Draft) {
    let description = raw.description.as_ref().and_then(|given| given.node.as_str());
    let description = description.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    if let Some(text) = description.filter(|text| !text.is_empty() && !super::secrets::is_secret("", text)) {
        draft
            .fields
            .insert(1.min(draft.fields.len()), Field { key: "description".into(), value: Json::String(text), comments: vec![] });
    }
    tools(context, raw, draft);
    for (given, key) in [(&raw.start_timeout, "handshake_timeout_ms"), (&raw.call_timeout, "call_timeout_ms")] {
        if let Some((given, unit)) = given {
            time(context, given, *unit, key, draft);
        }
    }
    for given in &raw.verbatim {
        verbatim(context, given, draft);
    }
}

fn tools(context: &mut Context<'_>, raw: &Raw<'_>, draft: &mut Draft) {
    let names = |given: &Setting<'_>| -> Vec<String> {
        let elements = given.node.elements().unwrap_or(&[]).iter().filter_map(Node::as_str);
        // Gemini CLI permits arguments behind the name of a tool.
        elements.map(|name| name.split('(').next().unwrap_or(name).to_owned()).collect()
    };
    let excluded = raw.exclude.as_ref().map(names).unwrap_or_default();
    let mut included = raw.include.as_ref().map(names).unwrap_or_default();
    let is_all = included.iter().any(|name| name == "*");
    included.dedup();
    if let Some(given) = raw.include.as_ref().filter(|_| included.is_empty()) {
        let message = format!("{} is not carried over: it permits no tool", quoted(&given.key));
        let hint = "`include_tools` lists the tools that programs may call; remove the upstream if there are none";
        context.report(Code::SettingLeftOut, given.key_range.clone(), message, hint);
        return;
    }
    if raw.include.is_some() && !is_all {
        let mut comments = Vec::new();
        if !excluded.is_empty() {
            included.retain(|name| !excluded.contains(name));
            comments.push("without the tools that the client excludes".to_owned());
        }
        if !included.is_empty() {
            let list = included.into_iter().map(Json::String).collect();
            draft.with("include_tools", Json::Array(list), comments);
        }
    } else if let Some(given) = raw.exclude.as_ref().filter(|_| !excluded.is_empty()) {
        let message = format!("{} is not carried over: a config names the tools that are granted", quoted(&given.key));
        let hint = "list the tools that programs may call in `include_tools`";
        context.report(Code::SettingLeftOut, given.key_range.clone(), message, hint);
        draft.comments.push("the client excludes tools; `include_tools` has to list the others".to_owned());
    }
}

fn time(context: &mut Context<'_>, given: &Setting<'_>, unit: Unit, key: &str, draft: &mut Draft) {
    let number = match &given.node.value {
        Tree::Number(text) | Tree::String(text) => text.parse::<f64>().ok(),
        _ => None,
    };
    let Some(number) = number.filter(|number| *number > 0.0) else {
        let message = format!("{} is not carried over: it is not a positive number", quoted(&given.key));
        context.report(Code::SettingLeftOut, given.key_range.clone(), message, "");
        return;
    };
    let in_seconds = unit == Unit::Seconds || unit == Unit::Either && number < 1000.0;
    let ms = if in_seconds { number * 1000.0 } else { number }.clamp(1.0, MAX_MS).round();
    let comment = (unit == Unit::Either)
        .then(|| format!("{} is taken for {}", quoted(&given.key), if in_seconds { "seconds" } else { "milliseconds" }));
    draft.with(key, Json::Number(format!("{ms:.0}")), comment.into_iter().collect());
}

/// Carries a key of PtcRunner over as it is, unless it has secrets.
fn verbatim(context: &mut Context<'_>, given: &Setting<'_>, draft: &mut Draft) {
    if draft.fields.iter().any(|field| field.key == given.key) {
        return;
    }
    if given.key == "auth" {
        http::verbatim_auth(context, given, draft);
        return;
    }
    if has_secret(&given.key, given.node) {
        let message = format!("{} is not carried over: it has what looks like a secret", quoted(&given.key));
        let hint = "name the secret in `credentials` and send it with `auth`";
        context.report(Code::SettingLeftOut, given.key_range.clone(), message, hint);
        return;
    }
    draft.add(&given.key, Json::from(given.node));
}

fn has_secret(key: &str, node: &Node) -> bool {
    node.as_str().is_some_and(|text| super::secrets::is_secret(key, text))
        || node.elements().unwrap_or(&[]).iter().any(|element| key != "secret_args" && has_secret("", element))
        || node.members().iter().any(|member| has_secret(&member.key, &member.value))
}
