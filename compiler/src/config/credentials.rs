//! Reads `credentials`: the sources of secrets.

use std::collections::{BTreeMap, BTreeSet};

use super::fields::{Fields, Subject};
use super::keys;
use super::model::{Binding, CredentialSource};
use super::placeholder;
use super::reader::ConfigReader;
use super::table::Table;
use crate::diag::{Code, Diagnostic, quoted, suggest};
use crate::source::Span;
use crate::tree::{Member, Node};

/// Minimum length of a secret in characters. A shorter one would occur in ordinary text, so that it cannot be redacted.
const MIN_LEN: usize = 8;

/// The bindings of a config: the names of all, and the values of the valid ones.
pub(super) struct Bindings {
    names: BTreeSet<String>,
    sound: BTreeMap<String, Read>,
}

struct Read {
    binding: Binding,
    hint: Option<Span>,
    /// The position of a literal's value.
    value: Option<Span>,
}

impl Bindings {
    /// Whether there is a binding of that name, valid or not.
    pub(super) fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Returns the valid binding whose secret is in the environment variable `name`.
    pub(super) fn of_variable(&self, name: &str) -> Option<&str> {
        let is_it = |read: &Read| matches!(&read.binding.source, CredentialSource::Env { var } if var == name);
        self.sound.iter().find(|(_, read)| is_it(read)).map(|(binding, _)| binding.as_str())
    }

    /// Returns all names.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.names.iter().map(String::as_str)
    }

    /// Returns the scheme hint of a binding, and its position.
    pub(super) fn hint(&self, name: &str) -> Option<(&str, &Span)> {
        let read = self.sound.get(name)?;
        Some((read.binding.scheme_hint.as_deref()?, read.hint.as_ref()?))
    }

    /// Returns the position of a literal that does not contain a user and a password.
    pub(super) fn not_a_pair(&self, name: &str) -> Option<&Span> {
        let read = self.sound.get(name)?;
        match &read.binding.source {
            CredentialSource::Literal { value } if !is_pair(value) => read.value.as_ref(),
            _ => None,
        }
    }

    /// Returns the position of a binding whose secret is not in a file.
    pub(super) fn not_a_file(&self, name: &str) -> Option<&Span> {
        let binding = &self.sound.get(name)?.binding;
        (!matches!(binding.source, CredentialSource::File { .. })).then_some(&binding.place)
    }

    /// Returns the valid bindings.
    pub(super) fn into_sound(self) -> BTreeMap<String, Binding> {
        self.sound.into_iter().map(|(name, read)| (name, read.binding)).collect()
    }
}

/// Reads all bindings of a config.
pub(super) fn read(reader: &mut ConfigReader<'_>, config: &Fields<'_>) -> Bindings {
    let mut bindings = Bindings { names: BTreeSet::new(), sound: BTreeMap::new() };
    for member in config.members("credentials") {
        bindings.names.insert(member.key.to_string());
        let before = reader.errors();
        let binding = read_one(reader, member);
        if reader.errors() == before
            && let Some(binding) = binding
        {
            bindings.sound.insert(member.key.to_string(), binding);
        }
    }
    bindings
}

fn read_one(reader: &mut ConfigReader<'_>, member: &Member) -> Option<Read> {
    let subject = Subject { name: format!("credential {}", quoted(&member.key)), place: reader.key_place(member) };
    let fields = Fields::read_variant(reader, &subject, &keys::CREDENTIAL, &member.value, unknown_source)?;
    let source = match fields.tag() {
        "env" => {
            let var = fields.spanned(reader, "var")?;
            if var.value.starts_with('$') {
                let plain = var.value.trim_start_matches('$').trim_matches(['{', '}']);
                let message = format!("{} names the variable with a dollar sign", quoted(&var.value));
                let hint = format!("write {}", quoted(plain));
                reader.report(
                    Diagnostic::new(Code::BadVariableName, message).at(var.place, "only the name belongs here").hint(hint),
                );
            } else {
                placeholder::check_variable(reader, &var.value, var.place);
            }
            CredentialSource::Env { var: var.value }
        }
        "file" => CredentialSource::File { path: fields.text("path")? },
        _ => CredentialSource::Literal { value: literal(reader, &member.key, &fields)? },
    };
    let value = match &source {
        CredentialSource::Literal { .. } => fields.node("value").map(|node| node.place(reader.file)),
        CredentialSource::Env { .. } | CredentialSource::File { .. } => None,
    };
    Some(Read {
        binding: Binding { place: subject.place, source, scheme_hint: fields.text("scheme_hint") },
        hint: fields.node("scheme_hint").map(|node| node.place(reader.file)),
        value,
    })
}

/// Names that other tools use for the sources, with the names used here.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("environment", "env"),
    ("variable", "env"),
    ("path", "file"),
    ("value", "literal"),
    ("inline", "literal"),
    ("plain", "literal"),
];

