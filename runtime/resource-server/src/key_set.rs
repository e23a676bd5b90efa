//! The keys of a JSON Web Key Set (RFC 7517) that can verify a token.

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;

use crate::crypto::ALGORITHMS;

/// Maximum number of keys in a set.
const MAX_KEYS: usize = 64;
/// Maximum number of keys that are tried for a token, if their ids do not distinguish them.
const MAX_CANDIDATES: usize = 4;

/// The usable keys of a set.
#[derive(Debug)]
pub(crate) struct KeySet(Vec<Key>);

#[derive(Debug)]
struct Key {
    id: Option<String>,
    algorithms: Vec<Algorithm>,
    decoding: DecodingKey,
}

impl KeySet {
    /// Reads a set. Keys of unknown types and for other purposes are omitted (RFC 7517, section 5). Symmetric keys are too: an issuer
    /// that publishes one shares it with everybody.
    pub(crate) fn parse(bytes: &[u8]) -> Result<KeySet, String> {
        #[derive(Deserialize)]
        struct Document {
            keys: Vec<serde_json::Value>,
        }
        let document: Document =
            serde_json::from_slice(bytes).map_err(|why| format!("expected a JSON Web Key Set with a list `keys`: {why}"))?;
        if document.keys.len() > MAX_KEYS {
            return Err(format!("expected a JSON Web Key Set of at most {MAX_KEYS} keys, got {}", document.keys.len()));
        }
        let usable: Vec<Key> = document.keys.into_iter().filter_map(Key::read).collect();
        if usable.is_empty() {
            return Err("the JSON Web Key Set has no key for RS256, PS256, ES256 or EdDSA".into());
        }
        Ok(KeySet(usable))
    }

    /// Returns the keys that a token may be signed with: those with its id, or without an id those for its algorithm.
    pub(crate) fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Vec<DecodingKey> {
        let of_id = self.0.iter().filter(|key| id.is_none() || key.id.as_deref() == id);
        of_id.filter(|key| key.algorithms.contains(&algorithm)).take(MAX_CANDIDATES).map(|key| key.decoding.clone()).collect()
    }

    /// Whether a key has this id, for whatever algorithm.
    pub(crate) fn contains(&self, id: &str) -> bool {
        self.0.iter().any(|key| key.id.as_deref() == Some(id))
    }
}

impl Key {
    fn read(value: serde_json::Value) -> Option<Key> {
        let jwk: Jwk = serde_json::from_value(value).ok()?;
        let common = &jwk.common;
        let is_for_signatures = common.public_key_use.as_ref().is_none_or(|purpose| *purpose == PublicKeyUse::Signature);
        let can_verify = common.key_operations.as_ref().is_none_or(|all| all.contains(&KeyOperations::Verify));
        let is_known = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => true,
            AlgorithmParameters::EllipticCurve(key) => key.curve == EllipticCurve::P256,
            AlgorithmParameters::OctetKeyPair(key) => key.curve == EllipticCurve::Ed25519,
            _ => false,
        };
        if !(is_for_signatures && can_verify && is_known) {
            return None;
        }
        let decoding = DecodingKey::from_jwk(&jwk).ok()?;
        let of_family = ALGORITHMS.into_iter().filter(|(_, family)| *family == decoding.family()).map(|(algorithm, _)| algorithm);
        // A key that names its algorithm is used for no other one.
        let algorithms: Vec<Algorithm> =
            of_family.filter(|known| common.key_algorithm.is_none_or(|named| names(named, *known))).collect();
        (!algorithms.is_empty()).then(|| Key { id: common.key_id.clone(), algorithms, decoding })
    }
}

fn names(named: KeyAlgorithm, algorithm: Algorithm) -> bool {
    matches!(
        (named, algorithm),
        (KeyAlgorithm::RS256, Algorithm::RS256)
            | (KeyAlgorithm::PS256, Algorithm::PS256)
            | (KeyAlgorithm::ES256, Algorithm::ES256)
            | (KeyAlgorithm::EdDSA, Algorithm::EdDSA)
    )
}
