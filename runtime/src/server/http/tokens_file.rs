//! The file of `--http-tokens-file`: the digests of the tokens of several owners.
//!
//! ```text
//! # owner   SHA-256 of the token
//! alice     9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
//! alice     60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752
//! ```

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::Path;
use std::sync::Arc;

use super::auth::is_same;
use crate::digest::sha256;
use crate::server::identity::Identity;

/// Maximum number of tokens. Each request with a token is compared with all of them.
const MAX_TOKENS: usize = 1000;
/// Maximum size of the file in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Maximum length of an owner's name in bytes.
const MAX_NAME_BYTES: usize = 128;

/// The tokens of a file.
#[derive(Debug)]
pub(super) struct Tokens(Vec<([u8; 32], Arc<Identity>)>);

impl Tokens {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// Returns a sentence with the path, the line and what is expected there. It contains no part of the file other than names of
    /// owners, since a token may have been written instead of its digest.
    pub(super) fn read(path: &Path) -> Result<Tokens, String> {
        let place = path.display();
        let mut text = String::new();
        let read = File::open(path).and_then(|file| {
            // A pipe or device may never end.
            if file.metadata()?.is_file() {
                file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)
            } else {
                Err(ErrorKind::InvalidInput.into())
            }
        });
        read.map_err(|why| format!("{place}: expected a readable file with text: {why}"))?;
        if text.len() as u64 > MAX_FILE_BYTES {
            return Err(format!("{place}: expected at most {MAX_FILE_BYTES} bytes"));
        }
        Tokens::parse(&text).map_err(|why| format!("{place}: {why}"))
    }

    fn parse(text: &str) -> Result<Tokens, String> {
        let mut tokens: Vec<([u8; 32], Arc<Identity>)> = Vec::new();
        let mut names: Vec<(String, usize)> = Vec::new();
        for (number, line) in text.lines().enumerate().map(|(index, line)| (index + 1, line.trim())) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            let [name, digest] = words[..] else {
                return Err(format!(
                    "line {number}: expected the name of an owner and the SHA-256 of a token, got {} words",
                    words.len()
                ));
            };
            if name.len() > MAX_NAME_BYTES || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(format!("line {number}: expected a name of at most {MAX_NAME_BYTES} printable ASCII characters"));
            }
            let digest = digest_of_hex(digest).ok_or_else(|| {
                format!(
                    "line {number}: expected 64 hexadecimal digits after the name; `printf %s \"$TOKEN\" | sha256sum` prints them"
                )
            })?;
            if let Some(earlier) = tokens.iter().position(|(known, _)| *known == digest) {
                let line = names.get(earlier).map_or(0, |(_, line)| *line);
                return Err(format!("line {number}: line {line} has the same token; give each owner one of its own"));
            }
            if tokens.len() == MAX_TOKENS {
                return Err(format!("line {number}: expected at most {MAX_TOKENS} tokens"));
            }
            let known = names.iter().position(|(known, _)| known == name).and_then(|at| tokens.get(at));
            let identity = known.map_or_else(|| Identity::of_owner(&format!("name:{name}")), |(_, known)| Arc::clone(known));
            names.push((name.to_owned(), number));
            tokens.push((digest, identity));
        }
        // A file is empty while it is written in place, which must not lock all clients out.
        if tokens.is_empty() {
            Err("expected at least one line with the name of an owner and the SHA-256 of a token".into())
        } else {
            Ok(Tokens(tokens))
        }
    }

    /// Returns the identity of a token. The time that this takes does not depend on which token it is.
    pub(super) fn find(&self, token: &[u8]) -> Option<&Arc<Identity>> {
        let digest = sha256(token);
        self.0.iter().fold(None, |found, (known, identity)| if is_same(known, &digest) { Some(identity) } else { found })
    }

    /// Returns the number of tokens.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }
}

fn digest_of_hex(text: &str) -> Option<[u8; 32]> {
    let digits = text.bytes().map(|digit| char::from(digit).to_digit(16)).collect::<Option<Vec<u32>>>()?;
    let bytes: Vec<u8> = digits.chunks(2).filter_map(|pair| u8::try_from(pair.first()? * 16 + pair.get(1)?).ok()).collect();
    (digits.len() == 64).then(|| bytes.try_into().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::hex;

    #[test]
    fn tokens_of_a_file_identify_their_owners() {
        let digest = |token: &str| hex(&sha256(token.as_bytes()));
        let text = format!("# owners\n\nalice {}\n bob\t{} \nalice {}\n", digest("a1"), digest("b").to_uppercase(), digest("a2"));
        let tokens = Tokens::parse(&text).expect("three tokens");
        let owner = |token: &str| tokens.find(token.as_bytes()).map(|identity| identity.owner.id.to_string());
        assert_eq!(tokens.count(), 3);
        for (token, expected) in
            [("a1", Some("name:alice")), ("a2", Some("name:alice")), ("b", Some("name:bob")), ("c", None), ("", None)]
        {
            assert_eq!(owner(token).as_deref(), expected, "{token}");
        }
    }

    #[test]
    fn invalid_tokens_file_is_refused_without_its_content() {
        let digest = "ab".repeat(32);
        let many: String = (0..=MAX_TOKENS).fold(String::new(), |text, n| text + &format!("n {n:064x}\n"));
        for (text, part) in [
            ("", "at least one line"),
            ("# nothing\n", "at least one line"),
            ("alice", "line 1: expected the name of an owner and the SHA-256 of a token, got 1 words"),
            (&format!("alice {digest} x"), "got 3 words"),
            ("\nalice not-a-digest-but-a-token-0123456789abcdef", "line 2: expected 64 hexadecimal digits"),
            (&format!("alice {digest}00"), "64 hexadecimal digits"),
            (&format!("a {digest}\nb {digest}"), "line 2: line 1 has the same token"),
            (&format!("é {digest}"), "printable ASCII"),
            (&format!("{} {digest}", "n".repeat(129)), "at most 128"),
            (&many, "line 1001: expected at most 1000 tokens"),
        ] {
            let why = Tokens::parse(text).expect_err(part);
            assert!(why.contains(part) && !why.contains("not-a-digest"), "{why}");
        }
    }
}
