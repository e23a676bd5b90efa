//! Checks the names and values of HTTP headers that a config sets.

use super::placeholder;
use super::reader::ConfigReader;
use crate::diag::{Code, Diagnostic, Severity, quoted};
use crate::http_token::{is_token, is_token_char};
use crate::source::Span;
use crate::tree::Node;

/// The part of a config that sets a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Setter {
    /// `static_headers`
    Static,
    /// `custom_header` in `auth`
    Auth,
    /// `api_key` in `auth`
    ApiKey,
    /// `idempotency_header`
    IdempotencyHeader,
}

/// A header that a config cannot set, and the reason.
struct Reserved {
    name: &'static str,
    why: &'static str,
    hint: &'static str,
    /// The parts of a config that can set it all the same.
    permitted: &'static [Setter],
    /// An error if the header is refused, else a warning. The contract reserves fewer names than the client sets.
    severity: Severity,
}

const fn reserved(name: &'static str, why: &'static str, hint: &'static str) -> Reserved {
    Reserved { name, why, hint, permitted: &[], severity: Severity::Error }
}

const fn without_effect(name: &'static str, why: &'static str) -> Reserved {
    Reserved { name, why, hint: "remove it", permitted: &[], severity: Severity::Warning }
}

const BY_AUTH: &str = "use the `bearer` or `basic` scheme in `auth`";
const BY_CLIENT: &str = "the client sets it by itself; remove it";
const COOKIES: &str = "`{\"scheme\": \"api_key\", \"in\": \"cookie\", \"name\": …}` in `auth` sends a cookie";

/// Names in their usual spelling; they are compared without case.
const RESERVED: &[Reserved] = &[
    Reserved { permitted: &[Setter::ApiKey], ..reserved("Authorization", "it carries a secret", BY_AUTH) },
    reserved(
        "Proxy-Authorization",
        "it carries a secret for the proxy",
        "put user and password into `credentials`, and name that entry as `auth` of `proxy`",
    ),
    reserved("Cookie", "it carries a session", COOKIES),
    reserved("Set-Cookie", "it belongs to answers", COOKIES),
    reserved("Host", "it says where the request goes", "it follows from the URL; remove it"),
    reserved("MCP-Protocol-Version", "it belongs to the protocol", BY_CLIENT),
    reserved("Mcp-Session-Id", "it belongs to the protocol", BY_CLIENT),
    reserved("Mcp-Method", "it belongs to the protocol", BY_CLIENT),
    reserved("Mcp-Name", "it belongs to the protocol", BY_CLIENT),
    reserved("User-Agent", "it belongs to the client", BY_CLIENT),
    reserved("Content-Length", "it frames the request", BY_CLIENT),
    reserved("Transfer-Encoding", "it frames the request", BY_CLIENT),
    reserved("Connection", "it frames the request", BY_CLIENT),
    Reserved {
        name: "X-Api-Key",
        why: "it carries a secret",
        hint: "use the `api_key` scheme in `auth`, with the secret in `credentials`",
        permitted: &[Setter::Auth, Setter::ApiKey],
        severity: Severity::Error,
    },
    without_effect("Accept", "the client asks for what it can read, whatever is written here"),
    without_effect("Content-Type", "the client says what it sends, whatever is written here"),
    without_effect("Expect", "it is of the connection, which the client manages"),
    without_effect("Keep-Alive", "it is of the connection, which the client manages"),
    without_effect("Proxy-Connection", "it is of the connection, which the client manages"),
    without_effect("TE", "it is of the connection, which the client manages"),
    without_effect("Trailer", "it is of the connection, which the client manages"),
    without_effect("Upgrade", "it is of the connection, which the client manages"),
];

/// Whether `static_headers` cannot set a header of that name.
pub(crate) fn is_reserved(name: &str) -> bool {
    RESERVED.iter().any(|row| row.name.eq_ignore_ascii_case(name))
}

