//! Numbers texts: each different text gets the next number.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

/// The texts come from upstreams, whose tools a config grants, so that a fixed seed is enough.
const HASHER: FixedState = FixedState::with_seed(0);

/// Different texts in the order of their numbers, in one buffer. A map of strings would allocate each of them.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    bytes: Vec<u8>,
    /// The end of each text in `bytes`.
    ends: Vec<u32>,
    numbers: HashTable<u32>,
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
        let Texts { bytes, ends, numbers } = self;
        let hash = HASHER.hash_one(new);
        let entry =
            numbers.entry(hash, |number| text(bytes, ends, *number) == new, |number| HASHER.hash_one(text(bytes, ends, *number)));
        let number = *entry.or_insert(ends.len() as u32).get();
        if number as usize == ends.len() {
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
