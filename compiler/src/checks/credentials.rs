//! Compares the `auth` and `static_headers` of each OpenAPI entry with the credentials that its operations need.

use std::collections::BTreeSet;

use ptc_secrets::heuristics::names_a_credential;
use ptc_text::join_limited;

use crate::config::model::{Auth, Config, HttpOptions, OpenApi, SchemaSource, Transport, Upstream};
use crate::diag::{Code, Diagnostic, Diagnostics, quoted, quoted_list};
use crate::json::Json;
use crate::lock::security::{Scheme, SchemeKind};
use crate::lock::{Lock, LockedTool, LockedUpstream};
use crate::lower;
use crate::openapi::{is_same_parameter, is_supported};

/// Maximum number of operations or schemes that a finding names.
const SHOWN: usize = 3;

/// The parameter that `bearer` and `basic` send.
const AUTHORIZATION: (&str, &str) = ("header", "Authorization");

/// Reports operations for which an entry sends no credential, or a wrong one, and credentials that no operation uses. Operations
/// whose document declares nothing are not checked, and neither is an entry with an empty `auth`, which says that calls need
/// none.
pub(super) fn check(config: &Config, lock: &Lock, diagnostics: &mut Diagnostics) {
    entries(config, lock).for_each(|entry| entry.run(diagnostics));
}

/// Returns the scopes that the tokens of each OpenAPI entry must have, by the entry's name. Of an operation with several
/// alternatives, those of the first one count whose credentials the entry sends.
pub fn scopes<'a>(config: &'a Config, lock: &'a Lock) -> Vec<(&'a str, BTreeSet<&'a str>)> {
    let scopes = entries(config, lock).map(|entry| {
        let sent = entry.locked.tools.values().filter_map(|tool| {
            any_of(tool)?.iter().find(|all_of| all_of.iter().all(|scheme| entry.is_satisfied(tool, &scheme.kind)))
        });
        (entry.name, sent.flatten().flat_map(|scheme| &scheme.scopes).map(String::as_str).collect::<BTreeSet<_>>())
    });
    scopes.filter(|(_, scopes)| !scopes.is_empty()).collect()
}

/// Returns the OpenAPI entries that have pinned operations.
fn entries<'a>(config: &'a Config, lock: &'a Lock) -> impl Iterator<Item = Check<'a>> {
    config.upstreams.iter().filter_map(move |(name, upstream)| {
        let (Transport::OpenApi(entry), Some(locked)) = (&upstream.transport, lock.upstreams.get(name)) else { return None };
        Some(Check { config, name, upstream, entry, locked })
    })
}

/// One entry with its pinned operations.
struct Check<'a> {
    config: &'a Config,
    name: &'a str,
    upstream: &'a Upstream,
    entry: &'a OpenApi,
    locked: &'a LockedUpstream,
}

/// Operations that need the same credentials.
struct Group<'a> {
    /// The alternatives, with the scopes of all operations.
    any_of: Vec<Vec<Scheme>>,
    operations: Vec<&'a str>,
}

impl Group<'_> {
    fn needs_same(&self, any_of: &[Vec<Scheme>]) -> bool {
        let is_same = |(a, b): (&Scheme, &Scheme)| a.kind == b.kind || a.kind.is_bearer() && b.kind.is_bearer();
        let are_same = |(a, b): (&Vec<Scheme>, &Vec<Scheme>)| a.len() == b.len() && a.iter().zip(b).all(is_same);
        self.any_of.len() == any_of.len() && self.any_of.iter().zip(any_of).all(are_same)
    }

    fn add_scopes(&mut self, any_of: &[Vec<Scheme>]) {
        for (known, added) in self.any_of.iter_mut().flatten().zip(any_of.iter().flatten()) {
            let new = added.scopes.iter().filter(|scope| !known.scopes.contains(scope)).cloned().collect::<Vec<_>>();
            known.scopes.extend(new);
        }
    }
}