/// Whether `api_key` in `auth` can send a key in a parameter of this place and name.
pub(crate) fn can_carry_key(place: &str, name: &str) -> bool {
    let is_reserved = |row: &Reserved| {
        row.name.eq_ignore_ascii_case(name) && row.severity == Severity::Error && !row.permitted.contains(&Setter::ApiKey)
    };
    match place {
        "query" => !name.is_empty() && !name.contains(char::is_control),
        "header" => is_token(name) && !RESERVED.iter().any(is_reserved),
        _ => is_token(name),
    }
}

/// Checks the name of a header at its position. `value` is its value if it is literal. Returns whether the header can be set.
pub(super) fn check_name(reader: &mut ConfigReader<'_>, setter: Setter, name: &str, value: Option<&str>, place: Span) -> bool {
    let before = reader.errors();
    if let Some(wrong) = name.chars().find(|c| !is_token_char(*c)) {
        let message = format!("{} is not a name of a header", quoted(name));
        let label = format!("{} cannot be part of one", character(wrong));
        let hint = "names are letters, digits and !#$%&'*+-.^_`|~";
        reader.report(Diagnostic::new(Code::BadHeaderName, message).at(place, label).hint(hint));
    } else if name.is_empty() {
        reader.report(Diagnostic::new(Code::BadHeaderName, "a header needs a name").at(place, "empty"));
    } else if let Some(row) = RESERVED.iter().find(|row| row.name.eq_ignore_ascii_case(name))
        && !row.permitted.contains(&setter)
    {
        let owner = match setter {
            Setter::Static => "",
            Setter::Auth | Setter::ApiKey => " in `auth`",
            Setter::IdempotencyHeader => " in `idempotency_header`",
        };
        let verb = if row.severity == Severity::Error { "cannot" } else { "need not" };
        let message = format!("the header `{}` {verb} be set{owner}: {}", row.name, row.why);
        let diagnostic = Diagnostic::new(Code::ReservedHeader, message).at(place, "");
        let hint = value.and_then(|value| placeholder::authorization_hint(name, value)).unwrap_or_else(|| row.hint.to_owned());
        let diagnostic = diagnostic.hint(hint);
        reader.report(Diagnostic { severity: row.severity, ..diagnostic });
    }
    reader.errors() == before
}

/// Checks the literal value of a header.
pub(super) fn check_value(reader: &mut ConfigReader<'_>, name: &str, node: &Node) {
    let Some(wrong) = node.as_str().and_then(|value| value.chars().find(|c| !matches!(c, ' '..='~'))) else { return };
    let message = format!("the value of {} has characters that no header can have", quoted(name));
    reader.fault(
        Code::BadHeaderValue,
        node,
        message,
        &format!("holds {}", character(wrong)),
        "header values are printable ASCII on one line",
    );
}

/// The headers, query parameters and cookies set so far, to detect one that is set twice.
#[derive(Default)]
pub(super) struct Seen(Vec<(&'static str, String, Span)>);

impl Seen {
    /// Adds a parameter in `kind`, which is `header`, `query` or `cookie`, or reports that it is already set.
    pub(super) fn set(&mut self, reader: &mut ConfigReader<'_>, kind: &'static str, name: &str, place: Span) {
        let name = if kind == "header" { name.to_ascii_lowercase() } else { name.to_owned() };
        match self.0.iter().find(|(known, seen, _)| *known == kind && *seen == name) {
            Some((_, _, first)) => {
                let what = if kind == "query" { "query parameter" } else { kind };
                let message = format!("the {what} {} is set twice", quoted(&name));
                let hint = if kind == "header" { "case makes no difference in the name of a header; " } else { "" };
                let diagnostic = Diagnostic::new(Code::RepeatedHeader, message)
                    .at(place, "set again here")
                    .also(first.clone(), "first set here")
                    .hint(format!("{hint}keep one of the two"));
                reader.report(diagnostic);
            }
            None => self.0.push((kind, name, place)),
        }
    }
}

fn character(c: char) -> String {
    match c {
        '\r' => "a carriage return".to_owned(),
        '\n' => "a line feed".to_owned(),
        '\t' => "a tab".to_owned(),
        ' ' => "a space".to_owned(),
        c if c.is_control() => format!("the control character U+{:04X}", u32::from(c)),
        c => format!("`{c}`"),
    }
}
