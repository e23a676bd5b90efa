//! Tokens that must be refused, and documents of an issuer that must not be used. Each row has the reason.

use serde_json::{Value, json};

use super::issuer::{Document, Issuer, Keys, Signer, curve_jwk, edwards_jwk, encode, now, rsa_jwk};
use super::rsa::RsaKey;

/// A hostile token: what it does, the token, and the reason in the log.
pub(super) type TokenRow = (&'static str, String, &'static str);

/// The reasons that a client may learn: the issuer has signed the token.
pub(super) const PUBLIC: [&str; 6] = [
    "the access token has expired",
    "the access token is not valid yet",
    "the access token is of another issuer",
    "the access token is for another audience",
    "the access token lacks a valid exp, iss, aud or sub",
    "the access token has no valid subject",
];

const MALFORMED: &str = "the token is malformed";
const NOT_JWS: &str = "the token is neither known nor a signed JWT of three parts";
const BAD_HEADER: &str = "the header of the token is invalid, or its algorithm is unknown";
const ALGORITHM: &str = "the algorithm of the token is not RS256, PS256, ES256 or EdDSA";
const OTHER_ALGORITHM: &str = "the key of the token is for another algorithm";
const SIGNATURE: &str = "the signature of the token is wrong";
const UNKNOWN_KEY: &str = "the issuer has no key with the id of the token";
const OWN_KEY: &str = "the header of the token names a key of its own";
const CRITICAL: &str = "the header of the token has critical parameters";
const TYPE: &str = "the type of the token (`typ`) is not at+jwt";
const TRANSFORMED: &str = "the token is encrypted, compressed or nested";

pub(super) fn tokens(issuer: &Issuer) -> Vec<TokenRow> {
    [algorithms(issuer), keys(issuer), headers(issuer), claims(issuer), forms(issuer)].concat()
}

fn header(alg: &str, kid: &str) -> Value {
    json!({ "alg": alg, "typ": "at+jwt", "kid": kid })
}

/// Confusion of algorithms.
fn algorithms(issuer: &Issuer) -> Vec<TokenRow> {
    let (keys, claims) = (&issuer.keys, issuer.claims(&json!({})));
    let modulus = keys.rsa.modulus.to_bytes_be();
    let public = serde_json::to_vec(&rsa_jwk("rsa", &keys.rsa)).expect("JSON");
    vec![
        ("no signature", Signer::Nothing.token(&header("none", "rsa"), &claims), BAD_HEADER),
        ("no signature, in another case", Signer::Nothing.token(&header("nOnE", "rsa"), &claims), BAD_HEADER),
        ("an empty algorithm", Signer::Nothing.token(&header("", "rsa"), &claims), BAD_HEADER),
        ("no algorithm", Signer::Nothing.token(&json!({ "typ": "at+jwt" }), &claims), BAD_HEADER),
        ("a list of algorithms", Signer::Nothing.token(&json!({ "alg": ["EdDSA"], "typ": "at+jwt" }), &claims), BAD_HEADER),
        ("the public modulus as a secret", Signer::Hs256(&modulus).token(&header("HS256", "rsa"), &claims), ALGORITHM),
        ("the public key as a secret", Signer::Hs256(&public).token(&header("HS256", "rsa"), &claims), ALGORITHM),
        ("an empty secret", Signer::Hs256(b"").token(&header("HS512", "rsa"), &claims), ALGORITHM),
        ("a longer hash", Signer::Rs256(&keys.rsa).token(&header("RS512", "rsa"), &claims), ALGORITHM),
        ("PS256 said, RS256 done", Signer::Rs256(&keys.rsa).token(&header("PS256", "rsa"), &claims), SIGNATURE),
        ("RS256 said, PS256 done", Signer::Ps256(&keys.rsa).token(&header("RS256", "rsa"), &claims), SIGNATURE),
        ("RSA with the key of a curve", Signer::Rs256(&keys.rsa).token(&header("RS256", "curve"), &claims), OTHER_ALGORITHM),
        ("a curve with the key of RSA", Signer::Es256(&keys.curve).token(&header("ES256", "rsa"), &claims), OTHER_ALGORITHM),
        (
            "EdDSA with the key of a curve",
            Signer::EdDsa(&keys.edwards).token(&header("EdDSA", "curve"), &claims),
            OTHER_ALGORITHM,
        ),
        ("no signature, but the name of one", Signer::Nothing.token(&header("EdDSA", "edwards"), &claims), SIGNATURE),
        ("zeros as the signature of a curve", with_signature(&header("ES256", "curve"), &claims, &[0; 64]), SIGNATURE),
        ("zeros as a signature of EdDSA", with_signature(&header("EdDSA", "edwards"), &claims, &[0; 64]), SIGNATURE),
        ("zeros as a signature of RSA", with_signature(&header("RS256", "rsa"), &claims, &[0; 256]), SIGNATURE),
        ("a key that is too short", Signer::Rs256(&RsaKey::short()).token(&header("RS256", "short"), &claims), SIGNATURE),
        ("a signature that is too long", with_signature(&header("RS256", "rsa"), &claims, &[1; 4096]), SIGNATURE),
    ]
}