fn unknown_source(reader: &mut ConfigReader<'_>, node: &Node, wrong: &str) -> Option<&'static Table> {
    if wrong == "exec" {
        let message = "the credential source `exec` is reserved";
        let hint = "run the command before the server and hand its answer over with `env` or `file`";
        reader.fault(Code::ReservedSource, node, message, "not available yet", hint);
        return None;
    }
    let meant = suggest::meant(wrong, keys::CREDENTIAL.tags(), OTHER_NAMES);
    let hint = match meant {
        Some(name) => format!("did you mean `{name}`?"),
        None => "sources are `env`, `file` and `literal`".to_owned(),
    };
    reader.fault(Code::UnknownSource, node, format!("unknown credential source {}", quoted(wrong)), "", &hint);
    meant.and_then(|tag| keys::CREDENTIAL.case(tag))
}

fn literal(reader: &mut ConfigReader<'_>, name: &str, fields: &Fields<'_>) -> Option<String> {
    let node = fields.node("value")?;
    let value = if let Some(text) = node.as_str() {
        text.to_owned()
    } else {
        let part = |key| node.get(key).and_then(Node::as_str).unwrap_or("");
        serde_json::json!({"user": part("user"), "pass": part("pass")}).to_string()
    };
    let message = format!("the secret {} is written into the config", quoted(name));
    let diagnostic = Diagnostic::new(Code::LiteralSecret, message)
        .at(node.place(reader.file), "readable by everyone who has the config, or a binary built from it")
        .hint("use \"source\": \"env\" or \"source\": \"file\"");
    reader.report(diagnostic);
    if value.chars().count() < MIN_LEN {
        let message = format!("the secret {} is shorter than {MIN_LEN} characters", quoted(name));
        let diagnostic = Diagnostic::new(Code::ShortSecret, message)
            .at(node.place(reader.file), "cannot be told from ordinary text")
            .hint("it could not be redacted from answers and logs, so the server would not start with it; use a longer one");
        reader.report(diagnostic);
    }
    Some(value)
}

/// Whether the value is `user:pass`, or an object with both.
fn is_pair(value: &str) -> bool {
    match serde_json::from_str::<serde_json::Value>(value) {
        Ok(serde_json::Value::Object(object)) => {
            // Everything after the first `:` would be taken as the password, so the user must not contain one.
            let part = |key: &str| object.get(key).and_then(serde_json::Value::as_str);
            part("user").is_some_and(|user| !user.contains(':')) && part("pass").is_some()
        }
        _ => value.contains(':'),
    }
}

/// Warns of bindings that no `auth` refers to. References in faulty entries, and misspelt references, count as uses. Bindings
/// with errors are skipped, because they have been reported already.
pub(super) fn warn_of_unused(reader: &mut ConfigReader<'_>, config: &Fields<'_>, bindings: &Bindings) {
    let mut named = BTreeSet::new();
    for upstream in config.members("upstreams") {
        let of_proxy = upstream.value.get("proxy").and_then(|proxy| proxy.get("auth"));
        if upstream.value.get("auth").is_some_and(is_unclear) || of_proxy.is_some_and(|auth| auth.as_str().is_none()) {
            return;
        }
        named.extend(of_proxy.and_then(Node::as_str));
        collect_uses(&upstream.value, &mut named);
    }
    let known = || config.members("credentials").iter().map(|member| &*member.key);
    let meant =
        named.iter().filter(|name| !known().any(|key| key == **name)).filter_map(|name| suggest::closest_match(name, known()));
    let used: BTreeSet<&str> = named.iter().copied().chain(meant).collect();
    for member in config.members("credentials") {
        if bindings.sound.contains_key(&*member.key) && !used.contains(&*member.key) {
            let diagnostic = Diagnostic::new(Code::UnusedBinding, format!("nothing uses the credential {}", quoted(&member.key)))
                .at(reader.key_place(member), "no `auth` names it")
                .hint("remove it, or name it as the `binding` of an element of `auth`");
            reader.report(diagnostic);
        }
    }
}

/// Whether an `auth` is so malformed that its bindings cannot be determined. Its own faults are reported elsewhere.
fn is_unclear(auth: &Node) -> bool {
    let is_public = |node: &Node| node.get("client_auth").and_then(Node::as_str) == Some("none") && node.get("binding").is_none();
    let is_auth_element = |node: &Node| {
        is_public(node) || node.get("subject").is_some() || node.get("binding").is_some_and(|binding| binding.as_str().is_some())
    };
    !is_auth_element(auth) && !auth.elements().is_some_and(|auth_elements| auth_elements.iter().all(is_auth_element))
}

fn collect_uses<'n>(node: &'n Node, used: &mut BTreeSet<&'n str>) {
    for member in node.members() {
        if matches!(&*member.key, "binding" | "subject") {
            used.extend(member.value.as_str());
        }
        collect_uses(&member.value, used);
    }
    for element in node.elements().unwrap_or(&[]) {
        collect_uses(element, used);
    }
}
