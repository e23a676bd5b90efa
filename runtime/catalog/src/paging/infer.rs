//! Infers how a list is paged from the names that published APIs use.
//!
//! Names are compared in lower case without punctuation, so that `per_page`, `perPage` and `page[per]` need one entry. Paging is
//! inferred only if the answer or the arguments support it: a list that is wrongly taken for complete loses rows.

use super::{By, Paging};
use crate::{Type, Types};

/// The structure of an answer, derived from a schema or from a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// Unknown.
    Any,
    /// Null.
    Null,
    /// A boolean.
    Bool,
    /// A number.
    Number,
    /// A string.
    Text,
    /// A list with items of this shape.
    Array(Box<Shape>),
    /// An object with these members.
    Object(Vec<(String, Shape)>),
}

/// An argument of the tool, as far as paging is concerned.
#[derive(Debug, Clone, Copy)]
pub struct Argument<'a> {
    /// Its name.
    pub name: &'a str,
    /// The JSON types that it admits.
    pub types: Types,
    /// The declared default number, otherwise the minimum.
    pub first: Option<i64>,
    /// The maximum number.
    pub maximum: Option<i64>,
    /// The description. Empty if unknown.
    pub says: &'a str,
}

/// Arguments that take a token from the previous page.
const CURSOR_ARGUMENTS: &[&str] = &[
    "cursor",
    "pagetoken",
    "nexttoken",
    "nextpagetoken",
    "continuationtoken",
    "continue",
    "pagecursor",
    "nextcursor",
    "paginationtoken",
    "marker",
    "scrollid",
    "bookmark",
    "startingtoken",
    "starttoken",
    "nextmarker",
    "skiptoken",
    "resumptiontoken",
    "pagestate",
    "nextpagecursor",
    "startcursor",
    "aftercursor",
    "pageafter",
    "after",
    "nextkey",
    "exclusivestartkey",
    "pagekey",
    "pageid",
    "token",
    "next",
    "position",
];
/// Arguments that take the number of a page.
const PAGE_ARGUMENTS: &[&str] = &["page", "pagenumber", "pageno", "pagenum", "pageindex", "currentpage", "pagenr", "skippages"];
/// Arguments that take the number of items to skip.
const OFFSET_ARGUMENTS: &[&str] =
    &["offset", "skip", "startat", "startindex", "pageoffset", "startposition", "startrow", "resultoffset", "start", "from"];
/// Arguments that take the id of the last item.
const LAST_ID_ARGUMENTS: &[&str] = &["startingafter", "afterid", "lastid", "sinceid"];
/// Arguments for the number of items per page, most common first.
const SIZE_ARGUMENTS: &[&str] = &[
    "limit",
    "perpage",
    "pagesize",
    "size",
    "pagelimit",
    "maxresults",
    "maxitems",
    "maxpagesize",
    "itemsperpage",
    "resultsperpage",
    "hitsperpage",
    "recordsperpage",
    "numresults",
    "top",
    "take",
    "rows",
    "count",
    "max",
    "first",
    "num",
];

/// Members that hold a token or a number of the next page, at any place in the answer.
const NEXT_TOKENS: &[&str] = &[
    "nextcursor",
    "nextpagetoken",
    "nexttoken",
    "nextpagecursor",
    "continuationtoken",
    "nextcontinuationtoken",
    "endcursor",
    "nextmarker",
    "nextbookmark",
    "bookmark",
    "scrollid",
    "nextpageid",
    "nextkey",
    "nextstartkey",
    "cursornext",
    "nextpagekey",
    "lastevaluatedkey",
    "nextpage",
    "nextpagenumber",
    "nextoffset",
    "nextstart",
    "nextskip",
];
/// Suffixes of names of tokens.
const POINTERS: &[&str] = &["token", "cursor", "pointer", "marker", "position", "bookmark", "continuation"];
/// Members that hold a link to the next page, at any place in the answer.
const NEXT_LINKS: &[&str] = &[
    "odatanextlink",
    "nextlink",
    "nexturl",
    "nexturi",
    "nextpageurl",
    "nextpageuri",
    "nextpagelink",
    "nexthref",
    "nextrecordsurl",
];
/// Members that refer to the next page if they are in an object about paging or directly in the answer.
const NEXT_WORDS: &[&str] = &["next", "continue", "cursor", "after"];
/// Names of objects about paging.
const CONTAINERS: &[&str] = &[
    "pagination",
    "paging",
    "meta",
    "metadata",
    "responsemetadata",
    "pageinfo",
    "page",
    "pages",
    "cursor",
    "cursors",
    "links",
    "listmeta",
    "next",
    "pager",
    "info",
    "resultinfo",
    "searchmetadata",
    "pageinformation",
    "search",
    "response",
];
const TOTALS: &[&str] = &[
    "total",
    "totalcount",
    "totalitems",
    "totalresults",
    "totalsize",
    "totalrecords",
    "totalelements",
    "totalhits",
    "totalentries",
    "totalrows",
    "odatacount",
    "numfound",
    "itemcount",
    "nbhits",
    "totalnumber",
];
const PAGES: &[&str] =
    &["totalpages", "pagecount", "lastpage", "numpages", "pages", "pagestotal", "totalpagecount", "nbpages", "noofpages"];
