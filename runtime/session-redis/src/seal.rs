//! Seals the data of sessions before it leaves the process, so that the store can neither read nor change it unnoticed.
//!
//! Authenticated encryption with AES-256-GCM (RFC 5116). HKDF-SHA256 (RFC 5869) derives a key for each session from the server's
//! secret, so that random nonces of 96 bits suffice. The associated data are the version of this format, the kind of the data, the
//! deployment, the owner and the session: data that was copied to another session does not open.
//!
//! ```text
//! "ptc-sealed" version | id of the key, 8 bytes | nonce, 12 bytes | ciphertext | tag, 16 bytes
//! ```
//!
//! An earlier state of the same session opens too. To detect this, something outside of the store would have to remember the latest
//! one.

use std::fmt;

use ptc_runtime::secrets::random;
use ptc_runtime::settings::SessionKeys;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, MAX_TAG_LEN, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};

/// The first bytes of sealed data: a name and the version of the format.
const HEAD: &[u8] = b"ptc-sealed\x01";
const KEY_ID_LEN: usize = 8;
const CIPHERTEXT_START: usize = HEAD.len() + KEY_ID_LEN + NONCE_LEN;

/// Bytes that sealing adds.
pub(crate) const OVERHEAD: usize = CIPHERTEXT_START + MAX_TAG_LEN;

const SALT: &[u8] = b"ptc-runner session store";
const KEY_ID_INFO: &[u8] = b"key id";
const SESSION_INFO: &[u8] = b"session";

/// What sealed data is. It is part of the associated data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DataKind {
    State,
    Title,
}

/// The session to which data belongs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionRef<'a> {
    pub(crate) owner: &'a str,
    pub(crate) id: &'a str,
}

/// Why data does not open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenError {
    /// It does not have the format. Earlier versions of the server did not seal.
    NotSealed,
    /// It was sealed with a key that this server does not have.
    OtherKey,
    /// It was changed, or belongs to another session.
    Altered,
}

/// Why data cannot be sealed.
#[derive(Debug)]
pub(crate) enum SealError {
    Random(std::io::Error),
    Cipher,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OpenError::NotSealed => "it is not sealed in a format of this version of the server",
            OpenError::OtherKey => "it was sealed with another key",
            OpenError::Altered => "it was changed in the store or belongs to another session",
        })
    }
}

impl fmt::Display for SealError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SealError::Random(why) => write!(f, "no random bytes: {why}"),
            SealError::Cipher => f.write_str("encryption failed"),
        }
    }
}

/// Seals and opens data with the keys of a deployment.
pub(crate) struct Sealer {
    deployment: String,
    /// The first one seals.
    keys: Vec<Key>,
}

struct Key {
    id: [u8; KEY_ID_LEN],
    secret: Prk,
}

/// A number of derived bytes that are not a key.
struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

impl Key {
    fn derive(secret: &str) -> Option<Key> {
        let secret = Salt::new(HKDF_SHA256, SALT).extract(secret.as_bytes());
        let mut id = [0; KEY_ID_LEN];
        secret.expand(&[KEY_ID_INFO], Length(KEY_ID_LEN)).and_then(|bytes| bytes.fill(&mut id)).ok()?;
        Some(Key { id, secret })
    }

    /// Derives the key of a session. `context` names it.
    fn of_session(&self, context: &[u8]) -> Option<LessSafeKey> {
        let info = [SESSION_INFO, context];
        let key = self.secret.expand(&info, &AES_256_GCM).ok()?;
        Some(LessSafeKey::new(UnboundKey::from(key)))
    }
}

impl Sealer {
    pub(crate) fn new(deployment: &str, keys: &SessionKeys) -> Sealer {
        Sealer { deployment: deployment.to_owned(), keys: keys.iter().filter_map(Key::derive).collect() }
    }

    pub(crate) fn seal(&self, kind: DataKind, session: SessionRef<'_>, data: &[u8]) -> Result<Vec<u8>, SealError> {
        let context = self.context(session);
        let key = self.keys.first().ok_or(SealError::Cipher)?;
        let mut nonce = [0; NONCE_LEN];
        random::fill(&mut nonce).map_err(SealError::Random)?;
        let mut sealed = Vec::with_capacity(data.len() + OVERHEAD);
        for part in [HEAD, &key.id, &nonce, data] {
            sealed.extend_from_slice(part);
        }
        let (_, content) = sealed.split_at_mut_checked(CIPHERTEXT_START).ok_or(SealError::Cipher)?;
        let session_key = key.of_session(&context).ok_or(SealError::Cipher)?;
        let associated = Aad::from(associated_data(kind, &context));
        let tag = session_key.seal_in_place_separate_tag(Nonce::assume_unique_for_key(nonce), associated, content);
        sealed.extend_from_slice(tag.map_err(|_| SealError::Cipher)?.as_ref());
        Ok(sealed)
    }

