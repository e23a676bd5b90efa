//! Tests `ptc-compile run` and `repl` as processes: a config is served, or tried, without a build.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;

use ptc_runtime::Parts;
use ptc_runtime::settings::{Flag, Purpose};
use ptc_tests::deployment::ptc_compile;
use ptc_tests::mcp::Client;
use ptc_tests::process::{Finished, run};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A folder with a config of one upstream that runs and one that does not.
struct Folder(TempDir);

impl Folder {
    fn new(upstreams: &[(&str, &Value)]) -> Folder {
        let folder = tempfile::tempdir().expect("a folder");
        let upstreams: serde_json::Map<String, Value> =
            upstreams.iter().map(|(name, entry)| ((*name).to_owned(), (*entry).clone())).collect();
        std::fs::write(folder.path().join("upstreams.json"), json!({ "upstreams": upstreams }).to_string()).expect("a config");
        Folder(folder)
    }

    fn config(&self) -> PathBuf {
        self.0.path().join("upstreams.json")
    }

    /// Returns the command `ptc-compile run`, isolated from the configs of this process's environment.
    fn run(&self, args: &[&str]) -> Command {
        self.command("run", args)
    }

    fn command(&self, name: &str, args: &[&str]) -> Command {
        let mut command = Command::new(ptc_compile());
        command.arg(name).args(args).current_dir(self.0.path());
        for name in ["PTC_RUNNER_UPSTREAMS", "PTC_RUNNER_MCP_UPSTREAMS", "PTC_RUNNER_MCP_CATALOG_SNAPSHOT_MODE"] {
            command.env_remove(name);
        }
        command.env("XDG_CONFIG_HOME", self.0.path().join("nothing here"));
        command
    }
}

fn notes() -> Value {
    let args = ["demo", "--stdio"];
    json!({ "transport": "mcp_stdio", "description": "Notes.", "command": ptc_compile(), "args": args })
}

fn dead() -> Value {
    json!({ "transport": "mcp_stdio", "command": "/no/such/program" })
}

const READ: &str = r#"(count (:value (tool/call {:server "notes" :tool "list_notes"})))"#;

/// Returns the answers to some programs.
fn answers(command: &mut Command, programs: &[&str]) -> Vec<String> {
    let mut client = Client::of(command);
    client.initialize();
    let answers = programs.iter().map(|program| client.eval(program)).collect();
    assert_eq!(client.finish(), Some(0));
    answers
}

