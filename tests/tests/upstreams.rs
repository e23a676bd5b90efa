//! Tests the runtime's clients with third-party servers: every transport, and many implementations.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use ptc_catalog::{
    Catalog, Deployment, EnvPart, InheritEnv, McpHttp, McpStdio, OpenApi, Operation, Params, Tool, Tools, Transport, Upstream,
};
use ptc_lisp::{Limits, Program, Run, STACK_BYTES, STACK_SLACK_BYTES, print};
use ptc_runtime::secrets::Secrets;
use ptc_runtime::upstream::{UpstreamSettings, Upstreams, WaitLimits, list_tools};
use ptc_tests::peers::{npm_file, npm_program, python_module, python_script};
use ptc_tests::process::{Background, free_port, run};

/// Upstreams, and the thread that drives them.
struct World {
    upstreams: Arc<Upstreams>,
    /// Dropping this sender ends the thread.
    _stop: tokio::sync::oneshot::Sender<()>,
}

impl World {
    /// Lists the tools of every MCP upstream and freezes the catalog.
    fn freeze(entries: Vec<(&'static str, Transport, Vec<Tool>)>) -> World {
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let mut settings = UpstreamSettings::new("/", runtime.handle().clone());
        settings.call_timeout = Duration::from_mins(1);
        let mut upstreams = Vec::new();
        for (name, transport, tools) in entries {
            let bare: &'static Upstream = Box::leak(Box::new(Upstream { name, description: "", transport, tools: Tools::NONE }));
            let secrets = resolve(deployment(Vec::new()));
            let listed = match bare.transport {
                Transport::OpenApi(_) => tools,
                _ => runtime
                    .block_on(list_tools(bare, &secrets, &settings))
                    .unwrap_or_else(|fault| panic!("{name}: {fault}"))
                    .tools
                    .iter()
                    .map(|definition| tool(definition.get()))
                    .collect(),
            };
            upstreams.push((bare, listed));
        }
        let upstreams = upstreams.into_iter().map(|(bare, mut tools)| {
            tools.sort_by_key(|tool| tool.name);
            Upstream { name: bare.name, description: "", transport: bare.transport.clone(), tools: Tools::table(tools.leak()) }
        });
        let deployment = deployment(upstreams.collect());
        let upstreams = Upstreams::new(deployment, resolve(deployment), settings);
        std::thread::spawn(move || {
            let _ = runtime.block_on(stopped);
        });
        World { upstreams, _stop: stop }
    }

    /// Returns the value of a program as a client sees it.
    fn eval(&self, source: &str) -> String {
        let (host, source) = (self.upstreams.program(WaitLimits::default()), source.to_owned());
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES + STACK_SLACK_BYTES);
        let work = thread.spawn(move || {
            let program = Program::compile(&source).expect("a program");
            let limits = Limits::default().wall_clock(Duration::from_mins(2));
            match Run::new(&program).host(host).limits(limits).execute().result {
                Ok(value) => print::preview(&value, 4000).text,
                Err(error) => error.render(&source),
            }
        });
        work.expect("a thread").join().expect("no panic")
    }
}

fn resolve(deployment: &'static Deployment) -> Secrets {
    Secrets::resolve(deployment, "/".as_ref()).unwrap_or_else(|missing| panic!("{missing:?}"))
}

fn deployment(mut upstreams: Vec<Upstream>) -> &'static Deployment {
    upstreams.sort_by_key(|upstream| upstream.name);
    let catalog = Box::leak(Box::new(Catalog { digest: "", search_index: &[], upstreams: upstreams.leak() }));
    Box::leak(Box::new(Deployment { name: "peers", catalog, ..Deployment::EMPTY }))
}

fn tool(definition: &str) -> Tool {
    let json: serde_json::Value = serde_json::from_str(definition).expect("JSON");
    let text =
        |key: &str| -> &'static str { json.get(key).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned().leak() };
    Tool { description: text("description"), definition: definition.to_owned().leak(), ..plain_tool(text("name")) }
}

fn plain_tool(name: &'static str) -> Tool {
    Tool { name, ..Tool::EMPTY }
}

