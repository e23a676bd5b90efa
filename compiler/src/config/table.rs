//! Types of the rows that describe the objects of a config.
//!
//! Reading, suggestions for unknown keys and type errors derive from the rows in [`super::keys`]. The config's schema and its
//! reference page derive from them too.

use crate::diag::Code;

/// Describes one key of an object.
#[derive(Debug)]
pub struct Key {
    /// The key as written in the config.
    pub name: &'static str,
    /// The type of its value.
    pub kind: Kind,
    /// Whether it is required, and its default.
    pub presence: Presence,
    /// One line that describes the key.
    pub doc: &'static str,
    /// Names of the key in other tools. Suggestions map them to this key.
    pub aliases: &'static [&'static str],
    /// The code of a value that the key does not accept, where the key has a code of its own.
    pub own_code: Option<Code>,
}

/// Whether a key must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// The key is required.
    Required,
    /// The key may be omitted, and has no default.
    Optional,
    /// The key may be omitted; this number is its default.
    Default(u64),
}

/// The type of a value.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// A non-empty string.
    Text,
    /// Any string.
    AnyText,
    /// `true` or `false`.
    Flag,
    /// A whole number in an inclusive range.
    Number {
        /// The smallest allowed number.
        min: u64,
        /// The largest allowed number.
        max: u64,
        /// The unit, such as `milliseconds` or `bytes`.
        unit: &'static str,
    },
    /// An array of strings.
    Texts,
    /// An array of at least one string. The strings are non-empty and unique.
    Names,
    /// An array of codes of notes.
    Notes,
    /// `true`, `false`, or an array as in [`Kind::Names`].
    FlagOrNames,
    /// An object of strings.
    TextMap,
    /// A non-empty string, or an object of the strings `user` and `pass`. It is never shown.
    Secret,
    /// One of these strings.
    Choice(&'static [&'static str]),
    /// An object whose members are read by separate code.
    Object,
    /// An object with the keys of a table.
    Record(&'static Table),
    /// A non-empty string that is one key of a table, or an object with all keys of the table.
    TextOrRecord(&'static Table),
    /// An array whose elements are read by separate code.
    List,
    /// `false`, or an object that describes how a list is paged.
    Paging,
}

/// The keys of one type of object.
#[derive(Debug)]
pub struct Table {
    /// The tag that chooses this table among the cases of a [`Variants`]; empty for an object without a tag.
    pub tag: &'static str,
    /// The name of such an object in messages, such as ``an `mcp_stdio` entry``.
    pub title: &'static str,
    /// The keys, in groups that several tables share.
    pub groups: &'static [&'static [Key]],
}

/// Objects whose type is chosen by the value of one key.
#[derive(Debug)]
pub struct Variants {
    /// The key that chooses: `transport`, `source` or `scheme`.
    pub tag: Key,
    /// One table for each value of the key.
    pub cases: &'static [Table],
    /// An example of such an object, for error messages.
    pub example: &'static str,
}

impl Key {
    /// Returns the code of a value that has the right type and that the key does not accept.
    pub fn code(&self) -> Code {
        self.own_code.unwrap_or(Code::UnknownScheme)
    }
}

impl Table {
    /// Returns all keys in order.
    pub fn keys(&self) -> impl Iterator<Item = &'static Key> + Clone {
        self.groups.iter().flat_map(|group| group.iter())
    }

    /// Returns the row of a key.
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys().find(|key| key.name == name)
    }
}

impl Variants {
    /// Returns the table for a tag.
    pub fn case(&self, tag: &str) -> Option<&'static Table> {
        self.cases.iter().find(|table| table.tag == tag)
    }

    /// Returns all values of the tag.
    pub fn tags(&self) -> impl Iterator<Item = &'static str> + Clone {
        self.cases.iter().map(|table| table.tag)
    }
}
