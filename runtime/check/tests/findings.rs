//! Programs and what is found in them.

use ptc_catalog::{Annotations, Arg, Catalog, McpStdio, Tool, Transport, Type, Types, Upstream};
use ptc_lisp::Program;

const fn arg(name: &'static str, required: bool) -> Arg {
    Arg { name, required, types: Types::of(&[Type::String]), label: "string", allowed: "" }
}

const LIMIT: Arg = Arg { name: "limit", required: false, types: Types::of(&[Type::Integer]), label: "integer", allowed: "" };
const ORDER: Arg =
    Arg { name: "order", required: false, types: Types::of(&[Type::String]), label: "enum<string>", allowed: "\"up\"\n\"down\"" };
const VERSION: Arg =
    Arg { name: "version", required: false, types: Types::of(&[Type::Integer]), label: "const<2>", allowed: "2" };

const fn tool(name: &'static str, args: &'static [Arg], closed: bool) -> Tool {
    let annotations = Annotations::NONE;
    Tool { name, description: "", args, closed, doc: "", definition: "{}", digest: "", annotations, operation: None }
}

static CATALOG: Catalog = Catalog {
    digest: "",
    upstreams: &[Upstream {
        name: "files",
        description: "",
        transport: Transport::McpStdio(McpStdio::new("x")),
        tools: &[
            tool("find", &[LIMIT, ORDER, VERSION], false),
            tool("list", &[], true),
            tool("read", &[arg("path", true), arg("page_size", false)], true),
            tool("search", &[arg("pattern", true)], false),
        ],
    }],
};

/// Program, then each finding as `certain|perhaps: message; hint`.
const CASES: &[(&str, &[&str])] = &[
    (r#"(tool/call {:server "files" :tool "read" :args {:path "a"}})"#, &[]),
    (r#"(tool/call {"server" "files" "tool" "read" "args" {"path" "a" :page-size "1"}})"#, &[]),
    (r#"(tool/call {:server "file" :tool "read"})"#, &["certain: no upstream 'file' configured; did you mean 'files'?"]),
    (r#"(tool/call {:server "github" :tool "x"})"#, &["certain: no upstream 'github' configured; configured upstreams: files"]),
    (r#"(tool/call {:server "files" :tool "raed"})"#, &["certain: no tool 'raed' in upstream 'files'; did you mean 'read'?"]),
    (
        r#"(tool/call {:server "files" :tool "write"})"#,
        &["certain: no tool 'write' in upstream 'files'; its tools: find, list, read, search"],
    ),
    (
        r#"(tool/call {:server "files" :tool "read"})"#,
        &["certain: tool 'files.read' rejected args: missing required args path; (doc \"files/read\") shows its arguments"],
    ),
    (
        r#"(tool/call {:server "files" :tool "read" :args {:path nil}})"#,
        &["certain: tool 'files.read' rejected args: missing required args path; (doc \"files/read\") shows its arguments"],
    ),
    (
        r#"(fn [p] (tool/call {:server "files" :tool "read" :args {:path p :pagesize 1}}))"#,
        &["certain: tool 'files.read' rejected args: unknown arg 'pagesize'; did you mean 'page_size'?"],
    ),
    (
        r#"(tool/call {:server "files" :tool "search" :args {:pattern "a" :patern "b" :other 1}})"#,
        &["perhaps: tool 'files.search' rejected args: unknown arg 'patern'; did you mean 'pattern'?"],
    ),
    (
        r#"(tool/call {:server "files" :tool "find" :args {:limit "ten" :order "upp" :version 3}})"#,
        &[
            "certain: tool 'files.find' rejected args: 'limit' must be integer, got string \"ten\"; (doc \"files/find\") shows its arguments",
            "certain: tool 'files.find' rejected args: 'order' must be one of \"up\", \"down\", got \"upp\". Did you mean \"up\"?; (doc \"files/find\") shows its arguments",
            "certain: tool 'files.find' rejected args: 'version' must be one of 2, got 3; (doc \"files/find\") shows its arguments",
        ],
    ),
    (r#"(tool/call {:server "files" :tool "find" :args {:limit 10.0 :order :up :version 2}})"#, &[]),
    (r#"(fn [n] (tool/call {:server "files" :tool "find" :args {:limit [n] :order nil}}))"#, &[]),
    (
        r#"(fn [n] (tool/call {:server "files" :tool "find" :args {:limit true :order n}}))"#,
        &[
            "certain: tool 'files.find' rejected args: 'limit' must be integer, got boolean true; (doc \"files/find\") shows its arguments",
        ],
    ),
    // Whatever is computed is left to the run.
    (r#"(let [s "x"] (tool/call {:server s :tool "read"}))"#, &[]),
    (r#"(let [m {}] (tool/call {:server "files" :tool "read" :args m}))"#, &[]),
    (r#"(map tool/call [{:server "x" :tool "y"}])"#, &[]),
];

#[test]
fn cases() {
    for (source, expected) in CASES {
        let program = Program::compile(source).unwrap_or_else(|fault| panic!("{source}: {fault}"));
        let found: Vec<String> = ptc_check::check(&program, &CATALOG)
            .into_iter()
            .map(|f| {
                let sure = if f.is_certain() { "certain" } else { "perhaps" };
                format!("{sure}: {}; {}", f.message, f.hint.unwrap_or_default())
            })
            .collect();
        assert_eq!(&found, expected, "{source}");
    }
}

#[test]
fn a_finding_is_an_error_at_its_place() {
    let source = "(+ 1\n   (tool/call {:server \"x\" :tool \"y\"}))";
    let program = Program::compile(source).expect("it compiles");
    let finding = ptc_check::check(&program, &CATALOG).remove(0);
    let error = finding.into_error(source);
    assert_eq!(error.position.map(|p| p.line), Some(2));
}
