//! The source texts of a run, and conversion of byte offsets into line and column.

use std::fmt;
use std::ops::Range;
use std::sync::OnceLock;

/// Maximum size of a text in bytes. Offsets are 32-bit, and no config, document or lock file comes near this size.
pub const MAX_BYTES: usize = 1 << 30;

/// A file of [`Sources`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(u32);

/// A range of bytes in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// Byte range in the file.
    pub range: Range<u32>,
}

/// Why bytes cannot be decoded as text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotText {
    /// The cause, as the second half of a sentence: "it is UTF-16".
    pub what: String,
    /// What the user can do about it.
    pub hint: &'static str,
}

impl fmt::Display for NotText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what, self.hint)
    }
}

/// Decodes UTF-8. Recognises UTF-16 by a byte order mark, or by a NUL beside the first character, which no JSON or YAML text has.
///
/// # Errors
///
/// [`NotText`] if the bytes are not UTF-8.
pub fn decode(bytes: Vec<u8>) -> Result<String, NotText> {
    if matches!(bytes.as_slice(), [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, _, ..] | [_, 0, ..]) {
        let hint = "save it as UTF-8; PowerShell writes UTF-16 unless it is given `-Encoding utf8`";
        return Err(NotText { what: "it is UTF-16".to_owned(), hint });
    }
    String::from_utf8(bytes).map_err(|error| NotText {
        what: format!("byte {} is not UTF-8", error.utf8_error().valid_up_to()),
        hint: "save it as UTF-8; what is in Latin-1 becomes that by `iconv -f latin1 -t utf-8`",
    })
}

/// All texts of one run, by id.
#[derive(Debug, Default)]
pub struct Sources {
    files: Vec<SourceFile>,
}

/// One source text.
#[derive(Debug)]
pub struct SourceFile {
    /// The path as the user gave it, with `/` as separator.
    pub path: String,
    /// The whole text, without a byte order mark.
    pub text: String,
    /// Byte offsets of the line starts. They are computed on first use: documents have megabytes, and there can be hundreds of
    /// diagnostics.
    lines: OnceLock<Vec<u32>>,
}

impl SourceFile {
    fn lines(&self) -> &[u32] {
        self.lines.get_or_init(|| {
            let breaks = self.text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at as u32 + 1);
            std::iter::once(0).chain(breaks).collect()
        })
    }
}

impl Sources {
    /// Adds a text and returns its id. A leading byte order mark is dropped. Adding the same path and text twice returns the same
    /// id, so that each fault is reported once.
    pub fn add(&mut self, path: impl Into<String>, text: impl Into<String>) -> FileId {
        let mut text = text.into();
        if text.starts_with('\u{feff}') {
            text.drain(..'\u{feff}'.len_utf8());
        }
        let path = path.into();
        if let Some(known) = self.files.iter().position(|file| file.path == path && file.text == text) {
            return FileId(u32::try_from(known).unwrap_or(u32::MAX));
        }
        self.files.push(SourceFile { path, text, lines: OnceLock::new() });
        FileId(u32::try_from(self.files.len() - 1).unwrap_or(u32::MAX))
    }

    /// Returns the file of an id that this value issued.
    pub fn get(&self, id: FileId) -> &SourceFile {
        static NONE: SourceFile = SourceFile { path: String::new(), text: String::new(), lines: OnceLock::new() };
        self.files.get(id.0 as usize).unwrap_or(&NONE)
    }

    /// Returns line and column of a byte, both from 1. The column counts characters.
    pub fn position(&self, id: FileId, byte: u32) -> (usize, usize) {
        let file = self.get(id);
        let line = file.lines().partition_point(|start| *start <= byte).max(1);
        let start = file.lines().get(line - 1).map_or(0, |start| *start as usize);
        let end = file.text.floor_char_boundary(byte as usize).max(start);
        let column = file.text.get(start..end).map_or(0, |before| before.chars().count()) + 1;
        (line, column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_encodings_are_recognised_by_their_first_bytes() {
        assert_eq!(decode(b"\xef\xbb\xbf{}".to_vec()).as_deref(), Ok("\u{feff}{}"));
        assert_eq!(decode(Vec::new()).as_deref(), Ok(""));
        for bytes in [&b"\xff\xfe{\0}\0"[..], b"\xfe\xff\0{\0}", b"{\0}\0", b"\0{\0}"] {
            assert_eq!(decode(bytes.to_vec()).map_err(|fault| fault.what), Err("it is UTF-16".to_owned()), "{bytes:?}");
        }
        assert_eq!(decode(b"{ \xfc }".to_vec()).map_err(|fault| fault.what), Err("byte 2 is not UTF-8".to_owned()));
    }

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let mut sources = Sources::default();
        let file = sources.add("a", "\u{feff}ab\nöx\n");
        let empty = sources.add("b", "");
        for (byte, position) in [(0, (1, 1)), (2, (1, 3)), (3, (2, 1)), (4, (2, 1)), (5, (2, 2)), (7, (3, 1)), (99, (3, 1))] {
            assert_eq!(sources.position(file, byte), position, "{byte}");
        }
        assert_eq!(sources.position(empty, 0), (1, 1));
    }
}
