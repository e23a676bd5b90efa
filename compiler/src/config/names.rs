//! Checks the name of the deployment, and the names of upstreams, which programs write after `:server`.

use super::reader::ConfigReader;
use crate::diag::{Code, Diagnostic, quoted};
use crate::tool_name::{self, folded};
use crate::tree::{Member, Node};

/// Maximum length of a name in characters.
const MAX_LEN: usize = 64;

/// Namespaces of the language and their aliases, sorted. In discovery forms a bare name refers to these first, which hides an
/// upstream of the same name. A test compares the list with the interpreter, which the library does not link.
const NAMESPACES: &[&str] = &[
    "Boolean",
    "Character",
    "ChronoUnit",
    "DateTimeFormatter",
    "DayOfWeek",
    "Double",
    "Duration",
    "Float",
    "Instant",
    "Integer",
    "LocalDate",
    "LocalDateTime",
    "Long",
    "Math",
    "Month",
    "OffsetDateTime",
    "Period",
    "String",
    "System",
    "ZoneId",
    "ZoneOffset",
    "ZonedDateTime",
    "budget",
    "clojure.core",
    "clojure.set",
    "clojure.string",
    "clojure.walk",
    "core",
    "csv",
    "java.lang.Boolean",
    "java.lang.Character",
    "java.lang.Double",
    "java.lang.Float",
    "java.lang.Integer",
    "java.lang.Long",
    "java.lang.Math",
    "java.lang.String",
    "java.lang.System",
    "java.time",
    "java.time.DayOfWeek",
    "java.time.Duration",
    "java.time.Instant",
    "java.time.LocalDate",
    "java.time.LocalDateTime",
    "java.time.Month",
    "java.time.OffsetDateTime",
    "java.time.Period",
    "java.time.ZoneId",
    "java.time.ZoneOffset",
    "java.time.ZonedDateTime",
    "java.time.format.DateTimeFormatter",
    "java.time.temporal.ChronoUnit",
    "json",
    "ptc.core",
    "regex",
    "s",
    "set",
    "str",
    "string",
    "tool",
    "walk",
];

/// Reports names that programs cannot write, or that are easily confused with others.
pub(super) fn check(reader: &mut ConfigReader<'_>, upstreams: &[Member]) {
    for (at, member) in upstreams.iter().enumerate() {
        let name: &str = &member.key;
        let place = reader.key_place(member);
        if let Some(reason) = fault(name) {
            let message = format!("{} cannot be the name of an upstream: {reason}", quoted(name));
            reader.report(Diagnostic::new(Code::UpstreamName, message).at(place, "").hint(hint(name)));
            continue;
        }
        if NAMESPACES.contains(&name) {
            let message = format!("{} is also a namespace of the language", quoted(name));
            let diagnostic = Diagnostic::new(Code::UpstreamLikeNamespace, message)
                .at(place.clone(), "discovery by this name shows the namespace")
                .hint(format!("call it something like `{}-api`, or write `(dir \"upstream:{name}\")`", name.to_lowercase()));
            reader.report(diagnostic);
        }
        let earlier = upstreams.iter().take(at).find(|earlier| earlier.key != member.key && folded(&earlier.key) == folded(name));
        if let Some(earlier) = earlier {
            let message = format!("{} and {} are easily confused", quoted(&earlier.key), quoted(name));
            let diagnostic = Diagnostic::new(Code::UpstreamsAlike, message)
                .at(place, "differs only in case or separators")
                .also(reader.key_place(earlier), "from this one")
                .hint("say in the names what sets them apart");
            reader.report(diagnostic);
        }
    }
}

/// Returns the name of the deployment, if it is one.
pub(super) fn deployment(reader: &mut ConfigReader<'_>, node: &Node) -> Option<String> {
    let name = node.as_str()?;
    let Some(reason) = fault(name) else { return Some(name.to_owned()) };
    reader.fault(
        Code::DeploymentName,
        node,
        format!("{} cannot be the name of a deployment: {reason}", quoted(name)),
        "",
        &hint(name),
    );
    None
}

/// Suggests a name.
fn hint(name: &str) -> String {
    match plain(name) {
        Some(plain) => format!("call it {}", quoted(&plain)),
        None => "a name starts with a letter or digit and goes on with letters, digits, `-`, `_` and `.`".to_owned(),
    }
}

/// Returns a name as it is if an upstream can have it without a finding, else a similar one that can be used.
#[cfg(feature = "cli")]
pub(crate) fn usable(name: &str) -> String {
    let plain = if fault(name).is_none() { name.to_owned() } else { plain(&ascii(name)).unwrap_or_else(|| ascii(name)) };
    let plain = plain.trim_end_matches(['-', '_', '.']);
    match plain {
        "" => "server".to_owned(),
        namespace if NAMESPACES.contains(&namespace) => format!("{}-api", namespace.to_lowercase()),
        plain => plain.to_owned(),
    }
}

/// Returns the ASCII letters, digits and separators of a name. Other characters become separators.
#[cfg(feature = "cli")]
fn ascii(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii() { c } else { '-' }).collect::<String>().trim_matches(['-', '_', '.', ' ']).to_owned()
}

fn fault(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        Some("it is empty")
    } else if name.chars().count() > MAX_LEN {
        Some("it is longer than 64 characters")
    } else if name.chars().any(|c| c.is_alphanumeric() && !c.is_ascii()) {
        Some("it has letters or digits that are not of ASCII")
    } else if !name.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        Some("it does not start with a letter or digit")
    } else if !name.chars().all(tool_name::is_plain) {
        Some("it has characters other than letters, digits, `-`, `_` and `.`")
    } else {
        None
    }
}

/// Replaces unusual characters of a name by `-`. Returns `None` if nothing useful remains.
fn plain(name: &str) -> Option<String> {
    if !name.is_ascii() {
        return None;
    }
    let words: Vec<&str> =
        name.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.'))).filter(|word| !word.is_empty()).collect();
    let plain: String = words.join("-").trim_start_matches(['_', '.']).chars().take(MAX_LEN).collect();
    (!plain.is_empty() && plain != name).then_some(plain)
}

/// Warns of granted tools whose names are so unusual that a server is unlikely to offer them.
pub(super) fn check_tools(reader: &mut ConfigReader<'_>, granted: &[Node]) {
    for node in granted {
        let Some(name) = node.as_str() else { continue };
        let Some(reason) = tool_name::fault(name) else { continue };
        let hint = if name.contains('*') {
            "`include_tools` lists tools by their names; leave it out to grant all"
        } else {
            "write the name as the server lists it"
        };
        reader.fault(Code::ToolName, node, format!("{} is hardly the name of a tool: {reason}", quoted(name)), "", hint);
    }
}

#[cfg(all(test, feature = "cli"))]
mod tests {
    use super::NAMESPACES;

    #[test]
    fn listed_namespaces_are_those_of_the_interpreter() {
        assert_eq!(NAMESPACES, ptc_lisp::host_functions::namespaces().collect::<Vec<_>>());
    }
}