const PAGE_NUMBERS: &[&str] = &["page", "currentpage", "pagenumber", "pageindex", "pageno"];
const MORE: &[&str] = &[
    "hasmore",
    "hasnext",
    "hasnextpage",
    "hasmoreitems",
    "hasmoreresults",
    "hasmorepages",
    "more",
    "moreitems",
    "istruncated",
    "moreavailable",
    "moreitemsincollection",
    "truncated",
];
const LAST: &[&str] = &["last", "islast", "islastpage", "lastpagereached"];

/// Names of lists that never contain the items.
const BESIDE: &[&str] = &[
    "errors",
    "warnings",
    "messages",
    "links",
    "included",
    "facets",
    "aggregations",
    "includes",
    "expand",
    "sort",
    "filters",
    "columns",
    "fields",
    "notices",
    "debug",
    "suggestions",
    "tags",
    "warningmessages",
    "errormessages",
    "names",
];
/// Names of lists of items, most reliable first.
const ITEMS: &[&str] = &[
    "items",
    "data",
    "results",
    "records",
    "entries",
    "values",
    "value",
    "rows",
    "elements",
    "objects",
    "resources",
    "result",
    "list",
    "nodes",
    "hits",
    "documents",
    "docs",
    "content",
    "entities",
    "collection",
    "edges",
    "members",
];
/// Names of objects that contain a list of items.
const WRAPPERS: &[&str] =
    &["data", "result", "results", "response", "list", "payload", "body", "embedded", "hits", "page", "collection", "items"];

/// Maximum number of examined members, and maximum depth.
const MAX_MEMBERS: usize = 1000;
const MAX_DEPTH: usize = 4;

/// A member of an answer outside its lists.
struct Member<'s> {
    path: String,
    /// The member's name, and that of the containing object, which is empty for members of the answer itself.
    name: String,
    around: String,
    shape: &'s Shape,
}

