//! Tests the files and messages that `ptc-compile` writes.

use std::process::Command;

use ptc_tests::deployment::ptc_compile;
use ptc_tests::process::{Finished, run};
use serde_json::json;

const SECRET: &str = "canary-7f3a/c9 \"quoted\" value";

/// An MCP server whose texts all consist of its secret, both unescaped and escaped for JSON.
const ECHO: &str = r#"
escaped=$(printf %s "$KEY" | sed 's/"/\\"/g')
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"instructions":"'$escaped'","serverInfo":{"name":"'$escaped'","version":"1"}}' ;;
    *'"tools/list"'*) result='{"tools":[{"name":"t","title":"'$escaped'","description":"say '$escaped' twice","inputSchema":{"type":"object","properties":{"a":{"type":"string","description":"'$escaped'"}}}}]}' ;;
    *'"id"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"%s"}}\n' "$id" no; continue ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
  echo "$KEY" >&2
done
"#;

/// Checks that a process that queries upstreams, and the upstreams, cannot dump core. They inherit the limit and cannot raise it.
#[test]
fn core_dumps_are_disabled_while_upstreams_are_queried() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = format!("ulimit -H -c > limit; {ECHO}");
    let entry = json!({ "transport": "mcp_stdio", "command": "sh", "args": ["-c", script], "cd": folder.path() });
    std::fs::write(folder.path().join("upstreams.json"), json!({ "upstreams": { "echo": entry } }).to_string())
        .expect("a config");
    let asked = run(Command::new(ptc_compile()).args(["update", "upstreams.json"]).current_dir(folder.path()));
    assert_eq!(asked.code, Some(0), "{}", asked.stderr);
    assert_eq!(std::fs::read_to_string(folder.path().join("limit")).expect("the upstream wrote it").trim(), "0");
}

#[test]
fn lock_binary_and_messages_do_not_contain_the_secret() {
    let folder = tempfile::tempdir().expect("a folder");
    let entry =
        json!({ "transport": "mcp_stdio", "command": "sh", "args": ["-c", ECHO], "env": { "KEY": "${PTC_TEST_CANARY_SECRET}" } });
    let config = json!({ "upstreams": { "echo": entry } }).to_string();
    std::fs::write(folder.path().join("upstreams.json"), config).expect("a config");
    let compile = |args: &[&str]| -> Finished {
        run(Command::new(ptc_compile()).args(args).current_dir(folder.path()).env("PTC_TEST_CANARY_SECRET", SECRET))
    };
    let escaped = json!(SECRET).to_string();
    let clean = |what: &str, text: &str| {
        for spelling in [SECRET, escaped.trim_matches('"')] {
            assert!(!text.contains(spelling), "{what} has the secret: {text}");
        }
    };
    // The emitted tables and documents are the ones that are linked into the binary.
    for emitted in ["lock", "rust", "args", "docs", "catalog-json", "html"] {
        let Finished { code, stdout, stderr } = compile(&["upstreams.json", "--emit", emitted]);
        assert_eq!(code, Some(0), "{stderr}");
        assert!(stdout.contains("REDACTED"), "{emitted} shows what the upstream said: {stdout}");
        clean(emitted, &stdout);
        clean("standard error", &stderr);
    }
    clean("the lock file", &std::fs::read_to_string(folder.path().join("upstreams.lock.json")).expect("a lock file"));
    for mode in ["frozen", "live"] {
        let mode = format!("--catalog-snapshot-mode={mode}");
        let programs = ["-e", "(doc \"echo/t\")", "-e", "[(meta \"echo/t\") (dir \"echo\") (tool/servers) (apropos \"say\")]"];
        let said = compile(&[&["repl", "upstreams.json", &mode, "--log-level", "debug"][..], &programs].concat());
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        assert!(said.stdout.contains("REDACTED"), "{}", said.stdout);
        clean("the answer", &said.stdout);
        clean("the log", &said.stderr);
    }
}
