//! Numbers texts: each different text gets the next number.

/// Different texts in the order of their numbers, in one buffer. A map of strings would allocate each of them.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    /// A hash table with linear probing. A slot is 0 or the number of a text plus one. The length is a power of two, and at least
    /// half of the slots are 0.
    slots: Vec<u32>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Key {
    first: u64,
    last: u64,
    bytes: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    key: Key,
    start: u32,
}

/// Maximum bytes of a text that its key identifies. Nearly all words are that short and are not compared byte by byte.
const SHORT: usize = 16;

impl Key {
    fn of(text: &[u8]) -> Key {
        let (first, last) = match (text.first_chunk(), text.last_chunk(), text.first_chunk(), text.last_chunk()) {
            (Some(first), Some(last), ..) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
            (.., Some(first), Some(last)) => (u32::from_le_bytes(*first).into(), u32::from_le_bytes(*last).into()),
            _ => (text.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)), 0),
        };
        let mut key = Key { first, last, bytes: text.len() as u32 };
        if text.len() > SHORT {
            for chunk in text.as_chunks().0 {
                key.first = key.hash() ^ u64::from_le_bytes(*chunk);
            }
        }
        key
    }

    fn hash(self) -> u64 {
        let a = self.first ^ 0x9e37_79b9_7f4a_7c15;
        let b = self.last.rotate_left(32) ^ u64::from(self.bytes) ^ 0xd1b5_4a32_d192_ed03;
        let product = u128::from(a) * u128::from(b);
        product as u64 ^ (product >> 64) as u64
    }
}

impl Texts {
    /// Returns the number of texts.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the text with this number.
    pub(crate) fn get(&self, number: u32) -> &[u8] {
        let Entry { key, start } = self.entries.get(number as usize).copied().unwrap_or_default();
        self.bytes.get(start as usize..(start + key.bytes) as usize).unwrap_or_default()
    }

    /// Returns the number of a text, which is a new one if the text is new.
    pub(crate) fn number(&mut self, text: &[u8]) -> u32 {
        if 2 * self.len() >= self.slots.len() {
            self.grow();
        }
        let key = Key::of(text);
        let mut at = self.first(key);
        while let Some(number) = self.slots.get(at).and_then(|slot| slot.checked_sub(1)) {
            let has_key = self.entries.get(number as usize).is_some_and(|entry| entry.key == key);
            if has_key && (text.len() <= SHORT || self.get(number) == text) {
                return number;
            }
            at = self.next(at);
        }
        self.entries.push(Entry { key, start: self.bytes.len() as u32 });
        self.bytes.extend_from_slice(text);
        self.take(at, self.len() as u32);
        self.len() as u32 - 1
    }

    /// Returns the first slot that is tried for a text.
    fn first(&self, key: Key) -> usize {
        (key.hash() >> 32) as usize & (self.slots.len() - 1)
    }

    /// Returns the slot that is tried after another.
    fn next(&self, at: usize) -> usize {
        (at + 1) & (self.slots.len() - 1)
    }

    fn take(&mut self, at: usize, by: u32) {
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = by;
        }
    }

    fn grow(&mut self) {
        self.slots = vec![0; (2 * self.slots.len()).max(64)];
        for number in 0..self.len() {
            let mut at = self.first(self.entries.get(number).map(|entry| entry.key).unwrap_or_default());
            while self.slots.get(at).is_some_and(|taken| *taken != 0) {
                at = self.next(at);
            }
            self.take(at, number as u32 + 1);
        }
    }
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
