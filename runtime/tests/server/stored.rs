//! Stored programs are tools whose arguments and results are validated against their schemas.

use ptc_catalog::{Deployment, StoredProgram};
use serde_json::{Value, json};

use crate::Test;
use crate::peer::Peer;

/// The tests of this module.
pub(crate) const TESTS: &[Test] = &[
    ("stored::stored_programs_are_listed_as_tools", stored_programs_are_listed_as_tools),
    ("stored::arguments_are_data_and_results_are_structured", arguments_are_data_and_results_are_structured),
    ("stored::arguments_and_results_are_validated_against_schemas", arguments_and_results_are_validated_against_schemas),
    (
        "stored::validation_of_a_costly_schema_ends_at_the_program_timeout",
        validation_of_a_costly_schema_ends_at_the_program_timeout,
    ),
    ("stored::unknown_tool_gets_a_similar_name_or_the_list_of_tools", unknown_tool_gets_a_similar_name_or_the_list_of_tools),
];

const NUMBERS: &str = r#"{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a"],"additionalProperties":false}"#;

/// A schema whose references multiply the work without end.
const COSTLY: &str = r##"{"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{
"a":{"anyOf":[{"$ref":"#/$defs/b"},{"$ref":"#/$defs/b"},{"$ref":"#/$defs/b"},{"$ref":"#/$defs/b"},{"$ref":"#/$defs/b"},{"$ref":"#/$defs/b"}]},
"b":{"anyOf":[{"$ref":"#/$defs/c"},{"$ref":"#/$defs/c"},{"$ref":"#/$defs/c"},{"$ref":"#/$defs/c"},{"$ref":"#/$defs/c"},{"$ref":"#/$defs/c"}]},
"c":{"anyOf":[{"$ref":"#/$defs/d"},{"$ref":"#/$defs/d"},{"$ref":"#/$defs/d"},{"$ref":"#/$defs/d"},{"$ref":"#/$defs/d"},{"$ref":"#/$defs/d"}]},
"d":{"anyOf":[{"$ref":"#/$defs/e"},{"$ref":"#/$defs/e"},{"$ref":"#/$defs/e"},{"$ref":"#/$defs/e"},{"$ref":"#/$defs/e"},{"$ref":"#/$defs/e"}]},
"e":{"anyOf":[{"$ref":"#/$defs/f"},{"$ref":"#/$defs/f"},{"$ref":"#/$defs/f"},{"$ref":"#/$defs/f"},{"$ref":"#/$defs/f"},{"$ref":"#/$defs/f"}]},
"f":{"anyOf":[{"$ref":"#/$defs/g"},{"$ref":"#/$defs/g"},{"$ref":"#/$defs/g"},{"$ref":"#/$defs/g"},{"$ref":"#/$defs/g"},{"$ref":"#/$defs/g"}]},
"g":{"anyOf":[{"$ref":"#/$defs/h"},{"$ref":"#/$defs/h"},{"$ref":"#/$defs/h"},{"$ref":"#/$defs/h"},{"$ref":"#/$defs/h"},{"$ref":"#/$defs/h"}]},
"h":{"anyOf":[{"$ref":"#/$defs/i"},{"$ref":"#/$defs/i"},{"$ref":"#/$defs/i"},{"$ref":"#/$defs/i"},{"$ref":"#/$defs/i"},{"$ref":"#/$defs/i"}]},
"i":{"type":"string"}}}"##;

/// A deployment with three stored programs.
pub(crate) static DEPLOYMENT: Deployment = Deployment {
    name: "stored",
    compiler: "none",
    programs: &[
        StoredProgram { name: "costly", description: "", source: "data/a", digest: "sha256:0", args: COSTLY, output_schema: "" },
        StoredProgram {
            name: "plain-sum",
            description: "",
            source: "(+ data/a (or data/b 0))",
            digest: "sha256:1",
            args: NUMBERS,
            output_schema: "",
        },
        StoredProgram {
            name: "sum",
            description: "Adds.",
            source: "(if (> data/a 100) {:sum \"too much\"} {:sum (+ data/a (or data/b 0))})",
            digest: "sha256:2",
            args: NUMBERS,
            output_schema: r#"{"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"]}"#,
        },
    ],
    ..Deployment::EMPTY
};

fn ask(server: &mut Peer, method: &str, params: &Value) -> Value {
    server.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string());
    let answer: Value = serde_json::from_str(&server.receive()).expect("a line of JSON");
    answer["result"].clone()
}

