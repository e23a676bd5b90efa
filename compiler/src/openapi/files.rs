//! The files of a document: the first one, and those to which `$ref`s lead from there.
//!
//! Offsets of nodes count through all files, as in the source map of rustc: the nodes of each file begin after the end of the
//! file before. So the offset of a node identifies its file, and [`Files::translate`] returns the position in that file.

use std::collections::BTreeMap;

use url::Url;

use super::location::{Location, Target, is_scheme_uri};
use crate::diag::{Code, Diagnostic, Diagnostics, quoted};
use crate::input::{Text, Unreadable};
use crate::lock;
use crate::source::{FileId, MAX_BYTES, Sources, Span};
use crate::tree::{self, Node, Tree};

/// Maximum number of files of a document.
pub const MAX_FILES: usize = 256;

/// Reads a further file of a document, by its name and the largest size in bytes. The name is the path in the folder of the
/// document, or a URL.
pub type PartReader<'a> = dyn FnMut(&str, u64) -> Result<Text, Unreadable> + 'a;

/// All files of a document.
#[derive(Debug)]
pub(super) struct Files {
    list: Vec<File>,
    /// What the `$ref`s of each file lead to, by the index of the file and the `$ref` without its fragment.
    links: BTreeMap<(usize, String), Link>,
}

/// The index of a file, or the reason why a `$ref` cannot be followed.
type Link = Result<usize, Diagnostic>;

#[derive(Debug)]
struct File {
    id: FileId,
    /// The offset of its first byte.
    start: u32,
    name: String,
    /// `$self`
    identity: Option<Url>,
    root: Node,
}

impl Files {
    /// Loads all files to which `$ref`s lead from `first`, whose nodes are `root`. `name` is the name of the first file. All
    /// files together have at most `max_bytes`. A file that cannot be loaded is a fault of the operations that need it.
    pub(super) fn load(
        sources: &mut Sources,
        (first, root): (FileId, Node),
        (location, name): (&Location, String),
        max_bytes: u64,
        diagnostics: &mut Diagnostics,
        reader: &mut PartReader<'_>,
    ) -> Files {
        let identity = identity(&root);
        let mut files = Files { list: vec![File { id: first, start: 0, name, identity, root }], links: BTreeMap::new() };
        let mut room = max_bytes.min(MAX_BYTES as u64).saturating_sub(size(sources, first));
        let mut known: BTreeMap<String, Link> = BTreeMap::new();
        let mut at = 0;
        while let Some(file) = files.list.get(at) {
            let mut references = Vec::new();
            collect(&file.root, &mut references);
            references.sort_unstable();
            references.dedup();
            for reference in references.into_iter().map(str::to_owned).collect::<Vec<_>>() {
                let Some(file) = files.list.get(at) else { continue };
                let link = match location.target(&file.name, file.identity.as_ref(), &reference) {
                    None => Err(outside(location, &reference)),
                    Some(Target::Same) => Ok(at),
                    Some(Target::File(name)) => {
                        let by_name = || files.list.iter().position(|file| file.name == name);
                        let link = known.get(&name).cloned().or_else(|| by_name().map(Ok)).unwrap_or_else(|| {
                            let text = files.read(location, (&name, &reference), (max_bytes, &mut room), reader)?;
                            files.add(sources, name.clone(), text, diagnostics)
                        });
                        known.insert(name, link.clone());
                        link
                    }
                };
                files.links.insert((at, reference), link);
            }
            at += 1;
        }
        files
    }

