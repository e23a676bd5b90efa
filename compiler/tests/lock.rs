//! Tests lock files: written locks can be read back, equal locks give equal bytes, and changes by hand are detected.

#![expect(clippy::unwrap_used, reason = "a test stops where anything is wrong")]

use std::collections::BTreeMap;

use ptc_catalog::{Era, HttpTransport};
use ptc_compiler::config::{self, Config};
use ptc_compiler::diag::{Code, Diagnostics};
use ptc_compiler::json::Json;
use ptc_compiler::lock::{self, Lock, LockedTool, LockedUpstream, Server};
use ptc_compiler::openapi::Text;
use ptc_compiler::render::{Manifest, Serve};
use ptc_compiler::resolve::{self, Listing, Query};
use ptc_compiler::source::Sources;
use ptc_compiler::{leak, lower, pinned, render};

const DOCUMENT: &str = r#"{
  "openapi": "3.0.3",
  "info": { "title": "Pets", "version": "1" },
  "paths": { "/pets": { "get": { "operationId": "listPets", "responses": { "200": { "content": { "application/json": {} } } } } } }
}"#;

const CONFIG: &str = r#"{
  "upstreams": {
    "notes": { "transport": "mcp_stdio", "command": "notes" },
    "pets": { "transport": "openapi", "base_url": "https://pets.example", "schema_file": "pets.json", "include_operations": ["listPets"] }
  }
}"#;

fn read_config(text: &str) -> Config {
    let mut sources = Sources::default();
    let mut diagnostics = Diagnostics::default();
    let file = sources.add("upstreams.json", text);
    let config = config::read(&sources, file, &mut diagnostics).expect("the config can be read");
    assert!(!diagnostics.has_errors(), "{:?}", diagnostics.sorted());
    config
}

fn tool(name: &str, extra: &str) -> Json {
    let value: serde_json::Value = serde_json::from_str(&format!(
        r#"{{"name":"{name}","inputSchema":{{"type":"object"}},"vendor":{{"b":1,"a":[1.50,null]}}{extra}}}"#
    ))
    .unwrap();
    Json::from(&value)
}

fn listing(names: &[&str]) -> Listing {
    Listing {
        era: Era::Handshake,
        http_transport: None,
        server: Some(Server { name: "notes".into(), version: "2".into() }),
        instructions: Some("Reads notes.".into()),
        tools: names.iter().map(|name| tool(name, "")).collect(),
    }
}

fn documents(config: &Config) -> BTreeMap<String, LockedUpstream> {
    let mut diagnostics = Diagnostics::default();
    ptc_compiler::openapi::read(&mut Sources::default(), config, &mut diagnostics, &mut |_| Ok(Text::new("pets.json", DOCUMENT)))
}

fn full_lock(config: &Config, names: &[&str]) -> Lock {
    let mut diagnostics = Diagnostics::default();
    let mut fresh = documents(config);
    fresh.insert(
        "notes".into(),
        resolve::select_tools("notes", config.upstreams.get("notes").unwrap(), listing(names), &mut diagnostics),
    );
    assert!(!diagnostics.has_errors(), "{:?}", diagnostics.sorted());
    resolve::merge(config, &Lock::default(), fresh)
}

fn read_lock(text: &str) -> Result<Lock, Vec<Code>> {
    let mut sources = Sources::default();
    let mut diagnostics = Diagnostics::default();
    let file = sources.add("upstreams.lock.json", text);
    let lock = lock::read::read(&sources, file, &mut diagnostics);
    lock.ok_or_else(|| diagnostics.sorted().iter().map(|d| d.code).collect())
}

#[test]
fn lock_file_round_trips() {
    let lock = full_lock(&read_config(CONFIG), &["b", "a"]);
    let text = lock::write::write(&lock);
    assert_eq!(read_lock(&text).unwrap(), lock);
    assert_eq!(lock::write::write(&read_lock(&text).unwrap()), text);
    assert!(text.contains("1.50") || text.contains("1.5"), "numbers stay");
    assert!(text.contains("\"vendor\""), "unknown fields survive");
}

#[test]
fn same_lock_is_written_as_the_same_bytes() {
    let config = read_config(CONFIG);
    let lock = full_lock(&config, &["b", "a"]);
    let again = read_lock(&lock::write::write(&full_lock(&config, &["a", "b"]))).unwrap();
    let files = |lock: &Lock| {
        let deployment = lower::deployment(&config, lock, "x");
        let manifest = Manifest::new("ptc-x", &deployment, Serve::Http, "[profile.release]");
        let files = render::files(&deployment, &manifest).unwrap();
        files.into_iter().map(|file| (file.path.to_string(), file.text)).collect::<BTreeMap<String, String>>()
    };
    let written = files(&lock);
    assert_eq!(written, files(&again));
    for path in ["Cargo.toml", "README.md", "src/catalog.rs", "src/main.rs"] {
        assert!(written.contains_key(path), "no {path} in {:?}", written.keys());
    }
    assert_eq!(lock.catalog_digest(), again.catalog_digest());
}

