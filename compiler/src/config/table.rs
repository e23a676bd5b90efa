//! The form of rows that say what an object of the config may hold.
//!
//! Reading, unknown-key suggestions and type faults derive from the rows in [`super::keys`]; so do the config's schema
//! and its reference page.

/// What one key of an object is.
#[derive(Debug)]
pub struct Key {
    /// As written in the config.
    pub name: &'static str,
    /// What its value must be.
    pub kind: Kind,
    /// Whether it must be there, and what holds where it is not.
    pub presence: Presence,
    /// One line: what it does.
    pub doc: &'static str,
    /// What other tools call the same thing; these names lead to this key in suggestions.
    pub aliases: &'static [&'static str],
}

/// Whether a key must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Must be there.
    Required,
    /// May be left out; nothing stands in its place.
    Optional,
    /// May be left out; this number stands in its place.
    Default(u64),
}

/// What a value must be.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// A string that is not empty.
    Text,
    /// Any string.
    AnyText,
    /// `true` or `false`.
    Flag,
    /// A whole number in a range, both ends included.
    Number {
        /// Least.
        min: u64,
        /// Most.
        max: u64,
        /// `milliseconds`, `bytes`.
        unit: &'static str,
    },
    /// An array of strings.
    Texts,
    /// An array of strings with at least one, none of them empty, none twice.
    Names,
    /// `true`, `false`, or an array as in [`Kind::Names`].
    FlagOrNames,
    /// An object of strings.
    TextMap,
    /// A string that is not empty, or an object of the strings `user` and `password`; never shown.
    Secret,
    /// One of these strings.
    Choice(&'static [&'static str]),
    /// An object whose members are read by a caller of their own.
    Object,
    /// An array whose elements are read by a caller of their own.
    List,
    /// `false`, or an object that says how a list is paged.
    Paging,
}

/// The keys of one kind of object.
#[derive(Debug)]
pub struct Table {
    /// The tag that chooses it among the cases of a [`Variants`]; empty for an object without a tag.
    pub tag: &'static str,
    /// For messages: ``an `mcp_stdio` entry``.
    pub title: &'static str,
    /// Its keys, in groups that several tables share.
    pub groups: &'static [&'static [Key]],
}

/// Objects that are told apart by one key.
#[derive(Debug)]
pub struct Variants {
    /// The key: `transport`, `source`, `scheme`.
    pub tag: Key,
    /// One table for each value of it.
    pub cases: &'static [Table],
    /// One such object, for whoever wrote something else.
    pub example: &'static str,
}

impl Table {
    /// All keys in order.
    pub fn keys(&self) -> impl Iterator<Item = &'static Key> + Clone {
        self.groups.iter().flat_map(|group| group.iter())
    }

    /// The row of that name.
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys().find(|key| key.name == name)
    }
}

impl Variants {
    /// The table of a tag.
    pub fn case(&self, tag: &str) -> Option<&'static Table> {
        self.cases.iter().find(|table| table.tag == tag)
    }

    /// The values of the tag.
    pub fn tags(&self) -> impl Iterator<Item = &'static str> + Clone {
        self.cases.iter().map(|table| table.tag)
    }
}
