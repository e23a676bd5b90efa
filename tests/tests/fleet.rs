//! Tests one binary over twenty published servers: the names and schemas of their tools, and the values of calls, are equal to what
//! the official Python SDK finds.

use std::fs;
use std::path::Path;
use std::process::Command;

use ptc_tests::deployment::build;
use ptc_tests::mcp::Client;
use ptc_tests::peers::{newer_node_program, npm_program, python_script};
use ptc_tests::process::run;
use serde_json::{Value, json};

use crate::upgrades;

/// A value of variables with keys of services. No call contacts a service.
const TOKEN: &str = "not-a-key-of-any-service";

/// Returns the calls: a server, a tool, and its arguments.
fn calls(files: &str, repository: &str) -> Vec<(&'static str, &'static str, Value)> {
    let path = |name: &str| format!("{files}/{name}");
    let repo = |more: Value| {
        let mut args = json!({ "repo_path": repository });
        args.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
        args
    };
    let thought = json!({ "thought": "One.", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1 });
    let entity = |name: &str| json!({ "name": name, "entityType": "person", "observations": [format!("{name} writes.")] });
    vec![
        ("filesystem", "list_directory", json!({ "path": files })),
        ("filesystem", "directory_tree", json!({ "path": files })),
        ("filesystem", "read_text_file", json!({ "path": path("a.txt") })),
        ("filesystem", "read_text_file", json!({ "path": path("b.txt"), "head": 1 })),
        ("filesystem", "read_text_file", json!({ "path": path("b.txt"), "tail": 1 })),
        ("filesystem", "read_multiple_files", json!({ "paths": [path("a.txt"), path("b.txt")] })),
        ("filesystem", "search_files", json!({ "path": files, "pattern": "*.txt" })),
        ("filesystem", "list_directory_with_sizes", json!({ "path": files })),
        ("filesystem", "list_allowed_directories", json!({})),
        ("memory", "create_entities", json!({ "entities": [entity("Ada"), entity("Grace"), entity("Zoë")] })),
        ("memory", "create_relations", json!({ "relations": [{ "from": "Ada", "to": "Grace", "relationType": "knows" }] })),
        ("memory", "add_observations", json!({ "observations": [{ "entityName": "Ada", "contents": ["Ada counts."] }] })),
        ("memory", "read_graph", json!({})),
        ("memory", "search_nodes", json!({ "query": "counts" })),
        ("memory", "open_nodes", json!({ "names": ["Grace", "Zoë"] })),
        ("everything", "echo", json!({ "message": "a \"quoted\" text\nof two lines, and ünïcödé" })),
        ("everything", "get-sum", json!({ "a": 2, "b": 40.5 })),
        ("everything", "get-structured-content", json!({ "location": "New York" })),
        ("sequential-thinking", "sequentialthinking", thought),
        ("git", "git_status", repo(json!({}))),
        ("git", "git_diff", repo(json!({ "target": "HEAD" }))),
        ("git", "git_branch", repo(json!({ "branch_type": "local" }))),
        ("git", "git_diff_staged", repo(json!({}))),
        ("git", "git_diff_unstaged", repo(json!({}))),
        ("sqlite", "create_table", json!({ "query": "create table notes (id integer primary key, text text)" })),
        ("sqlite", "write_query", json!({ "query": "insert into notes (text) values ('one'), ('zwölf')" })),
        ("sqlite", "read_query", json!({ "query": "select * from notes order by id" })),
        ("sqlite", "list_tables", json!({})),
        ("sqlite", "describe_table", json!({ "table_name": "notes" })),
        ("time", "convert_time", json!({ "source_timezone": "UTC", "time": "12:30", "target_timezone": "Asia/Kolkata" })),
        ("time", "convert_time", json!({ "source_timezone": "Asia/Tokyo", "time": "00:15", "target_timezone": "UTC" })),
    ]
}

