//! Makes an upstream of an entry with a URL.

use std::ops::Range;

use url::Url;

use super::Context;
use super::draft::{Draft, Entry, Kind, Refusal, refuse};
use super::headers::{Sent, auth_element, bearer, binding_name, header, replaced, send, source, variable_source};
use super::keys::{Raw, Setting};
use super::remote::Bridge;
use super::secrets::{self, variable_name};
use super::text::{Part, parts};
use super::words::{plain, resolve};
use crate::clients::Client;
use crate::config::is_loopback;
use crate::config::placeholder::is_variable;
use crate::diag::{Code, quoted};
use crate::json::Json;
use crate::tree::Node;

/// The names of the transports in the result.
const STREAMABLE_HTTP: &str = "mcp_http";
const HTTP_SSE: &str = "mcp_sse";

/// Reads an entry with a URL.
pub(super) fn read(
    context: &mut Context<'_>,
    entry: &Entry,
    raw: &Raw<'_>,
    kind: Option<Kind>,
    draft: &mut Draft,
) -> Result<(), Refusal> {
    let Some(given) = raw.url.as_ref() else {
        return refuse("it is reached over HTTP and has no URL", "");
    };
    let Some(text) = given.node.as_str() else {
        return refuse("its URL is not a text", "");
    };
    let mut sent = Sent::default();
    let headers: Vec<(String, String, Range<u32>)> = raw
        .headers
        .iter()
        .filter_map(|member| Some((member.key.to_string(), member.value.as_str()?.to_owned(), member.key_range.clone())))
        .collect();
    let is_sse = match kind {
        Some(kind) => Some(kind == Kind::Sse),
        // Gemini CLI has another key for Streamable HTTP.
        None if context.client.client == Client::Gemini && given.key == "url" => Some(true),
        None if given.key == "httpUrl" || context.client.client == Client::Codex => Some(false),
        None => None,
    };
    write(context, entry, text, given.node, is_sse, headers, &mut sent, raw, draft)
}

/// Reads an entry whose command opens a URL.
pub(super) fn bridged(
    context: &mut Context<'_>,
    entry: &Entry,
    raw: &Raw<'_>,
    bridge: &Bridge<'_>,
    draft: &mut Draft,
) -> Result<(), Refusal> {
    let text = bridge.url.as_str().unwrap_or_default();
    let mut comments = vec![format!("opened without {}, which the client starts for it", quoted(bridge.package))];
    if bridge.headers.is_empty() {
        comments.push(format!(
            "{} signs in with OAuth where the server asks for it; upstreams do not: if calls are refused, send a token with `auth`",
            quoted(bridge.package)
        ));
    }
    for other in &bridge.others {
        let message = format!("an argument of {} is not carried over", quoted(bridge.package));
        context.report(Code::SettingLeftOut, other.range.clone(), message, "");
    }
    // Values of `env` are what the bridge puts in place of its own placeholders.
    let value_of = |name: &str| raw.env.iter().find(|member| &*member.key == name).and_then(|member| member.value.as_str());
    let fill = |text: &str| -> String {
        parts(text)
            .into_iter()
            .map(|part| match part {
                Part::Variable(name, default) => match value_of(&name) {
                    Some(value) => value.to_owned(),
                    None => default.unwrap_or_else(|| format!("${{{name}}}")),
                },
                Part::Text(text) => text,
                Part::Input(id) => format!("${{input:{id}}}"),
                Part::Folder => "${workspaceFolder}".to_owned(),
                Part::File(path) => format!("${{file:{path}}}"),
                Part::Unknown(inner) => format!("${{{inner}}}"),
            })
            .collect()
    };
    let headers = bridge.headers.iter().map(|(name, value, node)| (name.clone(), fill(value), node.range.clone())).collect();
    let mut sent = Sent { comments, ..Sent::default() };
    write(context, entry, &fill(text), bridge.url, bridge.is_sse.then_some(true), headers, &mut sent, raw, draft)
}

