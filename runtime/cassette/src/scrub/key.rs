//! The secret key with which replacements are made.

use std::fmt;
use std::sync::Arc;

use ptc_catalog::{Catalog, EnvPart, InheritEnv, RESERVED_PREFIX, Transport};
use ring::hmac;
use zeroize::Zeroizing;

/// The text before the hash of a replacement. Counters begin at 1, so that no counted replacement begins with it.
const PREFIX: &str = "scrubbed-0";
/// Bytes of the hash in a replacement. Among a million texts, the probability that two of 64 bits are equal is 3 in 100 million
/// (n²/2⁶⁵). A shorter HMAC does not help to guess the key (RFC 2104, section 5).
const HASH_BYTES: usize = 8;
/// The numbers that replace others have 16 digits, and every reader of JSON has them exactly (RFC 8259, section 6). Among a hundred
/// thousand numbers, the probability that two replacements are equal is 6 in ten million.
const NUMBERS: std::ops::Range<u64> = 1_000_000_000_000_000..(1 << 53);
/// Minimum length of a key in bytes, as for the other keys of a server. Sixteen random bytes have this length in hexadecimal. A key that
/// can be guessed lets others test guesses of the replaced texts.
const MIN_KEY_BYTES: usize = 32;

/// A secret key. Equal texts get equal replacements in all recordings with the same key. A person without the key cannot test
/// whether a replacement is that of a certain text. The `Debug` output does not contain it, and it is overwritten when the last copy is dropped.
#[derive(Clone)]
pub struct ScrubKey(Arc<Zeroizing<Vec<u8>>>);

/// Why there is no key. No variant has the name of the variable, since a user may have written the key in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyError {
    /// The variable is not set, or empty.
    Unset,
    /// The key is too short, or has other characters than printable ASCII.
    Invalid,
    /// The child process of this upstream inherits the variable, and could send the key.
    Inherited(String),
    /// There are no rules.
    NoRules,
}

impl ScrubKey {
    /// Reads the key from a variable of the environment.
    ///
    /// # Errors
    ///
    /// The variable has no valid key, or an upstream of the catalog inherits it.
    pub fn from_env(variable: &str, catalog: &Catalog) -> Result<ScrubKey, KeyError> {
        let bytes = std::env::var_os(variable).filter(|key| !key.is_empty()).ok_or(KeyError::Unset)?.into_encoded_bytes();
        let key = ScrubKey::new(Zeroizing::new(bytes))?;
        let inherits = |transport: &Transport| match transport {
            Transport::McpStdio(stdio) => {
                let is_inherited = match stdio.inherit_env {
                    InheritEnv::Base => false,
                    InheritEnv::Names(names) => names.contains(&variable),
                    InheritEnv::All => true,
                };
                let is_part = |part: &EnvPart| matches!(part, EnvPart::Var(name) if *name == variable);
                is_inherited && !variable.starts_with(RESERVED_PREFIX)
                    || stdio.env.iter().any(|(_, parts)| parts.iter().any(is_part))
            }
            _ => false,
        };
        match catalog.upstreams.iter().find(|upstream| inherits(&upstream.transport)) {
            Some(upstream) => Err(KeyError::Inherited(upstream.name.to_owned())),
            None => Ok(key),
        }
    }

    /// Creates a key of at least 32 printable ASCII characters without spaces.
    ///
    /// # Errors
    ///
    /// [`KeyError::Invalid`] for another text.
    pub fn new(key: Zeroizing<Vec<u8>>) -> Result<ScrubKey, KeyError> {
        let is_valid = key.len() >= MIN_KEY_BYTES && key.iter().all(u8::is_ascii_graphic);
        if is_valid { Ok(ScrubKey(Arc::new(key))) } else { Err(KeyError::Invalid) }
    }

