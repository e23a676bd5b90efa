//! The credentials and headers that requests carry.

use std::ops::Range;

use super::Context;
use super::draft::{Entry, Refusal};
use super::keys::Raw;
use super::secrets::{self, owned_name, variable_name};
use super::text::{Part, parts};
use super::words::{Piece, Resolved, resolve};
use crate::config::headers::is_reserved;
use crate::config::placeholder::is_variable;
use crate::diag::{Code, quoted};
use crate::http_token::is_token;
use crate::json::Json;

/// Headers that the client of an upstream sets itself.
const OWN_HEADERS: &[&str] =
    &["accept", "content-type", "user-agent", "connection", "content-length", "host", "mcp-protocol-version"];

/// What requests carry.
#[derive(Default)]
pub(super) struct Sent {
    pub(super) auth: Vec<Json>,
    pub(super) headers: Vec<(String, Json)>,
    pub(super) comments: Vec<String>,
}

/// Carries the tokens of an entry over.
pub(super) fn bearer(context: &mut Context<'_>, entry: &Entry, raw: &Raw<'_>, sent: &mut Sent) {
    if let Some(given) = &raw.bearer_variable {
        let variable = given.node.as_str().unwrap_or_default();
        if is_variable(variable) {
            let binding = context.bind(&format!("{}-token", entry.name), variable_source(variable), None);
            sent.auth.push(auth_element("bearer", binding));
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
pub(super) fn header(context: &mut Context<'_>, entry: &Entry, name: &str, value: &str, range: Range<u32>, sent: &mut Sent) {
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
                sent.auth.push(auth_element("bearer", binding));
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
        sent.auth.push(auth_element("basic", binding));
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
pub(super) fn send(
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
pub(super) fn source(
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
    if let [Piece::Variable(variable)] = pieces.as_slice() {
        return Ok((variable_source(variable), comments.into_iter().next()));
    }
    let names = pieces.iter().filter_map(|piece| match piece {
        Piece::Variable(name) => Some(quoted(name)),
        Piece::Text(_) => None,
    });
    let names: Vec<String> = names.collect();
    let variable = context.variables.replacing(&wanted, &entry.name, value);
    let comment = if names.is_empty() {
        comments.join("; ")
    } else {
        format!("holds the whole value, of which {} is a part in the file", names.join(", "))
    };
    Ok((variable_source(&variable), Some(comment)))
}

/// Returns the credential that replaces a secret, and reports it.
pub(super) fn replaced(
    context: &mut Context<'_>,
    entry: &Entry,
    wanted: &str,
    secret: &str,
    range: Range<u32>,
    slug: &str,
) -> Json {
    let (source, what) = if let Some(folder) = &context.options.secret_files {
        let path = format!("{}/{}-{slug}", folder.trim_end_matches('/'), entry.name);
        let what = format!("the file {}", quoted(&path));
        (Json::Object(vec![("source".into(), Json::string("file")), ("path".into(), Json::String(path))]), what)
    } else {
        let variable = context.variables.replacing(wanted, &entry.name, secret);
        let what = format!("the variable {}", quoted(&variable));
        (variable_source(&variable), what)
    };
    let message = format!("a secret of {} is read from {what}", quoted(&entry.name));
    context.report(Code::SecretReplaced, range, message, "set it where the server starts");
    source
}

pub(super) fn variable_source(variable: &str) -> Json {
    Json::Object(vec![("source".into(), Json::string("env")), ("var".into(), Json::string(variable))])
}

pub(super) fn auth_element(scheme: &str, binding: String) -> Json {
    Json::Object(vec![("scheme".into(), Json::string(scheme)), ("binding".into(), Json::String(binding))])
}

/// Returns the name of the binding for a header, parameter or cookie.
pub(super) fn binding_name(entry: &Entry, name: &str) -> String {
    let slug = slug(name);
    if slug.starts_with(&entry.name) { slug } else { format!("{}-{slug}", entry.name) }
}

fn slug(name: &str) -> String {
    variable_name(name).to_ascii_lowercase().replace('_', "-")
}
