//! Tests the examples of `ptc-compile explain`: the faulty example of a page must provoke its code, and the corrected one must
//! not.
//!
//! Examples are fragments of a config, a document, a lock file or a definition. The test adds the missing parts according to the
//! keys of a fragment, and runs `ptc-compile` on the result.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops where anything is wrong")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ptc_compiler::diag::pages;
use serde_json::{Map, Value, json};

/// Codes whose pages describe the fault in words, because it depends on another file, a running upstream, or the upstream's
/// history. Fixtures provoke them.
const WITHOUT_EXAMPLE: &[&str] = &[
    "PTC0103", "PTC0104", "PTC0105", "PTC0108", "PTC0214", "PTC0215", "PTC0315", "PTC0533", "PTC0540", "PTC0541", "PTC0542",
    "PTC0543", "PTC0544", "PTC0603", "PTC0604", "PTC0605", "PTC0606", "PTC0608", "PTC0610", "PTC0611", "PTC0612", "PTC0613",
    "PTC0614", "PTC0615", "PTC0616", "PTC0617", "PTC0618", "PTC0619", "PTC0620", "PTC0623", "PTC0626", "PTC0628", "PTC0629",
    "PTC0631", "PTC0632", "PTC0633", "PTC0634", "PTC0635", "PTC0637", "PTC0706", "PTC0806", "PTC0811", "PTC0812", "PTC0813",
    "PTC0814", "PTC0815", "PTC0901", "PTC0902", "PTC0903", "PTC0904", "PTC0905", "PTC0906", "PTC0907", "PTC0908", "PTC0909",
    "PTC0910", "PTC1001", "PTC1002", "PTC1003", "PTC1004", "PTC1005", "PTC1006", "PTC1007", "PTC1008", "PTC1009",
];

/// The document to which fragments of configs and programs refer.
const SHOP: &str = include_str!("explain/shop.openapi.json");