/// Infers how the list in answers of this shape is paged. Returns `None` if that is unknown or the list is not paged. `tool` is
/// the name of the tool, which may indicate the name of the items. `has_links` is whether answers have a `Link` header.
pub fn infer(tool: &str, arguments: &[Argument<'_>], answer: &Shape, has_links: bool) -> Option<Paging> {
    let items = items(tool, answer)?;
    let mut members = Vec::new();
    collect(answer, "", "", 0, &mut members);
    let find = |names: &[&str], fits: &dyn Fn(&Member<'_>) -> bool| {
        names.iter().find_map(|name| members.iter().find(|member| member.name == *name && fits(member)))
    };
    let path = |member: Option<&Member<'_>>| member.map(|member| member.path.clone());
    let is_about_paging = |member: &Member<'_>| {
        member.around.is_empty() || CONTAINERS.contains(&member.around.as_str()) || WRAPPERS.contains(&member.around.as_str())
    };
    let is_number = |member: &Member<'_>| matches!(member.shape, Shape::Number | Shape::Any);
    let is_flag = |member: &Member<'_>| matches!(member.shape, Shape::Bool | Shape::Any);
    let counts = |member: &Member<'_>| is_number(member) && is_about_paging(member);
    let is_token = |member: &Member<'_>| !matches!(member.shape, Shape::Array(_) | Shape::Object(_) | Shape::Bool);
    let is_text = |member: &Member<'_>| matches!(member.shape, Shape::Text | Shape::Any | Shape::Null);
    let is_next_word = |member: &Member<'_>| {
        is_token(member) && (CONTAINERS.contains(&member.around.as_str()) || member.around.is_empty() && member.name != "after")
    };
    let href = members.iter().find(|member| member.around == "next" && member.name == "href" && is_text(member));

    // Some services return a token under the name of the argument that takes it.
    let taken = members.iter().find_map(|member| {
        let is_pointer = POINTERS.iter().any(|pointer| member.name.ends_with(pointer));
        let takes = |argument: &&Argument<'_>| argument.types.admits(Type::String) && plain(argument.name) == member.name;
        (is_pointer && is_token(member) && is_about_paging(member)).then(|| Some((member, arguments.iter().find(takes)?)))?
    });
    let token = find(NEXT_TOKENS, &|member| is_token(member) && is_about_paging(member))
        .or_else(|| taken.map(|(member, _)| member))
        // Some services give the next page as a cursor and as a link.
        .or_else(|| find(NEXT_WORDS, &|member| is_next_word(member) && member.around != "links"))
        .or_else(|| find(NEXT_WORDS, &is_next_word));
    let link = find(NEXT_LINKS, &is_text).or(href).or_else(|| find(&["next"], &|member| is_next_word(member) && is_text(member)));
    let mut paging = Paging {
        items,
        more: path(find(MORE, &|member| is_flag(member) && is_about_paging(member))),
        last: path(find(LAST, &|member| matches!(member.shape, Shape::Bool) && is_about_paging(member))),
        total: path(find(TOTALS, &counts)),
        pages: path(find(PAGES, &counts)),
        page: path(find(PAGE_NUMBERS, &counts)),
        ..Paging::default()
    };
    if paging.total.is_none() && members.iter().any(|member| member.name == "previous") {
        // `{"count": …, "next": …, "previous": …, "results": […]}`
        paging.total = path(find(&["count"], &|member| is_number(member) && member.around.is_empty()));
    }
    let size = size_argument(arguments);
    // Some schemas declare numbers as strings.
    let is_text_of_number = |argument: &Argument<'_>| argument.types.admits(Type::String);
    let text_size = argument(arguments, SIZE_ARGUMENTS, is_text_of_number);
    let text_page = argument(arguments, PAGE_ARGUMENTS, is_text_of_number).filter(|_| text_size.is_some());
    if let Some(size) = size.or(text_size.filter(|_| text_page.is_some())) {
        paging.size = Some(size.name.to_owned());
        paging.max_size = size.maximum.filter(|_| takes_number(size.types));
    }
    let announces = paging.more.is_some() || paging.last.is_some() || paging.total.is_some() || paging.pages.is_some();
    let number = |names: &[&str]| argument(arguments, names, |argument| takes_number(argument.types));
    let counts_pages = |argument: &Argument<'_>| says(argument, &["page number", "number of the page", "page index"]);
    let page =
        number(PAGE_ARGUMENTS).or_else(|| number(OFFSET_ARGUMENTS).filter(|argument| counts_pages(argument))).or(text_page);
    let offset = number(OFFSET_ARGUMENTS)
        .filter(|argument| !is_weak(argument.name) || paging.size.is_some() || announces)
        .filter(|argument| !counts_pages(argument) && !says(argument, &["timestamp"]));
    let cursor = argument(arguments, CURSOR_ARGUMENTS, |argument| {
        argument.types.admits(Type::String) || argument.types.admits(Type::Integer)
    });
    let cursor = taken.filter(|(member, _)| token.is_some_and(|token| token.path == member.path)).map(|(_, own)| own).or(cursor);
    let last_id = argument(arguments, LAST_ID_ARGUMENTS, |_| true);

    let mut by = |way: By, argument: Option<&Argument<'_>>, next: Option<&Member<'_>>| {
        paging.by = way;
        paging.argument = argument.map(|argument| argument.name.to_owned());
        paging.next = path(next);
    };
    match (cursor, token) {
        (Some(cursor), Some(token)) if !is_number_of_page(token) => by(By::Cursor, Some(cursor), Some(token)),
        _ if last_id.is_some() && paging.more.is_some() => {
            by(By::LastId, last_id, None);
            paging.id = Some("id".to_owned());
        }
        // If an answer has a token, a page number is usually meant for display.
        (Some(_), None) if link.is_some_and(|link| NEXT_LINKS.contains(&link.name.as_str())) => by(By::Link, None, link),
        _ if page.is_some() => {
            by(By::Page, page, token.or(link));
            // The number of pages to skip is 0 for the first page.
            let skipped = page.filter(|argument| plain(argument.name).starts_with("skip")).map(|_| 0);
            paging.first = page.and_then(|argument| argument.first).or(skipped);
        }
        _ if offset.is_some() => by(By::Offset, offset, token.filter(|token| is_number_of_page(token)).or(link)),
        _ if link.is_some_and(|link| NEXT_LINKS.contains(&link.name.as_str()) || is_next_word(link) || link.name == "href") => {
            by(By::Link, None, link);
        }
        _ if has_links && paging.items.is_empty() => by(By::Header, cursor.or(last_id), None),
        _ => return None,
    }
    Some(paging)
}

