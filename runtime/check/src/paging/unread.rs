//! Detects lists of which a program has read only the first page.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashSet};
use std::hash::{Hash, Hasher};

use ptc_catalog::paging::{self, NOT_PAGED};
use ptc_catalog::{By, Paging, Tool, Upstream};
use ptc_lisp::Value;

use super::{Pages, answer, arguments, is_same};

/// Maximum number of remembered answers.
const MAX_LISTS: usize = 1000;

/// The first pages that a program received, and the further pages that it requested.
///
/// A list counts as read further if a call of the same tool, at any time, has an argument that selects a page, and its other
/// arguments are among those of the call that returned the first page: most services require only the token of the next page. A
/// program that requests fewer items than the default page size wants only these. A program that names a member about further
/// pages but never the items, such as `(:total (tool/value …))`, wants only the count.
#[derive(Debug, Default)]
pub struct UnreadPages {
    first: Vec<FirstPage>,
    asked: Vec<Asked>,
}

#[derive(Debug)]
struct FirstPage {
    list: Asked,
    announced: Announced,
}

/// A call of a tool: its arguments without those that select a page, as hashes of names and values.
#[derive(Debug)]
struct Asked {
    upstream: &'static str,
    tool: &'static str,
    others: Vec<u64>,
}

impl UnreadPages {
    /// Receives the answer to a call, with its `Link` header.
    pub fn receive(
        &mut self,
        upstream: &'static Upstream,
        tool: &'static Tool,
        args: &Value,
        answer: &Value,
        header: Option<&str>,
    ) {
        if self.first.len() < MAX_LISTS
            && let Some(announced) = announced(upstream, tool, args, answer, header)
        {
            self.first.push(FirstPage { list: Asked::of(upstream, tool, args), announced });
        }
    }

    /// Records a request for a page other than the first. `is_whole` is set if all pages are requested.
    pub fn ask(&mut self, upstream: &'static Upstream, tool: &'static Tool, args: &Value, is_whole: bool) {
        if self.asked.len() < MAX_LISTS && (is_whole || asks_for_further_page(tool, args)) {
            self.asked.push(Asked::of(upstream, tool, args));
        }
    }

    /// Returns a sentence for each tool whose list the program with this text did not read to its end.
    pub fn notes(&self, source: &str) -> Vec<String> {
        // Some requests were not recorded, so that it is unknown which lists were read further.
        if self.asked.len() >= MAX_LISTS {
            return Vec::new();
        }
        let mut by_tool: BTreeMap<(&str, &str), Vec<&Announced>> = BTreeMap::new();
        for FirstPage { list, announced } in &self.first {
            if !self.asked.iter().any(|asked| asked.continues(list)) && !announced.is_only_counted(source) {
                by_tool.entry((list.upstream, list.tool)).or_default().push(announced);
            }
        }
        by_tool.into_iter().map(|((upstream, tool), lists)| note(upstream, tool, &lists)).collect()
    }
}

fn note(upstream: &str, tool: &str, lists: &[&Announced]) -> String {
    let what = match lists {
        [one] => {
            let pages = one.pages.map_or_else(|| "and more are announced".to_owned(), |pages| format!("of {pages}"));
            let items = one.total.map_or_else(|| one.items.to_string(), |total| format!("{} of {total}", one.items));
            format!("this was page 1 {pages}, with {items} items")
        }
        _ => format!("{} answers were page 1 of more", lists.len()),
    };
    format!(
        "{upstream}/{tool}: {what}, and the program did not ask for the next one: (tool/all {{:server {upstream:?} :tool {tool:?} …}}) \
         gives the items of all pages"
    )
}

impl Asked {
    fn of(upstream: &'static Upstream, tool: &'static Tool, args: &Value) -> Asked {
        let known = arguments(tool);
        let size = paging::size_argument(&known).map(|size| size.name);
        let paging = Paging::parse(tool.paging);
        let is_of_pages = |name: &str| {
            let own = paging.as_ref().is_some_and(|own| [&own.argument, &own.size].into_iter().flatten().any(|own| own == name));
            own || size == Some(name) || paging::asks_for_page(name)
        };
        let others = given(tool, args).filter(|(name, _)| !is_of_pages(name)).map(|argument| {
            let mut hasher = DefaultHasher::new();
            argument.hash(&mut hasher);
            hasher.finish()
        });
        Asked { upstream: upstream.name, tool: tool.name, others: others.collect() }
    }

    fn continues(&self, list: &Asked) -> bool {
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
    given(tool, args).any(|(name, value)| is_page(name) && !matches!(value.as_int(), Some(0 | 1)))
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
    /// Members that announce further pages.
    tell: Vec<String>,
}

impl Announced {
    /// Whether a program names a member that announces further pages, but not the one with the items.
    fn is_only_counted(&self, source: &str) -> bool {
        let mut words = HashSet::new();
        words.extend(source.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-').map(|word| word.replace('-', "_")));
        let names = |member: &String| words.contains(&member.replace('-', "_"));
        !self.list.is_empty() && !names(&self.list) && self.tell.iter().any(names)
    }
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
    if tool.paging == NOT_PAGED {
        return None;
    }
    if tool.paging.is_empty() && !paging::has_paging_argument(&arguments(tool)) && header.is_none() {
        return None;
    }
    let mut pages = Pages::new(upstream, tool, args.clone(), None).ok()?;
    let paging = match pages.paging.clone() {
        Some(paging) => paging,
        None => pages.decide(answer, header).ok()?,
    };
    let is_first = matches!((paging.by, pages.begins_at), (_, None) | (By::Page, Some(0 | 1)) | (By::Offset, Some(0)));
    let size = paging.size.as_deref().and_then(|size| pages.given(size)).map(Value::as_int);
    let is_largest = size.is_none_or(|size| paging.max_size.is_some_and(|most| size.is_some_and(|size| size >= most)));
    if !is_first || !is_largest {
        return None;
    }
    pages.begins_at = None;
    if pages.announced(answer, header, &paging).ok()? != Some(true) {
        return None;
    }
    let items = answer::at(answer, &paging.items)?;
    let count = items.len()?;
    pages.total = answer::count_at(answer, paging.total.as_deref());
    pages.first_len = count;
    pages.received = 1;
    pages.items = items.items()?.cloned().collect();
    pages.settle_base(&[], answer, &paging);
    let further = pages.further(answer, header, &paging).and_then(|further| i64::try_from(further).ok());
    let last = |path: &String| path.rsplit('.').next().unwrap_or_default().to_owned();
    let tell = [&paging.total, &paging.pages, &paging.next, &paging.more, &paging.last].into_iter().flatten().map(last).collect();
    Some(Announced {
        pages: further.map(|further| further + 1),
        items: count,
        total: pages.total,
        list: last(&paging.items),
        tell,
    })
}
