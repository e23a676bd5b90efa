//! Which programs read only the first page of a list.

#![expect(clippy::indexing_slicing, reason = "a test panics on any error")]

use ptc_catalog::{Annotations, Arg, McpStdio, Tool, Transport, Type, Types, Upstream};
use ptc_check::paging::UnreadPages;
use ptc_lisp::{Value, json};

/// The first of seven pages.
const FIRST: &str = r#"{"rows": [{"id": 1}, {"id": 2}], "page": 1, "pages": 7, "total": 14}"#;

fn upstream() -> &'static Upstream {
    let arg = |name, kind| Arg { name, required: false, types: Types::of(&[kind]), label: "", allowed: "" };
    let args: &[Arg] = vec![arg("owner", Type::String), arg("page", Type::Integer), arg("per_page", Type::Integer)].leak();
    let tool = |name: &'static str, paging: &'static str| Tool {
        name,
        description: "",
        args,
        closed: true,
        doc: "",
        definition: "{}",
        digest: "",
        annotations: Annotations::NONE,
        operation: None,
        paging,
    };
    let declared =
        "by page\nitems rows\nargument page\ntotal total\npages pages\npage page\nsize per_page\nfirst 1\nmax_size 100";
    let tools = vec![tool("list", declared), tool("undeclared", ""), tool("whole", "false")].leak();
    Box::leak(Box::new(Upstream { name: "api", description: "", transport: Transport::McpStdio(McpStdio::new("x")), tools }))
}

/// Returns the notes after calls of a tool, each given by its arguments and answer.
fn notes(tool: usize, calls: &[(&str, &str)]) -> Vec<String> {
    let (upstream, mut pages) = (upstream(), UnreadPages::default());
    let value = |text: &str| json::decode(text.as_bytes()).expect("JSON");
    for (args, answer) in calls {
        pages.ask(upstream, &upstream.tools[tool], &value(args), false);
        pages.receive(upstream, &upstream.tools[tool], &value(args), &value(answer), None);
    }
    pages.notes("(:rows (tool/value {}))")
}

#[test]
fn first_page_alone_is_noted() {
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
fn page_or_number_of_items_that_the_program_chose_is_not_noted() {
    for args in [r#"{"page": 2}"#, r#"{"per_page": 2}"#, r#"{"per_page": 99, "page": 1}"#] {
        assert_eq!(notes(0, &[(args, FIRST)]), [""; 0], "{args}");
    }
    assert_eq!(notes(2, &[("{}", FIRST)]), [""; 0], "configured not to be paged");
    let last = r#"{"rows": [{"id": 1}], "page": 1, "pages": 1, "total": 1}"#;
    assert_eq!(notes(0, &[("{}", last)]), [""; 0], "the only page");
    assert_eq!(notes(0, &[("{}", r#"{"error": "busy"}"#)]), [""; 0], "no page");
}

#[test]
fn next_page_of_the_same_list_silences_the_note_in_any_order() {
    let next = (r#"{"page": 2, "owner": "a"}"#, FIRST);
    let first = (r#"{"owner": "a"}"#, FIRST);
    assert_eq!(notes(0, &[first, next]), [""; 0]);
    assert_eq!(notes(0, &[next, first]), [""; 0], "pages that are fetched at once come in any order");
    assert_eq!(notes(0, &[first, (r#"{"page": 2}"#, FIRST)]), [""; 0], "the token of the next page alone");
    assert_eq!(notes(0, &[first, (r#"{"page": 2, "owner": "b"}"#, FIRST)]).len(), 1, "a page of another list");
}

#[test]
fn reading_all_pages_silences_the_note() {
    let (upstream, mut pages) = (upstream(), UnreadPages::default());
    let first = json::decode(FIRST.as_bytes()).unwrap();
    pages.receive(upstream, &upstream.tools[0], &Value::map([]), &first, None);
    assert_eq!(pages.notes("").len(), 1);
    pages.ask(upstream, &upstream.tools[0], &Value::map([]), true);
    assert_eq!(pages.notes(""), [""; 0]);
}

#[test]
fn program_that_only_counts_is_not_noted() {
    let (upstream, mut pages) = (upstream(), UnreadPages::default());
    let first = json::decode(FIRST.as_bytes()).expect("JSON");
    pages.receive(upstream, &upstream.tools[0], &Value::map([]), &first, None);
    assert_eq!(pages.notes("(:total (tool/value {}))"), [""; 0]);
    assert_eq!(pages.notes("(let [{:keys [pages]} (tool/value {})] pages)"), [""; 0]);
    for source in
        ["(tool/value {})", "(let [{:keys [rows total]} (tool/value {})] [total (count rows)])", "(:totals (tool/value {}))"]
    {
        assert_eq!(pages.notes(source).len(), 1, "{source}");
    }
}