/// Infers the list of a tool without an argument for a page. The list is complete unless the answer announces more items. Returns
/// `None` if no list is found.
pub fn whole(tool: &str, arguments: &[Argument<'_>], answer: &Shape) -> Option<Paging> {
    if has_paging_argument(arguments) {
        return None;
    }
    // Announcements are found as in [`infer`], but without an argument that could request the next page.
    let found = infer(tool, &[], answer, false).map(|found| Paging { by: By::Link, argument: None, ..found });
    let size = size_argument(arguments);
    let (size, max_size) = (size.map(|size| size.name.to_owned()), size.and_then(|size| size.maximum));
    if let Some(found) = found {
        return Some(Paging { size, max_size, ..found });
    }
    let mut members = Vec::new();
    collect(answer, "", "", 0, &mut members);
    let announced = |names: &[&str]| {
        let member = members.iter().find(|member| names.contains(&member.name.as_str()));
        member.filter(|member| matches!(member.shape, Shape::Number | Shape::Bool | Shape::Text)).map(|m| m.path.clone())
    };
    Some(Paging {
        by: By::Link,
        items: items(tool, answer)?,
        next: announced(NEXT_TOKENS),
        more: announced(MORE),
        total: announced(TOTALS),
        size,
        max_size,
        ..Paging::default()
    })
}

/// Parts of names of members that may lead to another page.
const LEADS: &[&str] = &["next", "cursor", "token", "page", "after", "marker", "continu", "bookmark", "scroll", "offset"];

/// Infers the list in an answer without a token of a tool that takes one: services leave the token out on the last page. Returns
/// `None` if a member of the answer may lead to another page under a name that is not known.
pub fn last_page(tool: &str, arguments: &[Argument<'_>], answer: &Shape) -> Option<Paging> {
    let cursor = argument(arguments, CURSOR_ARGUMENTS, |argument| argument.types.admits(Type::String))?;
    let items = items(tool, answer)?;
    let mut members = Vec::new();
    collect(answer, "", "", 0, &mut members);
    let leads = |member: &Member<'_>| {
        LEADS.iter().any(|part| member.name.contains(part)) && !matches!(member.shape, Shape::Null | Shape::Bool | Shape::Number)
    };
    if members.iter().any(|member| member.path != items && !items.starts_with(&format!("{}.", member.path)) && leads(member)) {
        return None;
    }
    let find = |names: &[&str], shape: &Shape| {
        let found = members.iter().find(|member| names.contains(&member.name.as_str()) && member.shape == shape);
        found.map(|member| member.path.clone())
    };
    Some(Paging {
        by: By::Cursor,
        items,
        argument: Some(cursor.name.to_owned()),
        next: Some("nextCursor".to_owned()),
        more: find(MORE, &Shape::Bool),
        total: find(TOTALS, &Shape::Number),
        ..Paging::default()
    })
}

/// Whether an argument with this name selects a page.
pub fn asks_for_page(name: &str) -> bool {
    let name = plain(name);
    [CURSOR_ARGUMENTS, PAGE_ARGUMENTS, OFFSET_ARGUMENTS, LAST_ID_ARGUMENTS].iter().any(|names| names.contains(&name.as_str()))
}

/// Whether an argument selects a page, judged by its name and type. The list of such a tool is assumed to be paged unless its
/// answers indicate otherwise.
pub fn has_paging_argument(arguments: &[Argument<'_>]) -> bool {
    let has = |names: &[&str]| argument(arguments, names, |argument| !is_weak(argument.name)).is_some();
    has(CURSOR_ARGUMENTS)
        || has(PAGE_ARGUMENTS)
        || has(OFFSET_ARGUMENTS)
        || has(LAST_ID_ARGUMENTS)
        // An example is `after` together with `first`.
        || size_argument(arguments).is_some() && arguments.iter().any(|argument| asks_for_page(argument.name))
}

/// Returns the argument for the number of items per page.
pub fn size_argument<'a, 'b>(arguments: &'a [Argument<'b>]) -> Option<&'a Argument<'b>> {
    argument(arguments, SIZE_ARGUMENTS, |argument| takes_number(argument.types))
}

fn argument<'a, 'b>(
    arguments: &'a [Argument<'b>],
    names: &[&str],
    fits: impl Fn(&Argument<'_>) -> bool,
) -> Option<&'a Argument<'b>> {
    let plain: Vec<String> = arguments.iter().map(|argument| plain(argument.name)).collect();
    // This also covers names such as `searchCriteria[pageSize]`.
    let inner: Vec<Option<String>> = arguments.iter().map(|argument| inner_name(argument.name)).collect();
    let named = |name: &str| {
        let is_it = |at: &usize| {
            plain.get(*at).is_some_and(|own| own == name) || inner.get(*at).is_some_and(|own| own.as_deref() == Some(name))
        };
        (0..arguments.len()).filter(is_it).find_map(|at| arguments.get(at).filter(|argument| fits(argument)))
    };
    names.iter().find_map(|name| named(name))
}

fn takes_number(types: Types) -> bool {
    types.admits(Type::Integer)
}

/// Whether a name has a meaning outside paging as often as not.
fn is_weak(name: &str) -> bool {
    matches!(plain(name).as_str(), "start" | "from" | "token" | "next" | "position" | "after" | "marker" | "pageid" | "continue")
}

fn is_number_of_page(member: &Member<'_>) -> bool {
    matches!(member.name.as_str(), "nextpage" | "nextpagenumber" | "nextoffset" | "nextstart" | "nextskip")
        || matches!(member.shape, Shape::Number) && NEXT_WORDS.contains(&member.name.as_str())
}

/// Whether the description of an argument contains one of these words.
fn says(argument: &Argument<'_>, words: &[&str]) -> bool {
    let text = argument.says.to_lowercase();
    words.iter().any(|word| text.contains(word))
}

/// Returns the name in the last pair of brackets.
fn inner_name(name: &str) -> Option<String> {
    let (_, inner) = name.strip_suffix(']')?.rsplit_once('[')?;
    Some(plain(inner))
}

/// Returns a name in lower case, reduced to letters and digits.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

fn collect<'s>(shape: &'s Shape, path: &str, around: &str, depth: usize, members: &mut Vec<Member<'s>>) {
    let Shape::Object(own) = shape else { return };
    for (key, shape) in own {
        if members.len() >= MAX_MEMBERS {
            return;
        }
        let name = plain(key);
        let path = joined(path, key);
        if depth + 1 < MAX_DEPTH && (CONTAINERS.contains(&name.as_str()) || WRAPPERS.contains(&name.as_str())) {
            collect(shape, &path, &name, depth + 1, members);
        }
        members.push(Member { path, name, around: around.to_owned(), shape });
    }
}

