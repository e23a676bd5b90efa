//! Numbers texts: each different text gets the next number.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

/// The texts come from upstreams, whose tools a config grants, so that a fixed seed is enough.
const HASHER: FixedState = FixedState::with_seed(0);

/// A text of at most 16 bytes in two numbers, so that it is hashed and compared without a look at the buffer. Almost all words of a
/// catalog are as short.
#[derive(Debug, Clone, Copy)]
struct Short {
    /// The first and the last bytes. They overlap if the text has fewer than 16 bytes, so that they identify it together with its
    /// length.
    first: u64,
    last: u64,
    length: u8,
    number: u32,
}

impl Short {
    fn new(text: &[u8], number: u32) -> Option<Short> {
        let (first, last) = match text {
            [] => (0, 0),
            [one] => (u64::from(*one), 0),
            [one, two] => (u64::from(u16::from_le_bytes([*one, *two])), 0),
            [one, two, three] => (u64::from(u32::from_le_bytes([*one, *two, *three, 0])), 0),
            _ if text.len() < 8 => {
                (u64::from(u32::from_le_bytes(*text.first_chunk()?)), u64::from(u32::from_le_bytes(*text.last_chunk()?)))
            }
            _ if text.len() <= 16 => (u64::from_le_bytes(*text.first_chunk()?), u64::from_le_bytes(*text.last_chunk()?)),
            _ => return None,
        };
        Some(Short { first, last, length: text.len() as u8, number })
    }

    fn hash(&self) -> u64 {
        HASHER.hash_one((self.first, self.last ^ u64::from(self.length)))
    }

    fn is_same_text(&self, other: &Short) -> bool {
        (self.first, self.last, self.length) == (other.first, other.last, other.length)
    }
}

/// Different texts in the order of their numbers, in one buffer. A map of strings would allocate each of them.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    bytes: Vec<u8>,
    /// The end of each text in `bytes`.
    ends: Vec<u32>,
    /// The numbers of short texts, and those of longer ones.
    short: HashTable<Short>,
    long: HashTable<u32>,
}

impl Texts {
    /// Returns the number of texts.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the text with this number.
    pub(crate) fn get(&self, number: u32) -> &[u8] {
        text(&self.bytes, &self.ends, number)
    }

    /// Returns the number of a text, which is a new one if the text is new.
    pub(crate) fn number(&mut self, new: &[u8]) -> u32 {
        let Texts { bytes, ends, short, long } = self;
        let next = ends.len() as u32;
        let number = if let Some(text) = Short::new(new, next) {
            short.entry(text.hash(), |other| other.is_same_text(&text), Short::hash).or_insert(text).get().number
        } else {
            let hash = HASHER.hash_one(new);
            let is_new = |number: &u32| text(bytes, ends, *number) == new;
            *long.entry(hash, is_new, |number| HASHER.hash_one(text(bytes, ends, *number))).or_insert(next).get()
        };
        if number == next {
            bytes.extend_from_slice(new);
            ends.push(bytes.len() as u32);
        }
        number
    }
}

fn text<'a>(bytes: &'a [u8], ends: &[u32], number: u32) -> &'a [u8] {
    let start = number.checked_sub(1).and_then(|before| ends.get(before as usize)).copied().unwrap_or_default();
    let end = ends.get(number as usize).copied().unwrap_or_default();
    bytes.get(start as usize..end as usize).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::Texts;

    #[test]
    fn equal_texts_have_one_number() {
        let mut texts = Texts::default();
        for round in 0..2 {
            for expected in 0..1_000_u32 {
                assert_eq!(texts.number(format!("text {expected}").as_bytes()), expected, "{round}");
            }
        }
        assert_eq!(texts.number(b""), 1_000);
        assert_eq!(
            (texts.len(), texts.get(0), texts.get(999), texts.get(1_000)),
            (1_001, &b"text 0"[..], &b"text 999"[..], &b""[..])
        );
    }
}