#[expect(clippy::too_many_arguments, reason = "two callers, each with the parts that it has found")]
fn write(
    context: &mut Context<'_>,
    entry: &Entry,
    text: &str,
    node: &Node,
    is_sse: Option<bool>,
    headers: Vec<(String, String, Range<u32>)>,
    sent: &mut Sent,
    raw: &Raw<'_>,
    draft: &mut Draft,
) -> Result<(), Refusal> {
    let mut comments = std::mem::take(&mut sent.comments);
    let url = address(context, entry, text, node, sent, &mut comments)?;
    let parsed = Url::parse(&url).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.host().is_some());
    let Some(parsed) = parsed else {
        return refuse("its URL is not an `http` or `https` URL", "");
    };
    let transport = match is_sse {
        Some(true) => HTTP_SSE,
        None if parsed.path().trim_end_matches('/').ends_with("/sse") => {
            draft
                .comments
                .push("the path of the URL ends in `/sse`, so that HTTP+SSE is taken; Streamable HTTP is `mcp_http`".to_owned());
            HTTP_SSE
        }
        _ => STREAMABLE_HTTP,
    };
    bearer(context, entry, raw, sent);
    for (name, value, range) in headers {
        header(context, entry, &name, &value, range, sent);
    }
    for member in &raw.env_headers {
        let variable = member.value.as_str().unwrap_or_default();
        if is_variable(variable) {
            send(context, entry, &member.key, &variable_source(variable), None, member.key_range.clone(), sent);
        }
    }
    draft.add("transport", Json::string(transport));
    draft.with("url", Json::String(url), comments);
    insecure(context, entry, node, &parsed, !sent.auth.is_empty(), draft);
    finish(std::mem::take(sent), draft);
    Ok(())
}

fn finish(sent: Sent, draft: &mut Draft) {
    let Sent { auth, headers, comments } = sent;
    if auth.is_empty() {
        draft.comments.extend(comments);
    } else {
        draft.with("auth", Json::Array(auth), comments);
    }
    if !headers.is_empty() {
        draft.add("static_headers", Json::Object(headers));
    }
}

/// Reads an `openapi` entry of PtcRunner. Its other keys are carried over as they are.
pub(super) fn openapi(context: &mut Context<'_>, entry: &Entry, raw: &Raw<'_>, draft: &mut Draft) {
    draft.add("transport", Json::string("openapi"));
    let mut sent = Sent::default();
    for member in &raw.headers {
        if let Some(value) = member.value.as_str() {
            header(context, entry, &member.key, value, member.key_range.clone(), &mut sent);
        }
    }
    finish(sent, draft);
}

/// Returns the URL. Secrets in its query become credentials.
fn address(
    context: &mut Context<'_>,
    entry: &Entry,
    text: &str,
    node: &Node,
    sent: &mut Sent,
    comments: &mut Vec<String>,
) -> Result<String, Refusal> {
    let text = text.trim();
    let (text, fragment) = text.split_once('#').map_or((text, None), |(text, fragment)| (text, Some(fragment)));
    if fragment.is_some() {
        comments.push("without the fragment, which is not sent".to_owned());
    }
    let (base, query) = text.split_once('?').map_or((text, ""), |(base, query)| (base, query));
    let resolved = resolve(context, entry, "", base)?;
    let Some(mut base) = plain(&resolved.pieces) else {
        let hint = "the URL of an upstream is fixed when the binary is built: write it in full, and import it again";
        return refuse("its URL has a placeholder", hint);
    };
    comments.extend(resolved.comments);
    user(context, entry, node, &mut base, sent);
    let path = base.split_once("://").map_or(base.as_str(), |(_, rest)| rest).split_once('/').map_or("", |(_, path)| path);
    if secrets::in_argument("", path).is_some() {
        let hint = "a URL is written into the binary; ask the service for a URL with the secret in a header";
        return refuse("its URL has what looks like a secret in its path", hint);
    }
    let mut kept = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let is_fixed = parts(value).iter().all(|part| matches!(part, Part::Text(_)));
        if is_fixed && !secrets::is_secret(name, value) {
            kept.push(pair.to_owned());
            continue;
        }
        let (source, comment) = source(context, entry, name, value, node.range.clone())?;
        let binding = context.bind(&binding_name(entry, name), source, comment);
        sent.auth.push(Json::Object(vec![
            ("scheme".into(), Json::string("api_key")),
            ("binding".into(), Json::String(binding)),
            ("in".into(), Json::string("query")),
            ("name".into(), Json::string(name)),
        ]));
        sent.comments.push(format!("{} was in the query of the URL", quoted(name)));
    }
    Ok(if kept.is_empty() { base } else { format!("{base}?{}", kept.join("&")) })
}

