//! Which callers may call which tools: what they see, what is refused, and that a refused program sends nothing.

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ptc_catalog::{
    Arg, Catalog, Condition, Deployment, EnvPart, Grant, InheritEnv, McpStdio, PermittedValues, Policy, Rule, StoredProgram,
    Tool, Tools, Transport, Type, Types, Upstream,
};
use serde_json::{Value, json};

use crate::Test;
use crate::diagnostics::{folder, traces};
use crate::peer::{Peer, server};

/// The tests of this module.
pub(crate) const TESTS: &[Test] = &[
    ("policy::caller_sees_only_what_it_may_call", caller_sees_only_what_it_may_call),
    ("policy::refused_program_sends_nothing_in_a_thread", || refused_program_sends_nothing("thread")),
    ("policy::refused_program_sends_nothing_in_a_process", || refused_program_sends_nothing("process")),
    ("policy::computed_name_is_checked_at_its_call_in_a_thread", || computed_name_is_checked_at_its_call("thread")),
    ("policy::computed_name_is_checked_at_its_call_in_a_process", || computed_name_is_checked_at_its_call("process")),
    ("policy::hidden_tool_is_answered_as_an_unknown_one_in_a_thread", || hidden_tool_is_answered_as_an_unknown_one("thread")),
    ("policy::hidden_tool_is_answered_as_an_unknown_one_in_a_process", || hidden_tool_is_answered_as_an_unknown_one("process")),
    ("policy::rate_limit_applies_to_an_owner_across_programs", rate_limit_applies_to_an_owner_across_programs),
    ("policy::decisions_are_in_the_trace", decisions_are_in_the_trace),
    ("policy::all_calls_that_are_refused_together_are_in_the_trace", all_calls_that_are_refused_together_are_in_the_trace),
    ("policy::session_and_stored_programs_are_restricted", session_and_stored_programs_are_restricted),
    #[cfg(feature = "agentic")]
    ("policy::task_and_its_planner_are_restricted", task_and_its_planner_are_restricted),
    ("policy::binary_that_cannot_evaluate_its_policy_does_not_start", binary_that_cannot_evaluate_its_policy_does_not_start),
];

/// Environment variable with the file to which the upstream writes what it receives.
pub(crate) const COUNT: &str = "PTC_TEST_COUNT";

const fn tool(name: &'static str) -> Tool {
    const ARGS: &[Arg] =
        &[Arg { name: "region", required: false, types: Types::from_types(&[Type::String]), label: "string", allowed: "" }];
    Tool { name, description: "A tool.", args: ARGS, closed: true, ..Tool::EMPTY }
}

