//! OpenAPI 3.0 and 3.1 documents: the operations that a config includes, as tool definitions.
//!
//! A document is never read as a whole. The included operations are picked from its tree, resolved and normalised; whatever
//! rules one out is a diagnostic at its place, and harms no other operation.
//!
//! - `select`: which operations.
//! - `operation`: one operation as a definition, or all its `faults`; `parameter`, `response`, `server` are its parts.
//! - `schema`: schemas as JSON Schema 2020-12, independent of the document.
//! - `reference`: local `$ref`s.
//! - `name`: exposed names.

mod faults;
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
use crate::lock::{self, Document, LockedTool, LockedUpstream, Server};
use crate::source::{FileId, Sources};
use crate::tree::{self, Node, Place};
use reference::References;

/// A document as it was read.
#[derive(Debug, Clone)]
pub struct Text {
    /// The path or URL that people know it by.
    pub path: String,
    /// All of it.
    pub text: String,
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
            Err(reason) => diagnostics.push(
                Diagnostic::new(Code::SchemaUnreadable, format!("`{path}` cannot be read: {reason}"))
                    .at(entry.schema.place.clone(), ""),
            ),
        }
    }
    out
}

/// Reports what is wrong with the included operations of every `schema_file`.
pub fn check(sources: &mut Sources, config: &Config, diagnostics: &mut Diagnostics, reader: &mut Reader<'_>) {
    read(sources, config, diagnostics, reader);
}

/// Lowers the included operations of one document. `None` where the text is no OpenAPI document.
pub fn lower(sources: &mut Sources, text: Text, entry: &OpenApi, diagnostics: &mut Diagnostics) -> Option<LockedUpstream> {
    let digest = lock::sha256(text.text.as_bytes());
    let file = sources.add(text.path, text.text);
    let root = tree::parse_document(sources, file, diagnostics)?;
    check_version(&root, file, diagnostics)?;
    let references = References { file, root: &root };
    let candidates = select::candidates(references);
    let mut tools: BTreeMap<String, (LockedTool, Place)> = BTreeMap::new();
    for wanted in &entry.include_operations {
        let Some(candidate) = select::choose(file, &candidates, wanted, diagnostics) else { continue };
        let overriding = select::override_of(entry, &candidate, &wanted.value);
        match operation::definition(references, entry, &candidate, overriding, diagnostics) {
            Err(faults) => {
                for fault in faults {
                    diagnostics.push(fault.also(wanted.place.clone(), "included here"));
                }
            }
            Ok((exposed, definition)) => {
                if let Some((_, first)) = tools.get(&exposed) {
                    let message = format!("two included operations are exposed as `{exposed}`");
                    let hint = "give one of them another `name` in `operation_overrides`";
                    diagnostics.push(
                        Diagnostic::new(Code::NameCollision, message)
                            .at(wanted.place.clone(), "the second")
                            .also(first.clone(), "the first")
                            .hint(hint),
                    );
                    continue;
                }
                tools.insert(exposed, (LockedTool::new(definition), wanted.place.clone()));
            }
        }
    }
    let info = |key: &str| root.get("info").and_then(|i| i.get(key)).and_then(Node::as_str).unwrap_or_default().to_owned();
    Some(LockedUpstream {
        transport: "openapi".to_owned(),
        server: Some(Server { name: info("title"), version: info("version") }),
        document: Some(Document { source: source(entry).to_owned(), digest, selection: selection(entry) }),
        tools: tools.into_iter().map(|(name, (tool, _))| (name, tool)).collect(),
        ..LockedUpstream::default()
    })
}

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
            defaults.set(name, Json::from(&value.value));
        }
        fields.set("default_args", defaults);
        overrides.set(id, fields);
    }
    let all = Json::object()
        .with("source", Json::string(source(entry)))
        .with("base_url", Json::string(&*entry.base_url.value))
        .with("include_operations", Json::Array(included.into_iter().map(Json::string).collect()))
        .with("operation_overrides", overrides);
    lock::sha256(all.canonical().as_bytes())
}

fn check_version(root: &Node, file: FileId, diagnostics: &mut Diagnostics) -> Option<()> {
    let version = root.get("openapi").and_then(Node::as_str);
    if version.is_some_and(|v| v.starts_with("3.0") || v.starts_with("3.1")) {
        return Some(());
    }
    let (message, hint) = match (version, root.get("swagger")) {
        (Some(version), _) => (format!("the document is of OpenAPI {version}"), "versions 3.0 and 3.1 are understood"),
        (None, Some(_)) => {
            ("the document is of Swagger 2.0".to_owned(), "convert it to OpenAPI 3, for example with `npx swagger2openapi`")
        }
        (None, None) => (
            "the document does not say that it is OpenAPI".to_owned(),
            "it needs `\"openapi\": \"3.0.3\"` or another version of 3.0 and 3.1",
        ),
    };
    let at =
        root.get("openapi").or_else(|| root.get("swagger")).map_or(root.range.start..root.range.start + 1, |n| n.range.clone());
    diagnostics.push(Diagnostic::new(Code::NotOpenApi, message).at(Place { file, range: at }, "").hint(hint));
    None
}

/// "`a`, `b` and 3 more"
fn quoted_list<'a>(items: impl ExactSizeIterator<Item = &'a str>) -> String {
    const SHOWN: usize = 4;
    let count = items.len();
    let mut shown: Vec<String> = items.take(SHOWN).map(|item| format!("`{item}`")).collect();
    if count > SHOWN {
        shown.push(format!("{} more", count - SHOWN));
    }
    shown.join(", ")
}