    /// Reads a further file.
    fn read(
        &self,
        location: &Location,
        (name, reference): (&str, &str),
        (max_bytes, room): (u64, &mut u64),
        reader: &mut PartReader<'_>,
    ) -> Result<Text, Diagnostic> {
        if self.list.len() == MAX_FILES {
            return Err(Diagnostic::new(Code::TooManyFiles, format!("the document consists of more than {MAX_FILES} files"))
                .hint("bundle it into one file first, for example with `npx @redocly/cli bundle`"));
        }
        let text = reader(name, *room).map_err(|why| match why {
            Unreadable::Outside => outside(location, reference),
            Unreadable::TooLarge(_) => {
                let message = format!("the files of the document have more than {max_bytes} bytes together");
                Diagnostic::new(Code::TooManyFiles, message).hint("give the entry a larger `schema_max_bytes`")
            }
            why => Diagnostic::new(Code::SchemaUnreadable, format!("{} cannot be read: {why}", quoted(name))),
        })?;
        *room = room.saturating_sub(text.text.len() as u64);
        Ok(text)
    }

    /// Parses and adds a file.
    fn add(&mut self, sources: &mut Sources, name: String, text: Text, diagnostics: &mut Diagnostics) -> Link {
        let id = sources.add(text.path, text.text);
        let mut found = Diagnostics::default();
        let Some(mut root) = tree::parse_document(sources, id, &mut found) else {
            // Only the operations that need the file are faulty.
            let fault = found.sorted().first().copied().cloned();
            return Err(fault.unwrap_or_else(|| Diagnostic::new(Code::SchemaUnreadable, format!("{} is empty", quoted(&name)))));
        };
        diagnostics.append(found);
        let end = self.list.last().map_or(0, |last| u64::from(last.start) + size(sources, last.id) + 1);
        let start = u32::try_from(end).unwrap_or(u32::MAX);
        shift(&mut root, start);
        self.list.push(File { id, start, name, identity: identity(&root), root });
        Ok(self.list.len() - 1)
    }

    /// Returns the root of the file with this index.
    pub(super) fn root(&self, index: usize) -> Option<&Node> {
        self.list.get(index).map(|file| &file.root)
    }

    /// Returns the index of the file that has the node at `offset`.
    pub(super) fn index_of(&self, offset: u32) -> usize {
        self.list.partition_point(|file| file.start <= offset).saturating_sub(1)
    }

    /// Returns the index of the file that a `$ref` leads to. `document` is the `$ref` without its fragment, in the file with the
    /// index
    /// `from`.
    ///
    /// # Errors
    ///
    /// A diagnostic, which has the position of a fault in that file if there is one.
    pub(super) fn follow(&self, from: usize, document: &str) -> Link {
        if document.is_empty() {
            return Ok(from);
        }
        self.links.get(&(from, document.to_owned())).cloned().unwrap_or(Ok(from))
    }

    /// Returns the files of the document.
    pub(super) fn ids(&self) -> impl Iterator<Item = FileId> {
        self.list.iter().map(|file| file.id)
    }

    /// Returns name and digest of each file but the first.
    pub(super) fn digests(&self) -> BTreeMap<String, String> {
        self.list.iter().skip(1).map(|file| (file.name.clone(), lock::sha256_of_node(&file.root))).collect()
    }

    /// Replaces a place that counts through all files by the position in its file.
    pub(super) fn translate(&self, place: &mut Span) {
        if self.list.first().is_none_or(|first| first.id != place.file) {
            return;
        }
        if let Some(file) = self.list.get(self.index_of(place.range.start)) {
            let offset = |at: u32| at.saturating_sub(file.start);
            *place = Span { file: file.id, range: offset(place.range.start)..offset(place.range.end) };
        }
    }
}

/// Returns the references of a file that lead to other files, without their fragments and in no order. The name of the file is
/// its URL, and
/// `origin` is the URL of the first file of the document.
pub fn referenced_urls(origin: &Url, name: &str, text: &str) -> Vec<String> {
    if !may_refer(text) {
        return Vec::new();
    }
    let (mut sources, mut diagnostics) = (Sources::default(), Diagnostics::default());
    let file = sources.add(name, text);
    let Some(root) = tree::parse_document(&sources, file, &mut diagnostics) else { return Vec::new() };
    let mut references = Vec::new();
    collect(&root, &mut references);
    let (location, identity) = (Location::Origin(origin.clone()), identity(&root));
    let targets = references.into_iter().filter_map(|reference| location.target(name, identity.as_ref(), reference));
    targets.filter_map(|target| if let Target::File(name) = target { Some(name) } else { None }).collect()
}