const fn all(upstream: &'static str, tools: &'static [&'static str]) -> Grant {
    Grant { upstream, tools, arguments: &[] }
}

static POLICY: Policy = Policy {
    rules: &[
        Rule {
            name: "local",
            when: &[Condition::Owner("stdio")],
            allow: &[Grant {
                upstream: "crm",
                tools: &["get_user"],
                arguments: &[PermittedValues { name: "region", values: &["null", "\"eu\""] }],
            }],
            calls_per_program: None,
            calls_per_minute: Some(4),
        },
        Rule {
            name: "alice",
            when: &[Condition::Owner("alice")],
            allow: &[Grant {
                upstream: "crm",
                tools: &["get_*"],
                arguments: &[PermittedValues { name: "region", values: &["\"eu\"", "\"us\""] }],
            }],
            calls_per_program: Some(2),
            calls_per_minute: None,
        },
        Rule {
            name: "readers",
            when: &[Condition::Scope("crm:read")],
            allow: &[all("crm", &["get_*"])],
            calls_per_program: None,
            calls_per_minute: None,
        },
        Rule {
            name: "writers",
            when: &[Condition::Scope("crm:write")],
            allow: &[all("crm", &["delete_order"])],
            calls_per_program: None,
            calls_per_minute: None,
        },
        Rule {
            name: "admins",
            when: &[Condition::Group("admins")],
            allow: &[all("billing", &[]), all("crm", &["export"])],
            calls_per_program: None,
            calls_per_minute: None,
        },
        Rule {
            name: "certificate",
            when: &[Condition::Owner("certificate:CN=carol")],
            allow: &[all("billing", &[])],
            calls_per_program: None,
            calls_per_minute: None,
        },
    ],
};

/// Returns a deployment with a policy and two upstreams that write down what they receive.
pub(crate) fn deployment() -> &'static Deployment {
    static CRM: [Tool; 4] = [tool("delete_order"), tool("export"), tool("get_order"), tool("get_user")];
    static BILLING: [Tool; 1] = [tool("refund")];
    static PROGRAMS: [StoredProgram; 3] = [
        stored("payout", r#"(tool/value {:server "billing" :tool "refund"})"#),
        stored("purge", r#"(tool/value {:server "crm" :tool "delete_order"})"#),
        stored("whois", r#"(tool/value {:server "crm" :tool "get_user"})"#),
    ];
    let exe: PathBuf = std::env::current_exe().expect("a test has a file");
    let command: &'static str = exe.to_string_lossy().into_owned().leak();
    let env = &[(crate::ROLE, &[EnvPart::Text("counting")] as &[_])];
    let inherit_env = InheritEnv::Names(&[COUNT]);
    let child = |name, tools| {
        let transport = Transport::McpStdio(McpStdio { env, inherit_env, ..McpStdio::new(command) });
        Upstream { name, description: "Customers.", transport, tools: Tools::table(tools) }
    };
    let upstreams = vec![child("billing", &BILLING), child("crm", &CRM)].leak();
    let catalog = Box::leak(Box::new(Catalog { digest: "", search_index: &[], upstreams }));
    Box::leak(Box::new(Deployment {
        name: "policy",
        compiler: "none",
        catalog,
        programs: &PROGRAMS,
        policy: Some(&POLICY),
        ..Deployment::EMPTY
    }))
}

const fn stored(name: &'static str, source: &'static str) -> StoredProgram {
    StoredProgram { name, description: "", source, digest: "", args: r#"{"type":"object"}"#, output_schema: "" }
}

/// Runs the upstream, which appends each line that it receives to the file [`COUNT`], and answers calls with the region.
pub(crate) fn serve_counting() -> ExitCode {
    let path = std::env::var_os(COUNT).expect("the test names a file");
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).expect("a file");
    writeln!(file, "started").expect("a file");
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        writeln!(file, "{line}").expect("a file");
        let Ok(message) = serde_json::from_str::<Value>(&line) else { break };
        let result = match message["method"].as_str() {
            _ if message["id"].is_null() => continue,
            Some("initialize") => json!({
                "protocolVersion": "2025-11-25", "capabilities": { "tools": {} }, "serverInfo": { "name": "crm", "version": "1" },
            }),
            Some("tools/list") => {
                let names = ["delete_order", "export", "get_order", "get_user", "refund"];
                json!({ "tools": names.map(|name| json!({ "name": name })) })
            }
            Some("tools/call") => {
                let region = message["params"]["arguments"]["region"].as_str().unwrap_or("none");
                json!({ "content": [{ "type": "text", "text": region }] })
            }
            _ => json!({}),
        };
        println(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }));
    }
    ExitCode::SUCCESS
}

#[expect(clippy::print_stdout, reason = "standard output is the connection of the upstream")]
fn println(message: &Value) {
    println!("{message}");
}

