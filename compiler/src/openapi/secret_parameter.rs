//! Which parameters carry credentials. Those are sent by the entry, and programs do not see them.

use ptc_secrets::heuristics::names_a_credential;

use crate::config::model::{OpenApi, Override};
use crate::tree::Node;

/// Who sends a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sender {
    /// The program, as an argument.
    Program,
    /// The entry, by `auth` or `static_headers`.
    Entry,
    /// The entry should, since the parameter carries a secret, and it does not.
    Missing,
}

/// The security schemes of a document that are parameters, and what an entry sends.
#[derive(Debug)]
pub(super) struct Credentials<'a> {
    /// `in` and `name` of every `apiKey` scheme.
    schemes: Vec<(&'a str, &'a str)>,
    /// Names of the headers that the entry sends.
    headers: Vec<String>,
    /// `idempotency_header`
    idempotency_header: Option<&'a str>,
    /// Whether missing credentials are assumed to be sent. This lists what an entry could include.
    pub(super) are_assumed: bool,
}

impl<'a> Credentials<'a> {
    /// Reads the schemes of the document `root`. Without an entry, credentials are assumed to be sent.
    pub(super) fn new(root: &'a Node, entry: Option<&'a OpenApi>) -> Self {
        let schemes = root.get("components").and_then(|components| components.get("securitySchemes")).map(Node::members);
        let api_key = |scheme: &'a Node| {
            let text = |key| scheme.get(key).and_then(Node::as_str);
            (text("type")? == "apiKey").then_some((text("in")?, text("name")?))
        };
        let headers = entry.map(|entry| entry.http.sent_headers().map(str::to_ascii_lowercase).collect()).unwrap_or_default();
        Credentials {
            schemes: schemes.unwrap_or_default().iter().filter_map(|member| api_key(&member.value)).collect(),
            headers,
            idempotency_header: entry.and_then(|entry| entry.idempotency_header.as_deref()),
            are_assumed: entry.is_none(),
        }
    }

    /// Whether a parameter is the header that carries the key of each write.
    pub(super) fn is_idempotency_key(&self, place: &str, name: &str) -> bool {
        place == "header" && self.idempotency_header.is_some_and(|header| header.eq_ignore_ascii_case(name))
    }

    /// Returns who sends a parameter. Parameters of the path are always arguments.
    pub(super) fn sender(&self, place: &str, name: &str, overriding: Option<&Override>) -> Sender {
        if place == "header" && self.headers.iter().any(|sent| sent.eq_ignore_ascii_case(name)) {
            return Sender::Entry;
        }
        let is_permitted = overriding.is_some_and(|overriding| {
            overriding.secret_args.iter().any(|permitted| permitted == name)
                || overriding.default_args.as_ref().is_some_and(|defaults| defaults.contains_key(name))
        });
        let is_scheme = self.schemes.iter().any(|(is_in, scheme)| {
            *is_in == place && if place == "header" { scheme.eq_ignore_ascii_case(name) } else { *scheme == name }
        });
        if place == "path" || is_permitted || !(is_scheme || names_a_credential(name)) {
            Sender::Program
        } else {
            Sender::Missing
        }
    }
}
