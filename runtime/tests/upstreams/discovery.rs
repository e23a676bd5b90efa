//! Discovery forms over a frozen catalog.

use ptc_catalog::{Annotations, McpStdio, OpenApi, Operation, Tool, Transport};
use ptc_lisp::host::{Discovery, Host};
use ptc_lisp::{Value, json};

use crate::world::{World, tool, upstream};

fn described(name: &'static str, description: &'static str) -> Tool {
    Tool {
        description,
        doc: "the doc",
        definition: r#"{"name":"x","inputSchema":{"type":"object"},"title":"T","x-v":1.50}"#,
        ..tool(name)
    }
}

fn world() -> World {
    let list_items = Operation { id: "list_items", path: "/items", params: &[], default_args: &[] };
    let files = vec![
        described("read_file", "Read the contents of a file"),
        Tool {
            annotations: Annotations { read_only: Some(true), ..Annotations::default() },
            ..described("get_info", "Metadata of one")
        },
        described("camelCaseTool", "List pull requests"),
        described("thread_dump", ""),
    ];
    let api = vec![Tool { operation: Some(Box::leak(Box::new(list_items))), ..described("list-items", "List items") }];
    World::new(vec![
        upstream("fs", Transport::McpStdio(McpStdio::new("x")), files),
        upstream("api", Transport::OpenApi(OpenApi::new("http://127.0.0.1:9")), api),
    ])
}

fn options(text: &str) -> Value {
    if text.is_empty() { Value::nil() } else { json::decode(text.as_bytes()).unwrap() }
}

/// The answer as JSON, or the fault's message.
fn ask(world: &World, query: Discovery<'_>) -> String {
    match world.program().0.discover(query) {
        Ok(value) => json::encode(&value, 1 << 20).unwrap(),
        Err(fault) => fault.message,
    }
}

#[test]
fn forms_answer_as_documented() {
    let world = world();
    let servers = ask(&world, Discovery::Servers);
    assert_eq!(
        servers,
        r#"[{"catalog_loaded":true,"description":"","name":"api","tool_count":1},{"catalog_loaded":true,"description":"","name":"fs","tool_count":4}]"#
    );
    let dir = |reference: &str, opts: &str| ask(&world, Discovery::Dir { reference, options: &options(opts) });
    let cases = [
        (
            "fs",
            "",
            r#"["fs/camelCaseTool - List pull requests","fs/get_info - Metadata of one","fs/read_file - Read the contents of a file","fs/thread_dump"]"#,
        ),
        ("fs", r#"{"limit":1,"offset":2}"#, r#"["fs/read_file - Read the contents of a file"]"#),
        ("fs", r#"{"offset":9}"#, "[]"),
        ("fs", r#"{"limit":0}"#, "dir :limit must be an integer 1..200, got 0"),
        ("fs", r#"{"limit":500}"#, "dir :limit must be an integer 1..200, got 500"),
        ("fs", r#"{"offset":-1}"#, "dir :offset must be a non-negative integer, got -1"),
        ("fs", r#"{"max":1}"#, r#"dir got unknown option "max"; its options are :limit and :offset"#),
        ("fs", "3", "discovery options must be a map, got 3"),
        ("fss", "", "no upstream 'fss' configured. Did you mean 'fs'? Configured upstreams: api, fs"),
        ("", "", r#"dir requires a quoted symbol or string ref, got """#),
    ];
    for (reference, opts, expected) in cases {
        assert_eq!(dir(reference, opts), expected, "{reference} {opts}");
    }

    let apropos = |query: &str, opts: &str| ask(&world, Discovery::Apropos { query, options: &options(opts) });
    let cases = [
        // Name (12) + description (10); the annotation's word (10); inside a name (4).
        ("read", "", r#"["fs/read_file - Read the contents of a file","fs/get_info - Metadata of one","fs/thread_dump"]"#),
        ("camel case", r#"{"limit":1,"load":true}"#, r#"["fs/camelCaseTool - List pull requests"]"#),
        ("zzz", "", "[]"),
        ("read", r#"{"limit":51}"#, "apropos :limit must be an integer 1..50, got 51"),
        ("read", r#"{"load":"x"}"#, r#"apropos :load must be a boolean, got "x""#),
        ("", "", r#"apropos requires query (non-empty string), got """#),
    ];
    for (query, opts, expected) in cases {
        assert_eq!(apropos(query, opts), expected, "{query} {opts}");
    }

    assert_eq!(ask(&world, Discovery::Doc { reference: "fs/read_file" }), r#""the doc""#);
    assert_eq!(ask(&world, Discovery::Doc { reference: "api/list_items" }), r#""the doc""#);
    assert_eq!(ask(&world, Discovery::Doc { reference: "nope" }), r#"doc requires upstream/tool ref, got "nope""#);
    assert!(
        ask(&world, Discovery::Doc { reference: "fs/reed_file" })
            .starts_with("no tool 'reed_file' in upstream 'fs'. Did you mean 'read_file'?")
    );
    assert_eq!(
        ask(&world, Discovery::Meta { reference: "api/list-items" }),
        r#"{"_ptc":{"operationId":"list_items"},"input_schema":{"type":"object"},"name":"list-items","server":"api","title":"T","x-v":1.5}"#
    );
}

/// A query may be as long as a program's strings.
#[test]
fn a_book_is_no_query() {
    let world = world();
    let ask = |query: &str| ask(&world, Discovery::Apropos { query, options: &Value::nil() });
    let words: Vec<String> = (0..50_000).map(|n| format!("word{n}")).collect();
    assert_eq!(ask(&words.join(" ")), "apropos looks for at most 64 different words, got 50000");
    let read = ask("read");
    assert_eq!(ask(&"read ".repeat(80_000)), read, "one word, however often");
    assert_eq!(ask(&"x".repeat(400_000)), "[]");
}

#[test]
fn without_upstreams_there_are_no_servers() {
    assert_eq!(ask(&World::new(Vec::new()), Discovery::Servers), "tool/servers is not available: no upstreams are configured");
}

#[test]
fn answers_and_uses_are_bounded() {
    let small = World::with(
        vec![upstream("fs", Transport::McpStdio(McpStdio::new("x")), vec![described("aa", "one"), described("bb", "two")])],
        Vec::new(),
        |settings| {
            settings.max_catalog_result_bytes = 20;
            settings.max_catalog_ops = 3;
        },
    );
    let program = small.program();
    let nil = Value::nil();
    let ask = |query| json::encode(&program.0.discover(query).unwrap(), 1000).unwrap();
    assert_eq!(ask(Discovery::Dir { reference: "fs", options: &nil }), r#"["fs/aa - one"]"#);
    assert_eq!(ask(Discovery::Meta { reference: "fs/aa" }), "null");
    assert_eq!(ask(Discovery::Doc { reference: "fs/aa" }), r#""the doc""#);
    assert_eq!(ask(Discovery::Servers), "null", "the fourth is beyond the budget");
}

#[test]
fn a_list_is_not_asked_for_without_a_call_to_make() {
    let dead = upstream("dead", Transport::McpStdio(McpStdio::new("/no/such/program")), Vec::new());
    let world = World::live(vec![dead], |settings| settings.max_calls_per_program = 1);
    let program = world.program();
    assert!(program.call("dead", "t", "{}").starts_with("upstream_unavailable: cannot start"));
    assert!(program.call("dead", "t", "{}").starts_with("cap_exhausted: this program has made its 1 upstream calls"));
    assert_eq!(program.0.calls().len(), 2);
}
