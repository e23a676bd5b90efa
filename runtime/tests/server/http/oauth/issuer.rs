//! An authorization server: its documents, which a test can change, and the tokens that it issues.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};

use super::rsa::RsaKey;
use crate::web::{Answer, Web};

pub(super) const CLIENT_SECRET: &str = "not-a-real-secret-of-a-client!";
/// The beginning of opaque tokens about which the authorization server answers late.
pub(super) const SLOW: &str = "slow-";
pub(super) const AUDIENCE: &str = "https://gate.example/mcp";

/// The keys of an issuer.
pub(super) struct Keys {
    pub(super) rsa: RsaKey,
    pub(super) curve: EcdsaKeyPair,
    pub(super) edwards: Ed25519KeyPair,
}

/// What signs a token.
#[derive(Clone, Copy)]
pub(super) enum Signer<'k> {
    Rs256(&'k RsaKey),
    Ps256(&'k RsaKey),
    Es256(&'k EcdsaKeyPair),
    EdDsa(&'k Ed25519KeyPair),
    Hs256(&'k [u8]),
    Nothing,
}

/// What the server answers at a path.
#[derive(Clone)]
pub(super) enum Document {
    Json(Value),
    Bytes(Vec<u8>),
    Status(u16),
    Redirect(String),
}

pub(super) struct Issuer {
    web: Web,
    pub(super) keys: Keys,
    documents: Arc<Mutex<BTreeMap<String, Document>>>,
    /// What is known of opaque tokens.
    opaque: Arc<Mutex<BTreeMap<String, Value>>>,
}

pub(super) fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs()
}

impl Keys {
    pub(super) fn generate() -> Keys {
        let random = SystemRandom::new();
        let curve = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).expect("a key");
        let edwards = Ed25519KeyPair::generate_pkcs8(&random).expect("a key");
        Keys {
            rsa: RsaKey::new(),
            curve: EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, curve.as_ref(), &random).expect("a key"),
            edwards: Ed25519KeyPair::from_pkcs8(edwards.as_ref()).expect("a key"),
        }
    }

    /// Returns the public keys as a JSON Web Key Set.
    pub(super) fn set(&self) -> Value {
        json!({ "keys": [rsa_jwk("rsa", &self.rsa), curve_jwk("curve", &self.curve), edwards_jwk("edwards", &self.edwards)] })
    }
}

pub(super) fn rsa_jwk(id: &str, key: &RsaKey) -> Value {
    json!({ "kty": "RSA", "use": "sig", "kid": id, "n": encode(&key.modulus.to_bytes_be()), "e": "AQAB" })
}

pub(super) fn curve_jwk(id: &str, key: &EcdsaKeyPair) -> Value {
    let point = key.public_key().as_ref();
    json!({ "kty": "EC", "crv": "P-256", "alg": "ES256", "kid": id, "x": encode(&point[1..33]), "y": encode(&point[33..]) })
}

pub(super) fn edwards_jwk(id: &str, key: &Ed25519KeyPair) -> Value {
    json!({ "kty": "OKP", "crv": "Ed25519", "kid": id, "x": encode(key.public_key().as_ref()) })
}

impl Signer<'_> {
    /// Signs a header and claims, which may be any JSON.
    pub(super) fn token(self, header: &Value, claims: &Value) -> String {
        let message = format!("{}.{}", encode(header.to_string().as_bytes()), encode(claims.to_string().as_bytes()));
        let signature = self.sign(message.as_bytes());
        format!("{message}.{}", encode(&signature))
    }

    pub(super) fn sign(self, message: &[u8]) -> Vec<u8> {
        match self {
            Signer::Rs256(key) => key.sign(message),
            Signer::Ps256(key) => key.sign_pss(message),
            Signer::Es256(key) => key.sign(&SystemRandom::new(), message).expect("a signature").as_ref().to_vec(),
            Signer::EdDsa(key) => key.sign(message).as_ref().to_vec(),
            Signer::Hs256(secret) => hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), message).as_ref().to_vec(),
            Signer::Nothing => Vec::new(),
        }
    }
}