impl<'a> Check<'a> {
    fn run(&self, diagnostics: &mut Diagnostics) {
        let tools = self.locked.tools.values();
        let mut used: BTreeSet<usize> = tools.clone().flat_map(|tool| self.used_by(tool)).collect();
        let demands_none = self.http().auth.is_empty() && self.http().auth_place.is_some();
        for group in self.unsatisfied().iter().filter(|_| !demands_none) {
            let (finding, wrong) = self.finding(group, &used);
            used.extend(wrong);
            diagnostics.push(finding);
        }
        // The request for a document at a `schema_url` has the credentials too, and what it needs is not known.
        let is_fetched = matches!(self.entry.schema.value, SchemaSource::Url(_));
        if is_fetched || tools.clone().any(|tool| any_of(tool).is_none()) {
            return;
        }
        for (at, auth) in self.http().auth.iter().enumerate().filter(|(at, _)| !used.contains(at)) {
            // The network in front of a service may need a certificate that the document does not declare.
            if !matches!(auth, Auth::ClientCertificate { .. }) && !self.locked.tools.is_empty() {
                let credential = match auth.binding().as_str() {
                    "" => "access token".to_owned(),
                    binding => format!("credential {}", quoted(binding)),
                };
                let message = format!("no operation of {} uses the {credential}", quoted(self.name));
                let finding = Diagnostic::new(Code::UnusedCredential, message);
                let finding = self.at(finding, Some(at), "sent with every request");
                diagnostics.push(finding.hint("remove it, so that the service does not get a secret that it does not need"));
            }
        }
    }

