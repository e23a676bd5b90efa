//! Tests the sandbox of a child with the official filesystem server, whose own arguments permit more folders.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::Command;

use ptc_tests::deployment::ptc_compile;
use ptc_tests::mcp::Client;
use ptc_tests::peers::{npm_file, npm_program};
use ptc_tests::process::run;
use serde_json::{Value, json};

/// Creates the folders `inside`, `drafts` and `outside`, each with a file.
fn folders(root: &Path) {
    for name in ["inside", "drafts", "outside"] {
        std::fs::create_dir(root.join(name)).expect("a folder");
        std::fs::write(root.join(name).join("note.txt"), format!("the note in {name}")).expect("a file");
    }
}

/// Writes a config in which the server may serve all folders, with this sandbox.
fn configure(root: &Path, sandbox: &Value) {
    let server = npm_program("mcp-server-filesystem");
    let script = server.get_args().next().expect("the script").to_str().expect("plain text");
    let folder = |name: &str| root.join(name).to_str().expect("plain text").to_owned();
    let entry = json!({
        "transport": "mcp_stdio", "command": "node", "args": [script, folder("inside"), folder("drafts"), folder("outside")],
        "handshake_timeout_ms": 120_000, "sandbox": sandbox,
    });
    std::fs::write(root.join("upstreams.json"), json!({ "upstreams": { "files": entry } }).to_string()).expect("a config");
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn filesystem_server_in_a_sandbox_accesses_only_the_listed_folders() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    folders(root);
    let packages = npm_file("");
    configure(
        root,
        &json!({ "read": [packages.to_str(), "inside"], "write": ["drafts"], "memory_mb": 1024, "open_files": 1024 }),
    );
    // Discovery starts the server in the same sandbox.
    let compile = |args: &[&str]| run(Command::new(ptc_compile()).current_dir(root).args(args));
    compile(&["update", "upstreams.json"]).success();
    let pinned = std::fs::read_to_string(root.join("upstreams.lock.json")).expect("the lock file");
    assert!(pinned.contains("read_text_file") && !pinned.contains("sandbox"), "{pinned}");

    let mut command = Command::new(ptc_compile());
    let mut client = Client::of(command.current_dir(root).args(["run", "upstreams.json"]));
    client.initialize();
    let mut call = |tool: &str, file: &str, more: &str| {
        let path = root.join(file);
        let args = format!("{{:path \"{}\" {more}}}", path.display());
        client.eval(&format!(
            "(let [r (tool/call {{:server \"files\" :tool \"{tool}\" :args {args}}})] (str (:reason r) \" \" (:message r) (:value r)))"
        ))
    };
    let denied = |file: &str| format!("EACCES: permission denied, open '{}", root.join(file).display());
    let read = call("read_text_file", "inside/note.txt", "");
    assert!(read.contains("the note in inside"), "{read}");
    let outside = call("read_text_file", "outside/note.txt", "");
    assert!(outside.contains("tool_error") && outside.contains(&denied("outside/note.txt")), "{outside}");
    let written = call("write_file", "drafts/new.txt", ":content \"a draft\"");
    assert!(written.contains("Successfully wrote"), "{written}");
    assert_eq!(std::fs::read_to_string(root.join("drafts/new.txt")).expect("the draft"), "a draft");
    let refused = call("write_file", "inside/new.txt", ":content \"x\"");
    assert!(refused.contains("tool_error") && refused.contains(&denied("inside/new.txt")), "{refused}");
    assert_eq!(client.finish(), Some(0));

    // Another sandbox does not change how the server is reached, and its tools are not listed again. Without one it reads everything.
    configure(root, &Value::Null);
    let config = std::fs::read_to_string(root.join("upstreams.json")).expect("the config").replace(",\"sandbox\":null", "");
    std::fs::write(root.join("upstreams.json"), config).expect("a config");
    compile(&["--check", "--locked", "upstreams.json"]).success();
    let mut command = Command::new(ptc_compile());
    let mut client = Client::of(command.current_dir(root).args(["run", "upstreams.json"]));
    client.initialize();
    let path = root.join("outside/note.txt");
    let free = client.eval(&format!(
        "(str (tool/value {{:server \"files\" :tool \"read_text_file\" :args {{:path \"{}\"}}}}))",
        path.display()
    ));
    assert!(free.contains("the note in outside"), "{free}");
    assert_eq!(client.finish(), Some(0));
}
