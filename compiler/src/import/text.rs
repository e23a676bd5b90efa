//! The placeholders that clients replace in the values of their configs.

use crate::config::placeholder::is_variable;

/// A part of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// Literal text
    Text(String),
    /// The value of an environment variable, and what takes its place if it is not set
    Variable(String, Option<String>),
    /// A value that the client asks its user for, by the id in `inputs`
    Input(String),
    /// The folder of the project
    Folder,
    /// The content of a file
    File(String),
    /// Another placeholder
    Unknown(String),
}

/// Splits a value at its placeholders.
pub(super) fn parts(value: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    if let Some(name) = whole(value) {
        return vec![Part::Variable(name.to_owned(), None)];
    }
    let mut rest = value;
    while let Some(start) = rest.find("${") {
        let after = rest.get(start + 2..).unwrap_or("");
        let Some(end) = closing(after) else { break };
        push_text(&mut parts, rest.get(..start).unwrap_or(""));
        let inner = after.get(..end).unwrap_or("");
        match placeholder(inner) {
            Part::Text(text) => push_text(&mut parts, &text),
            part => parts.push(part),
        }
        rest = after.get(end + 1..).unwrap_or("");
    }
    push_text(&mut parts, rest);
    if parts.is_empty() {
        parts.push(Part::Text(String::new()));
    }
    parts
}

/// Returns the offset of the bracket that closes a placeholder. `${{ … }}` ends with two.
fn closing(after: &str) -> Option<usize> {
    if after.starts_with('{') {
        return after.find("}}").map(|end| end + 1);
    }
    after.find('}')
}

fn push_text(parts: &mut Vec<Part>, text: &str) {
    if text.is_empty() {
        return;
    }
    match parts.last_mut() {
        Some(Part::Text(before)) => before.push_str(text),
        _ => parts.push(Part::Text(text.to_owned())),
    }
}

/// Returns the variable of a value that is `$NAME` or `%NAME%` as a whole.
fn whole(value: &str) -> Option<&str> {
    let of_windows = value.strip_prefix('%').and_then(|rest| rest.strip_suffix('%'));
    let name = value.strip_prefix('$').or(of_windows)?;
    let is_upper = name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    (is_variable(name) && is_upper).then_some(name)
}

fn placeholder(inner: &str) -> Part {
    let unknown = || Part::Unknown(inner.to_owned());
    if let Some(name) = inner.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
        // `${{ secrets.NAME }}` of Continue.
        let name = name.trim();
        let name = ["secrets.", "inputs.", "env."].iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
        return if is_variable(name) { Part::Variable(name.to_owned(), None) } else { unknown() };
    }
    match inner {
        "workspaceFolder" | "workspaceRoot" | "CLAUDE_PROJECT_DIR" => return Part::Folder,
        "userHome" => return Part::Variable("HOME".to_owned(), None),
        "pathSeparator" | "/" => return Part::Text("/".to_owned()),
        _ => {}
    }
    let inner = inner.strip_prefix("env:").unwrap_or(inner);
    if let Some(id) = inner.strip_prefix("input:") {
        return Part::Input(id.to_owned());
    }
    if let Some(path) = inner.strip_prefix("file:") {
        return Part::File(path.to_owned());
    }
    if inner.starts_with("workspaceFolder:") {
        return Part::Folder;
    }
    match inner.split_once(":-") {
        Some((name, default)) if is_variable(name) => Part::Variable(name.to_owned(), Some(default.to_owned())),
        _ if is_variable(inner) => Part::Variable(inner.to_owned(), None),
        _ => unknown(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_of_all_clients_are_recognised() {
        let text = |text: &str| Part::Text(text.to_owned());
        let variable = |name: &str| Part::Variable(name.to_owned(), None);
        for (value, expected) in [
            ("", vec![text("")]),
            ("plain $HOME", vec![text("plain $HOME")]),
            ("$TOKEN", vec![variable("TOKEN")]),
            ("%APPDATA%", vec![variable("APPDATA")]),
            ("Bearer ${env:TOKEN}", vec![text("Bearer "), variable("TOKEN")]),
            ("${A:-b}/c", vec![Part::Variable("A".into(), Some("b".into())), text("/c")]),
            ("${input:key}", vec![Part::Input("key".into())]),
            ("${workspaceFolder}/db${/}x", vec![Part::Folder, text("/db/x")]),
            ("${{ secrets.KEY }}", vec![variable("KEY")]),
            ("${file:/run/secrets/x}", vec![Part::File("/run/secrets/x".into())]),
            ("${config:a.b}", vec![Part::Unknown("config:a.b".into())]),
            ("${open", vec![text("${open")]),
        ] {
            assert_eq!(parts(value), expected, "{value}");
        }
    }
}
