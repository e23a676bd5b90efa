//! Tests `ptc-compile` with the HTTP+SSE servers of the official SDKs, which also offer Streamable HTTP.

use std::process::Command;

use ptc_tests::deployment::ptc_compile;
use ptc_tests::mcp::Client;
use ptc_tests::peers::{node_script, python_script};
use ptc_tests::process::{Background, Finished, free_port, run};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A folder with a config, and the server on a port.
struct Scene {
    folder: TempDir,
    script: fn() -> Command,
    port: u16,
}

impl Scene {
    fn new(script: fn() -> Command) -> Scene {
        let (folder, port) = (tempfile::tempdir().expect("a folder"), free_port());
        let entry = |transport: &str, path: &str| {
            let url = format!("http://127.0.0.1:{port}/{path}");
            json!({ "transport": transport, "url": url, "allow_insecure_http": true, "trust_annotations": true })
        };
        let upstreams =
            json!({ "chosen": entry("mcp_sse", "sse"), "found": entry("mcp_http", "sse"), "both": entry("mcp_http", "mcp") });
        std::fs::write(folder.path().join("upstreams.json"), json!({ "upstreams": upstreams }).to_string()).expect("a config");
        Scene { folder, script, port }
    }

    fn start(&self) -> Background {
        Background::start((self.script)().args([&*self.port.to_string(), "sse", "stateful"])).ready_on(self.port)
    }

    fn compile(&self, args: &[&str]) -> Command {
        let mut command = Command::new(ptc_compile());
        command.args(args).current_dir(self.folder.path());
        command
    }

    fn run(&self, args: &[&str]) -> Finished {
        run(&mut self.compile(args))
    }

    fn lock(&self) -> Value {
        let text = std::fs::read_to_string(self.folder.path().join("upstreams.lock.json")).expect("a lock file");
        serde_json::from_str(&text).expect("JSON")
    }

    /// Starts a server from the lock file.
    fn serve(&self) -> Client {
        let mut client = Client::of(&mut self.compile(&["run", "upstreams.json"]));
        client.initialize();
        client
    }
}

fn call(server: &str, tool: &str, args: &str) -> String {
    format!(
        "(let [r (tool/call {{:server \"{server}\" :tool \"{tool}\" :args {args}}})] (or (:value r) [(:reason r) (:message r)]))"
    )
}

fn python() -> Command {
    python_script("server.py")
}

fn typescript() -> Command {
    node_script("sse_server.mjs")
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn servers_of_both_sdks_are_called_and_their_transport_is_locked() {
    for script in [python as fn() -> Command, typescript] {
        let scene = Scene::new(script);
        let _server = scene.start();
        scene.run(&["update", "upstreams.json"]).success();
        let lock = scene.lock();
        for (name, transport, agreed) in
            [("chosen", "mcp_sse", "http_sse"), ("found", "mcp_http", "http_sse"), ("both", "mcp_http", "streamable_http")]
        {
            let upstream = &lock["upstreams"][name];
            assert_eq!((&upstream["transport"], &upstream["http_transport"]), (&json!(transport), &json!(agreed)), "{name}");
            assert!(upstream["tools"]["add"].is_object(), "{upstream}");
        }
        scene.run(&["--check", "--locked", "upstreams.json"]).success();
        let unchanged = scene.run(&["diff", "upstreams.json"]).success();
        assert_eq!(scene.lock(), lock, "{unchanged}");
        let mut client = scene.serve();
        for name in ["chosen", "found", "both"] {
            let sum = client.eval(&call(name, "add", "{:a 40 :b 2}"));
            assert!(sum.contains("42"), "{name}: {sum}");
            let failed = client.eval(&call(name, "fail", "{:why \"because\"}"));
            assert!(failed.contains(":tool_error"), "{name}: {failed}");
        }
        let sums = r#"(count (distinct (pmap (fn [n] (:value (tool/call {:server "found" :tool "add" :args {:a n :b 0}}))) (range 40))))"#;
        assert_eq!(client.eval(sums), "user=> 40");
        assert_eq!(client.finish(), Some(0));
    }
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn server_that_restarts_during_and_between_calls_is_reached_again() {
    for script in [python as fn() -> Command, typescript] {
        let scene = Scene::new(script);
        let server = scene.start();
        scene.run(&["update", "upstreams.json"]).success();
        let mut client = scene.serve();
        let add = call("found", "add", "{:a 40 :b 2}");
        assert!(client.eval(&add).contains("42"));
        drop(server);
        let server = scene.start();
        let sum = client.eval(&add);
        assert!(sum.contains("42"), "between calls: {sum}");

        let program = call("found", "hang", "{}");
        client.send(&json!({ "jsonrpc": "2.0", "id": "w", "method": "tools/call",
            "params": { "name": "lisp_eval", "arguments": { "program": program } } }));
        // The call is made meanwhile. If it is not, it fails with another message.
        std::thread::sleep(std::time::Duration::from_secs(1));
        drop(server);
        let answer = client.receive();
        assert_eq!(answer["id"], "w");
        let text = answer.to_string();
        assert!(text.contains("upstream_unavailable") && text.contains("the event stream"), "during a call: {text}");
        let _server = scene.start();
        let sum = client.eval(&add);
        assert!(sum.contains("42"), "after a call: {sum}");
    }
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn only_reads_are_retried_when_the_sdk_ends_a_stream() {
    let scene = Scene::new(typescript);
    let _server = scene.start();
    scene.run(&["update", "upstreams.json"]).success();
    let mut client = scene.serve();
    assert_eq!(client.eval(&call("chosen", "read_once", "{}")), "user=> \"call 2\"");
    let written = client.eval(&call("chosen", "write_once", "{}"));
    assert!(written.contains(":upstream_unavailable \"the server ended the event stream\""), "{written}");
    assert_eq!(client.eval(&call("chosen", "write_once", "{}")), "user=> \"call 4\"");
    let large = client.eval(&call("chosen", "large", "{:bytes 3000000}"));
    assert!(large.contains(":response_too_large"), "{large}");
    assert!(client.eval(&call("chosen", "add", "{:a 40 :b 2}")).contains("42"));
}
