//! Which programs read only the first page of a list.

#![expect(clippy::indexing_slicing, reason = "a test panics on any error")]

use ptc_catalog::{Arg, McpStdio, Tool, Tools, Transport, Type, Types, Upstream};
use ptc_check::paging::UnreadPages;
use ptc_lisp::{Value, json};

/// The first of seven pages.
const FIRST: &str = r#"{"rows": [{"id": 1}, {"id": 2}], "page": 1, "pages": 7, "total": 14}"#;

fn upstream() -> &'static Upstream {
    let arg = |name, kind| Arg { name, required: false, types: Types::from_types(&[kind]), label: "", allowed: "" };
    let args: &[Arg] = vec![arg("owner", Type::String), arg("page", Type::Integer), arg("per_page", Type::Integer)].leak();
    let tool = |name: &'static str, paging: &'static str| Tool { name, args, closed: true, paging, ..Tool::EMPTY };
    let declared =
        "by page\nitems rows\nargument page\ntotal total\npages pages\npage page\nsize per_page\nfirst 1\nmax_size 100";
    let unpaged = |name, args: Vec<Arg>| Tool { args: args.leak(), ..tool(name, "") };
    let (find, limited) = (vec![arg("owner", Type::String)], vec![arg("limit", Type::Integer)]);
    let tools = vec![tool("list", declared), tool("undeclared", ""), tool("whole", "false")];
    let search = vec![arg("owner", Type::String), arg("body", Type::Object)];
    let linked = Tool { paging: "by link\nitems rows\nnext next", ..unpaged("linked", vec![arg("owner", Type::String)]) };
    let others = [unpaged("find", find), unpaged("invoice", limited), unpaged("search", search), linked];
    let tools = tools.into_iter().chain(others).collect::<Vec<_>>().leak();
    Box::leak(Box::new(Upstream {
        name: "api",
        description: "",
        transport: Transport::McpStdio(McpStdio::new("x")),
        tools: Tools::table(tools),
    }))
}

/// Returns the notes after calls of a tool, each given by its arguments and answer. The answers stay alive, unread, as the
/// definitions of a session do.
fn notes(tool: usize, calls: &[(&str, &str)]) -> Vec<String> {
    let (upstream, mut pages) = (upstream(), UnreadPages::default());
    let value = |text: &str| json::decode(text.as_bytes()).expect("JSON");
    let mut lists = Vec::new();
    for (args, answer) in calls {
        lists.push(pages.receive(upstream, &upstream.tools[tool], &value(args), &value(answer), None));
    }
    pages.notes()
}