    fn http(&self) -> &'a HttpOptions {
        &self.entry.http
    }

    /// Returns the credentials of the entry that an operation may use.
    fn used_by(&self, tool: &LockedTool) -> Vec<usize> {
        let schemes = any_of(tool).unwrap_or_default().iter().flatten();
        let by_schemes = schemes.flat_map(|scheme| self.senders(&scheme.kind));
        let sent = tool.security.iter().flat_map(|security| &security.sent);
        let by_parameters =
            sent.flat_map(|(place, name)| self.senders(&SchemeKind::ApiKey { place: place.clone(), name: name.clone() }));
        by_schemes.chain(by_parameters).collect()
    }

    /// Returns the positions in `auth` of the credentials that satisfy a scheme.
    fn senders(&self, kind: &SchemeKind) -> Vec<usize> {
        let satisfies = |auth: &Auth| match kind {
            SchemeKind::MutualTls => matches!(auth, Auth::ClientCertificate { .. }),
            SchemeKind::ApiKey { place, name } => auth.parameter().is_some_and(|sent| is_same_parameter(sent, (place, name))),
            // A secret that is the whole header can be a credential of any kind.
            _ if matches!(auth, Auth::CustomHeader { header, .. } if header.eq_ignore_ascii_case("authorization")) => true,
            SchemeKind::Basic => matches!(auth, Auth::Basic { .. }),
            kind => kind.is_bearer() && matches!(auth, Auth::Bearer { .. } | Auth::OAuth2(_)),
        };
        self.http().auth.iter().enumerate().filter(|(_, auth)| satisfies(auth)).map(|(at, _)| at).collect()
    }

    /// Whether `auth` or a static header sends what a scheme requires.
    fn is_sent(&self, kind: &SchemeKind) -> bool {
        let is_static = |(place, name): (&str, &str)| {
            self.http().static_headers.keys().any(|header| is_same_parameter(("header", header), (place, name)))
        };
        !self.senders(kind).is_empty() || matches!(kind, SchemeKind::ApiKey { place, name } if is_static((place, name)))
    }

    /// Whether `auth`, a static header or an argument of an operation sends what a scheme requires.
    fn is_satisfied(&self, tool: &LockedTool, kind: &SchemeKind) -> bool {
        let params = tool.definition.get("_ptc").and_then(|ptc| ptc.get("params")).map(Json::elements).unwrap_or_default();
        let is_argument = |place: &str, name: &str| {
            params.iter().any(|param| {
                let text = |key| param.get(key).and_then(Json::as_str).unwrap_or_default();
                is_same_parameter((text("in"), text("name")), (place, name))
            })
        };
        self.is_sent(kind) || matches!(kind, SchemeKind::ApiKey { place, name } if is_argument(place, name))
    }

    /// Returns the operations that have no satisfied alternative, by what they need.
    fn unsatisfied(&self) -> Vec<Group<'a>> {
        let mut groups: Vec<Group<'a>> = Vec::new();
        for (name, tool) in &self.locked.tools {
            let Some(any_of) = any_of(tool) else { continue };
            if any_of.iter().any(|all_of| all_of.iter().all(|scheme| self.is_satisfied(tool, &scheme.kind))) {
                continue;
            }
            match groups.iter_mut().find(|group| group.needs_same(any_of)) {
                Some(group) => {
                    group.operations.push(name);
                    group.add_scopes(any_of);
                }
                None => groups.push(Group { any_of: any_of.to_vec(), operations: vec![name.as_str()] }),
            }
        }
        groups
    }

    /// Whether requests send another credential in place of the missing ones: an `Authorization` header of another scheme, or a
    /// static header that has the name of a credential.
    fn sends_another(&self, missing: &[&Scheme]) -> bool {
        let needs_header = missing.iter().any(|scheme| uses_authorization(&scheme.kind));
        let mut sent = self.http().auth.iter().filter_map(Auth::parameter);
        needs_header && sent.any(|sent| is_same_parameter(sent, AUTHORIZATION))
            || self.http().static_headers.keys().any(|name| names_a_credential(name))
    }

    /// Returns the finding about operations, and the position of the credential that is sent in a wrong way.
    fn finding<'g>(&self, group: &'g Group<'a>, used: &BTreeSet<usize>) -> (Diagnostic, Option<usize>) {
        let subject = self.subject(&group.operations);
        let missing =
            |all_of: &'g Vec<Scheme>| all_of.iter().filter(|scheme| !self.is_sent(&scheme.kind)).collect::<Vec<&Scheme>>();
        let are_supported = |missing: &Vec<&Scheme>| missing.iter().all(|scheme| is_supported(&scheme.kind));
        let mut alternatives: Vec<Vec<&Scheme>> = group.any_of.iter().map(missing).filter(are_supported).collect();
        alternatives.sort_by_key(Vec::len);
        let Some(missing) = alternatives.first() else { return (self.unsupported(&subject, group), None) };
        let is_certificate = |auth: &Auth| matches!(auth, Auth::ClientCertificate { .. });
        let auth = self.http().auth.iter().enumerate();
        let mut idle = auth.filter(|(at, auth)| !used.contains(at) && !is_certificate(auth));
        let needs_key = missing.iter().any(|scheme| matches!(scheme.kind, SchemeKind::ApiKey { .. }));
        let is_key = |auth: &Auth| matches!(auth, Auth::CustomHeader { .. } | Auth::ApiKey { .. });
        let misplaced = idle.clone().find(|(_, auth)| needs_key && is_key(auth));
        let wrong = misplaced.or_else(|| idle.next());
        let (code, label) = match (misplaced.and_then(|(_, auth)| auth.parameter()), wrong) {
            (Some((place, name)), _) => (Code::CredentialPlace, format!("sent as the {place} {}", quoted(name))),
            (None, Some(_)) => (Code::CredentialScheme, "no operation uses this credential".to_owned()),
            (None, None) if self.sends_another(missing) => (Code::CredentialScheme, "another credential is sent".to_owned()),
            (None, None) => (Code::MissingCredential, "no such credential is sent".to_owned()),
        };
        let end = if wrong.is_some() { "and the entry sends another credential" } else { "which the entry does not send" };
        let message = format!("{subject} {}, {end}", described(missing));
        let wrong = wrong.map(|(at, _)| at);
        let mut finding = self.at(Diagnostic::new(code, message), wrong, &label);
        for (at, alternative) in alternatives.iter().enumerate() {
            let or = if at == 0 { "" } else { "or " };
            let moved = misplaced.map(|(_, auth)| auth.binding().as_str());
            finding = finding.hint(format!("{or}{}", self.proposal(alternative, wrong, moved)));
        }
        (finding, wrong)
    }

    fn unsupported(&self, subject: &str, group: &Group<'_>) -> Diagnostic {
        let schemes = group.any_of.iter().flatten().filter(|scheme| !is_supported(&scheme.kind));
        let schemes: BTreeSet<String> =
            schemes.map(|scheme| format!("{} ({})", quoted(&scheme.name), type_of(&scheme.kind))).collect();
        let schemes = join_limited(schemes, ", ", SHOWN);
        let message = format!("{subject} an authentication scheme that is not supported: {schemes}");
        let finding = self.at(Diagnostic::new(Code::UnsupportedScheme, message), None, "");
        finding.hint("the service will refuse these calls, unless a proxy in front of it adds the authentication")
    }

    /// Returns what to write so that the entry sends the schemes: elements of `auth`, and the members of `credentials` that they
    /// need.
    /// `replaced` is the position of the element that they replace, and `moved` is its binding if they include its secret.
    fn proposal(&self, schemes: &[&Scheme], replaced: Option<usize>, moved: Option<&str>) -> String {
        let mut moved = moved;
        let mut auth_elements: Vec<(Json, String)> = Vec::new();
        for kind in schemes.iter().map(|scheme| &scheme.kind) {
            let auth_element = auth_element(kind);
            if auth_elements.iter().any(|(known, _)| *known == auth_element) {
                continue;
            }
            let moved = if matches!(kind, SchemeKind::ApiKey { .. }) { moved.take() } else { None };
            let binding = moved.map_or_else(|| self.new_binding(kind, &auth_elements), str::to_owned);
            auth_elements.push((auth_element, binding));
        }
        let bound =
            |(auth_element, binding): &(Json, String)| written(&auth_element.clone().with("binding", Json::string(&**binding)));
        let elements = auth_elements.iter().map(bound).collect::<Vec<_>>().join(", ");
        let others = self.http().auth.iter().enumerate().filter(|(at, _)| Some(*at) != replaced);
        let is_authorized = others.filter_map(|(_, auth)| auth.parameter()).any(|sent| is_same_parameter(sent, AUTHORIZATION));
        let needs_header = schemes.iter().any(|scheme| uses_authorization(&scheme.kind));
        let entry = if is_authorized && needs_header {
            format!(
                "a request has one `Authorization` header: give these operations an entry of their own with `\"auth\": [{elements}]`"
            )
        } else if replaced.is_some() {
            format!("replace it by `{elements}`")
        } else if self.http().auth.is_empty() {
            format!("add `\"auth\": [{elements}]` to the entry")
        } else {
            format!("add `{elements}` to `auth`")
        };
        let new =
            auth_elements.iter().map(|(_, binding)| binding).filter(|binding| !self.config.credentials.contains_key(*binding));
        let members = new.map(|binding| credential(binding)).collect::<Vec<_>>().join(", ");
        let credentials = match members.as_str() {
            "" => String::new(),
            _ if self.config.credentials.is_empty() => format!(", and add `\"credentials\": {{{members}}}` beside `upstreams`"),
            _ => format!(", and add `{members}` to `credentials`"),
        };
        let unused = replaced.and_then(|at| self.http().auth.get(at)).map(Auth::binding).filter(|old| {
            let all = self.config.upstreams.values().flat_map(|upstream| lower::auth(&upstream.transport));
            all.filter(|auth| auth.binding() == *old).count() == 1 && !auth_elements.iter().any(|(_, binding)| binding == *old)
        });
        let removed = unused.map(|old| format!(", and remove {} from `credentials`", quoted(old))).unwrap_or_default();
        let scopes: BTreeSet<&str> = schemes.iter().flat_map(|scheme| &scheme.scopes).map(String::as_str).collect();
        let scopes = if scopes.is_empty() {
            String::new()
        } else {
            format!("; the token needs the scopes {}", quoted_list(scopes.into_iter()))
        };
        format!("{entry}{credentials}{removed}{scopes}")
    }

    /// Returns a name for a credential that no entry sends yet, and that is not in `auth_elements`.
    fn new_binding(&self, kind: &SchemeKind, auth_elements: &[(Json, String)]) -> String {
        let what = match kind {
            SchemeKind::ApiKey { name, .. } => &*name.to_ascii_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "-"),
            SchemeKind::Basic => "login",
            SchemeKind::MutualTls => "certificate",
            SchemeKind::Bearer | SchemeKind::OAuth2 | SchemeKind::OpenIdConnect | SchemeKind::Other(_) => "token",
        };
        let sent = self.config.upstreams.values().flat_map(|upstream| lower::auth(&upstream.transport)).map(Auth::binding);
        let taken: BTreeSet<&String> = sent.chain(auth_elements.iter().map(|(_, binding)| binding)).collect();
        let first = format!("{}-{what}", self.name);
        let numbered = (2..).map(|number| format!("{first}-{number}"));
        std::iter::once(first.clone()).chain(numbered).find(|name| !taken.contains(name)).unwrap_or(first)
    }

    fn subject(&self, operations: &[&str]) -> String {
        let count = operations.len();
        let listed: Vec<String> = operations.iter().map(|operation| quoted(operation)).collect();
        let what = if count == 1 { "operation of" } else { "operations of" };
        let verb = if count == 1 { "needs" } else { "need" };
        format!("{count} {what} {} ({}) {verb}", quoted(self.name), join_limited(&listed, ", ", SHOWN))
    }

    /// Puts a finding at a credential of the entry, else at `auth`, else at the name of the entry.
    fn at(&self, finding: Diagnostic, auth: Option<usize>, label: &str) -> Diagnostic {
        let place = auth.and_then(|at| self.http().auth_places.get(at)).or(self.http().auth_place.as_ref());
        finding.at(place.unwrap_or(&self.upstream.place).clone(), label)
    }
}

