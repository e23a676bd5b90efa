//! The policy for owners that the file of tokens names.

use std::path::Path;

use serde_json::{Value, json};

use super::access::scratch;
use super::owners::{ALICE, BOB, tokens_file, tool};
use super::site::{Client, Site};
use crate::Test;
use crate::peer::server;
use crate::policy::{COUNT, called, count_file};

pub(super) const TESTS: &[Test] =
    &[("http::policy_restricts_arguments_and_calls_of_an_owner", policy_restricts_arguments_and_calls_of_an_owner)];

pub(super) fn start(count: &Path, more: &[&str]) -> Site {
    let args = ["--http", "--http-port", "0", "--response-profile", "structured"];
    Site::of(server("policy").env(COUNT, count).args(args).args(more))
}

pub(super) fn eval(client: &mut Client, program: &str) -> Value {
    tool(client, "1", "lisp_eval", &json!({ "program": program })).json()["result"]["structuredContent"].clone()
}

fn policy_restricts_arguments_and_calls_of_an_owner() {
    let (path, count) = (scratch("policy"), count_file("owner"));
    tokens_file(&path, &[("alice", ALICE), ("bob", BOB)]);
    let site = start(&count, &["--http-tokens-file", path.to_str().expect("plain text")]);
    let mut alice = site.authenticated(ALICE);
    let get = |args: &str| format!(r#"(tool/value {{:server "crm" :tool "get_order" :args {args}}})"#);
    // A keyword is sent as a text.
    for args in [r#"{:region "eu"}"#, "{:region :us}"] {
        assert_eq!(eval(&mut alice, &get(args))["status"], "ok", "{args}");
    }
    for args in [r#"{:region "asia"}"#, "{}", r#"{:region "EU"}"#] {
        let refused = eval(&mut alice, &get(args));
        assert_eq!(refused["reason"], "forbidden", "{args}: {refused}");
        let message = refused["message"].as_str().expect("a message");
        assert!(message.contains("'alice'") && message.contains(r#""eu", "us""#), "{message}");
    }
    assert_eq!(called(&count).len(), 2);
    let three = r#"(map (fn [_] (:reason (tool/call {:server "crm" :tool "get_user" :args {:region "eu"}}))) (range 3))"#;
    assert_eq!(eval(&mut alice, three)["result"], "user=> [nil nil :cap_exhausted]");
    assert_eq!(called(&count).len(), 4);
    // No rule applies to this owner.
    let mut bob = site.authenticated(BOB);
    let refused = eval(&mut bob, &get(r#"{:region "eu"}"#));
    assert_eq!(refused["missing_scopes"], json!(["crm:read"]), "{refused}");
    assert_eq!(refused["message"], "the caller may not call crm/get_order (needs the scope 'crm:read')");
    assert!(!refused.to_string().contains("alice"), "{refused}");
    let list = bob.post(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" })).body;
    assert!(!list.contains("crm") && !list.contains("billing"), "{list}");
    assert_eq!(called(&count).len(), 4);
    for path in [path, count] {
        std::fs::remove_file(path).expect("it is there");
    }
}
