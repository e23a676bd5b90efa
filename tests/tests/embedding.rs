//! Tests a Rust program that embeds the tables of `catalog!` and has tools of its own.

use std::fs;
use std::path::Path;

use ptc_compiler::diag::Diagnostics;
use ptc_compiler::diag::render::{self, Style};
use ptc_compiler::openapi::Text;
use ptc_compiler::serve::{OpenError, SnapshotMode, Source};
use ptc_compiler::source::Sources;
use ptc_compiler::{leak, pinned};
use ptc_runtime::embed::{Args, Engine, Request, Tool};
use ptc_tests::deployment::workspace;
use serde_json::{Value, json};

#[path = "../examples/batch/main.rs"]
#[expect(dead_code, reason = "`main` of the example is not called")]
mod batch;

#[path = "../examples/served/main.rs"]
#[expect(dead_code, reason = "`main` of the example is not called")]
mod served;

mod upstreams {
    ptc_macros::catalog!("../fixtures/quickstart/upstreams.json");
}

#[test]
fn programs_see_the_catalog_of_the_macro_and_host_tools() {
    let shout = Tool::new("shout", "(text :string) -> :string", |args: Args| Ok(args.text("text").map(str::to_uppercase)));
    let engine = Engine::builder().deployment(&upstreams::DEPLOYMENT).tool(shout.expect("a tool")).build().expect("an engine");
    let program = "(map (fn [server] (tool/shout {:text (get server \"name\")})) (tool/servers))";
    assert_eq!(engine.run(Request::new(program)).preview(), Ok("[\"NOTES\" \"PETSTORE\" \"VISITS\"]"));
    // Faults of a call are found before anything is called, as in a pinned binary.
    let answer = engine.run(Request::new("(tool/shout {:text \"a\"}) (tool/call {:server \"petstor\" :tool \"x\"})"));
    assert_eq!((answer.preview(), answer.tool_calls.len()), (Err("runtime_error"), 0));
}

/// Tests a program that gets its config at run time.
#[test]
fn config_known_only_at_run_time_is_served() {
    let folder = workspace().join("fixtures/quickstart");
    let (mut sources, mut diagnostics) = (Sources::default(), Diagnostics::default());
    let model = pinned::read("upstreams.json", "clinic", &mut sources, &mut diagnostics, &mut |wanted| {
        let text = fs::read_to_string(folder.join(wanted.path)).map_err(|why| why.to_string())?;
        Ok(Text::new(wanted.path, text))
    });
    let model = model.unwrap_or_else(|| panic!("{}", render::full(&sources, &diagnostics, Style::Plain)));
    let engine = Engine::builder().deployment(leak::leak_static(&model)).build().expect("an engine");
    assert_eq!(engine.run(Request::new("(count (tool/servers))")).preview(), Ok("3"));
    let listed = |engine: &Engine| engine.run(Request::new("(dir \"petstore\")")).preview().map(str::to_owned).ok();
    let compiled = Engine::builder().deployment(&upstreams::DEPLOYMENT).build().expect("an engine");
    assert_eq!(listed(&engine), listed(&compiled));
}

