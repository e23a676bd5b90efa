//! Programs with their findings.

use ptc_catalog::{Annotations, Arg, Catalog, McpStdio, Tool, Tools, Transport, Type, Types, Upstream};
use ptc_check::HostTool;
use ptc_lisp::signature::{Mode, Signature};
use ptc_lisp::{Bindings, Program};

const fn arg(name: &'static str, required: bool) -> Arg {
    Arg { name, required, types: Types::from_types(&[Type::String]), label: "string", allowed: "" }
}

const LIMIT: Arg =
    Arg { name: "limit", required: false, types: Types::from_types(&[Type::Integer]), label: "integer", allowed: "" };
const ORDER: Arg = Arg {
    name: "order",
    required: false,
    types: Types::from_types(&[Type::String]),
    label: "enum<string>",
    allowed: "\"up\"\n\"down\"",
};
const VERSION: Arg =
    Arg { name: "version", required: false, types: Types::from_types(&[Type::Integer]), label: "const<2>", allowed: "2" };

const fn tool(name: &'static str, args: &'static [Arg], closed: bool) -> Tool {
    let annotations = Annotations::NONE;
    Tool { name, args, closed, annotations, ..Tool::EMPTY }
}

static CATALOG: Catalog = Catalog {
    digest: "",
    search_index: &[],
    upstreams: &[Upstream {
        name: "files",
        description: "",
        transport: Transport::McpStdio(McpStdio::new("x")),
        tools: Tools::table(&[
            tool("find", &[LIMIT, ORDER, VERSION], false),
            tool("list", &[], true),
            tool("read", &[arg("path", true), arg("page_size", false)], true),
            tool("search", &[arg("pattern", true)], false),
        ]),
    }],
};

