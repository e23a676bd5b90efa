//! Detects lists that a program has not read to their end.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use ptc_catalog::paging::{self, NOT_PAGED};
use ptc_catalog::{By, Paging, Tool, Upstream};
use ptc_lisp::Value;
use ptc_lisp::list_uses::{ListUses, TrackedList};
use ptc_text::join_limited;

use super::next::NextError;
use super::{Pages, answer, arguments, is_same, number_or_negative};

/// Maximum number of remembered answers.
const MAX_LISTS: usize = 1000;
/// A program that requests fewer items than this wants only these. A larger number is the size of a page.
const MIN_PAGE: i64 = 20;
/// Maximum number of arguments listed in a note.
const MAX_LISTED: usize = 8;

/// The pages that a program received and that it requested.
///
/// A list counts as read to its end if a page of it announces no further one. A page belongs to the list of a first page if its
/// other arguments are among those of the first page: most services require only the token of the next page. A page that the
/// program chose without the first one is what it wants. A list whose items the program has not read, such as in
/// `(:total (tool/value …))`, needs no further pages, unless the answer is kept for a later program.
#[derive(Debug, Default)]
pub struct UnreadPages {
    first: Vec<FirstPage>,
    later: Vec<LaterPage>,
    asked: Vec<ListRequest>,
}

#[derive(Debug)]
struct FirstPage {
    list: ListRequest,
    announced: Announced,
    /// What the program has read of the answer. `None` if the answer itself is the list.
    uses: Option<Arc<ListUses>>,
}

/// A page after the first one.
#[derive(Debug)]
struct LaterPage {
    list: ListRequest,
    /// Whether it announces a further page.
    is_more: Option<bool>,
    /// Its number, counted from 1, if the argument of the tool is one.
    number: Option<i64>,
    /// The announced total without the items of this page.
    items_left: Option<i64>,
}

impl LaterPage {
    /// Whether there is a further page, if the pages before have the size of the first one.
    fn is_more(&self, first: &FirstPage) -> bool {
        let size = i64::try_from(first.announced.items).unwrap_or(i64::MAX);
        let by_total = || self.number.zip(self.items_left).map(|(number, left)| (number - 1).saturating_mul(size) < left);
        self.is_more.or_else(by_total) == Some(true)
    }
}

/// A call of a tool: its arguments without those that select a page, as hashes of names and values.
#[derive(Debug)]
struct ListRequest {
    upstream: &'static str,
    tool: &'static str,
    others: Vec<u64>,
}

/// A list that was not read to its end.
enum PartialRead<'p> {
    FirstPage(&'p FirstPage),
    /// Up to a later page, with its number and the number of pages.
    UpTo(Option<i64>, Option<i64>),
}

impl FirstPage {
    /// Whether the program needs all items.
    fn is_used(&self) -> bool {
        self.uses.as_ref().is_none_or(|uses| uses.are_items_read() || !uses.are_others_read() && Arc::strong_count(uses) > 1)
    }
}

impl UnreadPages {
    /// Receives the answer to a call, with its `Link` header. Returns the list in the answer if it matters whether the program
    /// reads it.
    pub fn receive(
        &mut self,
        upstream: &'static Upstream,
        tool: &'static Tool,
        args: &Value,
        answer: &Value,
        header: Option<&str>,
    ) -> Option<TrackedList> {
        if asks_within_object(tool, args) {
            // What such a page announces depends on a number that is not an argument.
            self.read_all(upstream, tool, args);
            return None;
        }
        if asks_for_further_page(tool, args) {
            if self.later.len() < MAX_LISTS {
                self.later.push(later(upstream, tool, args, answer, header));
            }
            return None;
        }
        if self.first.len() >= MAX_LISTS {
            return None;
        }
        let announced = announced(upstream, tool, args, answer, header)?;
        let keys = answer::keys_to(answer, &announced.list).filter(|keys| !keys.is_empty());
        let list = keys.map(|keys| TrackedList { keys, uses: Arc::default() });
        let uses = list.as_ref().map(|list| Arc::clone(&list.uses));
        self.first.push(FirstPage { list: ListRequest::new(upstream, tool, args), announced, uses });
        list
    }