fn with_signature(header: &Value, claims: &Value, signature: &[u8]) -> String {
    let unsigned = Signer::Nothing.token(header, claims);
    format!("{unsigned}{}", encode(signature))
}

/// Keys of others.
fn keys(issuer: &Issuer) -> Vec<TokenRow> {
    let (claims, other) = (issuer.claims(&json!({})), Keys::generate());
    let forged = |header: &Value| Signer::EdDsa(&other.edwards).token(header, &claims);
    let with = |name: &str, value: Value| {
        let mut header = header("EdDSA", "edwards");
        header[name] = value;
        header
    };
    vec![
        ("the key of another issuer", forged(&header("EdDSA", "edwards")), SIGNATURE),
        ("a key without an id", forged(&json!({ "alg": "EdDSA", "typ": "at+jwt" })), SIGNATURE),
        ("an unknown key id", forged(&header("EdDSA", "other")), UNKNOWN_KEY),
        ("an empty key id", forged(&header("EdDSA", "")), UNKNOWN_KEY),
        ("a key id that is a path", forged(&header("EdDSA", "../../../../dev/null")), UNKNOWN_KEY),
        ("a key id that is SQL", forged(&header("EdDSA", "x' UNION SELECT 'key'; --")), UNKNOWN_KEY),
        ("a key id that is a command", forged(&header("EdDSA", "$(id)|`id`")), UNKNOWN_KEY),
        ("a key id that is a URL", forged(&header("EdDSA", issuer.url("/evil"))), UNKNOWN_KEY),
        ("a key id with a line break", forged(&header("EdDSA", "edwards\n{\"event\":\"forged\"}")), UNKNOWN_KEY),
        (
            "a key id that is too long",
            forged(&header("EdDSA", &"k".repeat(257))),
            "the key id of the token has more than 256 bytes",
        ),
        ("a key id that is a number", forged(&with("kid", json!(7))), BAD_HEADER),
        ("a symmetric key of the issuer", Signer::Hs256(b"published").token(&header("HS256", "secret"), &claims), ALGORITHM),
        ("a key for encryption", Signer::EdDsa(&issuer.keys.edwards).token(&header("EdDSA", "encryption"), &claims), UNKNOWN_KEY),
        (
            "a key for other operations",
            Signer::EdDsa(&issuer.keys.edwards).token(&header("EdDSA", "wrapping"), &claims),
            UNKNOWN_KEY,
        ),
        ("an embedded key", forged(&with("jwk", edwards_jwk("edwards", &other.edwards))), OWN_KEY),
        (
            "an embedded key of the issuer",
            issuer.token_with(&json!({ "jwk": edwards_jwk("edwards", &issuer.keys.edwards) })),
            OWN_KEY,
        ),
        ("a URL of keys", forged(&with("jku", issuer.url("/evil").into())), OWN_KEY),
        ("a URL of certificates", forged(&with("x5u", issuer.url("/evil").into())), OWN_KEY),
        ("certificates", forged(&with("x5c", json!(["MIIB"]))), OWN_KEY),
    ]
}