/// Returns a file for what upstreams receive, which does not exist yet.
pub(crate) fn count_file(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("ptc-policy-{}-{name}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

/// Returns the tools that upstreams were asked to call.
pub(crate) fn called(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let calls = messages.filter(|message| message["method"] == "tools/call");
    calls.filter_map(|call| Some(call["params"]["name"].as_str()?.to_owned())).collect()
}

fn start(count: &Path, more: &[&str]) -> Peer {
    Peer::of(server("policy").env(COUNT, count).args(["--response-profile", "structured"]).args(more))
}

fn ask(peer: &mut Peer, program: &str) -> Value {
    serde_json::from_str::<Value>(&peer.ask("1", program)).expect("JSON")["result"]["structuredContent"].clone()
}

fn caller_sees_only_what_it_may_call() {
    let count = count_file("sees");
    let mut peer = start(&count, &[]);
    let servers = ask(&mut peer, "(map (juxt :name :tool_count) (map #(update-keys % keyword) (tool/servers)))");
    assert_eq!(servers["result"], r#"user=> [["crm" 1]]"#, "{servers}");
    assert_eq!(ask(&mut peer, r#"(dir "crm")"#)["result"], r#"user=> ["crm/get_user - A tool."]"#);
    let found = ask(&mut peer, r#"(filter #(clojure.string/includes? % "/") (apropos "order user refund delete" {:limit 50}))"#);
    assert_eq!(found["result"], r#"user=> ["crm/get_user - A tool."]"#);
    for form in [r#"(doc "crm/delete_order")"#, r#"(meta "crm/delete_order")"#, r#"(dir "billing")"#] {
        let refused = ask(&mut peer, form);
        let message = refused["message"].as_str().expect("a message");
        assert!(message.contains("unknown_tool"), "{refused}");
        assert!(!message.contains("get_order") && !message.contains("billing:") && !message.contains("refund"), "{refused}");
    }
    peer.send(r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#);
    let list = peer.receive();
    assert!(list.contains("get_user") && list.contains("whois"), "{list}");
    assert!(!list.contains("delete_order") && !list.contains("billing") && !list.contains("purge"), "{list}");
    assert!(!count.exists(), "discovery contacts no upstream");
}

fn refused_program_sends_nothing(isolate: &str) {
    let count = count_file(&format!("refused-{isolate}"));
    let mut peer = start(&count, &["--isolate", isolate]);
    let program = r#"(tool/call {:server "crm" :tool "get_user"})
                     (tool/call {:server "crm" :tool "delete_order"})
                     (tool/call {:server "crm" :tool "get_order" :args {:region "eu"}})"#;
    let refused = ask(&mut peer, program);
    assert_eq!((&refused["status"], &refused["reason"]), (&json!("error"), &json!("forbidden")), "{refused}");
    assert_eq!(refused["missing_scopes"], json!(["crm:read", "crm:write"]), "{refused}");
    let message = refused["message"].as_str().expect("a message");
    for part in ["crm/delete_order (needs the scope 'crm:write')", "crm/get_order (needs the scope 'crm:read')"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    // No scope permits the refund, so that the answer does not mention it.
    let with_refund = ask(&mut peer, &format!(r#"{program} (tool/call {{:server "billing" :tool "refund"}})"#));
    assert_eq!((&with_refund["message"], &with_refund["missing_scopes"]), (&refused["message"], &refused["missing_scopes"]));
    // The permitted call is not sent before the hidden one, which the program reaches in a function only.
    let program = r#"(defn f [call] (call {:server "billing" :tool "refund"}))
                     [(tool/call {:server "crm" :tool "get_user"}) (f (fn [x] (tool/call x)))]"#;
    let refused = ask(&mut peer, program);
    assert_eq!(refused["status"], "error", "{refused}");
    assert!(!count.exists(), "no upstream was started");
    // The permitted part alone runs.
    assert_eq!(ask(&mut peer, r#"(tool/value {:server "crm" :tool "get_user"})"#)["result"], "user=> \"none\"");
    assert_eq!(called(&count), ["get_user"]);
    std::fs::remove_file(&count).expect("it is there");
}

fn computed_name_is_checked_at_its_call(isolate: &str) {
    let count = count_file(&format!("computed-{isolate}"));
    let mut peer = start(&count, &["--isolate", isolate]);
    let program = r#"(map (fn [tool] (tool/value {:server "crm" :tool (str tool)})) ["get_user" "delete_order"])"#;
    let refused = ask(&mut peer, program);
    assert_eq!(refused["reason"], "forbidden", "{refused}");
    assert!(refused["message"].as_str().is_some_and(|message| message.contains("'crm:write'")), "{refused}");
    assert!(refused["feedback"].as_str().is_some_and(|notes| notes.contains("could not be checked in advance")), "{refused}");
    assert_eq!(called(&count), ["get_user"]);
    let calls = &refused["upstream_calls"];
    assert_eq!((&calls[0]["tool"], &calls[0]["reason"]), (&json!("delete_order"), &json!("forbidden")), "{refused}");
    // A scope permits another tool of this upstream.
    let refused = ask(&mut peer, r#"(tool/call {:server "crm" :tool (str "get_" "order")})"#);
    assert_eq!((&refused["reason"], &refused["missing_scopes"]), (&json!("forbidden"), &Value::Null), "{refused}");
    std::fs::remove_file(&count).expect("it is there");
}

/// Whatever a caller tries, a tool that no scope opens for it looks as one that does not exist.
fn hidden_tool_is_answered_as_an_unknown_one(isolate: &str) {
    let (count, folder) = (count_file(&format!("hidden-{isolate}")), folder(&format!("policy-hidden-{isolate}")));
    let traces_in = folder.to_str().expect("plain text");
    let mut peer = start(&count, &["--isolate", isolate, "--debug-tool", "--trace-dir", traces_in]);
    let mut answer = |id: &str, params: &Value| {
        peer.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string());
        let mut answer: Value = serde_json::from_str(&peer.receive()).expect("JSON");
        let content = answer["result"]["structuredContent"].as_object_mut();
        content.and_then(|content| content.remove("ptc_metrics"));
        answer["result"].to_string()
    };
    let programs = [
        r#"(tool/call {:server "SERVER" :tool "TOOL"})"#,
        r#"(tool/call {:server "SERVER" :tool (str "TOOL")})"#,
        r#"(tool/call {:server (str "SERVER") :tool (str "TOOL")})"#,
        r#"(tool/call {:server (str "SERVER") :tool (str "TOOL") :args {:region 1} :bogus 1})"#,
        r#"(tool/all {:server (str "SERVER") :tool (str "TOOL")})"#,
        r#"(defn f [x] (tool/call {:server "SERVER" :tool x})) (f "TOOL")"#,
        r#"(dir "SERVER")"#,
        r#"(doc "SERVER/TOOL")"#,
        r#"(meta "SERVER/TOOL")"#,
        "(SERVER/TOOL {})",
    ];
    for (hidden, unknown) in [(("billing", "refund"), ("walkman", "invent")), (("crm", "export"), ("crm", "invent"))] {
        for program in programs {
            let mut of = |(server, tool): (&str, &str)| {
                let program = program.replace("SERVER", server).replace("TOOL", tool);
                let params = json!({ "name": "lisp_eval", "arguments": { "program": program } });
                answer("1", &params).replace(tool, "TOOL").replace(server, "SERVER")
            };
            let (hidden, unknown) = (of(hidden), of(unknown));
            assert_eq!(hidden, unknown, "{program}");
            assert!(!hidden.contains("forbidden") && !hidden.contains("admins") && !hidden.contains("carol"), "{hidden}");
        }
    }
    // A stored program that calls such a tool does not exist either.
    let mut of_program = |name: &str| answer("1", &json!({ "name": name, "arguments": {} })).replace(name, "NAME");
    assert_eq!(of_program("payout"), of_program("invent"));
    assert_eq!(called(&count), Vec::<String>::new());
    // The operator finds the reason in the file, the caller does not find it in the record of its call.
    let program = r#"(tool/call {:server (str "billing") :tool "refund"})"#;
    answer("9", &json!({ "name": "lisp_eval", "arguments": { "program": program } }));
    let shown = answer("2", &json!({ "name": "lisp_debug", "arguments": { "op": "get", "request_id": "9" } }));
    assert!(shown.contains("trace_file") && shown.contains("no upstream 'billing'") && !shown.contains("admins"), "{shown}");
    let files = traces(&folder);
    let end = files.iter().rev().filter_map(|lines| lines.last()).find(|end| end["request_id"] == "9").expect("an end");
    assert_eq!((&end["reason"], &end["upstream_call_count"]), (&json!("runtime_error"), &json!(0)), "{end}");
    let denial = end["denial"].as_str().expect("a reason");
    assert!(denial.contains("billing/refund (needs the group 'admins' for the rule 'admins', or the owner"), "{denial}");
    // So it is for the stored program, of which the caller finds no record.
    let of_program = files.iter().filter(|lines| lines[0]["tool"] == "payout");
    let ends: Vec<&Value> = of_program.filter_map(|lines| lines.last()).collect();
    let [end] = ends.as_slice() else { panic!("{ends:?}") };
    let denial = end["denial"].as_str().unwrap_or_default();
    assert!(end["reason"] == "unknown_tool" && denial.contains("'admins' for the rule 'admins'"), "{end}");
    let listed = answer("3", &json!({ "name": "lisp_debug", "arguments": { "op": "recent" } }));
    assert!(listed.contains("lisp_eval") && !listed.contains("payout") && !listed.contains("unknown_tool"), "{listed}");
    std::fs::remove_dir_all(&folder).expect("it is there");
    let _ = std::fs::remove_file(&count);
}

fn rate_limit_applies_to_an_owner_across_programs() {
    let (count, folder) = (count_file("rate"), folder("policy-rate"));
    let mut peer = start(&count, &["--trace-dir", folder.to_str().expect("plain text")]);
    for _ in 0..4 {
        assert_eq!(ask(&mut peer, r#"(:ok (tool/call {:server "crm" :tool "get_user"}))"#)["result"], "user=> true");
    }
    let refused = ask(&mut peer, r#"(let [r (tool/call {:server "crm" :tool "get_user"})] [(:reason r) (:message r)])"#);
    let text = refused["result"].as_str().expect("a value");
    assert!(text.contains(":cap_exhausted") && text.contains("'local'") && text.contains("4 calls in a minute"), "{text}");
    assert_eq!(called(&count).len(), 4);
    let files = traces(&folder);
    let call = files[4].iter().find(|line| line["span"] == "upstream_call").expect("a span");
    assert_eq!((&call["rule"], &call["reason"]), (&json!("local"), &json!("cap_exhausted")), "{call}");
    std::fs::remove_dir_all(&folder).expect("it is there");
    std::fs::remove_file(&count).expect("it is there");
}

fn decisions_are_in_the_trace() {
    let count = count_file("trace");
    let mut peer = start(&count, &["--debug-tool"]);
    let program = r#"(map (fn [tool] (tool/value {:server "crm" :tool (str tool)})) ["get_user" "delete_order"])"#;
    ask(&mut peer, program);
    peer.send(
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"lisp_debug","arguments":{"op":"get","request_id":"1"}}}"#,
    );
    let trace: Value = serde_json::from_str(&peer.receive()).expect("JSON");
    let calls = &trace["result"]["structuredContent"]["record"]["upstream_calls"];
    assert_eq!((&calls[0]["tool"], &calls[0]["rule"]), (&json!("get_user"), &json!("local")), "{trace}");
    assert_eq!((&calls[1]["tool"], &calls[1]["reason"]), (&json!("delete_order"), &json!("forbidden")), "{trace}");
    assert_eq!(calls[1].get("rule"), None, "{trace}");
    drop(peer);
    let folder = folder("policy-traces");
    let mut peer = start(&count, &["--trace-dir", folder.to_str().expect("plain text")]);
    ask(&mut peer, r#"(tool/value {:server "crm" :tool "get_user" :args {:region "asia"}})"#);
    ask(&mut peer, r#"(tool/value {:server "crm" :tool "delete_order"})"#);
    ask(&mut peer, r#"(tool/value {:server "billing" :tool "refund"})"#);
    let files = traces(&folder);
    // The rule that refuses the value of an argument decides about the call.
    let call = files[0].iter().find(|line| line["span"] == "upstream_call").expect("a span");
    assert_eq!((&call["rule"], &call["reason"]), (&json!("local"), &json!("forbidden")), "{call}");
    // A program that is refused as a whole has no calls, so that its end says why.
    let (writers, admins) = ("'crm:write' for the rule 'writers'", "the group 'admins' for the rule 'admins'");
    for (file, reason, part, missing) in
        [(1, "forbidden", writers, json!(["crm:write"])), (2, "runtime_error", admins, Value::Null)]
    {
        let end = files[file].last().expect("an end");
        assert_eq!((&end["event"], &end["reason"]), (&json!("call.fail"), &json!(reason)), "{end}");
        assert!(end["denial"].as_str().is_some_and(|denial| denial.contains(part)), "{end}");
        assert!(end["message"].as_str().is_some_and(|message| !message.contains("rule")), "{end}");
        assert_eq!((&end["missing_scopes"], &end["upstream_call_count"]), (&missing, &json!(0)), "{end}");
    }
    // The end has the decision about each tool, although the answer names only some.
    let all = r#"[(tool/call {:server "crm" :tool "delete_order"}) (tool/call {:server "crm" :tool "get_order"})
                  (tool/call {:server "crm" :tool "export"}) (tool/call {:server "billing" :tool "refund"})]"#;
    ask(&mut peer, all);
    let denial = traces(&folder)[3].last().expect("an end")["denial"].as_str().expect("a reason").to_owned();
    for (tool, rule) in
        [("crm/delete_order", "writers"), ("crm/get_order", "readers"), ("crm/export", "admins"), ("billing/refund", "admins")]
    {
        let (_, decision) = denial.split_once(&format!("{tool} (needs ")).unwrap_or_else(|| panic!("{tool}: {denial}"));
        assert!(
            decision.split(')').next().is_some_and(|decision| decision.contains(&format!("rule '{rule}'"))),
            "{tool}: {denial}"
        );
    }
    std::fs::remove_dir_all(&folder).expect("it is there");
    std::fs::remove_file(&count).expect("it is there");
}

/// In a worker process, calls that a program makes together are decided before the first refusal has ended it.
fn all_calls_that_are_refused_together_are_in_the_trace() {
    let (count, folder) = (count_file("together"), folder("policy-together"));
    let mut peer = start(&count, &["--isolate", "process", "--trace-dir", folder.to_str().expect("plain text")]);
    let program = r#"(pmap (fn [tool] (tool/call {:server "crm" :tool (str tool)})) ["delete_order" "get_order"])"#;
    let mut most = 0;
    for attempt in 0..50 {
        ask(&mut peer, program);
        let files = traces(&folder);
        let denial = files[attempt].last().expect("an end")["denial"].as_str().unwrap_or_default();
        let refused: Vec<&Value> =
            files[attempt].iter().filter(|line| line["reason"] == "forbidden" && line["span"].is_string()).collect();
        for call in &refused {
            let rule = if call["tool"] == "delete_order" { "'writers'" } else { "'readers'" };
            assert!(denial.contains(rule), "{call}: {denial}");
        }
        most = most.max(refused.len());
        if most == 2 {
            break;
        }
    }
    assert_eq!(most, 2, "both calls are refused");
    std::fs::remove_dir_all(&folder).expect("it is there");
    let _ = std::fs::remove_file(&count);
}

fn session_and_stored_programs_are_restricted() {
    let count = count_file("stored");
    let mut peer = start(&count, &["--sessions"]);
    let mut call = |name: &str, arguments: &Value| {
        let params = json!({ "name": name, "arguments": arguments });
        peer.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string());
        serde_json::from_str::<Value>(&peer.receive()).expect("JSON")["result"].clone()
    };
    let mut unknown = |name: &str| call(name, &json!({})).to_string();
    assert!(unknown("whoi").contains("`whois`"));
    assert!(!unknown("purg").contains("`purge`"), "a similar name of a program that the caller may not run");
    let refused = call("purge", &json!({}));
    assert!(refused["isError"] == true && refused.to_string().contains("crm:write"), "{refused}");
    assert!(call("whois", &json!({})).to_string().contains("none"));
    let session = call("lisp_session_start", &json!({}))["structuredContent"]["session_id"].clone();
    let eval = |program: &str| json!({ "session_id": session, "program": program });
    // A function of the session keeps no right: its call is checked when it is made.
    let defined = call("lisp_session_eval", &eval(r#"(defn f [tool] (tool/value {:server "crm" :tool (str tool)}))"#));
    assert_eq!(defined["isError"], false, "{defined}");
    let refused = call("lisp_session_eval", &eval(r#"(f "delete_order")"#));
    assert!(refused["isError"] == true && refused.to_string().contains("crm:write"), "{refused}");
    assert!(refused.to_string().contains("could not be checked in advance"), "{refused}");
    assert_eq!(called(&count), ["get_user"]);
    std::fs::remove_file(&count).expect("it is there");
}

/// The planner's prompt and the programs that it writes are those of the task's caller.
#[cfg(feature = "agentic")]
fn task_and_its_planner_are_restricted() {
    let count = count_file("task");
    let program = r#"(return (tool/value {:server "crm" :tool "delete_order"}))"#;
    let planner = crate::agentic::planner(&format!("```clojure\n{program}\n```"));
    let mut command = crate::agentic::with_planner("policy", &planner, &["--agentic-allow-writes"]);
    let mut peer = Peer::of(command.env(COUNT, &count));
    let params = json!({ "name": "lisp_task", "arguments": { "task": "Delete the order." } });
    peer.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string());
    let answer = peer.receive();
    assert!(answer.contains("crm/delete_order") && answer.contains("crm:write"), "{answer}");
    let prompt = &planner.requests()[0].body;
    assert!(prompt.contains("get_user") && !prompt.contains("delete_order") && !prompt.contains("billing"), "{prompt}");
    assert!(!count.exists(), "no upstream was started");
}

fn binary_that_cannot_evaluate_its_policy_does_not_start() {
    let mut peer = Peer::start_as("policy without its part", &[]);
    let (status, log) = peer.end();
    assert!(!status.success() && log.contains("the deployment has a policy"), "{log}");
}