/// Whether a text may have a reference to another file, found without parsing it.
fn may_refer(text: &str) -> bool {
    let is_local = |rest: &str| rest.trim_start_matches(['"', '\'', ':', ' ', '\t', '\r', '\n']).starts_with('#');
    // The list of scopes after the name of the first security scheme ends with a bracket.
    let has_uri =
        |rest: &str| rest.starts_with(['"', '\'', ':']) && rest.split(']').next().is_some_and(|first| first.contains('/'));
    text.split("$ref").skip(1).any(|rest| !is_local(rest)) || text.split("security").skip(1).any(has_uri)
}

/// Collects the `$ref`s and the URIs of security schemes that lead to other files, without their fragments.
fn collect<'a>(node: &'a Node, references: &mut Vec<&'a str>) {
    match &node.value {
        Tree::Array(items) => items.iter().for_each(|item| collect(item, references)),
        Tree::Object(members) => {
            for member in members {
                let mut add = |uri: &'a str| references.extend(uri.split('#').next().filter(|document| !document.is_empty()));
                match (&*member.key, &member.value.value) {
                    ("$ref", Tree::String(text)) => add(text),
                    ("security", Tree::Array(any_of)) => {
                        let names = any_of.iter().flat_map(Node::members).map(|scheme| &*scheme.key);
                        names.filter(|name| is_scheme_uri(name)).for_each(add);
                    }
                    _ => collect(&member.value, references),
                }
            }
        }
        _ => {}
    }
}

fn size(sources: &Sources, id: FileId) -> u64 {
    sources.get(id).text.len() as u64
}

/// Returns `$self` of a file if it is an absolute URL. A relative one adds nothing to the location of the file.
fn identity(root: &Node) -> Option<Url> {
    let mut url = Url::parse(root.get("$self")?.as_str()?).ok()?;
    url.set_fragment(None);
    Some(url)
}

fn outside(location: &Location, reference: &str) -> Diagnostic {
    let (what, hint) = match location {
        Location::Folder => ("folder", "copy the file into the folder of the document, or bundle the document into one file"),
        Location::Origin(_) => ("origin", "bundle the document into one file, and name it in `schema_file`"),
    };
    Diagnostic::new(Code::ForeignReference, format!("{} is outside of the document's {what}", quoted(reference))).hint(hint)
}

/// Adds a number to all offsets.
fn shift(node: &mut Node, by: u32) {
    let moved = |range: &std::ops::Range<u32>| range.start.saturating_add(by)..range.end.saturating_add(by);
    node.range = moved(&node.range);
    match &mut node.value {
        Tree::Array(items) => items.iter_mut().for_each(|item| shift(item, by)),
        Tree::Object(members) => {
            for member in members {
                member.key_range = moved(&member.key_range);
                shift(&mut member.value, by);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_may_refer_to_other_files_are_recognised() {
        for (text, expected) in [
            ("{\"$ref\": \"#/a\"}", false),
            ("{\"$ref\": \"#/a\", \"b\": {\"$ref\":\"b.json\"}}", true),
            ("a:\n  $ref: '#/a'\n", false),
            ("a:\n  $ref: b.yaml#/a\n", true),
            ("\"$ref\":\n  \"b.yaml\"", true),
            ("{\"security\": [{\"key\": []}], \"b\": \"/c\"}", false),
            ("{\"security\": [{\"b.json#/schemes/key\": []}]}", true),
            ("security:\n  - b.yaml#/key: []\n", true),
            ("", false),
        ] {
            assert_eq!(may_refer(text), expected, "{text}");
        }
    }
}
