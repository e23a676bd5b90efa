//! The first deployment of a new user, from an empty folder to an upgrade: servers from npm and PyPI, operations of GitHub's
//! published document against a mock of it, stored programs, both official SDKs, and upstreams that fail.
#![expect(clippy::indexing_slicing, reason = "a test stops where an answer lacks what it looks at")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use ptc_tests::deployment::ptc_compile;
use ptc_tests::mcp::Client;
use ptc_tests::peers::{github_document, node_script, npm_program, python_program, python_script};
use ptc_tests::process::{Background, Finished, free_port, run, wait_for};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A token that is obviously fake.
const TOKEN: &str = "canary-token-of-a-first-deployment";

const OPERATIONS: [&str; 8] = [
    "repos/get",
    "repos/list-for-org",
    "repos/list-commits",
    "repos/list-branches",
    "issues/list-for-repo",
    "pulls/list",
    "users/get-by-username",
    "rate-limit/get",
];

/// The stored programs: name, source, arguments, and the beginning of the text of the answer.
fn programs(shared: &Path) -> [(&'static str, &'static str, Value, &'static str); 3] {
    [
        (
            "repo-name",
            r#"(:full_name (tool/value {:server "github" :tool "repos-get" :args {:owner data/owner :repo data/repo}}))"#,
            json!({ "owner": "acme", "repo": "widgets" }),
            "octocat/Hello-World",
        ),
        (
            "count-files",
            r#"(let [listing (tool/value {:server "files" :tool "list_directory" :args {:path data/path}})]
                 (count (clojure.string/split-lines (or (get listing "content") listing))))"#,
            json!({ "path": shared }),
            "2",
        ),
        (
            "time-in",
            r#"(re-find #"Europe/Berlin" (str (tool/value {:server "time" :tool "get_current_time" :args {:timezone data/zone}})))"#,
            json!({ "zone": "Europe/Berlin" }),
            "Europe/Berlin",
        ),
    ]
}

