//! The texts that a run reads, and how places in them are told to people.

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
}

impl Sources {
    /// Takes a text in. A leading byte order mark is dropped.
    pub fn add(&mut self, path: impl Into<String>, text: impl Into<String>) -> FileId {
        let mut text = text.into();
        if text.starts_with('\u{feff}') {
            text.drain(..'\u{feff}'.len_utf8());
        }
        self.files.push(SourceFile { path: path.into(), text });
        FileId(u32::try_from(self.files.len() - 1).unwrap_or(u32::MAX))
    }

    /// The file of an id that this value gave out.
    pub fn get(&self, id: FileId) -> &SourceFile {
        static NONE: SourceFile = SourceFile { path: String::new(), text: String::new() };
        self.files.get(id.0 as usize).unwrap_or(&NONE)
    }

    /// Line and column of a byte, both from 1; the column counts characters.
    pub fn position(&self, id: FileId, byte: u32) -> (usize, usize) {
        let text = &self.get(id).text;
        let mut end = (byte as usize).min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let before = text.get(..end).unwrap_or(text);
        let line = before.bytes().filter(|b| *b == b'\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        (line, column)
    }
}
