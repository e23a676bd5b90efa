//! The signatures of `jsonwebtoken`, verified with `ring`.

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::signature::{self, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PSS_2048_8192_SHA256, RsaParameters,
    RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};

/// The algorithms that are accepted, each with its family of keys. None of them is symmetric.
pub(crate) const ALGORITHMS: [(Algorithm, AlgorithmFamily); 4] = [
    (Algorithm::RS256, AlgorithmFamily::Rsa),
    (Algorithm::PS256, AlgorithmFamily::Rsa),
    (Algorithm::ES256, AlgorithmFamily::Ec),
    (Algorithm::EdDSA, AlgorithmFamily::Ed),
];

static PROVIDER: CryptoProvider =
    CryptoProvider { signer_factory: no_signer, verifier_factory: verifier, key_utils: KeyUtils::new_unimplemented() };

/// Makes `jsonwebtoken` use this module.
pub(crate) fn install() {
    // It is installed already if the process has made a verifier before.
    let _ = PROVIDER.install_default();
}

/// A key, with the algorithm for which it was chosen.
struct RingVerifier {
    algorithm: Algorithm,
    key: DecodingKey,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the library calls it with a reference")]
fn no_signer(_: &Algorithm, _: &EncodingKey) -> Result<Box<dyn JwtSigner>, Error> {
    Err(ErrorKind::InvalidAlgorithm.into())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the library calls it with a reference")]
fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>, Error> {
    if ALGORITHMS.contains(&(*algorithm, key.family())) {
        Ok(Box::new(RingVerifier { algorithm: *algorithm, key: key.clone() }))
    } else {
        Err(ErrorKind::InvalidAlgorithm.into())
    }
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        match self.algorithm {
            Algorithm::RS256 => self.verify_rsa(&RSA_PKCS1_2048_8192_SHA256, message, signature),
            Algorithm::PS256 => self.verify_rsa(&RSA_PSS_2048_8192_SHA256, message, signature),
            Algorithm::ES256 => self.verify_curve(&ECDSA_P256_SHA256_FIXED, message, signature),
            Algorithm::EdDSA => self.verify_curve(&ED25519, message, signature),
            _ => Err(signature::Error::new()),
        }
    }
}

impl RingVerifier {
    fn verify_rsa(&self, parameters: &'static RsaParameters, message: &[u8], signature: &[u8]) -> Result<(), signature::Error> {
        let DecodingKeyKind::RsaModulusExponent { n, e } = self.key.kind() else { return Err(signature::Error::new()) };
        let key = RsaPublicKeyComponents { n: strip_zeros(n), e: strip_zeros(e) };
        key.verify(parameters, message, signature).map_err(|_| signature::Error::new())
    }

    fn verify_curve(
        &self,
        algorithm: &'static dyn VerificationAlgorithm,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), signature::Error> {
        let key = self.key.try_get_as_bytes().map_err(|_| signature::Error::new())?;
        UnparsedPublicKey::new(algorithm, key).verify(message, signature).map_err(|_| signature::Error::new())
    }
}

/// Removes leading zeros, which `ring` refuses and some issuers write.
fn strip_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    number.get(zeros..).unwrap_or(number)
}