#[test]
fn reading_only_the_first_page_is_noted() {
    let wanted = "api/list: this was page 1 of 7, with 2 of 14 items, and the program did not ask for the next one: (tool/all {:server \
                  \"api\" :tool \"list\" …}) gives the items of all pages";
    for args in ["{}", r#"{"page": 1}"#, r#"{"per_page": 100}"#, r#"{"per-page": 100, "page": null}"#] {
        assert_eq!(notes(0, &[(args, FIRST)]), [wanted], "{args}");
    }
    assert_eq!(notes(1, &[("{}", FIRST)]), [wanted.replace("list", "undeclared")]);
    let both = notes(0, &[(r#"{"owner": "a"}"#, FIRST), (r#"{"owner": "b"}"#, FIRST)]);
    assert!(both[0].starts_with("api/list: 2 answers were page 1 of more, and"), "{both:?}");
}

#[test]
fn chosen_page_or_number_of_items_is_not_noted() {
    for args in [r#"{"page": 2}"#, r#"{"per_page": 2}"#, r#"{"per_page": 99, "page": 1}"#] {
        assert_eq!(notes(0, &[(args, FIRST)]), [""; 0], "{args}");
    }
    // Without a declared maximum, a large number is a page, and the service may give fewer items than that.
    assert_eq!(notes(1, &[(r#"{"per_page": 2}"#, FIRST)]), [""; 0]);
    for args in [r#"{"per_page": 100}"#, r#"{"per_page": 5, "page": 1}"#] {
        assert_eq!(notes(1, &[(args, FIRST)]).len(), 1, "{args}");
    }
    assert_eq!(notes(2, &[("{}", FIRST)]), [""; 0], "configured not to be paged");
    let last = r#"{"rows": [{"id": 1}], "page": 1, "pages": 1, "total": 1}"#;
    assert_eq!(notes(0, &[("{}", last)]), [""; 0], "the only page");
    assert_eq!(notes(0, &[("{}", r#"{"error": "busy"}"#)]), [""; 0], "no page");
}

/// Returns a page of seven.
fn page(number: usize) -> String {
    format!(r#"{{"rows": [{{"id": 1}}, {{"id": 2}}], "page": {number}, "pages": 7, "total": 14}}"#)
}

#[test]
fn pages_up_to_the_last_one_silence_the_note_in_any_order() {
    let (last, next) = (page(7), page(2));
    let last = (r#"{"page": 7, "owner": "a"}"#, last.as_str());
    let first = (r#"{"owner": "a"}"#, FIRST);
    let next = (r#"{"page": 2, "owner": "a"}"#, next.as_str());
    assert_eq!(notes(0, &[first, next, last]), [""; 0]);
    assert_eq!(notes(0, &[last, next, first]), [""; 0], "pages that are fetched at once come in any order");
    assert_eq!(notes(0, &[first, (r#"{"page": 7}"#, last.1)]), [""; 0], "the token of the next page alone");
    assert_eq!(notes(0, &[first, (r#"{"page": 7, "owner": "b"}"#, last.1)]).len(), 1, "a page of another list");
}

#[test]
fn list_that_is_not_read_to_the_end_is_noted() {
    let (second, third) = (page(2), page(3));
    let calls = [("{}", FIRST), (r#"{"page": 3}"#, third.as_str()), (r#"{"page": 2}"#, second.as_str())];
    let wanted = "api/list: the list was read up to page 3 of 7, which announces more, and the program did not ask for the next one: \
                  (tool/all {:server \"api\" :tool \"list\" …}) gives the items of all pages";
    assert_eq!(notes(0, &calls), [wanted]);
    assert_eq!(notes(1, &calls), [wanted.replace("list\"", "undeclared\"").replace("api/list", "api/undeclared")]);
    assert_eq!(notes(0, &calls[1..]), [""; 0], "pages in the middle");
    // A total alone also shows whether there are more.
    let by_total = |rows: &str| format!(r#"{{"rows": [{rows}], "total": 5}}"#);
    let (one, two, three) = (by_total("1, 2"), by_total("3, 4"), by_total("5"));
    let calls = [("{}", one.as_str()), (r#"{"page": 2}"#, two.as_str()), (r#"{"page": 3}"#, three.as_str())];
    assert_eq!(notes(0, &calls[..2]).len(), 1);
    assert_eq!(notes(0, &calls), [""; 0]);
}

#[test]
fn reading_all_pages_silences_the_note() {
    let (upstream, mut pages) = (upstream(), UnreadPages::default());
    let first = json::decode(FIRST.as_bytes()).unwrap();
    let list = pages.receive(upstream, &upstream.tools[0], &Value::map([]), &first, None);
    assert_eq!(pages.notes().len(), 1);
    pages.read_all(upstream, &upstream.tools[0], &Value::map([]));
    assert_eq!(pages.notes(), [""; 0]);
    drop(list);
}

#[test]
fn unused_result_is_not_noted() {
    let (upstream, mut pages) = (upstream(), UnreadPages::default());
    let first = json::decode(FIRST.as_bytes()).unwrap();
    drop(pages.receive(upstream, &upstream.tools[0], &Value::map([]), &first, None));
    assert_eq!(pages.notes(), [""; 0]);
}

#[test]
fn result_without_page_argument_is_noted_if_it_announces_more() {
    let answers = [
        r#"{"files": [1, 2], "has_more": true}"#,
        r#"{"files": [1, 2], "next_cursor": "x"}"#,
        r#"{"files": [1, 2], "truncated": true}"#,
        r#"{"files": [1, 2], "total_count": 9}"#,
    ];
    for answer in answers {
        let found = notes(3, &[("{}", answer)]);
        let start = "api/find: the answer has 2";
        let end = "and says that there are more, and the tool has no argument for the next page: narrow the list by its arguments (owner)";
        assert!(found.len() == 1 && found[0].starts_with(start) && found[0].ends_with(end), "{answer}: {found:?}");
    }
    // The total of an invoice is not a number of items, unless the tool takes a number of items.
    let sum = r#"{"lines": [1, 2], "total": 2500}"#;
    assert_eq!(notes(3, &[("{}", sum)]), [""; 0]);
    let found = notes(4, &[("{}", sum)]);
    assert!(found[0].ends_with("the tool has no argument for the next page: ask for more with :limit"), "{found:?}");
    for whole in [r#"{"files": [1, 2], "has_more": false, "next_cursor": null, "total_count": 2}"#, "[1, 2]", r#"{"files": []}"#]
    {
        assert_eq!(notes(3, &[("{}", whole)]), [""; 0], "{whole}");
    }
}

#[test]
fn reading_all_pages_is_not_advised_without_a_page_argument() {
    let more = r#"{"files": [1, 2], "has_more": true}"#;
    let found = notes(3, &[(r#"{"owner": "a"}"#, more), (r#"{"owner": "b"}"#, more)]);
    assert!(
        found.len() == 1 && found[0].starts_with("api/find: 2 answers say that there are more, and the tool has no"),
        "{found:?}"
    );
    // The link has a parameter that the tool does not take.
    let link = r#"{"rows": [1, 2], "next": "/rows?skiptoken=7"}"#;
    let found = notes(6, &[("{}", link)]);
    let wanted = "api/linked: the answer has 2 items and says that there are more, and the link to the next page cannot be followed: \
                  its parameters (skiptoken) are not arguments of the tool: narrow the list by its arguments (owner)";
    assert_eq!(found, [wanted]);
    let link = r#"{"rows": [1, 2], "next": "/rows?owner=a"}"#;
    assert!(notes(6, &[("{}", link)])[0].contains("tool/all"));
}

#[test]
fn page_chosen_in_the_body_counts() {
    let more = r#"{"files": [1, 2], "has_more": true}"#;
    let first = (r#"{"body": {"q": "x"}}"#, more);
    assert_eq!(notes(5, &[first]).len(), 1);
    let page = |body: &'static str| (body, more);
    let second = page(r#"{"body": {"q": "x", "page": 2}}"#);
    assert_eq!(notes(5, &[first, second]), [""; 0]);
    assert_eq!(notes(5, &[page(r#"{"body": {"q": "x", "page": 1}}"#), second]), [""; 0]);
    assert_eq!(notes(5, &[first, page(r#"{"body": {"q": "y", "page": 2}}"#)]).len(), 1, "a page of another list");
}