fn joined(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// Returns the path of the items.
fn items(tool: &str, answer: &Shape) -> Option<String> {
    match answer {
        Shape::Array(_) => Some(String::new()),
        Shape::Object(members) => list_of(tool, members).or_else(|| {
            WRAPPERS.iter().find_map(|wrapper| {
                let (key, shape) = members.iter().find(|(key, _)| plain(key) == *wrapper)?;
                let Shape::Object(inner) = shape else { return None };
                Some(joined(key, &list_of(tool, inner)?))
            })
        }),
        _ => None,
    }
}

/// Returns the member of an object that is the list of items.
fn list_of(tool: &str, members: &[(String, Shape)]) -> Option<String> {
    let lists: Vec<(&String, &Shape)> =
        members.iter().filter(|(_, shape)| matches!(shape, Shape::Array(_))).map(|(key, shape)| (key, shape)).collect();
    let likely: Vec<&String> =
        lists.iter().filter(|(key, _)| !BESIDE.contains(&plain(key).as_str())).map(|(key, _)| *key).collect();
    let tool = plain(tool);
    if let [only] = likely.as_slice() {
        // The items may be in a member without a declared type, and the only list beside them.
        let is_usual = |key: &str| ITEMS.contains(&plain(key).as_str()) || tool.contains(plain(key).trim_end_matches('s'));
        let has_untyped = members.iter().any(|(key, shape)| matches!(shape, Shape::Any) && ITEMS.contains(&plain(key).as_str()));
        return (is_usual(only) || !has_untyped).then(|| (*only).clone());
    }
    let by_name = |names: &[&String]| {
        let named = |name: &&str| names.iter().find(|key| plain(key) == **name).map(|key| (*key).clone());
        ITEMS.iter().find_map(named)
    };
    let by_tool = |names: &[&String]| {
        let mut named = names.iter().filter(|key| key.len() > 2 && tool.contains(plain(key).trim_end_matches('s')));
        let first = named.next()?;
        named.next().is_none().then(|| (*first).clone())
    };
    if likely.is_empty() {
        // An example is a list of messages in the answer of a tool for messages.
        let all: Vec<&String> = lists.iter().map(|(key, _)| *key).collect();
        return by_tool(&all).or_else(|| if let [only] = all.as_slice() { Some((*only).clone()) } else { None });
    }
    by_tool(&likely).or_else(|| by_name(&likely))
}