    /// Records that all pages of a list are requested.
    pub fn read_all(&mut self, upstream: &'static Upstream, tool: &'static Tool, args: &Value) {
        if self.asked.len() < MAX_LISTS {
            self.asked.push(ListRequest::new(upstream, tool, args));
        }
    }

    /// Returns a sentence for each tool whose list the program did not read to its end.
    pub fn notes(&self) -> Vec<String> {
        // Some requests were not recorded, so that it is unknown which lists were read further.
        if self.asked.len() >= MAX_LISTS || self.later.len() >= MAX_LISTS {
            return Vec::new();
        }
        let mut by_tool: BTreeMap<(&str, &str), Vec<PartialRead<'_>>> = BTreeMap::new();
        for first in self.first.iter().filter(|first| first.is_used()) {
            let list = &first.list;
            if let Some(read) = self.partial_read(first) {
                by_tool.entry((list.upstream, list.tool)).or_default().push(read);
            }
        }
        by_tool.into_iter().map(|((upstream, tool), lists)| note(upstream, tool, &lists)).collect()
    }

    /// Returns up to where a list was read. `None` if it was read to its end, or if that is unknown.
    fn partial_read<'p>(&self, first: &'p FirstPage) -> Option<PartialRead<'p>> {
        if self.asked.iter().any(|asked| asked.continues(&first.list)) {
            return None;
        }
        let later: Vec<&LaterPage> = self.later.iter().filter(|later| later.list.continues(&first.list)).collect();
        if later.is_empty() {
            return Some(PartialRead::FirstPage(first));
        }
        let has_more = later.iter().all(|later| later.is_more(first));
        let number = later.iter().filter_map(|later| later.number).max();
        has_more.then_some(PartialRead::UpTo(number, first.announced.pages))
    }
}

fn note(upstream: &str, tool: &str, lists: &[PartialRead<'_>]) -> String {
    let all = format!("(tool/all {{:server {upstream:?} :tool {tool:?} …}}) gives the items of all pages");
    let items = |announced: &Announced| {
        announced.total.map_or_else(|| announced.items.to_string(), |total| format!("{} of {total}", announced.items))
    };
    let remedy = lists.iter().find_map(|list| match list {
        PartialRead::FirstPage(first) => first.announced.remedy.as_ref(),
        PartialRead::UpTo(..) => None,
    });
    if let Some(remedy) = remedy {
        let what = match lists {
            [PartialRead::FirstPage(first)] => format!("the answer has {} items and says", items(&first.announced)),
            _ => format!("{} answers say", lists.len()),
        };
        return format!("{upstream}/{tool}: {what} that there are more, and {remedy}");
    }
    let what = match lists {
        [PartialRead::FirstPage(FirstPage { announced, .. })] => {
            let items = items(announced);
            let pages = announced.pages.map_or_else(|| "and more are announced".to_owned(), |pages| format!("of {pages}"));
            format!("this was page 1 {pages}, with {items} items")
        }
        [PartialRead::UpTo(number, pages)] => {
            let page = number.map_or_else(|| "the last page that was read".to_owned(), |number| format!("page {number}"));
            let pages = pages.map_or_else(String::new, |pages| format!(" of {pages}"));
            format!("the list was read up to {page}{pages}, which announces more")
        }
        _ if lists.iter().all(|list| matches!(list, PartialRead::FirstPage(_))) => {
            format!("{} answers were page 1 of more", lists.len())
        }
        _ => format!("{} lists were not read to their end", lists.len()),
    };
    format!("{upstream}/{tool}: {what}, and the program did not ask for the next one: {all}")
}

impl ListRequest {
    fn new(upstream: &'static Upstream, tool: &'static Tool, args: &Value) -> ListRequest {
        let known = arguments(tool);
        let size = paging::size_argument(&known).map(|size| size.name);
        let paging = Paging::parse(tool.paging);
        let is_of_pages = |name: &str| {
            let own = paging.as_ref().is_some_and(|own| [&own.argument, &own.size].into_iter().flatten().any(|own| own == name));
            own || size == Some(name) || paging::asks_for_page(name)
        };
        let others = given(tool, args).filter(|(name, _)| !is_of_pages(name)).map(|(name, value)| {
            let mut hasher = DefaultHasher::new();
            name.hash(&mut hasher);
            match value.entries() {
                Some(members) => {
                    members
                        .filter(|(key, _)| !key.as_name().is_some_and(is_of_pages))
                        .for_each(|member| member.hash(&mut hasher));
                }
                None => value.hash(&mut hasher),
            }
            hasher.finish()
        });
        ListRequest { upstream: upstream.name, tool: tool.name, others: others.collect() }
    }

    fn continues(&self, list: &ListRequest) -> bool {
        (self.upstream, self.tool) == (list.upstream, list.tool) && self.others.iter().all(|other| list.others.contains(other))
    }
}

/// Returns the arguments of a call that are not null, with the tool's names.
fn given<'v>(tool: &'static Tool, args: &'v Value) -> impl Iterator<Item = (&'static str, &'v Value)> {
    let entries = args.entries().into_iter().flatten().filter(|(_, value)| !value.is_nil());
    entries.filter_map(|(key, value)| {
        let key = key.as_name()?;
        let arg = tool.arg(key).or_else(|| tool.args.iter().find(|arg| is_same(key, arg.name)))?;
        Some((arg.name, value))
    })
}

