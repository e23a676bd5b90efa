//! Asks the upstream for its tools, over the same connections as `update`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ptc_catalog::effect::is_safe;
use ptc_compiler::config::model::Transport;
use ptc_compiler::config::{self, Config};
use ptc_compiler::diag::Diagnostics;
use ptc_compiler::import::{self, Description, Options, Single};
use ptc_compiler::json::Json;
use ptc_compiler::lock::{LockedTool, LockedUpstream};
use ptc_compiler::openapi::{self, Overview, Text, Wanted};
use ptc_compiler::resolve::{MissingPin, Query};
use ptc_compiler::serve::ask::{self, Fetched};
use ptc_compiler::source::Sources;
use ptc_compiler::{files, lock};

use super::args::Init;
use super::choose::{Tool, Tools};
use super::describe::{self, Credential, Kind, Service};
use super::prompt::Prompts;
use crate::console::Console;
use crate::installed_packages::ThisMachine;
use crate::query_upstreams::{self, Connections};
use crate::shared_args::web_address;
use crate::{Failure, load};

/// The folders of this run.
pub(super) struct Folders {
    /// The current folder.
    pub(super) here: Option<PathBuf>,
    /// The folder of the config, absolute.
    pub(super) absolute: Option<PathBuf>,
    /// The folder of the config, as it is named.
    pub(super) config: PathBuf,
}

impl Folders {
    pub(super) fn from_config(config: &Path) -> Folders {
        let absolute = |path: &Path| std::path::absolute(path).ok().map(|path| path.components().collect::<PathBuf>());
        let folder = files::folder(config);
        Folders { here: absolute(Path::new(".")), absolute: absolute(&folder), config: folder }
    }
}

/// Makes the upstream, and prints the findings about it. Returns `None` after a finding if it cannot be one.
pub(super) fn upstream(description: &Description, folders: &Folders, console: &Console) -> (Option<Single>, Diagnostics) {
    let folder = folders.absolute.as_deref().and_then(Path::to_str).map(str::to_owned);
    let options = Options { folder, secret_files: None };
    let mut diagnostics = Diagnostics::default();
    let single = import::single(description, &options, &mut ThisMachine, &mut diagnostics);
    console.findings(&Sources::default(), &diagnostics);
    (single, diagnostics)
}

/// A config that is not written yet, with the texts that its findings show.
pub(super) struct Draft {
    pub(super) sources: Sources,
    pub(super) config: Config,
}

/// Reads the text of a config. Prints the findings and returns `None` if it has errors.
pub(super) fn draft(path: &Path, text: &str, console: &Console) -> Option<Draft> {
    let (mut sources, mut diagnostics) = (Sources::default(), Diagnostics::default());
    let file = sources.add(path.display().to_string(), text);
    let config = config::read(&sources, file, &mut diagnostics);
    if diagnostics.has_errors() || config.is_none() {
        console.findings(&sources, &diagnostics);
        return None;
    }
    Some(Draft { sources, config: config? })
}

/// Returns the tools of an MCP server in the form of the lock file. Prints the findings and returns `None` if it cannot be asked.
pub(super) fn listing(
    args: &Init,
    name: &str,
    single: &Single,
    folders: &Folders,
    console: &Console,
) -> Result<Option<LockedUpstream>, Failure> {
    let Some(Draft { mut sources, config }) = draft(&args.output, &single.text(), console) else { return Ok(None) };
    let pins = [MissingPin { upstream: name.to_owned(), what: Query::Tools, why: String::new() }];
    let mut diagnostics = Diagnostics::default();
    let connections = Connections::Own(args.connecting);
    let mut found = query_upstreams::ask(&config, &folders.config, &pins, connections, &mut sources, &mut diagnostics, console)?;
    if diagnostics.has_errors() {
        console.findings(&sources, &diagnostics);
        return Ok(None);
    }
    Ok(found.remove(name))
}

/// Returns the tools of a listing with what they declare.
pub(super) fn tools(listing: &LockedUpstream) -> Tools {
    let text = |tool: &LockedTool, key: &str| tool.definition.get(key).and_then(Json::as_str).map(first_line);
    let list = listing.tools.iter().map(|(name, tool)| Tool {
        name: name.clone(),
        summary: text(tool, "description").or_else(|| text(tool, "title")).unwrap_or_default(),
        is_read: tool.definition.get("annotations").and_then(|hints| hints.get("readOnlyHint")).and_then(Json::as_bool)
            == Some(true),
    });
    Tools::new(list.collect(), false)
}

fn first_line(text: &str) -> String {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned()
}

/// Returns the origin of a URL as text.
fn origin(url: &str) -> String {
    url::Url::parse(url).map(|url| url.origin().ascii_serialization()).unwrap_or_default()
}

/// An OpenAPI document: a file, or what its URL has now.
pub(super) enum Document {
    File(String),
    Url(String, Fetched),
}