/// Parameters of the header, in tokens that the issuer has signed.
fn headers(issuer: &Issuer) -> Vec<TokenRow> {
    let with = |changes: Value| issuer.token_with(&changes);
    vec![
        ("a critical parameter", with(json!({ "crit": ["exp"] })), CRITICAL),
        ("a critical parameter that is there", with(json!({ "crit": ["b64"], "b64": false })), CRITICAL),
        ("an empty list of critical parameters", with(json!({ "crit": [] })), CRITICAL),
        ("a text in place of critical parameters", with(json!({ "crit": "exp" })), BAD_HEADER),
        ("no type", with(json!({ "typ": null })), TYPE),
        ("an ID token", with(json!({ "typ": "JWT" })), TYPE),
        ("a logout token", with(json!({ "typ": "logout+jwt" })), TYPE),
        ("a proof of possession", with(json!({ "typ": "dpop+jwt" })), TYPE),
        ("a type with a suffix", with(json!({ "typ": "at+jwt;x" })), TYPE),
        ("a compressed token", with(json!({ "zip": "DEF" })), TRANSFORMED),
        ("a nested token", with(json!({ "cty": "JWT" })), TRANSFORMED),
        ("an encrypted token", with(json!({ "enc": "A128GCM" })), TRANSFORMED),
    ]
}

/// Claims, in tokens that the issuer has signed.
fn claims(issuer: &Issuer) -> Vec<TokenRow> {
    let [expired, early, other_issuer, other_audience, lacking, subject] = PUBLIC;
    let with = |changes: Value| issuer.token(&changes);
    vec![
        ("expired", with(json!({ "exp": now() - 60 })), expired),
        ("expired long ago", with(json!({ "exp": 0 })), expired),
        ("no end", with(json!({ "exp": null })), lacking),
        ("an end that is a text", with(json!({ "exp": (now() + 300).to_string() })), lacking),
        ("an end before all times", with(json!({ "exp": -1 })), lacking),
        ("not yet valid", with(json!({ "nbf": now() + 120 })), early),
        ("a begin that is a text", with(json!({ "nbf": "now" })), lacking),
        ("another issuer", with(json!({ "iss": issuer.url("/other") })), other_issuer),
        ("an issuer with a slash more", with(json!({ "iss": format!("{}/", issuer.name()) })), other_issuer),
        ("a list of issuers", with(json!({ "iss": [issuer.name(), "https://other.example"] })), other_issuer),
        ("no issuer", with(json!({ "iss": null })), lacking),
        ("another audience", with(json!({ "aud": "https://other.example/mcp" })), other_audience),
        ("a longer audience", with(json!({ "aud": "https://gate.example/mcp/x" })), other_audience),
        ("other audiences", with(json!({ "aud": ["https://other.example", "gate"] })), other_audience),
        ("no audience in a list", with(json!({ "aud": [] })), other_audience),
        ("no audience", with(json!({ "aud": null })), lacking),
        ("no subject", with(json!({ "sub": null })), lacking),
        ("an empty subject", with(json!({ "sub": "" })), subject),
        ("a subject that is too long", with(json!({ "sub": "s".repeat(1025) })), subject),
        ("a subject that is a list", with(json!({ "sub": ["alice"] })), MALFORMED),
    ]
}

