//! Tests `ptc-compile policy explain`, and what the outputs of a build have of a policy.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

const CONFIG: &str = r#"{
  "upstreams": {
    "shop": {
      "transport": "openapi", "base_url": "https://shop.example.com", "schema_file": "shop.openapi.json",
      "include_operations": ["listOrders", "listOrdersOld"]
    }
  },
  "policy": {
    "rules": [
      {
        "name": "few", "when": { "owner": "bob" }, "limits": { "calls_per_minute": 5 },
        "allow": [{ "upstream": "shop", "tools": ["list-orders"], "arguments": { "limit": [1, 2] } }]
      },
      { "name": "carol", "when": { "owner": "oauth:https://id.example carol" }, "allow": [{ "upstream": "shop", "tools": ["list-orders"] }] },
      { "name": "readers", "when": { "scope": "shop:read", "claim": { "level": 3 } }, "allow": [{ "upstream": "shop" }] }
    ]
  }
}"#;

/// Returns standard output of a command in a folder with the config.
fn run(folder: &Path, args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_ptc-compile")).args(args).current_dir(folder).output().expect("it starts");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("output is UTF-8")
}

fn pinned() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("it can be written");
    write("upstreams.json", CONFIG);
    write("shop.openapi.json", include_str!("explain/shop.openapi.json"));
    run(folder.path(), &["update", "upstreams.json"]);
    folder
}

