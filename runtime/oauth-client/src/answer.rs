//! Reads the answer of a token endpoint (RFC 6749, sections 5.1 and 5.2).

use std::sync::Arc;
use std::time::Duration;

use ptc_secrets::Redactor;
use serde_json::{Map, Value};
use zeroize::Zeroizing;

/// The type of an assertion for the authorization server of an upstream (Identity Assertion JWT Authorization Grant).
pub(crate) const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";
/// The types of an access token in the answer to an exchange (RFC 8693, section 3).
const ACCESS_TOKEN_TYPES: [&str; 2] = ["urn:ietf:params:oauth:token-type:access_token", "urn:ietf:params:oauth:token-type:jwt"];

use crate::proof::ProofKey;

/// Maximum bytes of a token. Servers accept headers of 8 to 16 KiB.
const MAX_TOKEN_BYTES: usize = 16 * 1024;
/// Maximum lifetime that is believed: a year.
const MAX_LIFETIME: Duration = Duration::from_hours(365 * 24);
/// Maximum characters of an error's code and description that are shown.
const MAX_CODE: usize = 60;
const MAX_DESCRIPTION: usize = 300;

/// An issued token. It deliberately has no `Debug`.
pub(crate) struct TokenResponse {
    /// The access token.
    pub(crate) access_token: String,
    /// The refresh token, if the answer has one.
    pub(crate) refresh_token: Option<String>,
    /// The time for which the access token is valid, if the answer has it.
    pub(crate) lifetime: Option<Duration>,
    /// The key to which the access token is bound. `None` for a bearer token.
    pub(crate) proof_key: Option<Arc<ProofKey>>,
    /// Redacts the access token, if the deployment's redactor does not.
    pub(crate) redactor: Option<Redactor>,
}

/// A refusal in the form of OAuth.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The code, such as `invalid_client`.
    pub(crate) code: String,
    /// The description for people. Empty if there is none.
    pub(crate) description: String,
}

/// Reads a successful answer to a request whose tokens are to be bound to a key, or are bearer tokens. A token of the other kind is refused:
/// a bearer token could be used by anyone who sees it.
///
/// # Errors
///
/// Returns what is wrong with the answer, without any part of it, since it may contain a token.
pub(crate) fn read_response(body: &[u8], proof_key: Option<&Arc<ProofKey>>) -> Result<TokenResponse, &'static str> {
    let answer: Map<String, Value> = serde_json::from_slice(body).map_err(|_| "is not a JSON object")?;
    let token_type = answer.get("token_type").and_then(Value::as_str).ok_or("has no `token_type`")?;
    let (expected, why) = match proof_key {
        None => ("bearer", "has a `token_type` that is not supported: only `Bearer` is"),
        Some(_) => ("dpop", "has a `token_type` other than `DPoP`, but the upstream needs a token that is bound to a key"),
    };
    if !token_type.eq_ignore_ascii_case(expected) {
        return Err(why);
    }
    if let Some(issued) = answer.get("issued_token_type").and_then(Value::as_str)
        && !ACCESS_TOKEN_TYPES.contains(&issued)
    {
        return Err("has an `issued_token_type` that is not that of an access token");
    }
    let access_token = answer.get("access_token").and_then(Value::as_str).ok_or("has no `access_token`")?;
    if access_token.is_empty() || !access_token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("has an `access_token` that a header cannot carry");
    }
    if access_token.len() > MAX_TOKEN_BYTES {
        return Err("has an `access_token` of more than 16 KiB");
    }
    let lifetime = match answer.get("expires_in") {
        None | Some(Value::Null) => None,
        Some(value) => Some(seconds(value).ok_or("has an `expires_in` that is not a number of seconds")?.min(MAX_LIFETIME)),
    };
    let refresh_token = match answer.get("refresh_token") {
        None | Some(Value::Null) => None,
        Some(value) => {
            Some(value.as_str().filter(|token| is_refresh_token(token)).ok_or("has an unusable `refresh_token`")?.to_owned())
        }
    };
    Ok(TokenResponse {
        access_token: access_token.to_owned(),
        refresh_token,
        lifetime,
        proof_key: proof_key.cloned(),
        redactor: None,
    })
}

/// Reads a successful answer with an assertion for another authorization server. It is not a bearer token, so that its type is `N_A`.
///
/// # Errors
///
/// Returns what is wrong with the answer, without any part of it.
pub(crate) fn read_assertion(body: &[u8]) -> Result<Zeroizing<String>, &'static str> {
    let answer: Map<String, Value> = serde_json::from_slice(body).map_err(|_| "is not a JSON object")?;
    if answer.get("issued_token_type").and_then(Value::as_str) != Some(ID_JAG) {
        return Err("has another `issued_token_type` than that of an assertion for an authorization server (ID-JAG)");
    }
    let assertion = answer.get("access_token").and_then(Value::as_str).ok_or("has no `access_token`")?;
    let is_token =
        |text: &str| !text.is_empty() && text.len() <= MAX_TOKEN_BYTES && text.bytes().all(|byte| byte.is_ascii_graphic());
    if is_token(assertion) { Ok(Zeroizing::new(assertion.to_owned())) } else { Err("has an unusable `access_token`") }
}

