//! Makes an upstream of an entry with a URL.

use std::ops::Range;

use url::{Host, Url};

use super::Context;
use super::entry::{Draft, Entry, Kind, Refusal, refuse};
use super::keys::{Given, Raw};
use super::remote::Bridge;
use super::secrets::{self, owned_name, variable_name};
use super::stdio::{Piece, Resolved, plain, resolve};
use super::text::{Part, parts};
use crate::clients::Client;
use crate::config::headers::is_reserved;
use crate::diag::{Code, quoted};
use crate::http_token::is_token;
use crate::json::Json;
use crate::tree::Node;

/// The names of the transports in the result.
const STREAMABLE_HTTP: &str = "mcp_http";
const HTTP_SSE: &str = "mcp_sse";

/// Headers that the client of an upstream sets itself.
const OWN_HEADERS: &[&str] =
    &["accept", "content-type", "user-agent", "connection", "content-length", "host", "mcp-protocol-version"];

/// What requests carry.
#[derive(Default)]
struct Sent {
    auth: Vec<Json>,
    headers: Vec<(String, Json)>,
    comments: Vec<String>,
}

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
        Some(false) => STREAMABLE_HTTP,
        None if parsed.path().trim_end_matches('/').ends_with("/sse") => {
            draft
                .comments
                .push("the path of the URL ends in `/sse`, so that HTTP+SSE is taken; Streamable HTTP is `mcp_http`".to_owned());
            HTTP_SSE
        }
        None => STREAMABLE_HTTP,
    };
    bearer(context, entry, raw, sent);
    for (name, value, range) in headers {
        header(context, entry, &name, &value, range, sent);
    }
    for member in &raw.env_headers {
        let variable = member.value.as_str().unwrap_or_default();
        if crate::config::placeholder::is_variable(variable) {
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
    sent.auth.push(emitter("basic", binding));
    sent.comments.push("user and password were in the URL".to_owned());
    *base = without;
}

fn bearer(context: &mut Context<'_>, entry: &Entry, raw: &Raw<'_>, sent: &mut Sent) {
    if let Some(given) = &raw.bearer_variable {
        let variable = given.node.as_str().unwrap_or_default();
        if crate::config::placeholder::is_variable(variable) {
            let binding = context.bind(&format!("{}-token", entry.name), variable_source(variable), None);
            sent.auth.push(emitter("bearer", binding));
        } else {
            let message = format!("{} is not carried over: it is not the name of a variable", quoted(&given.key));
            context.report(Code::SettingLeftOut, given.key_range.clone(), message, "");
        }
    }
    if let Some(given) = &raw.bearer {
        let value = format!("Bearer {}", given.node.as_str().unwrap_or_default());
        header(context, entry, "Authorization", &value, given.key_range.clone(), sent);
    }
}

/// Carries a header over: a secret or a variable as a credential, another value as a static header.
fn header(context: &mut Context<'_>, entry: &Entry, name: &str, value: &str, range: Range<u32>, sent: &mut Sent) {
    let lower = name.to_ascii_lowercase();
    let refused = |context: &mut Context<'_>, why: &str| {
        let message = format!("the header {} is not carried over: {why}", quoted(name));
        context.report(Code::SettingLeftOut, range.clone(), message, "");
    };
    if !is_token(name) {
        return refused(context, "it is not the name of a header");
    }
    if OWN_HEADERS.contains(&lower.as_str()) {
        let message = format!("the header {} is not carried over: the runtime sets it itself", quoted(name));
        context.report(Code::ClientSetting, range, message, "");
        return;
    }
    if lower == "authorization" {
        return authorization(context, entry, value, range, sent);
    }
    let is_fixed = parts(value).iter().all(|part| matches!(part, Part::Text(_)));
    if lower == "cookie" {
        let Some((cookie, value)) = value.split_once('=').filter(|(_, value)| !value.contains(';')) else {
            return refused(context, "it has more than one cookie");
        };
        match source(context, entry, cookie, value.trim(), range.clone()) {
            Ok((source, comment)) => {
                let binding = context.bind(&binding_name(entry, cookie), source, comment);
                sent.auth.push(Json::Object(vec![
                    ("scheme".into(), Json::string("api_key")),
                    ("binding".into(), Json::String(binding)),
                    ("in".into(), Json::string("cookie")),
                    ("name".into(), Json::string(cookie.trim())),
                ]));
            }
            Err(refusal) => refused(context, &refusal.why),
        }
        return;
    }
    if is_fixed && !secrets::is_secret(name, value) && lower != "x-api-key" {
        if is_reserved(name) {
            return refused(context, "a config cannot set it");
        }
        if sent.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) {
            return refused(context, "it is there already");
        }
        if !value.chars().all(|c| c.is_ascii_graphic() || c == ' ') {
            return refused(context, "its value has characters that no header has");
        }
        sent.headers.push((name.to_owned(), Json::string(value)));
        return;
    }
    match source(context, entry, name, value, range.clone()) {
        Ok((source, comment)) => send(context, entry, name, &source, comment, range, sent),
        Err(refusal) => refused(context, &refusal.why),
    }
}

