//! Reads all pages of lists with the conventions of services with public documentation, and with faults.
//!
//! Each service is a function of the arguments. Whatever happens to the list while it is read, the result must be the complete
//! list or an error.

#![expect(clippy::indexing_slicing, reason = "a test panics on any error")]

use crate::conventions::{
    self, CONVENTIONS, COUNTS, Convention, SIZE, Service, TROUBLES, Trouble, announces_pages, is_unnoticed,
};
use ptc_catalog::{McpStdio, OpenApi, Tool, Tools, Transport, Upstream};
use ptc_check::paging::{Pages, Progress, announced};
use ptc_lisp::{Value, json};

const BASE: &str = "https://api.example.com";

fn upstream(convention: &Convention) -> &'static Upstream {
    let is_http = convention.name == "github" || convention.paging.contains("link") || convention.paging.contains("header");
    let transport = if is_http {
        Transport::OpenApi(OpenApi::new("https://API.example.com:443/"))
    } else {
        Transport::McpStdio(McpStdio::new("x"))
    };
    let tools = vec![conventions::tool(convention, is_http)].leak();
    Box::leak(Box::new(Upstream { name: "service", description: "", transport, tools: Tools::table(tools) }))
}

/// Reads all pages. Returns the ids of the items and the number of calls, or the error.
fn read(convention: &Convention, count: usize, trouble: Trouble, max: Option<usize>) -> Result<(Vec<usize>, usize), String> {
    let upstream = upstream(convention);
    let mut service = Service::new(count, trouble, BASE);
    let mut pages = Pages::new(upstream, &upstream.tools[0], Value::nil(), max).map_err(|error| error.message)?;
    let mut due = vec![pages.first()];
    while let Some(args) = (!due.is_empty()).then(|| due.remove(0)) {
        assert!(service.answered < 200, "{}: too many calls", convention.name);
        let (text, header) = service.respond(convention, &args).ok_or("failed")?;
        let answer = json::decode(text.as_bytes()).unwrap_or_else(|fault| panic!("{}: {text}: {fault}", convention.name));
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

fn is_by_number(convention: &Convention) -> bool {
    convention.args.iter().any(|(name, _)| matches!(*name, "page" | "offset" | "startAt" | "$skip"))
}

/// Reads pages of a tool with the same budget of calls after each answer.
fn read_with_calls(tool: Tool, answers: &[&str], calls_left: usize) -> Result<usize, String> {
    read_pages(tool, "{}", answers, |_| calls_left)
}

/// Reads pages of a tool with a budget of calls after the first answer.
fn read_with_budget(tool: Tool, answers: &[&str], calls: usize) -> Result<usize, String> {
    read_pages(tool, "{}", answers, |at| calls - at)
}

/// Reads pages of a tool with this paging, as the texts of the answers. Returns the number of items or the message.
fn read_answers(tool: Tool, args: &str, answers: &[&str]) -> Result<usize, String> {
    read_pages(tool, args, answers, |_| 1000)
}

fn read_pages(tool: Tool, args: &str, answers: &[&str], calls_left: impl Fn(usize) -> usize) -> Result<usize, String> {
    let template = upstream(&CONVENTIONS[0]);
    let tool: &'static Tool = Box::leak(Box::new(tool));
    let args = json::decode(args.as_bytes()).expect("JSON");
    let mut pages = Pages::new(template, tool, args, None).map_err(|error| error.message)?;
    let mut due = 1;
    pages.first();
    for (at, text) in answers.iter().enumerate() {
        assert!(due > 0, "no request is left for {text}");
        due -= 1;
        match pages.receive(&json::decode(text.as_bytes()).expect("JSON"), None, calls_left(at)).map_err(|error| error.message)? {
            Progress::Done => return Ok(pages.into_items().len()),
            Progress::Next(_) => due += 1,
            Progress::Rest(requests) => due += requests.len(),
        }
    }
    Err(format!("{due} requests are left"))
}

/// A tool with pages of two by number, and with a total.
fn counted() -> Tool {
    let convention = CONVENTIONS.iter().find(|convention| convention.name == "page number without announcement");
    let convention = convention.expect("it is in the table");
    Tool { paging: "by page\nitems rows\nargument page\ntotal total\nfirst 1\nsize size", ..conventions::tool(convention, false) }
}

#[test]
fn total_at_a_full_page_is_checked_by_one_more_request() {
    let [first, second, none] =
        [r#"{"rows": [1, 2], "total": 4}"#, r#"{"rows": [3, 4], "total": 4}"#, r#"{"rows": [], "total": 4}"#];
    assert_eq!(read_answers(counted(), "{}", &[first, second, none]), Ok(4));
    // Other answers that say that there is no such page.
    for end in [r#"{"message": "no such page"}"#, second] {
        assert_eq!(read_answers(counted(), "{}", &[first, second, end]), Ok(4), "{end}");
    }
    let found = read_answers(counted(), "{}", &[first, second, r#"{"rows": [5], "total": 4}"#]).unwrap_err();
    assert!(found.ends_with("there are more items after the 4 announced items, after 2 pages with 4 items"), "{found}");
    // A page that is not full is the last one, as is one that is smaller than the requested size.
    assert!(read_answers(counted(), "{}", &[first, r#"{"rows": [3], "total": 3}"#]).is_err(), "the total changed");
    let [first, short] = [r#"{"rows": [1, 2], "total": 3}"#, r#"{"rows": [3], "total": 3}"#];
    assert_eq!(read_answers(counted(), "{}", &[first, short]), Ok(3));
    assert_eq!(read_answers(counted(), r#"{"size": 10}"#, &[r#"{"rows": [1, 2], "total": 2}"#]), Ok(2));
}

/// Returns pages that wait for the answer behind the counted end.
fn probing(tool: Tool, answer: &str) -> Pages {
    let mut pages =
        Pages::new(upstream(&CONVENTIONS[0]), Box::leak(Box::new(tool)), Value::nil(), None).expect("a tool that reads");
    pages.first();
    assert!(pages.end_with_failure("tool_error", "no such page", Some(404), 9).is_none(), "the first page");
    assert!(matches!(pages.receive(&json::decode(answer.as_bytes()).expect("JSON"), None, 9), Ok(Progress::Next(_))));
    pages
}

#[test]
fn not_found_after_the_last_page_ends_the_list() {
    let full = r#"{"rows": [1, 2], "total": 2}"#;
    let ended = |reason, message, status| probing(counted(), full).end_with_failure(reason, message, status, 9);
    for status in [400, 404, 416, 422] {
        assert!(matches!(ended("tool_error", "", Some(status)), Some(Ok(Progress::Done))), "{status}");
    }
    for status in [401, 403, 409, 410, 429, 500, 503] {
        assert!(ended("tool_error", "no such page", Some(status)).is_none(), "{status}");
    }
    // MCP tools describe the failure in words.
    for message in ["Invalid page", "HTTP 404", "Not found", "The offset is out of range"] {
        assert!(matches!(ended("tool_error", message, None), Some(Ok(Progress::Done))), "{message}");
    }
    for message in ["page 3: status 503", "HTTP 429: too many pages", "database is locked", ""] {
        assert!(ended("tool_error", message, None).is_none(), "{message}");
    }
    for reason in ["timeout", "upstream_unavailable", "upstream_error"] {
        assert!(ended(reason, "no such page", None).is_none(), "{reason}");
    }
    // The items are compared with the total after the failure, too.
    let of_pages =
        Tool { paging: "by page\nitems rows\nargument page\ntotal total\npages pages\npage page\nfirst 1", ..counted() };
    let mut pages = probing(of_pages, r#"{"rows": [1, 2], "total": 5, "page": 1, "pages": 1}"#);
    let ended = pages.end_with_failure("tool_error", "", Some(404), 9).expect("the end").expect_err("three items are missing");
    assert!(ended.message.contains("5 items were announced, and 2 are there at the end"), "{}", ended.message);
    // Without budget for the request, the announced total is trusted.
    assert_eq!(read_with_calls(counted(), &[full], 0), Ok(2));
}

#[test]
fn total_is_compared_if_the_program_names_the_first_page() {
    let [first, second] = [r#"{"rows": [1, 2], "total": 3}"#, r#"{"rows": [], "total": 3}"#];
    for args in [r#"{"page": 1}"#, r#"{"page": "1"}"#, "{}"] {
        let found = read_answers(counted(), args, &[first, second]).unwrap_err();
        assert!(found.contains("a page has no items, and the page before announced some"), "{args}: {found}");
    }
    // From page 2 on the items of the first page count as read.
    let [second, third] = [r#"{"rows": [3, 4], "total": 5}"#, r#"{"rows": [5], "total": 5}"#];
    assert_eq!(read_answers(counted(), r#"{"page": 2}"#, &[second, third]), Ok(3));
    let missing = [second, r#"{"rows": [], "total": 5}"#];
    assert!(read_answers(counted(), r#"{"page": 2}"#, &missing).is_err());
}

/// A tool with pages by offset, in which nothing but a flag announces more.
fn flagged() -> Tool {
    let convention = CONVENTIONS.iter().find(|convention| convention.name == "stripe").expect("it is in the table");
    Tool { paging: "by cursor\nitems rows\nargument starting_after\nnext next", ..conventions::tool(convention, false) }
}

#[test]
fn item_on_two_pages_is_an_error_if_ids_are_unique() {
    let row = |id: &str, name: &str| format!(r#"{{"{id}, "name": "{name}"}}"#);
    let page = |next: &str, rows: &[String]| format!(r#"{{"rows": [{}], "next": {next}}}"#, rows.join(","));
    let read = |id: &str, pages: &[&[(usize, &str)]]| {
        let text = |at: usize, rows: &[(usize, &str)]| {
            let rows: Vec<String> = rows.iter().map(|(value, name)| row(&format!("{id}\": {value}"), name)).collect();
            page(&if at + 1 < pages.len() { format!("\"t{at}\"") } else { "null".to_owned() }, &rows)
        };
        let texts: Vec<String> = pages.iter().enumerate().map(|(at, rows)| text(at, rows)).collect();
        read_answers(flagged(), "{}", &texts.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let first: &[(usize, &str)] = &[(1, "a"), (2, "b")];
    for second in [&[(1, "a"), (3, "c")], &[(2, "changed"), (3, "c")], &[(3, "c"), (2, "b")]] {
        for id in ["id", "_id", "uuid"] {
            let found = read(id, &[first, second]).unwrap_err();
            assert!(found.contains("a page has an item of an earlier page"), "{second:?}: {found}");
        }
        // A key may name several settings.
        assert_eq!(read("key", &[first, second]), Ok(4), "{second:?}");
        // One page has two items with the same id, so that ids do not identify items here: songs of a playlist, lines of an
        // order.
        for third in [&[(5, "x"), (5, "x")], &[(5, "x"), (5, "y")]] {
            assert_eq!(read("id", &[first, second, third]), Ok(6), "{second:?}, {third:?}");
        }
    }
    // An item with the id of an earlier one may be another one, unless it is at the boundary.
    assert_eq!(read("id", &[first, &[(3, "c"), (1, "other")]]), Ok(4));
    assert_eq!(read("id", &[&[(1, "a"), (1, "a")], &[(1, "a"), (2, "b")]]), Ok(4));
    // Items without an id may be equal.
    let [first, second] =
        [r#"{"rows": [{"kind": "a"}, {"kind": "b"}], "next": "t"}"#, r#"{"rows": [{"kind": "b"}], "next": null}"#];
    assert_eq!(read_answers(flagged(), "{}", &[first, second]), Ok(3));
}

/// A tool with pages by number, in which nothing is announced.
fn unannounced() -> Tool {
    Tool { paging: "by page\nitems rows\nargument page\nfirst 1", ..counted() }
}

#[test]
fn list_without_announcements_is_read_again() {
    let rows = |ids: &[usize]| {
        let rows: Vec<String> = ids.iter().map(|id| format!(r#"{{"id": {id}}}"#)).collect();
        format!(r#"{{"rows": [{}]}}"#, rows.join(","))
    };
    let read = |pages: &[&[usize]], calls| {
        let texts: Vec<String> = pages.iter().map(|ids| rows(ids)).collect();
        read_with_calls(unannounced(), &texts.iter().map(String::as_str).collect::<Vec<_>>(), calls)
    };
    // The short last page needs no second reading.
    assert_eq!(read(&[&[1, 2], &[3, 4], &[5], &[], &[1, 2], &[3, 4]], 9), Ok(5));
    // Only the empty page shows that a full page is the last one.
    assert_eq!(read(&[&[1, 2], &[3, 4], &[], &[1, 2], &[3, 4]], 9), Ok(4));
    assert_eq!(read(&[&[1, 2], &[], &[1, 2]], 9), Ok(2));
    assert_eq!(read(&[&[]], 9), Ok(0));
    // Item 3 was removed from page 2 after it was read, so that 5 is now in page 2.
    let found = read(&[&[1, 2], &[3, 4], &[6], &[], &[1, 2], &[4, 5]], 9).unwrap_err();
    let wanted = "page 2 has other items when it is read again: the list changed while it was read, after 4 pages with 5 items";
    assert!(found.ends_with(wanted), "{found}");
    let found = read(&[&[1, 2], &[], &[2]], 9).unwrap_err();
    assert!(found.contains("the first page has other items when it is read again"), "{found}");
    let found = read(&[&[1, 2], &[3, 4], &[5], &[]], 1).unwrap_err();
    assert!(found.contains("no total is announced, so that 2 of its pages have to be read again"), "{found}");
    assert!(found.contains("and the budget of calls has 1 left"), "{found}");
}

#[test]
fn result_without_token_is_the_last_page_if_the_tool_takes_one() {
    let convention = CONVENTIONS.iter().find(|convention| convention.name == "slack").unwrap();
    let tool = || conventions::tool(convention, false);
    for text in [r#"{"files": [1, 2]}"#, r#"{"files": [1, 2], "count": 2}"#, "[1, 2]", r#"{"files": [1, 2], "nextCursor": null}"#]
    {
        assert_eq!(read_answers(tool(), "{}", &[text]), Ok(2), "{text}");
    }
    for text in
        [r#"{"files": [1, 2], "continueAt": "x"}"#, r#"{"files": [1, 2], "has_more": true}"#, r#"{"files": [1], "total": 2}"#]
    {
        assert!(read_answers(tool(), "{}", &[text]).is_err(), "{text}");
    }
}

#[test]
fn number_of_the_first_page_is_taken_from_the_input_schema() {
    let convention = CONVENTIONS.iter().find(|convention| convention.name == "page number without announcement").unwrap();
    let declared = r#"{"inputSchema": {"properties": {"page": {"type": "integer", "minimum": 1}}}}"#;
    let tool = |definition| Tool { definition, ..conventions::tool(convention, false) };
    // Without the schema, page 1 is requested first, which may be the first or the second page.
    assert_eq!(read_answers(tool(declared), "{}", &["[1, 2]", "[3]", "[]", "[1, 2]"]), Ok(3));
    assert_eq!(read_answers(tool("{}"), "{}", &["[1, 2]", "[1, 2]", "[3]", "[]", "[1, 2]"]), Ok(3));
}

#[test]
fn every_list_is_complete() {
    for convention in CONVENTIONS {
        for count in COUNTS {
            let (ids, _) = read(convention, count, Trouble::None, None)
                .unwrap_or_else(|error| panic!("{} with {count} items: {error}", convention.name));
            assert_eq!(ids, (0..count).collect::<Vec<_>>(), "{} with {count} items", convention.name);
        }
    }
}

#[test]
fn failure_during_a_list_gives_all_items_or_an_error() {
    for convention in CONVENTIONS {
        for trouble in TROUBLES {
            let mut errors = 0;
            for count in COUNTS {
                if is_unnoticed(convention, *trouble) {
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
                Trouble::WrongTotal | Trouble::LowTotal => convention.has_total,
                // A token that names the last item still finds the following ones.
                Trouble::Grows | Trouble::Shrinks => is_by_number(convention),
                Trouble::EmptyPage => !convention.is_blind,
                // Page numbers are counted by the reader, and ids come from the items, so that a loop is impossible.
                Trouble::Loops => !is_by_number(convention) && convention.args.iter().all(|(name, _)| *name != "starting_after"),
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
            // Another call may be needed to find out whether the first page has the number 0 or 1, or whether the list has
            // changed.
            assert!(answered <= calls + usize::from(convention.is_blind), "{}: {answered} calls for {max}", convention.name);
        }
    }
}

#[test]
fn max_above_the_length_needs_as_many_calls_as_the_list() {
    for convention in CONVENTIONS {
        for count in COUNTS {
            let whole = read(convention, count, Trouble::None, None);
            for max in [count + 1, 2000] {
                assert_eq!(
                    read(convention, count, Trouble::None, Some(max)),
                    whole,
                    "{} with {count} items: {max}",
                    convention.name
                );
            }
        }
    }
}

#[test]
fn list_with_announced_pages_takes_few_additional_calls() {
    for convention in CONVENTIONS.iter().filter(|convention| announces_pages(convention) && convention.args[0].0 == "page") {
        let (ids, calls) = read(convention, 1000, Trouble::None, None).expect(convention.name);
        // The number of the first page and up to three pages that are read again.
        assert!(ids.len() == 1000 && calls <= 34 + 3, "{}: {calls} calls", convention.name);
    }
}

#[test]
fn pages_are_read_again_if_the_first_page_number_was_unknown() {
    let tool = || Tool { paging: "by page\nitems rows\nargument page\npages pages", ..counted() };
    let page = |ids: [usize; 2]| format!(r#"{{"rows": [{{"id": {}}}, {{"id": {}}}], "pages": 4}}"#, ids[0], ids[1]);
    let read = |second_again: [usize; 2]| {
        // The last page is read before the third one, and the page behind the end is requested once.
        let pages = [[1, 2], [3, 4], [7, 8], [5, 6]].map(page);
        let again = [[1, 2], second_again, [7, 8]].map(page);
        let none = [r#"{"rows": [], "pages": 4}"#.to_owned()];
        let texts: Vec<&str> = pages.iter().chain(&none).chain(&again).map(String::as_str).collect();
        read_answers(tool(), "{}", &texts)
    };
    assert_eq!(read([3, 4]), Ok(8));
    let found = read([4, 5]).unwrap_err();
    assert!(found.contains("page 1 has other items when it is read again"), "{found}");
}

#[test]
fn page_after_the_end_does_not_take_a_call_from_another_page() {
    let counted = || Tool { paging: "by page\nitems rows\nargument page\npages pages\nfirst 1", ..counted() };
    let [first, last, none] = [r#"{"rows": [1, 2], "pages": 2}"#, r#"{"rows": [3, 4], "pages": 2}"#, r#"{"rows": []}"#];
    // The first page is read again.
    assert_eq!(read_with_budget(counted(), &[first, last, first], 2), Ok(4));
    assert_eq!(read_with_budget(counted(), &[first, last, none, first], 3), Ok(4));
}

#[test]
fn insufficient_budget_is_an_error_after_the_first_page() {
    let convention = CONVENTIONS.iter().find(|convention| convention.name == "the movie database").unwrap();
    let upstream = upstream(convention);
    let service = Service::new(1000, Trouble::None, BASE);
    let mut pages = Pages::new(upstream, &upstream.tools[0], Value::nil(), None).unwrap();
    let (text, _) = (convention.answer)(&service, &pages.first());
    let error = pages.receive(&json::decode(text.as_bytes()).unwrap(), None, 20).unwrap_err();
    let wanted =
        "tool/all: service/list: the list has 34 pages with 1000 items, and 20 calls are left after the first: 13 are missing";
    assert_eq!(error.message, wanted);
    let mut pages = Pages::new(upstream, &upstream.tools[0], Value::nil(), None).unwrap();
    let (text, _) = (convention.answer)(&service, &pages.first());
    let one = pages.receive(&json::decode(text.as_bytes()).unwrap(), None, 32).unwrap_err();
    assert!(one.message.ends_with("32 calls are left after the first: 1 is missing"), "{}", one.message);
    assert_eq!(error.hint, "narrow the list by its arguments (language), or stop after n items with :max n");
}

#[test]
fn result_that_announces_more_pages_is_recognised() {
    for convention in CONVENTIONS.iter().filter(|convention| !convention.is_blind || convention.name == "github") {
        let upstream = upstream(convention);
        let tool = &upstream.tools[0];
        for (count, is_more) in [(0, false), (SIZE, false), (200, true)] {
            let service = Service::new(count, Trouble::None, BASE);
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
    // The page is requested by its number. The link only announces it.
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
        effects: tool.effects,
        operation: tool.operation,
        paging: tool.paging,
        call_timeout_ms: tool.call_timeout_ms,
    }
}
