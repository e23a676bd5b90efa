//! Which parameters carry credentials. Those are sent by the entry, and programs do not see them.

use ptc_secrets::heuristics::names_a_credential;

use super::reference::References;
use super::security;
use crate::config::model::{OpenApi, Override};
use crate::lock::security::SchemeKind;

/// The sender of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sender {
    /// The program, as an argument.
    Program,
    /// The entry, by `auth` or `static_headers`.
    Entry,
    /// The entry should, since the parameter carries a secret, and it does not.
    Missing,
}

/// The security schemes of a document, and the parameters that an entry sends.
#[derive(Debug)]
pub(super) struct Credentials<'a> {
    /// The security schemes of the document.
    schemes: Vec<SchemeKind>,
    /// Place and name of the parameters that the entry sends.
    sent: Vec<(&'a str, &'a str)>,
    /// `idempotency_header`
    idempotency_header: Option<&'a str>,
    /// Whether missing credentials are assumed to be sent. This lists what an entry could include.
    pub(super) are_assumed: bool,
}

impl<'a> Credentials<'a> {
    /// Reads the schemes of a document. Without an entry, credentials are assumed to be sent.
    pub(super) fn new(references: References<'_>, entry: Option<&'a OpenApi>) -> Self {
        Credentials {
            schemes: security::kinds(references),
            sent: entry.map(|entry| entry.http.sent_parameters().collect()).unwrap_or_default(),
            idempotency_header: entry.and_then(|entry| entry.idempotency_header.as_deref()),
            are_assumed: entry.is_none(),
        }
    }

    /// Whether a parameter is the header that carries the key of each write.
    pub(super) fn is_idempotency_key(&self, place: &str, name: &str) -> bool {
        self.idempotency_header.is_some_and(|header| is_same_parameter(("header", header), (place, name)))
    }

    /// Returns the sender of a parameter. Parameters of the path are always arguments.
    pub(super) fn sender(&self, place: &str, name: &str, overriding: Option<&Override>) -> Sender {
        let is_it = |known: &(&str, &str)| is_same_parameter(*known, (place, name));
        if self.sent.iter().any(is_it) {
            return Sender::Entry;
        }
        let is_permitted = overriding.is_some_and(|overriding| {
            overriding.secret_args.iter().any(|permitted| permitted == name)
                || overriding.default_args.as_ref().is_some_and(|defaults| defaults.contains_key(name))
        });
        let is_scheme =
            self.schemes.iter().any(|kind| matches!(kind, SchemeKind::ApiKey { place, name } if is_it(&(place, name))));
        if place == "path" || is_permitted || !(is_scheme || names_a_credential(name)) {
            Sender::Program
        } else {
            Sender::Missing
        }
    }
}

/// Whether two parameters, each as place and name, are the same. Case makes no difference in the name of a header.
pub(crate) fn is_same_parameter((place, name): (&str, &str), (other_place, other_name): (&str, &str)) -> bool {
    place == other_place && if place == "header" { name.eq_ignore_ascii_case(other_name) } else { name == other_name }
}
