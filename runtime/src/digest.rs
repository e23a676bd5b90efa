//! SHA-256 and its textual forms.

use sha2::{Digest, Sha256};

/// Returns the SHA-256 digest.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Formats bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |text, byte| text + &format!("{byte:02x}"))
}

/// Returns the digest that replaces the name of an owner in log lines and traces. Access to traces depends on it, so that it is long
/// enough that no second owner with the same digest can be found.
pub fn owner_hash(id: &str) -> String {
    let digest = sha256(id.as_bytes());
    hex(digest.get(..16).unwrap_or(&digest))
}

/// Returns a short digest that replaces an id in log lines and traces. It distinguishes ids, but cannot be used in their place.
pub fn short(id: &str) -> String {
    let digest = sha256(id.as_bytes());
    hex(digest.get(..6).unwrap_or(&digest))
}
