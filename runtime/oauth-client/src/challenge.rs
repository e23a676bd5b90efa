//! Reads the challenge with which an upstream asks for an access token, or for one with more scopes (RFC 6750, section 3, and RFC 9728,
//! section 5.1).

use std::collections::BTreeSet;

use http_auth::parser::ChallengeParser;
use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};

/// Maximum bytes of a header that is read, and of scopes that are requested.
const MAX_HEADER: usize = 8 * 1024;
const MAX_SCOPE: usize = 4 * 1024;

/// The first challenge of the scheme `Bearer`, or of `DPoP` if there is none. Parameters that it does not have are empty.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Challenge {
    /// The code, such as `insufficient_scope`.
    pub(crate) error: String,
    /// The scopes that are needed, as in the parameter `scope` of a request.
    pub(crate) scope: String,
    /// Where the metadata of the protected resource is.
    pub(crate) resource_metadata: String,
    /// Whether the token must be bound to a key (RFC 9449, section 7.1).
    pub(crate) needs_proof: bool,
}

impl Challenge {
    /// Reads the headers of an answer. Headers that are not challenges are ignored.
    pub(crate) fn read(headers: &HeaderMap) -> Option<Challenge> {
        Challenge::of_scheme(headers, "bearer")
            .or_else(|| Some(Challenge { needs_proof: true, ..Challenge::of_scheme(headers, "dpop")? }))
    }

    /// Reads the challenge with which a server refuses a token that lacks scopes. A server may accept both schemes.
    pub(crate) fn of_missing_scope(headers: &HeaderMap) -> Option<Challenge> {
        let mut found = ["bearer", "dpop"].into_iter().filter_map(|scheme| Challenge::of_scheme(headers, scheme));
        found.find(|challenge| challenge.error == "insufficient_scope")
    }

    /// Reads the first challenge of a scheme.
    pub(crate) fn of_scheme(headers: &HeaderMap, scheme: &str) -> Option<Challenge> {
        let texts = headers.get_all(WWW_AUTHENTICATE).into_iter().filter_map(|value| value.to_str().ok());
        texts.filter(|text| text.len() <= MAX_HEADER).find_map(|text| {
            // What comes after an error of syntax is not read.
            let mut challenges = ChallengeParser::new(text).map_while(Result::ok);
            let found = challenges.find(|challenge| challenge.scheme.eq_ignore_ascii_case(scheme))?;
            let value = |name: &str| {
                let named = found.params.iter().find(|(param, _)| param.eq_ignore_ascii_case(name));
                named.map(|(_, value)| value.to_unescaped()).unwrap_or_default()
            };
            Some(Challenge {
                error: value("error"),
                scope: valid(&value("scope")),
                resource_metadata: value("resource_metadata"),
                needs_proof: false,
            })
        })
    }
}

/// Returns the scopes of a text that are valid (RFC 6749, section 3.3), up to a maximum.
fn valid(text: &str) -> String {
    union(&[text])
}

/// Returns each scope of some lists once, in their order, up to a maximum of bytes. Invalid scopes are left out.
pub(crate) fn union(lists: &[&str]) -> String {
    let mut seen = BTreeSet::new();
    let mut all = String::new();
    let is_valid = |scope: &str| scope.bytes().all(|byte| matches!(byte, b'!' | b'#'..=b'[' | b']'..=b'~'));
    for scope in lists.iter().flat_map(|list| list.split(' ')).filter(|scope| !scope.is_empty() && is_valid(scope)) {
        if all.len() + scope.len() < MAX_SCOPE && seen.insert(scope) {
            if !all.is_empty() {
                all.push(' ');
            }
            all.push_str(scope);
        }
    }
    all
}

/// Returns the scopes without one of them.
pub(crate) fn without(scope: &str, removed: &str) -> String {
    scope.split(' ').filter(|scope| *scope != removed).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    #[test]
    fn first_challenge_for_a_token_is_read_and_others_are_ignored() {
        let read = |texts: &[&'static str]| {
            let headers: HeaderMap = texts.iter().map(|text| (WWW_AUTHENTICATE, HeaderValue::from_static(text))).collect();
            let end = |found: &Challenge| if found.needs_proof { "|proof" } else { "" };
            Challenge::read(&headers).map(|found| [&*found.error, &found.scope, &found.resource_metadata].join("|") + end(&found))
        };
        assert_eq!(read(&[]), None);
        assert_eq!(read(&["Basic realm=\"x, Bearer scope=y\""]), None);
        assert_eq!(read(&["Bearer"]).as_deref(), Some("||"));
        assert_eq!(read(&["=;=", "bearer Scope=\"a  b a\""]).as_deref(), Some("|a b|"));
        let both = "Digest realm=\"r\", nonce=\"n\", Bearer error=\"insufficient_scope\", scope=\"a\", resource_metadata=\"https://x/y\"";
        assert_eq!(read(&[both]).as_deref(), Some("insufficient_scope|a|https://x/y"));
        assert_eq!(read(&["Bearer scope=\"a \\\"b c\""]).as_deref(), Some("|a c|"));
        assert_eq!(read(&["dpop scope=\"a\", error=\"use_dpop_nonce\""]).as_deref(), Some("use_dpop_nonce|a||proof"));
        assert_eq!(read(&["DPoP scope=\"a\"", "Bearer scope=\"b\""]).as_deref(), Some("|b|"));
    }

    #[test]
    fn missing_scope_is_read_from_either_scheme() {
        let scope = |text: &'static str| {
            let headers = HeaderMap::from_iter([(WWW_AUTHENTICATE, HeaderValue::from_static(text))]);
            Challenge::of_missing_scope(&headers).map(|found| found.scope)
        };
        assert_eq!(scope("Bearer, DPoP error=\"insufficient_scope\", scope=\"a\"").as_deref(), Some("a"));
        assert_eq!(scope("DPoP algs=\"ES256\", Bearer error=\"insufficient_scope\", scope=\"b\"").as_deref(), Some("b"));
        assert_eq!(scope("Bearer error=\"invalid_token\", DPoP error=\"use_dpop_nonce\""), None);
    }

    #[test]
    fn scopes_are_united_without_repetition_and_limited() {
        assert_eq!(union(&["a b", "", "b c", "caf\u{e9}"]), "a b c");
        let many: Vec<String> = (0..5_000).map(|number| number.to_string()).collect();
        assert!(union(&[&many.join(" ")]).len() <= MAX_SCOPE);
        assert_eq!(without("a offline_access b", "offline_access"), "a b");
    }
}
