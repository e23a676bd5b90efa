//! Tests OpenAPI documents behind a `schema_url`: they are requested like the upstream's own calls, pinned by digest, and limited
//! in size.

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

use ptc_tests::deployment::ptc_compile;
use ptc_tests::process::{Finished, run};
use serde_json::{Value, json};
use tiny_http::{Header, Response, Server};

/// A token that is obviously fake.
const TOKEN: &str = "canary-token-of-a-schema-url";

/// The current behaviour of the document's host.
#[derive(Clone)]
enum Answer {
    Document(Value),
    /// Documents by their paths.
    Files(Vec<(&'static str, Value)>),
    Status(u16),
    Redirect(String),
    Silence,
}

struct Host {
    url: String,
    answer: Arc<Mutex<Answer>>,
    /// The header lines of each request.
    asked: Arc<Mutex<Vec<Vec<String>>>>,
}

impl Host {
    fn open() -> Host {
        let server = Server::http("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", server.server_addr());
        let answer = Arc::new(Mutex::new(Answer::Silence));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (answers, log) = (Arc::clone(&answer), Arc::clone(&asked));
        std::thread::spawn(move || {
            // Unanswered requests are kept, since dropping them would close their connections.
            let mut unanswered = Vec::new();
            for request in server.incoming_requests() {
                let headers: Vec<String> = request.headers().iter().map(|header| header.to_string().to_lowercase()).collect();
                log.lock().unwrap_or_else(PoisonError::into_inner).push(headers);
                let answer: Answer = answers.lock().unwrap_or_else(PoisonError::into_inner).clone();
                // Ignore the error of a client that has disconnected.
                let _ = match answer {
                    Answer::Document(document) => request.respond(Response::from_string(document.to_string())),
                    Answer::Files(files) => match files.iter().find(|(path, _)| *path == request.url()) {
                        Some((_, document)) => request.respond(Response::from_string(document.to_string())),
                        None => request.respond(Response::empty(404)),
                    },
                    Answer::Status(status) => {
                        request.respond(Response::from_string(format!("no: {TOKEN}")).with_status_code(status))
                    }
                    Answer::Redirect(to) => {
                        let location = Header::from_bytes("location", to).expect("a header");
                        request.respond(Response::empty(302).with_header(location))
                    }
                    Answer::Silence => {
                        unanswered.push(request);
                        Ok(())
                    }
                };
            }
        });
        Host { url, answer, asked }
    }

    fn answers(&self, answer: Answer) {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = answer;
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn asked(&self) -> Vec<Vec<String>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Makes a config whose only upstream reads its document from `host`.
fn config(host: &Host) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let entry = json!({
        "transport": "openapi",
        "base_url": host.url,
        "schema_url": format!("{}/openapi.json", host.url),
        "include_operations": ["*"],
        "auth": [{ "scheme": "bearer", "binding": "shop" }],
        "static_headers": { "X-Tenant": "acme" },
        "allow_insecure_http": true,
        "allow_insecure_auth": true,
        "request_timeout_ms": 1000,
        "schema_max_bytes": 4096,
    });
    let credentials = json!({ "shop": { "source": "env", "var": "PTC_TEST_SHOP_TOKEN" } });
    let config = json!({ "credentials": credentials, "upstreams": { "shop": entry } });
    std::fs::write(folder.path().join("upstreams.json"), config.to_string()).expect("a config");
    folder
}

fn document(summary: &str, parameters: &Value) -> Value {
    let responses = json!({ "200": { "description": "Orders", "content": { "application/json": {} } } });
    let get = json!({ "operationId": "listOrders", "summary": summary, "parameters": parameters, "responses": responses });
    json!({ "openapi": "3.0.3", "info": { "title": "Shop", "version": "1" }, "paths": { "/orders": { "get": get } } })
}

fn compile(folder: &Path, args: &[&str]) -> Finished {
    run(Command::new(ptc_compile()).args(args).args(["--format", "short"]).current_dir(folder).env("PTC_TEST_SHOP_TOKEN", TOKEN))
}

fn lock(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("upstreams.lock.json")).unwrap_or_default()
}

#[test]
fn document_is_requested_like_the_upstream_and_pinned_by_digest() {
    let host = Host::open();
    let folder = config(&host);
    let folder = folder.path();
    let first = document("Lists orders.", &json!([]));
    host.answers(Answer::Document(first.clone()));
    compile(folder, &["update", "upstreams.json"]).success();
    let asked = host.asked();
    assert_eq!(asked.len(), 1, "{asked:?}");
    for header in [format!("authorization: bearer {TOKEN}"), "x-tenant: acme".to_owned()] {
        assert!(asked[0].contains(&header), "no {header:?} in {asked:?}");
    }
    let pinned = lock(folder);
    let digest = ptc_compiler::lock::sha256(first.to_string().as_bytes());
    assert!(pinned.contains(&format!("\"digest\": \"{digest}\"")), "no {digest} in {pinned}");

    // A pinned document is not requested again, neither by a build nor by a check.
    host.answers(Answer::Status(500));
    for args in [&["upstreams.json", "--emit", "lock"][..], &["upstreams.json", "--locked", "--emit", "lock"]] {
        compile(folder, args).success();
    }
    compile(folder, &["--check", "upstreams.json", "--locked"]).success();
    assert_eq!(host.asked(), Vec::<Vec<String>>::new());

    let required = json!([{ "name": "state", "in": "query", "required": true, "schema": { "type": "string" } }]);
    host.answers(Answer::Document(document("Lists orders.", &required)));
    let changed = compile(folder, &["diff", "upstreams.json"]);
    assert_eq!(changed.code, Some(1), "{}", changed.stderr);
    assert!(changed.stderr.contains("error[PTC0612]: `list-orders` needs the new argument `state`"), "{}", changed.stderr);
    assert_eq!(lock(folder), pinned, "comparing changes nothing");
}

/// Checks that neither the lock nor a message contains a secret that the host sends back.
#[test]
fn secret_in_a_fetched_document_is_redacted() {
    let host = Host::open();
    let folder = config(&host);
    host.answers(Answer::Document(document(&format!("Your token is {TOKEN}."), &json!([]))));
    let update = compile(folder.path(), &["update", "upstreams.json"]);
    assert_eq!(update.code, Some(0), "{}", update.stderr);
    assert!(update.stderr.contains("warning[PTC0625]"), "{}", update.stderr);
    let pinned = lock(folder.path());
    assert!(pinned.contains("[REDACTED]") && !pinned.contains(TOKEN) && !update.stderr.contains(TOKEN), "{pinned}");
}

#[test]
fn unavailable_document_is_reported_with_its_reason() {
    let (host, other) = (Host::open(), Host::open());
    let folder = config(&host);
    other.answers(Answer::Document(document("Lists orders.", &json!([]))));
    let long = "x".repeat(5000);
    for (answer, reason) in [
        (Answer::Status(404), "404"),
        (Answer::Document(document(&long, &json!([]))), "larger than 4096 bytes (schema_max_bytes)"),
        (Answer::Redirect(format!("{}/openapi.json", other.url)), "302"),
        (Answer::Silence, "did not arrive within 1000 ms (request_timeout_ms)"),
    ] {
        host.answers(answer);
        let update = compile(folder.path(), &["update", "upstreams.json"]);
        assert_eq!(update.code, Some(1), "{reason}: {}", update.stderr);
        assert!(update.stderr.contains("error[PTC0606]") && update.stderr.contains(reason), "{reason}: {}", update.stderr);
        assert!(update.stderr.contains("see that `schema_url`, its credentials and its limits are right"), "{}", update.stderr);
        assert!(!update.stderr.contains(TOKEN), "{}", update.stderr);
        assert_eq!(lock(folder.path()), "", "{reason}");
    }
    // No credential is sent to the target of a redirect.
    assert_eq!(other.asked(), Vec::<Vec<String>>::new());
}

#[test]
fn files_on_the_origin_of_a_document_are_fetched_and_pinned() {
    let host = Host::open();
    let folder = config(&host);
    let folder = folder.path();
    let parts = |schema: Value| json!({ "limit": { "name": "limit", "in": "query", "schema": schema } });
    let refers_to = |file: &str| document("Lists orders.", &json!([{ "$ref": format!("{file}#/limit") }]));
    let files =
        |part: Value| Answer::Files(vec![("/openapi.json", refers_to("/shared/parts.json")), ("/shared/parts.json", part)]);
    host.answers(files(parts(json!({ "$ref": "../shared/parts.json#/count" }))));
    let missing = compile(folder, &["update", "upstreams.json"]);
    assert!(missing.stderr.contains("leads nowhere: there is no `count`"), "{}", missing.stderr);

    host.answers(files(parts(json!({ "type": "integer" }))));
    compile(folder, &["update", "upstreams.json"]).success();
    let pinned = lock(folder);
    assert!(
        pinned.contains("list-orders") && pinned.contains(&format!("\"{}/shared/parts.json\": \"sha256:", host.url)),
        "{pinned}"
    );
    let asked = host.asked();
    let has_token = |headers: &Vec<String>| headers.iter().any(|line| *line == format!("authorization: bearer {TOKEN}"));
    assert!(asked.len() == 2 && asked.iter().all(has_token), "{asked:?}");

    host.answers(files(parts(json!({ "type": "string" }))));
    let drift = compile(folder, &["diff", "upstreams.json"]);
    assert!(drift.stderr.contains(&format!("has another file `{}/shared/parts.json`", host.url)), "{}", drift.stderr);

    host.answers(Answer::Files(vec![("/openapi.json", refers_to("http://127.0.0.1:1/parts.json"))]));
    let outside = compile(folder, &["diff", "upstreams.json"]);
    assert!(outside.stderr.contains("is outside of the document's origin"), "{}", outside.stderr);
    assert_eq!(host.asked().len(), 1, "another origin is not asked");
}

#[test]
fn first_file_with_unusual_url_is_fetched_once() {
    let host = Host::open();
    let folder = config(&host);
    let folder = folder.path();
    let config = folder.join("upstreams.json");
    let text = std::fs::read_to_string(&config).expect("the config");
    std::fs::write(&config, text.replace("/openapi.json", "/v1/../openapi.json")).expect("a config");
    let mut first = document("Lists orders.", &json!([{ "$ref": "/parts.json#/limit" }]));
    first["components"] = json!({ "schemas": { "Limit": { "type": "integer" } } });
    let schema = json!({ "$ref": "openapi.json#/components/schemas/Limit" });
    let parts = json!({ "limit": { "name": "limit", "in": "query", "schema": schema } });
    host.answers(Answer::Files(vec![("/openapi.json", first), ("/parts.json", parts)]));
    compile(folder, &["update", "upstreams.json"]).success();
    assert_eq!(host.asked().len(), 2, "each file is fetched once");
    let pinned = lock(folder);
    assert!(pinned.contains("\"type\": \"integer\"") && !pinned.contains("openapi.json\": \"sha256:"), "{pinned}");
}

#[test]
fn credential_of_a_fetched_document_is_not_called_unused() {
    let host = Host::open();
    let folder = config(&host);
    let folder = folder.path();
    let mut open = document("Lists orders.", &json!([]));
    open["security"] = json!([]);
    host.answers(Answer::Document(open));
    compile(folder, &["update", "upstreams.json"]).success();
    let checked = compile(folder, &["--check", "upstreams.json", "--locked"]);
    assert!(checked.stderr.contains("no faults in 1 upstream"), "{}", checked.stderr);
}

/// The lock file has what each operation requires, so that the document is not fetched to compare it with the credentials.
#[test]
fn credentials_are_compared_with_a_pinned_document() {
    let host = Host::open();
    let folder = config(&host);
    let folder = folder.path();
    let mut secured = document("Lists orders.", &json!([]));
    secured["components"] = json!({ "securitySchemes": { "key": { "type": "apiKey", "in": "header", "name": "X-Shop-Key" } } });
    secured["security"] = json!([{ "key": [] }]);
    host.answers(Answer::Document(secured));
    compile(folder, &["update", "upstreams.json"]).success();

    let file = folder.join("upstreams.json");
    let mut config: Value = serde_json::from_slice(&std::fs::read(&file).expect("the config")).expect("JSON");
    for (auth, expected) in [
        (json!([]), &[][..]),
        (json!(null), &["error[PTC0540]"]),
        (json!([{ "scheme": "bearer", "binding": "shop" }]), &["warning[PTC0541]"]),
        (json!([{ "scheme": "api_key", "in": "query", "name": "X-Shop-Key", "binding": "shop" }]), &["warning[PTC0542]"]),
        (json!([{ "scheme": "api_key", "in": "header", "name": "X-Shop-Key", "binding": "shop" }]), &[]),
    ] {
        let entry = config["upstreams"]["shop"].as_object_mut().expect("an entry");
        entry.remove("auth");
        if !auth.is_null() {
            entry.insert("auth".to_owned(), auth.clone());
        }
        std::fs::write(&file, config.to_string()).expect("a config");
        host.answers(Answer::Status(500));
        let checked = compile(folder, &["--check", "upstreams.json", "--locked"]);
        let about_credentials = checked.stderr.split_whitespace().filter(|word| word.contains("[PTC054"));
        let found: Vec<&str> = about_credentials.map(|word| word.trim_end_matches(':')).collect();
        assert_eq!(found, expected, "{auth}: {}", checked.stderr);
        assert_eq!(host.asked(), Vec::<Vec<String>>::new(), "{auth}");
    }
}
