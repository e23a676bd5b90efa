//! Tests the quickstart as its reader sees it: built from the committed lock file, and queried with and without its upstreams.

use std::process::Command;

use ptc_tests::deployment::{build, ptc_compile, quickstart, quickstart_ports, workspace};
use ptc_tests::mcp::Client;
use ptc_tests::process::run;
use serde_json::{Value, json};

/// Maximum bytes of the result of `tools/list`.
const MAX_TOOLS_LIST_BYTES: u64 = 2_450;

#[test]
#[ignore = "slow: builds a binary"]
fn catalog_is_available_without_running_upstreams() {
    let answer = run(Command::new(quickstart()).args(["eval", "(dir \"petstore\")"])).success();
    assert_eq!(
        answer.trim_end(),
        "[\"petstore/get-pet - One pet by its id.\" \"petstore/list-pets - Pets in the order of their ids.\"]"
    );
}

#[test]
#[ignore = "slow: builds a binary"]
fn failure_of_an_upstream_is_a_value() {
    let _ports = quickstart_ports();
    // The port is not served: the HTTP upstreams run only while the stdio upstream runs.
    let program = "(:reason (tool/call {:server \"petstore\" :tool \"list-pets\"}))";
    let answer = run(Command::new(quickstart()).args(["eval", program])).success();
    assert_eq!(answer.trim_end(), ":upstream_unavailable");
}

#[test]
#[ignore = "slow: builds a binary"]
fn one_program_joins_all_three_upstreams() {
    let _ports = quickstart_ports();
    let mut client = Client::start(quickstart(), &[]);
    let hello = client.initialize();
    assert_eq!(hello.pointer("/serverInfo/name"), Some(&json!("ptc_lisp")));

    let program = std::fs::read_to_string(workspace().join("fixtures/quickstart/due.clj")).expect("the program is there");
    assert_eq!(client.eval(&program), "user=> {\"Ada\" 1985 \"Grace\" 1640 \"Ken\" 1660}");

    // Another call of the same server does not see the definitions of the first.
    client.eval("(def secret-of-a-call 42)");
    let other = client.eval("secret-of-a-call");
    assert!(other.contains("unbound"), "{other}");
    assert_eq!(client.finish(), Some(0));
}

/// Checks that programs which a model wrote from the tool's description alone still have the recorded results.
#[test]
#[ignore = "slow: builds a binary"]
fn programs_written_from_the_description_give_recorded_results() {
    let _ports = quickstart_ports();
    let mut client = Client::start(quickstart(), &[]);
    client.initialize();
    // The process of this upstream also serves the other two.
    client.eval("(tool/call {:server \"notes\" :tool \"list_notes\"})");
    let tasks: Vec<&str> = include_str!("tasks.clj").split("\n;;; ").skip(1).collect();
    assert_eq!(tasks.len(), 30);
    for task in tasks {
        let (words, rest) = task.split_once('\n').expect("a program follows");
        let (program, answer) = rest.split_once("\n;=> ").expect("an answer follows");
        let context = program.strip_prefix(";;: ").and_then(|rest| rest.lines().next());
        let context: Value = serde_json::from_str(context.unwrap_or("{}")).expect("JSON");
        let arguments = json!({ "name": "lisp_eval", "arguments": { "program": program, "context": context } });
        let said = client.request("tools/call", &arguments);
        let text = said.pointer("/result/content/0/text").and_then(Value::as_str).unwrap_or_default();
        let value = text.rsplit_once("user=> ").map(|(_, value)| value);
        assert_eq!(value, Some(answer.trim_end()), "{words} {said}");
    }
    assert_eq!(client.finish(), Some(0));
}

/// Checks that a binary can be matched with its config and lock, both from outside and by a client.
#[test]
#[ignore = "slow: builds a binary"]
fn binary_reports_its_config_and_catalog() {
    let folder = workspace().join("fixtures/quickstart");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("the quickstart is there");
    let lock: Value = serde_json::from_str(&read("upstreams.lock.json")).expect("JSON");
    let mut sources = ptc_compiler::source::Sources::default();
    let file = sources.add("upstreams.json", read("upstreams.json"));
    let config = ptc_compiler::config::read(&sources, file, &mut ptc_compiler::diag::Diagnostics::default()).expect("a config");
    let version: Value =
        serde_json::from_str(&run(Command::new(quickstart()).args(["version", "--json"])).success()).expect("JSON");
    let mut client = Client::start(quickstart(), &[]);
    let hello = client.initialize();
    assert_eq!(client.finish(), Some(0));
    for said in [&version, &hello["_meta"]["ptc-compile/build"]] {
        assert_eq!((&said["config_digest"], &said["catalog_digest"]), (&json!(config.digest), &lock["catalog_digest"]), "{said}");
    }
}

