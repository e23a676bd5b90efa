//! SHA-256 digests as the lock file has them: `sha256:` and lower-case hex.

use std::fmt::{self, Write};

use sha2::{Digest, Sha256};

use super::canonical;
use crate::tree::Node;

/// Returns the digest of bytes.
pub fn sha256(bytes: &[u8]) -> String {
    hex(Sha256::new_with_prefix(bytes))
}

/// Returns the digest of the canonical text of a node, without making that text.
pub fn sha256_of_node(node: &Node) -> String {
    let mut hasher = Hasher { hash: Sha256::new(), pending: String::with_capacity(Hasher::CHUNK) };
    // Hashing cannot fail.
    let _ = canonical::write(node, &mut hasher);
    hasher.flush();
    hex(hasher.hash)
}

fn hex(hash: Sha256) -> String {
    let mut text = String::with_capacity(71);
    text.push_str("sha256:");
    for byte in hash.finalize() {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Hashes what is written to it, in chunks: one update of the hash costs more than most parts of a text have bytes.
struct Hasher {
    hash: Sha256,
    pending: String,
}

impl Hasher {
    const CHUNK: usize = 4096;

    fn flush(&mut self) {
        self.hash.update(self.pending.as_bytes());
        self.pending.clear();
    }
}

impl Write for Hasher {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.pending.len() + text.len() > Hasher::CHUNK {
            self.flush();
        }
        if text.len() > Hasher::CHUNK {
            self.hash.update(text.as_bytes());
        } else {
            self.pending.push_str(text);
        }
        Ok(())
    }

    fn write_char(&mut self, c: char) -> fmt::Result {
        if self.pending.len() + c.len_utf8() > Hasher::CHUNK {
            self.flush();
        }
        self.pending.push(c);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::Diagnostics;
    use crate::json::Json;
    use crate::source::Sources;
    use crate::tree;

    #[test]
    fn digest_of_node_is_that_of_its_canonical_text() {
        for length in [0, 1, Hasher::CHUNK - 9, Hasher::CHUNK - 8, Hasher::CHUNK, 3 * Hasher::CHUNK] {
            let text = format!("{{\"b\": [\"{}\", 1.0], \"a\": \"{}\"}}", "x".repeat(length), "é".repeat(length / 2));
            let (mut sources, mut diagnostics) = (Sources::default(), Diagnostics::default());
            let file = sources.add("a.json", text);
            let node = tree::parse_document(&sources, file, &mut diagnostics).unwrap();
            assert_eq!(sha256_of_node(&node), sha256(Json::from(&node).canonical().as_bytes()), "{length}");
        }
    }
}
