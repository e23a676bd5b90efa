//! Which operations an entry includes, their effects, and how often a request is sent.

use serde_json::{Value, json};

use super::service::{Service, accept, eval, with_body};
use crate::web::Answer;

/// An operation without a body.
fn plain(id: &str) -> Value {
    json!({ "operationId": id, "responses": { "200": { "description": "ok", "content": { "application/json": {} } } } })
}

/// Paths with an operation of each method.
fn shop() -> Value {
    let mut paths = json!({ "/orders": {
        "get": plain("listOrders"),
        "post": with_body("createOrder", "application/json", &json!({ "type": "object", "properties": { "n": { "type": "integer" } } })),
        "trace": plain("traceOrders") },
        "/orders/search": { "post": plain("searchOrders") },
        "/orders/{id}": { "put": plain("replaceOrder"), "patch": plain("changeOrder"), "delete": plain("deleteOrder") } });
    paths["/orders/{id}"]["parameters"] =
        json!([{ "name": "id", "in": "path", "required": true, "schema": { "type": "string" } }]);
    paths
}

/// Opens a config with these keys in the entry. Returns the names of the tools, or the findings.
fn tools(entry: &Value) -> Result<String, String> {
    let service = Service::start(entry, &shop(), accept);
    Ok(eval(&service.open(|_| {})?, r#"(dir "api")"#).result.unwrap())
}

#[test]
fn writes_are_included_by_their_exact_names_only() {
    for name in ["createOrder", "create-order", "POST /orders", "post /orders"] {
        assert_eq!(tools(&json!({ "include_operations": [name] })).unwrap(), r#"["api/create-order"]"#, "{name}");
    }
    let renamed = json!({ "include_operations": ["new"], "operation_overrides": { "createOrder": { "name": "new" } } });
    assert_eq!(tools(&renamed).unwrap(), r#"["api/new"]"#);
    for pattern in ["*", "*Order*", "/orders*"] {
        assert_eq!(tools(&json!({ "include_operations": [pattern] })).unwrap(), r#"["api/list-orders"]"#, "{pattern}");
    }
    let only_writes = tools(&json!({ "include_operations": ["create*"] })).unwrap_err();
    assert!(only_writes.contains("PTC0528") && only_writes.contains("name each of them"), "{only_writes}");
}

#[test]
fn writes_need_the_permission_of_the_entry() {
    let refused = tools(&json!({ "allow_writes": false, "include_operations": ["createOrder", "traceOrders"] })).unwrap_err();
    for expected in [
        "PTC0514",
        "`createOrder` is a POST operation, and the entry does not allow writes",
        "`\"allow_writes\": true` allows it",
        "`traceOrders` is a TRACE operation, which cannot be included",
    ] {
        assert!(refused.contains(expected), "no {expected:?} in {refused}");
    }
    // A search by POST is a read, and a GET can be declared to write.
    let search = json!({ "allow_writes": false, "include_operations": ["searchOrders"],
        "operation_overrides": { "searchOrders": { "read_only": true } } });
    assert_eq!(tools(&search).unwrap(), r#"["api/search-orders"]"#);
    let writes = json!({ "allow_writes": false, "include_operations": ["listOrders"],
        "operation_overrides": { "listOrders": { "read_only": false } } });
    assert!(tools(&writes).unwrap_err().contains("`listOrders` is a GET operation, and the entry does not allow writes"));
}

#[test]
fn effect_comes_from_the_method_and_the_override() {
    let entry = json!({ "include_operations": ["createOrder", "replaceOrder", "changeOrder", "deleteOrder", "listOrders", "searchOrders"],
        "operation_overrides": { "changeOrder": { "idempotent": true, "destructive": true }, "searchOrders": { "read_only": true },
            "deleteOrder": { "destructive": false, "idempotent": false } } });
    let service = Service::start(&entry, &shop(), accept);
    let engine = service.engine();
    for (tool, expected) in [
        ("create-order", Some("writes")),
        ("replace-order", Some("writes, can be repeated")),
        ("change-order", Some("writes, may destroy data, can be repeated")),
        ("delete-order", Some("writes")),
        ("list-orders", None),
        ("search-orders", None),
    ] {
        let doc = eval(&engine, &format!(r#"(doc "api/{tool}")"#)).result.unwrap();
        let effect = doc.lines().find_map(|line| line.strip_prefix("effect: "));
        assert_eq!(effect, expected, "{doc}");
    }
}

#[test]
fn read_only_config_refuses_every_operation_that_writes() {
    let service = Service::start(&json!({ "include_operations": ["listOrders"] }), &shop(), accept);
    let only_reads = json!({ "read_only": true });
    service.configure(&json!({ "include_operations": ["listOrders"] }), &only_reads);
    service.open(|_| {}).unwrap();
    service.configure(&json!({ "include_operations": ["listOrders", "DELETE /orders/{id}"] }), &only_reads);
    let findings = service.open(|_| {}).unwrap_err();
    assert!(findings.contains("PTC0627") && findings.contains("`delete-order` of `api` changes things"), "{findings}");
    assert!(!findings.contains("`list-orders`"), "{findings}");
}

/// Makes a service that closes the connection of the first `lost` requests without an answer.
fn losing(entry: &Value, lost: usize) -> Service {
    let count = std::sync::atomic::AtomicUsize::new(0);
    let mut entry = entry.clone();
    entry["include_operations"] = json!(["createOrder", "PUT /orders/{id}", "changeOrder", "deleteOrder", "listOrders"]);
    Service::start(&entry, &shop(), move |_| {
        let is_lost = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) < lost;
        if is_lost { Answer::Close } else { Answer::json(200, "{}") }
    })
}

#[test]
fn lost_request_is_retried_once_if_it_is_a_read_or_idempotent() {
    for (tool, args, times) in [
        ("createOrder", "{:n 1}", 1),
        ("changeOrder", r#"{:id "1"}"#, 1),
        ("replaceOrder", r#"{:id "1"}"#, 2),
        ("deleteOrder", r#"{:id "1"}"#, 2),
        ("listOrders", "{}", 2),
    ] {
        for lost in [1, 2] {
            let service = losing(&json!({}), lost);
            let call = format!(r#"(:ok (tool/call {{:server "api" :tool "{tool}" :args {args}}}))"#);
            let result = eval(&service.engine(), &call).result.unwrap();
            assert_eq!((service.web.requests().len(), result == "true"), (times, times > lost), "{tool} {lost}");
        }
    }
}

#[test]
fn write_has_a_new_key_and_its_retry_the_same_key() {
    let service = losing(&json!({ "idempotency_header": "Idempotency-Key" }), 1);
    let engine = service.engine();
    let call = r#"(:ok (tool/call {:server "api" :tool "createOrder" :args {:n 1}}))"#;
    assert_eq!(eval(&engine, &format!("[{call} {call}]")).result.unwrap(), "[true true]");
    let given = r#"(:ok (tool/call {:server "api" :tool "createOrder" :args {:n 1} :idempotency_key "order 7"}))"#;
    let read = r#"(:ok (tool/call {:server "api" :tool "listOrders"}))"#;
    assert_eq!(eval(&engine, &format!("[{given} {read}]")).result.unwrap(), "[true true]");
    let requests = service.web.requests();
    let keys: Vec<Option<&str>> = requests.iter().map(|asked| asked.header("idempotency-key")).collect();
    let [Some(first), Some(again), Some(second), Some("order 7"), None] = keys.as_slice() else { panic!("{keys:?}") };
    assert_eq!(first, again);
    assert_ne!(first, second);
    assert_eq!((first.len(), first.as_bytes()[14]), (36, b'4'), "a UUID of version 4: {first}");
}

#[test]
fn key_without_effect_is_refused() {
    let keyed = losing(&json!({ "idempotency_header": "Idempotency-Key" }), 0);
    let bare = losing(&json!({}), 0);
    for (service, tool, key, expected) in [
        (&keyed, "listOrders", r#""k""#, "only reads, so that it has no idempotency key"),
        (&bare, "createOrder", r#""k""#, "the entry of its upstream has no `idempotency_header`"),
        (&keyed, "createOrder", r#""a\nb""#, "requires :idempotency_key to be a string of printable ASCII characters"),
        (&keyed, "createOrder", "7", "requires :idempotency_key to be a string of printable ASCII characters"),
    ] {
        let call = format!(r#"(tool/call {{:server "api" :tool "{tool}" :idempotency_key {key}}})"#);
        let message = eval(&service.engine(), &call).result.unwrap_err();
        assert!(message.contains(expected), "{message}");
        assert!(service.web.requests().is_empty());
    }
}

#[test]
fn parameter_that_carries_the_key_is_not_an_argument() {
    let mut paths = shop();
    let key = json!([{ "name": "idempotency-key", "in": "header", "required": true, "schema": { "type": "string" } }]);
    paths["/orders"]["post"]["parameters"] = key.clone();
    let entry = json!({ "include_operations": ["createOrder"], "idempotency_header": "Idempotency-Key" });
    let service = Service::start(&entry, &paths, accept);
    let doc = eval(&service.engine(), r#"(doc "api/create-order")"#).result.unwrap();
    assert!(doc.contains("args: {:n integer?}"), "{doc}");
}

#[test]
fn redirect_of_a_write_is_returned_as_its_result() {
    let service = Service::start(&json!({ "include_operations": ["createOrder", "listOrders"] }), &shop(), |asked| {
        match asked.target.as_str() {
            "/v1/orders" => Answer::Full(303, vec!["Location: /v1/done".into()], vec![]),
            _ => Answer::json(200, "\"done\""),
        }
    });
    let engine = service.engine();
    let call = |tool: &str| {
        format!(
            r#"(let [r (tool/call {{:server "api" :tool "{tool}"}})] [(:ok r) (:status r) (:value r) (get (:headers r) "location")])"#
        )
    };
    assert_eq!(eval(&engine, &call("createOrder")).result.unwrap(), r#"[true 303 nil "/v1/done"]"#);
    assert_eq!(service.web.requests().len(), 1);
    assert_eq!(eval(&engine, &call("listOrders")).result.unwrap(), r#"[true 200 "done" nil]"#);
}

#[test]
fn pages_of_a_write_are_not_read() {
    let service = Service::start(&json!({ "include_operations": ["createOrder"] }), &shop(), accept);
    let message = eval(&service.engine(), r#"(tool/all {:server "api" :tool "createOrder"})"#).result.unwrap_err();
    assert!(message.contains("the operation writes, and reading pages would repeat it"), "{message}");
    assert!(service.web.requests().is_empty());
}

/// A read by POST and one by QUERY become a GET where browsers make them one, and keep their body elsewhere.
#[test]
fn redirect_of_a_read_changes_its_method_as_in_browsers() {
    let mut paths = json!({});
    for status in [301, 302, 303, 307, 308] {
        let body = json!({ "type": "object", "properties": { "q": { "type": "string" } } });
        paths[format!("/{status}")] = json!({ "post": with_body(&format!("post{status}"), "application/json", &body),
            "query": with_body(&format!("query{status}"), "application/json", &body) });
    }
    let overrides: serde_json::Map<String, Value> =
        [301, 302, 303, 307, 308].iter().map(|status| (format!("post{status}"), json!({ "read_only": true }))).collect();
    let entry = json!({ "include_operations": ["post*", "query*"], "operation_overrides": overrides });
    let service = Service::start(&entry, &paths, |asked| match asked.target.trim_start_matches("/v1/").parse() {
        Ok(status) => Answer::Full(status, vec!["Location: /v1/done".into()], vec![]),
        Err(_) => {
            Answer::json(200, json!([asked.method, asked.body, asked.header("content-type"), asked.header("content-length")]))
        }
    });
    let engine = service.engine();
    let body = r#"{"q":"x"}"#;
    let kept = |method: &str| json!([method, body, "application/json", "9"]);
    for (tool, expected) in [
        ("post301", json!(["GET", "", null, null])),
        ("post302", json!(["GET", "", null, null])),
        ("post303", json!(["GET", "", null, null])),
        ("post307", kept("POST")),
        ("post308", kept("POST")),
        ("query301", kept("QUERY")),
        ("query302", kept("QUERY")),
        ("query303", json!(["GET", "", null, null])),
        ("query307", kept("QUERY")),
        ("query308", kept("QUERY")),
    ] {
        let call = format!(r#"(json/generate-string (:value (tool/call {{:server "api" :tool "{tool}" :args {{:q "x"}}}})))"#);
        let result = eval(&engine, &call).result.unwrap();
        let text: String = serde_json::from_str(&result).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected, "{tool}");
    }
}
