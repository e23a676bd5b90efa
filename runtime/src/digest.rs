//! SHA-256, in the forms in which it is shown.

use sha2::{Digest, Sha256};

/// The digest itself.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |text, byte| text + &format!("{byte:02x}"))
}

/// What stands for an id in log lines and traces: enough to tell two apart, nothing to use.
pub fn short(id: &str) -> String {
    let digest = sha256(id.as_bytes());
    hex(digest.get(..6).unwrap_or(&digest))
}