    /// Returns the replacement of a text: [`PREFIX`] and a letter from `k` to `z` for every four bits. A rule for digits, capital letters
    /// or hexadecimal texts does not match such a replacement.
    pub(super) fn text(&self, text: &str) -> String {
        let mut replacement = PREFIX.to_owned();
        for byte in self.hash(b"ptc-compile scrub text\0", text).to_be_bytes() {
            replacement.extend([byte >> 4, byte & 15].map(|bits| char::from(b'k' + bits)));
        }
        replacement
    }

    /// Returns the replacement of a number.
    pub(super) fn number(&self, number: &str) -> String {
        let hash = self.hash(b"ptc-compile scrub number\0", number);
        (NUMBERS.start + hash % (NUMBERS.end - NUMBERS.start)).to_string()
    }

    /// Returns the first bytes of the HMAC-SHA-256 of a value (RFC 2104). `kind` separates texts from numbers, and from other uses of
    /// the key.
    fn hash(&self, kind: &[u8], text: &str) -> u64 {
        // `ring` does not overwrite its keys, so that none is kept.
        let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, &self.0));
        context.update(kind);
        context.update(text.as_bytes());
        context.sign().as_ref().iter().take(HASH_BYTES).fold(0, |hash, byte| hash << 8 | u64::from(*byte))
    }
}

/// Whether a text is a replacement that was made with a key.
pub(super) fn is_replacement(text: &str) -> bool {
    text.strip_prefix(PREFIX)
        .is_some_and(|hash| hash.len() == 2 * HASH_BYTES && hash.bytes().all(|byte| matches!(byte, b'k'..=b'z')))
}

impl fmt::Debug for ScrubKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ScrubKey(…)")
    }
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("--scrub-key-env: ")?;
        match self {
            KeyError::Unset => write!(
                f,
                "the variable with this name is not set, or empty; set it to a key of at least {MIN_KEY_BYTES} characters, such as the \
                 output of `openssl rand -hex 32`"
            ),
            KeyError::Invalid => write!(
                f,
                "expected a key of at least {MIN_KEY_BYTES} printable ASCII characters without spaces in this variable, such as the \
                 output of `openssl rand -hex 32`, found another text"
            ),
            KeyError::Inherited(upstream) => write!(
                f,
                "the process of the upstream `{upstream}` gets this variable, and could send the key; choose a name that begins with \
                 {RESERVED_PREFIX}, which no process inherits"
            ),
            KeyError::NoRules => f.write_str("the key makes the replacements of rules; give --scrub or --scrub-pattern"),
        }
    }
}

impl std::error::Error for KeyError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Result<ScrubKey, KeyError> {
        ScrubKey::new(Zeroizing::new(text.as_bytes().to_vec()))
    }

    /// The values that `openssl dgst -sha256 -hmac KEY` gives for the texts.
    #[test]
    fn replacements_are_those_of_hmac_sha_256() {
        let key = key("not-a-secret-0123456789-abcdefgh").expect("a key");
        assert_eq!(key.text("ann"), "scrubbed-0zplzytysumxqnkkr");
        assert_eq!(key.number("7"), "6308441334664626");
        assert_ne!(key.text("7"), key.text("8"));
        assert!(is_replacement(&key.text("")) && NUMBERS.contains(&key.number("").parse().expect("a number")));
        assert!(!is_replacement("scrubbed-1") && !is_replacement("scrubbed-0ann"));
    }

    #[test]
    fn replacements_depend_on_the_key() {
        let [one, other] = ["1", "2"].map(|last| key(&("k".repeat(40) + last)).expect("a key"));
        assert!(one.text("ann") != other.text("ann") && one.number("7") != other.number("7"));
    }

    #[test]
    fn short_keys_are_refused_and_no_output_has_the_key() {
        for wrong in ["", "short", &"k".repeat(31), &" ".repeat(40), &"é".repeat(40)] {
            let error = key(wrong).expect_err("it is not a key");
            assert_eq!(error, KeyError::Invalid, "{wrong}");
            assert!(wrong.is_empty() || !error.to_string().contains(wrong), "{error}");
        }
        assert_eq!(format!("{:?}", key(&"k".repeat(32)).expect("a key")), "ScrubKey(…)");
    }
}
