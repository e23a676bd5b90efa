//! Checks the names and values of HTTP headers that a config sets.

use super::placeholder;
use super::reader::ConfigReader;
use crate::diag::{Code, Diagnostic, Severity, quoted};
use crate::source::Span;
use crate::tree::Node;

/// The part of a config that sets a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Setter {
    /// `static_headers`
    Static,
    /// `custom_header` or `api_key` in `auth`
    Auth,
    /// `idempotency_header`
    IdempotencyHeader,
}

/// A header that a config cannot set, and the reason.
struct Reserved {
    name: &'static str,
    why: &'static str,
    hint: &'static str,
    /// Whether it is reserved in `static_headers` only.
    static_only: bool,
    /// An error if the header is refused, else a warning. The contract reserves fewer names than the client sets.
    severity: Severity,
}

const fn reserved(name: &'static str, why: &'static str, hint: &'static str) -> Reserved {
    Reserved { name, why, hint, static_only: false, severity: Severity::Error }
}

const fn without_effect(name: &'static str, why: &'static str) -> Reserved {
    Reserved { name, why, hint: "remove it", static_only: false, severity: Severity::Warning }
}

const BY_AUTH: &str = "use the `bearer` or `basic` scheme in `auth`";
const BY_CLIENT: &str = "the client sets it by itself; remove it";
const NO_COOKIES: &str = "cookies are not sent; if the secret can go into another header, use `custom_header` in `auth`";

/// Names in their usual spelling; they are compared without case.
const RESERVED: &[Reserved] = &[
    reserved("Authorization", "it carries a secret", BY_AUTH),
    reserved("Proxy-Authorization", "it carries a secret for the proxy", "give the proxy its credentials outside of this config"),
    reserved("Cookie", "it carries a session", NO_COOKIES),
    reserved("Set-Cookie", "it belongs to answers", NO_COOKIES),
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
        static_only: true,
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
pub(super) fn is_reserved(name: &str) -> bool {
    RESERVED.iter().any(|row| row.name.eq_ignore_ascii_case(name))
}

/// Returns what to write instead of an `Authorization` header whose value is `Bearer ${VARIABLE}`.
pub(super) fn authorization_hint(name: &str, value: &str) -> Option<String> {
    if !name.eq_ignore_ascii_case("Authorization") {
        return None;
    }
    let (scheme, variable) = value.split_once(' ')?;
    let variable = variable.trim().strip_prefix("${")?.strip_suffix('}').filter(|name| placeholder::is_variable(name))?;
    scheme.eq_ignore_ascii_case("Bearer").then(|| format!(
        "remove the header; write `\"credentials\": {{\"token\": {{\"source\": \"env\", \"var\": \"{variable}\"}}}}` beside `upstreams`, \
         and `\"auth\": [{{\"scheme\": \"bearer\", \"binding\": \"token\"}}]` here"
    ))
}

/// Checks the name of a header at its position. `value` is its value if it is literal. Returns whether the header can be set.
pub(super) fn check_name(reader: &mut ConfigReader<'_>, setter: Setter, name: &str, value: Option<&str>, place: Span) -> bool {
    let before = reader.errors();
    if let Some(wrong) = name.chars().find(|c| !is_token(*c)) {
        let message = format!("{} is not a name of a header", quoted(name));
        let label = format!("{} cannot be part of one", character(wrong));
        let hint = "names are letters, digits and !#$%&'*+-.^_`|~";
        reader.report(Diagnostic::new(Code::BadHeaderName, message).at(place, label).hint(hint));
    } else if name.is_empty() {
        reader.report(Diagnostic::new(Code::BadHeaderName, "a header needs a name").at(place, "empty"));
    } else if let Some(row) = RESERVED.iter().find(|row| row.name.eq_ignore_ascii_case(name))
        && !(row.static_only && setter == Setter::Auth)
    {
        let owner = match setter {
            Setter::Static => "static_headers",
            Setter::Auth => "auth",
            Setter::IdempotencyHeader => "idempotency_header",
        };
        let verb = if row.severity == Severity::Error { "cannot" } else { "need not" };
        let message = format!("the header `{}` {verb} be set in `{owner}`: {}", row.name, row.why);
        let diagnostic = Diagnostic::new(Code::ReservedHeader, message).at(place, "");
        let hint = value.and_then(|value| authorization_hint(name, value)).unwrap_or_else(|| row.hint.to_owned());
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

/// The headers set so far, to detect a header that is set twice.
#[derive(Default)]
pub(super) struct Seen(Vec<(String, Span)>);

impl Seen {
    /// Adds a header, or reports that it is already set.
    pub(super) fn set(&mut self, reader: &mut ConfigReader<'_>, name: &str, place: Span) {
        let folded = name.to_ascii_lowercase();
        match self.0.iter().find(|(seen, _)| *seen == folded) {
            Some((_, first)) => {
                let diagnostic = Diagnostic::new(Code::RepeatedHeader, format!("the header {} is set twice", quoted(name)))
                    .at(place, "set again here")
                    .also(first.clone(), "first set here")
                    .hint("case makes no difference in the name of a header; keep one of the two");
                reader.report(diagnostic);
            }
            None => self.0.push((folded, place)),
        }
    }
}

/// Whether a character is a `tchar` of RFC 9110.
fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)
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
