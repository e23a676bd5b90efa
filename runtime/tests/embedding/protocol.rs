//! The protocol of `lisp_eval`: descriptions, arguments, payloads, and values as JSON.

use std::collections::BTreeSet;

use ptc_lisp::{Bindings, Program, Run, Value};
use ptc_runtime::embed::{Engine, Request};
use ptc_runtime::ptc_runner_compat::{
    Capability, ErrorOptions, ErrorReason, Execution, Memory, SuccessOptions, atomize_value, parse_signature, render,
    render_error, render_success, to_json_value, validate_program, validate_return,
};
use serde_json::{json, value::RawValue};

fn parsed(payload: &str) -> serde_json::Value {
    serde_json::from_str(payload).unwrap()
}

#[test]
fn each_description_states_its_capabilities() {
    for (capability, says) in [
        (Capability::InProcessWithAppTools, &["`(tool/name ", "only `lisp_eval`"][..]),
        (Capability::InProcessTextMode, &["`(tool/name ", "`:both`", "not natively in the same turn as `lisp_eval`"]),
        (Capability::McpNoTools, &["without side effects or tools", "with context {", "Each call starts afresh"]),
    ] {
        let description = capability.description();
        assert!(says.iter().all(|says| description.contains(says)) && !description.contains("  "), "{description}");
    }
    let all: BTreeSet<&str> = Capability::ALL.iter().map(|capability| capability.description()).collect();
    assert_eq!(all.len(), Capability::ALL.len());
}

#[test]
fn program_argument_is_validated() {
    let fault = |program: serde_json::Value| validate_program(Some(&program)).unwrap_err().to_string();
    assert_eq!(validate_program(Some(&json!("(+ 1 2)"))), Ok("(+ 1 2)"));
    assert_eq!(validate_program(None).unwrap_err().message(), "lisp_eval requires a non-empty `program` string argument.");
    assert_eq!(fault(json!(null)), "lisp_eval requires a non-empty `program` string argument.");
    assert_eq!(fault(json!("  \n")), "lisp_eval `program` must be a non-empty string.");
    assert_eq!(fault(json!(42)), "lisp_eval `program` must be a string, got 42.");
    assert_eq!(fault(json!({"a": 1})), "lisp_eval `program` must be a string, got {\"a\":1}.");
    assert!(fault(json!(["é".repeat(500)])).len() < 300);
    assert_eq!(
        parsed(&validate_program(None).unwrap_err().render()),
        json!({
            "status": "error", "reason": "args_error",
            "message": "lisp_eval requires a non-empty `program` string argument.",
            "feedback": "lisp_eval requires a non-empty `program` string argument.",
        })
    );
}