/// Returns the first code block of a section.
fn block(page: &str, section: &str) -> Option<String> {
    let (_, rest) = page.split_once(&format!("## {section}\n"))?;
    let text = rest.split("\n## ").next()?;
    let lines = text.lines().skip_while(|line| !line.starts_with("    ")).take_while(|line| line.starts_with("    "));
    let lines: Vec<&str> = lines.map(|line| line.trim_start_matches("    ")).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Files, and the arguments with which `ptc-compile` reads them.
struct Case {
    files: Vec<(&'static str, String)>,
    args: Vec<&'static str>,
}

impl Case {
    fn config(text: String) -> Case {
        Case { files: vec![("upstreams.json", text)], args: vec!["--check", "upstreams.json"] }
    }

    /// Makes a config with one entry: the fragment, and the required members that it lacks. The fragment's text is kept
    /// unchanged, since it may contain a key twice.
    fn entry(fragment: &str, needed: &Value) -> Case {
        let given: Map<String, Value> = serde_json::from_str(fragment).unwrap();
        let added: String = needed
            .as_object()
            .unwrap()
            .iter()
            .filter(|(key, _)| !given.contains_key(*key) && (*key != "schema_file" || !given.contains_key("schema_url")))
            .map(|(key, value)| [json!(key).to_string(), ": ".to_owned(), value.to_string(), ", ".to_owned()].concat())
            .collect();
        let entry = format!("{{ {added}{}", fragment.trim().strip_prefix('{').unwrap());
        let credentials: Map<String, Value> = ["a", "b", "t", "anna", "token", "github-pat"]
            .into_iter()
            .map(|name| (name.to_owned(), json!({ "source": "env", "var": "SECRET" })))
            .collect();
        Case::config(format!("{{ \"credentials\": {}, \"upstreams\": {{ \"shop\": {entry} }} }}", Value::Object(credentials)))
    }

    /// Makes a config that includes a document of one operation.
    fn document(document: &Value) -> Case {
        let get = document["paths"].as_object().and_then(|paths| paths.iter().next());
        let included = get.map_or_else(|| "*".to_owned(), |(path, _)| format!("GET {path}"));
        let mut case = Case::config(
            json!({ "upstreams": { "shop": {
                "transport": "openapi", "base_url": "https://shop.example.com", "schema_file": "document.json",
                "include_operations": [included]
            } } })
            .to_string(),
        );
        case.files.push(("document.json", document.to_string()));
        case
    }

    fn path_item(item: &Value, path: &str) -> Case {
        Case::document(&json!({ "openapi": "3.0.3", "info": { "title": "Shop", "version": "1" }, "paths": { path: item } }))
    }

    fn operation(members: &Map<String, Value>) -> Case {
        let mut operation = json!({
            "operationId": "listOrders", "responses": { "200": { "description": "ok", "content": { "application/json": {} } } }
        });
        operation.as_object_mut().unwrap().extend(members.clone());
        let in_path = json!(members).to_string().contains(r#""in":"path""#);
        Case::path_item(&json!({ "get": operation }), if in_path { "/orders/{id}" } else { "/orders" })
    }

    /// Makes a config with two upstreams that offer the same tools.
    fn server(tools: &Value) -> Case {
        let entry = json!({ "transport": "mcp_stdio", "command": "/bin/sh", "args": ["server.sh"], "cd": "." });
        let mut case = Case::config(json!({ "upstreams": { "shop": entry, "notes": entry } }).to_string());
        case.files.push(("server.sh", include_str!("../../fixtures/shop.sh").to_owned()));
        case.files.push(("tools.json", format!("{}\n", json!({ "tools": tools }))));
        case.args = vec!["update", "upstreams.json"];
        case
    }

    /// Makes a config whose upstreams list one definition.
    fn definition(members: &Map<String, Value>) -> Case {
        let mut definition = json!({ "name": "search_files", "description": "Searches.", "inputSchema": { "type": "object" } });
        definition.as_object_mut().unwrap().extend(members.clone());
        Case::server(&json!([definition]))
    }

    fn program(text: &str) -> Case {
        let order = json!({ "type": "object", "properties": { "id": { "type": "integer" } } });
        let text_of = |name: &str| json!({ "type": "object", "properties": { name: { "type": "string" } } });
        let orders = json!({ "total": { "type": "integer" }, "orders": { "type": "array", "items": order } });
        let mut case = Case::server(&json!([
            { "name": "search", "inputSchema": text_of("query") },
            { "name": "orders", "inputSchema": text_of("limit"), "outputSchema": { "type": "object", "properties": orders } }
        ]));
        case.files.push(("program.clj", text.to_owned()));
        case.args = vec!["check-program", "upstreams.json", "program.clj"];
        case
    }
}

/// Returns the case for a fragment, or `None` if the kind of fragment is unknown.
fn case(fragment: &str) -> Option<Case> {
    let stdio = json!({ "transport": "mcp_stdio", "command": "notes" });
    let http = json!({ "transport": "mcp_http", "url": "https://tools.example.com/mcp" });
    let openapi = json!({
        "transport": "openapi", "base_url": "https://shop.example.com", "schema_file": "shop.openapi.json",
        "include_operations": ["listOrders"]
    });
    if fragment.starts_with('(') {
        return Some(Case::program(fragment));
    }
    if fragment.starts_with("paths:") {
        let mut case = Case::document(&json!({}));
        case.files = vec![
            ("upstreams.json", case.files.swap_remove(0).1.replace("document.json", "document.yaml")),
            ("document.yaml", format!("openapi: 3.0.3\ninfo: {{title: Shop, version: '1'}}\n{fragment}\n")),
        ];
        return Some(case);
    }
    // A text with a syntax error has no keys, but its kind is recognized nevertheless.
    if fragment.starts_with('{') && fragment.contains("\"upstreams\"") && !fragment.contains("lock_version") {
        return Some(Case::config(fragment.to_owned()));
    }
    let members: Map<String, Value> =
        serde_json::from_str(fragment).or_else(|_| serde_json::from_str(&format!("{{{fragment}}}"))).ok()?;
    let has = |keys: &[&str]| keys.iter().any(|key| members.contains_key(*key));
    let mut case = if has(&["lock_version"]) {
        let mut case = Case::config(json!({ "upstreams": { "notes": stdio } }).to_string());
        case.files.push(("upstreams.lock.json", fragment.to_owned()));
        case
    } else if has(&["programs"]) {
        Case::config(json!({ "upstreams": {}, "programs": members["programs"] }).to_string())
    } else if has(&["source"]) {
        Case::config(json!({ "credentials": { "token": members }, "upstreams": {} }).to_string())
    } else if has(&["scheme"]) {
        Case::entry(&json!({ "auth": [members] }).to_string(), &http)
    } else if has(&["transport"]) {
        Case::entry(fragment, &json!({}))
    } else if has(&["base_url", "schema_file", "include_operations", "exclude_operations", "operation_overrides"]) {
        Case::entry(fragment, &openapi)
    } else if has(&["url", "auth", "static_headers", "request_timeout_ms"]) {
        Case::entry(fragment, &http)
    } else if has(&["command", "args", "env", "include_tools"]) {
        Case::entry(fragment, &stdio)
    } else if let Some(servers) = members.get("servers") {
        let mut document: Value = serde_json::from_str(SHOP).ok()?;
        document["servers"] = servers.clone();
        let mut case = Case::document(&document);
        case.files[0].1 = case.files[0].1.replace("shop.example.com", "api.example.com");
        case
    } else if has(&["openapi", "swagger"]) {
        Case::document(&Value::Object(members))
    } else if has(&["description", "inputSchema"]) {
        Case::definition(&members)
    } else if let Some(get) = members.get("get") {
        Case::operation(get.as_object()?)
    } else if has(&["$ref"]) {
        Case::operation(json!({ "parameters": [members] }).as_object()?)
    } else if has(&["parameters", "responses"]) {
        Case::operation(&members)
    } else if let Some((path, item)) = members.iter().find(|(key, _)| key.starts_with('/')) {
        let get = item["get"].as_object()?;
        let Case { files, .. } = Case::operation(get);
        let document: Value = serde_json::from_str(&files[1].1).ok()?;
        let operation = document["paths"].as_object()?.values().next()?.clone();
        Case::path_item(&operation, path)
    } else {
        return None;
    };
    case.files.push(("shop.openapi.json", SHOP.to_owned()));
    Some(case)
}

/// Returns the output of `ptc-compile` for a case.
fn said(name: &str, case: &Case) -> String {
    let folder: PathBuf = std::env::temp_dir().join(format!("ptc-explain-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("due.clj"), "1").unwrap();
    fs::write(folder.join("shop.openapi.json"), SHOP).unwrap();
    for (path, text) in &case.files {
        fs::write(folder.join(path), text).unwrap();
    }
    let strict: &[&str] = if name.starts_with("PTC0107") { &["--strict-json"] } else { &[] };
    let run = |args: &[&str]| {
        let mut command = Command::new(Path::new(env!("CARGO_BIN_EXE_ptc-compile")));
        command.args(args).args(strict).args(["--format", "short"]).current_dir(&folder).output().unwrap()
    };
    if case.args.first() == Some(&"check-program") {
        run(&["update", "upstreams.json"]);
    }
    let output = run(&case.args);
    let _ = fs::remove_dir_all(&folder);
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn examples_cause_their_code_and_fixes_do_not() {
    let mut wrong = Vec::new();
    for (code, page) in pages::sections() {
        let example = block(page, "Example").and_then(|text| case(&text));
        match (&example, WITHOUT_EXAMPLE.contains(&code)) {
            (None, false) => wrong.push(format!("{code}: the file of its example is unknown")),
            (Some(example), false) => {
                let said = said(&format!("{code}-example"), example);
                if !said.contains(&format!("[{code}]")) {
                    wrong.push(format!("{code}: its example is said to be\n{said}\nof {:?}", example.files));
                }
            }
            (_, true) => continue,
        }
        if let Some(fixed) = block(page, "Fix").and_then(|text| case(&text)) {
            let said = said(&format!("{code}-fix"), &fixed);
            if said.contains(&format!("[{code}]")) {
                wrong.push(format!("{code}: its fix is said to be\n{said}\nof {:?}", fixed.files));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
