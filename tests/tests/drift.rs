//! Tests `diff` and `update` with a server whose tools change between two runs.

use std::path::Path;
use std::process::Command;

use ptc_tests::deployment::ptc_compile;
use ptc_tests::process::{Finished, run};
use serde_json::{Value, json};

/// An MCP server that offers the tools in the file beside it.
const SERVER: &str = r#"
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"shop","version":"1"}}' ;;
    *'"tools/list"'*) result=$(cat tools.json) ;;
    *'"id"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id"; continue ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

struct Shop(tempfile::TempDir);

impl Shop {
    fn open() -> Shop {
        let folder = tempfile::tempdir().expect("a folder");
        let entry = json!({ "transport": "mcp_stdio", "command": "sh", "args": ["-c", SERVER], "cd": "." });
        std::fs::write(folder.path().join("upstreams.json"), json!({ "upstreams": { "shop": entry } }).to_string())
            .expect("a config");
        Shop(folder)
    }

    fn offers(&self, tools: &Value) {
        std::fs::write(self.path().join("tools.json"), json!({ "tools": tools }).to_string()).expect("tools");
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn lock(&self) -> String {
        std::fs::read_to_string(self.path().join("upstreams.lock.json")).unwrap_or_default()
    }

    fn compile(&self, args: &[&str]) -> Finished {
        run(Command::new(ptc_compile()).args(args).current_dir(self.path()))
    }
}

fn tool(name: &str, description: &str, required: &[&str], read_only: bool) -> Value {
    json!({
        "name": name,
        "description": description,
        "inputSchema": { "type": "object", "properties": { "id": { "type": "string" } }, "required": required },
        "annotations": { "readOnlyHint": read_only },
    })
}

#[test]
fn changes_are_reported_by_class_until_accepted() {
    let shop = Shop::open();
    let first =
        json!([tool("list", "Lists.", &[], true), tool("show", "Shows.", &[], true), tool("stock", "Counts.", &[], true)]);
    shop.offers(&first);
    let unpinned = shop.compile(&["diff", "upstreams.json"]);
    assert_eq!(unpinned.code, Some(2), "there is nothing to compare with: {}", unpinned.stderr);
    shop.compile(&["update", "upstreams.json"]).success();
    let pinned = shop.lock();
    let same = shop.compile(&["diff", "upstreams.json"]);
    assert_eq!((same.code, same.stderr.ends_with("\nnothing changed\n")), (Some(0), true), "{}", same.stderr);

    // One tool is removed, one becomes stricter, one is no longer harmless, and one is new.
    shop.offers(&json!([
        tool("list", "Lists.", &["id"], true),
        tool("stock", "Counts.", &[], false),
        tool("visits", "New.", &[], true)
    ]));
    let changed = shop.compile(&["diff", "upstreams.json", "--format", "short"]);
    assert_eq!(changed.code, Some(1), "{}", changed.stderr);
    for said in ["note[PTC0610]", "error[PTC0611]", "error[PTC0612]", "error[PTC0618]", "4 tools changed"] {
        assert!(changed.stderr.contains(said), "should say `{said}`:\n{}", changed.stderr);
    }
    let never = shop.compile(&["diff", "upstreams.json", "--fail-on", "never"]);
    assert_eq!(never.code, Some(0), "{}", never.stderr);

    let sarif = shop.compile(&["diff", "upstreams.json", "--format", "sarif"]);
    let log: Value = serde_json::from_str(&sarif.stdout).expect("one SARIF log");
    let mut rules: Vec<(&str, &str)> = log["runs"][0]["results"]
        .as_array()
        .expect("results")
        .iter()
        .filter_map(|result| Some((result["ruleId"].as_str()?, result["level"].as_str()?)))
        .collect();
    rules.sort_unstable();
    assert_eq!(rules, [("PTC0610", "note"), ("PTC0611", "error"), ("PTC0612", "error"), ("PTC0618", "error")]);
    assert_eq!(sarif.code, Some(1));
    let annotated = shop.compile(&["diff", "upstreams.json", "--format", "github"]);
    assert_eq!((annotated.code, annotated.stdout.matches("::error file=upstreams.json,").count()), (Some(1), 3));

    assert_eq!(shop.lock(), pinned, "comparing changes nothing");
    let accepted = shop.compile(&["update", "upstreams.json", "--format", "short"]);
    assert_eq!(accepted.code, Some(0), "{}", accepted.stderr);
    assert!(accepted.stderr.contains("error[PTC0611]") && accepted.stderr.contains("4 tools changed"), "{}", accepted.stderr);
    assert_ne!(shop.lock(), pinned);
    assert!(shop.compile(&["diff", "upstreams.json"]).stderr.ends_with("\nnothing changed\n"));
}

/// A server that lists its tools only after all three servers have been queried. Sequential queries would never end.
const PATIENT: &str = r#"
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"shop","version":"1"}}' ;;
    *'"tools/list"'*)
      : > "asked-$0"
      tries=0
      until [ -e asked-a ] && [ -e asked-b ] && [ -e asked-c ]; do
        tries=$((tries + 1))
        [ $tries -lt 400 ] || exit 1
        sleep 0.05
      done
      result='{"tools":[]}' ;;
    *'"id"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id"; continue ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

#[test]
fn upstreams_are_queried_concurrently() {
    let folder = tempfile::tempdir().expect("a folder");
    let entry = |name: &str| json!({ "transport": "mcp_stdio", "command": "sh", "args": ["-c", PATIENT, name], "cd": "." });
    let upstreams = json!({ "a": entry("a"), "b": entry("b"), "c": entry("c") });
    std::fs::write(folder.path().join("upstreams.json"), json!({ "upstreams": upstreams }).to_string()).expect("a config");
    let update = run(Command::new(ptc_compile()).args(["update", "upstreams.json"]).current_dir(folder.path()));
    assert_eq!(update.code, Some(0), "{}", update.stderr);
    for name in ["a", "b", "c"] {
        assert!(update.stderr.contains(&format!("/3 {name} 0 tools ")), "a line each: {}", update.stderr);
    }
}

#[test]
fn threshold_decides_which_changes_fail() {
    let shop = Shop::open();
    shop.offers(&json!([tool("list", "Lists.", &[], true)]));
    shop.compile(&["update", "upstreams.json"]).success();
    shop.offers(&json!([tool("list", "Lists all.", &[], true)]));
    for (threshold, code) in [("error", 0), ("warning", 1), ("note", 1), ("never", 0)] {
        let changed = shop.compile(&["diff", "upstreams.json", "--fail-on", threshold]);
        assert_eq!(changed.code, Some(code), "{threshold}: {}", changed.stderr);
    }
    // The new state of a server that does not answer is unknown, regardless of the threshold.
    std::fs::remove_file(shop.path().join("tools.json")).expect("it was written");
    for threshold in ["error", "never"] {
        let lost = shop.compile(&["diff", "upstreams.json", "--fail-on", threshold]);
        assert_eq!(lost.code, Some(1), "{threshold}: {}", lost.stderr);
        assert!(!lost.stderr.contains("nothing changed"), "{}", lost.stderr);
    }
}