#[test]
fn empty_members_of_a_success_are_omitted() {
    let memory = Memory::new().changed("a", "1").stored_keys(["b", "a"]).truncated(true);
    let full = Execution::new()
        .result("user=> 42")
        .print("hi")
        .feedback("computed")
        .memory(memory)
        .truncated(true)
        .visible_truncated(false);
    let validated = RawValue::from_string(r#"{"count":7}"#.into()).unwrap();
    assert_eq!(
        render_success(&full, &SuccessOptions::default().validated(&validated)),
        r#"{"status":"ok","result":"user=> 42","prints":["hi"],"feedback":"computed","truncated":true,"memory":{"changed":{"a":"1"},"stored_keys":["a","b"],"truncated":true},"validated":{"count":7}}"#
    );
    // A payload without memory does not report that memory was truncated.
    assert_eq!(
        parsed(&render_success(&full, &SuccessOptions::ONE_SHOT)),
        json!({"status": "ok", "result": "user=> 42", "prints": ["hi"], "feedback": "computed", "truncated": false})
    );
    let result = |result: Option<&str>, returned_nil| {
        let execution = Execution::new().returned_nil(returned_nil);
        let execution = match result {
            Some(text) => execution.result(text),
            None => execution,
        };
        parsed(&render_success(&execution, &SuccessOptions::ONE_SHOT)).get("result").cloned()
    };
    assert_eq!(result(None, true), None);
    assert_eq!(result(None, false), Some(json!(null)));
    assert_eq!(result(Some("x"), true), Some(json!("x")));
}

#[test]
fn only_the_reason_fail_has_a_result() {
    let options = ErrorOptions::new().result("{:bad 42}");
    for reason in ErrorReason::ALL.iter().copied() {
        let payload = parsed(&render_error(reason, "boom", options));
        let mut expected = json!({"status": "error", "reason": reason.name(), "message": "boom", "feedback": "boom"});
        if reason == ErrorReason::Fail {
            expected["result"] = json!("{:bad 42}");
        }
        assert_eq!(payload, expected);
    }
    let names: Vec<&str> = ErrorReason::ALL.iter().map(|reason| reason.name()).collect();
    assert_eq!(names, ["parse_error", "runtime_error", "timeout", "memory_limit", "args_error", "fail", "validation_error"]);
    let payload = parsed(&render_error(ErrorReason::Fail, "raw", ErrorOptions::new().feedback("polished")));
    assert_eq!((&payload["feedback"], &payload["result"]), (&json!("polished"), &json!(null)));
    assert!(payload.as_object().unwrap().contains_key("result"));
}

#[test]
fn responses_of_the_engine_are_rendered_as_payloads() {
    let engine = Engine::builder().build().unwrap();
    let payload = |program: &str| parsed(&render(&engine.run(Request::new(program)), &SuccessOptions::ONE_SHOT));
    assert_eq!(payload("(+ 1 2)")["result"], "user=> 3");
    let printed = payload("(println \"hi\")");
    assert_eq!((printed.get("result"), &printed["prints"], printed.get("memory")), (None, &json!(["hi"]), None));
    let failed = payload("(fail {:code 7})");
    assert_eq!((&failed["reason"], &failed["result"]), (&json!("fail"), &json!("{:code 7}")));
    let wrong = payload("(+ 1");
    assert_eq!(wrong["reason"], "parse_error");
    assert!(wrong["feedback"].as_str().unwrap().contains("line 1"), "{wrong}");
    assert_eq!(payload("(range 1e9)")["status"], "error");

    let first = engine.run(Request::new("(def kept 1)"));
    let second = engine.run(Request::new("(def kept 2) (def other [kept]) kept").after(&first));
    let options = SuccessOptions::STATEFUL.before(first.bindings());
    let payload = parsed(&render(&second, &options));
    assert_eq!(
        payload["memory"],
        json!({"changed": {"kept": "2", "other": "[2]"}, "stored_keys": ["kept", "other"], "truncated": false})
    );
    assert_eq!(payload["feedback"], "kept = 2\nother = [2]");
    assert_eq!(Execution::from_answer(&second, &Bindings::default()).unwrap().memory.changed.len(), 2);

    // The protocol has a closed list of reasons, so that a reason of this server is reported as `runtime_error`.
    let cancel = ptc_lisp::Cancel::default();
    cancel.cancel();
    let payload = parsed(&render(&engine.run(Request::new("1").cancel(cancel)), &SuccessOptions::ONE_SHOT));
    assert_eq!((&payload["reason"], &payload["message"]), (&json!("runtime_error"), &json!("cancelled: the run was cancelled")));

    let signature = parse_signature("() -> {count :int}").unwrap();
    let request = Request::new("{:count 3}").signature(signature, ptc_lisp::signature::Mode::Enabled);
    assert_eq!(parsed(&render(&engine.run(request), &SuccessOptions::ONE_SHOT))["validated"], json!({"count": 3}));
}

#[test]
fn reasons_of_engine_failures_match_the_documented_table() {
    let engine = Engine::builder().build().unwrap();
    let signature = || parse_signature("(limit :int?) -> {count :int}").unwrap();
    let enabled = ptc_lisp::signature::Mode::Enabled;
    let request = |program: &str| Request::new(program);
    let schema = r#"{"type": "integer"}"#;
    for (request, reason, message) in [
        (
            request("{:count \"x\"}").signature(signature(), enabled),
            "runtime_error",
            "return validation errors:\n- count: expected int",
        ),
        (request("{:count 1 :f inc}").signature(signature(), enabled), "runtime_error", "return: non-JSON-encodable value at f"),
        (request("\"x\"").output_schema(schema), "validation_error", "return: expected integer"),
        (request("1").context_json("[1]"), "args_error", "`context` must be a JSON object"),
        (
            request("1").context_json(r#"{"limit": "x"}"#).signature(signature(), enabled),
            "args_error",
            "context validation errors",
        ),
        (request("1").output_schema("{"), "args_error", "`output_schema` is invalid"),
        (Request::stored("absent"), "args_error", "there is no stored program absent"),
    ] {
        let payload = parsed(&render(&engine.run(request), &SuccessOptions::ONE_SHOT));
        assert_eq!(payload["reason"], reason, "{payload}");
        assert!(payload["message"].as_str().unwrap().contains(message), "{payload}");
    }
}

fn value(source: &str) -> Value {
    Run::new(&Program::compile(source).unwrap()).execute_on_thread().result.unwrap()
}

#[test]
fn values_without_json_form_are_reported_with_their_path() {
    for (source, expected) in [
        ("{:count 2 :items [:a :b]}", r#"{"count":2,"items":["a","b"]}"#),
        ("[1.5 nil true \"x\" #{2 1}]", r#"[1.5,null,true,"x",[1,2]]"#),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        ("(java.util.Date. 0)", r#""1970-01-01T00:00:00Z""#),
        ("(LocalDate/parse \"2026-05-03\")", r#""2026-05-03""#),
        ("{:a 1 \"b\" 2}", r#"{"a":1,"b":2}"#),
        ("inc", "! non-JSON-encodable value at <root>: a function has no JSON form"),
        ("{:rows [{:ts inc}]}", "! non-JSON-encodable value at rows[0].ts: a function has no JSON form"),
        ("{:rows [{:ok 1} {:ts ##Inf}]}", "! non-JSON-encodable value at rows[1].ts: an infinite number has no JSON form"),
        ("{1 \"a\" \"1\" \"b\"}", "! non-JSON-encodable value at <root>: an integer as a key has no JSON form"),
        ("{:by {:a 1 \"a\" 2}}", "! non-JSON-encodable value at by: the keys :a and \"a\" are one in JSON"),
        ("{:by {true 1}}", "! non-JSON-encodable value at by: a boolean as a key has no JSON form"),
        ("[[#\"x\"]]", "! non-JSON-encodable value at [0][0]: a regex has no JSON form"),
    ] {
        let found = to_json_value(&value(source)).map_or_else(|why| format!("! {why}"), |json| json.get().to_owned());
        assert_eq!(found, expected, "{source}");
    }
    let deep = value("(reduce (fn [v _] [v]) [] (range 5000))");
    assert_eq!(to_json_value(&deep).unwrap().get().len(), 10_002);
}

#[test]
fn result_is_converted_and_validated_against_its_signature() {
    let signature = parse_signature("() -> {state :keyword, count :int}").unwrap();
    let wire = ptc_lisp::json::decode(br#"{"state": "open", "count": 3}"#).unwrap();
    let typed = atomize_value(&wire, &signature.output);
    assert_eq!(typed.get("state"), Some(&Value::keyword("open")));
    assert_eq!(validate_return(Some(&signature), &typed), Ok(()));
    assert_eq!(validate_return(None, &value("inc")), Ok(()));
    let mismatches = validate_return(Some(&signature), &value("{:state 1}")).unwrap_err().to_string();
    assert_eq!(mismatches, "- state: expected keyword, got int 1\n- count: expected int, got nil");
    let error = parse_signature("not a signature").unwrap_err();
    assert_eq!(error.position.unwrap().column, 1);
}

#[test]
fn schema_validator_and_signature_agree() {
    const VALUES: &[&str] = &[
        "null",
        "true",
        "7",
        "-0.5",
        "3.0",
        "12345678901234567890",
        r#""x""#,
        r#""""#,
        "[]",
        "[1]",
        "[1, 2.5]",
        "[null]",
        r#"["a"]"#,
        "{}",
        r#"{"id": 1}"#,
        r#"{"id": "1"}"#,
        r#"{"id": null}"#,
        r#"{"id": 1, "name": null}"#,
        r#"{"id": 1, "name": "x", "more": []}"#,
        r#"{"rows": [{"id": 1}, {"id": 2}]}"#,
        r#"{"rows": [{"id": 1}, {}]}"#,
        r#"{"rows": [[1]]}"#,
    ];
    let types = [
        ":string",
        ":int",
        ":int?",
        ":float",
        ":bool",
        ":any",
        ":any?",
        ":map",
        ":map?",
        "[:int]",
        "[:float?]",
        "[:any]",
        "{}",
        "{id :int}",
        "{id :int?}",
        "{id :any, name :string?}",
        "{rows [{id :int}]}",
        "{rows [{id :int}]?}",
        "[[:int]?]?",
    ];
    let mut agreed = (0, 0);
    for text in types {
        let mut of = parse_signature(text).unwrap().output;
        for closed in [false, true] {
            if let ptc_lisp::signature::Type::Fields { closed: is, .. } = &mut of {
                *is = closed;
            }
            let schema = ptc_runtime::schema::Schema::compile(&of.to_json_schema()).unwrap();
            for json in VALUES {
                let value = ptc_lisp::json::decode(json.as_bytes()).unwrap();
                let theirs = schema.validate(&value, &|| false).unwrap().mismatches.is_empty();
                // JSON Schema counts 3.0 as an integer. PTC-Lisp keeps it a double.
                let double = matches!(*json, "3.0");
                if !double {
                    assert_eq!(of.validate(&value).is_ok(), theirs, "{text} closed: {closed} {json}");
                }
                if theirs { agreed.0 += 1 } else { agreed.1 += 1 }
            }
        }
    }
    assert!(agreed.0 > 100 && agreed.1 > 100, "{agreed:?}");
}