    /// Opens sealed data in place.
    pub(crate) fn open<'a>(&self, kind: DataKind, session: SessionRef<'_>, sealed: &'a mut [u8]) -> Result<&'a [u8], OpenError> {
        let rest = sealed.strip_prefix(HEAD).ok_or(OpenError::NotSealed)?;
        let (id, rest) = rest.split_first_chunk::<KEY_ID_LEN>().ok_or(OpenError::Altered)?;
        let nonce = *rest.first_chunk::<NONCE_LEN>().ok_or(OpenError::Altered)?;
        let key = self.keys.iter().find(|key| key.id == *id).ok_or(OpenError::OtherKey)?;
        let context = self.context(session);
        let session_key = key.of_session(&context).ok_or(OpenError::Altered)?;
        let associated = Aad::from(associated_data(kind, &context));
        let content = sealed.get_mut(CIPHERTEXT_START..).ok_or(OpenError::Altered)?;
        let opened = session_key.open_in_place(Nonce::assume_unique_for_key(nonce), associated, content);
        opened.map(|data| &*data).map_err(|_| OpenError::Altered)
    }

    /// Returns an unambiguous name of a session: each part with its length.
    fn context(&self, session: SessionRef<'_>) -> Vec<u8> {
        let mut context = Vec::new();
        for part in [&self.deployment, session.owner, session.id] {
            context.extend((part.len() as u64).to_le_bytes());
            context.extend(part.as_bytes());
        }
        context
    }
}

fn associated_data(kind: DataKind, context: &[u8]) -> Vec<u8> {
    [HEAD, &[kind as u8], context].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "an-old-secret-of-32-printable-bytes";
    const NEW: &str = "a-new-secret-of-32-printable-bytes!";
    const SESSION: SessionRef<'_> = SessionRef { owner: "token:1", id: "ptcs_1" };

    fn sealer(deployment: &str, keys: &[&str]) -> Sealer {
        Sealer::new(deployment, &SessionKeys::parse(&keys.join("\n")).expect("keys"))
    }

    #[test]
    fn data_is_decrypted_only_for_its_kind_deployment_owner_and_session() {
        let one = sealer("one", &[OLD]);
        let sealed = one.seal(DataKind::State, SESSION, b"state").expect("sealed");
        assert_eq!(sealed.len(), b"state".len() + OVERHEAD);
        assert!(!sealed.windows(5).any(|bytes| bytes == b"state"));
        let open = |sealer: &Sealer, kind, session| sealer.open(kind, session, &mut sealed.clone()).map(<[u8]>::to_vec);
        assert_eq!(open(&one, DataKind::State, SESSION), Ok(b"state".to_vec()));
        let other_owner = SessionRef { owner: "token:2", ..SESSION };
        let other_session = SessionRef { id: "ptcs_2", ..SESSION };
        let shifted = SessionRef { owner: "token:1p", id: "tcs_1" };
        for session in [other_owner, other_session, shifted] {
            assert_eq!(open(&one, DataKind::State, session), Err(OpenError::Altered), "{session:?}");
        }
        assert_eq!(open(&one, DataKind::Title, SESSION), Err(OpenError::Altered));
        assert_eq!(open(&sealer("two", &[OLD]), DataKind::State, SESSION), Err(OpenError::Altered));
        assert_eq!(open(&sealer("one", &[NEW]), DataKind::State, SESSION), Err(OpenError::OtherKey));
        assert_ne!(one.seal(DataKind::State, SESSION, b"state").expect("sealed"), sealed, "the nonce is fresh");
    }

    #[test]
    fn previous_key_decrypts_and_first_key_encrypts() {
        let before = sealer("one", &[OLD]).seal(DataKind::State, SESSION, b"state").expect("sealed");
        let both = sealer("one", &[NEW, OLD]);
        assert_eq!(both.open(DataKind::State, SESSION, &mut before.clone()), Ok(&b"state"[..]));
        let mut after = both.seal(DataKind::State, SESSION, b"state").expect("sealed");
        assert_eq!(sealer("one", &[OLD]).open(DataKind::State, SESSION, &mut after.clone()), Err(OpenError::OtherKey));
        assert_eq!(sealer("one", &[NEW]).open(DataKind::State, SESSION, &mut after), Ok(&b"state"[..]));
    }

    #[test]
    fn altered_data_is_not_decrypted() {
        let one = sealer("one", &[OLD]);
        let sealed = one.seal(DataKind::State, SESSION, b"state").expect("sealed");
        for bit in 0..sealed.len() * 8 {
            let mut altered = sealed.clone();
            if let Some(byte) = altered.get_mut(bit / 8) {
                *byte ^= 1 << (bit % 8);
            }
            assert!(one.open(DataKind::State, SESSION, &mut altered).is_err(), "bit {bit}");
        }
        for length in 0..sealed.len() {
            let mut short = sealed.clone();
            short.truncate(length);
            assert!(one.open(DataKind::State, SESSION, &mut short).is_err(), "{length} bytes");
        }
        for unsealed in [&b"ptc-image\x01..."[..], b"", b"ptc-sealed\x02"] {
            assert_eq!(one.open(DataKind::State, SESSION, &mut unsealed.to_vec()), Err(OpenError::NotSealed));
        }
    }
}
