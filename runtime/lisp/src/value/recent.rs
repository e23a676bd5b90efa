//! A cache of recently made texts, so that repeated texts share one allocation.

use super::Text;

/// A direct-mapped cache of texts that were seen twice. The slot is selected by a hash of some bytes of the text. A text that was
/// seen once is not stored: it would evict frequent ones.
pub(crate) struct Recent {
    slots: Vec<Slot>,
    /// Bits of a hash that do not select the slot.
    shift: u32,
}

#[derive(Clone, Default)]
struct Slot {
    hash: u64,
    text: Option<Text>,
}

/// Longest text that is cached, in bytes. Longer texts seldom repeat.
const MAX_LEN: usize = 40;

impl Recent {
    /// Makes a cache with about `texts` slots.
    pub(crate) fn with_room(texts: usize) -> Recent {
        let bits = texts.next_power_of_two().trailing_zeros().max(1);
        Recent { slots: vec![Slot::default(); 1 << bits], shift: 64 - bits }
    }

    /// Returns a text with the contents of `text`, from the cache if possible. `plain` must equal [`Text::plain`] of `text`.
    #[inline]
    pub(crate) fn get(&mut self, text: &str, plain: bool) -> Text {
        if text.len() > MAX_LEN {
            return Text::known(text, plain);
        }
        let hash = hash(text.as_bytes());
        let Some(slot) = self.slots.get_mut((hash >> self.shift) as usize) else { return Text::known(text, plain) };
        if slot.hash != hash {
            *slot = Slot { hash, text: None };
            return Text::known(text, plain);
        }
        match &slot.text {
            Some(known) if known.as_str() == text => known.clone(),
            _ => slot.text.insert(Text::known(text, plain)).clone(),
        }
    }
}

/// Hashes the length and up to 16 bytes: the first eight and the last eight.
#[inline]
fn hash(bytes: &[u8]) -> u64 {
    let (head, tail) = if let (Some(head), Some(tail)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        (u64::from_le_bytes(*head), u64::from_le_bytes(*tail))
    } else if let (Some(head), Some(tail)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        (u64::from(u32::from_le_bytes(*head)), u64::from(u32::from_le_bytes(*tail)))
    } else {
        let at = |index: usize| bytes.get(index).copied().map_or(0, u64::from);
        (at(0) | at(1) << 8 | at(2) << 16, 0)
    };
    let mixed = head ^ tail.rotate_left(29) ^ (bytes.len() as u64) << 56;
    // Two rounds, so that the upper bits depend on every byte.
    let mixed = mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93)
}

#[cfg(test)]
mod tests {
    use super::Recent;

    #[test]
    fn third_occurrence_of_a_text_is_shared() {
        let mut recent = Recent::with_room(64);
        let texts = ["", "a", "ab", "abc", "abcd", "abcdefg", "abcdefgh", "abcdefghijklmnop", "žluťoučký"];
        for text in texts {
            let [_, second, third] = [(); 3].map(|()| recent.get(text, text.is_ascii()));
            assert!(second.same(&third), "{text}");
            assert_eq!((third.as_str(), third.is_plain()), (text, text.is_ascii()));
        }
    }

    #[test]
    fn colliding_texts_are_distinguished() {
        // These two texts have equal lengths, heads and tails.
        let (one, two) = ("abcdefgh1abcdefgh", "abcdefgh2abcdefgh");
        let mut recent = Recent::with_room(64);
        for _ in 0..3 {
            assert_eq!(recent.get(one, true).as_str(), one);
            assert_eq!(recent.get(two, true).as_str(), two);
        }
    }
}
