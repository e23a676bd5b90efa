//! Programs write through a pinned binary to a real HTTP service that keeps its data in SQLite. Its state must be the one that
//! the same calls leave when `reqwest` makes them.

#![expect(clippy::indexing_slicing, reason = "a test stops where an answer lacks what it looks at")]

mod calls;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use ptc_tests::deployment::build;
use ptc_tests::mcp::Client;
use ptc_tests::process::{Background, free_port, wait_for};
use serde_json::{Value, json};

use self::calls::{Call, Random};

/// Number of generated programs.
const PROGRAMS: u64 = 200;

/// Functions that each program begins with.
const PRELUDE: &str = r#"
(defn call [tool args more] (tool/call (merge {:server "shop" :tool tool :args args} more)))
(defn status [tool args more] (let [r (call tool args more)] (or (:status r) (:message r))))
(defn entity-tag [order] (get (:headers (call "get-order" {:order order} {})) "etag"))
"#;

struct Service {
    process: Background,
    port: u16,
}

impl Service {
    fn start(folder: &Path, name: &str) -> Service {
        let port = free_port();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/writes/service.py");
        let mut command = Command::new("python3");
        command.arg(script).arg(port.to_string()).arg(folder.join(name));
        Service { process: Background::start(&mut command).ready_on(port), port }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    fn state(&self, client: &reqwest::blocking::Client) -> Value {
        let answer = client.get(self.url("/state")).send().expect("an answer");
        serde_json::from_str(&answer.text().expect("a text")).expect("JSON")
    }
}

/// Returns a client that follows no redirects.
fn http_client() -> reqwest::blocking::Client {
    // Fails if the other test has installed it already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::blocking::Client::builder().redirect(reqwest::redirect::Policy::none()).build().expect("a client")
}

fn operation(id: &str, body: Option<(&str, Value)>, parameters: &[Value]) -> Value {
    let responses = json!({ "default": { "description": "the result", "content": { "application/json": {} } } });
    let mut operation = json!({ "operationId": id, "parameters": parameters, "responses": responses });
    if let Some((media_type, schema)) = body {
        operation["requestBody"] = json!({ "required": true, "content": { (media_type): { "schema": schema } } });
    }
    operation
}

/// The document of the service.
fn document() -> Value {
    let line = json!({ "type": "object", "required": ["sku", "count"],
        "properties": { "sku": { "type": "string" }, "count": { "type": "integer", "minimum": 1 } } });
    let order = json!({ "type": "object", "required": ["customer", "reference", "lines"], "properties": {
        "id": { "type": "integer", "readOnly": true },
        "customer": { "type": "string" },
        "reference": { "type": "string" },
        "lines": { "type": "array", "items": line },
        "note": { "type": ["string", "null"] } } });
    let change =
        json!({ "type": "object", "properties": { "customer": { "type": "string" }, "note": { "type": ["string", "null"] } } });
    let payment = json!({ "type": "object", "required": ["amount", "method"], "properties": {
        "amount": { "type": "integer" }, "method": { "type": "string" },
        "tags": { "type": "array", "items": { "type": "string" } } } });
    let file = json!({ "type": "object", "required": ["file"], "properties": {
        "caption": { "type": "string" }, "file": { "type": "string", "format": "binary" },
        "meta": { "type": "object", "properties": { "page": { "type": "integer" }, "title": { "type": "string" } } } } });
    let text = json!({ "type": "string" });
    let id = json!({ "name": "order", "in": "path", "required": true, "schema": { "type": "integer" } });
    let tag = json!({ "name": "If-Match", "in": "header", "schema": { "type": "string" } });
    let json = "application/json";
    json!({ "openapi": "3.1.0", "info": { "title": "Shop", "version": "1" }, "paths": {
        "/orders": { "post": operation("createOrder", Some((json, order.clone())), &[]) },
        "/orders/{order}": {
            "parameters": [id],
            "get": operation("getOrder", None, &[]),
            "put": operation("replaceOrder", Some((json, order)), std::slice::from_ref(&tag)),
            "patch": operation("changeOrder", Some(("application/merge-patch+json", change)), &[tag]),
            "delete": operation("deleteOrder", None, &[]) },
        "/orders/{order}/payments": { "parameters": [id],
            "post": operation("pay", Some(("application/x-www-form-urlencoded", payment)), &[]) },
        "/orders/{order}/files": { "parameters": [id], "post": operation("attach", Some(("multipart/form-data", file)), &[]) },
        "/orders/{order}/note": { "parameters": [id], "put": operation("setNote", Some(("text/plain", text)), &[]) },
        "/orders/{order}/close": { "parameters": [id], "post": operation("close", None, &[]) },
        "/orders/{order}/ship": { "parameters": [id], "post": operation("ship", None, &[]) } } })
}

/// Builds the pinned binary for the service, and starts it.
fn serve(folder: &Path, service: &Service) -> Client {
    std::fs::write(folder.join("shop.json"), document().to_string()).expect("a file");
    let operations = [
        "getOrder",
        "createOrder",
        "replaceOrder",
        "changeOrder",
        "DELETE /orders/{order}",
        "pay",
        "attach",
        "setNote",
        "close",
        "ship",
    ];
    let entry = json!({ "transport": "openapi", "base_url": service.url("/v1"), "schema_file": "shop.json", "allow_insecure_http": true,
        "allow_writes": true, "idempotency_header": "Idempotency-Key", "include_operations": operations,
        "request_timeout_ms": 20_000 });
    let config = folder.join("upstreams.json");
    std::fs::write(&config, json!({ "upstreams": { "shop": entry } }).to_string()).expect("a file");
    let binary = folder.join("pinned");
    build(&config, &binary, &["--offline"]);
    let mut client = Client::start(&binary, &["--response-profile", "structured", "--program-timeout-ms", "30000"]);
    client.initialize();
    client
}

/// Runs a program. Returns the whole answer.
fn eval(client: &mut Client, program: &str) -> Value {
    let call = json!({ "name": "lisp_eval", "arguments": { "program": format!("{PRELUDE}{program}") } });
    client.request("tools/call", &call)["result"].clone()
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn programs_write_the_same_as_calls_of_another_client() {
    let folder = tempfile::tempdir().expect("a folder");
    let [ours, theirs] = ["ours.db", "theirs.db"].map(|name| Service::start(folder.path(), name));
    let mut binary = serve(folder.path(), &ours);
    let client = http_client();
    let mut random = Random(32);
    let mut seen = std::collections::BTreeMap::<u16, usize>::new();
    for number in 0..PROGRAMS {
        let calls: Vec<Call> = (0..2 + random.below(8)).map(|_| calls::draw(&mut random, number / 3)).collect();
        let expected: Vec<u16> = calls.iter().map(|call| call.send(&client, &theirs.url("/v1"))).collect();
        let program = format!("[{}]", calls.iter().map(Call::lisp).collect::<Vec<_>>().join("\n "));
        let answer = eval(&mut binary, &program);
        let text = answer.to_string();
        assert!(text.contains(&format!("{expected:?}").replace(',', "")), "{expected:?}\n{program}\n{text}");
        assert_eq!(ours.state(&client), theirs.state(&client), "after program {number}: {program}");
        for status in expected {
            *seen.entry(status).or_default() += 1;
        }
    }
    // Otherwise the programs would not have tried what the test is about.
    for status in [200, 201, 204, 303, 404, 409, 412, 422, 428] {
        assert!(seen.contains_key(&status), "no answer had the status {status}: {seen:?}");
    }
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn service_killed_during_a_write_makes_its_outcome_uncertain() {
    let folder = tempfile::tempdir().expect("a folder");
    let service = Service::start(folder.path(), "shop.db");
    let mut binary = serve(folder.path(), &service);
    let client = http_client();
    let create = Call::Create { body: json!({ "customer": "Ann", "reference": "r", "lines": [] }), key: None }.lisp();
    let order = eval(&mut binary, &create);
    assert!(order.to_string().contains("201"), "{order}");
    let port = service.port;
    let killer = std::thread::spawn(move || {
        wait_for(|| service.state(&client)["notes"] == json!([[1, "shipped"]]), "the note that the write makes");
        std::thread::sleep(Duration::from_millis(50));
        drop(service.process);
    });
    let program = format!(r#"[{} (:reason (call "ship" {{:order 1}} {{}}))]"#, Call::Note { order: 1, text: "a".into() }.lisp());
    let answer = eval(&mut binary, &program).to_string();
    killer.join().expect("the service was killed");
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
    for expected in ["[200 :", "1 write was made", "1 more write was sent with unknown outcome: shop/ship"] {
        assert!(answer.contains(expected), "no {expected:?} in {answer}");
    }
}
