//! Checks header, signature and claims of a token.

use std::time::{SystemTime, UNIX_EPOCH};

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation, decode, decode_header};
use ptc_runtime::server::http::access_token::TokenError;
use ptc_runtime::server::identity::{Identity, Owner};
use serde_json::{Map, Value};

use crate::crypto::ALGORITHMS;

/// Maximum length of a token in bytes.
const MAX_TOKEN_BYTES: usize = 16 * 1024;
/// Maximum length of the id of a key in bytes.
const MAX_KEY_ID_BYTES: usize = 256;
/// Maximum length of a subject in bytes.
const MAX_SUBJECT_BYTES: usize = 1024;
/// Maximum number of scopes.
const MAX_SCOPES: usize = 256;
/// Difference between the clocks of two machines that is tolerated, in seconds.
const LEEWAY_SECONDS: u64 = 30;

/// The error of an opaque token.
pub(crate) const NOT_A_JWT: TokenError = TokenError::Untrusted("the token is neither known nor a signed JWT of three parts");

/// The error of a token whose signature no key verifies.
pub(crate) const WRONG_SIGNATURE: TokenError = TokenError::Untrusted("the signature of the token is wrong");

/// The error of a token whose key the issuer has for another algorithm.
pub(crate) const OTHER_ALGORITHM: TokenError = TokenError::Untrusted("the key of the token is for another algorithm");

/// Reads the header of a token and checks everything that needs no key.
///
/// # Errors
///
/// The reason is for the log only: nothing shows yet that the token comes from the issuer.
pub(crate) fn read_header(token: &str) -> Result<Header, TokenError> {
    let refused = |reason| Err(TokenError::Untrusted(reason));
    if token.len() > MAX_TOKEN_BYTES {
        return refused("the token has more than 16384 bytes");
    }
    if token.split('.').count() != 3 {
        return Err(NOT_A_JWT);
    }
    // `none` is not one of the algorithms that the library reads.
    let Ok(header) = decode_header(token) else {
        return refused("the header of the token is invalid, or its algorithm is unknown");
    };
    if !ALGORITHMS.iter().any(|(accepted, _)| *accepted == header.alg) {
        return refused("the algorithm of the token is not RS256, PS256, ES256 or EdDSA");
    }
    if header.crit.is_some() {
        return refused("the header of the token has critical parameters");
    }
    if header.jwk.is_some() || header.jku.is_some() || header.x5u.is_some() || header.x5c.is_some() {
        return refused("the header of the token names a key of its own");
    }
    if header.enc.is_some() || header.zip.is_some() || header.cty.is_some() {
        return refused("the token is encrypted, compressed or nested");
    }
    // RFC 9068, section 4: an ID token or another JWT of the issuer must not be accepted in place of an access token.
    let kind = header.typ.as_deref().unwrap_or_default();
    if !["at+jwt", "application/at+jwt"].iter().any(|accepted| kind.eq_ignore_ascii_case(accepted)) {
        return refused("the type of the token (`typ`) is not at+jwt");
    }
    if header.kid.as_ref().is_some_and(|id| id.len() > MAX_KEY_ID_BYTES) {
        return refused("the key id of the token has more than 256 bytes");
    }
    Ok(header)
}

/// What a token must contain.
pub(crate) struct Expectation {
    issuer: String,
    audience: String,
    validation: Validation,
}

