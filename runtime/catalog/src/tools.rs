//! The tools of an upstream.

use std::fmt;
use std::ops::Deref;

use crate::Tool;

/// The tools of an upstream, sorted by name.
///
/// ```
/// use ptc_catalog::{Tool, Tools};
///
/// static TOOLS: Tools = Tools::table(&[Tool { name: "read_note", ..Tool::EMPTY }]);
/// assert_eq!((TOOLS.len(), TOOLS.all()[0].name), (1, "read_note"));
/// ```
#[derive(Clone, Copy)]
pub struct Tools(Source);

#[derive(Clone, Copy)]
enum Source {
    Table(&'static [Tool]),
    Deferred(&'static dyn Deferred),
}

/// What a server asks about all tools of an upstream when it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ToolFacts {
    /// Whether each tool only reads.
    pub only_reads: bool,
    /// Whether a tool may destroy data.
    pub may_destroy: bool,
    /// The longest time that the config gives a call, in milliseconds.
    pub longest_call_ms: Option<u64>,
}

impl ToolFacts {
    /// Returns the facts about a table.
    pub fn from_tools(tools: &[Tool]) -> ToolFacts {
        ToolFacts {
            only_reads: tools.iter().all(|tool| tool.effect().is_read()),
            may_destroy: tools.iter().any(|tool| tool.effect().may_destroy()),
            longest_call_ms: tools.iter().filter_map(|tool| tool.call_timeout_ms).max(),
        }
    }
}

/// Tools that are read when they are needed.
pub trait Deferred: Sync {
    /// Returns facts about the tools without reading them.
    fn facts(&self) -> ToolFacts;

    /// Returns the number of tools without reading them.
    fn len(&self) -> usize;

    /// Reads the tools, if they have not been read.
    fn all(&self) -> &'static [Tool];

    /// Whether there is no tool.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Tools {
    /// No tools.
    pub const NONE: Tools = Tools::table(&[]);

    /// Returns tools that are a table in the binary, or in memory that is never freed.
    pub const fn table(tools: &'static [Tool]) -> Tools {
        Tools(Source::Table(tools))
    }

    /// Returns tools that are read when they are needed.
    pub const fn deferred(tools: &'static dyn Deferred) -> Tools {
        Tools(Source::Deferred(tools))
    }

    /// Returns the tools.
    pub fn all(self) -> &'static [Tool] {
        match self.0 {
            Source::Table(tools) => tools,
            Source::Deferred(tools) => tools.all(),
        }
    }

    /// Returns their number.
    pub fn len(&self) -> usize {
        match self.0 {
            Source::Table(tools) => tools.len(),
            Source::Deferred(tools) => tools.len(),
        }
    }

    /// Whether there is no tool.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns facts about the tools, without reading them from an image.
    pub fn facts(&self) -> ToolFacts {
        match self.0 {
            Source::Table(tools) => ToolFacts::from_tools(tools),
            Source::Deferred(tools) => tools.facts(),
        }
    }
}

impl Deref for Tools {
    type Target = [Tool];

    fn deref(&self) -> &[Tool] {
        self.all()
    }
}

impl IntoIterator for Tools {
    type Item = &'static Tool;
    type IntoIter = std::slice::Iter<'static, Tool>;

    fn into_iter(self) -> Self::IntoIter {
        self.all().iter()
    }
}

impl fmt::Debug for Tools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all()).finish()
    }
}
