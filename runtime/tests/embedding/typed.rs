//! Tools whose signatures are derived from Rust types, and results that are parsed as types.

use std::collections::BTreeMap;

use ptc_lisp::print;
use ptc_runtime::embed::{Engine, Request, Tool, ToolDefinitionError, ToolFailure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Finds articles in the stock,
/// newest first.
#[derive(Deserialize, Serialize, JsonSchema, Debug)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Query {
    text_part: String,
    max_rows: Option<u8>,
    #[serde(default)]
    order_by: Order,
    #[serde(default)]
    price: Option<Range>,
    #[serde(default)]
    words: Vec<String>,
    #[serde(default)]
    counts: BTreeMap<String, i64>,
    #[serde(default)]
    tree: Option<Tree>,
    #[serde(default)]
    at: Option<(f64, f64)>,
    #[serde(default)]
    filter: Option<Filter>,
}

#[derive(Deserialize, Serialize, JsonSchema, Debug, Default)]
#[serde(rename_all = "kebab-case")]
enum Order {
    #[default]
    NewestFirst,
    /// By price.
    ByPrice,
}

#[derive(Deserialize, Serialize, JsonSchema, Debug)]
#[serde(rename_all = "kebab-case")]
struct Range {
    at_least: f64,
    at_most: Option<f64>,
}

#[derive(Deserialize, Serialize, JsonSchema, Debug)]
#[serde(rename_all = "kebab-case")]
struct Tree {
    node_id: i64,
    #[serde(default)]
    sub_trees: Vec<Tree>,
}

#[derive(Deserialize, Serialize, JsonSchema, Debug)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case", tag = "by-kind")]
enum Filter {
    InStock { at_least: u32 },
    All,
}

fn echo() -> Tool {
    Tool::typed("echo", |query: Query| Ok(query)).unwrap()
}

/// Returns the value or the failure of a program.
fn run(tool: Tool, program: &str) -> String {
    let engine = Engine::builder().tool(tool).build().unwrap();
    engine.run(Request::new(program)).value().map_or_else(ToString::to_string, print::readable)
}

#[test]
fn signature_and_description_follow_from_the_types() {
    let fields = "at :any?, counts :map?, filter :map?, max-rows :int?, order-by :string?, \
                  price {at-least :float, at-most :float?}?, tree {node-id :int, sub-trees [:any]?}?, words [:string]?";
    let shown = echo().to_string();
    let (signature, rest) = shown.split_once(" -> ").unwrap();
    assert_eq!(signature, format!("echo(text-part :string, {fields})"));
    // All fields are serialized, so that the result has all of them, in the order of their declaration.
    assert!(rest.starts_with("{text-part :string, max-rows :int?, order-by :string, price {at-least"), "{rest}");
    assert!(rest.ends_with("\n  Finds articles in the stock, newest first."), "{rest}");
    let doc = run(echo(), "(doc tool/echo)");
    assert!(doc.contains("Signature: (text-part :string, at :any?"), "{doc}");
}

#[test]
fn arguments_of_every_kind_reach_the_function() {
    for (args, part, expected) in [
        ("", "order-by", "\"newest-first\""),
        (":max-rows 3", "max-rows", "3"),
        (":order-by :by-price", "order-by", "\"by-price\""),
        (":order-by nil", "order-by", "\"newest-first\""),
        (":price {:at-least 1}", "price", "{\"at-least\" 1.0 \"at-most\" nil}"),
        (":words #{\"a\"}", "words", "[\"a\"]"),
        (":words nil", "words", "[]"),
        (":counts {:a-b 1}", "counts", "{\"a_b\" 1}"),
        (
            ":tree {:node-id 1 :sub-trees [{:node-id 2}]}",
            "tree",
            "{\"node-id\" 1 \"sub-trees\" [{\"node-id\" 2 \"sub-trees\" []}]}",
        ),
        (":at [1 2.5]", "at", "[1.0 2.5]"),
        (":filter {:by-kind :in-stock :at-least 2}", "filter", "{\"at-least\" 2 \"by-kind\" \"in-stock\"}"),
    ] {
        let program = format!("(:{part} (tool/echo {{:text-part \"x\" {args}}}))");
        assert_eq!(run(echo(), &program), expected, "{program}");
    }
}

#[test]
fn wrong_arguments_are_refused_before_the_function_runs() {
    let tool = || Tool::typed("never", |_: Query| -> Result<(), ToolFailure> { panic!("it ran") }).unwrap();
    for (args, expected) in [
        ("{}", "expected string, got nil"),
        ("{:text-part \"x\" :max-rows \"many\"}", "max-rows: expected int, got string \"many\""),
        ("{:text-part \"x\" :price {:at-most 1}}", "price.at-least: expected float, got nil"),
        ("{:text-part \"x\" :max-rows 256}", "unusable arguments: invalid value: integer `256`, expected u8"),
        ("{:text-part \"x\" :order-by :oldest}", "unknown variant `oldest`, expected `newest-first` or `by-price`"),
        ("{:text-part \"x\" :tree {:node-id 1 :sub-trees [{}]}}", "missing field `node-id`"),
        ("{:text-part \"x\" :at [1]}", "invalid length 1, expected a tuple of size 2"),
        ("{:text-part \"x\" :text \"y\"}", "unknown field `text`, expected one of `text-part`"),
    ] {
        let shown = run(tool(), &format!("(tool/never {args})"));
        assert!(shown.contains(expected), "{args}: {shown}");
    }
}

#[derive(Deserialize, JsonSchema)]
struct Double {
    n: i64,
}

#[test]
fn asynchronous_function_is_called_with_typed_arguments() {
    let tool = || {
        Tool::typed_async("double", |Double { n }| async move {
            tokio::task::yield_now().await;
            if n < 0 { Err(ToolFailure::new("it is negative")) } else { Ok(n * 2) }
        })
    };
    assert_eq!(tool().unwrap().to_string(), "double(n :int) -> :int");
    assert_eq!(run(tool().unwrap(), "(tool/double {:n \"21\"})"), "42");
    assert!(run(tool().unwrap(), "(tool/double {:n -1})").contains("it is negative"));
    assert!(run(tool().unwrap(), "(tool/double {:n 9223372036854775808})").contains("unusable arguments"));
}

#[test]
fn arguments_that_are_not_a_struct_are_refused() {
    let refused = |tool: Result<Tool, ToolDefinitionError>| tool.map(|tool| tool.to_string()).unwrap_err().to_string();
    assert_eq!(
        refused(Tool::typed("pair", |pair: (i64, i64)| Ok(pair))),
        "the signature of the tool \"pair\": the arguments of a tool are an object, got the schema of :any"
    );
    assert!(refused(Tool::typed("a b", |query: Query| Ok(query))).contains("a tool cannot be named"));
}

#[test]
fn result_is_parsed_as_the_type_of_the_request() {
    let engine = Engine::builder().build().unwrap();
    let parse = |program: &str| engine.run(Request::new(program).returns::<Range>()).parse::<Range>();
    assert!(matches!(parse("{:at-least 1}"), Ok(Range { at_least: 1.0, at_most: None })));
    assert_eq!(parse("{:at-most 1}").unwrap_err().reason.name(), "validation_error");
    assert_eq!(parse("(mpa inc [])").unwrap_err().reason.name(), "runtime_error");
    let failure = engine.run(Request::new("1")).parse::<i64>().unwrap_err();
    assert_eq!(failure.message, "the request has neither a signature nor a schema");
}