impl Expectation {
    /// Expects an issuer and an audience.
    pub(crate) fn new(issuer: &str, audience: &str) -> Expectation {
        let mut validation = Validation::new(Algorithm::RS256);
        validation.leeway = LEEWAY_SECONDS;
        validation.validate_nbf = true;
        validation.set_issuer(&[issuer]);
        validation.set_audience(&[audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        Expectation { issuer: issuer.to_owned(), audience: audience.to_owned(), validation }
    }

    /// Verifies the signature with one of the keys, and then the claims.
    ///
    /// # Errors
    ///
    /// A client may learn the reason only if the signature is right.
    pub(crate) fn verify(&self, token: &str, algorithm: Algorithm, keys: &[DecodingKey]) -> Result<Identity, TokenError> {
        let validation = Validation { algorithms: vec![algorithm], ..self.validation.clone() };
        let mut error = TokenError::Untrusted("no key of the issuer can verify the token");
        for key in keys {
            match decode::<Map<String, Value>>(token, key, &validation) {
                Ok(verified) => return self.identity(verified.claims),
                Err(why) => error = refusal(why.kind()),
            }
            if matches!(error, TokenError::Unacceptable(_)) {
                break;
            }
        }
        Err(error)
    }

    /// Returns the identity of an opaque token from the answer to its introspection.
    pub(crate) fn introspected(&self, mut claims: Map<String, Value>) -> Result<Identity, TokenError> {
        if claims.get("active") != Some(&Value::Bool(true)) {
            return Err(TokenError::Untrusted("the authorization server does not know the token as active"));
        }
        let kind = claims.get("token_type").and_then(Value::as_str).unwrap_or("Bearer");
        if !kind.eq_ignore_ascii_case("bearer") && !kind.eq_ignore_ascii_case("access_token") {
            return Err(TokenError::Unacceptable("the token is not a bearer token"));
        }
        // RFC 7662 requires neither issuer nor audience. A token for another server must not be accepted here, so that the audience
        // is required.
        claims.entry("iss").or_insert_with(|| self.issuer.clone().into());
        let is_ours = |audience: &Value| audience.as_str() == Some(&self.audience);
        let audience = claims.get("aud");
        if !audience.is_some_and(|audience| is_ours(audience) || audience.as_array().is_some_and(|all| all.iter().any(is_ours))) {
            return Err(TokenError::Unacceptable("the access token is for another audience"));
        }
        if claims.get("nbf").and_then(Value::as_f64).is_some_and(|begin| begin > now() + LEEWAY_SECONDS as f64) {
            return Err(TokenError::Unacceptable("the access token is not valid yet"));
        }
        still_valid(self.identity(claims)?)
    }

    fn identity(&self, claims: Map<String, Value>) -> Result<Identity, TokenError> {
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        // Such a token is stolen unless its client proves that it has a key (RFC 7800), which this server cannot check.
        if claims.contains_key("cnf") {
            return Err(TokenError::Unacceptable("the access token is bound to a key of its client"));
        }
        // The library accepts a list of issuers too.
        if text("iss") != Some(&self.issuer) {
            return Err(TokenError::Unacceptable("the access token is of another issuer"));
        }
        let Some(subject) = text("sub").filter(|subject| !subject.is_empty() && subject.len() <= MAX_SUBJECT_BYTES) else {
            return Err(TokenError::Unacceptable("the access token has no valid subject"));
        };
        let owner = Owner::of_access_token(&self.issuer, subject);
        let scopes: Vec<String> =
            text("scope").unwrap_or_default().split_ascii_whitespace().take(MAX_SCOPES).map(str::to_owned).collect();
        Ok(Identity { owner, scopes, claims, token: None })
    }
}

/// Refuses the identity of a token that has expired.
pub(crate) fn still_valid(identity: Identity) -> Result<Identity, TokenError> {
    let end = identity.claims.get("exp").and_then(Value::as_f64);
    if end.is_some_and(|end| end < now() - LEEWAY_SECONDS as f64) {
        return Err(TokenError::Unacceptable("the access token has expired"));
    }
    Ok(identity)
}

/// Returns the time in seconds since 1970.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(f64::MAX, |since| since.as_secs_f64())
}

/// Returns the reason for a token that the library refuses.
fn refusal(kind: &ErrorKind) -> TokenError {
    match kind {
        ErrorKind::ExpiredSignature => TokenError::Unacceptable("the access token has expired"),
        ErrorKind::ImmatureSignature => TokenError::Unacceptable("the access token is not valid yet"),
        ErrorKind::InvalidIssuer => TokenError::Unacceptable("the access token is of another issuer"),
        ErrorKind::InvalidAudience => TokenError::Unacceptable("the access token is for another audience"),
        ErrorKind::MissingRequiredClaim(_) | ErrorKind::InvalidClaimFormat(_) => {
            TokenError::Unacceptable("the access token lacks a valid exp, iss, aud or sub")
        }
        ErrorKind::InvalidSignature => WRONG_SIGNATURE,
        ErrorKind::InvalidAlgorithm => OTHER_ALGORITHM,
        _ => TokenError::Untrusted("the token is malformed"),
    }
}
