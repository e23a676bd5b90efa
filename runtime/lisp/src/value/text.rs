//! The text of strings, keywords and symbols.

use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, OnceLock};

use compact_str::CompactString;
use unicode_segmentation::UnicodeSegmentation;

/// Immutable UTF-8 text, one pointer wide, cheap to clone. Positions count graphemes. In ASCII text these are bytes.
#[derive(Clone)]
pub struct Text(Arc<Inner>);

struct Inner {
    text: CompactString,
    /// The grapheme index of a long text that is not plain.
    places: Option<Box<Places>>,
    /// Whether every byte is below 128 and none is a carriage return (`"\r\n"` is one grapheme).
    plain: bool,
}

/// Length in bytes from which positions are looked up in an index instead of counted.
const MIN_INDEXED_LEN: usize = 512;
/// Graphemes from one indexed offset to the next.
const STRIDE: usize = 64;
/// Graphemes that are counted between two checks of the limits.
const CHECK_INTERVAL: usize = 4_096;

/// Grapheme offsets, computed lazily. A text whose positions are never requested pays one pointer.
#[derive(Default)]
struct Places(OnceLock<Starts>);

struct Starts {
    /// The byte offset of every [`STRIDE`]th grapheme.
    offsets: Box<[u32]>,
    /// Number of all graphemes.
    count: usize,
}

impl Starts {
    fn compute<E>(text: &str, mut each: impl FnMut(usize) -> Result<(), E>) -> Result<Starts, E> {
        let (mut offsets, mut count) = (Vec::new(), 0);
        for (at, _) in text.grapheme_indices(true) {
            if count % STRIDE == 0 {
                // Longer texts have no index.
                offsets.push(u32::try_from(at).unwrap_or(u32::MAX));
            }
            count += 1;
            if count % CHECK_INTERVAL == 0 {
                each(CHECK_INTERVAL)?;
            }
        }
        Ok(Starts { offsets: offsets.into(), count })
    }
}

impl Inner {
    fn new(text: CompactString, plain: bool) -> Arc<Inner> {
        Arc::new(Inner { places: places(&text, plain), text, plain })
    }
}

fn places(text: &str, plain: bool) -> Option<Box<Places>> {
    (!plain && (MIN_INDEXED_LEN..=u32::MAX as usize).contains(&text.len())).then(Box::default)
}

/// Whether each byte of `text` is a grapheme of its own.
fn is_plain(text: &str) -> bool {
    // The loop has no early exit, so that the compiler vectorizes it.
    text.bytes().fold(0, |odd, b| odd | (b & 0x80) | u8::from(b == b'\r')) == 0
}

impl Text {
    /// Makes a text with the contents of `text`.
    pub fn new(text: impl AsRef<str>) -> Self {
        let text = text.as_ref();
        Text(Inner::new(CompactString::from(text), is_plain(text)))
    }

    /// Whether a text with the contents of `text` would be [plain](Text::is_plain).
    pub(crate) fn plain(text: &str) -> bool {
        is_plain(text)
    }

    /// Like [`Text::new`], for callers that have already computed whether the text is [plain](Text::is_plain).
    #[inline]
    pub(crate) fn known(text: &str, plain: bool) -> Self {
        debug_assert_eq!(plain, is_plain(text));
        Text(Inner::new(CompactString::from(text), plain))
    }

    /// Returns the text with its ASCII letters in lower case.
    pub(crate) fn ascii_lowercase(&self) -> Self {
        let mut text = self.0.text.clone();
        text.as_mut_str().make_ascii_lowercase();
        Text(Inner::new(text, self.0.plain))
    }

    /// Makes a text that takes over a buffer.
    pub fn from_string(text: String) -> Self {
        let plain = is_plain(&text);
        Text(Inner::new(CompactString::from(text), plain))
    }

    /// Returns the contents.
    #[inline]
    pub fn as_str(&self) -> &str {
        self.0.text.as_str()
    }

