//! What clients and readers of a deployment see of its writes: annotations, answers, and the outputs of the compiler.

use std::process::Command;

use ptc_tests::deployment::ptc_compile;
use ptc_tests::mcp::Client;
use ptc_tests::process::run;
use serde_json::{Value, json};

use super::service::{Service, accept, with_body};

/// A service with a read and two writes, and with stored programs.
fn shop() -> Service {
    let list = json!({ "operationId": "listOrders", "responses": { "200": { "description": "ok", "content": { "application/json": {} } } } });
    let order = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
    let mut delete = list.clone();
    delete["operationId"] = json!("deleteOrders");
    let paths =
        json!({ "/orders": { "get": list, "post": with_body("createOrder", "application/json", &order), "delete": delete } });
    let service = Service::start(&json!({ "include_operations": ["*"] }), &paths, accept);
    for (name, program) in [
        ("count.clj", r#"(count (:value (tool/call {:server "api" :tool "list-orders"})))"#),
        ("place.clj", r#"(:ok (tool/call {:server "api" :tool "create-order" :args {:n 1}}))"#),
        ("any.clj", r#"(:ok (tool/call {:server "api" :tool (str "list-" "orders")}))"#),
    ] {
        std::fs::write(service.folder().join(name), program).unwrap();
    }
    service
}

fn grant(service: &Service, operations: &Value) {
    let program = |file: &str| json!({ "file": file });
    let programs = json!({ "any": program("any.clj"), "count": program("count.clj"), "place": program("place.clj") });
    let used = if operations.as_array().unwrap().contains(&json!("createOrder")) { programs } else { json!({}) };
    service.configure(&json!({ "include_operations": operations }), &json!({ "programs": used }));
}

fn serve(service: &Service, options: &[&str]) -> Client {
    let mut command = Command::new(ptc_compile());
    command.args(["run", "upstreams.json"]).args(options).current_dir(service.folder());
    let mut client = Client::of(&mut command);
    client.initialize();
    client
}

/// Returns the name of each tool, and whether it is announced as read-only and as destructive.
fn announced(client: &mut Client) -> Vec<(String, bool, bool)> {
    let answer = client.request("tools/list", &json!({}));
    let hint = |tool: &Value, name: &str| tool["annotations"][name].as_bool().unwrap();
    let described =
        |tool: &Value| (tool["name"].as_str().unwrap().to_owned(), hint(tool, "readOnlyHint"), hint(tool, "destructiveHint"));
    answer["result"]["tools"].as_array().unwrap().iter().map(described).collect()
}

#[test]
fn annotations_follow_the_operations_that_programs_can_call() {
    let service = shop();
    for (operations, expected) in [
        (json!(["listOrders"]), vec![("lisp_eval", true, false)]),
        (
            json!(["listOrders", "createOrder"]),
            vec![("lisp_eval", false, false), ("any", false, false), ("count", true, false), ("place", false, false)],
        ),
        (
            json!(["listOrders", "createOrder", "deleteOrders"]),
            vec![("lisp_eval", false, true), ("any", false, true), ("count", true, false), ("place", false, false)],
        ),
    ] {
        grant(&service, &operations);
        let found = announced(&mut serve(&service, &[]));
        let found: Vec<(&str, bool, bool)> =
            found.iter().map(|(name, read_only, destructive)| (name.as_str(), *read_only, *destructive)).collect();
        assert_eq!(found, expected, "{operations}");
    }
}

#[test]
fn responses_of_every_profile_and_stored_programs_have_notes() {
    let service = shop();
    grant(&service, &json!(["listOrders", "createOrder"]));
    let twice = r#"(mapv (fn [n] (:reason (tool/call {:server "api" :tool "create-order" :args {:n n}}))) [1 2])"#;
    for profile in ["slim", "structured", "debug"] {
        let mut client = serve(&service, &["--max-writes-per-program", "1", "--response-profile", profile]);
        let answer = client.eval(twice);
        for expected in ["[nil :cap_exhausted]", "1 write was made", "budget of writes: 1 for each program, 1 was refused"] {
            assert!(answer.contains(expected), "{profile}: no {expected:?} in {answer}");
        }
        let failed = client.eval("(fail 1)");
        assert!(failed.contains("the program failed, and nothing was written"), "{profile}: {failed}");
        let stored = client.request("tools/call", &json!({ "name": "place", "arguments": {} }));
        assert!(stored.to_string().contains("1 write was made"), "{profile}: {stored}");
    }
}

#[test]
fn effect_is_in_lock_tables_and_catalogs() {
    let service = shop();
    grant(&service, &json!(["listOrders", "createOrder", "deleteOrders"]));
    let emit = |what: &str| {
        run(Command::new(ptc_compile()).args(["upstreams.json", "--emit", what]).current_dir(service.folder())).success()
    };
    let lock: Value = serde_json::from_str(&emit("lock")).unwrap();
    let tools = lock["upstreams"]["api"]["tools"].to_string();
    for annotations in [
        r#""annotations":{"readOnlyHint":true}"#,
        r#""annotations":{"destructiveHint":false,"idempotentHint":false,"readOnlyHint":false}"#,
        r#""annotations":{"destructiveHint":true,"idempotentHint":true,"readOnlyHint":false}"#,
    ] {
        assert!(tools.contains(annotations), "no {annotations} in {tools}");
    }
    let rust = emit("rust");
    assert!(rust.contains(r#"method: "POST""#) && rust.contains(r#"method: "DELETE""#), "{rust}");
    assert!(rust.contains(r#"media_type: "application/json""#) && rust.contains("read_only: Some(false)"), "{rust}");
    let catalog = emit("catalog-json");
    assert!(catalog.contains("\"destructiveHint\": true") || catalog.contains("\"destructiveHint\":true"), "{catalog}");
    let page = emit("html").replace("&#x2f;", "/");
    for mark in ["read-only", "changes things", "may destroy", "idempotent", "POST /orders", "DELETE /orders"] {
        assert!(page.contains(mark), "no {mark}");
    }
    let docs = emit("docs");
    assert!(docs.contains("effect: writes\n") && docs.contains("effect: writes, may destroy data, can be repeated\n"), "{docs}");
    let program = service.folder().join("place.clj");
    let checked =
        run(Command::new(ptc_compile()).args(["check-program", "upstreams.json"]).arg(program).current_dir(service.folder()));
    assert!(checked.stderr.contains("which change something"), "{}", checked.stderr);
}

/// The lock file decides what is served, so that `read_only` must hold there too.
#[test]
fn read_only_refuses_pinned_writes() {
    let service = shop();
    grant(&service, &json!(["createOrder"]));
    let compile = |args: &[&str]| run(Command::new(ptc_compile()).args(args).current_dir(service.folder()));
    compile(&["update", "upstreams.json"]).success();
    service.configure(&json!({ "include_operations": ["createOrder"] }), &json!({ "read_only": true }));
    for args in [
        &["upstreams.json", "--check"][..],
        &["upstreams.json", "--check", "--locked"],
        &["upstreams.json", "--locked", "--emit", "rust"],
        &["update", "upstreams.json"],
        &["check-program", "upstreams.json", "count.clj"],
    ] {
        let found = compile(args);
        assert!(found.code == Some(1) && found.stderr.contains("PTC0627"), "{args:?}: {}", found.stderr);
    }
}