#[test]
fn batch_example_writes_a_line_for_each_file() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in [
        ("notes.txt", "{"),
        ("b.json", r#"{"rows": [{"amount": 12345678901234567890}, {"amount": 1}]}"#),
        ("a.json", r#"{"rows": [{"amount": 1}, {"amount": 2.5}]}"#),
        ("c.json", "{"),
        ("d.json", r#"{"rows": 5}"#),
        ("e.json", r#"{"rows": [{"amount": "one"}]}"#),
    ] {
        fs::write(folder.path().join(name), text).expect("written");
    }
    let mut out = Vec::new();
    let failed = batch::run(folder.path(), &mut out).expect("it runs");
    let out = String::from_utf8(out).expect("text");
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!((failed, lines.len()), (3, 5), "{out}");
    assert_eq!(lines[0], r#"{"file":"a.json","result":{"file":"a.json","total":3.5}}"#);
    assert_eq!(lines[1], r#"{"file":"b.json","result":{"file":"b.json","total":12345678901234567891}}"#);
    assert!(lines[2].starts_with(r#"{"file":"c.json","error":"EOF while parsing"#), "{}", lines[2]);
    assert!(lines[3].starts_with(r#"{"file":"d.json","error":"args_error: arguments.input.rows: "#), "{}", lines[3]);
    assert!(lines[4].starts_with(r#"{"file":"e.json","error":"runtime_error: arithmetic_error"#), "{}", lines[4]);
}

/// An MCP server over standard input and output. It offers the tools in `tools.json`, answers each call with the tool's name, and
/// adds a line to `started` when it starts and to `listed` when its tools are requested.
const SHOP: &str = r#"
echo >> started
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"shop","version":"1"}}' ;;
    *'"tools/list"'*) echo >> listed; result=$(cat tools.json) ;;
    *'"tools/call"'*)
      name=$(printf %s "$line" | sed -n 's/.*"name":"\([a-z_]*\)".*/\1/p')
      result='{"content":[{"type":"text","text":"'$name'"}]}' ;;
    *'"id"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id"; continue ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

/// Makes a folder with a config of one such server, and no lock file.
fn shop(tools: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let entry = json!({ "transport": "mcp_stdio", "command": "sh", "args": ["-c", SHOP], "cd": "." });
    let config = json!({ "upstreams": { "shop": entry } }).to_string();
    fs::write(folder.path().join("upstreams.json"), config).expect("a config");
    offer(folder.path(), tools);
    folder
}

fn offer(shop: &Path, tools: &[&str]) {
    let tool = |name: &&str| json!({ "name": name, "inputSchema": { "type": "object", "properties": {} } });
    let tools: Vec<Value> = tools.iter().map(tool).collect();
    fs::write(shop.join("tools.json"), json!({ "tools": tools }).to_string()).expect("tools");
}

/// Returns the number of lines that the server has written to a file.
fn count(shop: &Path, file: &str) -> usize {
    fs::read_to_string(shop.join(file)).unwrap_or_default().lines().count()
}

fn config(shop: &Path) -> String {
    shop.join("upstreams.json").display().to_string()
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(work)
}

const NAMES: &str = r#"(count (dir "shop"))"#;
const CALL_NEW: &str = r#"(:value (tool/call {:server "shop" :tool "refund"}))"#;
const CALL_OLD: &str = r#"(:value (tool/call {:server "shop" :tool "order"}))"#;

#[test]
fn frozen_engine_reuses_its_first_tools_and_connection() {
    let shop = shop(&["order"]);
    block_on(async {
        let engine = served::engine(&config(shop.path()), SnapshotMode::Frozen).await.expect("an engine");
        assert_eq!((count(shop.path(), "started"), count(shop.path(), "listed")), (1, 1), "tools are listed before any program");
        offer(shop.path(), &["order", "refund"]);
        assert_eq!(served::answer(&engine, NAMES).await, "1");
        assert_eq!(served::answer(&engine, CALL_OLD).await, "\"order\"");
        let refused = served::answer(&engine, CALL_NEW).await;
        assert!(refused.contains("no tool 'refund' in upstream 'shop'"), "{refused}");
        engine.shut_down().await;
    });
    assert_eq!(count(shop.path(), "started"), 1, "the child that was listed answers the calls");
    assert!(!shop.path().join("upstreams.lock.json").exists(), "nothing is written");
}

#[test]
fn live_engine_lists_tools_when_a_program_needs_them() {
    let shop = shop(&["order"]);
    block_on(async {
        let engine = served::engine(&config(shop.path()), SnapshotMode::Live).await.expect("an engine");
        assert_eq!(count(shop.path(), "started"), 0, "nothing is started before a program needs it");
        offer(shop.path(), &["order", "refund"]);
        assert_eq!(served::answer(&engine, CALL_NEW).await, "\"refund\"");
        assert_eq!(served::answer(&engine, NAMES).await, "2");
        engine.shut_down().await;
    });
    assert_eq!((count(shop.path(), "started"), count(shop.path(), "listed")), (1, 1));
}

#[test]
fn config_opens_without_a_runtime_of_the_caller() {
    let shop = shop(&["order"]);
    for mode in [SnapshotMode::Frozen, SnapshotMode::Live] {
        let served = Source::file(config(shop.path())).snapshot(mode).open_blocking().expect("it opens");
        let engine = served.engine().build().expect("an engine");
        assert_eq!(engine.run(Request::new(CALL_OLD)).preview(), Ok("\"order\""), "{mode:?}");
    }
}

#[test]
fn settings_of_a_source_apply_to_its_engine() {
    let shop = shop(&["order"]);
    let source = Source::file(config(shop.path())).upstreams(|settings| settings.max_calls_per_program = 1);
    let engine = source.open_blocking().expect("it opens").engine().build().expect("an engine");
    let twice = format!("(do {CALL_OLD} (:reason (tool/call {{:server \"shop\" :tool \"order\"}})))");
    assert_eq!(engine.run(Request::new(twice)).preview(), Ok(":cap_exhausted"));
}

#[test]
fn invalid_config_is_an_error_with_its_findings() {
    let shop = shop(&["order"]);
    let open = |name: &str| Source::file(shop.path().join(name)).open_blocking().map(drop).expect_err("it cannot be served");
    let missing = open("absent.json");
    assert!(matches!(missing, OpenError::Findings(_)), "{missing:?}");
    assert!(missing.to_string().contains("`absent.json` cannot be read"), "{missing}");
    fs::write(
        shop.path().join("dead.json"),
        r#"{"upstreams": {"d": {"transport": "mcp_stdio", "command": "/no/such/program"}}}"#,
    )
    .expect("a config");
    let dead = open("dead.json").to_string();
    assert!(dead.contains("the upstream `d` could not be asked for its tools"), "{dead}");
    // An unreadable lock file must not cause pinned definitions to be trusted anew.
    fs::copy(config(shop.path()), shop.path().join("pinned.json")).expect("a config");
    fs::write(shop.path().join("pinned.lock.json"), b"\xff\xfe\xff").expect("a lock file");
    let unread = open("pinned.json").to_string();
    assert!(unread.contains("`pinned.lock.json` cannot be read"), "{unread}");
    let secret = r#"{"upstreams": {"s": {"transport": "mcp_http", "url": "https://s.example/mcp", "auth":
        [{"scheme": "bearer", "binding": "key"}]}}, "credentials": {"key": {"source": "env", "var": "PTC_TEST_UNSET"}}}"#;
    fs::write(shop.path().join("secret.json"), secret).expect("a config");
    let secret = open("secret.json");
    assert!(matches!(&secret, OpenError::Secrets(missing) if missing.len() == 1), "{secret:?}");
    assert!(secret.to_string().contains("PTC_TEST_UNSET"), "{secret}");
}

#[test]
fn guide_shows_the_text_of_the_example() {
    let read = |path: &str| fs::read_to_string(workspace().join(path)).expect("a text");
    let example = read("tests/examples/served/main.rs");
    let shown = example.split("// guide\n").nth(1).expect("two marks").replace("pub(crate) ", "");
    assert!(read("compiler/guide/embedding.md").contains(&format!("```rust,ignore\n{shown}```\n")), "{shown}");
}