/// One program over all upstreams.
const ALL: &str = r#"[(:full_name (tool/value {:server "github" :tool "repos-get" :args {:owner "acme" :repo "widgets"}}))
  (count (dir "files"))
  (boolean (re-find #"UTC" (str (tool/value {:server "time" :tool "get_current_time" :args {:timezone "UTC"}}))))]"#;

struct Site {
    folder: TempDir,
    mock: Option<Background>,
    config: Value,
}

impl Site {
    fn new() -> Site {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        std::fs::create_dir(path.join("shared")).expect("a folder");
        for name in ["a.txt", "b.txt"] {
            std::fs::write(path.join("shared").join(name), "text").expect("a file");
        }
        std::fs::copy(github_document(), path.join("github.json")).expect("the document");
        let port = free_port();
        let mut prism = npm_program("prism");
        prism.args(["mock", "--host", "127.0.0.1", "--port", &port.to_string()]).arg(github_document());
        let mock = Background::start(&mut prism);
        let filesystem = npm_program("mcp-server-filesystem");
        let script = filesystem.get_args().next().expect("the script").to_str().map(str::to_owned);
        let time = python_program("mcp-server-time").get_program().to_str().map(str::to_owned);
        let mut stored = serde_json::Map::new();
        for (name, source, arguments, _) in programs(&path.join("shared")) {
            std::fs::write(path.join(format!("{name}.clj")), source).expect("a program");
            let properties: serde_json::Map<String, Value> =
                arguments.as_object().expect("an object").keys().map(|key| (key.clone(), json!({ "type": "string" }))).collect();
            stored.insert(
                name.to_owned(),
                json!({ "file": format!("{name}.clj"), "args": { "type": "object", "properties": properties } }),
            );
        }
        let config = json!({
            "name": "platform",
            "credentials": { "github-token": { "source": "env", "var": "GITHUB_TOKEN" } },
            "upstreams": {
                "files": { "transport": "mcp_stdio", "command": "node", "args": [script, path.join("shared")],
                           "handshake_timeout_ms": 120_000 },
                "time": { "transport": "mcp_stdio", "command": time, "args": ["--local-timezone", "UTC"],
                          "handshake_timeout_ms": 120_000 },
                "github": { "transport": "openapi", "base_url": format!("http://127.0.0.1:{port}"), "schema_file": "github.json",
                            "include_operations": OPERATIONS, "auth": [{ "scheme": "bearer", "binding": "github-token" }],
                            "allow_insecure_http": true, "allow_insecure_auth": true, "request_timeout_ms": 120_000,
                            "silence": ["PTC0531"] },
            },
            "programs": stored,
        });
        let site = Site { mock: Some(mock.ready_on(port)), folder, config };
        site.configure(&site.config);
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn configure(&self, config: &Value) {
        std::fs::write(self.path("upstreams.json"), config.to_string()).expect("a config");
    }

    fn compile(&self, args: &[&str]) -> Finished {
        run(Command::new(ptc_compile()).current_dir(self.folder.path()).args(args).env_remove("GITHUB_TOKEN"))
    }

    /// Returns the image in the manifests.
    fn image(&self) -> String {
        let manifests = self.compile(&["upstreams.json", "--emit", "k8s"]).success();
        let image = manifests.lines().find_map(|line| line.trim_start().strip_prefix("image: \"platform:"));
        format!("platform:{}", image.expect("an image of the deployment").trim_end_matches('"'))
    }
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn first_deployment_succeeds_from_an_empty_folder() {
    let mut site = Site::new();
    let image = build(&site);
    catalog_without_the_secret(&site);
    official_clients(&site);
    stored_programs(&site);
    failing_upstreams(&mut site);
    changes(&site, &image);
}

/// Builds from the empty folder. Returns the image's name and tag, which are the same everywhere.
fn build(site: &Site) -> String {
    let refused = site.compile(&["upstreams.json", "--locked", "--output", "gate"]);
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("ptc-compile update upstreams.json"), "{}", refused.stderr);
    let summary = site.compile(&["upstreams.json", "--output", "gate"]).success();
    assert!(summary.contains("total       3 upstreams, "), "{summary}");
    let image = site.image();
    assert!(summary.lines().any(|line| line == format!("image       {image}")), "{image} in {summary}");
    let dockerfile = site.compile(&["upstreams.json", "--emit", "container"]).success();
    assert!(dockerfile.contains(&format!("#   docker build --tag {image} .")), "{image} in {dockerfile}");
    image
}

/// Questions to the catalog need no secret, and a server needs all of them unless it is started to be checked.
fn catalog_without_the_secret(site: &Site) {
    let gate = |args: &[&str]| run(Command::new(site.path("gate")).args(args).env_remove("GITHUB_TOKEN"));
    assert_eq!(gate(&["eval", r#"(count (dir "github"))"#]).success(), "8\n");
    let version: Value = serde_json::from_str(&gate(&["version", "--json"]).success()).expect("an object");
    assert_eq!(version.get("name"), Some(&json!("platform")));
    let refused = gate(&["start"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("GITHUB_TOKEN"), "{}", refused.stderr);
    let mut server = Client::of(Command::new(site.path("gate")).arg("--allow-missing-secrets").env_remove("GITHUB_TOKEN"));
    let initialized = server.initialize();
    assert_eq!(initialized.pointer("/serverInfo/name"), Some(&json!("platform")));
    let tools = server.request("tools/list", &json!({}));
    let names = tools.pointer("/result/tools").and_then(Value::as_array).expect("tools").iter().map(|tool| tool["name"].clone());
    assert_eq!(names.collect::<Vec<_>>(), ["lisp_eval", "count-files", "repo-name", "time-in"].map(Value::from), "{tools}");
}

/// Starts the server over HTTP, with its log in a file.
fn listening(site: &Site, log: &str, options: &[&str]) -> (Background, String) {
    let port = free_port();
    let mut server = Command::new("sh");
    server.args(["-c", r#"log=$1; shift; exec "$@" 2>"$log""#, "sh"]).arg(site.path(log)).arg(site.path("gate"));
    server.args(["--http", "--http-port", &port.to_string(), "--http-disable-auth", "--http-metrics"]).args(options);
    server.env("GITHUB_TOKEN", TOKEN);
    (Background::start(&mut server).ready_on(port), format!("http://127.0.0.1:{port}"))
}

/// The official SDKs over both transports.
fn official_clients(site: &Site) {
    let (_server, url) =
        listening(site, "clients.log", &["--upstream-call-timeout-ms", "120000", "--program-timeout-ms", "120000"]);
    let mcp = format!("{url}/mcp");
    let gate = site.path("gate");
    let expected = "user=> [\"octocat/Hello-World\" ";
    let check = |what: &str, client: &mut Command| {
        client.env("GITHUB_TOKEN", TOKEN).env("PTC_RUNNER_MCP_UPSTREAM_CALL_TIMEOUT_MS", "120000");
        client.env("PTC_RUNNER_MCP_PROGRAM_TIMEOUT_MS", "120000");
        let seen: Value = serde_json::from_str(&run(client).success()).expect("one JSON object");
        let text = seen["text"].as_str().unwrap_or_default();
        assert!(text.starts_with(expected) && text.ends_with(" true]"), "{what}: {seen}");
        assert!(seen["tools"].as_array().is_some_and(|tools| tools.len() == 4), "{what}: {seen}");
        seen
    };
    for mode in ["auto", "legacy"] {
        check("Python, stdio", python_script("client.py").arg(mode).arg(&gate).arg(ALL));
        check("Python, HTTP", python_script("client.py").args([mode, &mcp, ALL]));
    }
    for server in [gate.to_str().expect("a path of plain text"), &mcp] {
        let seen = check("TypeScript", node_script("client.mjs").args([server, ALL]));
        assert_eq!(seen.pointer("/server/name"), Some(&json!("platform")), "{seen}");
    }
}

fn stored_programs(site: &Site) {
    let mut server = Command::new(site.path("gate"));
    server.args(["--upstream-call-timeout-ms", "120000", "--program-timeout-ms", "120000"]).env("GITHUB_TOKEN", TOKEN);
    let mut client = Client::of(&mut server);
    client.initialize();
    for (name, _, arguments, expected) in programs(&site.path("shared")) {
        let answer = client.request("tools/call", &json!({ "name": name, "arguments": arguments }));
        let text = answer.pointer("/result/content/0/text").and_then(Value::as_str).unwrap_or_default();
        assert!(text.contains(expected), "{name}: {answer}");
    }
    let checked = site.compile(&["check-program", "upstreams.json", "repo-name.clj", "count-files.clj", "time-in.clj"]);
    assert_eq!(checked.code, Some(0), "{}", checked.stderr);
    assert!(checked.stderr.contains("no faults in 3 programs"), "{}", checked.stderr);
}

/// Kills one upstream, stops another, and ends the mock. The log says so, and says when they are back.
fn failing_upstreams(site: &mut Site) {
    let mock = site.mock.take();
    let site = &*site;
    // Only the stopped upstream has to reach this timeout; calls of the others are repeated until they succeed.
    let (server, url) = listening(site, "fails.log", &["--upstream-call-timeout-ms", "3000", "--program-timeout-ms", "60000"]);
    // The client has no TLS provider of its own.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let http = reqwest::blocking::Client::new();
    let send = |session: &str, method: &str, params: &Value| {
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let request = http.post(format!("{url}/mcp")).header("accept", "application/json, text/event-stream");
        let request = if session.is_empty() { request } else { request.header("mcp-session-id", session) };
        request.header("content-type", "application/json").body(call.to_string()).send().expect("an answer")
    };
    let client = json!({ "name": "ptc-tests", "version": "0" });
    let initialized =
        send("", "initialize", &json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client }));
    let session = initialized.headers()["mcp-session-id"].to_str().expect("a plain text").to_owned();
    let eval = |program: &str| {
        let params = json!({ "name": "lisp_eval", "arguments": { "program": program } });
        send(&session, "tools/call", &params).text().expect("a text")
    };
    let call = |server: &str, tool: &str, args: &str| {
        eval(&format!("(:ok (tool/call {{:server \"{server}\" :tool \"{tool}\" :args {args}}}))"))
    };
    let files = || call("files", "list_directory", &format!("{{:path \"{}\"}}", site.path("shared").display()));
    let time = || call("time", "get_current_time", "{:timezone \"UTC\"}");
    let github = || call("github", "repos-get", r#"{:owner "acme" :repo "widgets"}"#);
    let succeeds = |answer: String| answer.contains("user=> true");
    let log = || std::fs::read_to_string(site.path("fails.log")).expect("the log");
    let logged = |event: &str, upstream: &str| {
        let found = || log().lines().any(|line| line.contains(&format!(r#""event":"{event}","upstream":"{upstream}""#)));
        wait_for(found, &format!("{event} of {upstream}"));
    };
    let signal = |signal: &str, child: &str| {
        let mut kill = Command::new("pkill");
        kill.args([&format!("-{signal}"), "--parent", &server.id().to_string(), "--full", child]);
        run(&mut kill).success();
    };

    wait_for(|| succeeds(time()), "the time");
    logged("upstream started", "time");
    signal("KILL", "mcp-server-time");
    logged("upstream ended", "time");
    assert!(log().contains("signal: 9 (SIGKILL)"), "{}", log());
    wait_for(|| succeeds(time()), "the time again");
    logged("upstream restarted", "time");

    wait_for(|| succeeds(files()), "the files");
    signal("STOP", "filesystem");
    assert!(!succeeds(files()), "a stopped upstream answers nothing");
    logged("upstream timed out", "files");
    let metrics = http.get(format!("{url}/metrics")).send().and_then(reqwest::blocking::Response::text).expect("metrics");
    assert!(metrics.contains(r#"ptc_upstream_up{server="files"} 0"#), "{metrics}");
    assert!(metrics.contains(r#"ptc_upstream_restarts_total{server="time"} 1"#), "{metrics}");
    assert!(metrics.contains(r#"deployment="platform""#), "{metrics}");
    signal("CONT", "filesystem");
    wait_for(|| succeeds(files()), "the files again");
    logged("upstream is back", "files");

    wait_for(|| succeeds(github()), "the mock");
    drop(mock);
    assert!(!succeeds(github()), "nothing listens");
    logged("upstream unavailable", "github");
    let ready = http.get(format!("{url}/ready")).send().expect("an answer");
    assert_eq!(ready.status(), 200);
    let ready = ready.text().expect("a text");
    assert!(ready.contains(r#""upstreams_down":{"github":"#), "{ready}");
    assert!(!log().contains(TOKEN), "{}", log());
}

/// Each kind of change gives another image, and formatting none. `diff` and `--check --locked` agree about the document.
fn changes(site: &Site, image: &str) {
    let document = std::fs::read_to_string(site.path("github.json")).expect("the document");
    let parsed: Value = serde_json::from_str(&document).expect("it is JSON");
    // Line breaks in strings are escaped, so every line break is white space.
    let spaced = serde_json::to_string_pretty(&parsed).expect("it is JSON").replace('\n', "\n\n\t");
    let write = |text: &str| std::fs::write(site.path("github.json"), text).expect("a document");
    let states = |drift: bool| {
        let diff = site.compile(&["diff", "upstreams.json", "github", "--fail-on", "note"]);
        let check = site.compile(&["--check", "upstreams.json", "--locked"]);
        assert_eq!((diff.code, check.code), (Some(i32::from(drift)), Some(i32::from(drift))), "{}{}", diff.stderr, check.stderr);
        diff.stderr + &check.stderr
    };
    write(&spaced);
    states(false);
    assert_eq!(site.image(), image, "white space does not count as a change");

    // The upgrade: an argument becomes required.
    let mut newer = parsed;
    let parameters =
        newer.pointer_mut("/paths/~1orgs~1{org}~1repos/get/parameters").and_then(Value::as_array_mut).expect("a list");
    parameters.push(json!({ "name": "region", "in": "query", "required": true, "schema": { "type": "string" } }));
    write(&newer.to_string());
    let found = states(true);
    assert!(found.contains("region") && found.contains("ptc-compile update upstreams.json github"), "{found}");
    assert_eq!(site.compile(&["update", "upstreams.json", "github"]).code, Some(0));
    states(false);
    let upgraded = site.image();

    let mut images = BTreeSet::from([image.to_owned(), upgraded]);
    let mut is_new = |what: &str| assert!(images.insert(site.image()), "{what} gives an earlier image");
    std::fs::write(site.path("time-in.clj"), "(+ 1 data/zone)").expect("a program");
    is_new("another stored program");
    for (what, pointer, value) in [
        ("another base_url", "/upstreams/github/base_url", json!("https://api.github.com")),
        ("other arguments", "/upstreams/time/args/1", json!("Europe/Berlin")),
        ("another set of operations", "/upstreams/github/include_operations", json!(["repos/get"])),
    ] {
        let mut config = site.config.clone();
        *config.pointer_mut(pointer).expect("the member") = value;
        site.configure(&config);
        is_new(what);
    }
}