#[test]
fn frozen_catalog_is_loaded_before_the_first_call() {
    let folder = Folder::new(&[("notes", &notes())]);
    let servers = "(map (juxt :name :tool_count :catalog_loaded) (tool/servers))";
    let found = answers(&mut folder.run(&["upstreams.json"]), &[servers, r#"(count (dir "notes"))"#, READ]);
    assert_eq!(found[..2], ["user=> [[\"notes\" 2 true]]", "user=> 2"]);
    assert!(found[2].starts_with("user=> ") && !found[2].contains("nil"), "{}", found[2]);
    let files: Vec<_> = std::fs::read_dir(folder.0.path()).expect("a folder").flatten().map(|file| file.file_name()).collect();
    assert_eq!(files, ["upstreams.json"], "nothing is written");
}

#[test]
fn live_catalog_is_loaded_on_demand() {
    let folder = Folder::new(&[("notes", &notes()), ("dead", &dead())]);
    let live = ["upstreams.json", "--catalog-snapshot-mode", "live"];
    let servers = "(map (juxt :name :tool_count :catalog_loaded) (tool/servers))";
    let found = answers(
        &mut folder.run(&live),
        &[
            servers,
            r#"(filter #(str/includes? % "not listed") (apropos "note"))"#,
            r#"(doc "dead/x")"#,
            r#"(:reason (tool/call {:server "dead" :tool "x"}))"#,
            r#"(count (apropos "notes" {:load true}))"#,
            servers,
            r#"(apropos "zzzqqq")"#,
        ],
    );
    assert_eq!(found[0], "user=> [[\"dead\" 0 false] [\"notes\" 0 false]]");
    assert_eq!(
        found[1],
        r#"user=> ["notes - Notes. (tools not listed yet; next: (dir \"notes\"))" "dead (tools not listed yet; next: (dir \"dead\"))"]"#
    );
    assert_eq!(found[2], "user=> nil");
    assert_eq!(found[3], "user=> :upstream_unavailable");
    assert_eq!(found[5], "user=> [[\"dead\" 0 false] [\"notes\" 2 true]]");
    assert_eq!(found[6], "user=> [\"dead (tools not listed yet; next: (dir \\\"dead\\\"))\"]");
    // The first request may be a call, even a wrong one, or several calls in parallel.
    let first = answers(&mut folder.run(&live), &[READ, r#"(tool/call {:server "notes" :tool "list_note"})"#]);
    assert!(first[0].starts_with("user=> "), "{}", first[0]);
    assert!(first[1].contains("no tool 'list_note' in upstream 'notes'"), "{}", first[1]);
    let together = format!("(frequencies (pmap (fn [_] {READ}) (range 20)))");
    let first = answers(&mut folder.run(&live), &[&together, "(tool/call {:server \"notes\" :tool nil})"]);
    assert!(first[0].ends_with(" 20}"), "{}", first[0]);
    assert!(first[1].contains("requires :tool (string), got nil"), "{}", first[1]);
}

#[test]
fn result_used_as_value_is_refused_with_its_position() {
    let folder = Folder::new(&[("notes", &notes())]);
    let found = answers(
        &mut folder.run(&["upstreams.json"]),
        &[r#"(+ 1 (count (:notes (tool/call {:server "notes" :tool "list_notes"}))))"#, "(+ 1 2)"],
    );
    let place = found[0].contains("1:13") || found[0].contains("line 1, column 13");
    assert!(found[0].contains("the result of notes/list_notes has no 'notes'") && place, "{}", found[0]);
    assert_eq!(found[1], "user=> 3");
}

#[test]
fn faulty_config_is_reported_and_not_served() {
    let folder = Folder::new(&[("notes", &notes()), ("dead", &dead())]);
    let write = |name: &str, text: &str| std::fs::write(folder.0.path().join(name), text).expect("a file");
    write("wrong.json", r#"{"upstreams": {"a": {"transport": "stdio"}, "b": {}}}"#);
    write(
        "secret.json",
        r#"{"upstreams": {"a": {"transport": "mcp_http", "url": "https://a.example/mcp",
        "auth": [{"scheme": "bearer", "binding": "key"}]}}, "credentials": {"key": {"source": "env", "var": "PTC_TEST_UNSET"}}}"#,
    );
    let cases: [(&[&str], i32, &[&str]); 6] = [
        (&["upstreams.json"], 1, &["PTC", "the upstream `dead` could not be asked for its tools"]),
        (&["wrong.json"], 1, &["`stdio`", "\"b\": {}"]),
        (&["secret.json", "--catalog-snapshot-mode=live"], 2, &["PTC_TEST_UNSET"]),
        (&["no.json"], 2, &["CONFIG: expected an existing file, found 'no.json'"]),
        (
            &["--program-timeout-ms", "x", "--no-such"],
            2,
            &["--program-timeout-ms: expected an integer", "unknown flag --no-such"],
        ),
        (&["upstreams.json", "--versoin"], 2, &["unknown flag --versoin; did you mean --version?"]),
    ];
    for (args, code, said) in cases {
        let Finished { code: found, stdout, stderr } = run(&mut folder.run(args));
        assert_eq!((found, stdout.as_str()), (Some(code), ""), "{args:?}: {stderr}");
        for text in said {
            assert!(stderr.contains(text), "{args:?}: no {text} in {stderr}");
        }
    }
}

#[test]
fn config_is_found_by_flag_variable_and_default_path() {
    let [by_flag, by_variable, by_default] = ["flag", "variable", "default"].map(|name| Folder::new(&[(name, &dead())]));
    std::fs::create_dir(by_default.0.path().join("ptc_runner_mcp")).expect("a folder");
    std::fs::rename(by_default.config(), by_default.0.path().join("ptc_runner_mcp/upstreams.json")).expect("a config");
    let program = ["(map :name (tool/servers))"];
    let path = |path: &Path| path.to_str().expect("plain text").to_owned();
    let live = "--catalog-snapshot-mode=live";
    let ask = |args: &[&str], variable: bool, default: bool| {
        let mut command = by_flag.run(args);
        if variable {
            command.env("PTC_RUNNER_MCP_UPSTREAMS", by_variable.config());
        }
        if default {
            command.env("XDG_CONFIG_HOME", by_default.0.path());
        }
        answers(&mut command, &program).remove(0)
    };
    let config = path(&by_flag.config());
    assert_eq!(ask(&[live, &config], true, true), "user=> [\"flag\"]");
    assert_eq!(ask(&[live, "--upstreams-config", &config], true, true), "user=> [\"flag\"]");
    assert_eq!(ask(&[live], true, true), "user=> [\"variable\"]");
    assert_eq!(ask(&[live], false, true), "user=> [\"default\"]");
    // No config is found, so the world is closed and has its own defaults.
    let plain = ask(&[live], false, false);
    assert!(plain.contains("no upstreams are configured"), "{plain}");
    let mut client = Client::of(&mut by_flag.run(&[]));
    client.initialize();
    let list = client.request("tools/list", &json!({}));
    assert_eq!(list.pointer("/result/tools/0/annotations/openWorldHint"), Some(&json!(false)));
}

#[test]
fn plain_repl_starts_without_any_config() {
    let secret =
        json!({ "transport": "mcp_http", "url": "https://web.example/mcp", "auth": [{ "scheme": "bearer", "binding": "key" }] });
    let folder = Folder::new(&[]);
    let config =
        json!({ "upstreams": { "web": secret }, "credentials": { "key": { "source": "env", "var": "NOT_SET_ANYWHERE" } } });
    std::fs::create_dir(folder.0.path().join("ptc_runner_mcp")).expect("a folder");
    std::fs::write(folder.0.path().join("ptc_runner_mcp/upstreams.json"), config.to_string()).expect("a config");
    let ask = |command: &str, args: &[&str], variable: Option<&str>| {
        let mut command = folder.command(command, args);
        command.env("XDG_CONFIG_HOME", folder.0.path()).env_remove("NOT_SET_ANYWHERE");
        if let Some(value) = variable {
            command.env("PTC_RUNNER_MCP_UPSTREAMS", value);
        }
        run(&mut command)
    };
    let program = ["-e", "(+ 1 2)"];
    let found =
        ask("repl", &["-e", "(str (tool/servers))", "-e", "(:message (tool/call {:server \"web\" :tool \"t\" :args {}}))"], None);
    let text = format!("{}{}", found.stdout, found.stderr);
    assert!(text.contains("web") && text.contains("credential binding 'key'"), "the config is found otherwise: {text}");
    for variable in [None, Some("/no/such/file.json")] {
        let plain = ask("repl", &[&["--plain"], &program[..]].concat(), variable);
        assert_eq!((plain.code, plain.stdout.trim(), plain.stderr.trim()), (Some(0), "3", ""));
    }
    let both = ask("repl", &[&["--plain", "upstreams.json"], &program[..]].concat(), None);
    assert_eq!(both.code, Some(2));
    assert!(both.stderr.contains("--plain starts without upstreams and does not go with CONFIG"), "{}", both.stderr);
}

/// The optional parts of `ptc-compile`.
static PARTS: Parts = Parts {
    viewer: Some(&ptc_viewer::VIEWER),
    access_tokens: Some(&ptc_resource_server::ACCESS_TOKENS),
    exporter: Some(&ptc_otlp::OTLP),
    recorder: Some(&ptc_cassette::RECORDER),
    ..Parts::NONE
};

#[test]
fn run_has_the_flags_of_a_pinned_binary() {
    let folder = Folder::new(&[]);
    let help = run(&mut folder.run(&["--help"])).success();
    // These tests are built with features that ptc-compile lacks.
    let built = |flag: &Flag| flag.is_built(PARTS.linked()) && flag.is_built_with(|needed| needed != "https-server");
    for flag in ptc_runtime::settings::flags().filter(|flag| built(flag) && flag.applies_to(Purpose::Serve)) {
        assert!(help.contains(&format!("--{}", flag.name)) && help.contains(flag.env), "{}", flag.name);
    }
}

#[test]
fn repl_uses_a_live_catalog_and_a_separate_variable() {
    let folder = Folder::new(&[("notes", &notes()), ("dead", &dead())]);
    let other = Folder::new(&[("other", &dead())]);
    let servers = "(map (juxt :name :tool_count) (tool/servers))";
    let script = [
        "-e",
        servers,
        "-e",
        "(def n (count (dir \"notes\")))",
        "-e",
        "[n (:ok (tool/call {:server \"notes\" :tool \"list_notes\"}))]",
    ];
    let named = run(folder.command("repl", &["upstreams.json"]).args(script)).success();
    assert_eq!(named, "[[\"dead\" 0] [\"notes\" 0]]\n#'n\n[2 true]\n");
    let by_variable = |name: &str| {
        let mut command = folder.command("repl", &["-e", "(map :name (tool/servers))"]);
        command.env("PTC_RUNNER_MCP_UPSTREAMS", other.config()).env(name, folder.config());
        run(&mut command).success()
    };
    assert_eq!(by_variable("PTC_RUNNER_UPSTREAMS"), "[\"dead\" \"notes\"]\n");
    assert_eq!(by_variable("UNRELATED"), "[\"other\"]\n");
    // Limits have the documented names.
    let calls = r#"(count (filter :ok (pmap (fn [_] (tool/call {:server "notes" :tool "list_notes"})) (range 9))))"#;
    let most = [
        "upstreams.json",
        "--max-tool-calls",
        "4",
        "--max-catalog-ops=1",
        "-e",
        calls,
        "-e",
        "(map nil? [(tool/servers) (tool/servers)])",
    ];
    assert_eq!(run(&mut folder.command("repl", &most)).success(), "4\n[false true]\n");
    // In frozen mode the dead upstream is noticed at start.
    let frozen = run(&mut folder.command("repl", &["upstreams.json", "--catalog-snapshot-mode=frozen", "-e", "1"]));
    assert_eq!((frozen.code, frozen.stdout.as_str()), (Some(1), ""), "{}", frozen.stderr);
    let plain = run(&mut folder.command("repl", &["-e", "(+ 1 2)"])).success();
    assert_eq!(plain, "3\n");
}

/// Starts an endpoint that answers the questions with these programs, one after another. The channel returns the questions.
fn planner(programs: &'static [&'static str]) -> (String, mpsc::Receiver<(Option<String>, Value)>) {
    let server = tiny_http::Server::http("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/v1", server.server_addr());
    let (send, asked) = mpsc::channel();
    std::thread::spawn(move || {
        for program in programs {
            let mut request = server.recv().expect("a question");
            let key = request.headers().iter().find(|header| header.field.equiv("Authorization"));
            let key = key.map(|header| header.value.to_string());
            let body = serde_json::from_reader(request.as_reader()).expect("JSON");
            send.send((key, body)).expect("the test waits");
            let answer = json!({ "choices": [{ "message": { "content": program }, "finish_reason": "stop" }] });
            request.respond(tiny_http::Response::from_string(answer.to_string())).expect("the server reads");
        }
    });
    (url, asked)
}

#[test]
fn run_serves_tasks_without_a_build() {
    const READ: &str = r#"(return (count (:value (tool/call {:server "notes" :tool "list_notes"}))))"#;
    const KEY: &str = "sk-not-a-real-key-0123456789";
    let folder = Folder::new(&[("notes", &notes())]);
    let config = json!({
        "upstreams": { "notes": notes() },
        "credentials": { "planner-key": { "source": "env", "var": "PTC_TEST_PLANNER_KEY" } },
    });
    std::fs::write(folder.config(), config.to_string()).expect("a config");
    let (url, asked) = planner(&[r#"(tool/call {:server "notes" :tool "list_note"})"#, READ]);
    let flags =
        ["upstreams.json", "--agentic", "--aggregator-read-only", "--agentic-max-turns", "2", "--agentic-model", "replayed"];
    let command = || {
        let mut command = folder.run(&flags);
        command.args(["--agentic-credential", "planner-key", "--agentic-base-url", &url]).env_remove("PTC_TEST_PLANNER_KEY");
        command
    };
    let mut client = Client::of(command().env("PTC_TEST_PLANNER_KEY", KEY));
    client.initialize();
    let call = json!({ "name": "lisp_task", "arguments": { "task": "How many notes are there?" } });
    let answer = client.request("tools/call", &call);
    let data = &answer["result"]["structuredContent"];
    assert_eq!((&data["status"], &data["program"]), (&json!("ok"), &json!(READ)), "{answer}");
    assert!(data["structured_result"].as_u64().is_some_and(|count| count > 0), "{answer}");
    assert_eq!(data["upstream_calls"].as_array().map(Vec::len), Some(1), "the wrong name cost no call: {answer}");
    assert_eq!(client.finish(), Some(0));
    let (key, first) = asked.recv().expect("two questions");
    assert_eq!(key.as_deref(), Some(&*format!("Bearer {KEY}")));
    assert!(first["messages"][0]["content"].as_str().is_some_and(|text| text.contains("- notes (2 tools): Notes.")), "{first}");
    let (_, second) = asked.recv().expect("two questions");
    assert!(
        second["messages"][3]["content"].as_str().is_some_and(|text| text.contains("did you mean 'list_notes'?")),
        "{second}"
    );
    // Without its key the server does not start, and names the missing key.
    let Finished { code, stderr, .. } = run(&mut command());
    assert!(code == Some(2) && stderr.contains("'planner-key' (environment variable PTC_TEST_PLANNER_KEY)"), "{stderr}");
}
