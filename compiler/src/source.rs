//! The texts that a run reads, and how places in them are told to people.

use std::sync::OnceLock;

/// A file of [`Sources`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(u32);

/// Every text of one run, by id.
#[derive(Debug, Default)]
pub struct Sources {
    files: Vec<SourceFile>,
}

/// One text.
#[derive(Debug)]
pub struct SourceFile {
    /// The path as the user gave it, with `/`.
    pub path: String,
    /// The whole text, without a byte order mark.
    pub text: String,
    /// Where its lines start, once somebody has asked: documents have megabytes, and diagnostics come by the hundred.
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
    /// Takes a text in. A leading byte order mark is dropped. What is taken in twice under one name is one file, so that faults in it are
    /// told once.
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

    /// The file of an id that this value gave out.
    pub fn get(&self, id: FileId) -> &SourceFile {
        static NONE: SourceFile = SourceFile { path: String::new(), text: String::new(), lines: OnceLock::new() };
        self.files.get(id.0 as usize).unwrap_or(&NONE)
    }

    /// Line and column of a byte, both from 1; the column counts characters.
    pub fn position(&self, id: FileId, byte: u32) -> (usize, usize) {
        let file = self.get(id);
        let line = file.lines().partition_point(|start| *start <= byte).max(1);
        let start = file.lines().get(line - 1).map_or(0, |start| *start as usize);
        let mut end = (byte as usize).clamp(start, file.text.len().max(start));
        while !file.text.is_char_boundary(end) && end > start {
            end -= 1;
        }
        let column = file.text.get(start..end).map_or(0, |before| before.chars().count()) + 1;
        (line, column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