impl Document {
    /// Reads or fetches the document. Prints the findings and returns `None` if it cannot be fetched.
    ///
    /// The host of a document may be another one than that of the service. It gets the credential only if `--base-url` has its
    /// origin, or after a question.
    pub(super) fn get(
        args: &Init,
        document: &str,
        credentials: &[Credential],
        prompts: &mut Prompts,
        folders: &Folders,
        console: &Console,
    ) -> Result<Option<Document>, Failure> {
        let Ok(url) = web_address(document) else { return Ok(Some(Document::File(document.to_owned()))) };
        let origin = origin(&url);
        let is_same = args.base_url.as_deref().is_some_and(|base_url| self::origin(base_url) == origin);
        let sent = if is_same { credentials } else { &[] };
        if let Some(found) = Document::fetch(args, &url, sent, folders, console)? {
            return Ok(Some(found));
        }
        if is_same || credentials.is_empty() {
            return Ok(None);
        }
        console.message(&format!(
            "the credential was not sent to {origin}; it is, if `--base-url` names a service of the same origin\n"
        ));
        if prompts.confirm(&format!("Ask {origin} once more, with the credential?"), "--base-url", false)? {
            describe::check_set(credentials)?;
            return Document::fetch(args, &url, credentials, folders, console);
        }
        Ok(None)
    }

    fn fetch(
        args: &Init,
        url: &str,
        credentials: &[Credential],
        folders: &Folders,
        console: &Console,
    ) -> Result<Option<Document>, Failure> {
        // The document does not tell its service yet.
        let service = Service { base_url: origin(url), include: vec!["*".to_owned()], allow_writes: false };
        let name = "document";
        let description = describe::description(&Kind::OpenApi(url.to_owned()), name, credentials, Some(&service), None, None);
        let (Some(single), _) = upstream(&description, folders, console) else { return Ok(None) };
        let Some(Draft { mut sources, config }) = draft(&args.output, &single.text(), console) else { return Ok(None) };
        let pins = [MissingPin { upstream: name.to_owned(), what: Query::Document, why: String::new() }];
        let connections = Connections::Own(args.connecting);
        let mut asked = query_upstreams::answers(&config, &folders.config, &pins, connections, console)?;
        match asked.answers.pop().map(ask::Answer::into_document) {
            Some(Ok(fetched)) => Ok(Some(Document::Url(url.to_owned(), fetched))),
            Some(Err(answer)) => {
                let mut diagnostics = Diagnostics::default();
                ask::locked(&config, vec![*answer], &mut sources, &mut diagnostics);
                console.findings(&sources, &diagnostics);
                Ok(None)
            }
            None => Ok(None),
        }
    }

    fn text(&self) -> Result<Text, Failure> {
        match self {
            Document::File(path) => Ok(Text::new(path.clone(), load::read_text(Path::new(path))?)),
            Document::Url(url, fetched) => {
                fetched.text(url).map_err(|why| Failure::new(format!("`{url}` cannot be read: {why}")))
            }
        }
    }

    /// Returns the title and the server. Prints the findings and returns `None` if this is not an OpenAPI document.
    pub(super) fn overview(&self, console: &Console) -> Result<Option<Overview>, Failure> {
        let (mut sources, mut diagnostics) = (Sources::default(), Diagnostics::default());
        let overview = openapi::overview(&mut sources, self.text()?, &mut diagnostics);
        if overview.is_none() {
            console.findings(&sources, &diagnostics);
        }
        Ok(overview)
    }

    /// Returns the operations that can be included, and the number of the others.
    pub(super) fn operations(&self, base_url: &str, console: &Console) -> Result<Option<(Tools, usize)>, Failure> {
        let (mut sources, mut diagnostics) = (Sources::default(), Diagnostics::default());
        let text = self.text()?;
        let path = text.path.clone();
        let mut part = |name: &str, max_bytes: u64| match self {
            Document::File(_) => {
                let mut reader = |wanted: &Wanted<'_>| files::read(Path::new("."), wanted);
                openapi::read_part(&mut reader, &path, name, max_bytes)
            }
            Document::Url(_, fetched) => fetched.part(name, max_bytes),
        };
        let Some(listed) = openapi::list(&mut sources, text, Some(base_url), &mut diagnostics, &mut part) else {
            console.findings(&sources, &diagnostics);
            return Ok(None);
        };
        let all = listed.len();
        let usable = listed.into_iter().filter(|operation| operation.outcome.is_ok()).map(|operation| Tool {
            is_read: is_safe(&operation.method),
            name: operation.id.unwrap_or_else(|| format!("{} {}", operation.method, operation.path)),
            summary: operation.summary,
        });
        let usable: Vec<Tool> = usable.collect();
        let refused = all - usable.len();
        Ok(Some((Tools::new(usable, true), refused)))
    }

    /// Returns the entry of the lock file for a document behind a URL. A build reads files itself.
    pub(super) fn pins(&self, name: &str, draft: &mut Draft) -> BTreeMap<String, lock::LockedUpstream> {
        let Document::Url(_, fetched) = self else { return BTreeMap::new() };
        let Some(entry) = draft.config.upstreams.get(name).filter(|entry| matches!(entry.transport, Transport::OpenApi(_)))
        else {
            return BTreeMap::new();
        };
        // `--check` reports the findings of the document.
        let found = ask::document(name, entry, fetched, &mut draft.sources, &mut Diagnostics::default());
        found.map(|found| (name.to_owned(), found)).into_iter().collect()
    }
}
