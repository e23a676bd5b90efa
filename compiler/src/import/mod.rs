//! Makes an `upstreams.json` of the configs that MCP clients have.
//!
//! Each entry of a client's config becomes an upstream, or a finding at its line. A choice is a comment in the result. Secrets
//! become references to variables or files; their values are not copied, neither into the result nor into messages.
//!
//! | module | purpose |
//! |---|---|
//! | `sections` | finds the servers in a config |
//! | `keys` | the keys of all clients, and what each means |
//! | `entry` | reads one entry; `draft`: what its readers share |
//! | `stdio`, `http` | make an upstream of an entry |
//! | `words`, `env` | its command line and its variables |
//! | `headers` | the credentials and headers of its requests |
//! | `remote` | replaces bridges from stdio to HTTP by the URL that they open |
//! | `text` | the placeholders of all clients |
//! | `single` | an upstream that a user describes instead of a client |
//! | `secrets` | recognises secrets, and names the variables that replace them |
//! | `mask` | marks what no finding may show |
//! | `write` | the text of the result, with its comments |

mod draft;
mod entry;
mod env;
mod headers;
mod http;
mod keys;
mod mask;
mod remote;
mod secrets;
mod sections;
mod single;
mod stdio;
mod text;
mod words;
mod write;

use std::collections::BTreeMap;

use crate::VERSION;
use crate::clients::Row;
use crate::clients::{Client, Format};
use crate::config::names;
use crate::diag::{Code, Diagnostic, Diagnostics, quoted};
use crate::json::Json;
use crate::source::{FileId, Sources, Span};
use crate::tool_name::folded;
use crate::tree::{self, Node};
use secrets::Variables;
use sections::{Found, Section};
pub use single::{AddError, Description, Single, has_upstream, looks_like_a_secret, single};

/// A config to import.
#[derive(Debug, Clone)]
pub struct Input {
    /// Its text.
    pub file: FileId,
    /// The client, or `None` to determine it from the path and the content.
    pub client: Option<Client>,
    /// The absolute path of the project's folder, if the config belongs to a project.
    pub project: Option<String>,
    /// Whether the config may have no servers. Otherwise this is a fault.
    pub is_optional: bool,
}

/// Choices of the user.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The absolute path of the folder of the result. Relative paths in the result start there.
    pub folder: Option<String>,
    /// The folder of files with secrets, for credentials of HTTP upstreams. Without it, they are in variables.
    pub secret_files: Option<String>,
}

/// A version of a package on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// The version.
    pub version: String,
    /// Where it was found, for a comment.
    pub whereabouts: &'static str,
}

/// What the importer asks of the machine.
pub trait Machine {
    /// Returns the version of a package of npm or PyPI that is installed or cached.
    fn version(&mut self, package: &str, is_npm: bool, project: Option<&str>) -> Option<Installed>;
    /// Returns the names of the variables that a file of `NAME=value` lines sets, or `None` if it cannot be read.
    fn variables(&mut self, path: &str) -> Option<Vec<String>>;
}

/// The result of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The text of the config.
    pub text: String,
    /// The number of upstreams in it.
    pub upstreams: usize,
}

/// An upstream of the result.
pub(crate) struct Upstream {
    name: String,
    comments: Vec<String>,
    fields: Vec<Field>,
}

/// A member of an upstream or of `credentials`.
pub(crate) struct Field {
    key: String,
    value: Json,
    comments: Vec<String>,
}

/// What all parts of the importer share while they read one file.
pub(crate) struct Context<'a> {
    file: FileId,
    client: &'static Row,
    project: Option<String>,
    options: &'a Options,
    machine: &'a mut dyn Machine,
    diagnostics: &'a mut Diagnostics,
    variables: &'a mut Variables,
    credentials: &'a mut Vec<Field>,
    /// The `inputs` of VS Code.
    inputs: Vec<Node>,
    /// The `credentials` of a config of PtcRunner.
    bindings: Option<Node>,
}

impl Context<'_> {
    /// Reports a finding about a part of the file.
    pub(crate) fn report(&mut self, code: Code, range: std::ops::Range<u32>, message: impl Into<String>, hint: &str) {
        let mut diagnostic = Diagnostic::new(code, message).at(Span { file: self.file, range }, "");
        if !hint.is_empty() {
            diagnostic = diagnostic.hint(hint);
        }
        self.diagnostics.push(diagnostic);
    }

    /// Adds a credential, and returns the name of its binding.
    pub(crate) fn bind(&mut self, wanted: &str, source: Json, comment: Option<String>) -> String {
        let mut name = wanted.to_owned();
        let mut count = 1;
        while let Some(known) = self.credentials.iter().find(|field| field.key == name) {
            if known.value == source {
                return name;
            }
            count += 1;
            name = format!("{wanted}-{count}");
        }
        self.credentials.push(Field { key: name.clone(), value: source, comments: comment.into_iter().collect() });
        name
    }
}

