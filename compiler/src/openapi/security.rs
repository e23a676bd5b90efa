//! Reads `security` and `securitySchemes`: the credentials that calls of an operation need.

use super::location::is_scheme_uri;
use super::reference::References;
use crate::config::can_carry_key;
use crate::lock::security::{Scheme, SchemeKind};
use crate::tree::{Member, Node, Tree};

/// Returns the alternatives that an operation declares, or else those of the whole document. `None` if neither declares any.
pub(super) fn any_of<'a>(references: References<'a>, operation: &'a Node) -> Option<Vec<Vec<Scheme>>> {
    let declared = operation.get("security").or_else(|| references.root.get("security"))?.elements()?;
    // A list without alternatives removes the requirement of the document.
    if declared.is_empty() {
        return Some(vec![Vec::new()]);
    }
    let all_of = |schemes: &'a Node| schemes.members().iter().map(|member| scheme(references, member)).collect();
    let all: Vec<_> = declared.iter().filter(|schemes| matches!(schemes.value, Tree::Object(_))).map(all_of).collect();
    (!all.is_empty()).then_some(all)
}

/// Returns the kinds of all security schemes that a document declares.
pub(super) fn kinds<'a>(references: References<'a>) -> Vec<SchemeKind> {
    let declared = |member: &'a Member| references.resolve(&member.value).ok().map(kind);
    let schemes = components(references).map(Node::members).unwrap_or_default();
    schemes.iter().filter_map(declared).collect()
}

/// Whether an element of `auth` can send the credential of a scheme.
pub(crate) fn is_supported(kind: &SchemeKind) -> bool {
    match kind {
        SchemeKind::Other(_) => false,
        SchemeKind::ApiKey { place, name } => can_carry_key(place, name),
        _ => true,
    }
}

fn scheme<'a>(references: References<'a>, member: &'a Member) -> Scheme {
    let scopes = member.value.elements().unwrap_or_default();
    let scopes = scopes.iter().filter_map(Node::as_str).map(str::to_owned).collect();
    // A name that no component has can be a URI (OpenAPI 3.2, section 4.30).
    let by_uri = || is_scheme_uri(&member.key).then(|| references.follow(&member.key, &member.key_range).ok())?;
    let declared = components(references).and_then(|schemes| schemes.get(&member.key)).or_else(by_uri);
    let declared = declared.and_then(|scheme| references.resolve(scheme).ok());
    let kind = declared.map_or_else(|| SchemeKind::Other(String::new()), kind);
    Scheme { name: member.key.to_string(), kind, scopes }
}

fn components(references: References<'_>) -> Option<&Node> {
    references.root.get("components")?.get("securitySchemes")
}

fn kind(scheme: &Node) -> SchemeKind {
    let text = |key| scheme.get(key).and_then(Node::as_str).unwrap_or_default();
    let other = || SchemeKind::Other(text("type").to_owned());
    // Amazon API Gateway declares signatures as keys in `Authorization`.
    let signature = text("x-amazon-apigateway-authtype");
    if !signature.is_empty() && signature != "custom" {
        return SchemeKind::Other(signature.to_owned());
    }
    match text("type") {
        "apiKey" if matches!(text("in"), "header" | "query" | "cookie") && !text("name").is_empty() => {
            SchemeKind::ApiKey { place: text("in").to_owned(), name: text("name").to_owned() }
        }
        "http" => match text("scheme").to_ascii_lowercase().as_str() {
            "bearer" => SchemeKind::Bearer,
            "basic" => SchemeKind::Basic,
            scheme => SchemeKind::Other(format!("http {scheme}")),
        },
        "oauth2" => SchemeKind::OAuth2,
        "openIdConnect" => SchemeKind::OpenIdConnect,
        "mutualTLS" => SchemeKind::MutualTls,
        _ => other(),
    }
}
