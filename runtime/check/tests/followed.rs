//! Calls of a program's own functions: the arguments that they pass are checked, and what stays unknown is reported.

use std::fmt::Write as _;

use ptc_catalog::{Annotations, Arg, Catalog, McpStdio, Tool, Tools, Transport, Type, Types, Upstream};
use ptc_lisp::{Program, Span};

const fn arg(name: &'static str, required: bool) -> Arg {
    Arg { name, required, types: Types::from_types(&[Type::String]), label: "string", allowed: "" }
}

const fn tool(name: &'static str, args: &'static [Arg]) -> Tool {
    let annotations = Annotations { read_only: Some(true), ..Annotations::NONE };
    Tool { name, args, closed: true, effects: annotations, annotations, ..Tool::EMPTY }
}

static CATALOG: Catalog = Catalog {
    digest: "",
    search_index: &[],
    upstreams: &[Upstream {
        name: "github",
        description: "",
        transport: Transport::McpStdio(McpStdio::new("x")),
        tools: Tools::table(&[
            tool("repos-get", &[arg("owner", true), arg("repo", true)]),
            tool("repos-list-for-org", &[arg("org", true)]),
        ]),
    }],
};

const TYPO: &str = "no tool 'repos-list-for-orgg' in upstream 'github'; did you mean 'repos-list-for-org'?";
const WRONG_ARG: &str = "tool 'github.repos-list-for-org' rejected args: unknown arg 'og'; did you mean 'org'?";
const MISSING: &str =
    "tool 'github.repos-list-for-org' rejected args: missing required args org; did you mean 'org' instead of 'og'?";
const NUMBER: &str = "tool 'github.repos-list-for-org' rejected args: 'org' must be string, got integer 5; (doc \"github/repos-list-for-org\") shows its arguments";
const TOOL: &str = "the tool is computed: name and arguments are not checked";
const ARGS: &str = "the arguments are computed: they are not checked";
const REQUEST: &str = "the request is computed: names and arguments are not checked";

const GH: &str = r#"(defn gh [tool args] (tool/call {:server "github" :tool tool :args args}))"#;