/// Returns the alternatives that an operation declares.
fn any_of(tool: &LockedTool) -> Option<&[Vec<Scheme>]> {
    tool.security.as_ref()?.any_of.as_deref()
}

/// Whether a scheme sends its credential in the `Authorization` header.
fn uses_authorization(kind: &SchemeKind) -> bool {
    match kind {
        SchemeKind::ApiKey { place, name } => is_same_parameter((place, name), AUTHORIZATION),
        kind => kind.is_bearer() || *kind == SchemeKind::Basic,
    }
}

/// Describes the type of a scheme that is not supported.
fn type_of(kind: &SchemeKind) -> String {
    match kind {
        SchemeKind::ApiKey { place, name } => format!("a key in the {place} {}", quoted(name)),
        SchemeKind::Other(words) if !words.is_empty() => quoted(words),
        _ => "the document does not define it".to_owned(),
    }
}

/// Names the schemes for a sentence.
fn described(schemes: &[&Scheme]) -> String {
    let need = |scheme: &&Scheme| match &scheme.kind {
        SchemeKind::ApiKey { place, name } if place == "query" => format!("the query parameter {}", quoted(name)),
        SchemeKind::ApiKey { place, name } => format!("the {place} {}", quoted(name)),
        SchemeKind::Basic => "user and password".to_owned(),
        SchemeKind::MutualTls => "a client certificate".to_owned(),
        SchemeKind::Bearer | SchemeKind::OAuth2 | SchemeKind::OpenIdConnect | SchemeKind::Other(_) => "a bearer token".to_owned(),
    };
    let mut needs: Vec<String> = schemes.iter().map(need).collect();
    needs.dedup();
    needs.join(" and ")
}

