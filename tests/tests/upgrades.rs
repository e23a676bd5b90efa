//! Tests the reports on upgrades of published servers, from one real version to the next, against the files in
//! `tests/peers/upgrades/expected`. The severities in these files have been reviewed.
//!
//! `UPDATE_EXPECT=1` writes the files; review the difference before committing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ptc_tests::deployment::{ptc_compile, workspace};
use ptc_tests::peers::upgrades;
use ptc_tests::process::run;
use serde_json::{Value, json};

/// Maximum number of lines of a report.
const MAX_LINES: usize = 40;

/// A server: its name, its package or program, its arguments, and a variable without which it does not start.
pub(crate) type Server = (&'static str, Package, &'static [&'static str], Option<&'static str>);

pub(crate) enum Package {
    Npm(&'static str),
    Python(&'static str),
}

use Package::{Npm, Python};

pub(crate) const SERVERS: [Server; 15] = [
    ("brave", Npm("@brave/brave-search-mcp-server"), &["--transport", "stdio"], Some("BRAVE_API_KEY")),
    ("context7", Npm("@upstash/context7-mcp"), &[], None),
    ("everything", Npm("@modelcontextprotocol/server-everything"), &["stdio"], None),
    ("exa", Npm("exa-mcp-server"), &[], Some("EXA_API_KEY")),
    ("fetch", Python("mcp-server-fetch"), &[], None),
    ("filesystem", Npm("@modelcontextprotocol/server-filesystem"), &["."], None),
    ("firecrawl", Npm("firecrawl-mcp"), &[], Some("FIRECRAWL_API_KEY")),
    ("git", Python("mcp-server-git"), &[], None),
    ("memory", Npm("@modelcontextprotocol/server-memory"), &[], None),
    ("notion", Npm("@notionhq/notion-mcp-server"), &[], Some("NOTION_TOKEN")),
    ("playwright", Npm("@playwright/mcp"), &[], None),
    ("sequential-thinking", Npm("@modelcontextprotocol/server-sequential-thinking"), &[], None),
    ("sqlite", Python("mcp-server-sqlite"), &["--db-path", "notes.db"], None),
    ("tavily", Npm("tavily-mcp"), &[], Some("TAVILY_API_KEY")),
    ("time", Python("mcp-server-time"), &["--local-timezone", "UTC"], None),
];

/// Returns the command of a server as installed on one side of the upgrade, without its arguments.
pub(crate) fn command((_, package, ..): &Server, side: &str) -> Command {
    let installed = upgrades(side);
    match package {
        Npm(package) => {
            let mut command = Command::new("node");
            command.arg(program(&installed.join("node_modules").join(package)));
            command
        }
        Python(program) => Command::new(installed.join("venv/bin").join(program)),
    }
}

/// Writes the config of a server, and the script that starts it as installed on one side of the upgrade. The config is the same on both
/// sides, so that a report has no paths of this machine.
fn write(folder: &Path, server: &Server, side: &str) {
    let (name, _, args, variable) = server;
    let command = command(server, side);
    let words = [command.get_program()].into_iter().chain(command.get_args());
    let line: Vec<String> = words.map(|word| format!("'{}'", word.display())).collect();
    fs::write(folder.join("server.sh"), format!("exec {} \"$@\"\n", line.join(" "))).expect("a script");
    let args: Vec<&str> = ["server.sh"].into_iter().chain(args.iter().copied()).collect();
    let env: serde_json::Map<String, Value> = variable.iter().map(|name| ((*name).to_owned(), json!("${TOKEN}"))).collect();
    let entry = json!({ "transport": "mcp_stdio", "command": "/bin/sh", "args": args, "env": env, "cd": "." });
    fs::write(folder.join("upstreams.json"), json!({ "upstreams": { *name: entry } }).to_string()).expect("a config");
}

/// Returns the file that an npm package runs.
fn program(package: &Path) -> PathBuf {
    let text = fs::read_to_string(package.join("package.json")).unwrap_or_else(|error| panic!("{}: {error}", package.display()));
    let description: Value = serde_json::from_str(&text).expect("package.json is JSON");
    let bin = description.get("bin").expect("the package has a program");
    let file = bin.as_str().or_else(|| bin.as_object()?.values().next()?.as_str()).expect("a program has a file");
    package.join(file.trim_start_matches("./"))
}

/// Returns the report on the upgrade of a server.
fn report(server: &Server, format: &[&str]) -> (String, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let compile = |args: &[&str]| {
        run(Command::new(ptc_compile()).args(args).current_dir(folder.path()).env("TOKEN", "not-a-key-of-any-service"))
    };
    write(folder.path(), server, "before");
    compile(&["update", "upstreams.json"]).success();
    write(folder.path(), server, "after");
    let diff = compile(&[&["diff", "upstreams.json", "--color", "never"], format].concat());
    (diff.stdout, diff.stderr)
}

/// Whether a line depends on the duration of the run.
fn is_progress(line: &str) -> bool {
    line.starts_with("1/1 ")
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn reports_on_upgrades_of_published_servers_match_the_reviewed_ones() {
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let expected = workspace().join("tests/peers/upgrades/expected");
    let mut wrong = Vec::new();
    for server in &SERVERS {
        let (_, text) = report(server, &["--format", "short"]);
        let text: String = text.lines().filter(|line| !is_progress(line)).flat_map(|line| [line, "\n"]).collect();
        let count = text.lines().count();
        assert!(count <= MAX_LINES, "{}: {count} lines:\n{text}", server.0);
        let file = expected.join(server.0).with_extension("txt");
        if update {
            fs::create_dir_all(&expected).expect("a folder");
            fs::write(&file, &text).expect("the report can be written");
        } else if fs::read_to_string(&file).ok().as_deref() != Some(text.as_str()) {
            wrong.push(format!("== {}\n{text}", server.0));
        }
    }
    assert!(wrong.is_empty(), "not as expected (UPDATE_EXPECT=1 accepts):\n{}", wrong.join("\n"));
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn findings_of_an_upgrade_name_upstream_tool_and_change() {
    let filesystem = SERVERS.iter().find(|server| server.0 == "filesystem").expect("a row");
    let (findings, _) = report(filesystem, &["--format", "json"]);
    assert!(findings.lines().count() > 10, "{findings}");
    for line in findings.lines() {
        let finding: Value = serde_json::from_str(line).expect("one JSON object");
        assert_eq!(finding["upstream"], "filesystem", "{line}");
        let (tool, change) = (finding["tool"].as_str(), finding["change"].as_str());
        let message = finding["message"].as_str().expect("a message");
        assert!(tool.zip(change).is_some_and(|(tool, change)| message.contains(tool) && message.ends_with(change)), "{line}");
    }
}