/// Programs after the definition of `gh`, with the marked text and the message of each finding and of each call that is not
/// checked.
const CASES: &[(&str, &[(&str, &str)])] = &[
    (r#"(gh "repos-list-for-org" {:org "acme"})"#, &[]),
    (r#"(gh "repos-list-for-orgg" {:org "acme"})"#, &[(r#""repos-list-for-orgg""#, TYPO)]),
    (r#"(gh "repos-list-for-org" {:og "acme"})"#, &[(r#"{:og "acme"}"#, MISSING), (":og", WRONG_ARG)]),
    (r#"(gh "repos-list-for-org" {:org 5})"#, &[("5", NUMBER)]),
    // The values of arguments may be computed.
    (r#"(defn repos [org] (gh "repos-list-for-org" {:org org})) (map repos ["a" "b"])"#, &[]),
    (r#"(defn repos [org] (gh "repos-list-for-orgg" {:org org})) (map repos ["a" "b"])"#, &[(r#""repos-list-for-orgg""#, TYPO)]),
    // Both calls of a function are checked, and both with one fault are reported.
    (
        r#"[(gh "repos-get" {:owner "a" :repo "b"}) (gh "repos-list-for-orgg" {:org "a"}) (gh "repos-list-for-orgg" {:org "b"})]"#,
        &[(r#""repos-list-for-orgg""#, TYPO), (r#""repos-list-for-orgg""#, TYPO)],
    ),
    // Functions in functions, functions of `let`, and literals of names around the call.
    (r#"(defn two [t] (gh t {:org "a"})) (two "repos-list-for-orgg")"#, &[(r#""repos-list-for-orgg""#, TYPO)]),
    (
        r#"(let [own (fn [t] (tool/call {:server "github" :tool t :args {:org "a"}}))] (own "repos-list-for-orgg"))"#,
        &[(r#""repos-list-for-orgg""#, TYPO), ("tool", TOOL)],
    ),
    (r#"(let [t "repos-list-for-orgg"] (gh t {:org "a"}))"#, &[(r#"(gh t {:org "a"})"#, TYPO)]),
    (r#"(defn org-of [n] (gh "repos-list-for-org" {:org n})) (org-of 5)"#, &[("(org-of 5)", NUMBER)]),
    (
        r#"(defn each [t] (mapv (fn [o] (gh t {:org o})) ["a"])) (each "repos-list-for-orgg")"#,
        &[(r#""repos-list-for-orgg""#, TYPO)],
    ),
    // What stays unknown is reported where it is computed, or where it is passed. `gh` itself is reported if it is not called, or
    // if it is used as a value.
    (r#"(gh (str "repos-" "get") {})"#, &[(r#"(gh (str "repos-" "get") {})"#, TOOL)]),
    (r#"(gh "repos-get" (assoc {} :owner 1))"#, &[(r#"(gh "repos-get" (assoc {} :owner 1))"#, ARGS)]),
    (r#"(map (fn [t] (gh t {})) ["a"])"#, &[("(gh t {})", TOOL)]),
    (r#"(map gh ["a"] [{}])"#, &[("tool", TOOL)]),
    (
        r#"(defn again [t n] (if (pos? n) (again (str t n) (dec n)) (gh t {}))) (again "repos-gett" 3)"#,
        &[(r#""repos-gett""#, "no tool 'repos-gett' in upstream 'github'; did you mean 'repos-get'?"), ("(gh t {})", TOOL)],
    ),
    (
        r#"(defn turns [t n] (if (pos? n) (recur (str t n) (dec n)) (gh t {}))) (turns "repos-get" 3)"#,
        &[("(turns \"repos-get\" 3)", TOOL)],
    ),
    ("(tool/call data/request)", &[("tool", TOOL), ("(tool/call data/request)", REQUEST)]),
    (
        "(map tool/call data/requests)",
        &[("tool", TOOL), ("tool/call", "a function that calls tools is used as a value: names and arguments are not checked")],
    ),
    // The slots of a caller are not those of the function.
    (r#"(let [a 1 o "acme" args {:org o}] (gh "repos-list-for-org" args))"#, &[]),
];

#[test]
fn calls_of_functions_of_the_program_are_followed() {
    let mut wrong = Vec::new();
    for (call, expected) in CASES {
        let source = format!("{GH} {call}");
        let program = Program::compile(&source).unwrap_or_else(|fault| panic!("{source}: {fault}"));
        let text = |span: Span| source[span.start as usize..span.end as usize].to_owned();
        let review = ptc_check::review(&program, &CATALOG);
        let found = review.findings.into_iter().map(|f| (text(f.span), format!("{}; {}", f.message, f.hint.unwrap_or_default())));
        let computed = ptc_check::computed_calls(&program).into_iter().map(|call| (text(call.span), call.message.to_owned()));
        let found: Vec<(String, String)> = found.chain(computed).collect();
        let found: Vec<(&str, &str)> = found.iter().map(|(text, message)| (text.as_str(), message.as_str())).collect();
        if found != *expected {
            wrong.push(format!("{source}\n{found:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A fault of the function itself is reported in the function, and not again for each call of it.
#[test]
fn fault_of_a_followed_function_is_reported_once() {
    let source = r#"(defn f [o] (tool/call {:server "githubb" :tool "repos-get" :args {:owner o}})) (f "a") (f "b")"#;
    let program = Program::compile(source).expect("it compiles");
    let findings = ptc_check::review(&program, &CATALOG).findings;
    assert_eq!(findings.iter().map(|finding| finding.message.as_str()).collect::<Vec<_>>(), ["no upstream 'githubb' configured"]);
}

#[test]
fn effects_of_followed_calls_are_known() {
    let source = format!("{GH} (gh \"repos-list-for-org\" {{:org \"acme\"}})");
    let program = Program::compile(&source).expect("it compiles");
    assert_eq!(ptc_check::review(&program, &CATALOG).cost.to_string(), "at most 1 upstream call, read-only");
}

/// Each function calls the one before it twice: the number of followed calls doubles with each function.
#[test]
fn number_of_followed_calls_is_bounded() {
    let mut source = r#"(defn f0 [t] (tool/call {:server "github" :tool t}))"#.to_owned();
    for n in 1..40 {
        write!(source, " (defn f{n} [t] [{}])", format!("(f{} t) ", n - 1).repeat(20)).expect("a string takes every text");
    }
    source += " (f39 \"repos-get\")";
    let program = Program::compile(&source).expect("it compiles");
    assert_eq!(ptc_check::computed_calls(&program).len(), 1, "the call as it is written");
}
