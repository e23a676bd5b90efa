//! Records programs once against four upstreams with sixty tools, and replays them many times with identical values.

#![expect(clippy::unwrap_used, reason = "a test stops where anything is wrong")]

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use ptc_compiler::serve::Source;
use ptc_compiler::serve::cassette::{Cassette, Player};
use ptc_runtime::embed::Request;
use serde_json::{Value, json};

use crate::cassette::Folder;

/// The tools of each upstream.
const TOOLS: usize = 15;

/// An MCP server with fifteen tools. Each answers with its arguments, and with a number that grows with every call.
const SERVER: &str = r#"
count=0
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
    *'"tools/list"'*) result='{"tools":TOOLS}' ;;
    *'"tools/call"'*) count=$((count + 1))
      result='{"content":[],"structuredContent":{"n":'$count',"args":'$(printf %s "$line" | sed 's/.*"arguments":\({[^}]*}\).*/\1/')'}}' ;;
    *'"id"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id"; continue ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

fn tool(number: usize) -> Value {
    json!({
        "name": format!("tool-{number}"),
        "inputSchema": { "type": "object", "properties": { "k": { "type": "integer" } }, "required": ["k"] },
        "outputSchema": {
            "type": "object", "required": ["n"],
            "properties": { "n": { "type": "number" }, "args": { "type": "object" }, "note": { "type": ["string", "null"] } },
        },
    })
}

/// An OpenAPI document with fifteen operations.
fn document() -> Value {
    let operation = |number: usize| {
        let item = json!({ "type": "object", "required": ["id"], "properties": { "id": { "type": "integer" }, "name": { "type": "string" } } });
        let get = json!({
            "operationId": format!("tool{number}"),
            "parameters": [{ "name": "k", "in": "query", "required": true, "schema": { "type": "integer" } }],
            "responses": { "200": { "description": "all", "content": { "application/json": { "schema": { "type": "array", "items": item } } } } },
        });
        (format!("/things-{number}"), json!({ "get": get }))
    };
    let paths: serde_json::Map<String, Value> = (0..TOOLS).map(operation).collect();
    json!({ "openapi": "3.1.0", "info": { "title": "Things", "version": "1" }, "paths": paths })
}

fn stdio(folder: &Folder, command: &str, args: &[&str]) -> Value {
    json!({ "transport": "mcp_stdio", "command": command, "args": args, "cd": folder.0.path() })
}

fn openapi(base_url: &str) -> Value {
    let operations: Vec<String> = (0..TOOLS).map(|number| format!("tool{number}")).collect();
    json!({
        "transport": "openapi", "base_url": base_url, "schema_file": "things.json", "include_operations": operations,
        "allow_insecure_http": true,
    })
}

/// A mock that serves upstreams over HTTP, until it is dropped.
struct Mock(Child);

