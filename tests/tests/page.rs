//! Tests the catalog's HTML page in a real browser.

use std::path::Path;
use std::process::Command;

use ptc_tests::deployment::{ptc_compile, workspace};
use ptc_tests::peers::node_script;
use ptc_tests::process::run;
use serde_json::{Value, json};

/// Writes the page of a config into `folder`. Returns what a user sees of it.
fn looked_at(config: &Path, folder: &Path) -> Value {
    let mut command = Command::new(ptc_compile());
    let html = run(command.arg(config).args(["--offline", "--emit", "html"])).success();
    let page = folder.join("catalog.html");
    std::fs::write(&page, html).expect("a page");
    let seen = run(node_script("page.mjs").arg(&page).arg(folder.join("page.png"))).success();
    assert!(folder.join("page.png").is_file() && folder.join("page-dark.png").is_file());
    serde_json::from_str(&seen).expect("one JSON object")
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn catalog_page_is_shown_and_searched_in_a_browser() {
    let folder = tempfile::tempdir().expect("a folder");
    let seen = looked_at(&workspace().join("fixtures/quickstart/upstreams.json"), folder.path());
    assert_eq!(seen["all"], json!(["list_notes", "read_note", "get-pet", "list-pets", "list_visits"]));
    assert_eq!((&seen["few"], &seen["said"]), (&json!(["get-pet", "list-pets"]), &json!("2 tools")), "a search by the keyboard");
    assert_eq!(seen["opened"], json!(["petId"]), "Enter opens what was found");
    assert_eq!((&seen["none"], &seen["nothing"]), (&json!([]), &json!(true)));
    assert_eq!(seen["again"], seen["all"], "Escape shows all again");
    assert_eq!(seen["linked"], json!(["get-pet"]), "a link to a tool opens it");
    assert_eq!((&seen["faults"], &seen["elsewhere"]), (&json!([]), &json!([])), "nothing is refused, nothing is fetched");
    assert_ne!(seen["light"], seen["dark"]);
    assert_eq!(seen["wide"], json!(true), "nothing runs out of the page");
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn names_of_upstreams_do_not_collide_with_ids_of_the_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let responses = json!({ "200": { "description": "x", "content": { "application/json": {} } } });
    let document = json!({
        "openapi": "3.0.3",
        "info": { "title": "x", "version": "1" },
        "paths": { "/x": { "get": { "operationId": "owner", "responses": responses } } },
    });
    std::fs::write(folder.path().join("api.json"), document.to_string()).expect("a document");
    let entry = json!({ "transport": "openapi", "base_url": "https://api.example", "schema_file": "api.json",
                        "include_operations": ["owner"] });
    let config = folder.path().join("upstreams.json");
    let upstreams = json!({ "clear": entry, "found": entry, "nothing": entry, "search": entry });
    std::fs::write(&config, json!({ "upstreams": upstreams }).to_string()).expect("a config");
    let seen = looked_at(&config, folder.path());
    assert_eq!((&seen["faults"], &seen["said"]), (&json!([]), &json!("4 tools")));
    assert_eq!((&seen["all"], &seen["none"]), (&json!(["owner", "owner", "owner", "owner"]), &json!([])));
    assert_eq!((&seen["nothing"], &seen["again"]), (&json!(true), &seen["all"]));
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn texts_of_upstreams_are_escaped_on_the_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let hostile =
        "</script><script>alert(1)</script><img src=x onerror=alert(2)><b>bold</b>\" onclick=alert(3) {{ 7*7 }} \u{202e}turned";
    let document = json!({
        "openapi": "3.0.3",
        "info": { "title": hostile, "version": "1" },
        "paths": { "/x": { "get": {
            "operationId": "getX",
            "summary": hostile,
            "parameters": [{ "name": "owner\"><b>", "in": "query", "schema": { "type": "string", "enum": [hostile] } }],
            "responses": { "200": { "description": "x", "content": { "application/json": {
                "schema": { "type": "object", "required": ["total"], "properties": { "total": { "type": "integer" } } },
            } } } },
        } } },
    });
    std::fs::write(folder.path().join("api.json"), document.to_string()).expect("a document");
    let config = folder.path().join("upstreams.json");
    let entry = json!({ "transport": "openapi", "base_url": "https://api.example", "schema_file": "api.json",
                        "include_operations": ["getX"], "accept_definitions": ["instructions", "get-x"], "description": hostile, "max_response_bytes": 54_321,
                        "auth": [{ "scheme": "bearer", "binding": "pet-key" }] });
    let credentials = json!({ "pet-key": { "source": "env", "var": "PTC_TEST_PET_KEY" } });
    std::fs::write(&config, json!({ "credentials": credentials, "upstreams": { "petstore": entry } }).to_string())
        .expect("a config");
    let seen = looked_at(&config, folder.path());
    assert_eq!((&seen["faults"], &seen["markup"]), (&json!([]), &json!(0)), "no script runs, no markup is rendered");
    let text = seen["text"].as_str().unwrap_or_default();
    assert!(
        text.contains("</script><script>alert(1)</script>") && text.contains("{{ 7*7 }}") && text.contains("⟨U+202E⟩turned"),
        "{text}"
    );
    assert_eq!(seen["opened"], json!(["owner\"><b>"]));
    // The page shows limits, the binding that is sent, and the shape of results.
    let facts: Vec<&str> = seen["facts"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for fact in ["54321 bytes", "bearer from binding pet-key", "{:total integer}"] {
        assert!(facts.contains(&fact), "no {fact} in {facts:?}");
    }
}
