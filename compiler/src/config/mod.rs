//! Reads `upstreams.json`: parses its text and checks it.
//!
//! | module | purpose |
//! |---|---|
//! | [`model`] | the checked config |
//! | `digest` | the digest of what goes into the binary |
//! | [`keys`] | every key as a row of a table |
//! | [`table`] | the types of these rows |
//! | [`schema`] | the rows as a JSON Schema |
//! | `fields`, `kinds` | read an object and a value by their rows |
//! | `upstream`, `stdio`, `http`, `openapi` | read the entries of `upstreams` |
//! | `programs` | reads programs that clients call as tools |
//! | `policy` | reads which callers may call which tools |
//! | `credentials`, `auth` | read the sources of secrets, and the credentials that requests carry |
//! | `headers`, `urls`, `placeholder`, `names` | check single values |
//! | `packages` | warns of packages that are fetched and run without a fixed version |
//! | `suspects` | warns of values that look like misplaced secrets |
//! | `mask_secrets` | marks the texts that no rendering may show |

pub mod keys;
pub mod model;
pub mod schema;
pub mod table;

mod auth;
mod credentials;
mod digest;
mod exchange;
mod fields;
pub(crate) mod headers;
mod http;
mod kinds;
mod mask_secrets;
pub(crate) mod names;
mod oauth;
mod openapi;
pub(crate) mod operation_name;
pub mod operation_selector;
pub mod packages;
pub(crate) mod placeholder;
mod policy;
mod programs;
mod reader;
mod stdio;
mod suspects;
mod upstream;
mod urls;

use std::collections::BTreeMap;

use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::source::{FileId, Sources, Span};
use crate::tree::{self, Node, Syntax};
use fields::{Fields, Subject};
pub(crate) use headers::can_carry_key;
pub use model::Config;
use reader::ConfigReader;
pub use urls::is_loopback;

/// Reads a config and reports all faults.
///
/// Returns `None` if none of it could be read. The result has the valid entries, and separately the readable parts of faulty
/// entries, so that later phases can report findings on both. Nothing may be built from a config with errors: check
/// [`Diagnostics::has_errors`].
pub fn read(sources: &Sources, file: FileId, diagnostics: &mut Diagnostics) -> Option<Config> {
    read_as(sources, file, Syntax::CONFIG, diagnostics)
}

/// Like [`read`], with a choice of syntax: [`Syntax::STRICT`] accepts only strict JSON.
pub fn read_as(sources: &Sources, file: FileId, syntax: Syntax, diagnostics: &mut Diagnostics) -> Option<Config> {
    let Some(root) = tree::parse_as(sources, file, syntax, diagnostics) else {
        mask_secrets::text(sources, file, diagnostics);
        return None;
    };
    let mut reader = ConfigReader::new(file, diagnostics);
    mask_secrets::tree(&mut reader, &root);
    suspects::warn(&mut reader, &root);
    placeholder::warn_where_literal(&mut reader, &root);

    let subject = Subject { name: "the config".to_owned(), place: Span { file, range: root.range.start..root.range.start + 1 } };
    let fields = Fields::read(&mut reader, &subject, &keys::CONFIG, &[], &root)?;
    let bindings = credentials::read(&mut reader, &fields);
    names::check(&mut reader, fields.members("upstreams"));
    let (mut upstreams, mut faulty) = (BTreeMap::new(), BTreeMap::new());
    for member in fields.replaced("upstreams").flat_map(Node::members).chain(fields.members("upstreams")) {
        let before = reader.errors();
        reader.belongs(member);
        if let Some(upstream) = upstream::read(&mut reader, member, &bindings) {
            let into = if reader.errors() == before { &mut upstreams } else { &mut faulty };
            into.insert(member.key.to_string(), upstream);
        }
    }
    if let Some(node) = fields.node("upstreams")
        && node.members().is_empty()
    {
        let diagnostic = Diagnostic::new(Code::NoUpstreams, "the config has no upstreams")
            .at(node.place(file), "nothing to call")
            .hint("programs will run, and have no tools to call");
        reader.report(diagnostic);
    }
    let mut stored = BTreeMap::new();
    for member in fields.members("programs") {
        if let Some(program) = programs::read(&mut reader, member) {
            stored.insert(member.key.to_string(), program);
        }
    }
    let policy = fields.member("policy").and_then(|member| policy::read(&mut reader, member, fields.members("upstreams")));
    credentials::warn_of_unused(&mut reader, &fields, &bindings);
    let read_only = fields.node("read_only").filter(|node| node.as_bool() == Some(true)).map(|node| node.place(file));
    let name = fields.node("name").and_then(|node| names::deployment(&mut reader, node));
    let digest = digest::digest(&root);
    Some(Config {
        file,
        digest,
        name,
        upstreams,
        faulty,
        credentials: bindings.into_sound(),
        programs: stored,
        read_only,
        policy,
    })
}
