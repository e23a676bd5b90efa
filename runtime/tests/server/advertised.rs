//! Compares answers with the `outputSchema` that `tools/list` of the same server advertises.

use litemap::LiteMap;
use ptc_lisp::json::decode;
use ptc_runtime::schema::Schema;
use serde_json::{Value, json};

use crate::Test;
use crate::peer::Peer;

/// The tests of this module.
pub(crate) const TESTS: &[Test] =
    &[("advertised::responses_of_every_tool_match_its_advertised_schema", responses_of_every_tool_match_its_advertised_schema)];

/// The output schemas of a server, by tool.
pub(crate) struct Advertised(LiteMap<String, Option<Schema>>);

impl Advertised {
    /// Reads the schemas that a server lists.
    pub(crate) fn request(server: &mut Peer) -> Advertised {
        server.send(r#"{"jsonrpc":"2.0","id":"advertised","method":"tools/list"}"#);
        let listed: Value = serde_json::from_str(&server.receive()).expect("JSON");
        let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}"));
        let schema = |tool: &Value| {
            let text = tool.get("outputSchema")?.to_string();
            Some(Schema::compile(&decode(text.as_bytes()).expect("JSON")).expect("a schema"))
        };
        Advertised(tools.iter().map(|tool| (tool["name"].as_str().expect("a name").to_owned(), schema(tool))).collect())
    }

    /// Returns the mismatch of a result with the schema of its tool, if any.
    pub(crate) fn fault(&self, tool: &str, result: &Value) -> Option<String> {
        // An unknown tool has no schema.
        let schema = self.0.get(tool)?;
        match (schema, result.get("structuredContent")) {
            (None, _) => None,
            (Some(_), None) => Some(format!("{tool} says what it answers with, and answered with text: {result}")),
            (Some(schema), Some(content)) => {
                let content = decode(content.to_string().as_bytes()).expect("JSON");
                let report = schema.validate(&content, &|| false).expect("it ends");
                report.mismatches.first().map(|first| format!("{tool}: {first} in {result}"))
            }
        }
    }
}

fn responses_of_every_tool_match_its_advertised_schema() {
    for role in ["plain", "aggregator"] {
        for profile in ["slim", "structured", "debug"] {
            judge(role, profile);
        }
    }
}

fn judge(role: &str, profile: &str) {
    let limits = ["--program-timeout-ms", "300", "--program-memory-limit-bytes", "8000000"];
    let mut server =
        Peer::start_as(role, &[&["--sessions", "--debug-tool", "--response-profile", profile][..], &limits].concat());
    let advertised = Advertised::request(&mut server);
    let silent: Vec<&str> = advertised.0.iter().filter(|(_, schema)| schema.is_none()).map(|(name, _)| &**name).collect();
    let evals: &[&str] = if profile == "slim" { &["lisp_eval", "lisp_session_eval"] } else { &[] };
    assert_eq!(silent, evals, "{role} {profile}");

    let mut seen: LiteMap<String, [u32; 2]> = LiteMap::new();
    let mut reasons = Vec::new();
    let mut ask = |tool: &str, arguments: &Value| {
        let params = json!({ "name": tool, "arguments": arguments });
        server.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string());
        let answer: Value = serde_json::from_str(&server.receive()).expect("JSON");
        let result = &answer["result"];
        if let Some(fault) = advertised.fault(tool, result) {
            panic!("{role} {profile}: {fault}");
        }
        let failed = result["isError"].as_bool().unwrap_or_else(|| panic!("{answer}"));
        seen.entry(tool.to_owned()).or_insert([0, 0])[usize::from(failed)] += 1;
        reasons.extend(result["structuredContent"]["reason"].as_str().map(str::to_owned));
        result["structuredContent"].clone()
    };
    let id = ask("lisp_session_start", &json!({ "title": "t" }))["session_id"].clone();
    ask("lisp_session_start", &json!({ "ttl_ms": 0 }));
    let upstream = r#"(tool/call {:server "child" :tool "echo" :args {:text "x"}})"#;
    let missing = r#"(do (tool/call {:server "child" :tool "none"}) (fail 1))"#;
    for program in [
        "1",
        "nil",
        "(println 1) 2",
        "(def x 1)",
        "(vec (range 100000))",
        "(",
        "(/ 1 nil)",
        "(fail {:a 1})",
        "(vec (range 9000000))",
        upstream,
        missing,
        r#"(dotimes [_ 9000] (println "a")) 1"#,
    ] {
        for arguments in [json!({}), json!({ "output_schema": { "type": "integer" } }), json!({ "output_schema": {} })] {
            let mut arguments = arguments;
            arguments["program"] = program.into();
            ask("lisp_eval", &arguments);
            arguments["session_id"] = id.clone();
            ask("lisp_session_eval", &arguments);
        }
    }
    ask("lisp_eval", &json!({ "program": "(loop [] (recur))" }));
    ask("lisp_eval", &json!({ "program": 1 }));
    ask("lisp_session_eval", &json!({ "program": "1", "session_id": "none" }));
    for view in ["overview", "memory", "prints", "tool_calls", "history", "limits", "none"] {
        ask("lisp_session_inspect", &json!({ "session_id": id, "view": view }));
    }
    ask("lisp_session_list", &json!({}));
    ask("lisp_session_list", &json!({ "more": 1 }));
    ask("lisp_session_forget", &json!({ "session_id": id, "bindings": ["x"], "clear": ["history"] }));
    ask("lisp_session_forget", &json!({}));
    for operation in ["stats", "recent", "none"] {
        ask("lisp_debug", &json!({ "op": operation }));
    }
    let last = ask("lisp_debug", &json!({ "op": "recent", "limit": 1 }))["calls"][0]["request_id"].clone();
    for request in [last, json!("none")] {
        ask("lisp_debug", &json!({ "op": "get", "request_id": request }));
    }
    ask("lisp_session_close", &json!({ "session_id": id }));
    ask("lisp_session_close", &json!({ "session_id": id }));

    for (tool, _) in advertised.0.iter() {
        let [well, ill] = seen.get(tool).copied().unwrap_or_default();
        assert!(well > 0 && ill > 0, "{tool} answered {well} times, refused {ill} times");
    }
    let of_programs = ["parse_error", "runtime_error", "fail", "timeout", "memory_limit", "args_error", "validation_error"];
    for reason in of_programs.iter().filter(|_| profile != "slim") {
        assert!(reasons.iter().any(|seen| seen == reason), "{role} {profile}: nothing ended with {reason}");
    }
}
