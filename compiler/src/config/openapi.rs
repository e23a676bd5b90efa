//! Reads the entries of `openapi`: a JSON service and the operations of its document.

use std::collections::BTreeMap;

use super::credentials::Bindings;
use super::fields::{Fields, Subject};
use super::headers::{self, Setter};
use super::model::{HttpOptions, OpenApi, Override, SchemaSource, Spanned};
use super::operation_selector;
use super::reader::ConfigReader;
use super::{http, keys, oauth, urls};
use crate::diag::{Code, Diagnostic, quoted, suggest};
use crate::json::Json;
use crate::tree::Node;

/// Reads the keys that only an `openapi` entry has.
pub(super) fn read(
    reader: &mut ConfigReader<'_>,
    subject: &Subject,
    fields: &Fields<'_>,
    bindings: &Bindings,
) -> Option<OpenApi> {
    let base = urls::read(reader, fields, "base_url");
    let schema_url = urls::read(reader, fields, "schema_url");
    let server_urls = oauth::server_urls(reader, fields);
    let named: Vec<&urls::Named<'_>> = base.iter().chain(&schema_url).chain(&server_urls).collect();
    urls::check_security(reader, fields, &named);
    if let (Some(base), Some(schema)) = (&base, &schema_url) {
        check_origin(reader, fields, base, schema);
    }
    let schema = schema_source(reader, subject, fields);
    let http = http::options(reader, &subject.name, fields, bindings, None);
    let operation_overrides = overrides(reader, fields);
    let idempotency_header = idempotency_header(reader, fields, &http);
    let server_origins = server_origins(reader, fields, base.as_ref());
    Some(OpenApi {
        // A missing `base_url` has been reported as an error. The document is checked nevertheless.
        base_url: match base.zip(fields.spanned(reader, "base_url")) {
            Some((_, url)) => Spanned { value: url.value.trim_end_matches('/').to_owned(), place: url.place },
            None => Spanned { value: String::new(), place: subject.place.clone() },
        },
        allow_writes: fields.flag("allow_writes"),
        idempotency_header,
        max_request_bytes: fields.number("max_request_bytes"),
        server_origins,
        http,
        schema: schema?,
        schema_max_bytes: fields.number("schema_max_bytes"),
        schema_max_place: fields.node("schema_max_bytes").map(|node| node.place(reader.file)),
        include_operations: fields.spanned_texts(reader, "include_operations").unwrap_or_default(),
        exclude_operations: fields.spanned_texts(reader, "exclude_operations").unwrap_or_default(),
        silence: fields.notes("silence"),
        operation_overrides,
    })
}

/// Reads the header that carries the key of each write. Nothing else may set it.
fn idempotency_header(reader: &mut ConfigReader<'_>, fields: &Fields<'_>, http: &HttpOptions) -> Option<String> {
    let Spanned { value, place } = fields.spanned(reader, "idempotency_header")?;
    headers::check_name(reader, Setter::IdempotencyHeader, &value, None, place.clone());
    if http.sent_headers().any(|sent| sent.eq_ignore_ascii_case(&value)) {
        let message = format!("the header {} is also set by `auth` or `static_headers`", quoted(&value));
        let hint = "each write has a key of its own; keep only `idempotency_header`";
        reader.report(Diagnostic::new(Code::RepeatedHeader, message).at(place, "").hint(hint));
    }
    Some(value)
}

/// Reads origins besides that of `base_url`. They have its scheme, since the opt-ins for URLs without TLS are of the whole entry.
fn server_origins(reader: &mut ConfigReader<'_>, fields: &Fields<'_>, base: Option<&urls::Named<'_>>) -> Vec<Spanned<String>> {
    let mut origins = Vec::new();
    for node in fields.nodes("server_origins") {
        let Some(text) = node.as_str() else { continue };
        let url = url::Url::parse(text).ok();
        let is_origin = |url: &url::Url| url.origin().ascii_serialization() == text.trim_end_matches('/').to_ascii_lowercase();
        let has_scheme = |url: &url::Url| base.is_none_or(|base| base.url.scheme() == url.scheme());
        if url.as_ref().is_some_and(|url| is_origin(url) && has_scheme(url)) {
            origins.push(Spanned { value: text.trim_end_matches('/').to_owned(), place: node.place(reader.file) });
            continue;
        }
        let scheme = base.map_or("https", |base| base.url.scheme());
        let message = format!("{} in `server_origins` is not an origin", quoted(text));
        let hint = format!("an origin is scheme, host and port, with the scheme of `base_url`: `{scheme}://uploads.example.com`");
        reader.fault(Code::BadUrl, node, message, "", &hint);
    }
    origins
}

