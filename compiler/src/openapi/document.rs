//! Lowers one document: everything that a config includes of it, in the form of the lock file.

use ptc_text::join_limited;
use std::collections::{BTreeMap, BTreeSet};

use super::context::Context;
use super::files::{Files, PartReader};
use super::location::{Location, name_of_url};
use super::reference::{Followed, References};
use super::secret_parameter::Credentials;
use super::select::{self, Chosen};
use super::{operation, operation::Defined, selection, server, source};
use crate::config::model::{OpenApi, Override, SchemaSource, Spanned};
use crate::config::operation_selector::{self, is_path, is_pattern};
use crate::diag::{Code, Diagnostic, Diagnostics, Subject, quoted, suggest};
use crate::input::Text;
use crate::lock::{self, Document, LockedTool, LockedUpstream, Server};
use crate::source::{FileId, Sources, Span};
use crate::tree::{self, Node, Tree};
use url::Url;

/// Lowers the included operations of the document of `upstream`, whose further files `reader` reads. Returns `None` if the text is not an
/// OpenAPI document.
pub fn lower(
    upstream: &str,
    sources: &mut Sources,
    text: Text,
    entry: &OpenApi,
    diagnostics: &mut Diagnostics,
    reader: &mut PartReader<'_>,
) -> Option<LockedUpstream> {
    let file = sources.add(text.path, text.text);
    let (location, name) = match &entry.schema.value {
        SchemaSource::File(path) => (Location::Folder, path.rsplit('/').next().unwrap_or_default().to_owned()),
        SchemaSource::Url(url) => {
            let url = Url::parse(url).ok()?;
            (Location::Origin(url.clone()), name_of_url(url))
        }
    };
    let silence = |file: FileId, diagnostics: &mut Diagnostics| {
        diagnostics.belongs(upstream, Span { file, range: 0..u32::MAX });
        for code in &entry.silence {
            diagnostics.silence(*code, Span { file, range: 0..u32::MAX });
        }
    };
    silence(file, diagnostics);
    let root = read_document(sources, file, diagnostics)?;
    let files = Files::load(sources, (file, root), (&location, name), entry.schema_max_bytes, diagnostics, reader);
    files.ids().skip(1).for_each(|file| silence(file, diagnostics));
    let mut found = Diagnostics::default();
    let root = files.root(0)?;
    let locked = lower_files(file, root, &files, entry, &mut found);
    diagnostics.extend(found.translated(|place| files.translate(place)));
    let document = Document {
        source: source(entry).to_owned(),
        digest: lock::sha256_of_node(root),
        files: files.digests(),
        selection: selection(entry),
    };
    Some(LockedUpstream { document: Some(document), ..locked })
}

/// Lowers the operations. The result has no document.
fn lower_files(file: FileId, root: &Node, files: &Files, entry: &OpenApi, diagnostics: &mut Diagnostics) -> LockedUpstream {
    server::check(file, &entry.base_url, root, diagnostics);
    let followed = Followed::default();
    let references = References::new(file, root, files, &followed);
    let credentials = Credentials::new(references, Some(entry));
    let context =
        Context { references, base_url: &entry.base_url.value, server_origins: &entry.server_origins, credentials: &credentials };
    let operations = select::operations(references);
    let included = select::included(references, &operations, entry, diagnostics);
    check_overrides(entry, &included, diagnostics);
    let mut tools: BTreeMap<String, (LockedTool, &Chosen<'_, '_>)> = BTreeMap::new();
    let mut left_out = LeftOut::default();
    let mut found = OperationFindings::default();
    for chosen in &included {
        let overriding = select::override_of(entry, &chosen.candidate, &chosen.wanted.value);
        let mut notes = Vec::new();
        match operation::definition(context, &chosen.candidate, chosen.by_pattern, overriding, &mut notes) {
            Err(faults) if chosen.by_pattern => left_out.add(chosen, &faults),
            Err(faults) => {
                for fault in faults {
                    found.push(chosen, fault.also(chosen.wanted.place.clone(), "included here"));
                }
            }
            Ok(Defined { exposed, definition, security, .. }) => {
                for note in notes {
                    found.push(chosen, note);
                }
                match tools.get(&exposed) {
                    Some((_, first)) if chosen.by_pattern => {
                        left_out.add(chosen, &[collision(file, &exposed, first, chosen)]);
                    }
                    Some((_, first)) => diagnostics.push(collision(file, &exposed, first, chosen)),
                    None => {
                        let security = Some(security).filter(|security| !security.is_empty());
                        tools.insert(exposed, (LockedTool { security, ..LockedTool::new(definition) }, chosen));
                    }
                }
            }
        }
    }
    found.report(diagnostics);
    left_out.report(tools.values().map(|(_, chosen)| *chosen), diagnostics);
    let info = |key: &str| root.get("info").and_then(|i| i.get(key)).and_then(Node::as_str).unwrap_or_default().to_owned();
    LockedUpstream {
        transport: "openapi".to_owned(),
        server: Some(Server { name: info("title"), version: info("version") }),
        tools: tools.into_iter().map(|(name, (tool, _))| (name, tool)).collect(),
        ..LockedUpstream::default()
    }
}

