//! Lists every operation of a document and whether it can be a tool.

use ptc_catalog::Paging;
use std::collections::BTreeMap;

use super::context::Context;
use super::document::read_document;
use super::files::{Files, PartReader};
use super::location::{Location, name_of_url};
use super::reference::{Followed, References};
use super::secret_parameter::Credentials;
use super::{operation, response, select, server};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::input::Text;
use crate::json::Json;
use crate::paging;
use crate::source::{FileId, MAX_BYTES, Sources, Span};
use crate::tree::Node;
use url::Url;

/// One operation.
#[derive(Debug, Clone)]
pub struct Listed {
    /// The HTTP method in capitals.
    pub method: String,
    /// The path template.
    pub path: String,
    /// `operationId`.
    pub id: Option<String>,
    /// The tags in the document's order.
    pub tags: Vec<String>,
    /// One line: the summary, or else the first line of the description.
    pub summary: String,
    /// The name under which programs would call it, or every reason why it cannot be a tool, the most important first.
    pub outcome: Result<String, Vec<Diagnostic>>,
    /// What an entry must say to include it, beside its exact name.
    pub needs: Vec<String>,
    /// How the list in the answer is paged, if the schemas show it.
    pub paging: Option<Paging>,
    /// The first example of the body of its successful response, as the document has it.
    pub example: Option<Json>,
    /// The position in the document.
    pub place: Span,
}

/// What a document says about its service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overview {
    /// The title.
    pub title: Option<String>,
    /// The URL of its first server. One that is relative to the URL of the document is made absolute.
    pub server: Option<String>,
}

/// Returns what a document says about its service, or `None` if the text is not an OpenAPI document.
pub fn overview(sources: &mut Sources, text: Text, diagnostics: &mut Diagnostics) -> Option<Overview> {
    let from = web_url(&text.path);
    let file = sources.add(text.path, text.text);
    let root = read_document(sources, file, diagnostics)?;
    let title = root.get("info").and_then(|info| info.get("title")).and_then(Node::as_str).map(str::to_owned);
    let first = root.get("servers").and_then(Node::elements).and_then(<[Node]>::first).and_then(server::url);
    let server = first.filter(|url| !url.contains('{')).and_then(|url| match &from {
        Some(from) => from.join(&url).ok(),
        None => Url::parse(&url).ok(),
    });
    let server = server.filter(|url| matches!(url.scheme(), "http" | "https"));
    Some(Overview { title, server: server.map(|url| url.to_string().trim_end_matches('/').to_owned()) })
}

/// Returns the URL of a document that is not a file.
fn web_url(path: &str) -> Option<Url> {
    Url::parse(path).ok().filter(|url| matches!(url.scheme(), "http" | "https"))
}

/// Returns all operations of a document in its order, followed by the paths that cannot be read. Operations of servers other than
/// `base_url` cannot be tools; without `base_url`, every server is accepted. Returns `None` if the text is not an OpenAPI
/// document. `reader` reads its further files.
pub fn list(
    sources: &mut Sources,
    text: Text,
    base_url: Option<&str>,
    diagnostics: &mut Diagnostics,
    reader: &mut PartReader<'_>,
) -> Option<Vec<Listed>> {
    let (location, name) = match web_url(&text.path) {
        Some(url) => (Location::Origin(url.clone()), name_of_url(url)),
        None => (Location::Folder, text.path.rsplit('/').next().unwrap_or_default().to_owned()),
    };
    let file = sources.add(text.path, text.text);
    let root = read_document(sources, file, diagnostics)?;
    let files = Files::load(sources, (file, root), (&location, name), MAX_BYTES as u64, diagnostics, reader);
    let mut listed = list_files(file, &files, base_url)?;
    for operation in &mut listed {
        files.translate(&mut operation.place);
        for fault in operation.outcome.as_mut().err().into_iter().flatten() {
            fault.translate(|place| files.translate(place));
        }
    }
    Some(listed)
}

fn list_files(file: FileId, files: &Files, base_url: Option<&str>) -> Option<Vec<Listed>> {
    let root = files.root(0)?;
    let followed = Followed::default();
    let references = References::new(file, root, files, &followed);
    let credentials = Credentials::new(references, None);
    let base_url = base_url.unwrap_or_default();
    let context = Context { references, base_url, server_origins: &[], credentials: &credentials };
    let mut exposed: BTreeMap<String, Span> = BTreeMap::new();
    let mut out = Vec::new();
    let operations = select::operations(references);
    for candidate in operations.known {
        let place = Span { file, range: candidate.place.clone() };
        let (mut paging, mut needs) = (None, Vec::new());
        let outcome = if candidate.is_refused() {
            let message = format!("a {} operation, which cannot be included", candidate.method);
            Err(vec![Diagnostic::new(Code::WriteNotAllowed, message).at(place.clone(), "")])
        } else {
            operation::definition(context, &candidate, false, None, &mut Vec::new()).and_then(|defined| {
                paging = paging::inferred(&defined.definition);
                needs = defined.needs;
                unique(&mut exposed, defined.exposed, &place)
            })
        };
        let said = |key| candidate.operation.get(key).and_then(Node::as_str).map(str::trim).filter(|text| !text.is_empty());
        let summary = said("summary").or_else(|| said("description")).and_then(|text| text.lines().next());
        out.push(Listed {
            method: candidate.method.to_owned(),
            path: candidate.path.to_owned(),
            id: candidate.id.map(str::to_owned),
            tags: candidate.tags().map(str::to_owned).collect(),
            summary: summary.unwrap_or_default().to_owned(),
            outcome,
            needs,
            paging,
            example: response::example(references, candidate.operation),
            place,
        });
    }
    // An unreadable path may have a GET operation, which could not be included.
    out.extend(operations.unread.into_iter().map(|unread| Listed {
        method: "GET".to_owned(),
        path: unread.path.to_owned(),
        id: None,
        tags: Vec::new(),
        summary: String::new(),
        outcome: Err(vec![unread.fault]),
        needs: Vec::new(),
        paging: None,
        example: None,
        place: Span { file, range: unread.place.clone() },
    }));
    Some(out)
}

fn unique(exposed: &mut BTreeMap<String, Span>, name: String, place: &Span) -> Result<String, Vec<Diagnostic>> {
    if let Some(first) = exposed.get(&name) {
        let message = format!("an earlier operation is exposed as `{name}` too");
        return Err(vec![
            Diagnostic::new(Code::NameCollision, message)
                .at(place.clone(), "")
                .also(first.clone(), "the earlier one")
                .hint("include it with another `name` in `operation_overrides`"),
        ]);
    }
    exposed.insert(name.clone(), place.clone());
    Ok(name)
}