/// Returns the servers by name, with the folder that those may write to which keep a state.
fn servers(state: &Path, files: &Path) -> Vec<(&'static str, Value)> {
    let entry = |command: &Command, env: Value| {
        let args: Vec<_> = command.get_args().map(|arg| arg.to_str().expect("plain text")).collect();
        json!({ "command": command.get_program().to_str().expect("plain text"), "args": args, "env": env, "cwd": state })
    };
    let mut servers = Vec::new();
    for server in &upgrades::SERVERS {
        let (name, variable) = (server.0, server.3);
        // The earlier versions of these servers have answers that do not match their own schemas.
        let mut command = match name {
            "filesystem" => npm_program("mcp-server-filesystem"),
            "memory" => npm_program("mcp-server-memory"),
            _ => upgrades::command(server, "after"),
        };
        command.args(server.2.iter().map(|arg| if *arg == "." { files.as_os_str() } else { arg.as_ref() }));
        let env = match name {
            "memory" => json!({ "MEMORY_FILE_PATH": state.join("memory.json") }),
            _ => variable.map_or_else(|| json!({}), |variable| json!({ variable: TOKEN })),
        };
        servers.push((name, entry(&command, env)));
    }
    let slack = json!({ "SLACK_BOT_TOKEN": TOKEN, "SLACK_TEAM_ID": "T01" });
    let gitlab = json!({ "GITLAB_PERSONAL_ACCESS_TOKEN": TOKEN, "GITLAB_API_URL": "http://127.0.0.1:9/api/v4" });
    servers.push(("chrome", entry(&newer_node_program("chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js"), json!({}))));
    servers.push(("github", entry(&npm_program("mcp-server-github"), json!({ "GITHUB_PERSONAL_ACCESS_TOKEN": TOKEN }))));
    servers.push(("gitlab", entry(&npm_program("mcp-gitlab"), gitlab)));
    servers.push(("maps", entry(&npm_program("mcp-server-google-maps"), json!({ "GOOGLE_MAPS_API_KEY": TOKEN }))));
    servers.push(("slack", entry(&npm_program("mcp-server-slack"), slack)));
    servers
}

/// Reads JSON in texts, since both sides may return the text or its value.
fn plain(value: &Value) -> Value {
    value.as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_else(|| value.clone())
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn twenty_servers_in_one_binary_match_what_the_sdk_reports() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder_of = |name: &str| {
        let path = folder.path().join(name);
        fs::create_dir(&path).expect("a folder");
        path
    };
    let [files, repository, own, sdk] = ["files", "repository", "own", "sdk"].map(folder_of);
    fs::write(files.join("a.txt"), "One line.\n").expect("a file");
    fs::write(files.join("b.txt"), "Zwei\nZeilen\n").expect("a file");
    for args in [
        &["init", "--quiet", "--initial-branch", "main"][..],
        &["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "--quiet", "--allow-empty", "--message", "First"],
    ] {
        run(Command::new("git").args(args).current_dir(&repository)).success();
    }
    let calls = calls(files.to_str().expect("plain text"), repository.to_str().expect("plain text"));
    assert!(calls.len() >= 30);

    let entries = servers(&own, &files);
    assert!(entries.len() >= 20);
    let upstreams = entries.iter().map(|(name, server)| {
        let config = json!({
            "transport": "mcp_stdio", "command": server["command"], "args": server["args"], "env": server["env"], "cd": server["cwd"],
            // Some servers describe themselves in sentences that resemble instructions for models.
            "accept_definitions": ["*"], "call_timeout_ms": 60_000, "handshake_timeout_ms": 60_000,
        });
        ((*name).to_owned(), config)
    });
    let config = json!({ "upstreams": upstreams.collect::<serde_json::Map<_, _>>() });
    let path = folder.path().join("upstreams.json");
    fs::write(&path, config.to_string()).expect("a config");
    let binary = folder.path().join("fleet");
    build(&path, &binary, &[]);

    let asked =
        json!({ "servers": servers(&sdk, &files).into_iter().collect::<std::collections::BTreeMap<_, _>>(), "calls": calls });
    let input = folder.path().join("asked.json");
    fs::write(&input, asked.to_string()).expect("a file");
    let answer = run(python_script("fleet.py").arg(&input));
    let seen: Value = serde_json::from_str(&answer.success()).expect("one JSON object");

    let lock = fs::read(folder.path().join("upstreams.lock.json")).expect("the lock file");
    let lock: Value = serde_json::from_slice(&lock).expect("JSON");
    for (name, _) in &entries {
        let tools = lock["upstreams"][name]["tools"].as_object().unwrap_or_else(|| panic!("no tools of {name}"));
        let schemas: serde_json::Map<_, _> =
            tools.iter().map(|(tool, locked)| (tool.clone(), locked["definition"]["inputSchema"].clone())).collect();
        assert_eq!(Value::Object(schemas), seen["tools"][name], "{name}");
    }

    let mut client = Client::start(&binary, &["--program-timeout-ms", "60000"]);
    client.initialize();
    for (at, (server, tool, args)) in calls.iter().enumerate() {
        let args = args.to_string();
        let program = format!(
            "(json/generate-string (tool/value {{:server {server:?} :tool {tool:?} :args (json/parse-string {args:?})}}))"
        );
        let text = client.eval(&program);
        let value = text.strip_prefix("user=> ").and_then(|text| text.lines().next());
        let value: Value = value.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_else(|| panic!("{tool}: {text}"));
        assert_eq!(plain(&plain(&value)), plain(&seen["values"][at]), "{server} {tool}");
    }
    assert_eq!(client.finish(), Some(0));
}