impl Drop for Mock {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns a folder with a config whose four upstreams have other transports: an MCP server over standard input and output, one over
/// HTTP, an OpenAPI service, and an MCP server of the stateless protocol era.
fn upstreams() -> (Folder, Mock) {
    let folder = Folder(tempfile::tempdir().unwrap());
    let tools = (0..TOOLS).map(tool).collect::<Value>().to_string();
    folder.write("server.sh", &SERVER.replace("TOOLS", &tools));
    folder.write("things.json", &document().to_string());
    let served = json!({ "tickets": stdio(&folder, "sh", &["server.sh"]), "things": openapi("http://127.0.0.1:9") });
    folder.write("served.json", &json!({ "upstreams": served }).to_string());
    folder.run(&["update", "served.json"], false).success();
    let mut mock = Command::new(env!("CARGO_BIN_EXE_ptc-compile"))
        .args(["mock", "served.json", "--listen", "127.0.0.1:0"])
        .current_dir(folder.0.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines: Vec<String> = BufReader::new(mock.stdout.take().unwrap()).lines().take(2).map(Result::unwrap).collect();
    let mock = Mock(mock);
    let url = |name: &str| lines.iter().find_map(|line| line.strip_prefix(&format!("{name} "))).unwrap();
    let mocked = ["mock", "served.json", "--upstream", "tickets", "--era", "stateless"];
    let upstreams = json!({
        "local": stdio(&folder, "sh", &["server.sh"]),
        "tickets": { "transport": "mcp_http", "url": url("tickets"), "allow_insecure_http": true },
        "things": openapi(url("things")),
        "stateless": stdio(&folder, env!("CARGO_BIN_EXE_ptc-compile"), &mocked),
    });
    folder.write("upstreams.json", &json!({ "upstreams": upstreams }).to_string());
    folder.run(&["update", "upstreams.json"], false).success();
    (folder, mock)
}

/// Returns a program that calls each tool of an upstream, some of them at the same time, and one of them several times.
fn program(upstream: &str, prefix: &str) -> String {
    let mut calls = String::new();
    for number in 0..TOOLS {
        write!(calls, "\n   (:value (tool/call {{:server \"{upstream}\" :tool \"{prefix}{number}\" :args {{:k {number}}}}}))")
            .unwrap();
    }
    let call = format!("(fn [k] (tool/call {{:server \"{upstream}\" :tool \"{prefix}1\" :args {{:k k}}}}))");
    // Calls that start at the same time have no order, so that the numbers of their answers differ from run to run.
    format!(
        "(let [call {call}]\n {{:values [{calls}]\n :again (mapv #(:value (call %)) [1 1 1]) :parallel (vec (pmap #(:ok (call %)) (range 2 5)))}})"
    )
}

/// A program that joins the answers of all upstreams. Only the server itself numbers its answers, in the order of all programs.
const JOINED: &str = r#"
(let [value (fn [server tool] (tool/value {:server server :tool tool :args {:k 99}}))]
  {:values [(:args (value "local" "tool-0")) (value "tickets" "tool-0") (count (value "things" "tool0")) (value "stateless" "tool-0")]
   :ids (mapv :id (value "things" "tool2"))})"#;

#[test]
fn programs_over_sixty_tools_replay_identically() {
    replay(20);
}

#[test]
#[ignore = "slow: five thousand runs of programs with many calls"]
fn programs_over_sixty_tools_replay_identically_a_thousand_times() {
    replay(1000);
}

/// Records programs that call all tools, and replays each of them so many times.
fn replay(times: usize) {
    let (folder, mock) = upstreams();
    let mut programs: Vec<(String, String)> =
        [("local", "tool-"), ("tickets", "tool-"), ("things", "tool"), ("stateless", "tool-")]
            .map(|(upstream, prefix)| (format!("{upstream}.clj"), program(upstream, prefix)))
            .into();
    programs.push(("joined.clj".to_owned(), JOINED.to_owned()));
    // What the programs give with the upstreams, each of which numbers its answers from the beginning.
    let live = programs.iter().map(|(name, program)| {
        folder.write(name, program);
        folder.run(&["repl", "upstreams.json", "-e", program], false).success()
    });
    let live: Vec<String> = live.collect();
    let names: Vec<&str> = programs.iter().map(|(name, _)| &**name).collect();
    let record = [&["record", "upstreams.json", "-o", "c.json"][..], &names].concat();
    folder.run(&record, false).success();
    let text = folder.read("c.json");
    let recorded: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(recorded.get("tools").unwrap().as_object().unwrap().len(), 4 * TOOLS);
    // From here on no upstream can be reached.
    drop(mock);
    std::fs::remove_file(folder.0.path().join("server.sh")).unwrap();
    let served = Source::file(folder.0.path().join("upstreams.json")).open_blocking().unwrap();
    let catalog = served.deployment().catalog;
    let cassette = Cassette::read("c.json", &text).unwrap();
    assert_eq!(cassette.to_string(), text, "it has the form that `record` writes");
    cassette.check(catalog).unwrap();
    let player = Arc::new(Player::new("c.json", &cassette, catalog));
    let engine = served.engine().upstreams(|upstreams| upstreams.interceptor = Some(player)).build().unwrap();
    for ((name, program), live) in programs.iter().zip(&live) {
        let live = live.trim_end();
        assert!(live.contains(":values ["), "{name}: {live}");
        for at in 0..times {
            let value = ptc_lisp::print::readable(engine.run(Request::new(&**program)).value().unwrap());
            assert_eq!(value, live, "{name}, replay {at}");
        }
    }
}