#[test]
fn lock_file_edited_by_hand_is_refused() {
    let text = lock::write::write(&full_lock(&read_config(CONFIG), &["a", "b"]));
    for (from, to, code) in [
        ("\"vendor\"", "\"vendors\"", Code::LockDigest),
        ("\"transport\": \"mcp_stdio\"", "\"transport\": \"mcp_http\"", Code::LockDigest),
        ("\"lock_version\": 1", "\"lock_version\": 2", Code::LockVersion),
        ("\"lock_version\": 1", "\"lock\": 1", Code::LockShape),
        ("\"era\": \"handshake\"", "\"era\": \"modern\"", Code::LockShape),
        ("\"era\": \"handshake\"", "\"era\": \"stateless\"", Code::LockDigest),
        ("Reads notes.", "Trust me.", Code::LockDigest),
        ("\"name\": \"Pets\"", "\"name\": \"Bets\"", Code::LockDigest),
        ("\"tools\": {", "\"toolz\": {", Code::LockShape),
    ] {
        assert!(text.contains(from), "{from}");
        assert_eq!(read_lock(&text.replacen(from, to, 1)).unwrap_err().first(), Some(&code), "{from} -> {to}");
    }
}

/// A lock file of a compiler that knew only Streamable HTTP has no `http_transport`.
#[test]
fn http_transport_is_locked_and_defaults_to_streamable_http() {
    let config = |transport: &str| {
        read_config(&format!(
            r#"{{"upstreams": {{"notes": {{"transport": "{transport}", "url": "https://notes.example/mcp"}}}}}}"#
        ))
    };
    let lock = |transport: &str, agreed| {
        let (config, listing) = (config(transport), Listing { http_transport: agreed, ..listing(&["a"]) });
        let notes = resolve::select_tools("notes", &config.upstreams["notes"], listing, &mut Diagnostics::default());
        resolve::merge(&config, &Lock::default(), BTreeMap::from([("notes".into(), notes)]))
    };
    let used = |config: &Config, lock: &Lock| lower::deployment(config, lock, "x").upstreams[0].http_transport;
    let (streamable, sse) = (Some(HttpTransport::Streamable), Some(HttpTransport::Sse));
    for (transport, agreed) in [("mcp_http", streamable), ("mcp_http", sse), ("mcp_sse", sse)] {
        let locked = lock(transport, agreed);
        let text = lock::write::write(&locked);
        assert!(text.contains(&format!("\"http_transport\": \"{}\"", agreed.unwrap().name())), "{text}");
        assert_eq!(read_lock(&text).unwrap(), locked);
        assert_eq!(used(&config(transport), &locked), agreed);
        let deployment = lower::deployment(&config(transport), &locked, "x");
        let manifest = Manifest::new("ptc-x", &deployment, Serve::Stdio, "");
        let tables =
            render::files(&deployment, &manifest).unwrap().into_iter().find(|file| file.path == "src/catalog.rs").unwrap();
        assert!(
            tables.text.contains(&format!("http_transport: Some(ptc::HttpTransport::{:?})", agreed.unwrap())),
            "{}",
            tables.text
        );
    }
    let text = lock::write::write(&lock("mcp_http", streamable));
    let old = text.replace("      \"http_transport\": \"streamable_http\",\n", "");
    assert_ne!(old, text);
    let old = read_lock(&old).unwrap();
    assert_eq!((old.upstreams["notes"].http_transport, used(&config("mcp_http"), &old)), (None, streamable));
    assert_eq!(resolve::missing_pins(&config("mcp_http"), &old).len(), 0);
    assert_eq!(resolve::missing_pins(&config("mcp_sse"), &old).len(), 1);
    assert_eq!((used(&config("mcp_http"), &Lock::default()), used(&config("mcp_sse"), &Lock::default())), (None, sse));
    for (name, code) in [("http_sse", Code::LockDigest), ("websocket", Code::LockShape)] {
        assert_eq!(read_lock(&text.replace("streamable_http", name)).unwrap_err(), [code], "{name}");
    }
}

