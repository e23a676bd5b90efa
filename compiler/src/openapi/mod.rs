//! OpenAPI 3.0 and 3.1 documents: the operations that a config includes, as tool definitions.
//!
//! A document is never read as a whole. The included operations are picked from its tree, resolved and normalised; whatever
//! rules one out is a diagnostic at its place, and harms no other operation.
//!
//! - `document`: all that is included of one document.
//! - `select`: which operations; `listing`: what can be said of each.
//! - `operation`: one operation as a definition, or all its `faults`; `parameter`, `response`, `server`, `defaults` are its parts.
//! - `schema`: schemas as JSON Schema 2020-12, independent of the document.
//! - `reference`: local `$ref`s.
//! - `name`: exposed names.

mod defaults;
mod document;
mod faults;
mod listing;
pub mod name;
mod operation;
mod parameter;
mod reference;
mod response;
mod schema;
mod select;
mod server;

use std::collections::BTreeMap;

use crate::config::model::{Config, OpenApi, SchemaSource, Transport};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::ir::Json;
use crate::lock::{self, LockedUpstream};
use crate::source::Sources;
pub use document::lower;
pub use listing::{Listed, list};
pub use select::{is_path, is_pattern, names_path};

/// A document as it was read.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Text {
    /// The path or URL that people know it by.
    pub path: String,
    /// All of it.
    pub text: String,
}

impl Text {
    /// The document `text` under the path or URL that diagnostics show.
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> Text {
        Text { path: path.into(), text: text.into() }
    }
}

/// Reads a `schema_file`: path as configured, largest size in bytes; the document, or why there is none.
pub type Reader<'a> = dyn FnMut(&str, u64) -> Result<Text, String> + 'a;

/// Reads every `schema_file` of a config and lowers the included operations: what the lock will hold, by upstream. All
/// faults are reported, those of documents of faulty entries too; an upstream with a document that cannot be read is left out. Documents behind a `schema_url` are
/// not looked at; see [`lower`] for those.
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
        match reader(path, entry.schema_max_bytes) {
            Ok(text) => {
                if let Some(locked) = lower(sources, text, entry, diagnostics)
                    && config.upstreams.contains_key(name)
                {
                    out.insert(name.clone(), locked);
                }
            }
            Err(reason) => {
                let message = format!("`{path}` cannot be read: {reason}");
                let diagnostic = Diagnostic::new(Code::SchemaUnreadable, message).at(entry.schema.place.clone(), "");
                let limit = entry.schema_max_place.clone().filter(|_| reason.contains("`schema_max_bytes`"));
                diagnostics.push(match limit {
                    Some(place) => diagnostic.also(place, "the limit"),
                    None => diagnostic,
                });
            }
        }
    }
    out
}

/// Reports what is wrong with the included operations of every `schema_file`.
pub fn check(sources: &mut Sources, config: &Config, diagnostics: &mut Diagnostics, reader: &mut Reader<'_>) {
    read(sources, config, diagnostics, reader);
}

/// The path or URL of the document, as configured.
fn source(entry: &OpenApi) -> &str {
    match &entry.schema.value {
        SchemaSource::File(text) | SchemaSource::Url(text) => text,
    }
}

/// SHA-256 of everything in a config entry that decides what is taken from the document.
pub fn selection(entry: &OpenApi) -> String {
    let mut included: Vec<&str> = entry.include_operations.iter().map(|s| s.value.as_str()).collect();
    included.sort_unstable();
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
        overrides.set(id, fields);
    }
    let mut all = Json::object()
        .with("source", Json::string(source(entry)))
        .with("base_url", Json::string(&*entry.base_url.value))
        .with("include_operations", Json::Array(included.into_iter().map(Json::string).collect()))
        .with("operation_overrides", overrides);
    if !entry.exclude_operations.is_empty() {
        let mut excluded: Vec<&str> = entry.exclude_operations.iter().map(|s| s.value.as_str()).collect();
        excluded.sort_unstable();
        all.set("exclude_operations", Json::Array(excluded.into_iter().map(Json::string).collect()));
    }
    lock::sha256(all.canonical().as_bytes())
}