    /// Whether the text has more than one owner.
    pub(crate) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// The address of the allocation.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Whether every grapheme is one byte, so that positions need no search.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.0.plain
    }

    /// Computes the grapheme index, so that positions are looked up from then on. `each` is called with the number of graphemes
    /// since its last call. Its error ends the computation.
    pub(crate) fn locate<E>(&self, each: impl FnMut(usize) -> Result<(), E>) -> Result<(), E> {
        if let Some(places) = &self.0.places
            && places.0.get().is_none()
        {
            let starts = Starts::compute(self.as_str(), each)?;
            // Another thread may have stored an index first. Both are equal.
            let _ = places.0.set(starts);
        }
        Ok(())
    }

    fn starts(&self) -> Option<&Starts> {
        let places = self.0.places.as_deref()?;
        Some(places.0.get_or_init(|| match Starts::compute(self.as_str(), |_| Ok::<(), Infallible>(())) {
            Ok(starts) => starts,
        }))
    }

    /// Number of graphemes.
    pub fn count(&self) -> usize {
        match self.starts() {
            _ if self.is_plain() => self.as_str().len(),
            Some(starts) => starts.count,
            None => self.as_str().graphemes(true).count(),
        }
    }

    /// The byte offset of grapheme `index`. If `index` is the number of graphemes, this is the length in bytes. `None` beyond
    /// that.
    pub fn offset(&self, index: usize) -> Option<usize> {
        let text = self.as_str();
        if self.is_plain() {
            return (index <= text.len()).then_some(index);
        }
        let (from, rest) = match self.starts() {
            Some(starts) if index == starts.count => return Some(text.len()),
            Some(starts) => (*starts.offsets.get(index / STRIDE)? as usize, index % STRIDE),
            None => (0, index),
        };
        // Segmentation that starts at a grapheme boundary finds the same later boundaries as one from the beginning.
        let tail = text.get(from..)?;
        let starts = tail.grapheme_indices(true).map(|(at, _)| from + at).chain(std::iter::once(text.len()));
        starts.into_iter().nth(rest)
    }

    /// The grapheme at `index`, or `None` past the end.
    pub fn grapheme(&self, index: usize) -> Option<&str> {
        let at = self.offset(index)?;
        if self.is_plain() { self.as_str().get(at..=at) } else { self.as_str().get(at..)?.graphemes(true).next() }
    }

    /// The number of graphemes before byte offset `at`.
    pub fn index_of_offset(&self, at: usize) -> usize {
        if self.is_plain() {
            return at;
        }
        let (from, before) = self.starts().map_or((0, 0), |starts| {
            let known = starts.offsets.partition_point(|start| (*start as usize) <= at).saturating_sub(1);
            (starts.offsets.get(known).map_or(0, |start| *start as usize), known * STRIDE)
        });
        let tail = self.as_str().get(from..).unwrap_or_default();
        before + tail.grapheme_indices(true).take_while(|(start, _)| from + start < at).count()
    }

    /// Iterates over the graphemes in order.
    pub fn graphemes(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.as_str().graphemes(true)
    }

    /// Appends `more`. The text is extended in place if it has a single owner.
    pub fn push_str(&mut self, more: &str) {
        let more_plain = is_plain(more);
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.text.push_str(more);
            inner.plain &= more_plain;
            match &mut inner.places {
                Some(known) => drop(known.0.take()),
                none => *none = places(&inner.text, inner.plain),
            }
        } else {
            let mut text = CompactString::with_capacity(self.as_str().len() + more.len());
            text.push_str(self.as_str());
            text.push_str(more);
            *self = Text(Inner::new(text, self.is_plain() && more_plain));
        }
    }

    /// Whether both are the same allocation.
    #[inline]
    pub fn same(&self, other: &Text) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl PartialEq for Text {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        if self.same(other) {
            return true;
        }
        crate::comparison_budget::charge_bytes(self.as_str().len().min(other.as_str().len()));
        self.as_str() == other.as_str()
    }
}

impl Eq for Text {}

impl std::hash::Hash for Text {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        // Hashes without the terminator of `str`. Where concatenated texts collide, equality distinguishes them.
        let text = self.as_str();
        crate::comparison_budget::charge_bytes(text.len());
        state.write(text.as_bytes());
    }
}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text {
    #[inline]
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        if self.same(other) {
            return std::cmp::Ordering::Equal;
        }
        crate::comparison_budget::charge_bytes(self.as_str().len().min(other.as_str().len()));
        self.as_str().cmp(other.as_str())
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Text::new(text)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Text::from_string(text)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grapheme_offsets_equal_a_count_from_the_start() {
        // Clusters of many shapes, so that a stride ends within flags, families and marks as well as between letters.
        for part in ["né", "🇩🇪🇫🇷", "👩‍👩‍👧x", "e\u{301}\u{302}", "\r\n", "한국a", "क्षि ", "日本"]
        {
            for times in [1, 40, 700] {
                let text = Text::from_string(format!("x{}", part.repeat(times)));
                let starts: Vec<usize> = text.as_str().grapheme_indices(true).map(|(at, _)| at).collect();
                assert_eq!(text.count(), starts.len(), "{part} {times}");
                for (index, at) in starts.iter().copied().chain([text.as_str().len()]).enumerate() {
                    assert_eq!(text.offset(index), Some(at), "{part} {times} {index}");
                    assert_eq!(text.index_of_offset(at), index, "{part} {times} {at}");
                    let one = text.as_str().get(at..).and_then(|tail| tail.graphemes(true).next());
                    assert_eq!(text.grapheme(index), one, "{part} {times} {index}");
                }
                assert_eq!(text.offset(starts.len() + 1), None);
                assert_eq!(text.grapheme(starts.len() + STRIDE), None);
            }
        }
    }

    #[test]
    fn grapheme_offsets_cover_appended_text() {
        let mut text = Text::new("né".repeat(MIN_INDEXED_LEN));
        assert_eq!(text.count(), 2 * MIN_INDEXED_LEN);
        text.push_str("\u{301}abc");
        assert_eq!((text.count(), text.grapheme(2 * MIN_INDEXED_LEN + 2)), (2 * MIN_INDEXED_LEN + 3, Some("c")));
        let mut plain = Text::new("a".repeat(MIN_INDEXED_LEN));
        plain.push_str("é");
        assert_eq!((plain.count(), plain.grapheme(MIN_INDEXED_LEN)), (MIN_INDEXED_LEN + 1, Some("é")));
    }

    #[test]
    fn grapheme_indexing_can_be_interrupted() {
        let text = Text::new("né".repeat(100_000));
        let mut heard = 0;
        let ended = text.locate(|graphemes| {
            heard += graphemes;
            if heard > 10_000 { Err(()) } else { Ok(()) }
        });
        assert_eq!((ended, heard < 20_000), (Err(()), true));
        assert_eq!(text.count(), 200_000);
    }
}
