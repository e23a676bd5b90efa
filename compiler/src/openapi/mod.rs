//! OpenAPI 3.0, 3.1 and 3.2 documents: the operations that a config includes, as tool definitions.
//!
//! A document is never deserialised as a whole. The included operations are selected from its tree, resolved and normalised. A
//! fault that makes one unusable is a diagnostic at its place and does not affect other operations.
//!
//! - `document`: everything that is included of one document.
//! - `select`: which operations are included, of each `candidate`; `listing`: a summary of every operation.
//! - `operation`: one operation as a definition, or all its `faults`; `argument`, `parameter`, `body`, `response`, `server`, `defaults` are its
//!   parts, and `effect` decides whether it writes.
//! - `schema`: schemas as JSON Schema 2020-12, independent of the document.
//! - `security`: the credentials that operations need; `secret_parameter`: which parameters carry credentials; `context`: what all
//!   operations of a document share.
//! - `reference`: `$ref`s; `files`: the files to which they lead, and `location`: the names of those.
//! - `name`: exposed names.

mod argument;
mod body;
mod candidate;
mod context;
mod defaults;
mod document;
mod effect;
mod faults;
mod files;
mod listing;
mod location;
mod operation;
mod parameter;
mod reference;
mod response;
mod schema;
mod secret_parameter;
mod security;
mod select;
mod server;

use std::collections::BTreeMap;
use std::path::Path;

use crate::config::model::{Config, OpenApi, SchemaSource, Spanned, Transport};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::input::RELATIVE_TO_CONFIG;
pub use crate::input::{Reader, Text, Unreadable, Wanted};
use crate::json::Json;
use crate::lock::{self, LockedUpstream};
use crate::source::Sources;
pub use document::lower;
pub use files::{MAX_FILES, PartReader, referenced_urls};
pub use listing::{Listed, Overview, list, overview};
pub use location::name_of_url;
pub(crate) use secret_parameter::is_same_parameter;
pub(crate) use security::is_supported;

/// Reads every `schema_file` of a config and lowers the included operations. Returns the entries of the lock file by upstream.
///
/// All faults are reported, including those in documents of faulty entries. An upstream whose document cannot be read is left
/// out. Documents behind a `schema_url` are not read; see [`lower`] for those.
pub fn read(
    sources: &mut Sources,
    config: &Config,
    diagnostics: &mut Diagnostics,
    reader: &mut Reader<'_>,
) -> BTreeMap<String, LockedUpstream> {
    let mut out = BTreeMap::new();
    for (name, upstream) in config.upstreams.iter().chain(&config.faulty) {
        let Transport::OpenApi(entry) = &upstream.transport else { continue };
        let SchemaSource::File(path) = &entry.schema.value else { continue };
        match reader(&Wanted::new(path, entry.schema_max_bytes)) {
            Ok(text) => {
                let mut part = |name: &str, max_bytes| read_part(reader, path, name, max_bytes);
                if let Some(locked) = lower(name, sources, text, entry, diagnostics, &mut part)
                    && config.upstreams.contains_key(name)
                {
                    out.insert(name.clone(), locked);
                }
            }
            Err(reason) => {
                let is_too_large = matches!(reason, Unreadable::TooLarge(max_bytes) if max_bytes == entry.schema_max_bytes);
                let reason = match reason {
                    Unreadable::TooLarge(max) if is_too_large => {
                        format!("it is larger than {max} bytes, the limit of `schema_max_bytes`")
                    }
                    reason => reason.to_string(),
                };
                let message = format!("`{path}` cannot be read: {reason}");
                let diagnostic = Diagnostic::new(Code::SchemaUnreadable, message).at(entry.schema.place.clone(), "");
                diagnostics.push(match entry.schema_max_place.clone().filter(|_| is_too_large) {
                    Some(place) => diagnostic.also(place, "the limit"),
                    None if Path::new(path).is_relative() => diagnostic.hint(RELATIVE_TO_CONFIG),
                    None => diagnostic,
                });
            }
        }
    }
    out
}

