//! Reads `auth`: the credentials that each request carries.

use ptc_catalog::KeyPlace;

use super::credentials::Bindings;
use super::fields::{Fields, Subject};
use super::headers::{self, Seen, Setter};
use super::keys;
use super::model::{Auth, Spanned};
use super::oauth;
use super::reader::ConfigReader;
use super::table::Table;
use crate::diag::{Code, Diagnostic, quoted, suggest};
use crate::source::Span;
use crate::tree::Node;

/// Reads the elements of `auth` of one entry in order, with their positions. Access tokens of MCP servers are requested for
/// `resource`, unless an element has another one.
pub(super) fn read(
    reader: &mut ConfigReader<'_>,
    owner: &str,
    auth_elements: &[Node],
    bindings: &Bindings,
    resource: Option<&str>,
    seen: &mut Seen,
) -> Vec<(Auth, Span)> {
    let read = |node| Some((auth_element(reader, owner, node, bindings, resource, seen)?, node.place(reader.file)));
    auth_elements.iter().filter_map(read).collect()
}

fn auth_element(
    reader: &mut ConfigReader<'_>,
    owner: &str,
    node: &Node,
    bindings: &Bindings,
    resource: Option<&str>,
    seen: &mut Seen,
) -> Option<Auth> {
    let subject = Subject { name: format!("an element of `auth` of {owner}"), place: node.place(reader.file) };
    let fields = Fields::read_variant(reader, &subject, &keys::AUTH, node, unknown_scheme)?;
    let scheme = fields.tag();
    let binding = fields.spanned(reader, "binding");
    if let Some(binding) = &binding {
        let sent = fields.node("scheme").map_or_else(|| binding.place.clone(), |node| node.place(reader.file));
        let hint = "change `scheme` in this element of `auth`, or the credential's `scheme_hint`";
        check_binding(reader, scheme, binding, bindings, sent, hint);
    }
    match scheme {
        "bearer" | "basic" => {
            let place = fields.node("scheme").unwrap_or(node).place(reader.file);
            seen.set(reader, "header", "Authorization", place);
            let binding = binding?.value;
            Some(if scheme == "bearer" { Auth::Bearer { binding } } else { Auth::Basic { binding } })
        }
        "oauth2" => {
            let place = fields.node("scheme").unwrap_or(node).place(reader.file);
            seen.set(reader, "header", "Authorization", place);
            oauth::read(reader, &subject, &fields, bindings, resource).map(Auth::OAuth2)
        }
        "mtls" => Some(Auth::ClientCertificate { binding: binding?.value }),
        "api_key" => {
            let key = api_key(reader, &subject, &fields, seen);
            let (kind, Spanned { value: name, .. }, binding) = (key.0, key.1?, binding?.value);
            Some(match kind {
                None => Auth::CustomHeader { header: name, binding },
                Some(place) => Auth::ApiKey { place, name, binding },
            })
        }
        // `keys::AUTH` has no other scheme than `custom_header`.
        _ => {
            let header = fields.spanned(reader, "header");
            check_header(reader, Setter::Auth, header.as_ref(), seen);
            Some(Auth::CustomHeader { header: header?.value, binding: binding?.value })
        }
    }
}

/// Reads place and name of an `api_key`. The place of a header is `None`.
fn api_key(
    reader: &mut ConfigReader<'_>,
    subject: &Subject,
    fields: &Fields<'_>,
    seen: &mut Seen,
) -> (Option<KeyPlace>, Option<Spanned<String>>) {
    let place = match fields.node("in").and_then(Node::as_str) {
        Some("query") => Some(KeyPlace::Query),
        Some("cookie") => Some(KeyPlace::Cookie),
        _ => None,
    };
    let (named, header) = (fields.spanned(reader, "name"), fields.spanned(reader, "header"));
    match (&named, fields.member("header")) {
        (Some(_), Some(member)) => {
            let diagnostic = Diagnostic::new(Code::UnknownKey, "`header` is another way to write `name`, which is given as well");
            reader.report(diagnostic.at(reader.key_place(member), "").hint("remove it"));
        }
        (None, Some(member)) if place.is_some() => {
            let diagnostic =
                Diagnostic::new(Code::UnknownKey, "`header` names a header, and `in` says that the secret is elsewhere");
            reader.report(diagnostic.at(reader.key_place(member), "").hint("here it is called `name`"));
        }
        (None, None) if fields.unfit("name").is_none() && fields.unfit("header").is_none() => {
            let diagnostic = Diagnostic::new(Code::MissingKey, format!("{} lacks the key `name`", subject.name));
            let hint = "`name` is the name of the header, query parameter or cookie that carries the secret";
            reader.report(diagnostic.at(subject.place.clone(), "`name` is missing").hint(hint));
        }
        _ => {}
    }
    let name = named.or(header);
    let Some(found) = &name else { return (place, None) };
    let kind = match place {
        None => {
            check_header(reader, Setter::ApiKey, Some(found), seen);
            return (place, name);
        }
        Some(KeyPlace::Query) => "query",
        Some(KeyPlace::Cookie) => "cookie",
    };
    if headers::can_carry_key(kind, &found.value) {
        seen.set(reader, kind, &found.value, found.place.clone());
    } else {
        let message =
            format!("{} is not a name of a {}", quoted(&found.value), if kind == "query" { "query parameter" } else { kind });
        let hint = if kind == "query" { "it is one line of text" } else { "names are letters, digits and !#$%&'*+-.^_`|~" };
        reader.report(Diagnostic::new(Code::BadHeaderName, message).at(found.place.clone(), "").hint(hint));
    }
    (place, name)
}