/// Whether a text can be a refresh token (RFC 6749, appendix A.17).
pub(crate) fn is_refresh_token(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_TOKEN_BYTES && text.bytes().all(|byte| matches!(byte, 0x20..=0x7e))
}

/// Returns a number of seconds. Some servers write it as text or with a fraction.
fn seconds(value: &Value) -> Option<Duration> {
    let number = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().parse::<f64>().ok()?,
        _ => return None,
    };
    Duration::try_from_secs_f64(number).ok()
}

/// Reads a refusal. `None` if the answer is none. A secret that the server repeats is redacted before its text is cut, since the redactor
/// does not recognise a part of it.
pub(crate) fn read_refusal(body: &[u8], redactor: &Redactor) -> Option<Refusal> {
    let answer: Map<String, Value> = serde_json::from_slice(body).ok()?;
    let text = |name, max| Some(one_line(&redactor.redact_str(answer.get(name)?.as_str()?), max));
    let code = text("error", MAX_CODE).filter(|code| !code.is_empty())?;
    Some(Refusal { code, description: text("error_description", MAX_DESCRIPTION).unwrap_or_default() })
}

/// Returns the first characters of a text without control characters.
fn one_line(text: &str, max: usize) -> String {
    text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).take(max).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetime_is_read_in_every_form_in_use_and_limited() {
        let lifetime = |expires_in: &str| {
            let body = format!(r#"{{"access_token":"t","token_type":"bearer"{expires_in}}}"#);
            read_response(body.as_bytes(), None).map(|response| response.lifetime.map(|lifetime| lifetime.as_secs()))
        };
        for (text, expected) in [
            ("", None),
            (r#","expires_in":null"#, None),
            (r#","expires_in":3600"#, Some(3600)),
            (r#","expires_in":"3599""#, Some(3599)),
            (r#","expires_in":59.5"#, Some(59)),
            (r#","expires_in":0"#, Some(0)),
            (r#","expires_in":1e300"#, None),
            (r#","expires_in":99999999999"#, Some(MAX_LIFETIME.as_secs())),
        ] {
            match (text.contains("e300"), lifetime(text)) {
                (true, outcome) => assert!(outcome.is_err(), "{text}"),
                (false, outcome) => assert_eq!(outcome, Ok(expected), "{text}"),
            }
        }
        for text in [r#","expires_in":-1"#, r#","expires_in":"soon""#, r#","expires_in":[]"#, r#","expires_in":true"#] {
            assert!(lifetime(text).is_err(), "{text}");
        }
    }

    #[test]
    fn answers_that_are_no_bearer_token_are_refused_without_being_shown() {
        for body in [
            "",
            "[]",
            "access_token=abc&token_type=bearer",
            r#"{"access_token":"abc-secret"}"#,
            r#"{"access_token":"abc-secret","token_type":"mac"}"#,
            r#"{"access_token":"abc-secret","token_type":"DPoP"}"#,
            r#"{"token_type":"bearer"}"#,
            r#"{"access_token":"","token_type":"bearer"}"#,
            r#"{"access_token":17,"token_type":"bearer"}"#,
            r#"{"access_token":"abc-secret\r\nX: y","token_type":"bearer"}"#,
            r#"{"access_token":"abc secret","token_type":"bearer"}"#,
        ] {
            let why = read_response(body.as_bytes(), None).err().unwrap_or_else(|| panic!("{body} is accepted"));
            assert!(!why.contains("secret"), "{why}");
        }
        let long = format!(r#"{{"access_token":"{}","token_type":"bearer"}}"#, "x".repeat(MAX_TOKEN_BYTES + 1));
        assert!(read_response(long.as_bytes(), None).is_err());
        let key = Arc::new(ProofKey::read(&ProofKey::generate().unwrap()).unwrap());
        let bearer = br#"{"access_token":"abc-secret","token_type":"bearer"}"#;
        assert!(read_response(bearer, Some(&key)).err().is_some_and(|why| why.contains("`DPoP`")));
        let bound = br#"{"access_token":"abc-secret","token_type":"DPoP"}"#;
        assert!(read_response(bound, Some(&key)).is_ok_and(|response| response.proof_key.is_some()));
    }

    #[test]
    fn refusal_is_one_line_of_limited_length() {
        let redactor = Redactor::new(["not-a-real-secret"]);
        let read_refusal = |body| super::read_refusal(body, &redactor);
        let refusal = read_refusal(br#"{"error":"invalid_client","error_description":"bad\nsecret"}"#);
        assert_eq!(refusal, Some(Refusal { code: "invalid_client".into(), description: "bad secret".into() }));
        let long = format!(r#"{{"error":"{}"}}"#, "e".repeat(1_000));
        assert_eq!(read_refusal(long.as_bytes()).map(|refusal| refusal.code.len()), Some(MAX_CODE));
        // The limit is in the middle of the secret.
        let cut = format!(r#"{{"error":"e","error_description":"{}not-a-real-secret"}}"#, "x".repeat(MAX_DESCRIPTION - 10));
        let refusal = read_refusal(cut.as_bytes()).expect("it is a refusal");
        assert!(!refusal.description.contains("not-"), "{refusal:?}");
        for body in [&b"<html>"[..], b"{}", br#"{"error":{"code":7}}"#, br#"{"error":""}"#] {
            assert_eq!(read_refusal(body), None);
        }
    }
}
