//! Tests a deployment over three third-party upstreams with the official TypeScript SDK, and the quickstart with the Python SDK.

use std::path::Path;
use std::process::Command;

use ptc_tests::deployment::{build, quickstart};
use ptc_tests::peers::{node_script, npm_file, npm_program, python_script};
use ptc_tests::process::{Background, free_port, run};
use serde_json::{Value, json};

/// Lists a folder over stdio, adds numbers over HTTP, and reads roles from the mocked API. The result is only a few bytes.
const PROGRAM: &str = r#"
(defn value-of [r] (if (:ok r) (:value r) (fail (:message r))))
(let [listing (value-of (tool/call {:server "files" :tool "list_directory" :args {:path "FOLDER"}}))
      names   (->> (clojure.string/split-lines (or (get listing "content") listing)) (map #(subs % 7)) sort vec)
      sum     (value-of (tool/call {:server "everything" :tool "get-sum" :args {:a (count names) :b 40}}))
      roles   (:data (value-of (tool/call {:server "directus" :tool "get-roles" :args {:limit 1}})))]
  {:names names :sum (parse-long (re-find #"\d+(?=\.)" sum)) :role (:name (first roles))})
"#;

#[test]
#[ignore = "needs what .ci/peers installs"]
fn real_upstreams_of_each_transport_are_called() {
    let folder = tempfile::tempdir().expect("a folder");
    let shared = folder.path().join("shared");
    std::fs::create_dir(&shared).expect("a folder");
    for name in ["a.txt", "b.txt"] {
        std::fs::write(shared.join(name), "text").expect("a file");
    }

    let (everything_port, prism_port) = (free_port(), free_port());
    let document = npm_file("@directus/specs/dist/openapi.json");
    let _everything =
        Background::start(npm_program("mcp-server-everything").arg("streamableHttp").env("PORT", everything_port.to_string()))
            .ready_on(everything_port);
    let _prism = Background::start(
        npm_program("prism").args(["mock", "--host", "127.0.0.1", "--port", &prism_port.to_string()]).arg(&document),
    )
    .ready_on(prism_port);

    let filesystem = npm_program("mcp-server-filesystem");
    let program_file = filesystem.get_args().next().expect("the script");
    let config = json!({
        "credentials": { "directus-token": { "source": "env", "var": "DIRECTUS_TOKEN" } },
        "upstreams": {
            "files": {
                "transport": "mcp_stdio",
                "command": "node",
                "args": [program_file.to_str(), shared.to_str()],
            },
            "everything": {
                "transport": "mcp_http",
                "url": format!("http://127.0.0.1:{everything_port}/mcp"),
                "allow_insecure_http": true,
            },
            "directus": {
                "transport": "openapi",
                "base_url": format!("http://127.0.0.1:{prism_port}"),
                "schema_file": document.to_str(),
                "include_operations": ["getRoles", "getCollections", "serverInfo"],
                "auth": [{ "scheme": "bearer", "binding": "directus-token" }],
                "allow_insecure_http": true,
                "allow_insecure_auth": true,
            },
        },
    });
    let path = folder.path().join("upstreams.json");
    std::fs::write(&path, config.to_string()).expect("a config");

    let binary = folder.path().join("pinned");
    build(&path, &binary, &[]);
    let lock = read_json(&folder.path().join("upstreams.lock.json"));
    assert!(lock.to_string().contains("get-sum"), "the lock holds what the server said: {lock}");
    // A second build from that lock contacts no upstream and changes nothing.
    build(&path, &binary, &["--locked", "--offline"]);
    assert_eq!(read_json(&folder.path().join("upstreams.lock.json")), lock);

    let program = PROGRAM.replace("FOLDER", shared.to_str().expect("a path of plain text"));
    let mut client = node_script("client.mjs");
    client.arg(&binary).arg(&program).env("DIRECTUS_TOKEN", "not-a-real-token");
    let seen: Value = serde_json::from_str(&run(&mut client).success()).expect("one JSON object");
    assert_eq!(seen.pointer("/server/name"), Some(&json!("ptc_lisp")));
    assert_eq!(seen.get("tools"), Some(&json!(["lisp_eval"])));
    assert_eq!(seen.get("text"), Some(&json!("user=> {:names [\"a.txt\" \"b.txt\"] :role \"Administrator\" :sum 42}")), "{seen}");

    // Without its secret the server does not start, and names the missing secret.
    let refused = run(Command::new(&binary).arg("start").env_remove("DIRECTUS_TOKEN"));
    assert_ne!(refused.code, Some(0));
    assert!(refused.stderr.contains("DIRECTUS_TOKEN") && refused.stderr.contains("directus"), "{}", refused.stderr);
}

/// Tests the three ways in which the Python SDK connects: it probes with `server/discover` and falls back, it performs the
/// handshake, or it is stateless.
#[test]
#[ignore = "needs what .ci/peers installs"]
fn every_mode_of_the_python_sdk_connects() {
    for mode in ["auto", "legacy", "2026-07-28"] {
        let mut client = python_script("client.py");
        client.arg(mode).arg(quickstart()).arg("(count (dir \"petstore\"))");
        let seen: Value = serde_json::from_str(&run(&mut client).success()).expect("one JSON object");
        assert_eq!(seen, json!({ "tools": ["lisp_eval"], "isError": false, "text": "user=> 2" }), "mode {mode}");
    }
}

fn read_json(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).expect("JSON")
}