/// Whether the arguments select a page after the first.
fn asks_for_further_page(tool: &'static Tool, args: &Value) -> bool {
    let own = Paging::parse(tool.paging).and_then(|paging| paging.argument);
    let is_page = |name: &str| own.as_deref().map_or_else(|| paging::asks_for_page(name), |own| own == name);
    given(tool, args).any(|(name, value)| is_page(name) && !matches!(number_or_negative(value), 0 | 1))
}

/// Whether a member of an argument, such as the body of a search, selects a page after the first.
fn asks_within_object(tool: &'static Tool, args: &Value) -> bool {
    let is_page = |(key, value): (&Value, &Value)| {
        key.as_name().is_some_and(paging::asks_for_page) && !value.is_nil() && !matches!(number_or_negative(value), 0 | 1)
    };
    given(tool, args).any(|(_, value)| value.entries().is_some_and(|mut members| members.any(is_page)))
}

/// The announcement of further pages in an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announced {
    /// Total number of pages.
    pub pages: Option<i64>,
    /// Number of items in this page, the first one.
    pub items: usize,
    /// Total number of items.
    pub total: Option<i64>,
    /// Path of the items. Empty if the answer is the list.
    list: String,
    /// Why the next page cannot be requested, and what the program can do.
    remedy: Option<String>,
}

/// Starts to read the list in an answer. Returns `None` if there is none.
fn pages_of(
    upstream: &'static Upstream,
    tool: &'static Tool,
    args: &Value,
    answer: &Value,
    header: Option<&str>,
) -> Option<(Pages, Paging)> {
    if tool.paging == NOT_PAGED {
        return None;
    }
    let mut pages = Pages::new(upstream, tool, args.clone(), None).ok()?;
    let is_paged = !tool.paging.is_empty() || paging::has_paging_argument(&arguments(tool)) || header.is_some();
    let paging = match pages.paging.clone() {
        Some(paging) => paging,
        None if is_paged => pages.decide(answer, header).ok()?,
        None => paging::whole(tool.name, &arguments(tool), &answer::shape(answer))?,
    };
    Some((pages, paging))
}

