//! How the list that a tool returns is divided into pages: the path of the items, the member that announces more of them, and the
//! argument that requests them.
//!
//! [`infer`] derives this from the arguments of a tool and the shape of its answers. The compiler calls it with declared output
//! schemas, the runtime with the first answer of a tool without an output schema.

mod infer;

use std::fmt;

pub use infer::{Argument, Shape, asks_for_page, has_paging_argument, infer, last_page, size_argument, whole};

/// The text in [`Tool::paging`](crate::Tool::paging) of a tool that is configured not to be paged.
pub const NOT_PAGED: &str = "false";

/// How the list of a tool is paged. Paths in an answer are keys separated by dots. An empty path is the answer itself.
///
/// `Display` formats the text in [`Tool::paging`](crate::Tool::paging): one line per member with its name and value.
///
/// ```
/// use ptc_catalog::{By, Paging};
///
/// let text = "by cursor\nitems data\nargument cursor\nnext meta.next_cursor\nsize limit\nmax_size 100";
/// let paging = Paging::parse(text).unwrap();
/// assert_eq!((paging.by, paging.next.as_deref(), paging.max_size), (By::Cursor, Some("meta.next_cursor"), Some(100)));
/// assert_eq!(paging.to_string(), text);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Paging {
    /// How the next page is requested.
    pub by: By,
    /// Path of the items.
    pub items: String,
    /// The argument that requests another page.
    pub argument: Option<String>,
    /// Number of the first page, if known.
    pub first: Option<i64>,
    /// Path of the token, number or link of the next page. A missing or null value means that there are no more pages.
    pub next: Option<String>,
    /// Path of the flag that is true if there are more pages.
    pub more: Option<String>,
    /// Path of the flag that is true on the last page.
    pub last: Option<String>,
    /// Path of the total number of items.
    pub total: Option<String>,
    /// Path of the total number of pages.
    pub pages: Option<String>,
    /// Path of this page's number.
    pub page: Option<String>,
    /// The member of an item that is its id, if the last id requests the next page.
    pub id: Option<String>,
    /// The argument for the number of items per page.
    pub size: Option<String>,
    /// The declared maximum of that argument.
    pub max_size: Option<i64>,
}

/// How the next page is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum By {
    /// By its number, starting at [`Paging::first`].
    Page,
    /// By the number of items before it.
    Offset,
    /// By a token from the previous page.
    #[default]
    Cursor,
    /// By the id of the last item.
    LastId,
    /// By the arguments in a link from the previous page.
    Link,
    /// By the arguments in the `Link` header of the previous page.
    Header,
}

impl By {
    /// Every variant with its name in texts and configs.
    pub const ALL: [(By, &'static str); 6] = [
        (By::Page, "page"),
        (By::Offset, "offset"),
        (By::Cursor, "cursor"),
        (By::LastId, "last_id"),
        (By::Link, "link"),
        (By::Header, "header"),
    ];

    /// Returns the name of the variant.
    pub fn name(self) -> &'static str {
        By::ALL.iter().find(|(by, _)| *by == self).map_or("", |(_, name)| name)
    }

    /// Returns the variant with this name.
    pub fn named(name: &str) -> Option<By> {
        By::ALL.iter().find(|(_, own)| *own == name).map(|(by, _)| *by)
    }
}

impl Paging {
    /// Parses the text that `Display` formats. Returns `None` for other texts.
    pub fn parse(text: &str) -> Option<Paging> {
        let mut paging = Paging::default();
        let mut has_way = false;
        for line in text.lines() {
            let (name, value) = line.split_once(' ')?;
            if name == "by" {
                paging.by = By::named(value)?;
                has_way = true;
            } else {
                paging.set(name, value)?;
            }
        }
        has_way.then_some(paging)
    }