/// Imports all configs into one.
pub fn import(
    sources: &Sources,
    inputs: &[Input],
    options: &Options,
    machine: &mut dyn Machine,
    diagnostics: &mut Diagnostics,
) -> Imported {
    let mut read: Vec<(Found, &Input)> = Vec::new();
    let mut variables = Variables::default();
    for input in inputs {
        let Some(root) = parse(sources, input, diagnostics) else {
            mask::all(sources, input.file, diagnostics);
            continue;
        };
        mask::tree(sources, input.file, &root, diagnostics);
        match sections::find(sources, input, root, diagnostics) {
            Some(found) => {
                found.sections.iter().for_each(|section| variables.note_references(&section.node));
                read.push((found, input));
            }
            None => mask::all(sources, input.file, diagnostics),
        }
    }
    let mut result = Merge { upstreams: Vec::new(), seen: BTreeMap::new() };
    let mut credentials = Vec::new();
    let mut from = Vec::new();
    for (found, input) in &read {
        let path = &sources.get(input.file).path;
        from.push(format!("Source: {path} ({})", found.client.row().label));
        for section in &found.sections {
            let context = &mut Context {
                file: input.file,
                client: found.client.row(),
                project: section.project.clone().or_else(|| input.project.clone()),
                options,
                machine: &mut *machine,
                diagnostics: &mut *diagnostics,
                variables: &mut variables,
                credentials: &mut credentials,
                inputs: found.root.get("inputs").and_then(Node::elements).unwrap_or(&[]).to_vec(),
                bindings: found.root.get("credentials").cloned(),
            };
            result.read(sources, context, found, section);
        }
    }
    let header: Vec<String> = [format!("Written by `ptc-compile import` {VERSION}.")].into_iter().chain(from).collect();
    Imported { text: write::config(&header, &result.upstreams, &credentials), upstreams: result.upstreams.len() }
}

/// Returns the text of a client's config with its secrets, and everything that may be one, replaced. It has the same lines.
pub fn masked(client: Client, text: &str) -> String {
    let mut sources = Sources::default();
    let mut diagnostics = Diagnostics::default();
    let file = sources.add("", text);
    let input = Input { file, client: Some(client), project: None, is_optional: false };
    match parse(&sources, &input, &mut diagnostics) {
        Some(root) => mask::tree(&sources, file, &root, &mut diagnostics),
        None => mask::all(&sources, file, &mut diagnostics),
    }
    mask::applied(&sources.get(file).text, &diagnostics)
}

fn parse(sources: &Sources, input: &Input, diagnostics: &mut Diagnostics) -> Option<Node> {
    let source = sources.get(input.file);
    let format = match source.path.rsplit('.').next().unwrap_or_default().to_ascii_lowercase().as_str() {
        "toml" => Format::Toml,
        "yaml" | "yml" => Format::Yaml,
        "json" | "jsonc" => Format::Json,
        _ => match input.client {
            Some(client) => client.row().format,
            None if source.text.trim_start().starts_with('{') => Format::Json,
            None => Format::Yaml,
        },
    };
    match format {
        Format::Json => tree::parse(sources, input.file, diagnostics),
        Format::Toml => tree::parse_toml(sources, input.file, diagnostics),
        Format::Yaml => tree::parse_yaml(sources, input.file, diagnostics),
    }
}

struct Merge {
    upstreams: Vec<Upstream>,
    /// The entries read so far, by name, with the position of the first of each.
    seen: BTreeMap<String, Vec<(Json, Span)>>,
}

impl Merge {
    fn read(&mut self, sources: &Sources, context: &mut Context<'_>, found: &Found, section: &Section) {
        for (key, place, node) in section.entries() {
            if self.is_repeated(context, &key, &place, node) {
                continue;
            }
            let switched_off = found.switched_off(&key);
            let name = self.free_name(&key);
            let Some(mut upstream) = entry::read(context, &key, &name, place.clone(), node, switched_off) else { continue };
            if name != key {
                let message = format!("{} becomes the upstream {}", quoted(&key), quoted(&name));
                let hint = "programs write this name after `:server`; rename it in the result if another fits better";
                context.report(Code::EntryRenamed, place.clone(), message, hint);
                upstream.comments.insert(0, format!("called {} there", quoted(&key)));
            }
            let (line, _) = sources.position(context.file, place.start);
            let path = &sources.get(context.file).path;
            upstream.comments.insert(0, format!("from {path}:{line} ({})", context.client.label));
            self.upstreams.push(upstream);
        }
    }

    /// Whether an entry with the same name and content was read already. Such an entry is reported.
    fn is_repeated(&mut self, context: &mut Context<'_>, key: &str, place: &std::ops::Range<u32>, node: &Node) -> bool {
        let value = Json::from(node);
        let known = self.seen.entry(key.to_owned()).or_default();
        if let Some((_, first)) = known.iter().find(|(other, _)| *other == value) {
            let place = Span { file: context.file, range: place.clone() };
            let diagnostic = Diagnostic::new(Code::EntryRepeated, format!("the entry {} is imported once", quoted(key)))
                .at(place, "the same entry")
                .also(first.clone(), "imported from here");
            context.diagnostics.push(diagnostic);
            return true;
        }
        known.push((value, Span { file: context.file, range: place.clone() }));
        false
    }

    /// Returns a name that an upstream can have and that none has yet.
    fn free_name(&self, key: &str) -> String {
        let plain = names::usable(key);
        let is_taken = |name: &str| self.upstreams.iter().any(|upstream| folded(&upstream.name) == folded(name));
        let mut name = plain.clone();
        let mut count = 1;
        while is_taken(&name) {
            count += 1;
            let base: String = plain.chars().take(60).collect();
            name = format!("{base}-{count}");
        }
        name
    }
}