fn check_header(reader: &mut ConfigReader<'_>, setter: Setter, header: Option<&Spanned<String>>, seen: &mut Seen) {
    if let Some(header) = header
        && headers::check_name(reader, setter, &header.value, None, header.place.clone())
    {
        seen.set(reader, "header", &header.value, header.place.clone());
    }
}

/// Checks the credential that a proxy receives as basic authentication.
pub(super) fn check_proxy_binding(reader: &mut ConfigReader<'_>, binding: &Spanned<String>, bindings: &Bindings) {
    // The text may be the credential itself, which is not repeated.
    if binding.value.contains(':') && !bindings.has(&binding.value) {
        let diagnostic = Diagnostic::new(Code::UnresolvedBinding, "`auth` of a proxy must be the name of a credential")
            .at(binding.place.clone(), "not in `credentials`")
            .hint("put `user:password` into `credentials`, and write the name of that entry here");
        reader.report(diagnostic);
        return;
    }
    let hint = "a proxy receives user and password: name another credential, or change its `scheme_hint`";
    check_binding(reader, "basic", binding, bindings, binding.place.clone(), hint);
}

/// Checks that a binding exists and suits the scheme. `sent` is the position that chooses the scheme.
pub(super) fn check_binding(
    reader: &mut ConfigReader<'_>,
    scheme: &str,
    binding: &Spanned<String>,
    bindings: &Bindings,
    sent: Span,
    scheme_hint: &str,
) {
    let name = &binding.value;
    if !bindings.has(name) {
        let mut diagnostic =
            Diagnostic::new(Code::UnresolvedBinding, format!("no credential is called {}", reader.quoted(name, &binding.place)))
                .at(binding.place.clone(), "not in `credentials`");
        diagnostic = match suggest::hint(name, "credential", bindings.names()) {
            Some(hint) => diagnostic.hint(hint),
            None => diagnostic.hint(format!("add {} to `credentials`", reader.quoted(name, &binding.place))),
        };
        reader.report(diagnostic);
    }
    let family = |scheme: &str| if scheme == "api_key" { "custom_header".to_owned() } else { scheme.to_owned() };
    if let Some((hint, place)) = bindings.hint(name)
        && family(hint) != family(scheme)
    {
        let diagnostic = Diagnostic::new(
            Code::SchemeHintMismatch,
            format!("the credential {} is sent as `{scheme}`, not as `{hint}`", quoted(name)),
        )
        .at(sent, format!("sent as `{scheme}` here"))
        .also(place.clone(), "meant for this scheme")
        .hint(scheme_hint);
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
    ("oauth", "oauth2"),
    ("client_credentials", "oauth2"),
    ("jwt", "bearer"),
    ("header", "custom_header"),
    ("password", "basic"),
    ("query", "api_key"),
    ("cookie", "api_key"),
    ("mutualTLS", "mtls"),
    ("client_certificate", "mtls"),
];

fn unknown_scheme(reader: &mut ConfigReader<'_>, node: &Node, wrong: &str) -> Option<&'static Table> {
    let meant = suggest::meant(wrong, keys::AUTH.tags(), OTHER_NAMES);
    let hint = match meant {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("the schemes are {}", keys::AUTH.tags().map(quoted).collect::<Vec<_>>().join(", ")),
    };
    reader.fault(
        Code::UnknownScheme,
        node,
        format!("unknown auth scheme {}", reader.quoted(wrong, &node.place(reader.file))),
        "",
        &hint,
    );
    meant.and_then(|tag| keys::AUTH.case(tag))
}
