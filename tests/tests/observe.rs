//! Tests that the shape of a tool's results that is inferred from 20 answers of a third-party server admits the next 20 answers.

mod browsers;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ptc_compiler::json::Json;
use ptc_compiler::serve::observe::{Shape, content_of};
use ptc_compiler::serve::{SnapshotMode, Source};
use ptc_runtime::embed::Request;
use ptc_runtime::schedule::ClientKey;
use ptc_runtime::settings::Settings;
use ptc_runtime::upstream::UpstreamError;
use ptc_runtime::upstream::intercept::{CallAnswer, InterceptedCall, Interception, Interceptor, ProgramInterceptor};
use ptc_tests::deployment::workspace;
use ptc_tests::peers::{npm_program, python_program};
use ptc_tests::process::run;
use serde_json::{Map, Value, json};

/// The number of rounds from which shapes are inferred, and of those after them. Each round calls each tool.
const ROUNDS: usize = 20;

/// The calls of a round that need no browser, in their order: server, tool, and arguments that depend on the number `i` of the round. `@` is the folder.
const CALLS: [(&str, &str, &str); 51] = [
    ("everything", "echo", r#"{:message (str "message " i)}"#),
    (
        "everything",
        "get-annotated-message",
        r#"{:messageType (nth ["error" "success" "debug"] (mod i 3)) :includeImage (even? i)}"#,
    ),
    ("everything", "get-env", "{}"),
    ("everything", "get-resource-links", "{:count (inc (mod i 10))}"),
    ("everything", "get-resource-reference", r#"{:resourceId (inc i) :resourceType (if (even? i) "Text" "Blob")}"#),
    ("everything", "get-structured-content", r#"{:location (nth ["New York" "Chicago" "Los Angeles"] (mod i 3))}"#),
    ("everything", "get-sum", "{:a i :b 1}"),
    ("everything", "get-tiny-image", "{}"),
    ("everything", "toggle-simulated-logging", "{}"),
    ("everything", "toggle-subscriber-updates", "{}"),
    ("everything", "trigger-long-running-operation", "{:duration 0.01 :steps (inc (mod i 3))}"),
    ("files", "write_file", r#"{:path (str "@/shared/g" i ".txt") :content (str "one " i "\ntwo\n")}"#),
    ("files", "create_directory", r#"{:path (str "@/shared/d" i)}"#),
    ("files", "directory_tree", r#"{:path "@/shared"}"#),
    ("files", "edit_file", r#"{:path (str "@/shared/g" i ".txt") :edits [{:oldText "two" :newText (str "three " i)}]}"#),
    ("files", "get_file_info", r#"{:path (str "@/shared/g" i ".txt")}"#),
    ("files", "list_allowed_directories", "{}"),
    ("files", "list_directory", r#"{:path (if (even? i) "@/shared" (str "@/shared/d" i))}"#),
    ("files", "list_directory_with_sizes", r#"{:path "@/shared" :sortBy (if (even? i) "name" "size")}"#),
    ("files", "read_file", r#"{:path (str "@/shared/g" i ".txt") :head (inc (mod i 2))}"#),
    ("files", "read_text_file", r#"{:path (str "@/shared/g" i ".txt")}"#),
    ("files", "read_media_file", r#"{:path (str "@/shared/g" i ".txt")}"#),
    ("files", "read_multiple_files", r#"{:paths [(str "@/shared/g" i ".txt") (str "@/shared/x" i ".txt")]}"#),
    ("files", "search_files", r#"{:path "@/shared" :pattern (str "**/g" i ".*")}"#),
    ("files", "move_file", r#"{:source (str "@/shared/g" i ".txt") :destination (str "@/shared/h" i ".txt")}"#),
    ("git", "git_status", r#"{:repo_path "@/repo"}"#),
    ("files", "write_file", r#"{:path (str "@/repo/n" (mod i 7) ".txt") :content (str "text " i "\n")}"#),
    ("git", "git_diff_unstaged", r#"{:repo_path "@/repo"}"#),
    ("git", "git_add", r#"{:repo_path "@/repo" :files [(str "n" (mod i 7) ".txt")]}"#),
    ("git", "git_diff_staged", r#"{:repo_path "@/repo"}"#),
    ("git", "git_reset", r#"{:repo_path "@/repo"}"#),
    ("git", "git_add", r#"{:repo_path "@/repo" :files ["."]}"#),
    ("git", "git_commit", r#"{:repo_path "@/repo" :message (str "commit " i)}"#),
    ("git", "git_log", r#"{:repo_path "@/repo" :max_count (inc (mod i 5))}"#),
    ("git", "git_show", r#"{:repo_path "@/repo" :revision (if (even? i) "HEAD" "HEAD~1")}"#),
    ("git", "git_diff", r#"{:repo_path "@/repo" :target "HEAD~1"}"#),
    ("git", "git_create_branch", r#"{:repo_path "@/repo" :branch_name (str "b" i)}"#),
    ("git", "git_branch", r#"{:repo_path "@/repo" :branch_type (nth ["local" "all" "remote"] (mod i 3))}"#),
    ("git", "git_checkout", r#"{:repo_path "@/repo" :branch_name (str "b" i)}"#),
    ("memory", "create_entities", r#"{:entities [{:name (str "n" i) :entityType "pet" :observations [(str "is " i)]}]}"#),
    ("memory", "create_relations", r#"{:relations [{:from (str "n" i) :to "n0" :relationType "knows"}]}"#),
    ("memory", "add_observations", r#"{:observations [{:entityName (str "n" i) :contents [(str "barks " i)]}]}"#),
    ("memory", "read_graph", "{}"),
    ("memory", "search_nodes", r#"{:query (if (= 0 (mod i 5)) "nothing" (str "n" i))}"#),
    ("memory", "open_nodes", r#"{:names [(str "n" i) "n1"]}"#),
    ("memory", "delete_observations", r#"{:deletions [{:entityName (str "n" i) :observations [(str "barks " i)]}]}"#),
    ("memory", "delete_relations", r#"{:relations [{:from (str "n" i) :to "n0" :relationType "knows"}]}"#),
    ("memory", "delete_entities", r#"{:entityNames [(str "n" (- i 3))]}"#),
    (
        "thinking",
        "sequentialthinking",
        r#"{:thought (str "thought " i) :nextThoughtNeeded (even? i) :thoughtNumber (inc i) :totalThoughts 40}"#,
    ),
    (
        "time",
        "convert_time",
        r#"{:source_timezone "Europe/London" :time (str "1" (mod i 10) ":30") :target_timezone (nth ["Asia/Tokyo" "Asia/Kolkata" "UTC"] (mod i 3))}"#,
    ),
    ("time", "get_current_time", r#"{:timezone (nth ["Asia/Tokyo" "America/New_York" "UTC"] (mod i 3))}"#),
];

/// The servers that are called, with their packages.
const OBSERVED: [(&str, &str); 8] = [
    ("devtools", "chrome-devtools-mcp"),
    ("everything", "@modelcontextprotocol/server-everything"),
    ("files", "@modelcontextprotocol/server-filesystem"),
    ("git", "mcp-server-git"),
    ("memory", "@modelcontextprotocol/server-memory"),
    ("playwright", "@playwright/mcp"),
    ("thinking", "@modelcontextprotocol/server-sequential-thinking"),
    ("time", "mcp-server-time"),
];

/// The packages of servers that are not called, with the reasons: 40 answers of each tool would need what a test does not have.
const LEFT_OUT: [(&str, &str); 7] = [
    ("@modelcontextprotocol/server-github", "needs an account at GitHub"),
    ("@modelcontextprotocol/server-google-maps", "needs an account at Google"),
    ("@modelcontextprotocol/server-slack", "needs an account at Slack"),
    ("@notionhq/notion-mcp-server", "needs an account at Notion"),
    ("@zereight/mcp-gitlab", "needs an account at GitLab"),
    ("firecrawl-mcp", "needs an account at Firecrawl"),
    ("tavily-mcp", "needs an account at Tavily"),
];

/// The tools that are not called, beside [`browsers::EXCEPTIONS`], with the reasons.
const EXCEPTIONS: [(&str, &str); 2] = [
    ("everything/gzip-file-as-resource", "it answers with a compressed file, which has no shape"),
    ("everything/simulate-research-query", "it is a task that takes four seconds, so that all rounds would take minutes"),
];

/// The contents of the answers to calls of each tool.
#[derive(Debug, Clone, Default)]
struct Answers(Arc<Mutex<BTreeMap<String, Vec<Json>>>>);

impl Interceptor for Answers {
    fn is_offline(&self) -> bool {
        false
    }

    fn begin(&self, _: &ClientKey) -> Arc<dyn ProgramInterceptor> {
        Arc::new(self.clone())
    }
}

impl ProgramInterceptor for Answers {
    fn answer(&self, _: &InterceptedCall) -> Interception {
        Interception::PassOn
    }

    fn observe(&self, call: &InterceptedCall, outcome: Result<&CallAnswer, &UpstreamError>, _: Duration) {
        let tool = format!("{}/{}", call.upstream.name, call.tool.name);
        let content = outcome.ok().and_then(content_of);
        self.0.lock().expect("no test failed meanwhile").entry(tool).or_default().extend(content);
    }
}

/// Returns the entry of a server, which uses files in a folder.
fn entry(command: &Command, more: &[String], folder: &Path) -> Value {
    let args = command.get_args().map(|arg| arg.to_string_lossy().into_owned()).chain(more.iter().cloned());
    json!({
        "transport": "mcp_stdio", "command": command.get_program().to_string_lossy(), "args": args.collect::<Vec<_>>(),
        "env": { "MEMORY_FILE_PATH": folder.join("memory.jsonl") }, "cd": folder,
    })
}

/// Returns the config of the servers.
fn config(folder: &Path) -> Value {
    let path = |name: &str| folder.join(name).display().to_string();
    let entry = |command: &Command, more: &[String]| entry(command, more, folder);
    let others = [
        ("everything", entry(&npm_program("mcp-server-everything"), &["stdio".to_owned()])),
        ("files", entry(&npm_program("mcp-server-filesystem"), &[path("shared"), path("repo")])),
        ("git", entry(&python_program("mcp-server-git"), &[])),
        ("memory", entry(&npm_program("mcp-server-memory"), &[])),
        ("thinking", entry(&npm_program("mcp-server-sequential-thinking"), &[])),
        ("time", entry(&python_program("mcp-server-time"), &["--local-timezone".to_owned(), "UTC".to_owned()])),
    ];
    let upstreams = others.into_iter().chain(browsers::config(folder)).map(|(name, entry)| (name.to_owned(), entry));
    json!({ "upstreams": upstreams.collect::<Map<String, Value>>() })
}

/// Returns a program that makes the calls of all rounds from `data/from`. The calls of each browser and those of the other servers are
/// made in parallel.
fn program(folder: &Path) -> String {
    let groups = [Some("playwright"), Some("devtools"), None].map(|browser| {
        let calls = CALLS.iter().chain(&browsers::CALLS);
        let is_of_group = |server: &str| match browser {
            Some(browser) => server == browser,
            None => CALLS.iter().any(|(other, ..)| *other == server),
        };
        let calls = calls
            .filter(|(server, ..)| is_of_group(server))
            .map(|(server, tool, args)| format!(r#"(:ok (tool/call {{:server "{server}" :tool "{tool}" :args {args}}}))"#));
        let calls = calls.collect::<Vec<String>>().join("\n").replace('@', &folder.display().to_string());
        format!("#(count (mapv (fn [i] [{calls}]) (range data/from (+ data/from {ROUNDS}))))")
    });
    format!("(let [page {:?}] (doall (pcalls {})))", browsers::PAGE, groups.join("\n"))
}

fn repository(folder: &Path) {
    let git = |args: &[&str]| run(Command::new("git").args(args).current_dir(folder)).success();
    git(&["init", "--quiet", "--initial-branch=main"]);
    git(&["config", "user.name", "Ada"]);
    git(&["config", "user.email", "ada@example.com"]);
    for commit in ["first", "second", "third"] {
        std::fs::write(folder.join("file.txt"), commit).expect("a file");
        git(&["add", "."]);
        git(&["commit", "--quiet", "--message", commit]);
    }
}

/// Returns the packages that are MCP servers, by their names.
fn installed_servers() -> BTreeSet<String> {
    let folder = workspace().join("tests/peers");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("a file");
    let npm: Value = serde_json::from_str(&read("package.json")).expect("JSON");
    let npm = npm.get("dependencies").and_then(Value::as_object).expect("dependencies").keys();
    let python = read("requirements.txt");
    let python = python.lines().filter_map(|line| line.split("==").next());
    let is_server = |name: &&str| {
        let words: Vec<&str> = name.split(['/', '-']).collect();
        words.contains(&"mcp") || name.starts_with("@modelcontextprotocol/server-")
    };
    // A library, and its types.
    let is_library = |name: &&str| ["mcp", "mcp-types"].contains(name);
    npm.map(String::as_str).chain(python).filter(is_server).filter(|name| !is_library(name)).map(str::to_owned).collect()
}

#[test]
fn each_installed_server_is_observed_or_left_out_with_a_reason() {
    let observed = OBSERVED.iter().map(|(_, package)| package);
    let left_out = LEFT_OUT.iter().filter(|(_, reason)| !reason.is_empty()).map(|(package, _)| package);
    let listed: Vec<String> = observed.chain(left_out).map(|package| (*package).to_owned()).collect();
    assert_eq!(listed.iter().cloned().collect::<BTreeSet<_>>(), installed_servers());
    assert_eq!(listed.len(), OBSERVED.len() + LEFT_OUT.len(), "a server is in one list");
    let called: BTreeSet<&str> = CALLS.iter().chain(&browsers::CALLS).map(|(server, ..)| *server).collect();
    assert_eq!(called, OBSERVED.iter().map(|(server, _)| *server).collect());
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn shapes_of_third_party_tools_admit_later_answers() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["shared", "repo"] {
        std::fs::create_dir(folder.path().join(name)).expect("a folder");
    }
    repository(&folder.path().join("repo"));
    let file = folder.path().join("upstreams.json");
    std::fs::write(&file, config(folder.path()).to_string()).expect("a config");
    let program = program(folder.path());

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let answers = Answers::default();
    let interceptor = answers.clone();
    let (first, later, tools) = runtime.block_on(async {
        let source = Source::file(&file).snapshot(SnapshotMode::Frozen);
        let served = source.open().await.unwrap_or_else(|error| panic!("{error}"));
        let upstreams = served.deployment().catalog.upstreams.iter();
        let tools = upstreams
            .flat_map(|upstream| upstream.tools.iter().map(|tool| format!("{}/{}", upstream.name, tool.name)))
            .collect::<Vec<String>>();
        let limits = Settings::defaults(true).limits().wall_clock(Duration::from_mins(5));
        let engine = served.engine().limits(limits).upstreams(move |settings| {
            settings.interceptor = Some(Arc::new(interceptor));
            settings.max_calls_per_program = u32::MAX;
        });
        let engine = engine.build().unwrap_or_else(|error| panic!("{error}"));
        let mut rounds = Vec::new();
        for from in [0, ROUNDS] {
            let request = Request::new(&*program).context(&json!({ "from": from })).expect("a context");
            let answer = engine.run_async(request).await;
            answer.value().unwrap_or_else(|failure| panic!("{}", failure.message));
            rounds.push(std::mem::take(&mut *answers.0.lock().expect("no test failed meanwhile")));
        }
        engine.shut_down().await;
        let later = rounds.pop().expect("two rounds");
        (rounds.pop().expect("two rounds"), later, tools)
    });
    let mut wrong = Vec::new();
    let mut with_data = BTreeSet::new();
    let is_called = |tool: &&String| !EXCEPTIONS.iter().chain(&browsers::EXCEPTIONS).any(|(exception, _)| exception == tool);
    let called: Vec<&String> = tools.iter().filter(is_called).collect();
    for tool in &called {
        let tool = tool.as_str();
        let (first, later) = (first.get(tool), later.get(tool));
        let (Some(first), Some(later)) = (first, later) else { panic!("{tool} is not called") };
        assert!(first.len() >= ROUNDS && later.len() >= ROUNDS, "{tool}: {} and {} answers", first.len(), later.len());
        let mut shape = Shape::default();
        for answer in first {
            shape.merge(Shape::of(answer));
        }
        let schema: Value = serde_json::from_str(&shape.to_schema().canonical()).expect("JSON");
        let validator = jsonschema::options().should_validate_formats(true).build(&schema).expect("a schema");
        for answer in later {
            let value: Value = serde_json::from_str(&answer.canonical()).expect("JSON");
            wrong.extend(validator.iter_errors(&value).map(|error| format!("{tool} {}: {error}", error.instance_path())));
        }
        println!("{tool}: {schema}");
        if schema.to_string().contains("contentMediaType") {
            with_data.insert(tool);
        }
    }
    assert!(called.len() >= 101, "{} tools", called.len());
    // No prose, source text or listing is taken for data.
    assert_eq!(with_data, BTreeSet::from(["devtools/evaluate_script", "files/directory_tree"]));
    assert!(wrong.is_empty(), "{} later answers have another shape:\n{}", wrong.len(), wrong.join("\n"));
}
