//! The text of strings, keywords and symbols.

use std::fmt;
use std::sync::Arc;

use compact_str::CompactString;
use unicode_segmentation::UnicodeSegmentation;

/// Immutable UTF-8 text, one pointer wide, cheap to clone. Positions are graphemes; ASCII text counts them in bytes.
#[derive(Clone)]
pub struct Text(Arc<Inner>);

struct Inner {
    text: CompactString,
    /// Every byte is below 128 and none is a carriage return ("\r\n" is one grapheme).
    plain: bool,
}

/// Whether each byte of `text` is a grapheme of its own.
fn is_plain(text: &str) -> bool {
    // Without a way out in the middle, so that it is done many bytes at a time.
    text.bytes().fold(0, |odd, b| odd | (b & 0x80) | u8::from(b == b'\r')) == 0
}

impl Text {
    /// Text with the contents of `text`.
    pub fn new(text: impl AsRef<str>) -> Self {
        let text = text.as_ref();
        Text(Arc::new(Inner { plain: is_plain(text), text: CompactString::from(text) }))
    }

    /// Whether a text with the contents of `text` is [plain](Text::is_plain).
    pub(crate) fn plain(text: &str) -> bool {
        is_plain(text)
    }

    /// [`Text::new`] where it is known already whether the text is [plain](Text::is_plain).
    #[inline]
    pub(crate) fn known(text: &str, plain: bool) -> Self {
        debug_assert_eq!(plain, is_plain(text));
        Text(Arc::new(Inner { plain, text: CompactString::from(text) }))
    }

    /// The same text with the letters of ASCII in lower case.
    pub(crate) fn ascii_lowercase(&self) -> Self {
        let mut text = self.0.text.clone();
        text.as_mut_str().make_ascii_lowercase();
        Text(Arc::new(Inner { plain: self.0.plain, text }))
    }

    /// Text that takes over a buffer.
    pub fn from_string(text: String) -> Self {
        Text(Arc::new(Inner { plain: is_plain(&text), text: CompactString::from(text) }))
    }

    /// The contents.
    #[inline]
    pub fn as_str(&self) -> &str {
        self.0.text.as_str()
    }

    /// Where it lies in memory.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Whether graphemes are bytes, so that positions need no search.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.0.plain
    }

    /// Number of graphemes.
    pub fn count(&self) -> usize {
        if self.is_plain() { self.as_str().len() } else { self.as_str().graphemes(true).count() }
    }

    /// The byte offset of grapheme `index`; the length in bytes when `index` is the number of graphemes; else `None`.
    pub fn offset(&self, index: usize) -> Option<usize> {
        let text = self.as_str();
        if self.is_plain() {
            return (index <= text.len()).then_some(index);
        }
        let mut starts = text.grapheme_indices(true).map(|(at, _)| at).chain(std::iter::once(text.len()));
        starts.nth(index)
    }

    /// The number of graphemes before byte offset `at`.
    pub fn index_of_offset(&self, at: usize) -> usize {
        if self.is_plain() { at } else { self.as_str().grapheme_indices(true).take_while(|(start, _)| *start < at).count() }
    }

    /// The graphemes in order.
    pub fn graphemes(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.as_str().graphemes(true)
    }

    /// Appends in place where nobody else holds the text.
    pub fn push_str(&mut self, more: &str) {
        let more_plain = is_plain(more);
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.text.push_str(more);
            inner.plain &= more_plain;
        } else {
            let mut text = CompactString::with_capacity(self.as_str().len() + more.len());
            text.push_str(self.as_str());
            text.push_str(more);
            *self = Text(Arc::new(Inner { plain: self.is_plain() && more_plain, text }));
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
        crate::order::note_texts(self.as_str(), other.as_str());
        self.as_str() == other.as_str()
    }
}

impl Eq for Text {}

impl std::hash::Hash for Text {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        // Without the mark that ends a `str`: where texts run together, a comparison tells them apart.
        state.write(self.as_str().as_bytes());
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
        crate::order::note_texts(self.as_str(), other.as_str());
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