/// Reads the announcements of a page after the first one.
fn later(upstream: &'static Upstream, tool: &'static Tool, args: &Value, answer: &Value, header: Option<&str>) -> LaterPage {
    let list = ListRequest::new(upstream, tool, args);
    let Some((mut pages, paging)) = pages_of(upstream, tool, args, answer, header) else {
        return LaterPage { list, is_more: None, number: None, items_left: None };
    };
    pages.base = paging.first.unwrap_or(1);
    pages.at = pages.begins_at.filter(|at| *at >= 0);
    let count = answer::at(answer, &paging.items).and_then(Value::len).and_then(|len| i64::try_from(len).ok());
    let items_left = answer::count_at(answer, paging.total.as_deref()).zip(count).map(|(total, count)| total - count);
    let number = pages.at.filter(|_| paging.by == By::Page).map(|at| at - pages.base + 1);
    LaterPage { list, is_more: pages.announced(answer, header, &paging).ok().flatten(), number, items_left }
}

/// Returns the announcement of further pages in an answer. Returns `None` if there is none, or if the arguments select a page or
/// a number of items.
pub fn announced(
    upstream: &'static Upstream,
    tool: &'static Tool,
    args: &Value,
    answer: &Value,
    header: Option<&str>,
) -> Option<Announced> {
    let (mut pages, paging) = pages_of(upstream, tool, args, answer, header)?;
    let items = answer::at(answer, &paging.items)?;
    let count = items.len()?;
    let is_first = matches!((paging.by, pages.begins_at), (_, None) | (By::Page, Some(0 | 1)) | (By::Offset, Some(0)));
    let size = paging.size.as_deref().and_then(|size| pages.given(size)).map(Value::as_int);
    let is_page = |size: i64| match paging.max_size {
        Some(most) => size >= most,
        None => size >= MIN_PAGE || i64::try_from(count).is_ok_and(|count| count < size),
    };
    if !is_first || !size.is_none_or(|size| size.is_some_and(is_page)) {
        return None;
    }
    pages.begins_at = None;
    pages.settle_base(&[], answer, &paging);
    if paging.by == By::Page {
        pages.at.get_or_insert(pages.base);
    }
    if pages.announced(answer, header, &paging).ok()? != Some(true) {
        return None;
    }
    pages.total = answer::count_at(answer, paging.total.as_deref());
    pages.first_len = count;
    pages.received = 1;
    pages.items = items.items()?.cloned().collect();
    let further = pages.further(answer, header, &paging).and_then(|further| i64::try_from(further).ok());
    let remedy = match pages.try_next(answer, header, &paging, Some(true)) {
        Ok(_) => None,
        Err(error) => Some(remedy(tool, answer, &paging, &error)?),
    };
    Some(Announced { pages: further.map(|further| further + 1), items: count, total: pages.total, list: paging.items, remedy })
}

/// Returns why the next page cannot be requested, and what to do. Returns `None` if only a number says that there are more and it
/// may have another meaning, such as the total of an invoice.
fn remedy(tool: &'static Tool, answer: &Value, paging: &Paging, error: &NextError) -> Option<String> {
    let known = arguments(tool);
    let size = paging::size_argument(&known).map(|size| size.name);
    let has =
        |path: &Option<String>| path.as_deref().is_some_and(|path| answer::at(answer, path).is_some_and(|value| !value.is_nil()));
    let is_total_alone = !has(&paging.next) && !has(&paging.more) && !has(&paging.last);
    let is_plain = paging.total.as_deref().is_some_and(|path| path.rsplit('.').next() == Some("total"));
    if is_total_alone && is_plain && size.is_none() {
        return None;
    }
    let larger = size.map_or_else(String::new, |size| format!(", or ask for more with :{size}"));
    let names = tool.args.iter().map(|arg| arg.name).filter(|name| Some(*name) != size);
    let names = join_limited(names, ", ", MAX_LISTED);
    let narrow = match (names.as_str(), size) {
        ("", None) => String::new(),
        ("", Some(size)) => format!(": ask for more with :{size}"),
        (names, _) => format!(": narrow the list by its arguments ({names}){larger}"),
    };
    Some(match error {
        NextError::NoArgument => format!("the tool has no argument for the next page{narrow}"),
        error => format!("{error}{narrow}"),
    })
}