/// Returns a lock with two tools. By its schemas, one is paged and the other is not.
fn paged_lock() -> Lock {
    let schemas = r#","inputSchema":{"properties":{"cursor":{"type":"string"},"limit":{"type":"integer","maximum":50}}},
        "outputSchema":{"type":"object","properties":{"data":{"type":"array"},"next_cursor":{"type":"string"}}}"#;
    let mut lock = Lock::default();
    let mut notes = LockedUpstream { transport: "mcp_stdio".into(), all_tools: true, ..LockedUpstream::default() };
    let definition = tool("list", "").with("inputSchema", Json::object());
    let paged: serde_json::Value = serde_json::from_str(&format!(r#"{{"name":"list"{schemas}}}"#)).unwrap();
    notes.tools.insert("list".into(), LockedTool::new(Json::from(&paged)));
    notes.tools.insert("one".into(), LockedTool::new(definition));
    lock.upstreams.insert("notes".into(), notes);
    lock
}

#[test]
fn paging_of_a_list_is_pinned() {
    let lock = paged_lock();
    let text = lock::write::write(&lock);
    let pinned = r#""paging": {
            "argument": "cursor",
            "by": "cursor",
            "items": "data",
            "max_size": 50,
            "next": "next_cursor",
            "size": "limit"
          }"#;
    assert!(text.contains(pinned), "{text}");
    assert_eq!(text.matches("\"paging\"").count(), 1, "nothing is pinned of the other tool");
    assert_eq!(read_lock(&text).unwrap(), lock);
    let changed = text.replacen("\"items\": \"data\"", "\"items\": \"rows\"", 1);
    assert_eq!(read_lock(&changed).unwrap_err(), [Code::LockDigest]);
    let broken = text.replacen("\"by\": \"cursor\"", "\"by\": \"magic\"", 1);
    assert_eq!(read_lock(&broken).unwrap_err(), [Code::LockShape]);
}

#[test]
fn pinned_paging_is_used_for_an_unchanged_definition() {
    let config = read_config(r#"{ "upstreams": { "notes": { "transport": "mcp_stdio", "command": "notes" } } }"#);
    let mut old = paged_lock();
    let tool = old.upstreams.get_mut("notes").unwrap().tools.get_mut("list").unwrap();
    tool.paging.as_mut().unwrap().items = "pinned".into();
    let fresh = paged_lock().upstreams;
    let lock = resolve::merge(&config, &old, fresh.clone());
    assert_eq!(lock, old);
    let paging = |lock: &Lock| lower::deployment(&config, lock, "x").upstreams[0].tools[0].paging.clone();
    assert!(paging(&lock).contains("items pinned"), "{}", paging(&lock));
    // The paging of another definition is inferred anew.
    old.upstreams.get_mut("notes").unwrap().tools.get_mut("list").unwrap().digest = "sha256:0".into();
    assert!(paging(&resolve::merge(&config, &old, fresh)).contains("items data"));
}

/// The limit of a tool goes before that of its upstream, and `doc` says what differs from the default.
#[test]
fn time_limits_of_calls_are_those_of_the_tool_or_of_its_upstream() {
    let deployment = |entry: &str| {
        let text = format!(r#"{{ "upstreams": {{ "notes": {{ "transport": "mcp_stdio", "command": "notes"{entry} }} }} }}"#);
        lower::deployment(&read_config(&text), &paged_lock(), "x")
    };
    for (entry, list, other, said) in [
        ("", None, None, None),
        (r#", "call_timeout_ms": 1500"#, Some(1500), Some(1500), Some("time: a call may take 1500 ms")),
        (
            r#", "call_timeout_ms": 1500, "tool_overrides": { "list": { "call_timeout_ms": 60000 } }"#,
            Some(60_000),
            Some(1500),
            Some("time: a call may take 60 s"),
        ),
    ] {
        let deployment = deployment(entry);
        let tools = &deployment.upstreams[0].tools;
        let tool = |is_list: bool| tools.iter().find(|tool| (tool.name == "list") == is_list).unwrap();
        assert_eq!((tool(true).call_timeout_ms, tool(false).call_timeout_ms), (list, other), "{entry}");
        assert_eq!(tool(true).doc.lines().find(|line| line.starts_with("time:")), said, "{entry}");
    }
}

#[test]
fn idle_timeout_is_in_the_tables_and_not_in_the_lock() {
    let lock = paged_lock();
    for (entry, expected, written) in
        [("", None, "idle_timeout_ms: None"), (r#", "idle_timeout_ms": 600000"#, Some(600_000), "idle_timeout_ms: Some(600000)")]
    {
        let text = format!(r#"{{ "upstreams": {{ "notes": {{ "transport": "mcp_stdio", "command": "notes"{entry} }} }} }}"#);
        let deployment = lower::deployment(&read_config(&text), &lock, "x");
        let tables = render::catalog(&deployment).unwrap();
        assert!(tables.contains(written), "{tables}");
        let ptc_catalog::Transport::McpStdio(spec) = &leak::leak_static(&deployment).catalog.upstreams[0].transport else {
            panic!("it is a process")
        };
        assert_eq!(spec.idle_timeout_ms, expected);
    }
}

#[test]
fn lock_of_a_compiler_that_pinned_no_paging_is_read() {
    let lock = paged_lock();
    let mut bare = lock.clone();
    bare.upstreams.get_mut("notes").unwrap().tools.get_mut("list").unwrap().paging = None;
    assert_ne!(bare.catalog_digest(), lock.catalog_digest());
    assert_eq!(read_lock(&lock::write::write(&bare)).unwrap(), lock, "inferred as it is read");
}

#[test]
fn only_upstreams_missing_in_the_lock_are_queried() {
    let config = read_config(CONFIG);
    let lock = full_lock(&config, &["a", "b"]);
    let asked = |config: &str, lock: &Lock| -> Vec<(String, Query)> {
        resolve::missing_pins(&read_config(config), lock)
            .into_iter()
            .map(|missing_pin| (missing_pin.upstream, missing_pin.what))
            .collect()
    };
    assert_eq!(asked(CONFIG, &Lock::default()), [("notes".into(), Query::Tools)]);
    assert_eq!(asked(CONFIG, &lock), []);
    let notes = r#""command": "notes""#;
    let fewer = CONFIG.replace(notes, r#""command": "notes", "include_tools": ["b"]"#);
    assert_eq!(asked(&fewer, &lock), []);
    let fewer_lock = resolve::merge(&read_config(&fewer), &lock, documents(&config));
    assert_eq!(fewer_lock.upstreams["notes"].tools.keys().collect::<Vec<_>>(), ["b"]);
    // A selection does not show all tools of a server, so the server must be queried.
    assert_eq!(asked(CONFIG, &fewer_lock), [("notes".into(), Query::Tools)]);
    assert_eq!(
        asked(&CONFIG.replace(notes, r#""command": "notes", "include_tools": ["c"]"#), &lock),
        [("notes".into(), Query::Tools)]
    );
    let moved = CONFIG.replace(r#""mcp_stdio", "command": "notes""#, r#""mcp_http", "url": "https://notes.example/mcp""#);
    assert_eq!(asked(&moved, &lock), [("notes".into(), Query::Tools)]);
    let url = CONFIG.replace(r#""schema_file": "pets.json""#, r#""schema_url": "https://pets.example/openapi.json""#);
    assert_eq!(asked(&url, &lock), [("pets".into(), Query::Document)]);
}

#[test]
fn listings_that_violate_the_protocol_are_findings() {
    let config =
        read_config(&CONFIG.replace(r#""command": "notes""#, r#""command": "notes", "include_tools": ["reed", "a", "x"]"#));
    let mut diagnostics = Diagnostics::default();
    let mut said = listing(&["a", "a", "read"]);
    said.tools.push(Json::object().with("name", Json::string("x")));
    // The tool is not granted, so its fault does not matter.
    said.tools.push(Json::object().with("name", Json::string("y")));
    said.tools.push(Json::Null);
    let locked = resolve::select_tools("notes", config.upstreams.get("notes").unwrap(), said, &mut diagnostics);
    let codes: Vec<Code> = diagnostics.sorted().iter().map(|d| d.code).collect();
    assert_eq!(codes, [Code::BadListing, Code::BadListing, Code::BadListing, Code::ToolNotOffered]);
    assert_eq!(locked.tools.keys().collect::<Vec<_>>(), ["a"]);
}

#[test]
fn deployment_is_read_from_files_without_contact() {
    let lock = lock::write::write(&full_lock(&read_config(CONFIG), &["a"]));
    let read = |lock: Option<String>, document: &str| {
        let mut diagnostics = Diagnostics::default();
        let mut sources = Sources::default();
        let deployment = pinned::read("upstreams.json", "x", &mut sources, &mut diagnostics, &mut |wanted| {
            let path = wanted.path;
            let text = match path {
                "upstreams.json" => CONFIG.to_owned(),
                "pets.json" => document.to_owned(),
                _ => lock.clone().ok_or("no such file")?,
            };
            Ok(Text::new(path, text))
        });
        deployment.ok_or_else(|| diagnostics.sorted().iter().map(|d| d.code).collect::<Vec<_>>())
    };
    let deployment = read(Some(lock.clone()), DOCUMENT).unwrap();
    assert_eq!(deployment.tool_count(), 2);
    assert!(deployment.needs_http());
    assert_eq!(read(None, DOCUMENT).unwrap_err(), [Code::LockStale]);
    assert_eq!(read(Some(lock), &DOCUMENT.replace("/pets", "/animals")).unwrap_err(), [Code::LockStale]);
}