fn authorization(context: &mut Context<'_>, entry: &Entry, value: &str, range: Range<u32>, sent: &mut Sent) {
    let is_sent = |auth: &Json| matches!(auth.get("scheme").and_then(Json::as_str), Some("bearer" | "basic"));
    if sent.auth.iter().any(is_sent) {
        let message = "the header `Authorization` is not carried over: another setting sets it too";
        context.report(Code::SettingLeftOut, range, message, "");
        return;
    }
    let (scheme, rest) = value.trim().split_once(' ').map_or((value.trim(), ""), |(scheme, rest)| (scheme, rest.trim()));
    let token = format!("{}_TOKEN", variable_name(&entry.name));
    if scheme.eq_ignore_ascii_case("bearer") && !rest.is_empty() {
        match source(context, entry, &token, rest, range.clone()) {
            Ok((source, comment)) => {
                let binding = context.bind(&format!("{}-token", entry.name), source, comment);
                sent.auth.push(emitter("bearer", binding));
            }
            Err(refusal) => {
                let message = format!("the header `Authorization` is not carried over: {}", refusal.why);
                context.report(Code::SettingLeftOut, range, message, refusal.hint);
            }
        }
        return;
    }
    let is_fixed = parts(rest).iter().all(|part| matches!(part, Part::Text(_)));
    if scheme.eq_ignore_ascii_case("basic") && is_fixed && !rest.is_empty() {
        let wanted = format!("{}_USER_PASSWORD", variable_name(&entry.name));
        let source = replaced(context, entry, &wanted, rest, range, "user-password");
        let comment = "holds `user:password`, not in Base64".to_owned();
        let binding = context.bind(&format!("{}-user-password", entry.name), source, Some(comment));
        sent.auth.push(emitter("basic", binding));
        return;
    }
    let wanted = format!("{}_AUTHORIZATION", variable_name(&entry.name));
    match source(context, entry, &wanted, value.trim(), range.clone()) {
        Ok((source, comment)) => {
            let comment = comment.or_else(|| Some("holds the whole value of the header `Authorization`".to_owned()));
            let binding = context.bind(&format!("{}-authorization", entry.name), source, comment);
            sent.auth.push(Json::Object(vec![
                ("scheme".into(), Json::string("api_key")),
                ("binding".into(), Json::String(binding)),
                ("name".into(), Json::string("Authorization")),
            ]));
        }
        Err(refusal) => {
            let message = format!("the header `Authorization` is not carried over: {}", refusal.why);
            context.report(Code::SettingLeftOut, range, message, refusal.hint);
        }
    }
}

/// Sends a credential in a header.
fn send(
    context: &mut Context<'_>,
    entry: &Entry,
    name: &str,
    source: &Json,
    comment: Option<String>,
    range: Range<u32>,
    sent: &mut Sent,
) {
    let is_authorization = name.eq_ignore_ascii_case("authorization");
    let is_known = sent.auth.iter().any(|auth| {
        let header = auth.get("header").or_else(|| auth.get("name")).and_then(Json::as_str);
        let scheme = auth.get("scheme").and_then(Json::as_str);
        header.is_some_and(|header| header.eq_ignore_ascii_case(name))
            || is_authorization && matches!(scheme, Some("bearer" | "basic"))
    });
    let is_refused = !is_token(name) || is_reserved(name) && !is_authorization && !name.eq_ignore_ascii_case("x-api-key");
    if is_known || is_refused {
        let why = if is_known { "another setting sets it too" } else { "a config cannot set it" };
        let message = format!("the header {} is not carried over: {why}", quoted(name));
        context.report(Code::SettingLeftOut, range, message, "");
        return;
    }
    let binding = context.bind(&binding_name(entry, name), source.clone(), comment);
    let (scheme, key) = if is_authorization { ("api_key", "name") } else { ("custom_header", "header") };
    sent.auth.push(Json::Object(vec![
        ("scheme".into(), Json::string(scheme)),
        ("binding".into(), Json::String(binding)),
        (key.into(), Json::string(name)),
    ]));
}

