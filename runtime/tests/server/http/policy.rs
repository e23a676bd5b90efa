//! The policy for owners that the file of tokens names.

use std::path::Path;

use ptc_runtime::digest::owner_hash;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::access::{scratch, until};
use super::owners::{ALICE, BOB, tokens_file, tool};
use super::site::{Client, Site};
use crate::Test;
use crate::diagnostics::{folder, traces};
use crate::peer::server;
use crate::policy::{COUNT, called, count_file};

pub(super) const TESTS: &[Test] = &[
    ("http::policy_restricts_arguments_and_calls_of_an_owner", policy_restricts_arguments_and_calls_of_an_owner),
    (
        "http::call_of_a_hidden_program_has_a_trace_for_the_operator_only",
        call_of_a_hidden_program_has_a_trace_for_the_operator_only,
    ),
    ("http::policy_hides_the_state_of_other_upstreams", policy_hides_the_state_of_other_upstreams),
];

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

fn call_of_a_hidden_program_has_a_trace_for_the_operator_only() {
    let (path, count, folder) = (scratch("hidden-program"), count_file("hidden-program"), folder("hidden-program"));
    tokens_file(&path, &[("alice", ALICE), ("bob", BOB)]);
    let [tokens, traces_in] = [&path, &folder].map(|path| path.to_str().expect("plain text"));
    let site = start(&count, &["--http-tokens-file", tokens, "--trace-dir", traces_in, "--http-viewer"]);
    let mut bob = site.authenticated(BOB);
    assert!(tool(&mut bob, "1", "payout", &json!({})).body.contains("unknown tool: payout"));
    let shown = bob.ask("GET", "/viewer/api/calls", &[], "").json();
    assert_eq!(shown, json!({ "total": 0, "calls": [] }), "the caller must not learn that the program exists");
    let files = traces(&folder);
    let end = files[0].last().expect("an end");
    let (denial, owner) = (end["denial"].as_str().unwrap_or_default(), owner_hash("name:bob"));
    assert!(denial.contains("'admins' for the rule 'admins'") && denial.ends_with(&owner), "{end}");
    drop(site);
    std::fs::remove_dir_all(&folder).expect("it is there");
    std::fs::remove_file(&path).expect("it is there");
}

fn policy_hides_the_state_of_other_upstreams() {
    let path = scratch("policy-state");
    tokens_file(&path, &[("alice", ALICE), ("bob", BOB)]);
    let (count, tokens) = (count_file("state"), path.to_str().expect("plain text"));
    let options = ["--http-metrics", "--http-admin-port", "0", "--connect", "eager", "--http-tokens-file", tokens];
    let site = start(&count, &[&options[..], &["--isolate", "thread"]].concat());
    let mut alice = site.authenticated(ALICE);
    eval(&mut alice, r#"(tool/call {:server "crm" :tool "get_user" :args {:region "eu"}})"#);
    tool(&mut alice, "1", "whois", &json!({}));
    let admin = site.admin.expect("an admin listener");
    // Both upstreams end.
    let tasks = std::fs::read_dir(format!("/proc/{}/task", site.id())).expect("it lives");
    for children in tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok()) {
        for child in children.split_whitespace().filter_map(|id| Pid::from_raw(id.parse().ok()?)) {
            kill_process(child, Signal::KILL).expect("it lives");
        }
    }
    let read = |address, token, path| {
        let answer = Client { token: Some(token), ..Client::connect(address) }.ask("GET", path, &[], "");
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.body
    };
    until("both upstreams are down", || {
        let ready = read(admin, ALICE, "/ready");
        ready.contains("billing") && ready.contains("crm")
    });
    for (address, token, shown, hidden) in [
        (site.address, ALICE, &["crm", "whois"][..], &["billing", "purge"][..]),
        (site.address, BOB, &[], &["crm", "billing", "whois"]),
        // The listener of operators shows everything to each owner.
        (admin, ALICE, &["crm", "billing", "whois"], &[]),
        (admin, BOB, &["crm", "billing", "whois"], &[]),
    ] {
        let (ready, metrics) = (read(address, token, "/ready"), read(address, token, "/metrics"));
        let down: Value = serde_json::from_str(&ready).expect("JSON");
        for name in shown {
            let is_upstream = *name != "whois";
            assert_eq!(down["upstreams_down"].get(name).is_some(), is_upstream, "{name}: {ready}");
            let label = format!("{}=\"{name}\"", if is_upstream { "server" } else { "tool" });
            assert!(metrics.contains(&label), "{label}: {metrics}");
            let has_calls = metrics.contains(&format!("ptc_upstream_calls_total{{{label}"));
            assert_eq!(has_calls, *name == "crm", "{label}: {metrics}");
        }
        for name in hidden {
            assert!(!ready.contains(name) && !metrics.contains(name), "{name}: {ready} {metrics}");
        }
        // Totals have no names.
        assert!(metrics.contains("\nptc_upstream_result_bytes_total ") && metrics.contains("tool=\"lisp_eval\""), "{metrics}");
    }
    for path in [path, count] {
        std::fs::remove_file(path).expect("it is there");
    }
}