/// Findings about single operations. Operations that share a faulty part of the document share one finding.
#[derive(Default)]
struct OperationFindings {
    list: Vec<(Diagnostic, Vec<String>)>,
}

impl OperationFindings {
    fn push(&mut self, chosen: &Chosen<'_, '_>, finding: Diagnostic) {
        let name = chosen.candidate.name().into_owned();
        let is_same = |(known, _): &&mut (Diagnostic, Vec<String>)| {
            (known.code, &known.primary, &known.message) == (finding.code, &finding.primary, &finding.message)
        };
        match self.list.iter_mut().find(is_same) {
            Some((_, names)) => names.push(name),
            None => self.list.push((finding, vec![name])),
        }
    }

    /// Adds the findings, each with the names of the operations in front of its message.
    fn report(self, diagnostics: &mut Diagnostics) {
        const SHOWN: usize = 3;
        for (mut finding, names) in self.list {
            let quoted: Vec<String> = names.iter().map(|name| quoted(name)).collect();
            finding.message = format!("{}: {}", join_limited(&quoted, ", ", SHOWN), finding.message);
            finding.subject.operation = names.into_iter().next();
            diagnostics.push(finding);
        }
    }
}

/// Parses a document and checks that its OpenAPI version is supported.
pub(super) fn read_document(sources: &Sources, file: FileId, diagnostics: &mut Diagnostics) -> Option<Node> {
    let root = tree::parse_document(sources, file, diagnostics)?;
    check_version(&root, file, diagnostics)?;
    if let Some(paths) = root.get("paths").filter(|paths| !matches!(paths.value, Tree::Object(_))) {
        let message = format!("`paths` is an object of paths, found {}", paths.kind());
        diagnostics.push(Diagnostic::new(Code::NotOpenApi, message).at(paths.place(file), ""));
        return None;
    }
    Some(root)
}

fn collision(file: FileId, exposed: &str, first: &Chosen<'_, '_>, second: &Chosen<'_, '_>) -> Diagnostic {
    let place = |chosen: &Chosen<'_, '_>| Span { file, range: chosen.candidate.place.clone() };
    Diagnostic::new(Code::NameCollision, format!("two included operations are exposed as `{exposed}`"))
        .about(Subject::default().tool(exposed).operation(&second.candidate.name()))
        .at(second.wanted.place.clone(), "includes the second")
        .also(place(first), "the first")
        .also(place(second), "the second")
        .hint("give one of them another `name` in `operation_overrides`")
}

/// Reports overrides of operations that are not included, unless the config reader has already reported them.
fn check_overrides(entry: &OpenApi, included: &[Chosen<'_, '_>], diagnostics: &mut Diagnostics) {
    let is_id = |name: &str| !is_pattern(name) && !is_path(name);
    let are_ids = entry.include_operations.iter().all(|wanted| is_id(&wanted.value));
    let named = || entry.include_operations.iter().map(|wanted| wanted.value.as_str());
    let is_reported = |id: &str, overriding: &Override| {
        let name = overriding.name.as_ref().map(|name| name.value.as_str());
        are_ids && is_id(id) && !operation_selector::may_be_included(named(), id, name)
    };
    let used: BTreeSet<*const Override> = included
        .iter()
        .filter_map(|chosen| select::override_of(entry, &chosen.candidate, &chosen.wanted.value))
        .map(std::ptr::from_ref)
        .collect();
    let names: Vec<_> = included.iter().map(|chosen| chosen.candidate.name()).collect();
    for (id, overriding) in &entry.operation_overrides {
        if used.contains(&std::ptr::from_ref(overriding)) || is_reported(id, overriding) {
            continue;
        }
        let is_meant =
            |chosen: &&Chosen<'_, '_>| operation_selector::names_operation(id, chosen.candidate.method, chosen.candidate.path);
        if let Some(chosen) = included.iter().find(is_meant) {
            let message = format!("the operation {} has another override, which counts", quoted(&chosen.candidate.name()));
            let diagnostic = Diagnostic::new(Code::OverrideNotIncluded, message)
                .about(Subject::default().operation(&chosen.candidate.name()))
                .at(overriding.place.clone(), "an override without effect");
            let counts = select::override_of(entry, &chosen.candidate, &chosen.wanted.value);
            diagnostics.push(match counts {
                Some(counts) => diagnostic.also(counts.place.clone(), "this one counts").hint("make one of the two"),
                None => diagnostic,
            });
        } else if !named().any(|wanted| wanted == id) {
            let message = format!("the operation {} is not included", quoted(id));
            let diagnostic = Diagnostic::new(Code::OverrideNotIncluded, message)
                .about(Subject::default().operation(id))
                .at(overriding.place.clone(), "an override without effect");
            let near = suggest::closest_match(id, names.iter().map(AsRef::as_ref));
            diagnostics.push(match near {
                Some(near) => diagnostic.hint(format!("did you mean {}?", quoted(near))),
                None => diagnostic.hint("remove the override, or include the operation"),
            });
        }
    }
}