fn call(server: &mut Peer, name: &str, arguments: &Value) -> Value {
    ask(server, "tools/call", &json!({ "name": name, "arguments": arguments }))
}

fn stored_programs_are_listed_as_tools() {
    let mut server = Peer::start_as("stored", &[]);
    let tools = ask(&mut server, "tools/list", &json!({}))["tools"].clone();
    let names: Vec<&str> = tools.as_array().into_iter().flatten().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["lisp_eval", "costly", "plain-sum", "sum"]);
    let sum = &tools[3];
    assert_eq!((&sum["description"], &sum["inputSchema"]["required"]), (&"Adds.".into(), &json!(["a"])));
    assert_eq!(sum["_meta"]["ptc-compile/program"], "sha256:2");
    assert_eq!(sum["outputSchema"]["required"], json!(["sum"]));
    assert_eq!(tools[2].get("outputSchema"), None);
}

fn arguments_are_data_and_results_are_structured() {
    let mut server = Peer::start_as("stored", &[]);
    let sum = call(&mut server, "sum", &json!({ "a": 1, "b": 2 }));
    assert_eq!((&sum["structuredContent"], &sum["isError"]), (&json!({ "sum": 3 }), &json!(false)));
    assert_eq!(sum["content"][0]["text"], r#"{"sum":3}"#);
    let plain = call(&mut server, "plain-sum", &json!({ "a": 5 }));
    assert_eq!((&plain["content"][0]["text"], plain.get("structuredContent")), (&"user=> 5".into(), None));
    // A client's program runs beside them and does not see their arguments.
    let own = call(&mut server, "lisp_eval", &json!({ "program": "data/a" }));
    assert_eq!(own["content"][0]["text"], "user=> nil");
}

fn arguments_and_results_are_validated_against_schemas() {
    let mut server = Peer::start_as("stored", &["--response-profile", "structured"]);
    for (arguments, reason, message) in [
        (json!({}), "args_error", "arguments.a: missing, but required"),
        (json!({ "a": "x" }), "args_error", "arguments.a: expected integer, got string \"x\""),
        (json!({ "a": 1, "c": 2 }), "args_error", "arguments.c: not allowed"),
        (json!({ "a": 101 }), "validation_error", "return.sum: expected integer"),
    ] {
        let answer = call(&mut server, "sum", &arguments);
        let said = &answer["structuredContent"];
        assert_eq!((&answer["isError"], &said["reason"]), (&json!(true), &reason.into()), "{answer}");
        assert!(said["message"].as_str().is_some_and(|text| text.starts_with(message)), "{answer}");
    }
    let unknown = call(&mut server, "summ", &json!({}));
    assert_eq!(unknown["structuredContent"]["reason"], "unknown_tool");
}

fn validation_of_a_costly_schema_ends_at_the_program_timeout() {
    let mut server = Peer::start_as("stored", &["--program-timeout-ms", "1", "--response-profile", "structured"]);
    let answer = call(&mut server, "costly", &json!({ "a": 1 }));
    assert_eq!(answer["structuredContent"]["reason"], "timeout", "{answer}");
    assert_eq!(answer["structuredContent"]["message"], "the wall clock ran out while the arguments were checked");
}

fn unknown_tool_gets_a_similar_name_or_the_list_of_tools() {
    let all = "The tools of this server are `lisp_eval`, `costly`, `plain-sum` and `sum`.";
    let more = "The tools of this server are `lisp_eval`, `lisp_session_…`, `lisp_debug`, `costly`, `plain-sum` and `sum`.";
    let few: &[&str] = &["--response-profile", "structured"];
    let flags: &[&str] = &["--response-profile", "structured", "--sessions", "--debug-tool"];
    for (flags, name, feedback) in [
        (few, "summ", "Did you mean `sum`?"),
        (few, "another", all),
        (few, "lisp_debug", "It is off: the server has to be started with --debug-tool."),
        (few, "lisp_session_eval", "Sessions are off: the server has to be started with --sessions."),
        (flags, "another", more),
        (flags, "lisp_debugg", "Did you mean `lisp_debug`?"),
        (flags, "lisp_session_evl", "Did you mean `lisp_session_eval`?"),
    ] {
        let answer = call(&mut Peer::start_as("stored", flags), name, &json!({}));
        let said = answer["structuredContent"]["feedback"].as_str().unwrap_or_default();
        assert_eq!(said, format!("unknown tool: {name}\n{feedback}"), "{answer}");
    }
}
