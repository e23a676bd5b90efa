//! Tests what the programs that `ptc-compile` starts inherit from its environment.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test stops where anything is wrong")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use ptc_compiler::lock::{self, Lock, LockedUpstream};
use serde_json::json;
use tiny_http::{Response, Server};

const TOKEN: &str = "not-a-real-token-of-ada";

/// Writes a program that adds its name and its environment to the file `started`, and fails.
fn program(folder: &Path, name: &str) {
    let path = folder.join(name);
    fs::write(&path, "#!/bin/sh\n{ echo \"${0##*/} $1\"; export -p; } >> \"${0%/*}/started\"\nexit 1\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs `ptc-compile` with the token of a person, with no other programs than those of the folder and no packages. Returns what was
/// started, too.
fn run(folder: &Path, args: &[&str], token: &str) -> (Output, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_ptc-compile"))
        .args(args)
        .current_dir(folder)
        .env("PATH", folder)
        .env("CARGO", folder.join("cargo"))
        .env("CARGO_HOME", folder.join("cargo-home"))
        .env("BROWSER", folder.join("browser"))
        .env("PTC_COMPILE_CACHE", folder.join("cache"))
        .env("PTC_RUNNER_MCP_CALLER_TOKEN", token)
        .output()
        .unwrap();
    let started = fs::read_to_string(folder.join("started")).unwrap_or_default();
    (output, started)
}

fn shown(output: &Output) -> String {
    String::from_utf8([&*output.stdout, &*output.stderr].concat()).unwrap()
}

#[test]
fn tools_of_a_build_do_not_inherit_the_token_of_a_person() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for name in ["cargo", "getconf"] {
        program(folder, name);
    }
    let config = json!({ "upstreams": { "notes": { "transport": "mcp_stdio", "command": "no-such-program" } } });
    fs::write(folder.join("clinic.json"), config.to_string()).unwrap();
    let mut pinned = Lock::default();
    let notes = LockedUpstream { transport: "mcp_stdio".into(), all_tools: true, ..LockedUpstream::default() };
    pinned.upstreams.insert("notes".into(), notes);
    fs::write(folder.join("clinic.lock.json"), lock::write::write(&pinned)).unwrap();
    let (output, started) = run(folder, &["clinic.json", "--offline", "--runtime-source", "embedded"], TOKEN);
    assert!(!output.status.success());
    for name in ["cargo metadata", "cargo rustc"] {
        assert!(started.contains(name), "{name}: {started}{}", shown(&output));
    }
    assert_eq!(cfg!(target_os = "linux"), started.contains("getconf GNU_LIBC_VERSION"), "{started}");
    assert!(started.contains("PTC_COMPILE_CACHE"), "they inherit other variables: {started}");
    assert!(!started.contains(TOKEN) && !started.contains("PTC_RUNNER_MCP"), "{started}");
}

/// A browser inherits the whole environment.
#[test]
fn no_browser_is_started_while_the_environment_has_the_token_of_a_person() {
    let server = Server::http("127.0.0.1:0").unwrap();
    let issuer = format!("http://{}", server.server_addr().to_ip().unwrap());
    let metadata =
        json!({ "issuer": issuer, "authorization_endpoint": format!("{issuer}/a"), "token_endpoint": format!("{issuer}/t") });
    std::thread::spawn(move || {
        for asked in server.incoming_requests() {
            asked.respond(Response::from_string(metadata.to_string())).unwrap();
        }
    });
    let config = json!({ "upstreams": { "crm": {
        "transport": "mcp_http", "url": "http://127.0.0.1:9/mcp", "allow_insecure_http": true, "allow_insecure_auth": true,
        "auth": [{ "scheme": "oauth2", "grant": "authorization_code", "issuer": issuer, "client_id": "gate", "client_auth": "none" }],
    } } });
    for (token, is_started) in [("", true), (TOKEN, false)] {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        program(folder, "browser");
        fs::write(folder.join("upstreams.json"), config.to_string()).unwrap();
        let (output, started) = run(folder, &["login", "upstreams.json", "--store", "tokens", "--timeout-s", "1"], token);
        assert_eq!(started.contains("browser http"), is_started, "{started}{}", shown(&output));
        assert!(shown(&output).contains(&format!("{issuer}/a?response_type=code")), "{}", shown(&output));
    }
}