/// Returns the transport of an upstream that `command` starts.
fn stdio(command: &Command, env: &[(&str, &str)]) -> Transport {
    let leaked = |text: &std::ffi::OsStr| -> &'static str { text.to_string_lossy().into_owned().leak() };
    let args: Vec<&'static str> = command.get_args().map(leaked).collect();
    let env: Vec<(&'static str, &'static [EnvPart])> = env
        .iter()
        .map(|(name, value)| {
            let parts: &'static [EnvPart] = vec![EnvPart::Text((*value).to_owned().leak())].leak();
            (&*(*name).to_owned().leak(), parts)
        })
        .collect();
    Transport::McpStdio(McpStdio {
        args: args.leak(),
        env: env.leak(),
        inherit_env: InheritEnv::Base,
        handshake_timeout_ms: 60_000,
        ..McpStdio::new(leaked(command.get_program()))
    })
}

fn http(port: u16) -> Transport {
    Transport::McpHttp(McpHttp { handshake_timeout_ms: 60_000, ..McpHttp::new(format!("http://127.0.0.1:{port}/mcp").leak()) })
}

fn call(server: &str, tool: &str, args: &str) -> String {
    format!("(tool/call {{:server \"{server}\" :tool \"{tool}\" :args {args}}})")
}

/// Checks rows of server, tool, arguments, and a text that the answer must contain.
fn assert_answers(world: &World, rows: &[(&str, &str, String, &str)]) {
    for (server, tool, args, holds) in rows {
        let answer = world.eval(&call(server, tool, args));
        assert!(answer.contains(holds), "{server}/{tool} {args}: {answer}");
    }
    let servers = world.eval("(mapv (fn [s] (< 0 (count (dir (:name s) {:limit 200})))) (tool/servers))");
    assert!(!servers.contains("false"), "{servers}");
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn servers_of_both_languages_are_called_over_stdio() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("plain text");
    std::fs::write(folder.path().join("größe 1.txt"), "twelve bytes").expect("a file");
    repository(folder.path());
    let graph = folder.path().join("graph.json");
    let world = World::freeze(vec![
        ("everything", stdio(&npm_program("mcp-server-everything"), &[]), vec![]),
        ("files", stdio(npm_program("mcp-server-filesystem").arg(path), &[]), vec![]),
        ("git", stdio(python_module("mcp_server_git").args(["--repository", path]), &[]), vec![]),
        (
            "memory",
            stdio(&npm_program("mcp-server-memory"), &[("MEMORY_FILE_PATH", graph.to_str().expect("plain text"))]),
            vec![],
        ),
        ("thinking", stdio(&npm_program("mcp-server-sequential-thinking"), &[]), vec![]),
        ("time", stdio(python_module("mcp_server_time").args(["--local-timezone", "Europe/Berlin"]), &[]), vec![]),
    ]);
    let entities = r#"{:entities [{:name "Ann" :entityType "person" :observations ["likes π"]}]}"#;
    let thought = "{:thought \"x\" :nextThoughtNeeded false :thoughtNumber 1 :totalThoughts 1}";
    let time = r#"{:source_timezone "UTC" :time "12:00" :target_timezone "Asia/Tokyo"}"#;
    assert_answers(
        &world,
        &[
            ("everything", "echo", r#"{:message "hi \"there\" π"}"#.into(), r#"hi \"there\" π"#),
            ("everything", "get-sum", "{:a 40 :b 2}".into(), "42"),
            ("files", "list_directory", format!("{{:path \"{path}\"}}"), "[FILE] größe 1.txt"),
            ("files", "read_text_file", format!("{{:path \"{path}/größe 1.txt\"}}"), "twelve bytes"),
            ("files", "read_text_file", "{:path \"/etc/passwd\"}".into(), ":reason :tool_error"),
            ("git", "git_log", format!("{{:repo_path \"{path}\"}}"), "first words"),
            ("memory", "create_entities", entities.into(), "likes π"),
            ("memory", "read_graph", "{}".into(), "likes π"),
            ("thinking", "sequentialthinking", thought.into(), "thoughtNumber"),
            ("time", "convert_time", time.into(), "21:00"),
        ],
    );
}

fn repository(folder: &Path) {
    let git = |args: &[&str]| {
        let who = ["-c", "user.name=Ann", "-c", "user.email=ann@example.com"];
        run(Command::new("git").arg("-C").arg(folder).args(who).args(args)).success()
    };
    git(&["init", "--quiet"]);
    git(&["add", "--all"]);
    git(&["commit", "--quiet", "--message", "first words"]);
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn servers_are_called_over_streamable_http() {
    let mut entries = Vec::new();
    let mut rows = Vec::new();
    let mut running = Vec::new();
    for (name, answers, sessions) in [
        ("events", "events", "stateful"),
        ("events-stateless", "events", "stateless"),
        ("json", "json", "stateful"),
        ("json-stateless", "json", "stateless"),
    ] {
        let port = free_port();
        running.push((Background::start(python_script("server.py").args([&port.to_string(), answers, sessions])), port));
        entries.push((name, http(port), vec![]));
        rows.push((name, "add", "{:a 40 :b 2}".to_owned(), "42"));
        rows.push((name, "fail", "{:why \"because\"}".to_owned(), "Error executing tool fail"));
    }
    let port = free_port();
    let everything = npm_program("mcp-server-everything");
    running.push((
        Background::start(npm_program("mcp-server-everything").arg("streamableHttp").env("PORT", port.to_string())),
        port,
    ));
    entries.push(("everything", http(port), vec![]));
    rows.push(("everything", "get-sum", "{:a 40 :b 2}".to_owned(), "42"));
    let port = free_port();
    let wrapped = format!("node {}", everything.get_args().next().expect("a script").to_string_lossy());
    let gateway = ["--stdio", &wrapped, "--outputTransport", "streamableHttp", "--port", &port.to_string()];
    running.push((Background::start(npm_program("supergateway").args(gateway)), port));
    entries.push(("gateway", http(port), vec![]));
    rows.push(("gateway", "echo", "{:message \"through\"}".to_owned(), "through"));
    let _running: Vec<Background> = running.into_iter().map(|(server, port)| server.ready_on(port)).collect();
    assert_answers(&World::freeze(entries), &rows);
}

static ROLES: Operation =
    Operation { params: Params("query form explode - limit\nquery form - - fields"), ..Operation::new("getRoles", "/roles") };

static PETS: Operation =
    Operation { params: Params("query form explode - tags\nquery form explode - limit"), ..Operation::new("findPets", "/pets") };

static PET: Operation = Operation { params: Params("path simple - - id"), ..Operation::new("find pet by id", "/pets/{id}") };

static FORM: Operation = Operation {
    params: Params("query form - - primitive\nquery form - - array\nquery form - - object"),
    ..Operation::new("form", "/anything/query/form")
};

static DEEP: Operation =
    Operation { params: Params("query deepObject explode - object"), ..Operation::new("deep", "/anything/query/deepObject") };

/// The mock refuses requests that do not match its document with status 422, so an answer proves that parameters were serialized
/// correctly.
#[test]
#[ignore = "needs what .ci/peers installs"]
fn services_are_called_as_their_documents_describe() {
    let documents: [(&'static str, &str, &[&'static Operation]); 3] = [
        ("directus", "@directus/specs/dist/openapi.json", &[&ROLES]),
        ("pets", "@readme/oas-examples/3.0/json/petstore-expanded.json", &[&PETS, &PET]),
        ("styles", "@readme/oas-examples/3.0/json/parameters-style.json", &[&FORM, &DEEP]),
    ];
    let mut entries = Vec::new();
    let mut running = Vec::new();
    for (name, document, operations) in documents {
        let port = free_port();
        let mut prism = npm_program("prism");
        let prism = prism.args(["mock", "--host", "127.0.0.1", "--port", &port.to_string()]).arg(npm_file(document));
        running.push((Background::start(prism), port));
        let tools = operations.iter().map(|operation| Tool { operation: Some(operation), ..plain_tool(operation.id) });
        entries.push((name, Transport::OpenApi(OpenApi::new(format!("http://127.0.0.1:{port}").leak())), tools.collect()));
    }
    let _running: Vec<Background> = running.into_iter().map(|(server, port)| server.ready_on(port)).collect();
    let words = r#"{:primitive "a/b" :array ["x" "y z"] :object {:k "v"}}"#;
    assert_answers(
        &World::freeze(entries),
        &[
            ("directus", "getRoles", "{:limit 1 :fields [\"id\" \"name\"]}".into(), ":reason :auth_failed"),
            ("pets", "findPets", "{:tags [\"a&b\" \"ü\"] :limit 5}".into(), ":ok true"),
            ("pets", "find pet by id", "{:id 7}".into(), ":ok true"),
            ("pets", "find pet by id", "{:id \"seven\"}".into(), "HTTP 422"),
            ("styles", "form", words.into(), ":ok true"),
            ("styles", "deep", "{:object {:a 1 :b \"c d\"}}".into(), ":ok true"),
        ],
    );
}
