//! Discovery forms in programs, over frozen and live catalogs.

use ptc_catalog::{Annotations, Era, McpStdio, OpenApi, Operation, Tool, Transport};
use ptc_lisp::host::{Discovery, Host};
use ptc_lisp::{Limits, json};

use crate::peer;
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
    let list_items = Operation::new("list_items", "/items");
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

/// Runs a program. Returns its value as JSON, or the message of the fault.
fn ask(world: &World, program: &str) -> String {
    match world.evaluate(program, Limits::default()) {
        Ok(value) => json::encode(&value, 1 << 20).unwrap(),
        Err(fault) => fault.message,
    }
}

#[test]
fn prefix_selects_upstream_with_name_of_namespace() {
    let transport = || Transport::McpStdio(McpStdio::new("x"));
    for name in ptc_lisp::host_functions::namespaces() {
        let world = World::new(vec![upstream(name, transport(), vec![described("join", "Joins two tables")])]);
        let listed = format!(r#"["{name}/join - Joins two tables"]"#);
        assert_ne!(ask(&world, &format!("(dir \"{name}\")")), listed);
        assert_eq!(ask(&world, &format!("(dir \"upstream:{name}\")")), listed);
        assert_eq!(ask(&world, &format!("(doc \"upstream:{name}/join\")")), r#""the doc""#, "{name}");
    }
}

#[test]
fn discovery_forms_give_documented_results() {
    let world = world();
    for (program, expected) in [
        (
            "(tool/servers)",
            r#"[{"catalog_loaded":true,"description":"","name":"api","tool_count":1},{"catalog_loaded":true,"description":"","name":"fs","tool_count":4}]"#,
        ),
        ("(map :name (tool/servers))", r#"["api","fs"]"#),
        (
            "(dir 'fs)",
            r#"["fs/camelCaseTool - List pull requests","fs/get_info - Metadata of one","fs/read_file - Read the contents of a file","fs/thread_dump"]"#,
        ),
        ("(= (dir 'fs) (dir \"fs\") (dir \"fs\" nil) (dir \"fs\" {:limit 200}))", "true"),
        ("(dir 'fs {:limit 1 :offset 2})", r#"["fs/read_file - Read the contents of a file"]"#),
        (r#"(dir 'fs {"limit" 1 "offset" 2})"#, r#"["fs/read_file - Read the contents of a file"]"#),
        ("(dir 'fs {:offset 9})", "[]"),
        ("(dir 'fs {:limit 0})", "dir :limit must be an integer 1..200, got 0"),
        ("(dir 'fs {:limit 500})", "dir :limit must be an integer 1..200, got 500"),
        ("(dir 'fs {:limit 1.5})", "dir :limit must be an integer 1..200, got 1.5"),
        ("(dir 'fs {:offset -1})", "dir :offset must be a non-negative integer, got -1"),
        ("(dir 'fs {:max 1})", "dir got unknown option :max; its options are :limit and :offset"),
        ("(dir 'fs 3)", "discovery options must be a map, got 3"),
        ("(dir 'fss)", "no upstream 'fss' configured. Did you mean 'fs'? Configured upstreams: api, fs"),
        (r#"(dir "")"#, r#"dir requires a quoted symbol or string ref, got """#),
        ("(dir 5)", "dir requires a quoted symbol or string ref, got 5"),
        ("(dir nil)", "dir requires a quoted symbol or string ref, got nil"),
        // The first tool matches by its name, the second by a synonym. Functions of the language follow.
        ("(take 2 (apropos \"read\"))", r#"["fs/read_file - Read the contents of a file","fs/get_info - Metadata of one"]"#),
        (r#"(clojure.string/starts-with? (nth (apropos "read") 2) "local: ")"#, "true"),
        // A matching name ranks first in every spelling, also among other words.
        ("(take 1 (apropos \"thread-dump\"))", r#"["fs/thread_dump"]"#),
        ("(take 1 (apropos \"read with ThreadDump\"))", r#"["fs/thread_dump"]"#),
        ("(take 1 (apropos \"fs/get_info\"))", r#"["fs/get_info - Metadata of one"]"#),
        // Annotations are searchable words, and words match by their stems.
        ("(take 1 (apropos \"readonly\"))", r#"["fs/get_info - Metadata of one"]"#),
        ("(take 1 (apropos \"pulled request\"))", r#"["fs/camelCaseTool - List pull requests"]"#),
        // The last line says how many more there are.
        ("(count (apropos \"read\" {:limit 2}))", "3"),
        (r#"(boolean (re-find #"^… \d+ more: \(apropos" (last (apropos "read" {:limit 2}))))"#, "true"),
        ("(take 1 (apropos \"camel case\" {:limit 1 :load true}))", r#"["fs/camelCaseTool - List pull requests"]"#),
        ("(apropos \"zzzqqq\")", "[]"),
        ("(apropos \"read\" {:limit 0})", "apropos :limit must be an integer 1..50, got 0"),
        ("(apropos \"read\" {:limit 51})", "apropos :limit must be an integer 1..50, got 51"),
        (r#"(apropos "read" {:limit "x"})"#, r#"apropos :limit must be an integer 1..50, got "x""#),
        (r#"(apropos "read" {:load "x"})"#, r#"apropos :load must be a boolean, got "x""#),
        ("(apropos \"read\" {:deep true})", "apropos got unknown option :deep; its options are :limit and :load"),
        ("(apropos \"read\" 5)", "discovery options must be a map, got 5"),
        (r#"(apropos "")"#, r#"apropos requires query (non-empty string), got """#),
        ("(apropos nil)", "apropos requires query (non-empty string), got nil"),
        ("(doc 'fs/read_file)", r#""the doc""#),
        ("(doc \"api/list_items\")", r#""the doc""#),
        // Several names are allowed, each of which counts against the budget.
        (r#"(doc ["fs/read_file" "api/list-items"])"#, r#""the doc\n\nthe doc""#),
        (
            r#"(doc ["fs/read_file" "fs/nope"])"#,
            "no tool 'nope' in upstream 'fs'. Known tools: camelCaseTool, get_info, read_file, thread_dump",
        ),
        ("(doc [])", r#""""#),
        // The prefix distinguishes a tool from a function of the language with the same name.
        ("(= (dir 'fs) (dir \"upstream:fs\"))", "true"),
        ("(doc \"upstream:fs/read_file\")", r#""the doc""#),
        ("(:server (meta \"upstream:fs/read_file\"))", r#""fs""#),
        ("(dir \"upstream:nope\")", "no upstream 'nope' configured. Configured upstreams: api, fs"),
        // Suggestions recognise every way to name a tool.
        (
            "(dir 'read-file)",
            "no upstream 'read-file' configured. Did you mean tool 'read_file' of upstream 'fs'? Configured upstreams: api, fs",
        ),
        (
            r#"(tool/call {:server (str "fs" ".read_file") :tool (str "") :args {}})"#,
            "no upstream 'fs.read_file' configured. Did you mean tool 'read_file' of upstream 'fs'? Configured upstreams: api, fs",
        ),
        (
            r#"(tool/call {:server (str "api") :tool (str "fs/" "Read-Files") :args {}})"#,
            "no tool 'fs/Read-Files' in upstream 'api'. Did you mean tool 'read_file' of upstream 'fs'? Known tools: list-items",
        ),
        (
            r#"(tool/call {:server (str "api") :tool (str "READ" "_FILE") :args {}})"#,
            "no tool 'READ_FILE' in upstream 'api'. Did you mean tool 'read_file' of upstream 'fs'? Known tools: list-items",
        ),
        (
            r#"(tool/call {:server (str "get" "-info") :tool (str "x") :args {}})"#,
            "no upstream 'get-info' configured. Did you mean tool 'get_info' of upstream 'fs'? Configured upstreams: api, fs",
        ),
        ("(doc 'nope)", r#"doc requires upstream/tool ref, got "nope""#),
        ("(doc \"\")", r#"doc requires a quoted symbol or string ref, got """#),
        ("(doc 'nope/x)", "no upstream 'nope' configured. Configured upstreams: api, fs"),
        (
            "(doc 'fs/reed_file)",
            "no tool 'reed_file' in upstream 'fs'. Did you mean 'read_file'? Known tools: camelCaseTool, get_info, read_file, thread_dump",
        ),
        (
            "(meta 'api/list-items)",
            r#"{"_ptc":{"operationId":"list_items"},"input_schema":{"type":"object"},"name":"list-items","server":"api","title":"T","x-v":1.5}"#,
        ),
        ("(meta 'fs/nope)", "no tool 'nope' in upstream 'fs'. Known tools: camelCaseTool, get_info, read_file, thread_dump"),
        ("(meta 'nope)", r#"meta requires upstream/tool ref, got "nope""#),
        ("(meta 7)", "meta requires a quoted symbol or string ref, got 7"),
        ("(:source (meta 'map))", r#""local""#),
        ("(contains? (ns-publics 'clojure.string) \"blank?\")", "true"),
        ("(ns-publics 'fs)", r#"no local discovery ref "fs" for ns-publics"#),
    ] {
        assert_eq!(ask(&world, program), expected, "{program}");
    }
}

/// Upstreams whose tools are not fetched yet: their placeholders, the forms that fetch the tools, and upstreams that do not
/// answer.
#[test]
fn live_upstreams_are_queried_on_demand() {
    let world = || {
        let spec = McpStdio { era: Some(Era::Handshake), ..peer::spec("plain") };
        let dead = upstream("dead", Transport::McpStdio(McpStdio::new("/no/such/program")), Vec::new());
        World::live(vec![upstream("peer", Transport::McpStdio(spec), Vec::new()), dead], |_| {})
    };
    let (peer, dead) =
        (r#"peer (tools not listed yet; next: (dir \"peer\"))"#, r#"dead (tools not listed yet; next: (dir \"dead\"))"#);
    let unlisted = format!(r#"["{peer}","{dead}"]"#);
    let after = format!(r#"["peer/t0","{dead}"]"#);
    for (program, expected) in [
        ("(map :catalog_loaded (tool/servers))", "[false,false]"),
        (r#"(take 2 (apropos "peer"))"#, &*unlisted),
        (r#"(remove (fn [line] (clojure.string/starts-with? line "local: ")) (apropos "t0" {:load true}))"#, r#"["peer/t0"]"#),
        (r#"[(dir "dead") (doc "dead/x") (meta "dead/x")]"#, "[null,null,null]"),
        (r#"[(dir "peer") (map :catalog_loaded (tool/servers))]"#, r#"[["peer/t0"],[false,true]]"#),
        (r#"(do (doc "peer/t0") (take 2 (apropos "t0")))"#, &*after),
        (r#"(doc "peer/t9")"#, "no tool 't9' in upstream 'peer'. Did you mean 't0'? Known tools: t0"),
        (r#"(:name (meta "peer/t0"))"#, r#""t0""#),
    ] {
        assert_eq!(ask(&world(), program), expected, "{program}");
    }
}

/// A query may be as long as a program's strings, but has a limit on words.
#[test]
fn query_with_too_many_words_is_refused() {
    let world = world();
    let discover = |query: &str| match world.program().0.discover(Discovery::Apropos { query, limit: 8, load: false }) {
        Ok(value) => json::encode(&value, 1 << 20).unwrap(),
        Err(fault) => fault.message,
    };
    let words: Vec<String> = (0..50_000).map(|n| format!("word{n}")).collect();
    assert_eq!(discover(&words.join(" ")), "apropos looks for at most 64 different words, got 50000");
    let read = discover("read");
    assert_eq!(discover(&"read ".repeat(80_000)), read, "one word, however often");
    assert_eq!(discover(&"x".repeat(400_000)), "[]");
}

#[test]
fn discovery_without_upstreams_is_unavailable() {
    assert_eq!(ask(&World::new(Vec::new()), "(tool/servers)"), "tool/servers is not available: no upstreams are configured");
}

#[test]
fn discovery_results_and_number_of_uses_are_bounded() {
    let small = World::with(
        vec![upstream("fs", Transport::McpStdio(McpStdio::new("x")), vec![described("aa", "one"), described("bb", "two")])],
        Vec::new(),
        |settings| {
            settings.max_catalog_result_bytes = 20;
            settings.max_catalog_ops = 3;
        },
    );
    // The fourth form exceeds the budget.
    let program = r#"[(dir "fs") (meta "fs/aa") (doc "fs/aa") (tool/servers)]"#;
    assert_eq!(ask(&small, program), r#"[["fs/aa - one"],null,"the doc",null]"#);
}

#[test]
fn list_is_not_requested_when_no_call_is_left() {
    let dead = upstream("dead", Transport::McpStdio(McpStdio::new("/no/such/program")), Vec::new());
    let world = World::live(vec![dead], |settings| settings.max_calls_per_program = 1);
    let program = world.program();
    assert!(program.call("dead", "t", "{}").starts_with("upstream_unavailable: cannot start"));
    assert!(program.call("dead", "t", "{}").starts_with("cap_exhausted: this program has made its 1 upstream calls"));
    assert_eq!(program.0.calls().len(), 2);
}