#[test]
fn explanation_names_rules_and_what_the_caller_lacks() {
    let folder = pinned();
    let explain = |args: &[&str]| run(folder.path(), &[&["policy", "explain", "upstreams.json"], args].concat());
    let text = explain(&["--owner", "bob"]);
    for line in [
        "  few applies; at most 5 calls in a minute\n",
        "  readers does not apply: it needs the scope 'shop:read' and the claim 'level' with the value 3\n",
        "  shop/list-orders: permitted by few with limit in [1,2]\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(text.contains("shop/list-orders-old: refused: "), "{text}");
    fs::write(folder.path().join("claims.json"), r#"{ "sub": "carol", "scope": "a b", "level": 3 }"#).expect("a file");
    let explained: Value = serde_json::from_str(&explain(&["--as", "claims.json", "--json"])).expect("JSON");
    assert_eq!((&explained["owner"], &explained["scopes"]), (&json!("carol"), &json!(["a", "b"])));
    assert_eq!(explained["rules"][2], json!({ "name": "readers", "applies": false, "lacks": ["the scope 'shop:read'"] }));
    let tool = &explained["tools"][1];
    assert_eq!((&tool["permitted"], &tool["missing_scopes"]), (&json!(false), &json!(["shop:read"])), "{tool}");
    // The client on standard input has no scopes.
    let explained: Value = serde_json::from_str(&explain(&["--json"])).expect("JSON");
    assert_eq!((&explained["owner"], &explained["tools"][0]["permitted"]), (&json!("stdio"), &json!(false)));
}

#[test]
fn owner_of_the_claims_is_that_of_an_access_token() {
    let folder = pinned();
    let write = |claims: &Value| fs::write(folder.path().join("claims.json"), claims.to_string()).expect("a file");
    let explain = |args: &[&str]| -> (Value, Value, Vec<String>) {
        let args = [&["policy", "explain", "upstreams.json", "--json", "--as", "claims.json"], args].concat();
        let explained: Value = serde_json::from_str(&run(folder.path(), &args)).expect("JSON");
        let applying = explained["rules"].as_array().expect("rules").iter().filter(|rule| rule["applies"] == true);
        let names = applying.map(|rule| rule["name"].as_str().unwrap_or_default().to_owned()).collect();
        (explained["owner"].clone(), explained["note"].clone(), names)
    };
    let lacks = |claims: &str| json!(format!("the claims lack {claims}, so that no rule for an owner applies"));
    for (claims, owner, note, rules) in [
        (json!({ "iss": "https://id.example", "sub": "carol" }), "oauth:https://id.example carol", Value::Null, &["carol"][..]),
        (json!({ "iss": "https://other.example", "sub": "carol" }), "oauth:https://other.example carol", Value::Null, &[]),
        (json!({ "sub": "carol" }), "carol", lacks("iss"), &[]),
        (json!({ "iss": ["https://id.example"], "sub": "carol" }), "carol", lacks("iss"), &[]),
        (json!({}), "unknown", lacks("iss and sub"), &[]),
    ] {
        write(&claims);
        assert_eq!(explain(&[]), (json!(owner), note, rules.iter().map(|rule| (*rule).to_owned()).collect()), "{claims}");
    }
    let claims = json!({ "iss": "https://id.example", "sub": "carol", "scope": "shop:read", "level": 3 });
    write(&claims);
    let combined = (json!("bob"), Value::Null, vec!["few".to_owned(), "readers".to_owned()]);
    assert_eq!(explain(&["--owner", "bob"]), combined, "--owner replaces only the owner");
}

#[test]
fn owner_of_each_kind_can_be_named() {
    let owners = [
        "bob",
        "stdio",
        "loopback",
        "name:stdio",
        "name:team:bob",
        "oauth:https://id.example carol",
        "certificate:CN=alice,O=Acme",
        "token:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    ];
    let folder = pinned();
    let rules: Vec<Value> = owners
        .iter()
        .map(|owner| json!({ "name": owner, "when": { "owner": owner }, "allow": [{ "upstream": "shop" }] }))
        .collect();
    let mut config: Value = serde_json::from_str(CONFIG).expect("JSON");
    config["policy"]["rules"] = rules.into();
    fs::write(folder.path().join("upstreams.json"), config.to_string()).expect("it can be written");
    run(folder.path(), &["update", "upstreams.json"]);
    for owner in owners {
        let explained = run(folder.path(), &["policy", "explain", "upstreams.json", "--json", "--owner", owner]);
        let explained: Value = serde_json::from_str(&explained).expect("JSON");
        let applying = explained["rules"].as_array().expect("rules").iter().filter(|rule| rule["applies"] == true);
        assert_eq!(applying.map(|rule| &rule["name"]).collect::<Vec<_>>(), [owner]);
    }
}

#[test]
fn outputs_of_a_build_contain_the_rules() {
    let folder = pinned();
    let emit = |what: &str| run(folder.path(), &["upstreams.json", "--locked", "--emit", what]);
    let rule = "few: callers with the owner bob may call shop/list-orders where limit is 1 or 2, at most 5 calls in a minute";
    assert!(emit("docs").contains(&format!("1. {rule}\n")), "{}", emit("docs"));
    assert!(emit("html").contains(&rule.replace('/', "&#x2f;")));
    let tables = emit("rust");
    for part in ["policy: Some(", "ptc::Condition::Claim(\"level\", \"3\")", "calls_per_minute: Some(5)"] {
        assert!(tables.contains(part), "{part}: {tables}");
    }
}

#[test]
fn changed_policy_is_a_change_of_the_lock_file() {
    let folder = pinned();
    let folder = folder.path();
    let lock = || -> Value {
        serde_json::from_str(&fs::read_to_string(folder.join("upstreams.lock.json")).expect("a lock file")).expect("JSON")
    };
    let said = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_ptc-compile")).args(args).current_dir(folder).output().expect("it starts");
        (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).expect("output is UTF-8"))
    };
    let write = |text: &str| fs::write(folder.join("upstreams.json"), text).expect("it can be written");
    let check = ["--check", "--locked", "upstreams.json", "--format", "short"];
    let before = lock();
    write(&CONFIG.replace("\"scope\": \"shop:read\"", "// White space and comments do not count.\n \"scope\":   \"shop:read\""));
    assert_eq!(said(&check).0, Some(0));
    write(&CONFIG.replace("\"owner\": \"bob\"", "\"owner\": \"eve\""));
    let (code, found) = said(&check);
    let stale = "error[PTC0604]: the lock file has another policy than the config";
    assert!(code == Some(1) && found.contains(stale) && found.contains("upstreams.json:8:3"), "{found}");
    let (code, found) = said(&["diff", "upstreams.json", "--format", "short"]);
    assert!(code == Some(1) && found.contains(stale), "{found}");
    let (code, found) = said(&["update", "upstreams.json"]);
    assert!(code == Some(0) && found.contains("the policy changed\nwrote upstreams.lock.json"), "{found}");
    assert_eq!(said(&check).0, Some(0));
    let after = lock();
    assert_ne!(after["policy_digest"], before["policy_digest"]);
    assert_ne!(after["catalog_digest"], before["catalog_digest"]);
    assert_eq!(after["upstreams"], before["upstreams"]);
    // A build whose lock file was not updated in the same change is noticed too.
    fs::write(folder.join("upstreams.lock.json"), before.to_string()).expect("it can be written");
    assert_eq!(said(&check).0, Some(1));
}