    /// Sets a member other than `by`. Returns `None` if the name or the value is invalid.
    pub fn set(&mut self, name: &str, value: &str) -> Option<()> {
        let text = || Some(value.to_owned());
        match name {
            "items" => value.clone_into(&mut self.items),
            "argument" => self.argument = text(),
            "first" => self.first = Some(value.parse().ok()?),
            "next" => self.next = text(),
            "more" => self.more = text(),
            "last" => self.last = text(),
            "total" => self.total = text(),
            "pages" => self.pages = text(),
            "page" => self.page = text(),
            "id" => self.id = text(),
            "size" => self.size = text(),
            "max_size" => self.max_size = Some(value.parse().ok()?),
            _ => return None,
        }
        Some(())
    }

    /// Returns every member that is set, with its value.
    pub fn members(&self) -> Vec<(&'static str, String)> {
        let texts = [
            ("argument", &self.argument),
            ("next", &self.next),
            ("more", &self.more),
            ("last", &self.last),
            ("total", &self.total),
            ("pages", &self.pages),
            ("page", &self.page),
            ("id", &self.id),
            ("size", &self.size),
        ];
        let mut members = vec![("by", self.by.name().to_owned()), ("items", self.items.clone())];
        members.extend(texts.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))));
        members.extend(self.first.map(|first| ("first", first.to_string())));
        members.extend(self.max_size.map(|most| ("max_size", most.to_string())));
        members
    }

    /// Whether pages are read again at the end of the list. Without an announced total, nothing else shows that an item was
    /// removed while a list was read by page number.
    pub fn is_reread(&self, has_total: bool) -> bool {
        self.by == By::Page && self.argument.is_some() && !has_total
    }

    /// Returns a description in one line: `items in data, next page by cursor from meta.next_cursor, 100 a page`.
    pub fn described(&self) -> String {
        let items = if self.items.is_empty() { "the answer is the list".to_owned() } else { format!("items in {}", self.items) };
        let argument = self.argument.as_deref().unwrap_or_default();
        let next = self.next.as_deref().unwrap_or_default();
        let way = match self.by {
            By::Page => format!("next page by the number {argument}"),
            By::Offset => format!("next page by {argument}, the number of items before it"),
            By::Cursor => format!("next page by {argument} from {next}"),
            By::LastId => format!("next page by {argument}, the last item's {}", self.id.as_deref().unwrap_or("id")),
            By::Link => format!("next page by the link in {next}"),
            By::Header => "next page by the Link header".to_owned(),
        };
        let size = match (&self.size, self.max_size) {
            (Some(size), Some(most)) => format!(", at most {most} a page by {size}"),
            (Some(size), None) => format!(", size of a page by {size}"),
            (None, _) => String::new(),
        };
        let again = if self.is_reread(self.total.is_some()) {
            ", and pages are read again at the end because no total is announced"
        } else {
            ""
        };
        format!("{items}, {way}{size}{again}")
    }
}

impl fmt::Display for Paging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, value)) in self.members().iter().enumerate() {
            let separator = if at == 0 { "" } else { "\n" };
            write!(f, "{separator}{name} {value}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paging_round_trips() {
        for (by, _) in By::ALL {
            let bare = Paging { by, ..Paging::default() };
            assert_eq!(Paging::parse(&bare.to_string()), Some(bare));
            let text = |text: &str| Some(text.to_owned());
            let full = Paging {
                by,
                items: "a.b c".to_owned(),
                argument: text("page[number]"),
                first: Some(0),
                next: text("@odata.nextLink"),
                more: text("more"),
                last: text("last"),
                total: text("total"),
                pages: text("pages"),
                page: text("page"),
                id: text("id"),
                size: text("$top"),
                max_size: Some(100),
            };
            assert_eq!(Paging::parse(&full.to_string()), Some(full));
        }
    }

    #[test]
    fn text_that_is_not_paging_is_refused() {
        for text in ["", "items data", "by magic", "by page\nfirst x", "by page\ncolour red", "by page\nitems", NOT_PAGED] {
            assert_eq!(Paging::parse(text), None, "{text:?}");
        }
    }
}