/// Operations that patterns match but that do not become tools, by pattern.
#[derive(Default)]
struct LeftOut<'c> {
    by_pattern: Vec<(&'c Spanned<String>, LeftOutOperations)>,
}

#[derive(Default)]
struct LeftOutOperations {
    /// Each operation with its first fault.
    listed: Vec<String>,
    /// Whether one of these operations could not be a tool even if the config named it.
    has_faulty: bool,
}

impl<'c> LeftOut<'c> {
    fn add(&mut self, chosen: &Chosen<'_, 'c>, faults: &[Diagnostic]) {
        let reason = faults.first().map_or("", |fault| fault.message.as_str());
        let told = format!("`{}` ({reason})", chosen.candidate.name());
        let is_faulty = faults.iter().any(|fault| fault.code != Code::PatternLeftOut);
        match self.by_pattern.iter_mut().find(|(wanted, _)| std::ptr::eq(*wanted, chosen.wanted)) {
            Some((_, operations)) => {
                operations.listed.push(told);
                operations.has_faulty |= is_faulty;
            }
            None => self.by_pattern.push((chosen.wanted, LeftOutOperations { listed: vec![told], has_faulty: is_faulty })),
        }
    }

    /// Reports one diagnostic for each pattern: a note, or an error if the pattern includes nothing and an operation that it
    /// matches cannot be a tool.
    fn report<'a>(&self, tools: impl Iterator<Item = &'a Chosen<'a, 'c>>, diagnostics: &mut Diagnostics)
    where
        'c: 'a,
    {
        const SHOWN: usize = 3;
        let useful: BTreeSet<*const Spanned<String>> = tools.map(|chosen| std::ptr::from_ref(chosen.wanted)).collect();
        for (wanted, LeftOutOperations { listed, has_faulty }) in &self.by_pattern {
            let count = listed.len();
            let shown = join_limited(listed, ", ", SHOWN);
            let diagnostic = if !has_faulty || useful.contains(&std::ptr::from_ref(*wanted)) {
                let what = if count == 1 { "operation" } else { "operations" };
                let message = format!("`{}` leaves out {count} {what}: {shown}", wanted.value);
                Diagnostic::new(Code::PatternLeftOut, message)
            } else {
                let what = if count == 1 { "operation that cannot be a tool" } else { "operations that cannot be tools" };
                Diagnostic::new(Code::EmptyPattern, format!("`{}` fits only {count} {what}: {shown}", wanted.value))
            };
            diagnostics.push(diagnostic.at(wanted.place.clone(), ""));
        }
    }
}

fn check_version(root: &Node, file: FileId, diagnostics: &mut Diagnostics) -> Option<()> {
    let version = root.get("openapi").and_then(Node::as_str);
    if version.is_some_and(|v| ["3.0", "3.1", "3.2"].iter().any(|known| v.starts_with(known))) {
        return Some(());
    }
    let (message, hint) = match (version, root.get("swagger")) {
        (Some(version), _) => (format!("the document is of OpenAPI {version}"), "versions 3.0, 3.1 and 3.2 are understood"),
        (None, Some(_)) => {
            ("the document is of Swagger 2.0".to_owned(), "convert it to OpenAPI 3, for example with `npx swagger2openapi`")
        }
        (None, None) if root.get("openapi").is_some() => {
            ("the version of OpenAPI is not a string".to_owned(), "put it in quotes: `\"openapi\": \"3.0.3\"`")
        }
        (None, None) => (
            "the document does not say that it is OpenAPI".to_owned(),
            "it needs `\"openapi\": \"3.0.3\"` or another version of 3.0, 3.1 and 3.2",
        ),
    };
    let at =
        root.get("openapi").or_else(|| root.get("swagger")).map_or(root.range.start..root.range.start + 1, |n| n.range.clone());
    diagnostics.push(Diagnostic::new(Code::NotOpenApi, message).at(Span { file, range: at }, "").hint(hint));
    None
}
