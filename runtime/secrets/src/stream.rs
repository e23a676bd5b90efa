//! Redaction of a text that arrives in pieces.

use super::Redactor;

/// Redacts a text whose pieces may end within a secret. A suffix that may be the start of a secret is held back until more text
/// arrives.
pub struct StreamRedactor {
    redactor: Redactor,
    held: Vec<u8>,
}

impl StreamRedactor {
    /// Creates a redactor for one stream.
    pub fn new(redactor: Redactor) -> StreamRedactor {
        StreamRedactor { redactor, held: Vec::new() }
    }

    /// Adds a piece. Returns the redacted text that is decided so far.
    pub fn feed(&mut self, piece: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(piece);
        let decided = self.redactor.decided(&self.held);
        let rest = self.held.split_off(decided);
        self.redactor.redact_plain(std::mem::replace(&mut self.held, rest))
    }

    /// Returns the redacted rest of the text.
    pub fn finish(&mut self) -> Vec<u8> {
        self.redactor.redact_plain(std::mem::take(&mut self.held))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_is_redacted_at_any_chunk_boundary() {
        let redactor = Redactor::new(["s3cr3t-value", "other-s3cr3t"]);
        let text = "a s3cr3t-value b other-s3cr3t-value s3cr3t-valu c s3cr3t-value";
        let whole = redactor.redact_str(text).into_owned();
        for step in 1..text.len() {
            let mut stream = StreamRedactor::new(redactor.clone());
            let mut clean = Vec::new();
            for piece in text.as_bytes().chunks(step) {
                clean.extend(stream.feed(piece));
            }
            clean.extend(stream.finish());
            assert_eq!(String::from_utf8(clean).unwrap(), whole, "pieces of {step}");
        }
    }

    #[test]
    fn text_without_secrets_is_not_buffered() {
        let mut stream = StreamRedactor::new(Redactor::new(["s3cr3t-value"]));
        assert_eq!(stream.feed(b"plain text\n"), b"plain text\n");
        assert_eq!(stream.feed(b"and s3cr"), b"and ");
        assert_eq!(stream.feed(b"eam\n"), b"s3cream\n");
        assert_eq!(StreamRedactor::new(Redactor::none()).feed(b"s3cr"), b"s3cr");
    }
}
