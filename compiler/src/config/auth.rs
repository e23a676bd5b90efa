//! Reads `auth`: the headers that carry secrets.

use super::credentials::Bindings;
use super::fields::{Fields, Subject};
use super::headers::{self, Seen, Setter};
use super::keys;
use super::model::{Auth, Spanned};
use super::reader::ConfigReader;
use super::table::Table;
use crate::diag::{Code, Diagnostic, quoted, suggest};
use crate::tree::Node;

/// Reads the emitters of one entry, in order.
pub(super) fn read(
    reader: &mut ConfigReader<'_>,
    owner: &str,
    emitters: &[Node],
    bindings: &Bindings,
    seen: &mut Seen,
) -> Vec<Auth> {
    emitters.iter().filter_map(|node| emitter(reader, owner, node, bindings, seen)).collect()
}

fn emitter(reader: &mut ConfigReader<'_>, owner: &str, node: &Node, bindings: &Bindings, seen: &mut Seen) -> Option<Auth> {
    let subject = Subject { name: format!("an emitter in `auth` of {owner}"), place: node.place(reader.file) };
    let fields = Fields::read_variant(reader, &subject, &keys::AUTH, node, unknown_scheme)?;
    let scheme = fields.tag();
    let binding = fields.spanned(reader, "binding");
    if let Some(binding) = &binding {
        check_binding(reader, scheme, &fields, binding, bindings);
    }
    if matches!(scheme, "bearer" | "basic") {
        let place = fields.node("scheme").unwrap_or(node).place(reader.file);
        seen.set(reader, "Authorization", place);
        let binding = binding?.value;
        return Some(if scheme == "bearer" { Auth::Bearer { binding } } else { Auth::Basic { binding } });
    }
    let header = fields.spanned(reader, "header");
    if let Some(header) = &header
        && headers::check_name(reader, Setter::Auth, &header.value, None, header.place.clone())
    {
        seen.set(reader, &header.value, header.place.clone());
    }
    Some(Auth::CustomHeader { header: header?.value, binding: binding?.value })
}

fn check_binding(
    reader: &mut ConfigReader<'_>,
    scheme: &str,
    fields: &Fields<'_>,
    binding: &Spanned<String>,
    bindings: &Bindings,
) {
    let name = &binding.value;
    if !bindings.has(name) {
        let mut diagnostic = Diagnostic::new(Code::UnresolvedBinding, format!("no credential is called {}", quoted(name)))
            .at(binding.place.clone(), "not in `credentials`");
        diagnostic = match suggest::hint(name, "credential", bindings.names()) {
            Some(hint) => diagnostic.hint(hint),
            None => diagnostic.hint(format!("add {} to `credentials`", quoted(name))),
        };
        reader.report(diagnostic);
    }
    let family = |scheme: &str| if scheme == "api_key" { "custom_header".to_owned() } else { scheme.to_owned() };
    if let Some((hint, place)) = bindings.hint(name)
        && family(hint) != family(scheme)
    {
        let at = fields.node("scheme").map_or_else(|| binding.place.clone(), |node| node.place(reader.file));
        let diagnostic = Diagnostic::new(
            Code::SchemeHintMismatch,
            format!("the credential {} is sent as `{scheme}`, not as `{hint}`", quoted(name)),
        )
        .at(at, format!("sent as `{scheme}` here"))
        .also(place.clone(), "meant for this scheme")
        .hint("change the emitter's `scheme`, or the credential's `scheme_hint`");
        reader.report(diagnostic);
    }
    if scheme == "basic"
        && let Some(place) = bindings.not_a_pair(name)
    {
        let diagnostic = Diagnostic::new(Code::BadBasicSecret, format!("the secret {} is not a user and password", quoted(name)))
            .at(place.clone(), "no user and password with one `:` between them")
            .also(binding.place.clone(), "sent as `basic` here")
            .hint("write `user:password`, or an object with `user`, which has no `:`, and `pass`");
        reader.report(diagnostic);
    }
}

/// Names that other tools use for the schemes, with the names used here.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("token", "bearer"),
    ("oauth", "bearer"),
    ("oauth2", "bearer"),
    ("jwt", "bearer"),
    ("header", "custom_header"),
    ("password", "basic"),
];

fn unknown_scheme(reader: &mut ConfigReader<'_>, node: &Node, wrong: &str) -> Option<&'static Table> {
    let meant = suggest::meant(wrong, keys::AUTH.tags(), OTHER_NAMES);
    let hint = match meant {
        Some(name) => format!("did you mean `{name}`?"),
        None => "schemes are `bearer`, `basic`, `custom_header` and its other name `api_key`".to_owned(),
    };
    reader.fault(Code::UnknownScheme, node, format!("unknown auth scheme {}", quoted(wrong)), "", &hint);
    meant.and_then(|tag| keys::AUTH.case(tag))
}
