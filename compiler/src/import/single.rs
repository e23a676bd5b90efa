//! Makes a config with one upstream that a user describes, or adds such an upstream to a config.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};

use super::secrets::Variables;
use super::{Context, Field, Machine, Options, Upstream, entry, secrets, write};
use crate::VERSION;
use crate::clients::Client;
use crate::diag::{Diagnostic, Diagnostics};
use crate::json::Json;
use crate::source::Sources;
use crate::tool_name::folded;
use crate::tree;

/// An upstream as a user describes it.
#[derive(Debug, Clone)]
pub struct Description {
    /// Its name.
    pub name: String,
    /// Its members, with the keys of `upstreams.json`.
    pub entry: Json,
    /// The sources of its credentials, by the names of their bindings.
    pub credentials: Vec<(String, Json)>,
    /// The absolute path of the folder in which relative paths of the entry start.
    pub folder: Option<String>,
}

/// An upstream in the form in which configs have it.
pub struct Single {
    upstream: Upstream,
    credentials: Vec<Field>,
}

/// Whether a text that should be the name of a variable looks like a secret itself.
pub fn looks_like_a_secret(text: &str) -> bool {
    secrets::in_argument("", text).is_some()
}

/// Makes an upstream in the same way as an entry of a client's config is imported: packages get the version that is on this
/// machine, and secrets become references. Returns `None` after a finding if the entry cannot become an upstream. The findings
/// have no places, since there is no file.
pub fn single(
    description: &Description,
    options: &Options,
    machine: &mut dyn Machine,
    diagnostics: &mut Diagnostics,
) -> Option<Single> {
    let upstreams = Json::object().with(description.name.clone(), description.entry.clone());
    let root = Json::object().with("upstreams", upstreams).with("credentials", Json::Object(description.credentials.clone()));
    let mut sources = Sources::default();
    let file = sources.add("", write::one_line(&root));
    let root = tree::parse(&sources, file, diagnostics)?;
    let node = root.get("upstreams")?.get(&description.name)?;
    let (mut found, mut variables, mut credentials) = (Diagnostics::default(), Variables::default(), Vec::new());
    variables.note_references(node);
    let context = &mut Context {
        file,
        client: Client::PtcRunner.row(),
        project: description.folder.clone(),
        options,
        machine,
        diagnostics: &mut found,
        variables: &mut variables,
        credentials: &mut credentials,
        inputs: Vec::new(),
        bindings: root.get("credentials").cloned(),
    };
    let upstream = entry::read(context, &description.name, &description.name, 0..0, node, false);
    for finding in found.sorted() {
        diagnostics.push(Diagnostic { primary: None, secondary: Vec::new(), ..finding.clone() });
    }
    Some(Single { upstream: upstream?, credentials })
}

/// Why an upstream cannot be added to a config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AddError {
    /// The config is not JSON with an object of upstreams.
    NotAConfig,
    /// The config has an upstream of this name already.
    NameTaken,
    /// The config has another credential of this name.
    CredentialTaken(String),
}

impl Single {
    /// Sets a member of the upstream.
    pub fn set(&mut self, key: &str, value: Json) {
        match self.upstream.fields.iter_mut().find(|field| field.key == key) {
            Some(field) => field.value = value,
            None => self.upstream.fields.push(Field { key: key.to_owned(), value, comments: Vec::new() }),
        }
    }

    /// Returns the comments that explain choices, in the order of the members.
    pub fn comments(&self) -> impl Iterator<Item = &str> {
        let fields = self.upstream.fields.iter().flat_map(|field| &field.comments);
        self.upstream.comments.iter().chain(fields).map(String::as_str)
    }

    /// Returns the text of a config with this upstream alone.
    pub fn text(&self) -> String {
        let header = [format!("Written by `ptc-compile init` {VERSION}.")];
        write::config(&header, std::slice::from_ref(&self.upstream), &self.credentials)
    }

    /// Returns the text of a config with this upstream added. Comments and order of the config stay.
    ///
    /// # Errors
    ///
    /// See [`AddError`].
    pub fn add_to(&self, text: &str) -> Result<String, AddError> {
        let root = CstRootNode::parse(text, &ParseOptions::default()).map_err(|_| AddError::NotAConfig)?;
        let config = root.object_value().ok_or(AddError::NotAConfig)?;
        let upstreams = config.object_value_or_create("upstreams").ok_or(AddError::NotAConfig)?;
        if has_name(&upstreams, &self.upstream.name) {
            return Err(AddError::NameTaken);
        }
        upstreams.append(&self.upstream.name, object(&self.upstream.fields));
        if !self.credentials.is_empty() {
            let credentials = config.object_value_or_create("credentials").ok_or(AddError::NotAConfig)?;
            for field in &self.credentials {
                if credentials.get(&field.key).is_some() {
                    return Err(AddError::CredentialTaken(field.key.clone()));
                }
                credentials.append(&field.key, value(&field.value));
            }
        }
        Ok(root.to_string())
    }
}

/// Whether a config has an upstream that programs could not tell from one with this name.
pub fn has_upstream(config: &str, name: &str) -> bool {
    let root = CstRootNode::parse(config, &ParseOptions::default()).ok();
    let upstreams = root.and_then(|root| root.object_value()?.object_value("upstreams"));
    upstreams.is_some_and(|upstreams| has_name(&upstreams, name))
}

fn has_name(upstreams: &CstObject, name: &str) -> bool {
    let mut names = upstreams.properties().into_iter().filter_map(|property| property.name()?.decoded_value().ok());
    names.any(|known| folded(&known) == folded(name))
}

fn object(fields: &[Field]) -> CstInputValue {
    CstInputValue::Object(fields.iter().map(|field| (field.key.clone(), value(&field.value))).collect())
}

fn value(json: &Json) -> CstInputValue {
    match json {
        Json::Null => CstInputValue::Null,
        Json::Bool(value) => CstInputValue::Bool(*value),
        Json::Number(text) => CstInputValue::Number(text.clone()),
        Json::String(text) => CstInputValue::String(text.clone()),
        Json::Array(items) => CstInputValue::Array(items.iter().map(value).collect()),
        Json::Object(members) => {
            CstInputValue::Object(members.iter().map(|(key, member)| (key.clone(), value(member))).collect())
        }
    }
}