/// A program with its findings, each as `certain|perhaps: message; hint`.
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
        r#"(tool/call {:server "files" :tool "read" :args {:pth "a"}})"#,
        &[
            "certain: tool 'files.read' rejected args: missing required args path; did you mean 'path' instead of 'pth'?",
            "certain: tool 'files.read' rejected args: unknown arg 'pth'; did you mean 'path'?",
        ],
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
    ("(tool/call {:server :files :tool :raed})", &["certain: no tool 'raed' in upstream 'files'; did you mean 'read'?"]),
    (r#"(tool/call {:sever "files" :tool "read"})"#, &["certain: tool/call got unknown key \"sever\"; did you mean :server?"]),
    (
        r#"(fn [p] (tool/call {:server "files" :tool "read" :path p}))"#,
        &[
            "certain: tool/call got unknown key \"path\"; its keys are :server, :tool and :args; arguments of the tool go into :args",
        ],
    ),
    (
        r#"(tool/call {:server "files" :tool "list" :accept "text/csv"})"#,
        &[
            "certain: tool/call got :accept, and 'files.list' is not an operation of an OpenAPI upstream, which alone has this option; leave :accept out; arguments of the tool go into :args",
        ],
    ),
    (
        r#"(tool/call {:server "files"})"#,
        &[
            "certain: tool/call on upstream 'files' requires :tool (string), got nil; write (tool/call {:server \"name\" :tool \"name\" :args {...}})",
        ],
    ),
    (
        r#"(tool/call {:server "" :tool "read"})"#,
        &[
            "certain: tool/call requires :server (string), got \"\". Configured upstreams: files; did you mean {:server \"files\" :tool \"read\"}?",
        ],
    ),
    (
        "(fn [x] (tool/call {:tool x}))",
        &[
            "certain: tool/call requires :server (string), got nil. Configured upstreams: files; write (tool/call {:server \"name\" :tool \"name\" :args {...}})",
        ],
    ),
    (
        r#"(fn [x] (tool/call {:server "files" :tool 5 :args x}))"#,
        &[
            "certain: tool/call on upstream 'files' requires :tool (string), got 5; write (tool/call {:server \"name\" :tool \"name\" :args {...}})",
        ],
    ),
    (
        r#"(fn [x] (tool/call {:server x :tool ""}))"#,
        &[
            "certain: tool/call requires :tool (string), got \"\"; write (tool/call {:server \"name\" :tool \"name\" :args {...}})",
        ],
    ),
    (
        r#"(tool/call "files" "read" {:path "a"})"#,
        &["certain: tool/call takes 1 argument, got 3; write (tool/call {:server \"name\" :tool \"name\" :args {...}})"],
    ),
    (
        "(tool/call)",
        &["certain: tool/call takes 1 argument, got 0; write (tool/call {:server \"name\" :tool \"name\" :args {...}})"],
    ),
    (
        r#"(fn [x] (tool/call ["files" x]))"#,
        &[
            "certain: tool/call takes a map {:server … :tool … :args {…}}, got a vector; write (tool/call {:server \"name\" :tool \"name\" :args {...}})",
        ],
    ),
    (
        r#"(fn [p] (tool/call {:server "files" :tool "read" :args [:path p]}))"#,
        &[
            "certain: tool 'files.read' rejected args: :args must be a map, got a vector; (doc \"files/read\") shows its arguments",
        ],
    ),
    (
        r#"(tool/call {:server "files" :tool "list" :args nil})"#,
        &["certain: tool 'files.list' rejected args: :args must be a map, got nil; (doc \"files/list\") shows its arguments"],
    ),
    // Computed names are left to the run.
    (r#"(fn [k] (tool/call {:server "files" k "read"}))"#, &[]),
    (r#"(let [s (str "x")] (tool/call {:server s :tool "read"}))"#, &[]),
    (r#"(let [m (assoc {} :path 1)] (tool/call {:server "files" :tool "read" :args m}))"#, &[]),
    (r#"(map tool/call [{:server "x" :tool "y"}])"#, &[]),
    (r#"(map :name (tool/value {:server "files" :tool "list"}))"#, &[]),
    (
        r#"(tool/value {:server "files" :tool "list" :max 5})"#,
        &[
            "certain: tool/value got unknown key \"max\"; its keys are :server, :tool and :args; arguments of the tool go into :args",
        ],
    ),
    (r#"(tool/all {:server "files" :tool "list" :max 5})"#, &[]),
    (
        r#"(tool/all {:server "files" :tool "list" :max "5"})"#,
        &["certain: tool/all: :max must be a positive integer, got \"5\"; leave :max out for all items"],
    ),
    (
        r#"(tool/all {:server "files" :tool "list" :limit 5})"#,
        &[
            "certain: tool/all got unknown key \"limit\"; its keys are :server, :tool, :args and :max; arguments of the tool go into :args",
        ],
    ),
    (r#"(tool/value {:server "file" :tool "read"})"#, &["certain: no upstream 'file' configured; did you mean 'files'?"]),
    (
        "(tool/value)",
        &["certain: tool/value takes 1 argument, got 0; write (tool/value {:server \"name\" :tool \"name\" :args {...}})"],
    ),
];

/// Findings of a review, which resolves names to their literals.
const NAMED: &[(&str, &[&str])] = &[
    // Names are resolved through `let`, the parameters of enclosing functions, and a single `def`.
    (
        r#"(let [s "fils"] (tool/call {:server s :tool "read"}))"#,
        &["perhaps: no upstream 'fils' configured; did you mean 'files'?"],
    ),
    (
        r#"(def s "fils") (defn f [p] (tool/call {:server s :tool "read" :args {:path p}})) (f 1)"#,
        &["perhaps: no upstream 'fils' configured; did you mean 'files'?"],
    ),
    (
        r#"(fn [p] (let [args {:pth p}] (map (fn [t] (tool/call {:server "files" :tool "read" :args args})) [1])))"#,
        &[
            "perhaps: tool 'files.read' rejected args: missing required args path; did you mean 'path' instead of 'pth'?",
            "perhaps: tool 'files.read' rejected args: unknown arg 'pth'; did you mean 'path'?",
        ],
    ),
    (
        r#"(let [n "ten" request {:server "files" :tool "find" :args {:limit n}}] (tool/call request))"#,
        &[
            "perhaps: tool 'files.find' rejected args: 'limit' must be integer, got string \"ten\"; (doc \"files/find\") shows its arguments",
        ],
    ),
    // A name with several definitions is not resolved.
    (r#"(def s "fils") (def s "files") (tool/call {:server s :tool "list"})"#, &[]),
    (r#"(let [s "fils" s "files"] (tool/call {:server s :tool "list"}))"#, &[]),
    (r#"(loop [s "fils"] (if (= s "fils") (recur "files") (tool/call {:server s :tool "list"})))"#, &[]),
    (r#"(let [f (fn [s] (tool/call {:server s :tool "list"}))] (let [s "fils"] (f "files")))"#, &[]),
    (r#"(do (let [s "fils"] s) (for [s ["files"]] (tool/call {:server s :tool "list"})))"#, &[]),
    (r#"(do (let [s "fils"] s) (let [{:keys [s]} data/x] (tool/call {:server s :tool "list"})))"#, &[]),
    (r#"(do (let [s "fils"] s) (let [[s] ["files"]] (tool/call {:server s :tool "list"})))"#, &[]),
    (r#"(letfn [(f [s] (tool/call {:server s :tool "list"}))] (let [s "fils"] (f "files")))"#, &[]),
];

fn lines(findings: Vec<ptc_check::Finding>) -> Vec<String> {
    let line = |f: ptc_check::Finding| {
        let sure = if f.is_certain() { "certain" } else { "perhaps" };
        format!("{sure}: {}; {}", f.message, f.hint.unwrap_or_default())
    };
    findings.into_iter().map(line).collect()
}

/// A condition may test for just the wrong value, so that these findings are not certain.
#[test]
fn review_resolves_names_to_their_values() {
    for (source, expected) in NAMED {
        let program = Program::compile(source).unwrap_or_else(|fault| panic!("{source}: {fault}"));
        assert_eq!(ptc_check::check(&program, &CATALOG), [], "{source}");
        assert_eq!(&lines(ptc_check::review(&program, &CATALOG).findings), expected, "{source}");
    }
}

#[test]
fn programs_have_the_expected_findings() {
    for (source, expected) in CASES {
        let program = Program::compile(source).unwrap_or_else(|fault| panic!("{source}: {fault}"));
        let found = lines(ptc_check::check(&program, &CATALOG));
        assert_eq!(&found, expected, "{source}");
    }
}

#[test]
fn finding_points_at_the_faulty_expression() {
    for (source, expected) in [
        (r#"(tool/call {:server "x" :tool "y"})"#, &[r#""x""#][..]),
        (r#"(tool/call {:server "files" "tool" "y"})"#, &[r#""y""#]),
        (r#"(tool/call {:server "files" :tool "read"})"#, &[r#"{:server "files" :tool "read"}"#]),
        (r#"(fn [n] (tool/call {:server "files" :tool "read" :args {:page-size n}}))"#, &["{:page-size n}"]),
        (r#"(tool/call {:server "files" :tool "find" :args {:limit "ten" :order (str 1) :version 3}})"#, &[r#""ten""#, "3"]),
        (r#"(tool/call {:server "files" :tool "read" :arg {:path "a"}})"#, &[":arg"]),
        (r#"(tool/call {:server "files" :tool "list" :args {:größe 1, "b" 2}})"#, &[":größe", r#""b""#]),
        // The finding points to the name.
        (r#"(let [s "x" call {:server s :tool "y"}] (tool/call call))"#, &["s"]),
        (r#"(let [a {:größe 1}] (tool/call {:server "files" :tool "list" :args a}))"#, &["a"]),
        (r#"[(tool/call "files" "list") 1]"#, &[r#"(tool/call "files" "list")"#]),
    ] {
        let program = Program::compile(source).expect("it compiles");
        let findings = ptc_check::review(&program, &CATALOG).findings;
        let marked: Vec<&str> = findings.iter().map(|f| &source[f.span.start as usize..f.span.end as usize]).collect();
        assert_eq!(marked, expected, "{source}");
    }
}

/// Programs that do not compile, with the suggested call.
const MEANT: &[(&str, &str)] = &[
    ("(files/read {:path 1})", r#"call the tool with (tool/call {:server "files" :tool "read" :args {:path …}})"#),
    ("(files/serch {})", r#"call the tool with (tool/call {:server "files" :tool "search" :args {:pattern …}})"#),
    ("(tool/files/list)", r#"call the tool with (tool/call {:server "files" :tool "list" :args {}})"#),
    ("(tool/list {})", r#"call the tool with (tool/call {:server "files" :tool "list" :args {}})"#),
    ("(search \"a\")", r#"call the tool with (tool/call {:server "files" :tool "search" :args {:pattern …}})"#),
    ("(tool/call :files/list {})", r#"call the tool with (tool/call {:server "files" :tool "list" :args {}})"#),
    ("(file/list {})", r#"call the tool with (tool/call {:server "files" :tool "list" :args {}})"#),
    ("(Files/raed {})", r#"call the tool with (tool/call {:server "files" :tool "read" :args {:path …}})"#),
    (
        "(files/write {})",
        "tools are called with (tool/call {:server \"files\" :tool \"…\" :args {…}}); 'files' has no tool 'write', (dir \"files\") lists its tools",
    ),
    (
        "(disk/list {})",
        "namespaces are clojure.string, clojure.set, clojure.walk, json, Math, data, tool and others; see (apropos \"…\")",
    ),
    ("(let [search] 1)", "write (let [a 1 b 2] …)"),
    ("(try 1)", "errors cannot be caught: test for what may go wrong first, or end the program with (fail message)"),
];

#[test]
fn name_of_a_tool_gets_a_hint_with_its_call() {
    for (source, expected) in MEANT {
        let error = Program::compile(source).expect_err(source);
        assert_eq!(ptc_check::add_call_hint(error, source, &CATALOG).hint.as_deref(), Some(*expected), "{source}");
    }
}

#[test]
fn finding_becomes_an_error_with_its_position() {
    let source = "(+ 1\n   (tool/call {:server \"x\" :tool \"y\"}))";
    let program = Program::compile(source).expect("it compiles");
    let finding = ptc_check::check(&program, &CATALOG).remove(0);
    let error = finding.into_error(source);
    assert_eq!(error.position.map(|p| p.line), Some(2));
}

/// A program, how strictly arguments are checked, and the mismatches found before the run.
const OWN: &[(&str, Mode, &[&str])] = &[
    ("(tool/find-user {:id 1 :since \"2026-05-03T11:14:00Z\"})", Mode::Enabled, &[]),
    ("(tool/find_user {:id \"1\" :other 1})", Mode::Enabled, &[]),
    (
        "(tool/find_user {:id 1 :other 1})",
        Mode::Strict,
        &["other: unexpected field: no other fields than the declared ones are allowed"],
    ),
    (
        "(tool/find_user {:id data/x :other data/y})",
        Mode::Strict,
        &["other: unexpected field: no other fields than the declared ones are allowed"],
    ),
    ("(fn [x] (tool/find_user {:id x :tags [x \"a\"]}))", Mode::Enabled, &[]),
    ("(fn [x] (tool/find_user {:tags [x]}))", Mode::Enabled, &["id: expected int, got nil"]),
    ("(tool/find_user :since 5)", Mode::Enabled, &["id: expected int, got nil", "since: expected datetime, got int 5"]),
    ("(if data/x (tool/find_user) 1)", Mode::Enabled, &["id: expected int, got nil"]),
    ("(tool/find_user nil)", Mode::Enabled, &["id: expected int, got nil"]),
    ("(tool/find_user {:id \"one\"})", Mode::Enabled, &["id: expected int, got string \"one\""]),
    ("(tool/find_user {:id \"one\"})", Mode::WarnOnly, &[]),
    ("(tool/find_user {})", Mode::Disabled, &[]),
    // Computed values and parameters of functions are unknown.
    ("(tool/find_user data/args)", Mode::Enabled, &[]),
    ("(tool/find_user (keyword \"id\") 1)", Mode::Enabled, &[]),
    ("(map tool/find_user [{:id 1}])", Mode::Enabled, &[]),
];

#[test]
fn calls_of_host_tools_are_checked_against_signatures() {
    let signature: Signature = "(id :int, since :datetime?, tags [:string]?) -> :any".parse().expect("a signature");
    for (source, mode, expected) in OWN {
        let program = Program::compile_for(source, &Bindings::default(), &["find_user"]).expect("it compiles");
        let tool = HostTool { name: "find_user", signature: &signature, mode: *mode };
        let findings = ptc_check::host_tools::check(&program, &[tool]);
        assert!(findings.iter().all(ptc_check::Finding::is_certain), "{source}");
        let lines: Vec<&str> = findings.iter().flat_map(|f| f.message.lines().skip(1)).map(|line| &line[2..]).collect();
        assert_eq!(&lines, expected, "{source}");
    }
}

#[test]
fn definitions_of_earlier_programs_are_unknown() {
    let define = Program::compile("(def s \"files\")").expect("it compiles");
    let outcome = ptc_lisp::Run::new(&define).execute();
    let source = "(if data/x (def s \"fils\")) (tool/call {:server s :tool \"list\"})";
    let program = Program::compile_with(source, &outcome.bindings).expect("it compiles");
    assert_eq!(ptc_check::review(&program, &CATALOG).findings, []);
}
