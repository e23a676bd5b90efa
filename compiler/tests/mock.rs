//! Tests `ptc-compile mock` with the quickstart's lock file and cassette. Its clients are a program that writes lines, and
//! `ptc-compile repl`, which calls all three upstreams as a server does.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops where anything is wrong")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::cassette::Folder;
use crate::test_checks::shop;

const CASSETTE: [&str; 2] = ["--cassette", "due.cassette.json"];

/// Returns a folder with the files of the quickstart.
fn quickstart() -> Folder {
    let folder = Folder(tempfile::tempdir().unwrap());
    folder.run(&["demo", "--write", "."], false).success();
    folder
}

fn mock(folder: &Folder, options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ptc-compile"));
    command.current_dir(folder.0.path()).args(["mock", "upstreams.json"]).args(options);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

/// Sends messages to an upstream on standard input, and returns the answers.
fn exchange(folder: &Folder, upstream: &str, options: &[&str], messages: &[Value]) -> Vec<Value> {
    let options = [&["--upstream", upstream], options].concat();
    let mut child = mock(folder, &options).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    for message in messages {
        writeln!(input, "{message}").unwrap();
    }
    drop(input);
    let output = child.wait_with_output().unwrap();
    String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn call(tool: &str, args: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": tool, "arguments": args } })
}

/// A mock that listens, until it is dropped.
struct Listening {
    child: Child,
    /// The URLs by upstream.
    urls: Vec<(String, String)>,
}

impl Listening {
    fn start(folder: &Folder, options: &[&str]) -> Listening {
        let mut child = mock(folder, &[&["--listen", "127.0.0.1:0"], options].concat()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().take(3);
        let urls =
            lines.map(|line| line.unwrap().split_once(' ').map(|(name, url)| (name.into(), url.into())).unwrap()).collect();
        Listening { child, urls }
    }

    /// Serves the only upstream of a config.
    fn start_one(folder: &Folder, options: &[&str]) -> Listening {
        let mut child = mock(folder, &[&["--listen", "127.0.0.1:0"], options].concat()).spawn().unwrap();
        let line = BufReader::new(child.stdout.take().unwrap()).lines().next().unwrap().unwrap();
        let (name, url) = line.split_once(' ').unwrap();
        Listening { child, urls: vec![(name.to_owned(), url.to_owned())] }
    }

    fn url(&self, upstream: &str) -> &str {
        self.urls.iter().find(|(name, _)| name == upstream).map(|(_, url)| url.as_str()).unwrap()
    }

    /// Sends a request, and returns status and body. In version 1.0, a long body is not divided into chunks.
    fn request(&self, upstream: &str, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
        let (authority, base) = self.url(upstream).strip_prefix("http://").unwrap().split_once('/').unwrap();
        let mut stream = TcpStream::connect(authority).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} /{base}{path} HTTP/1.0\r\nHost: {authority}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
        )
        .unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    /// Writes a config whose upstreams are this mock.
    fn config(&self, folder: &Folder, name: &str, options: &[&str]) {
        let mut config: Value = serde_json::from_str(&folder.read("upstreams.json")).unwrap();
        let upstreams = config.get_mut("upstreams").unwrap();
        let notes = upstreams.get_mut("notes").unwrap();
        let args = ["mock", folder.0.path().join("upstreams.json").to_str().unwrap(), "--upstream", "notes"].map(str::to_owned);
        let file = |option: &&str| {
            if option.contains('.') { folder.0.path().join(option).display().to_string() } else { (*option).to_owned() }
        };
        notes["command"] = env!("CARGO_BIN_EXE_ptc-compile").into();
        notes["args"] = args.into_iter().chain(options.iter().map(file)).collect::<Vec<String>>().into();
        upstreams["visits"]["url"] = self.url("visits").into();
        upstreams["petstore"]["base_url"] = self.url("petstore").into();
        folder.write(name, &config.to_string());
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A table row: options, upstream, tool, arguments, and members of the answer.
type Row<'a> = (&'a [&'a str], &'a str, &'a str, Value, &'a [(&'a str, Value)]);

#[test]
fn answer_is_recorded_generated_or_has_a_fault() {
    let folder = quickstart();
    let watchlist = json!({ "name": "watchlist" });
    let not_recorded = json!({ "name": "x" });
    let rows: [Row<'_>; 10] = [
        // A failure needs no recorded answer.
        (
            &["--cassette", "due.cassette.json", "--fault", "notes/*=tool_error"],
            "notes",
            "read_note",
            not_recorded,
            &[("/result/isError", json!(true))],
        ),
        (
            &CASSETTE,
            "notes",
            "read_note",
            watchlist.clone(),
            &[("/result/content/0/text", json!("Ada\nGrace\nKen\n")), ("/result/isError", json!(false))],
        ),
        (&CASSETTE, "notes", "read_note", json!({ "name": "x" }), &[("/error/code", json!(-32603))]),
        (&CASSETTE, "notes", "list_notes", json!({}), &[("/error/code", json!(-32603))]),
        (
            &["--cassette", "due.cassette.json", "--generate"],
            "notes",
            "read_note",
            json!({ "name": "x" }),
            &[("/result/isError", json!(false))],
        ),
        (&[], "notes", "read_note", watchlist.clone(), &[("/result/isError", json!(false))]),
        (&[], "notes", "no_such_tool", json!({}), &[("/error/code", json!(-32602))]),
        (&["--fault", "notes/*=tool_error"], "notes", "read_note", watchlist.clone(), &[("/result/isError", json!(true))]),
        (
            &["--cassette", "due.cassette.json", "--fault", "*/*=empty_list"],
            "visits",
            "list_visits",
            json!({}),
            &[("/result/structuredContent", json!({ "visits": [] }))],
        ),
        (
            &["--cassette", "due.cassette.json", "--fault", "*/*=one_item"],
            "notes",
            "read_note",
            watchlist,
            &[("/result/content/0/text", json!("Ada"))],
        ),
    ];
    for (options, upstream, tool, args, expected) in rows {
        let answers = exchange(&folder, upstream, options, &[call(tool, &args)]);
        let [answer] = answers.as_slice() else { panic!("{options:?} {tool}: {answers:?}") };
        for (pointer, value) in expected {
            assert_eq!(answer.pointer(pointer), Some(value), "{options:?} {tool}: {answer}");
        }
    }
    let unknown = exchange(&folder, "notes", &CASSETTE, &[call("read_note", &json!({ "name": "x" }))]);
    let message = unknown[0].pointer("/error/message").and_then(Value::as_str).unwrap();
    assert!(message.contains(r#"{"name":"watchlist"}"#), "{message}");
}

#[test]
fn fault_of_every_second_call_leaves_the_others_unchanged() {
    let folder = quickstart();
    let calls = [0; 4].map(|_| call("list_visits", &json!({})));
    let answers = exchange(&folder, "visits", &["--fault", "visits/list_visits=tool_error:2"], &calls);
    let failed: Vec<bool> = answers.iter().map(|answer| answer.pointer("/result/isError") == Some(&json!(true))).collect();
    assert_eq!(failed, [false, true, false, true]);
    // A call that gets a timeout has no answer.
    let answers = exchange(&folder, "visits", &["--fault", "visits/list_visits=timeout:2"], &calls);
    assert_eq!(answers.len(), 2);
}

#[test]
fn generated_answers_match_the_output_schema_and_depend_on_seed_and_request() {
    let folder = quickstart();
    let lock: Value = serde_json::from_str(&folder.read("upstreams.lock.json")).unwrap();
    let schema = lock.pointer("/upstreams/visits/tools/list_visits/definition/outputSchema").unwrap();
    let schema = jsonschema::validator_for(schema).unwrap();
    let answer = |seed: u32, args: Value| {
        let answers = exchange(&folder, "visits", &["--seed", &seed.to_string()], &[call("list_visits", &args)]);
        answers[0].pointer("/result/structuredContent").unwrap().clone()
    };
    let all: Vec<Value> = (0..12).map(|seed| answer(seed, json!({}))).collect();
    for answer in &all {
        assert!(schema.is_valid(answer), "{answer}");
    }
    assert_eq!(answer(3, json!({})), all[3]);
    let distinct: std::collections::HashSet<String> = all.iter().map(Value::to_string).collect();
    assert!(distinct.len() > 6, "{}", distinct.len());
    let other = answer(3, json!({ "unpaid_only": true }));
    assert!(schema.is_valid(&other) && (other != all[3] || answer(4, json!({ "unpaid_only": true })) != all[4]));
}

#[test]
fn tool_without_an_output_schema_answers_in_its_observed_shape() {
    let folder = quickstart();
    let mut lock: Value = serde_json::from_str(&folder.read("upstreams.lock.json")).unwrap();
    let before = lock.clone();
    let answers = |lock: &Value| {
        folder.write("upstreams.lock.json", &lock.to_string());
        let calls: Vec<Value> = (0..12).map(|at| call("read_note", &json!({ "name": at.to_string() }))).collect();
        let answers = exchange(&folder, "notes", &[], &calls);
        let text = |answer: &Value| answer.pointer("/result/content/0/text").and_then(Value::as_str).unwrap().to_owned();
        answers.iter().map(text).collect::<Vec<String>>()
    };
    let observe = |lock: &mut Value, schema: &Value| {
        let tool = lock.pointer_mut("/upstreams/notes/tools/read_note").unwrap();
        tool["observed"] = json!({ "answers": 3, "schema": schema });
    };
    let row = json!({ "type": "object", "required": ["id"], "properties": { "id": { "type": "integer" } } });
    let shape = json!({ "type": "array", "items": row });
    let validator = jsonschema::validator_for(&shape).unwrap();
    let is_valid = |text: &String| serde_json::from_str(text).is_ok_and(|value: Value| validator.is_valid(&value));
    assert!(!answers(&before).iter().all(is_valid), "without a shape, the answer is any text");
    observe(&mut lock, &shape);
    assert!(answers(&lock).iter().all(is_valid));
    let text = json!({ "type": "string", "contentMediaType": "application/json", "contentSchema": shape });
    observe(&mut lock, &text);
    assert!(answers(&lock).iter().all(is_valid));
    observe(&mut lock, &json!({ "type": "string", "format": "date" }));
    let dates = answers(&lock);
    assert!(dates.iter().all(|text| text.len() == 10 && text.matches('-').count() == 2), "{dates:?}");
}

#[test]
fn eras_are_those_of_the_lock_file_or_of_the_option() {
    let folder = quickstart();
    let envelope = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
    });
    let discover = json!({ "jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": { "_meta": envelope } });
    let initialize = json!({ "jsonrpc": "2.0", "id": 2, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" },
    } });
    let cases: [(&[&str], Option<i64>, Option<i64>); 4] = [
        (&[], Some(-32601), None),
        (&["--era", "handshake"], Some(-32601), None),
        (&["--era", "stateless"], None, Some(-32022)),
        (&["--era", "both"], None, None),
    ];
    for (options, discovered, initialized) in cases {
        let answers = exchange(&folder, "notes", options, &[discover.clone(), initialize.clone()]);
        let codes: Vec<Option<i64>> =
            answers.iter().map(|answer| answer.pointer("/error/code").and_then(Value::as_i64)).collect();
        assert_eq!(codes, [discovered, initialized], "{options:?}: {answers:?}");
    }
    let answers = exchange(&folder, "notes", &["--era", "both"], &[initialize, discover]);
    assert_eq!(answers[0].pointer("/result/serverInfo/name"), Some(&json!("quickstart-notes")));
    assert_eq!(answers[0].pointer("/result/instructions"), Some(&json!("Notes of the practice, as plain text.")));
    assert_eq!(answers[1].pointer("/result/resultType"), Some(&json!("complete")));
}

#[test]
fn config_whose_upstreams_are_the_mock_has_the_same_catalog() {
    let folder = quickstart();
    let mock = Listening::start(&folder, &[]);
    mock.config(&folder, "mocked.json", &[]);
    folder.run(&["update", "mocked.json"], false).success();
    let digest = |name: &str| serde_json::from_str::<Value>(&folder.read(name)).unwrap()["catalog_digest"].clone();
    assert_eq!(digest("mocked.lock.json"), digest("upstreams.lock.json"));
}

/// Evaluates a program with the upstreams of the mock.
fn evaluated(folder: &Folder, program: &str) -> String {
    folder.run(&["repl", "mocked.json", "--upstream-call-timeout-ms", "1500", "-e", program], false).success()
}

#[test]
fn program_gets_the_recorded_answers_over_every_transport() {
    let folder = quickstart();
    let mock = Listening::start(&folder, &CASSETTE);
    mock.config(&folder, "mocked.json", &CASSETTE);
    folder.run(&["update", "mocked.json"], false).success();
    assert_eq!(evaluated(&folder, &folder.read("due.clj")), "{\"Ada\" 1985 \"Grace\" 1640 \"Ken\" 1660}\n");
    let (status, body) = mock.request("petstore", "GET", "/pets?limit=7", "", "");
    assert_eq!(status, 501);
    assert!(body.contains(r#"with {\"limit\":7}; the nearest recorded request is {}"#), "{body}");
}

#[test]
fn faults_have_their_reasons_over_every_transport() {
    let folder = quickstart();
    let reasons = |fault: &str| {
        let option = format!("*/*={fault}");
        let options = ["--fault", &option];
        let mock = Listening::start(&folder, &options);
        mock.config(&folder, "mocked.json", &options);
        if !Path::new(&folder.0.path().join("mocked.lock.json")).exists() {
            folder.run(&["update", "mocked.json"], false).success();
        }
        evaluated(
            &folder,
            r#"(mapv :reason (pcalls #(tool/call {:server "notes" :tool "list_notes"})
                                     #(tool/call {:server "visits" :tool "list_visits"})
                                     #(tool/call {:server "petstore" :tool "get-pet" :args {:petId 1}})))"#,
        )
    };
    assert_eq!(reasons("timeout"), "[:timeout :timeout :timeout]\n");
    assert_eq!(reasons("tool_error"), "[:tool_error :tool_error :tool_error]\n");
    assert_eq!(reasons("tool_error:2"), "[nil nil nil]\n");
}

#[test]
fn example_of_the_document_or_of_the_schema_is_the_answer_if_it_matches_the_schema() {
    let folder = quickstart();
    let pet = json!({ "id": 7, "name": "Rex", "species": "dog", "owner": "Ada" });
    let of_schema = json!({ "schema": { "type": "object", "required": ["id"], "properties": { "id": { "type": "integer" } }, "examples": [pet] } });
    let cases = [
        (json!({ "example": pet }), &pet, true),
        (json!({ "examples": { "rex": { "$ref": "#/components/examples/Rex" } } }), &pet, true),
        (json!({ "example": { "name": "Rex" } }), &json!({ "name": "Rex" }), false),
        (of_schema, &pet, true),
    ];
    for (members, example, is_used) in cases {
        let mut document: Value = serde_json::from_str(&folder.read("petstore.openapi.json")).unwrap();
        let content = document.pointer_mut("/paths/~1pets~1{petId}/get/responses/200/content/application~1json").unwrap();
        content.as_object_mut().unwrap().retain(|name, _| name == "schema");
        content.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        document["components"]["examples"]["Rex"]["value"] = pet.clone();
        folder.write("petstore.openapi.json", &document.to_string());
        folder.run(&["update", "upstreams.json", "petstore"], false).success();
        let mock = Listening::start(&folder, &[]);
        let (status, body) = mock.request("petstore", "GET", "/pets/7", "", "");
        assert_eq!((status, serde_json::from_str::<Value>(&body).unwrap() == *example), (200, is_used), "{members}: {body}");
    }
}

#[test]
fn requests_over_http_are_checked() {
    let folder = quickstart();
    let mock = Listening::start(&folder, &["--era", "both"]);
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let modern = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let headers = "Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n";
    let cases: [(&str, &str, &str, &str, &str, u16); 10] = [
        ("visits", "POST", "", "", list, 200),
        ("visits", "POST", "", headers, modern, 200),
        ("visits", "POST", "", "", modern, 400),
        ("visits", "GET", "", "", "", 405),
        ("visits", "POST", "", "Origin: http://example.com\r\n", list, 403),
        ("petstore", "GET", "/pets", "", "", 200),
        ("petstore", "GET", "/pets/7", "", "", 200),
        ("petstore", "POST", "/pets", "", "", 405),
        ("petstore", "GET", "/owners", "", "", 404),
        ("notes", "GET", "/other", "", "", 404),
    ];
    for (upstream, method, path, headers, body, expected) in cases {
        let (status, reply) = mock.request(upstream, method, path, headers, body);
        assert_eq!(status, expected, "{method} {upstream}{path} {headers}: {reply}");
    }
}

#[test]
fn unusable_options_are_reported() {
    let folder = quickstart();
    let cases: [(&[&str], &str); 7] = [
        (&[], "--upstream"),
        (&["--upstream", "petstore"], "--listen"),
        (&["--upstream", "note"], "`notes`"),
        (&["--listen", "nowhere"], "nowhere"),
        (&["--upstream", "notes", "--fault", "notes/*=slow"], "tool_error"),
        (&["--upstream", "notes", "--fault", "notes/write=timeout"], "notes/write=timeout"),
        (&["--upstream", "notes", "--cassette", "none.json"], "none.json"),
    ];
    for (options, named) in cases {
        let finished = folder.run(&[&["mock", "upstreams.json"], options].concat(), false);
        assert_eq!(finished.code, Some(2), "{options:?}: {finished:?}");
        assert!(finished.stderr.contains(named), "{options:?}: {}", finished.stderr);
    }
    std::fs::remove_file(folder.0.path().join("upstreams.lock.json")).unwrap();
    let finished = folder.run(&["mock", "upstreams.json", "--upstream", "notes"], false);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(finished.stderr.contains("PTC0501") || finished.stderr.contains("lock file"), "{}", finished.stderr);
}

#[test]
fn arguments_in_every_style_find_their_recorded_answer() {
    let folder = Folder(tempfile::tempdir().unwrap());
    let parameter = |name: &str, place: &str, schema: Value, more: Value| {
        let mut parameter = json!({ "name": name, "in": place, "required": place == "path", "schema": schema });
        parameter.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        parameter
    };
    let strings = json!({ "type": "array", "items": { "type": "string" } });
    let integers = json!({ "type": "array", "items": { "type": "integer" } });
    let parameters = json!([
        parameter("key", "path", json!({ "type": "string" }), json!({})),
        parameter("tag", "query", strings.clone(), json!({})),
        parameter("ids", "query", integers, json!({ "explode": false })),
        parameter("piped", "query", strings, json!({ "style": "pipeDelimited", "explode": false })),
        parameter("filter", "query", json!({ "type": "object" }), json!({ "style": "deepObject" })),
        parameter("deep", "query", json!({ "type": "boolean", "default": true }), json!({})),
        parameter("X-Trace", "header", json!({ "type": "integer" }), json!({})),
    ]);
    let body = json!({ "type": "object", "properties": { "name": { "type": "string" }, "size": { "type": "number" } } });
    let answer = json!({ "description": "It is done.", "content": { "application/json": { "schema": { "type": "integer" } } } });
    let operation = |id: &str, media_type: &str| {
        json!({
            "operationId": id, "parameters": parameters, "responses": { "200": answer },
            "requestBody": { "content": { media_type: { "schema": body } } },
        })
    };
    let document = json!({
        "openapi": "3.1.0", "info": { "title": "Shop", "version": "1" }, "paths": {
            "/json/{key}": { "post": operation("sendJson", "application/json") },
            "/form/{key}": { "post": operation("sendForm", "application/x-www-form-urlencoded") },
        },
    });
    folder.write("shop.json", &document.to_string());
    let config = |base_url: &str| {
        json!({ "upstreams": { "shop": {
        "transport": "openapi", "base_url": base_url, "schema_file": "shop.json", "include_operations": ["sendJson", "sendForm"],
        "allow_writes": true, "allow_insecure_http": true,
    } } })
    };
    folder.write("upstreams.json", &config("http://127.0.0.1:9").to_string());
    folder.run(&["update", "upstreams.json"], false).success();
    let args = json!({
        "key": "a/b c", "tag": ["x,y", "z"], "ids": [1, 2], "piped": ["p", "q"], "filter": { "state": "open" }, "deep": true,
        "X-Trace": 7, "name": "Zoë & co", "size": 1.5,
    });
    let lock: Value = serde_json::from_str(&folder.read("upstreams.lock.json")).unwrap();
    let recorded = |tool: &str| {
        let digest = lock.pointer(&format!("/upstreams/shop/tools/{tool}/digest")).unwrap();
        json!({ "definition": digest, "requests": [{ "args": args, "replies": [{ "status": 200, "headers": {}, "value": 42 }] }] })
    };
    let tools = json!({ "shop/send-json": recorded("send-json"), "shop/send-form": recorded("send-form") });
    folder.write("c.json", &json!({ "cassette": 1, "tools": tools }).to_string());
    let mut child = mock(&folder, &["--listen", "127.0.0.1:0", "--cassette", "c.json"]).spawn().unwrap();
    let line = BufReader::new(child.stdout.take().unwrap()).lines().next().unwrap().unwrap();
    let listening = Listening { child, urls: vec![("shop".to_owned(), line.trim_start_matches("shop ").to_owned())] };
    folder.write("mocked.json", &config(listening.url("shop")).to_string());
    folder.run(&["update", "mocked.json"], false).success();
    for tool in ["send-json", "send-form"] {
        let program =
            format!("(tool/value {{:server \"shop\" :tool {tool:?} :args (json/parse-string {:?})}})", args.to_string());
        assert_eq!(evaluated(&folder, &program), "42\n", "{tool}");
    }
}

#[test]
fn links_to_further_pages_lead_to_the_mock() {
    let folder = Folder(tempfile::tempdir().unwrap());
    let page = json!({ "name": "page", "in": "query", "schema": { "type": "integer" } });
    let content = json!({ "application/json": { "schema": { "type": "array", "items": { "type": "integer" } } } });
    let header = json!({ "Link": { "schema": { "type": "string" } } });
    let list = json!({
        "operationId": "listIds", "parameters": [page],
        "responses": { "200": { "description": "A page.", "headers": header, "content": content } },
    });
    let name = json!({ "type": "array", "items": { "type": "string" } });
    let names = json!({ "type": "object", "required": ["items"], "properties": { "items": name, "next": { "type": "string" } } });
    let cursor = json!({ "name": "cursor", "in": "query", "schema": { "type": "string" } });
    let names = json!({
        "operationId": "listNames", "parameters": [cursor],
        "responses": { "200": { "description": "A page.", "content": { "application/json": { "schema": names } } } },
    });
    let document = json!({ "openapi": "3.1.0", "info": { "title": "Shop", "version": "1" }, "paths": { "/ids": { "get": list }, "/names": { "get": names } } });
    folder.write("shop.json", &document.to_string());
    let config = |base_url: &str| {
        json!({ "upstreams": { "shop": {
            "transport": "openapi", "base_url": base_url, "schema_file": "shop.json", "include_operations": ["listIds", "listNames"],
            "allow_insecure_http": true,
        } } })
    };
    folder.write("upstreams.json", &config("http://api.example/v1").to_string());
    folder.run(&["update", "upstreams.json"], false).success();
    let lock: Value = serde_json::from_str(&folder.read("upstreams.lock.json")).unwrap();
    let digest = |tool: &str| lock.pointer(&format!("/upstreams/shop/tools/{tool}/digest")).unwrap();
    let request = |args: Value, value: Value, headers: Value| json!({ "args": args, "replies": [{ "status": 200, "headers": headers, "value": value }] });
    let next = json!({ "link": "<http://api.example/v1/ids?page=2>; rel=\"next\"" });
    let refused = json!({ "status": 410, "headers": {}, "fault": "upstream_error", "message": ["HTTP 410 Gone: <p>gone"] });
    let requests = json!([
        request(json!({}), json!([1, 2]), next), request(json!({ "page": 2 }), json!([3]), json!({})),
        { "args": { "page": 9 }, "replies": [refused] },
    ]);
    let requests_of_names = json!([
        request(json!({}), json!({ "items": ["a"], "next": "http://API.example:80/v1/names?cursor=b" }), json!({})),
        request(json!({ "cursor": "b" }), json!({ "items": ["b"] }), json!({})),
    ]);
    let tools = json!({
        "shop/list-ids": { "definition": digest("list-ids"), "requests": requests },
        "shop/list-names": { "definition": digest("list-names"), "requests": requests_of_names },
    });
    let cassette = json!({ "cassette": 1, "tools": tools });
    folder.write("c.json", &cassette.to_string());
    let mocked = Listening::start_one(&folder, &["--cassette", "c.json"]);
    folder.write("mocked.json", &config(mocked.url("shop")).to_string());
    std::fs::copy(folder.0.path().join("upstreams.lock.json"), folder.0.path().join("mocked.lock.json")).unwrap();
    let program = r#"[(tool/all {:server "shop" :tool "list-ids"}) (tool/all {:server "shop" :tool "list-names"})
                     (tool/call {:server "shop" :tool "list-ids" :args {:page 9}})]"#;
    let replayed = folder.run(&["repl", "upstreams.json", "--upstreams", "cassette:c.json", "-e", program], false).success();
    assert!(replayed.contains(r#"[1 2 3] ["a" "b"]"#) && replayed.contains("HTTP 410 Gone: <p>gone"), "{replayed}");
    assert_eq!(folder.run(&["repl", "mocked.json", "-e", program], false).success(), replayed);
}

/// A condition for the value of an answer.
type Check<'a> = &'a dyn Fn(&Value) -> bool;

#[test]
fn each_fault_of_a_value_is_served() {
    let folder = shop();
    let items = |page: &Value| page["items"].as_array().map(Vec::len);
    let faults: [(&str, Check<'_>); 7] = [
        ("null", &|page| page["items"][0]["note"].is_null()),
        ("missing_field", &|page| page["items"][0].get("note").is_none() || page.get("next_cursor").is_none()),
        ("empty_list", &|page| items(page) == Some(0)),
        ("one_item", &|page| items(page) == Some(1)),
        ("many_items", &|page| items(page) == Some(1000)),
        ("non_ascii", &|page| page.to_string().contains("日本")),
        ("next_page", &|page| page["next_cursor"].is_string()),
    ];
    for (fault, has_fault) in faults {
        let answer = |options: &[&str]| {
            let mocked = Listening::start_one(&folder, &[&["--cassette", "c.json"], options].concat());
            let (status, body) = mocked.request("shop", "GET", "/orders", "", "");
            assert_eq!(status, 200, "{fault}: {body}");
            serde_json::from_str::<Value>(&body).unwrap()
        };
        let page = answer(&["--fault", &format!("*/*={fault}")]);
        assert!(has_fault(&page) && !has_fault(&answer(&[])), "{fault}: {page}");
    }
    let failing = Listening::start_one(&folder, &["--cassette", "c.json", "--fault", "*/*=tool_error"]);
    let (status, body) = failing.request("shop", "GET", "/orders?cursor=unknown", "", "");
    assert_eq!(status, 422, "no answer is recorded, and none is needed: {body}");
}