/// Returns the element of `auth` that satisfies a scheme, without its binding.
fn auth_element(kind: &SchemeKind) -> Json {
    let scheme = |name: &str| Json::object().with("scheme", Json::string(name));
    match kind {
        SchemeKind::ApiKey { place, name } => {
            scheme("api_key").with("in", Json::string(&**place)).with("name", Json::string(&**name))
        }
        SchemeKind::Basic => scheme("basic"),
        SchemeKind::MutualTls => scheme("mtls"),
        SchemeKind::Bearer | SchemeKind::OAuth2 | SchemeKind::OpenIdConnect | SchemeKind::Other(_) => scheme("bearer"),
    }
}

/// Returns the member of `credentials` for a binding whose secret is in an environment variable.
fn credential(binding: &str) -> String {
    let variable = binding.to_ascii_uppercase().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    let variable = variable.trim_start_matches(|c: char| c.is_ascii_digit());
    let source = Json::object().with("source", Json::string("env")).with("var", Json::string(variable));
    format!("{}: {}", Json::string(binding).canonical(), written(&source))
}

/// Writes a flat object as people do, with its members in order.
fn written(object: &Json) -> String {
    let member = |(key, value): &(String, Json)| format!("{}: {}", Json::string(&**key).canonical(), value.canonical());
    format!("{{{}}}", object.members().iter().map(member).collect::<Vec<_>>().join(", "))
}
