//! Reads all pages of lists with the conventions of services with public documentation, and with faults.
//!
//! Each service is a function of the arguments. Whatever happens to the list while it is read, the result must be the complete
//! list or an error.

#![expect(clippy::indexing_slicing, reason = "a test panics on any error")]

mod conventions;

use conventions::{CONVENTIONS, COUNTS, Convention, SIZE, Service, TROUBLES, Trouble, is_unnoticed};
use ptc_catalog::{McpStdio, OpenApi, Tool, Transport, Upstream};
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
    Box::leak(Box::new(Upstream { name: "service", description: "", transport, tools }))
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

/// Reads pages of a tool with this paging, as the texts of the answers. Returns the number of items or the message.
fn read_answers(tool: Tool, args: &str, answers: &[&str]) -> Result<usize, String> {
    let template = upstream(&CONVENTIONS[0]);
    let tool: &'static Tool = Box::leak(Box::new(tool));
    let args = json::decode(args.as_bytes()).expect("JSON");
    let mut pages = Pages::new(template, tool, args, None).map_err(|error| error.message)?;
    let mut due = 1;
    pages.first();
    for text in answers {
        assert!(due > 0, "no request is left for {text}");
        due -= 1;
        match pages.receive(&json::decode(text.as_bytes()).expect("JSON"), None, 1000).map_err(|error| error.message)? {
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
fn total_that_ends_with_a_full_page_is_checked_by_one_more_request() {
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

#[test]
fn failed_request_behind_the_last_page_ends_the_list() {
    let template = upstream(&CONVENTIONS[0]);
    let tool: &'static Tool = Box::leak(Box::new(counted()));
    let mut pages = Pages::new(template, tool, Value::nil(), None).unwrap();
    pages.first();
    assert!(pages.end_with_failure("upstream_error").is_none());
    let full = json::decode(br#"{"rows": [1, 2], "total": 2}"#).unwrap();
    assert!(matches!(pages.receive(&full, None, 9), Ok(Progress::Next(_))));
    assert!(pages.end_with_failure("timeout").is_none());
    assert!(matches!(pages.end_with_failure("upstream_error"), Some(Ok(()))));
    // The items are compared with the total after the failure, too.
    let pages_of_total =
        Tool { paging: "by page\nitems rows\nargument page\ntotal total\npages pages\npage page\nfirst 1", ..counted() };
    let mut pages = Pages::new(template, Box::leak(Box::new(pages_of_total)), Value::nil(), None).unwrap();
    pages.first();
    let less = json::decode(br#"{"rows": [1, 2], "total": 5, "page": 1, "pages": 1}"#).unwrap();
    assert!(matches!(pages.receive(&less, None, 9), Ok(Progress::Next(_))));
    let ended = pages.end_with_failure("upstream_error").expect("the end").expect_err("three items are missing");
    assert!(ended.message.contains("5 items were announced, and 2 are there at the end"), "{}", ended.message);
    // Without budget for the request, the announced total is trusted.
    let mut pages = Pages::new(template, tool, Value::nil(), None).unwrap();
    pages.first();
    assert!(matches!(pages.receive(&full, None, 0), Ok(Progress::Done)));
}

#[test]
fn total_is_compared_where_the_program_names_the_first_page() {
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

#[test]
fn item_that_two_pages_have_is_an_error() {
    let row = |id: usize, name: &str| format!(r#"{{"id": {id}, "name": "{name}"}}"#);
    let page = |rows: &[String]| format!(r#"{{"rows": [{}]}}"#, rows.join(","));
    let first = page(&[row(1, "a"), row(2, "b")]);
    for second in [page(&[row(1, "a"), row(3, "c")]), page(&[row(2, "changed"), row(3, "c")]), page(&[row(3, "c"), row(2, "b")])]
    {
        let found = read_answers(counted(), "{}", &[&first, &second]).unwrap_err();
        assert!(found.contains("a page has an item of an earlier page"), "{second}: {found}");
    }
    // Items without an id may be equal, as may members of one page.
    let [first, second] = [r#"{"rows": [{"kind": "a"}, {"kind": "b"}]}"#, r#"{"rows": [{"kind": "b"}]}"#];
    assert_eq!(read_answers(counted(), "{}", &[first, second, r#"{"rows": []}"#]), Ok(3));
    let twice = page(&[row(1, "a"), row(1, "a")]);
    assert_eq!(read_answers(counted(), "{}", &[&twice, r#"{"rows": []}"#]), Ok(2));
}

#[test]
fn answer_without_a_token_of_a_tool_that_takes_one_is_the_last_page() {
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
    assert_eq!(read_answers(tool(declared), "{}", &["[1, 2]", "[3]", "[]"]), Ok(3));
    assert_eq!(read_answers(tool("{}"), "{}", &["[1, 2]", "[1, 2]", "[3]", "[]"]), Ok(3));
}

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
                // A token that names the last item still finds the following ones after items were removed.
                Trouble::WrongTotal | Trouble::LowTotal | Trouble::Shrinks => convention.has_total,
                // A token that names the last item still finds the following ones.
                Trouble::Grows => is_by_number(convention),
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
fn budget_that_does_not_suffice_is_an_error_after_the_first_page() {
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
fn answer_that_announces_more_is_known() {
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
        operation: tool.operation,
        paging: tool.paging,
    }
}
