//! All pages of lists, as services with public documentation page them, and as they break.
//!
//! A service here is a function of the arguments. Whatever happens to the list while it is read, the result is all of it or an error.

#![expect(clippy::indexing_slicing, reason = "a test stops where anything is missing")]

use ptc_catalog::{Annotations, Arg, McpStdio, OpenApi, Operation, Params, Tool, Transport, Type, Types, Upstream};
use ptc_check::paging::{Pages, Progress, announced};
use ptc_lisp::{Value, json};

/// Items in a page of every service.
const SIZE: usize = 30;

/// A way in which a published API pages its lists.
struct Convention {
    name: &'static str,
    /// The arguments and their types.
    args: &'static [(&'static str, Type)],
    /// The answer for the arguments, as JSON, and its `Link` header.
    answer: fn(&Service, &Value) -> (String, Option<String>),
    /// Whether a page is addressed by its number, and nothing announces how many items there are: then an item that is taken away from
    /// before a page that comes later is not noticed.
    is_blind: bool,
    /// Whether the answer says how many items there are.
    has_total: bool,
    paging: &'static str,
}

const CONVENTIONS: &[Convention] = &[
    Convention {
        name: "github",
        args: &[("page", Type::Integer), ("per_page", Type::Integer)],
        answer: |service, args| {
            let page = number(args, "page", 1);
            let last = service.len().div_ceil(SIZE).max(1);
            let link = |page: usize, rel: &str| format!("<https://api.example.com/items?per_page=30&page={page}>; rel=\"{rel}\"");
            let (next, last_link) = (link(service.next_page(page), "next"), link(last, "last"));
            let header = if page < last { format!("{next}, {last_link}") } else { link(page.saturating_sub(1), "prev") };
            (service.page((page - 1) * SIZE), (last > 1).then_some(header))
        },
        is_blind: true,
        has_total: false,
        paging: "",
    },
    Convention {
        name: "stripe",
        args: &[("limit", Type::Integer), ("starting_after", Type::String), ("ending_before", Type::String)],
        answer: |service, args| {
            let from = service.after(args.get("starting_after"));
            let more = from + SIZE < service.len();
            (format!(r#"{{"object": "list", "url": "/v1/items", "has_more": {more}, "data": {}}}"#, service.page(from)), None)
        },
        is_blind: false,
        has_total: false,
        paging: "",
    },
    Convention {
        name: "slack",
        args: &[("cursor", Type::String), ("limit", Type::Integer)],
        answer: |service, args| {
            let from = service.after(args.get("cursor"));
            let next = service.token(from).unwrap_or_default();
            let body = format!(
                r#"{{"ok": true, "members": {}, "response_metadata": {{"next_cursor": "{next}"}}, "cache_ts": 1}}"#,
                service.page(from)
            );
            (body, None)
        },
        is_blind: false,
        has_total: false,
        paging: "",
    },
    Convention {
        name: "kubernetes",
        args: &[("continue", Type::String), ("limit", Type::Integer), ("labelSelector", Type::String)],
        answer: |service, args| {
            let from = service.after(args.get("continue"));
            let next = service.token(from).map_or_else(String::new, |next| format!(r#", "continue": "{next}""#));
            let body = format!(
                r#"{{"kind": "PodList", "apiVersion": "v1", "metadata": {{"resourceVersion": "7"{next}}}, "items": {}}}"#,
                service.page(from)
            );
            (body, None)
        },
        is_blind: false,
        has_total: false,
        paging: "by cursor\nitems items\nargument continue\nnext metadata.continue\nsize limit",
    },
    Convention {
        name: "digitalocean",
        args: &[("page", Type::Integer), ("per_page", Type::Integer)],
        answer: |service, args| {
            let page = number(args, "page", 1);
            let last = service.len().div_ceil(SIZE).max(1);
            let link = |page: usize| format!("https://api.example.com/v2/items?page={page}");
            let pages = if page < last {
                format!(r#"{{"next": "{}", "last": "{}"}}"#, link(service.next_page(page)), link(last))
            } else {
                "{}".to_owned()
            };
            let (rows, total) = (service.page((page - 1) * SIZE), service.total());
            (format!(r#"{{"items": {rows}, "links": {{"pages": {pages}}}, "meta": {{"total": {total}}}}}"#), None)
        },
        is_blind: false,
        has_total: true,
        paging: "by page\nitems items\nargument page\nnext links.pages.next\ntotal meta.total\nsize per_page\nfirst 1",
    },
    Convention {
        name: "microsoft graph",
        args: &[("$top", Type::Integer), ("$skip", Type::Integer), ("$filter", Type::String)],
        answer: |service, args| {
            let from = number(args, "$skip", 0);
            let next = if from + SIZE < service.len() {
                let skip = service.next_page(from / SIZE) * SIZE;
                format!(r#", "@odata.nextLink": "https://api.example.com/v1.0/items?%24skip={skip}&$top=30""#)
            } else {
                String::new()
            };
            let total = service.total();
            (format!(r#"{{"@odata.context": "x", "@odata.count": {total}, "value": {}{next}}}"#, service.page(from)), None)
        },
        is_blind: false,
        has_total: true,
        paging: "",
    },
    Convention {
        name: "google",
        args: &[("pageSize", Type::Integer), ("pageToken", Type::String)],
        answer: |service, args| {
            let from = service.after(args.get("pageToken"));
            let next = service.token(from).map_or_else(String::new, |next| format!(r#", "nextPageToken": "{next}""#));
            // A list without items is left out.
            let rows = if service.len() == 0 { String::new() } else { format!(r#", "files": {}"#, service.page(from)) };
            (format!(r#"{{"kind": "drive#fileList"{rows}{next}}}"#), None)
        },
        is_blind: false,
        has_total: false,
        paging: "by cursor\nitems files\nargument pageToken\nnext nextPageToken\nsize pageSize",
    },
    Convention {
        name: "spotify",
        args: &[("limit", Type::Integer), ("offset", Type::Integer)],
        answer: |service, args| {
            let from = number(args, "offset", 0);
            let next = if from + SIZE < service.len() {
                let offset = service.next_page(from / SIZE) * SIZE;
                format!(r#""https://api.example.com/v1/items?offset={offset}&limit=30""#)
            } else {
                "null".to_owned()
            };
            let (rows, total) = (service.page(from), service.total());
            (
                format!(
                    r#"{{"items": {rows}, "total": {total}, "limit": 30, "offset": {from}, "next": {next}, "previous": null}}"#
                ),
                None,
            )
        },
        is_blind: false,
        has_total: true,
        paging: "",
    },
    Convention {
        name: "django rest framework",
        args: &[("page", Type::Integer)],
        answer: |service, args| {
            let page = number(args, "page", 1);
            let next = if page * SIZE < service.len() {
                format!(r#""https://api.example.com/items/?page={}""#, service.next_page(page))
            } else {
                "null".to_owned()
            };
            let (rows, total) = (service.page((page - 1) * SIZE), service.total());
            (format!(r#"{{"count": {total}, "next": {next}, "previous": null, "results": {rows}}}"#), None)
        },
        is_blind: false,
        has_total: true,
        paging: "",
    },
    Convention {
        name: "the movie database",
        args: &[("page", Type::Integer), ("language", Type::String)],
        answer: |service, args| {
            let page = number(args, "page", 1);
            let (rows, total) = (service.page((page - 1) * SIZE), service.total());
            let pages = service.len().div_ceil(SIZE);
            (format!(r#"{{"page": {page}, "results": {rows}, "total_pages": {pages}, "total_results": {total}}}"#), None)
        },
        is_blind: false,
        has_total: true,
        paging: "",
    },
    Convention {
        name: "jira",
        args: &[("startAt", Type::Integer), ("maxResults", Type::Integer)],
        answer: |service, args| {
            let from = number(args, "startAt", 0);
            let (rows, total, last) = (service.page(from), service.total(), from + SIZE >= service.len());
            (format!(r#"{{"startAt": {from}, "maxResults": 30, "total": {total}, "isLast": {last}, "values": {rows}}}"#), None)
        },
        is_blind: false,
        has_total: true,
        paging: "",
    },
    Convention {
        name: "relay",
        args: &[("after", Type::String), ("first", Type::Integer)],
        answer: |service, args| {
            let from = service.after(args.get("after"));
            let (more, rows) = (from + SIZE < service.len(), service.page(from));
            let end = service.end_of(from).map_or_else(|| "null".to_owned(), |end| format!("\"{end}\""));
            (format!(r#"{{"nodes": {rows}, "pageInfo": {{"hasNextPage": {more}, "endCursor": {end}}}}}"#), None)
        },
        is_blind: false,
        has_total: false,
        paging: "",
    },
    Convention {
        name: "page number without announcement",
        args: &[("page", Type::Integer), ("size", Type::Integer)],
        answer: |service, args| (service.page((number(args, "page", 1) - 1) * SIZE), None),
        is_blind: true,
        has_total: false,
        paging: "",
    },
    Convention {
        name: "page number from zero",
        args: &[("page", Type::Integer), ("size", Type::Integer)],
        answer: |service, args| (format!(r#"{{"rows": {}}}"#, service.page(number(args, "page", 0) * SIZE)), None),
        is_blind: true,
        has_total: false,
        paging: "",
    },
];

/// What goes wrong while a list is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    None,
    /// The second answer comes again for every further page.
    Repeats,
    /// Whatever is announced as the next page has come before.
    Loops,
    /// After the first answer the first item is gone.
    Shrinks,
    /// The total is one more than there are.
    WrongTotal,
    /// The third answer has no items, and announces what it would.
    EmptyPage,
    /// The second answer is of another form.
    OtherShape,
}

const TROUBLES: &[Trouble] =
    &[Trouble::Repeats, Trouble::Loops, Trouble::Shrinks, Trouble::WrongTotal, Trouble::EmptyPage, Trouble::OtherShape];

struct Service {
    ids: Vec<usize>,
    trouble: Trouble,
    answered: usize,
}

impl Service {
    fn len(&self) -> usize {
        self.ids.len()
    }

    fn total(&self) -> usize {
        self.ids.len() + usize::from(self.trouble == Trouble::WrongTotal)
    }

    /// The items from a place on, as a JSON list.
    fn page(&self, from: usize) -> String {
        if self.trouble == Trouble::EmptyPage && self.answered == 2 {
            return "[]".to_owned();
        }
        if self.trouble == Trouble::OtherShape && self.answered == 1 {
            return r#"{"reason": "busy"}"#.to_owned();
        }
        let from = if self.trouble == Trouble::Repeats && self.answered > 1 { SIZE } else { from };
        let rows: Vec<String> = self.ids.iter().skip(from).take(SIZE).map(|id| format!(r#"{{"id": "i{id}"}}"#)).collect();
        format!("[{}]", rows.join(","))
    }

    fn next_page(&self, page: usize) -> usize {
        if self.trouble == Trouble::Loops && self.answered > 0 { page } else { page + 1 }
    }

    /// The place after the item that a token names.
    fn after(&self, token: Option<&Value>) -> usize {
        let id = token.and_then(Value::as_str).and_then(|token| token.strip_prefix('i')?.parse().ok());
        id.map_or(0, |id: usize| self.ids.partition_point(|own| *own <= id))
    }

    /// The token for the place after a page.
    fn token(&self, from: usize) -> Option<String> {
        if from + SIZE >= self.len() {
            return None;
        }
        self.end_of(from)
    }

    fn end_of(&self, from: usize) -> Option<String> {
        let from = if self.trouble == Trouble::Loops && self.answered > 0 { 0 } else { from };
        let last = self.ids.get(from..)?.iter().take(SIZE).next_back()?;
        Some(format!("i{last}"))
    }
}

fn number(args: &Value, name: &str, default: usize) -> usize {
    args.get(name).and_then(Value::as_int).and_then(|number| usize::try_from(number).ok()).unwrap_or(default)
}

fn upstream(convention: &Convention) -> &'static Upstream {
    let leaked = |text: &str| -> &'static str { text.to_owned().leak() };
    let arg = |(name, kind): &(&str, Type)| Arg {
        name: leaked(name),
        required: false,
        types: Types::of(&[*kind]),
        label: "",
        allowed: "",
    };
    let is_http = convention.name == "github";
    let params: Vec<String> = convention.args.iter().map(|(name, _)| format!("query form explode - {name}")).collect();
    let operation = Operation { id: "list", path: "/items", params: Params(params.join("\n").leak()), default_args: &[] };
    let tool = Tool {
        name: "list",
        description: "",
        args: convention.args.iter().map(arg).collect::<Vec<_>>().leak(),
        closed: true,
        doc: "",
        definition: "{}",
        digest: "",
        annotations: Annotations::NONE,
        operation: is_http.then(|| &*Box::leak(Box::new(operation))),
        paging: convention.paging,
    };
    let transport = if is_http {
        Transport::OpenApi(OpenApi::new("https://API.example.com:443/"))
    } else {
        Transport::McpStdio(McpStdio::new("x"))
    };
    Box::leak(Box::new(Upstream { name: "service", description: "", transport, tools: vec![tool].leak() }))
}

/// Reads all pages; the ids of the items, or the error.
fn read(convention: &Convention, count: usize, trouble: Trouble, max: Option<usize>) -> Result<(Vec<usize>, usize), String> {
    let upstream = upstream(convention);
    let mut service = Service { ids: (0..count).collect(), trouble, answered: 0 };
    let mut pages = Pages::new(upstream, &upstream.tools[0], Value::nil(), max).map_err(|error| error.message)?;
    let mut due = vec![pages.first()];
    while let Some(args) = (!due.is_empty()).then(|| due.remove(0)) {
        assert!(service.answered < 200, "{}: too many calls", convention.name);
        let (text, header) = (convention.answer)(&service, &args);
        let answer = json::decode(text.as_bytes()).unwrap_or_else(|fault| panic!("{}: {text}: {fault}", convention.name));
        service.answered += 1;
        if trouble == Trouble::Shrinks && service.answered == 1 && !service.ids.is_empty() {
            service.ids.remove(0);
        }
        match pages.receive(&answer, header.as_deref(), 1000).map_err(|error| error.message)? {
            Progress::Done => {
                assert!(due.is_empty(), "{}: requests are left at the end", convention.name);
                let id = |item: &Value| item.get("id")?.as_str()?.strip_prefix('i')?.parse().ok();
                let ids = pages.into_items().iter().map(|item| id(item).expect("an id")).collect();
                return Ok((ids, service.answered));
            }
            Progress::Next(args) => due.push(args),
            Progress::Rest(requests) => due.extend(requests),
        }
    }
    panic!("{}: neither an end nor a request", convention.name)
}

const COUNTS: [usize; 6] = [0, 1, SIZE, SIZE + 1, 2 * SIZE, 1000];

#[test]
fn every_list_is_whole() {
    for convention in CONVENTIONS {
        for count in COUNTS {
            let (ids, _) = read(convention, count, Trouble::None, None)
                .unwrap_or_else(|error| panic!("{} with {count} items: {error}", convention.name));
            assert_eq!(ids, (0..count).collect::<Vec<_>>(), "{} with {count} items", convention.name);
        }
    }
}

#[test]
fn list_that_breaks_while_it_is_read_is_whole_or_an_error() {
    for convention in CONVENTIONS {
        for trouble in TROUBLES {
            let mut errors = 0;
            for count in COUNTS {
                // Where nothing announces pages, one without items is the end.
                let is_end = *trouble == Trouble::EmptyPage && convention.is_blind && convention.name != "github";
                if *trouble == Trouble::Shrinks && convention.is_blind || is_end {
                    continue;
                }
                match read(convention, count, *trouble, None) {
                    Ok((ids, _)) => {
                        assert_eq!(ids, (0..count).collect::<Vec<_>>(), "{} with {count} items: {trouble:?}", convention.name);
                    }
                    Err(_) => errors += 1,
                }
            }
            let is_seen = match trouble {
                // A token that names the last item finds the next ones all the same, whatever the list has lost.
                Trouble::WrongTotal | Trouble::Shrinks => convention.has_total,
                Trouble::EmptyPage => !convention.is_blind,
                // Numbers of pages are counted here, and ids are those of the items.
                Trouble::Loops => !convention
                    .args
                    .iter()
                    .any(|(name, _)| matches!(*name, "page" | "offset" | "startAt" | "$skip" | "starting_after")),
                _ => true,
            };
            assert!(!is_seen || errors > 0, "{}: {trouble:?} is not noticed", convention.name);
        }
    }
}

#[test]
fn max_ends_the_list_with_as_few_calls_as_needed() {
    for convention in CONVENTIONS {
        for (max, calls) in [(1, 1), (SIZE, 1), (SIZE + 1, 2), (5 * SIZE, 5)] {
            let (ids, answered) = read(convention, 1000, Trouble::None, Some(max)).expect(convention.name);
            assert_eq!(ids, (0..max).collect::<Vec<_>>(), "{}", convention.name);
            // To find out whether the first page has the number 0 or 1 may take another call.
            assert!(answered <= calls + usize::from(convention.is_blind), "{}: {answered} calls for {max}", convention.name);
        }
    }
}

#[test]
fn budget_that_does_not_suffice_is_an_error_after_the_first_page() {
    let convention = CONVENTIONS.iter().find(|convention| convention.name == "the movie database").unwrap();
    let upstream = upstream(convention);
    let service = Service { ids: (0..1000).collect(), trouble: Trouble::None, answered: 0 };
    let mut pages = Pages::new(upstream, &upstream.tools[0], Value::nil(), None).unwrap();
    let (text, _) = (convention.answer)(&service, &pages.first());
    let error = pages.receive(&json::decode(text.as_bytes()).unwrap(), None, 20).unwrap_err();
    let wanted =
        "tool/all: service/list: the list has 34 pages with 1000 items, and 20 calls are left after the first: 13 are missing";
    assert_eq!(error.message, wanted);
    assert_eq!(error.hint, "narrow the list by its arguments (language), or stop after n items with :max n");
}

#[test]
fn answer_that_announces_more_is_known() {
    for convention in CONVENTIONS.iter().filter(|convention| !convention.is_blind || convention.name == "github") {
        let upstream = upstream(convention);
        let tool = &upstream.tools[0];
        for (count, is_more) in [(0, false), (SIZE, false), (200, true)] {
            let service = Service { ids: (0..count).collect(), trouble: Trouble::None, answered: 0 };
            let (text, header) = (convention.answer)(&service, &Value::map([]));
            let answer = json::decode(text.as_bytes()).unwrap();
            let found = announced(upstream, tool, &Value::map([]), &answer, header.as_deref());
            assert_eq!(found.is_some(), is_more, "{} with {count} items: {found:?}", convention.name);
            if let (Some(found), true) = (found, convention.has_total) {
                assert_eq!((found.pages, found.items), (Some(7), SIZE), "{}", convention.name);
            }
        }
    }
}

#[test]
fn link_to_another_origin_is_not_followed() {
    let convention = &CONVENTIONS[0];
    let upstream = upstream(convention);
    let header = "<https://elsewhere.example.com/items?page=2>; rel=\"next\"";
    // The page is asked for by its number, which the link only announces.
    let mut pages = Pages::new(upstream, &upstream.tools[0], Value::nil(), None).unwrap();
    pages.first();
    let answer = json::decode(br#"[{"id": 1}]"#).unwrap();
    assert!(matches!(pages.receive(&answer, Some(header), 9), Ok(Progress::Next(_))));
    let by_link = Tool { paging: "by header\nitems \nargument page", ..tool_like(&upstream.tools[0]) };
    let mut pages = Pages::new(upstream, Box::leak(Box::new(by_link)), Value::nil(), None).unwrap();
    pages.first();
    let error = pages.receive(&answer, Some(header), 9).unwrap_err();
    let wanted = "the link to the next page cannot be followed: it leads to another origin, https://elsewhere.example.com, after 1 page \
                  with 1 items";
    assert_eq!(error.message, format!("tool/all: service/list: {wanted}"));
}

fn tool_like(tool: &'static Tool) -> Tool {
    Tool {
        name: tool.name,
        description: tool.description,
        args: tool.args,
        closed: tool.closed,
        doc: tool.doc,
        definition: tool.definition,
        digest: tool.digest,
        annotations: tool.annotations,
        operation: tool.operation,
        paging: tool.paging,
    }
}