/// Takes `user:password@` out of a URL.
fn user(context: &mut Context<'_>, entry: &Entry, node: &Node, base: &mut String, sent: &mut Sent) {
    let Some((scheme, rest)) = base.split_once("://") else { return };
    let end = rest.find('/').unwrap_or(rest.len());
    let Some(at) = rest.get(..end).and_then(|authority| authority.rfind('@')) else { return };
    let pair = rest.get(..at).unwrap_or_default().to_owned();
    let without = format!("{scheme}://{}", rest.get(at + 1..).unwrap_or_default());
    let wanted = format!("{}_USER_PASSWORD", variable_name(&entry.name));
    let source = replaced(context, entry, &wanted, &pair, node.range.clone(), "user-password");
    let binding = context.bind(&format!("{}-user-password", entry.name), source, Some("holds `user:password`".to_owned()));
    sent.auth.push(auth_element("basic", binding));
    sent.comments.push("user and password were in the URL".to_owned());
    *base = without;
}

/// Permits a URL without TLS on this machine. Elsewhere the user decides.
fn insecure(context: &mut Context<'_>, entry: &Entry, node: &Node, url: &Url, sends_auth: bool, draft: &mut Draft) {
    if url.scheme() != "http" {
        return;
    }
    if is_loopback(url) {
        draft.with("allow_insecure_http", Json::Bool(true), vec!["the server is on this machine".to_owned()]);
        if sends_auth {
            draft.add("allow_insecure_auth", Json::Bool(true));
        }
        return;
    }
    let message = format!("the URL of {} does not use TLS, which the result does not permit", quoted(&entry.name));
    let hint = "use `https://`, or write \"allow_insecure_http\": true for a network that you trust";
    context.report(Code::NeedsDecision, node.range.clone(), message, hint);
    draft.comments.push("the URL does not use TLS: use `https://`, or permit it for a network that you trust".to_owned());
}

/// Carries `auth` of PtcRunner over, with the credentials that it names.
pub(super) fn verbatim_auth(context: &mut Context<'_>, given: &Setting<'_>, draft: &mut Draft) {
    let bindings = context.bindings.clone();
    let mut auth_elements = Vec::new();
    for node in given.node.elements().unwrap_or(&[]) {
        let mut auth_element = Json::from(node);
        let name = node.get("binding").and_then(Node::as_str).unwrap_or_default();
        let Some(credential) = bindings.as_ref().and_then(|bindings| bindings.get(name)) else {
            let message = format!("{} is not carried over: there is no credential {}", quoted(&given.key), quoted(name));
            context.report(Code::SettingLeftOut, node.range.clone(), message, "");
            continue;
        };
        let source = if credential.get("source").and_then(Node::as_str) == Some("literal") {
            let secret = credential.get("value").map(|value| Json::from(value).canonical()).unwrap_or_default();
            let entry = Entry { name: name.to_owned(), place: given.key_range.clone() };
            let mut source = replaced(context, &entry, name, &secret, credential.range.clone(), "secret");
            if let Some(hint) = credential.get("scheme_hint") {
                source.set("scheme_hint", Json::from(hint));
            }
            source
        } else {
            Json::from(credential)
        };
        let binding = context.bind(name, source, None);
        auth_element.set("binding", Json::String(binding));
        auth_elements.push(auth_element);
    }
    if !auth_elements.is_empty() || given.node.elements().is_some_and(<[Node]>::is_empty) {
        draft.add("auth", Json::Array(auth_elements));
    }
}