/// Returns the credential for a value, and a comment if the credential holds something else than the value names.
fn source(
    context: &mut Context<'_>,
    entry: &Entry,
    name: &str,
    value: &str,
    range: Range<u32>,
) -> Result<(Json, Option<String>), Refusal> {
    if let [Part::File(path)] = parts(value).as_slice() {
        return Ok((
            Json::Object(vec![("source".into(), Json::string("file")), ("path".into(), Json::string(path.as_str()))]),
            None,
        ));
    }
    let wanted = owned_name(&entry.name, name);
    let is_secret = parts(value).iter().any(|part| matches!(part, Part::Text(text) if secrets::is_secret(name, text)));
    if is_secret || parts(value).iter().all(|part| matches!(part, Part::Text(_))) {
        return Ok((replaced(context, entry, &wanted, value, range, &slug(name)), None));
    }
    let Resolved { pieces, comments } = resolve(context, entry, &wanted, value)?;
    Ok(match pieces.as_slice() {
        [Piece::Variable(variable)] => (variable_source(variable), comments.into_iter().next()),
        _ => {
            let variables: Vec<String> = pieces
                .iter()
                .filter_map(|piece| match piece {
                    Piece::Variable(name) => Some(quoted(name)),
                    Piece::Text(_) => None,
                })
                .collect();
            let variable = context.variables.replacing(&wanted, &entry.name, value);
            let comment = if variables.is_empty() {
                comments.join("; ")
            } else {
                format!("holds the whole value, of which {} is a part in the file", variables.join(", "))
            };
            (variable_source(&variable), Some(comment))
        }
    })
}

/// Returns the credential that replaces a secret, and reports it.
fn replaced(context: &mut Context<'_>, entry: &Entry, wanted: &str, secret: &str, range: Range<u32>, slug: &str) -> Json {
    let (source, what) = match &context.options.secret_files {
        Some(folder) => {
            let path = format!("{}/{}-{slug}", folder.trim_end_matches('/'), entry.name);
            let what = format!("the file {}", quoted(&path));
            (Json::Object(vec![("source".into(), Json::string("file")), ("path".into(), Json::String(path))]), what)
        }
        None => {
            let variable = context.variables.replacing(wanted, &entry.name, secret);
            let what = format!("the variable {}", quoted(&variable));
            (variable_source(&variable), what)
        }
    };
    let message = format!("a secret of {} is read from {what}", quoted(&entry.name));
    context.report(Code::SecretReplaced, range, message, "set it where the server starts");
    source
}

fn variable_source(variable: &str) -> Json {
    Json::Object(vec![("source".into(), Json::string("env")), ("var".into(), Json::string(variable))])
}

fn emitter(scheme: &str, binding: String) -> Json {
    Json::Object(vec![("scheme".into(), Json::string(scheme)), ("binding".into(), Json::String(binding))])
}

/// Returns the name of the binding for a header, parameter or cookie.
fn binding_name(entry: &Entry, name: &str) -> String {
    let slug = slug(name);
    if slug.starts_with(&entry.name) { slug } else { format!("{}-{slug}", entry.name) }
}

fn slug(name: &str) -> String {
    variable_name(name).to_ascii_lowercase().replace('_', "-")
}

/// Permits a URL without TLS on this machine. Elsewhere the user decides.
fn insecure(context: &mut Context<'_>, entry: &Entry, node: &Node, url: &Url, sends_auth: bool, draft: &mut Draft) {
    if url.scheme() != "http" {
        return;
    }
    let is_here = match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    if is_here {
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
pub(super) fn verbatim_auth(context: &mut Context<'_>, given: &Given<'_>, draft: &mut Draft) {
    let bindings = context.bindings.clone();
    let mut emitters = Vec::new();
    for node in given.node.elements().unwrap_or(&[]) {
        let mut emitter = Json::from(node);
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
        emitter.set("binding", Json::String(binding));
        emitters.push(emitter);
    }
    if !emitters.is_empty() || given.node.elements().is_some_and(<[Node]>::is_empty) {
        draft.add("auth", Json::Array(emitters));
    }
}
