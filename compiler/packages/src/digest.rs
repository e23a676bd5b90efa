//! SHA-256 digests in hexadecimal digits.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

/// Returns the digest of bytes, without a prefix.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
