//! Proves that the client has the key to which its tokens are bound (DPoP, RFC 9449).

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ptc_secrets::random;
use ptc_upstream::http::access_token::Proof;
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use url::Url;
use zeroize::Zeroizing;

use crate::challenge::Challenge;

/// The algorithm of the signatures. `ring` makes no keys of RSA, and servers support this one more often than Ed25519.
pub(crate) const ALGORITHM: &str = "ES256";
/// The code with which a server demands its nonce (RFC 9449, section 8).
pub(crate) const USE_NONCE: &str = "use_dpop_nonce";

/// The headers of proofs and of nonces.
pub(crate) const PROOF: HeaderName = HeaderName::from_static("dpop");
const NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// Maximum number of servers whose nonce is kept. A login has two: the authorization server and the upstream.
const MAX_NONCES: usize = 8;

/// The key of one login. It deliberately has no `Debug`.
pub(crate) struct ProofKey {
    key: EcdsaKeyPair,
    /// The last nonce of each origin.
    nonces: Mutex<BTreeMap<String, String>>,
}

impl ProofKey {
    /// Makes a new key, as text for the store.
    ///
    /// # Errors
    ///
    /// There are no random bytes.
    pub(crate) fn generate() -> Result<Zeroizing<String>, &'static str> {
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        key.map(|key| Zeroizing::new(URL_SAFE_NO_PAD.encode(key.as_ref()))).map_err(|_| "cannot be made without random bytes")
    }

    /// Reads a key of the store.
    ///
    /// # Errors
    ///
    /// The text is not such a key.
    pub(crate) fn read(text: &str) -> Result<ProofKey, &'static str> {
        let der = URL_SAFE_NO_PAD.decode(text).map(Zeroizing::new).map_err(|_| "has a damaged key")?;
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &der, &SystemRandom::new());
        key.map(|key| ProofKey { key, nonces: Mutex::default() }).map_err(|_| "has a damaged key")
    }

    /// Returns a new proof of a request, as value of the header [`PROOF`]. The request carries `token` unless it is empty, as that for the
    /// token itself.
    pub(crate) fn proof(&self, method: &Method, url: &Url, token: &str) -> Option<HeaderValue> {
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        // An uncompressed point: a byte, then both coordinates.
        let (x, y) = self.key.public_key().as_ref().get(1..)?.split_at_checked(32)?;
        let jwk = json!({ "kty": "EC", "crv": "P-256", "x": encode(x), "y": encode(y) });
        let mut target = url.clone();
        target.set_query(None);
        target.set_fragment(None);
        let mut claims = json!({
            "jti": random::text::<16>().ok()?,
            "htm": method.as_str(),
            "htu": target.as_str(),
            "iat": SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
            "ath": (!token.is_empty()).then(|| encode(digest(&SHA256, token.as_bytes()).as_ref())),
            "nonce": self.nonces().get(&origin(url)),
        });
        claims.as_object_mut()?.retain(|_, value| !value.is_null());
        let header = json!({ "alg": ALGORITHM, "typ": "dpop+jwt", "jwk": jwk });
        let encoded = |value: Value| encode(value.to_string().as_bytes());
        let message = format!("{}.{}", encoded(header), encoded(claims));
        let signature = self.key.sign(&SystemRandom::new(), message.as_bytes()).ok()?;
        HeaderValue::from_str(&format!("{message}.{}", encode(signature.as_ref()))).ok()
    }

    /// Reads the nonce of an answer. Returns whether there is another one than before.
    pub(crate) fn learn_nonce(&self, url: &Url, headers: &HeaderMap) -> bool {
        let Some(nonce) = headers.get(NONCE).and_then(|value| value.to_str().ok()).filter(|nonce| is_nonce(nonce)) else {
            return false;
        };
        let mut nonces = self.nonces();
        let origin = origin(url);
        let is_new = nonces.get(&origin).is_none_or(|known| known != nonce);
        if is_new && (nonces.len() < MAX_NONCES || nonces.contains_key(&origin)) {
            nonces.insert(origin, nonce.to_owned());
        }
        is_new
    }

    fn nonces(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.nonces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Proof for ProofKey {
    fn header(&self, method: &Method, url: &Url, token: &str) -> Option<HeaderValue> {
        self.proof(method, url, token)
    }

    fn learn(&self, url: &Url, headers: &HeaderMap) {
        self.learn_nonce(url, headers);
    }

    fn lacks_nonce(&self, headers: &HeaderMap) -> bool {
        headers.contains_key(NONCE) && Challenge::of_scheme(headers, "dpop").is_some_and(|challenge| challenge.error == USE_NONCE)
    }
}

fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// Whether a text is a nonce (RFC 9449, section 8.1) of a usual length.
fn is_nonce(text: &str) -> bool {
    text.len() <= 1_024 && !text.is_empty() && text.bytes().all(|byte| matches!(byte, b'!' | b'#'..=b'[' | b']'..=b'~'))
}

#[cfg(test)]
mod tests {
    use reqwest::header::WWW_AUTHENTICATE;
    use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};

    use super::*;

    fn decoded(part: &str) -> Value {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
    }

    #[test]
    fn proof_belongs_to_one_request_and_token_and_has_the_nonce_of_its_server() {
        let stored = ProofKey::generate().unwrap();
        let key = ProofKey::read(&stored).unwrap();
        let url = Url::parse("https://mcp.example/mcp?secret=1#x").unwrap();
        let headers = |nonce| HeaderMap::from_iter([(NONCE, HeaderValue::from_static(nonce))]);
        assert!(key.learn_nonce(&url, &headers("n-1")));
        assert!(!key.learn_nonce(&url, &headers("n-1")), "it is known");
        assert!(!key.learn_nonce(&url, &headers("n \\ 2")), "it has a space");
        assert!(key.learn_nonce(&Url::parse("https://id.example/token").unwrap(), &headers("other")));

        let proof = key.proof(&Method::POST, &url, "not-a-real-token").unwrap();
        let parts: Vec<&str> = proof.to_str().unwrap().split('.').collect();
        let [header, claims, signature] = parts[..] else { panic!("{proof:?}") };
        let (named, claimed) = (decoded(header), decoded(claims));
        assert_eq!((&named["typ"], &named["alg"], &named["jwk"]["d"]), (&json!("dpop+jwt"), &json!("ES256"), &Value::Null));
        assert_eq!((&claimed["htm"], &claimed["htu"]), (&json!("POST"), &json!("https://mcp.example/mcp")));
        assert_eq!(claimed["nonce"], "n-1");
        assert_eq!(claimed["ath"], URL_SAFE_NO_PAD.encode(digest(&SHA256, b"not-a-real-token")));
        let point = |name: &str| URL_SAFE_NO_PAD.decode(named["jwk"][name].as_str().unwrap()).unwrap();
        let public = [vec![4], point("x"), point("y")].concat();
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        let verified =
            UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, public).verify(format!("{header}.{claims}").as_bytes(), &signature);
        assert!(verified.is_ok());

        // A server may accept both schemes.
        let asking = HeaderMap::from_iter([
            (NONCE, HeaderValue::from_static("n-2")),
            (WWW_AUTHENTICATE, HeaderValue::from_static("Bearer error=\"invalid_token\", DPoP error=\"use_dpop_nonce\"")),
        ]);
        assert!(key.lacks_nonce(&asking));

        let again = key.proof(&Method::POST, &url, "").unwrap();
        let claims = decoded(again.to_str().unwrap().split('.').nth(1).unwrap());
        assert!(claims["ath"].is_null() && claims["jti"] != claimed["jti"]);
        assert!(ProofKey::read("no key").is_err() && ProofKey::read("").is_err());
    }
}
