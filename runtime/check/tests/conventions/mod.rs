//! Paging conventions of services with public documentation, as data. Each service is a function of the arguments.

use ptc_catalog::{Annotations, Arg, Operation, Params, Tool, Type, Types};
use ptc_lisp::Value;

/// Number of items per page of every service.
pub(crate) const SIZE: usize = 30;

/// The paging convention of a published API.
pub(crate) struct Convention {
    pub(crate) name: &'static str,
    /// The arguments and their types.
    pub(crate) args: &'static [(&'static str, Type)],
    /// Computes the answer for the arguments, as JSON, and its `Link` header.
    pub(crate) answer: fn(&Service, &Value) -> (String, Option<String>),
    /// Whether pages are addressed by number and no total is announced. The removal of an item from an earlier page is then
    /// noticed only if pages are read again.
    pub(crate) is_blind: bool,
    /// Whether the answer contains the total number of items.
    pub(crate) has_total: bool,
    pub(crate) paging: &'static str,
}

pub(crate) const CONVENTIONS: &[Convention] = &[
    Convention {
        name: "github",
        args: &[("page", Type::Integer), ("per_page", Type::Integer)],
        answer: |service, args| {
            let page = number(args, "page", 1);
            let last = service.len().div_ceil(SIZE).max(1);
            let base = service.base;
            let link = |page: usize, rel: &str| format!("<{base}/items?per_page=30&page={page}>; rel=\"{rel}\"");
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
            let base = service.base;
            let link = |page: usize| format!("{base}/v2/items?page={page}");
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
            let (base, from) = (service.base, number(args, "$skip", 0));
            let next = if from + SIZE < service.len() {
                let skip = service.next_page(from / SIZE) * SIZE;
                format!(r#", "@odata.nextLink": "{base}/v1.0/items?%24skip={skip}&$top=30""#)
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
            // This service omits an empty list.
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
            let (base, from) = (service.base, number(args, "offset", 0));
            let next = if from + SIZE < service.len() {
                let offset = service.next_page(from / SIZE) * SIZE;
                format!(r#""{base}/v1/items?offset={offset}&limit=30""#)
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
            let (base, page) = (service.base, number(args, "page", 1));
            let next = if page * SIZE < service.len() {
                format!(r#""{base}/items/?page={}""#, service.next_page(page))
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
            let pages = service.total().div_ceil(SIZE);
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
        name: "microsoft graph with a token",
        args: &[("$top", Type::Integer), ("$skiptoken", Type::String), ("$filter", Type::String)],
        answer: |service, args| {
            let (base, from) = (service.base, service.after(args.get("$skiptoken")));
            let next = service.token(from).map_or_else(String::new, |next| {
                format!(r#", "@odata.nextLink": "{base}/v1.0/users?%24top=30&%24skiptoken={next}""#)
            });
            (format!(r#"{{"@odata.context": "x", "value": {}{next}}}"#, service.page(from)), None)
        },
        is_blind: false,
        has_total: false,
        paging: "by link\nitems value\nnext @odata.nextLink\nsize $top",
    },
    Convention {
        name: "gitlab keyset",
        args: &[("id_after", Type::String), ("per_page", Type::Integer)],
        answer: |service, args| {
            let (base, from) = (service.base, service.after(args.get("id_after")));
            let next = service.token(from);
            let header = next.map(|next| format!("<{base}/projects?id_after={next}&per_page=30>; rel=\"next\""));
            (service.page(from), header)
        },
        is_blind: false,
        has_total: false,
        paging: "by header\nitems \nargument id_after\nsize per_page",
    },
    Convention {
        name: "offset without announcement",
        args: &[("offset", Type::Integer), ("limit", Type::Integer)],
        answer: |service, args| (service.page(number(args, "offset", 0)), None),
        is_blind: true,
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
    Convention {
        name: "page count",
        args: &[("page", Type::Integer), ("size", Type::Integer)],
        answer: |service, args| service.counted_pages((number(args, "page", 1) - 1) * SIZE),
        is_blind: true,
        has_total: false,
        paging: "",
    },
    Convention {
        name: "page count from zero",
        args: &[("page", Type::Integer), ("size", Type::Integer)],
        answer: |service, args| service.counted_pages(number(args, "page", 0) * SIZE),
        is_blind: true,
        has_total: false,
        paging: "",
    },
    Convention {
        name: "page count with a declared first page",
        args: &[("page", Type::Integer), ("size", Type::Integer)],
        answer: |service, args| service.counted_pages((number(args, "page", 1) - 1) * SIZE),
        is_blind: true,
        has_total: false,
        paging: "by page\nitems rows\nargument page\npages pages\nfirst 1",
    },
    Convention {
        name: "page count with offsets",
        args: &[("offset", Type::Integer), ("size", Type::Integer)],
        answer: |service, args| service.counted_pages(number(args, "offset", 0)),
        is_blind: true,
        has_total: false,
        paging: "",
    },
];

/// A fault while a list is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    None,
    /// The second answer is repeated for every further page.
    Repeats,
    /// The first and the second page alternate.
    Alternates,
    /// Each announced next page is one that was already received.
    Loops,
    /// The first item is removed after the first answer.
    Shrinks,
    /// The announced total is too large by one.
    WrongTotal,
    /// The announced total and the announced number of pages leave out the items after the last full page.
    LowTotal,
    /// An item is inserted at the beginning after the first answer, so that pages by number repeat items.
    Grows,
    /// The third answer has no items but still announces a next page.
    EmptyPage,
    /// The second answer has another shape.
    OtherShape,
    /// Every request after the first fails.
    Fails,
}

pub(crate) const TROUBLES: &[Trouble] = &[
    Trouble::Repeats,
    Trouble::Alternates,
    Trouble::Loops,
    Trouble::Shrinks,
    Trouble::WrongTotal,
    Trouble::LowTotal,
    Trouble::Grows,
    Trouble::EmptyPage,
    Trouble::OtherShape,
    Trouble::Fails,
];

/// List lengths: empty, one item, exactly one page, one page and one item, exactly two pages, and many.
pub(crate) const COUNTS: [usize; 6] = [0, 1, SIZE, SIZE + 1, 2 * SIZE, 1000];

/// Whether a fault cannot be detected from the answers: if nothing is announced, an empty page is the end.
pub(crate) fn is_unnoticed(convention: &Convention, trouble: Trouble) -> bool {
    let is_by_number = convention.is_blind && convention.args.iter().any(|(name, _)| *name == "page");
    trouble == Trouble::EmptyPage && is_by_number && !announces_pages(convention)
}

/// Whether the number of pages is announced without the number of items.
pub(crate) fn announces_pages(convention: &Convention) -> bool {
    convention.name == "github" || convention.name.starts_with("page count")
}

pub(crate) struct Service {
    pub(crate) ids: Vec<usize>,
    pub(crate) trouble: Trouble,
    pub(crate) answered: usize,
    /// The origin of the service's links.
    pub(crate) base: &'static str,
}

impl Service {
    pub(crate) fn new(count: usize, trouble: Trouble, base: &'static str) -> Service {
        Service { ids: (0..count).collect(), trouble, answered: 0, base }
    }

    /// Answers a request and applies the fault to the list. Returns `None` if the request fails.
    pub(crate) fn respond(&mut self, convention: &Convention, args: &Value) -> Option<(String, Option<String>)> {
        if self.trouble == Trouble::Fails && self.answered > 0 {
            return None;
        }
        let answer = (convention.answer)(self, args);
        self.answered += 1;
        if self.trouble == Trouble::Shrinks && self.answered == 1 && !self.ids.is_empty() {
            self.ids.remove(0);
        }
        if self.trouble == Trouble::Grows && self.answered == 1 && !self.ids.is_empty() {
            self.ids.insert(0, self.ids.len());
        }
        Some(answer)
    }

    fn len(&self) -> usize {
        self.ids.len()
    }

    fn total(&self) -> usize {
        match self.trouble {
            Trouble::WrongTotal => self.len() + 1,
            Trouble::LowTotal => self.len() / SIZE * SIZE,
            _ => self.len(),
        }
    }

    /// Returns the items from an index on, as a JSON list.
    fn page(&self, from: usize) -> String {
        if self.trouble == Trouble::EmptyPage && self.answered == 2 {
            return "[]".to_owned();
        }
        if self.trouble == Trouble::OtherShape && self.answered == 1 {
            return r#"{"reason": "busy"}"#.to_owned();
        }
        let from = match self.trouble {
            Trouble::Repeats if self.answered > 1 => SIZE,
            Trouble::Alternates if self.answered > 1 => self.answered % 2 * SIZE,
            _ => from,
        };
        let rows: Vec<String> = self.ids.iter().skip(from).take(SIZE).map(|id| format!(r#"{{"id": "i{id}"}}"#)).collect();
        format!("[{}]", rows.join(","))
    }

    /// Returns the items from an index on, with the number of pages.
    fn counted_pages(&self, from: usize) -> (String, Option<String>) {
        (format!(r#"{{"rows": {}, "pages": {}}}"#, self.page(from), self.total().div_ceil(SIZE)), None)
    }

    fn next_page(&self, page: usize) -> usize {
        if self.trouble == Trouble::Loops && self.answered > 0 { page } else { page + 1 }
    }

    /// Returns the index after the item that a token names.
    fn after(&self, token: Option<&Value>) -> usize {
        let id = token.and_then(Value::as_str).and_then(|token| token.strip_prefix('i')?.parse().ok());
        let place = |id: usize| {
            let held = self.ids.iter().position(|own| *own == id).map(|at| at + 1);
            held.unwrap_or_else(|| self.ids.partition_point(|own| *own <= id))
        };
        id.map_or(0, place)
    }

    /// Returns the token for the index after a page.
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

pub(crate) fn number(args: &Value, name: &str, default: usize) -> usize {
    args.get(name).and_then(Value::as_int).and_then(|number| usize::try_from(number).ok()).unwrap_or(default)
}

/// Returns the tool of a convention, either an operation over HTTP or an MCP tool.
pub(crate) fn tool(convention: &Convention, is_operation: bool) -> Tool {
    let leaked = |text: &str| -> &'static str { text.to_owned().leak() };
    let arg = |(name, kind): &(&str, Type)| Arg {
        name: leaked(name),
        required: false,
        types: Types::from_types(&[*kind]),
        label: "",
        allowed: "",
    };
    let params: Vec<String> = convention.args.iter().map(|(name, _)| format!("query form explode - {name}")).collect();
    let operation = Operation { params: Params(params.join("\n").leak()), ..Operation::new("list", "/items") };
    Tool {
        name: "list",
        description: "",
        args: convention.args.iter().map(arg).collect::<Vec<_>>().leak(),
        closed: true,
        doc: "",
        definition: "{}",
        digest: "",
        annotations: Annotations::NONE,
        operation: is_operation.then(|| &*Box::leak(Box::new(operation))),
        paging: convention.paging,
        ..Tool::EMPTY
    }
}