/// Checks that the reported size of tool descriptions equals the size of the binary's response, to the byte.
#[test]
#[ignore = "slow: builds a binary"]
fn reported_size_equals_the_size_of_tools_list() {
    let output = tempfile::tempdir().expect("a folder");
    let config = workspace().join("fixtures/quickstart/upstreams.json");
    let printed = build(&config, &output.path().join("gate"), &["--locked", "--offline", "--json"]);
    let built: Value = serde_json::from_str(printed.lines().last().unwrap_or_default()).expect("one object");
    let built = &built["built"];
    let answered = |options: &[&str]| {
        let mut client = Client::start(quickstart(), options);
        client.initialize();
        client.send(&json!({ "jsonrpc": "2.0", "id": "list", "method": "tools/list" }));
        let line = client.line();
        let (_, result) = line.trim_end().split_once("\"result\":").unwrap_or_else(|| panic!("no result in {line}"));
        assert_eq!(client.finish(), Some(0));
        // The brace that ends the frame does not count.
        json!(result.len() - 1)
    };
    let bytes = answered(&[]).as_u64().expect("a number");
    assert!(bytes <= MAX_TOOLS_LIST_BYTES, "{bytes} bytes");
    let by_mode = &built["tools_list_bytes_by_catalog_mode"];
    for mode in ["auto", "inline", "lazy"] {
        assert_eq!(by_mode[mode], answered(&["--catalog-mode", mode]), "{mode}");
        let tokens = by_mode[mode].as_u64().map(|bytes| bytes / 4);
        assert_eq!(built["tools_list_tokens_by_catalog_mode"][mode].as_u64(), tokens, "{mode}");
    }
    assert_eq!(built["tools_list_tokens"], built["tools_list_tokens_by_catalog_mode"]["auto"]);
    assert_eq!(built["tools_list_bytes"], answered(&[]));
    assert_eq!(built["tools_list_bytes"], by_mode["auto"]);
    assert_ne!(by_mode["lazy"], by_mode["inline"]);
    let more = |flag: &str| json!(answered(&[flag]).as_u64().unwrap_or(0) - answered(&[]).as_u64().unwrap_or(0));
    assert_eq!(built["tools_list_bytes_of"]["sessions"], more("--sessions"));
    assert_eq!(built["tools_list_bytes_of"]["debug-tool"], more("--debug-tool"));
}

/// With a path the binary itself is asked, so that no option is offered that it refuses.
#[test]
#[ignore = "slow: builds a binary"]
fn completions_and_pages_have_the_flags_of_the_binary() {
    let help = run(Command::new(quickstart()).arg("--help")).success();
    let folder = tempfile::tempdir().expect("a folder");
    let binary = quickstart().to_str().expect("a plain path");
    let script = run(Command::new(ptc_compile()).args(["completions", "fish", "--binary", binary])).success();
    run(Command::new(ptc_compile()).arg("man").arg(folder.path()).args(["--binary", binary])).success();
    let page = quickstart().with_extension("1");
    let page = folder.path().join(page.file_name().expect("a name"));
    let page = std::fs::read_to_string(page).expect("a page").replace("\\-", "-");
    for flag in ptc_runtime::settings::flags() {
        let has = help.lines().any(|line| line.trim_end() == format!("  --{} {}", flag.name, flag.placeholder()).trim_end());
        assert_eq!(script.contains(&format!(" -l {} ", flag.name)), has, "{}", flag.name);
        assert_eq!(page.contains(&format!("--{}\\fR", flag.name)), has, "{}", flag.name);
    }
    assert!(help.contains("--http-port") && !help.contains("--http-viewer") && !help.contains("--agentic"), "{help}");
    let refused = run(Command::new(quickstart()).args(["eval", "--color", "never", "1"]));
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("--line-editing") && refused.stderr.lines().count() == 1, "{}", refused.stderr);
}

/// Checks that shells read the scripts of both command lines without errors, and that the pages can be formatted without
/// warnings.
#[test]
#[ignore = "needs what .ci/peers installs"]
fn generated_completions_and_manual_pages_are_valid() {
    let folder = tempfile::tempdir().expect("a folder");
    for binary in [&[][..], &["--binary", "gate"]] {
        for (shell, check) in [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")] {
            let script = folder.path().join(shell);
            let text = run(Command::new(ptc_compile()).args(["completions", shell]).args(binary)).success();
            std::fs::write(&script, text).expect("a file");
            let read = run(Command::new(shell).arg(check).arg(&script));
            assert!(read.code == Some(0) && read.stderr.is_empty(), "{shell}: {}", read.stderr);
        }
        run(Command::new(ptc_compile()).arg("man").arg(folder.path().join("pages")).args(binary)).success();
    }
    for entry in std::fs::read_dir(folder.path().join("pages")).expect("pages").flatten() {
        // The page is narrow. The conversion is skipped because it would hide characters that a plain reader cannot show.
        let set = run(Command::new("groff").args(["-man", "-Tutf8", "-ww"]).arg(entry.path()));
        assert!(set.code == Some(0) && set.stderr.is_empty(), "{}: {}", entry.path().display(), set.stderr);
    }
}

#[test]
#[ignore = "slow: builds a binary"]
fn only_one_tool_is_offered() {
    let mut client = Client::start(quickstart(), &[]);
    client.initialize();
    let answer = client.request("tools/list", &json!({}));
    let tools = answer.pointer("/result/tools").and_then(Value::as_array).expect("a list of tools");
    let names: Vec<_> = tools.iter().filter_map(|tool| tool.get("name")).collect();
    assert_eq!(names, [&json!("lisp_eval")]);
    assert_eq!(client.finish(), Some(0));
}