/// Texts that are not tokens.
fn forms(issuer: &Issuer) -> Vec<TokenRow> {
    let valid = issuer.token(&json!({}));
    let parts: Vec<&str> = valid.split('.').collect();
    let [head, claims, signature] = parts[..] else { panic!("three parts") };
    let other = encode(issuer.claims(&json!({ "sub": "admin" })).to_string().as_bytes());
    let duplicate = encode(br#"{"alg":"EdDSA","typ":"at+jwt","kid":"edwards","alg":"none"}"#);
    let signed = |text: &[u8]| {
        let message = format!("{head}.{}", encode(text));
        format!("{message}.{}", encode(&Signer::EdDsa(&issuer.keys.edwards).sign(message.as_bytes())))
    };
    vec![
        ("other claims under the signature", format!("{head}.{other}.{signature}"), SIGNATURE),
        ("a signature cut off", format!("{head}.{claims}."), SIGNATURE),
        ("two parts", format!("{head}.{claims}"), NOT_JWS),
        ("five parts", format!("{head}.{claims}.{signature}.x.y"), NOT_JWS),
        ("no parts", "opaque-0123456789-0123456789-0123456789".to_owned(), NOT_JWS),
        ("dots", "..".to_owned(), BAD_HEADER),
        ("a header that is not base64", format!("%%.{claims}.{signature}"), BAD_HEADER),
        ("a header that is not JSON", format!("{}.{claims}.{signature}", encode(b"{")), BAD_HEADER),
        ("a header with a member twice", format!("{duplicate}.{claims}.{signature}"), BAD_HEADER),
        ("padding", format!("{head}.{claims}.{signature}=="), MALFORMED),
        ("claims that are a list", signed(b"[]"), MALFORMED),
        ("claims that are not JSON", signed(b"{"), MALFORMED),
        ("claims that are nested deeply", signed("[".repeat(4000).as_bytes()), MALFORMED),
        ("a token that is too long", issuer.token(&json!({ "x": "x".repeat(16 * 1024) })), "the token has more than 16384 bytes"),
    ]
}

/// A hostile issuer: what it does, its documents, and a part of the reason in the log.
pub(super) type IssuerRow = (&'static str, Vec<(&'static str, Document)>, &'static str);

const METADATA: &str = "/.well-known/oauth-authorization-server/tenant";
const OPENID: &str = "/.well-known/openid-configuration/tenant";

pub(super) fn issuers(issuer: &Issuer) -> Vec<IssuerRow> {
    let metadata = |name: &str, value: Value| {
        let mut metadata = issuer.metadata();
        metadata[name] = value;
        Document::Json(metadata)
    };
    let keys = |keys: Value| vec![("/keys", Document::Json(json!({ "keys": keys })))];
    let symmetric = json!([{ "kty": "oct", "kid": "edwards", "k": "c2VjcmV0", "alg": "HS256" }]);
    let many: Vec<Value> = (0..65).map(|n| edwards_jwk(&n.to_string(), &issuer.keys.edwards)).collect();
    let other_curve = json!([{ "kty": "EC", "crv": "P-521", "kid": "edwards", "x": "AA", "y": "AA" }]);
    let mut encryption = curve_jwk("edwards", &issuer.keys.curve);
    encryption["use"] = "enc".into();
    vec![
        (
            "redirects from its metadata",
            vec![(METADATA, Document::Redirect(issuer.url("/moved").into()))],
            "redirects are not followed",
        ),
        (
            "redirects from its keys",
            vec![("/keys", Document::Redirect(issuer.url("/moved").into()))],
            "redirects are not followed",
        ),
        (
            "has the metadata of another issuer",
            vec![(METADATA, metadata("issuer", issuer.url("/other").into()))],
            "of another issuer",
        ),
        (
            "has an issuer with a slash more",
            vec![(METADATA, metadata("issuer", format!("{}/", issuer.name()).into()))],
            "of another issuer",
        ),
        ("names no issuer", vec![(METADATA, metadata("issuer", Value::Null))], "expected metadata with"),
        ("names no keys", vec![(METADATA, metadata("jwks_uri", Value::Null))], "expected metadata with"),
        ("names keys that are not a URL", vec![(METADATA, metadata("jwks_uri", "keys".into()))], "is not a URL"),
        (
            "names keys in a file",
            vec![(METADATA, metadata("jwks_uri", "file:///etc/passwd".into()))],
            "must have the scheme https",
        ),
        (
            "names keys without TLS",
            vec![(METADATA, metadata("jwks_uri", "http://169.254.169.254/keys".into()))],
            "must have the scheme https",
        ),
        ("has metadata that is not JSON", vec![(METADATA, Document::Bytes(b"<html>".to_vec()))], "expected metadata with"),
        ("has oversized metadata", vec![(METADATA, Document::Bytes(vec![b' '; 64 * 1024 + 1]))], "expected at most 65536 bytes"),
        ("fails", vec![(METADATA, Document::Status(500))], "status 500"),
        (
            "has no metadata",
            vec![(METADATA, Document::Status(404)), (OPENID, Document::Status(404))],
            "no metadata of the issuer at",
        ),
        ("has oversized keys", vec![("/keys", Document::Bytes(vec![b' '; 256 * 1024 + 1]))], "expected at most 262144 bytes"),
        ("has no keys", vec![("/keys", Document::Status(404))], "expected a JSON Web Key Set, got status 404"),
        ("has keys that are not a set", vec![("/keys", Document::Json(json!([])))], "expected a JSON Web Key Set"),
        ("has an empty set", keys(json!([])), "no key for RS256"),
        ("has too many keys", keys(many.into()), "at most 64 keys"),
        ("has a symmetric key", keys(symmetric), "no key for RS256"),
        ("has a key of another curve", keys(other_curve), "no key for RS256"),
        ("has a key for encryption", keys(json!([encryption])), "no key for RS256"),
    ]
}