impl Issuer {
    /// Starts a server that has the metadata of RFC 8414 and a key of each kind.
    pub(super) fn start() -> Issuer {
        let documents = Arc::new(Mutex::new(BTreeMap::<String, Document>::new()));
        let (served, opaque) = (Arc::clone(&documents), Arc::new(Mutex::new(BTreeMap::<String, Value>::new())));
        let known = Arc::clone(&opaque);
        let credential = format!("Basic {}", STANDARD.encode(format!("gate:{}", CLIENT_SECRET.replace('!', "%21"))));
        let web = Web::start(move |asked| match served.lock().expect("no panic").get(&asked.target).cloned() {
            Some(Document::Json(value)) => Answer::json(200, value),
            Some(Document::Bytes(bytes)) => Answer::Full(200, Vec::new(), bytes),
            Some(Document::Status(status)) => Answer::json(status, "{}"),
            Some(Document::Redirect(to)) => Answer::Full(302, vec![format!("Location: {to}")], Vec::new()),
            None if asked.target == "/introspect" => {
                let is_form = asked.header("content-type") == Some("application/x-www-form-urlencoded");
                if asked.method != "POST" || asked.header("authorization") != Some(&credential) || !is_form {
                    return Answer::json(401, "{}");
                }
                let token = asked.body.strip_prefix("token=").and_then(|rest| rest.strip_suffix("&token_type_hint=access_token"));
                if token.is_some_and(|token| token.starts_with(SLOW)) {
                    std::thread::sleep(Duration::from_millis(500));
                }
                let known = known.lock().expect("no panic");
                Answer::json(200, token.and_then(|token| known.get(token)).unwrap_or(&json!({ "active": false })))
            }
            None => Answer::json(404, "{}"),
        });
        let issuer = Issuer { web, keys: Keys::generate(), documents, opaque };
        issuer.serve("/.well-known/oauth-authorization-server/tenant", Document::Json(issuer.metadata()));
        issuer.serve("/keys", Document::Json(issuer.keys.set()));
        issuer
    }

    pub(super) fn name(&self) -> &'static str {
        self.web.url("/tenant")
    }

    pub(super) fn url(&self, path: &str) -> &'static str {
        self.web.url(path)
    }

    pub(super) fn metadata(&self) -> Value {
        json!({ "issuer": self.name(), "jwks_uri": self.url("/keys"), "token_endpoint": self.url("/token") })
    }

    pub(super) fn serve(&self, path: &str, document: Document) {
        self.documents.lock().expect("no panic").insert(path.to_owned(), document);
    }

    /// Issues an opaque token.
    pub(super) fn know(&self, token: &str, answer: Value) {
        self.opaque.lock().expect("no panic").insert(token.to_owned(), answer);
    }

    /// Returns how often a path was requested.
    pub(super) fn requests(&self, path: &str) -> usize {
        self.web.requests().iter().filter(|asked| asked.target == path).count()
    }

    /// Returns the claims of a valid token, with changes. Null removes a claim.
    pub(super) fn claims(&self, changes: &Value) -> Value {
        let mut claims = json!({
            "iss": self.name(), "aud": AUDIENCE, "sub": "alice", "client_id": "client", "jti": "1",
            "iat": now(), "exp": now() + 300, "scope": "mcp:call mcp:read",
        });
        for (name, value) in changes.as_object().into_iter().flatten() {
            claims[name] = value.clone();
        }
        claims.as_object_mut().expect("an object").retain(|_, value| !value.is_null());
        claims
    }

    /// Returns a token with changed claims that is otherwise valid.
    pub(super) fn token(&self, changes: &Value) -> String {
        let header = json!({ "alg": "EdDSA", "typ": "at+jwt", "kid": "edwards" });
        Signer::EdDsa(&self.keys.edwards).token(&header, &self.claims(changes))
    }

    /// Returns a token with a changed header that is otherwise valid. Null removes a parameter.
    pub(super) fn token_with(&self, changes: &Value) -> String {
        let mut header = json!({ "alg": "EdDSA", "typ": "at+jwt", "kid": "edwards" });
        for (name, value) in changes.as_object().into_iter().flatten() {
            header[name] = value.clone();
        }
        header.as_object_mut().expect("an object").retain(|_, value| !value.is_null());
        Signer::EdDsa(&self.keys.edwards).token(&header, &self.claims(&json!({})))
    }
}
