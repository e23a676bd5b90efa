//! Handles `${VAR}` placeholders. The server resolves them when it starts, and only in `env` of a stdio upstream.

use ptc_secrets::heuristics;

use super::keys;
use super::model::EnvPart;
use super::reader::ConfigReader;
use crate::diag::{Code, Diagnostic, quoted};
use crate::source::Span;
use crate::tree::{Member, Node, Tree};

/// Why a value cannot be split at its placeholders.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// A `${` without `}`.
    Unclosed,
    /// The text between the brackets is not a valid name of a variable.
    Name(String),
}

/// Splits a value at its placeholders.
pub(super) fn split(value: &str) -> Result<Vec<EnvPart>, Fault> {
    let mut parts = Vec::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("${") {
        let (name, then) = after.split_once('}').ok_or(Fault::Unclosed)?;
        if !is_variable(name) {
            return Err(Fault::Name(name.to_owned()));
        }
        if !before.is_empty() {
            parts.push(EnvPart::Text(before.to_owned()));
        }
        parts.push(EnvPart::Var(name.to_owned()));
        rest = then;
    }
    if !rest.is_empty() || parts.is_empty() {
        parts.push(EnvPart::Text(rest.to_owned()));
    }
    Ok(parts)
}

/// Whether a value has a placeholder that cannot be read.
#[cfg(feature = "cli")]
pub(crate) fn is_faulty(value: &str) -> bool {
    split(value).is_err()
}

/// Whether a name matches `[A-Za-z_][A-Za-z0-9_]*`, so that a shell can set the variable.
pub(crate) fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Reports a variable that the server reads but that no shell can set. Such names also reach comments and keys of the emitted
/// Dockerfile and Kubernetes manifests, where a line break would become an instruction.
pub(super) fn check_variable(reader: &mut ConfigReader<'_>, name: &str, place: Span) {
    if !is_variable(name) {
        let message = format!("{} cannot be the name of an environment variable", quoted(name));
        let label = if name.is_empty() { "empty" } else { "names are letters, digits and `_`, and do not begin with a digit" };
        reader.report(Diagnostic::new(Code::BadVariableName, message).at(place, label));
    }
}

/// Warns of every placeholder that is not resolved.
pub(super) fn warn_where_literal(reader: &mut ConfigReader<'_>, root: &Node) {
    for upstream in keys::upstreams(root) {
        for member in upstream.value.members() {
            if &*member.key != "env" {
                warn(reader, &member.key, &member.value);
                continue;
            }
            for variable in member.value.members() {
                warn_of_shells(reader, variable);
            }
        }
    }
    for binding in root.get("credentials").map_or(&[][..], Node::members) {
        for member in binding.value.members() {
            warn(reader, &member.key, &member.value);
        }
    }
}

/// Warns of a value that consists of a variable in shell syntax, because the child would receive it literally.
fn warn_of_shells(reader: &mut ConfigReader<'_>, variable: &Member) {
    let text = variable.value.as_str().unwrap_or_default();
    let of_windows = text.strip_prefix('%').and_then(|rest| rest.strip_suffix('%'));
    let Some(name) = text.strip_prefix('$').or(of_windows).filter(|name| is_variable(name)) else { return };
    // A password may start with `$` too, and is reported as a likely secret.
    if heuristics::scan_named(&variable.key, text).is_some() {
        return;
    }
    let message = format!("{} is not resolved in `env`", quoted(text));
    let diagnostic = Diagnostic::new(Code::LiteralPlaceholder, message)
        .at(variable.value.place(reader.file), "stays as it is written")
        .hint(format!("write `${{{name}}}`"));
    reader.report(diagnostic);
}

fn warn(reader: &mut ConfigReader<'_>, key: &str, node: &Node) {
    match &node.value {
        Tree::String(text) => {
            if let Some(name) = first_placeholder(text) {
                let message = format!("`${{{name}}}` is not resolved in {}", quoted(key));
                let diagnostic = Diagnostic::new(Code::LiteralPlaceholder, message)
                    .at(node.place(reader.file), "stays as it is written")
                    .hint("placeholders are resolved in `env` of an `mcp_stdio` entry only; secrets of HTTP upstreams come from `credentials`");
                reader.report(diagnostic);
            }
        }
        Tree::Array(elements) => elements.iter().for_each(|element| warn(reader, key, element)),
        Tree::Object(members) => members.iter().for_each(|member| {
            // The header is refused, with what to write instead.
            if member.value.as_str().and_then(|value| authorization_hint(&member.key, value)).is_none() {
                warn(reader, &member.key, &member.value);
            }
        }),
        Tree::Null | Tree::Bool(_) | Tree::Number(_) => {}
    }
}

fn first_placeholder(text: &str) -> Option<&str> {
    text.split("${").skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name).find(|name| is_variable(name))
}

/// Returns what to write instead of an `Authorization` header whose value is `Bearer ${VARIABLE}`.
pub(super) fn authorization_hint(name: &str, value: &str) -> Option<String> {
    if !name.eq_ignore_ascii_case("Authorization") {
        return None;
    }
    let (scheme, variable) = value.split_once(' ')?;
    let variable = variable.trim().strip_prefix("${")?.strip_suffix('}').filter(|name| is_variable(name))?;
    scheme.eq_ignore_ascii_case("Bearer").then(|| format!(
        "remove the header; write `\"credentials\": {{\"token\": {{\"source\": \"env\", \"var\": \"{variable}\"}}}}` beside `upstreams`, \
         and `\"auth\": [{{\"scheme\": \"bearer\", \"binding\": \"token\"}}]` here"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_split_at_placeholders() {
        let text = |text: &str| EnvPart::Text(text.to_owned());
        let var = |name: &str| EnvPart::Var(name.to_owned());
        for (value, parts) in [
            ("", vec![text("")]),
            ("plain $HOME", vec![text("plain $HOME")]),
            ("${A}", vec![var("A")]),
            ("a${A_1}b${B}", vec![text("a"), var("A_1"), text("b"), var("B")]),
            ("${A}${B}", vec![var("A"), var("B")]),
        ] {
            assert_eq!(split(value), Ok(parts), "{value}");
        }
        assert_eq!(split("x${A"), Err(Fault::Unclosed));
        assert_eq!(split("${A:-b}"), Err(Fault::Name("A:-b".to_owned())));
        assert_eq!(split("${}"), Err(Fault::Name(String::new())));
    }
}