/// Reads a further file of the document at `path`. It must be in the folder of that document.
///
/// # Errors
///
/// Returns the error of `reader`, such as [`Unreadable::Outside`] for a file in another folder.
pub fn read_part(reader: &mut Reader<'_>, path: &str, name: &str, max_bytes: u64) -> Result<Text, Unreadable> {
    let folder = path.rsplit_once('/').map_or(".", |(folder, _)| if folder.is_empty() { "/" } else { folder });
    reader(&Wanted { path: &beside(path, name), max_bytes, within: Some(folder) })
}

/// Returns the path of a further file of the document at `path`.
pub fn beside(path: &str, name: &str) -> String {
    path.rsplit_once('/').map_or_else(|| name.to_owned(), |(folder, _)| format!("{folder}/{name}"))
}

/// Reports faults of the included operations of every `schema_file`.
pub fn check(sources: &mut Sources, config: &Config, diagnostics: &mut Diagnostics, reader: &mut Reader<'_>) {
    read(sources, config, diagnostics, reader);
}

/// Returns the path or URL of the document, as configured.
fn source(entry: &OpenApi) -> &str {
    match &entry.schema.value {
        SchemaSource::File(text) | SchemaSource::Url(text) => text,
    }
}

fn sorted<'t>(texts: impl Iterator<Item = &'t str>) -> Json {
    let mut texts: Vec<&str> = texts.collect();
    texts.sort_unstable();
    Json::Array(texts.into_iter().map(Json::string).collect())
}

/// Returns the SHA-256 of all options of a config entry that affect the lowering of its document.
pub fn selection(entry: &OpenApi) -> String {
    let texts = |list: &[Spanned<String>]| sorted(list.iter().map(|text| text.value.as_str()));
    let mut overrides = Json::object();
    for (id, overriding) in &entry.operation_overrides {
        let mut fields = Json::object().with("allow_deprecated", Json::Bool(overriding.allow_deprecated));
        if let Some(name) = &overriding.name {
            fields.set("name", Json::string(&*name.value));
        }
        if let Some(description) = &overriding.description {
            fields.set("description", Json::string(&**description));
        }
        let mut defaults = Json::object();
        for (name, value) in overriding.default_args.iter().flatten() {
            defaults.set(name, value.value.clone());
        }
        fields.set("default_args", defaults);
        if let Some(paging) = &overriding.paging {
            fields.set("paging", paging.value.clone());
        }
        if let Some(time) = overriding.call_timeout_ms {
            fields.set("call_timeout_ms", Json::Number(time.to_string()));
        }
        if !overriding.secret_args.is_empty() {
            fields.set("secret_args", sorted(overriding.secret_args.iter().map(String::as_str)));
        }
        for (key, flag) in overriding.effects.named() {
            if let Some(flag) = flag {
                fields.set(key, Json::Bool(flag));
            }
        }
        if let Some(content_type) = &overriding.content_type {
            fields.set("content_type", Json::string(&*content_type.value));
        }
        overrides.set(id, fields);
    }
    let mut all = Json::object()
        .with("source", Json::string(source(entry)))
        .with("base_url", Json::string(&*entry.base_url.value))
        .with("include_operations", texts(&entry.include_operations))
        .with("operation_overrides", overrides);
    if !entry.exclude_operations.is_empty() {
        all.set("exclude_operations", texts(&entry.exclude_operations));
    }
    if entry.allow_writes {
        all.set("allow_writes", Json::Bool(true));
    }
    if let Some(header) = &entry.idempotency_header {
        all.set("idempotency_header", Json::string(header.to_ascii_lowercase()));
    }
    if !entry.server_origins.is_empty() {
        all.set("server_origins", texts(&entry.server_origins));
    }
    let is_parameter = |name: &&str| !name.eq_ignore_ascii_case("authorization");
    let headers: Vec<String> = entry.http.sent_headers().filter(is_parameter).map(str::to_ascii_lowercase).collect();
    if !headers.is_empty() {
        all.set("headers", sorted(headers.iter().map(String::as_str)));
    }
    let keys: Vec<String> =
        entry.http.sent_parameters().filter(|(place, _)| *place != "header").map(|(p, n)| format!("{p} {n}")).collect();
    if !keys.is_empty() {
        all.set("keys", sorted(keys.iter().map(String::as_str)));
    }
    lock::sha256(all.canonical().as_bytes())
}
