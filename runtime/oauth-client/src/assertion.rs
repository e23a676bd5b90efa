//! Assertions with which a client proves that it has a private key (RFC 7523, section 2.2).

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ptc_secrets::random;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::json;

/// Time in seconds for which an assertion is valid. It is used at once; the time allows for clocks that differ.
const LIFETIME_S: u64 = 120;

/// A private key with the algorithm of its signatures. It deliberately has no `Debug`.
pub(crate) struct SigningKey {
    algorithm: &'static str,
    key: Key,
}

enum Key {
    Rsa(RsaKeyPair),
    Curve(EcdsaKeyPair),
    Edwards(Ed25519KeyPair),
}

impl SigningKey {
    /// Reads a key of RSA, P-256, P-384 or Ed25519.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the text, without any part of it.
    pub(crate) fn parse(pem: &str) -> Result<SigningKey, &'static str> {
        let der = PrivateKeyDer::from_pem_slice(pem.as_bytes())
            .map_err(|_| "is not a private key as PEM (-----BEGIN PRIVATE KEY-----)")?;
        let key = |algorithm, key| SigningKey { algorithm, key };
        match &der {
            PrivateKeyDer::Pkcs1(der) => {
                let rsa = RsaKeyPair::from_der(der.secret_pkcs1_der());
                rsa.map(|rsa| key("RS256", Key::Rsa(rsa))).map_err(|_| "is not an RSA key of 2048 to 4096 bits")
            }
            PrivateKeyDer::Pkcs8(der) => {
                let der = der.secret_pkcs8_der();
                let curve = |algorithm| EcdsaKeyPair::from_pkcs8(algorithm, der, &SystemRandom::new());
                if let Ok(rsa) = RsaKeyPair::from_pkcs8(der) {
                    Ok(key("RS256", Key::Rsa(rsa)))
                } else if let Ok(p256) = curve(&ECDSA_P256_SHA256_FIXED_SIGNING) {
                    Ok(key("ES256", Key::Curve(p256)))
                } else if let Ok(p384) = curve(&ECDSA_P384_SHA384_FIXED_SIGNING) {
                    Ok(key("ES384", Key::Curve(p384)))
                } else if let Ok(edwards) = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der) {
                    Ok(key("EdDSA", Key::Edwards(edwards)))
                } else {
                    Err("is not a key of RSA (2048 to 4096 bits), P-256, P-384 or Ed25519")
                }
            }
            _ => Err("is a key in SEC 1 format: convert it with `openssl pkcs8 -topk8 -nocrypt -in KEY`"),
        }
    }

    /// Returns a new assertion of `client` for `audience` as a JWT. `key_id` becomes its `kid`, if it is not empty.
    ///
    /// # Errors
    ///
    /// The key cannot sign.
    pub(crate) fn assertion(&self, client: &str, audience: &str, key_id: &str) -> Result<String, &'static str> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let header = match key_id {
            "" => json!({ "alg": self.algorithm, "typ": "JWT" }),
            key_id => json!({ "alg": self.algorithm, "typ": "JWT", "kid": key_id }),
        };
        let claims = json!({
            "iss": client,
            "sub": client,
            "aud": audience,
            "jti": random::text::<16>().map_err(|_| "cannot sign without random bytes")?,
            "iat": now,
            "exp": now + LIFETIME_S,
        });
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let message = format!("{}.{}", encode(header.to_string().as_bytes()), encode(claims.to_string().as_bytes()));
        let signature = self.sign(message.as_bytes()).map_err(|_| "cannot sign")?;
        Ok(format!("{message}.{}", encode(&signature)))
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, ring::error::Unspecified> {
        match &self.key {
            Key::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message, &mut signature)?;
                Ok(signature)
            }
            Key::Curve(key) => Ok(key.sign(&SystemRandom::new(), message)?.as_ref().to_vec()),
            Key::Edwards(key) => Ok(key.sign(message).as_ref().to_vec()),
        }
    }
}