fn schema_source(reader: &mut ConfigReader<'_>, subject: &Subject, fields: &Fields<'_>) -> Option<Spanned<SchemaSource>> {
    let hint = "`schema_file` names a file, `schema_url` a URL that is fetched when the binary is built";
    match (fields.member("schema_file"), fields.member("schema_url")) {
        (Some(file), Some(url)) => {
            let diagnostic =
                Diagnostic::new(Code::SchemaSource, format!("{} has both `schema_file` and `schema_url`", subject.name))
                    .at(reader.key_place(url), "the second source")
                    .also(reader.key_place(file), "the first source")
                    .hint("keep one of the two; a file needs no network when building");
            reader.report(diagnostic);
            None
        }
        (None, None) => {
            let diagnostic =
                Diagnostic::new(Code::SchemaSource, format!("{} does not say where its OpenAPI document is", subject.name))
                    .at(subject.place.clone(), "`schema_file` or `schema_url` is missing")
                    .hint(hint);
            reader.report(diagnostic);
            None
        }
        (Some(_), None) => {
            let path = fields.spanned(reader, "schema_file")?;
            Some(Spanned { value: SchemaSource::File(path.value), place: path.place })
        }
        (None, Some(_)) => {
            let url = fields.spanned(reader, "schema_url")?;
            Some(Spanned { value: SchemaSource::Url(url.value), place: url.place })
        }
    }
}

/// Warns if the document is on another origin than `base_url`, because it is fetched with the entry's own secrets.
fn check_origin(reader: &mut ConfigReader<'_>, fields: &Fields<'_>, base: &urls::Named<'_>, schema: &urls::Named<'_>) {
    // An access token is not sent to another origin.
    let is_sent = |auth: &Node| auth.get("scheme").and_then(Node::as_str) != Some("oauth2");
    if !fields.nodes("auth").iter().any(is_sent) || base.url.origin() == schema.url.origin() {
        return;
    }
    let diagnostic = Diagnostic::new(Code::SchemaOnOtherOrigin, "`auth` is sent to the host of `schema_url` too")
        .at(schema.node.place(reader.file), "another origin than `base_url`")
        .also(base.node.place(reader.file), "where the secrets belong")
        .hint("download the document and name it in `schema_file`");
    reader.report(diagnostic);
}

fn overrides(reader: &mut ConfigReader<'_>, fields: &Fields<'_>) -> BTreeMap<String, Override> {
    let included: Vec<&str> = fields.nodes("include_operations").iter().filter_map(Node::as_str).collect();
    // The operations that a pattern includes, and the id of a path, are known only once the document is read.
    let is_id = |entry: &str| !operation_selector::is_pattern(entry) && !operation_selector::is_path(entry);
    let all_named = included.iter().all(|entry| is_id(entry));
    let mut overrides = BTreeMap::new();
    for member in fields.members("operation_overrides") {
        let id: &str = &member.key;
        let place = reader.key_place(member);
        if let Some(list) = fields.node("include_operations")
            && all_named
            && is_id(id)
            && !operation_selector::may_be_included(included.iter().copied(), id, member.value.get("name").and_then(Node::as_str))
        {
            let mut diagnostic =
                Diagnostic::new(Code::OverrideNotIncluded, format!("the operation {} is not included", quoted(id)))
                    .about(crate::diag::Subject::default().operation(id))
                    .at(place.clone(), "an override without effect")
                    .also(list.place(reader.file), "not in this list");
            diagnostic = match suggest::closest_match(id, included.iter().copied()) {
                Some(near) => diagnostic.hint(format!("did you mean {}?", quoted(near))),
                None => diagnostic.hint(format!("add {} to `include_operations`, or remove the override", quoted(id))),
            };
            reader.report(diagnostic);
        }
        let subject = Subject { name: format!("the override of {}", quoted(id)), place: place.clone() };
        let Some(entry) = Fields::read(reader, &subject, &keys::OVERRIDE, &[], &member.value) else { continue };
        let default_args = entry.node("default_args").map(|node| {
            let arg = |m: &crate::tree::Member| {
                (m.key.to_string(), Spanned { value: Json::from(&m.value), place: m.value.place(reader.file) })
            };
            node.members().iter().map(arg).collect()
        });
        overrides.insert(
            id.to_owned(),
            Override {
                place,
                name: entry.spanned(reader, "name"),
                description: entry.text("description"),
                default_args,
                allow_deprecated: entry.flag("allow_deprecated"),
                effects: entry.effects(),
                content_type: entry.spanned(reader, "content_type"),
                secret_args: entry.nodes("secret_args").iter().filter_map(Node::as_str).map(str::to_owned).collect(),
                paging: entry.node("paging").map(|node| Spanned { value: Json::from(node), place: node.place(reader.file) }),
                call_timeout_ms: entry.optional_number("call_timeout_ms"),
                example: entry.node("example").map(|node| Spanned { value: Json::from(node), place: node.place(reader.file) }),
            },
        );
    }
    overrides
}
