//! Tests the guides: each page is run from top to bottom in one folder, as its reader would run it.
//!
//! - A block of `sh` is run by bash. A following block of `text` is a part of its output, line by line; `…` stands for any text.
//! - A block of `clojure` is evaluated by one REPL for the page. A line `;=> value` has the value of the program above it, and
//!   `;!! text` has its error.
//! - A block below a line that has only a file name in backticks and a colon is the content of that file.
//! - Links refer to existing files.
#![expect(clippy::indexing_slicing, reason = "a test stops where an answer lacks what it looks at")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use ptc_tests::deployment::{cargo, prebuilt_runtime, ptc_compile, workspace};
use ptc_tests::peers::python_folder;
use ptc_tests::process::{Background, free_port, run};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Ports of the quickstart's upstreams, of servers over HTTP, of an authorization server, and of a model.
const PORTS: [&str; 7] = ["7411", "7412", "7332", "7334", "7335", "9480", "11434"];

/// The model's answer to every question.
const PLANNED: &str = r#"(return (count (:value (tool/call {:server "notes" :tool "list_notes"}))))"#;

/// A block of a page.
struct Block {
    language: String,
    /// The file that the block is written to, if it is one.
    file: Option<String>,
    text: String,
    /// The number of its first line on the page.
    line: usize,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let (mut inside, mut file) = (false, None);
    for (at, line) in page.lines().enumerate() {
        match (line.strip_prefix("```"), inside) {
            (Some(language), false) => {
                found.push(Block { language: language.to_owned(), file: file.take(), text: String::new(), line: at + 2 });
                inside = true;
            }
            (Some(_), true) => inside = false,
            (None, true) => {
                let block = found.last_mut().expect("one is open");
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, false) if line.is_empty() => {}
            (None, false) => file = line.strip_prefix('`').and_then(|name| name.strip_suffix("`:")).map(str::to_owned),
        }
    }
    assert!(!inside, "the last block ends");
    found
}

/// Starts a service that always gives the same answer, until the process ends.
fn service(port: &str, answer: &Value) {
    let server = tiny_http::Server::http(format!("127.0.0.1:{port}")).expect("the port was free");
    let answer = answer.to_string();
    std::thread::spawn(move || {
        for request in server.incoming_requests() {
            // The client may have disconnected.
            let _ = request.respond(tiny_http::Response::from_string(answer.clone()));
        }
    });
}

/// A folder with the quickstart's config, whose upstreams use separate ports, and with a page's files.
struct Place {
    folder: TempDir,
    ports: BTreeMap<&'static str, String>,
    /// Whether commands find the programs that `.ci/peers` installs.
    peers: bool,
    _upstreams: Background,
}

impl Place {
    fn new() -> Place {
        let ports: BTreeMap<&str, String> = PORTS.map(|port| (port, free_port().to_string())).into();
        // An OpenAI-compatible endpoint.
        service(&ports["11434"], &json!({ "choices": [{ "message": { "content": PLANNED }, "finish_reason": "stop" }] }));
        let address = |port: &str| format!("127.0.0.1:{}", ports[port]);
        let mut upstreams = Command::new(ptc_compile());
        upstreams.args(["demo", "--http", &address("7411"), "--api", &address("7412")]);
        let upstreams = Background::start(&mut upstreams);
        let upstreams =
            upstreams.ready_on(ports["7411"].parse().expect("a port")).ready_on(ports["7412"].parse().expect("a port"));
        let place = Place { folder: tempfile::tempdir().expect("a folder"), ports, peers: false, _upstreams: upstreams };
        for name in
            ["upstreams.json", "upstreams.lock.json", "petstore.openapi.json", "due.clj", "due.cassette.json", "due_test.clj"]
        {
            let text = std::fs::read_to_string(workspace().join("fixtures/quickstart").join(name)).expect("the fixture is there");
            place.write(name, &text);
        }
        // The services over HTTP run already.
        let config = place.path().join("upstreams.json");
        let mut json: Value = serde_json::from_str(&std::fs::read_to_string(&config).expect("a config")).expect("it is JSON");
        json["upstreams"]["notes"]["args"] = ["demo", "--stdio"].as_slice().into();
        std::fs::write(config, json.to_string()).expect("it can be written");
        // The document contains the port of its server.
        run(place.command(ptc_compile()).args(["update", "upstreams.json"])).success();
        place
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Replaces the ports in a text by those of this folder.
    fn local(&self, text: &str) -> String {
        // Marks come first: a port of this folder can contain the digits of a port that is still to be replaced.
        let mark = |at: usize| format!("\u{1}{at}\u{1}");
        let marked = (0..).zip(self.ports.keys()).fold(text.to_owned(), |text, (at, port)| text.replace(port, &mark(at)));
        (0..).zip(self.ports.values()).fold(marked, |text, (at, own)| text.replace(&mark(at), own))
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().expect("the file has a folder")).expect("a folder");
        std::fs::write(path, self.local(text)).expect("it can be written");
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        let beside = ptc_compile().parent().expect("the program has a folder").display().to_string();
        let path = std::env::var("PATH").unwrap_or_default();
        // Clients on the pages use the official SDK.
        let python = if self.peers { format!("{}:", python_folder().display()) } else { String::new() };
        command.current_dir(self.path()).env("PATH", format!("{beside}:{python}{path}"));
        command.env("XDG_CONFIG_HOME", self.path().join("configs")).env("XDG_STATE_HOME", self.path().join("state"));
        command
    }
}

/// Runs the programs of a page and compares their results.
fn programs(place: &Place, page: &str, blocks: &[Block]) {
    let mut command = place.command(ptc_compile());
    command.args(["repl", "--json", "upstreams.json", "--max-tool-calls", "1000", "--upstream-call-timeout-ms", "60000"]);
    command.args(["--program-timeout-ms", "120000"]);
    let mut wanted = Vec::new();
    for block in blocks.iter().filter(|block| block.language == "clojure" && block.file.is_none()) {
        let mut program = String::new();
        for (at, line) in block.text.lines().enumerate() {
            let answer =
                line.strip_prefix(";=> ").map(|value| (true, value)).or_else(|| Some((false, line.strip_prefix(";!! ")?)));
            match answer {
                Some((ok, text)) => {
                    wanted.push((block.line + at, std::mem::take(&mut program), Some((ok, text.to_owned()))));
                }
                None => program.extend([line, "\n"]),
            }
        }
        if !program.trim().is_empty() {
            wanted.push((block.line, program, None));
        }
    }
    if wanted.is_empty() {
        return;
    }
    for (_, program, answer) in &wanted {
        // A fault would end the script.
        let program = match answer {
            Some((false, _)) => continue,
            _ => program,
        };
        command.arg("-e").arg(program);
    }
    let done = run(&mut command);
    let mut answers = done.stdout.lines();
    for (line, program, answer) in &wanted {
        if let Some((false, text)) = answer {
            let failed = run(place.command(ptc_compile()).args(["repl", "upstreams.json", "-e", program]));
            assert!(failed.code == Some(1) && failed.stderr.contains(text), "{page}:{line}: {}{}", failed.stdout, failed.stderr);
            continue;
        }
        let object = answers.next().unwrap_or_else(|| panic!("{page}:{line}: no answer\n{}{}", done.stdout, done.stderr));
        let object: Value = serde_json::from_str(object).expect("an object");
        let found = object["result"].as_str().unwrap_or_default();
        assert_eq!(object["status"], "ok", "{page}:{line}: {object}");
        if let Some((true, value)) = answer {
            assert_eq!(found.strip_prefix("user=> "), Some(value.as_str()), "{page}:{line}");
        }
    }
}

/// Runs the commands of a page as one script and compares the output of each block.
fn commands(place: &Place, page: &str, blocks: &[Block]) {
    const MARK: &str = "-- block of line ";
    let mut script = String::from("set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n");
    for block in blocks {
        if let Some(name) = &block.file {
            place.write(name, &block.text);
        } else if block.language == "sh" {
            script.extend(["echo '", MARK, &block.line.to_string(), "'\n", &place.local(&block.text)]);
        }
    }
    if !script.contains(MARK) {
        return;
    }
    let done = run(place.command("bash").args(["-c", &format!("exec 2>&1\n{script}")]));
    assert_eq!(done.code, Some(0), "{page}:\n{}", done.stdout);
    for pair in blocks.windows(2) {
        let [command, output] = pair else { continue };
        if command.language != "sh" || output.language != "text" {
            continue;
        }
        let mark = format!("{MARK}{}\n", command.line);
        let printed = done.stdout.split_once(&mark).expect("every block is run").1;
        let printed = printed.split(MARK).next().unwrap_or_default();
        let mut rest = printed.lines();
        for wanted in place.local(&output.text).lines() {
            assert!(rest.any(|line| fits(line, wanted)), "{page}:{}: no {wanted:?} (in order) in\n{printed}", output.line);
        }
    }
}

/// Whether a line matches; `…` stands for any text.
fn fits(line: &str, wanted: &str) -> bool {
    let mut parts = wanted.split('…');
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let parts: Vec<&str> = parts.collect();
    for part in &parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.is_empty() || parts.last().is_some_and(|last| last.is_empty())
}

fn guide(name: &str) {
    check(name, &Place::new());
}

fn guide_with_peers(name: &str) {
    check(name, &Place { peers: true, ..Place::new() });
}

fn check(name: &str, place: &Place) {
    let folder = workspace().join("compiler/guide");
    let text = std::fs::read_to_string(folder.join(name)).expect("the page is there");
    let blocks = blocks(&text);
    programs(place, name, &blocks);
    commands(place, name, &blocks);
}

#[test]
fn examples_of_programs_guide_run_as_shown() {
    guide("programs.md");
}

#[test]
fn examples_of_testing_guide_run_as_shown() {
    guide("testing.md");
}

#[test]
fn testing_guide_shows_the_tests_of_the_quickstart() {
    let text = std::fs::read_to_string(workspace().join("compiler/guide/testing.md")).expect("the page is there");
    let blocks = blocks(&text);
    let shown = blocks.iter().find(|block| block.file.as_deref() == Some("due_test.clj")).expect("the page shows the file");
    let tests = std::fs::read_to_string(workspace().join("fixtures/quickstart/due_test.clj")).expect("the fixture is there");
    assert_eq!(shown.text, tests);
}

/// The page queries a server with curl and with the official SDK.
#[test]
#[ignore = "needs what .ci/peers installs"]
fn examples_of_operating_guide_run_as_shown() {
    prebuilt_runtime();
    guide_with_peers("operating.md");
}

#[test]
fn examples_of_migrating_guide_run_as_shown() {
    guide("migrating.md");
}

#[test]
fn examples_of_policy_guide_run_as_shown() {
    guide("policy.md");
}

#[test]
#[ignore = "slow: builds a binary"]
fn examples_of_config_guide_run_as_shown() {
    guide("config.md");
}

#[test]
#[ignore = "slow: builds a binary"]
fn examples_of_upgrading_guide_run_as_shown() {
    guide("upgrading.md");
}

#[test]
fn examples_of_on_call_guide_run_as_shown() {
    guide("on-call.md");
}

#[test]
fn commands_of_the_guide_to_identity_answer_as_shown() {
    guide("identity.md");
}

/// The page's pipelines are run in `ci`.
#[test]
fn examples_of_ci_guide_run_as_shown() {
    guide("ci.md");
}

/// The page's blocks of Rust are tested with the documentation of `ptc-runtime`.
#[test]
fn examples_of_embedding_guide_run_as_shown() {
    guide("embedding.md");
}

/// Runs the first command in the folder that the page names, with the config in that folder.
#[test]
fn first_command_works_in_the_quickstart_folder() {
    let text = std::fs::read_to_string(workspace().join("compiler/guide/programs.md")).expect("the page is there");
    let blocks = blocks(&text);
    let [command, output, ..] = blocks.as_slice() else { panic!("a page has blocks") };
    let beside = ptc_compile().parent().expect("the program has a folder").display().to_string();
    let path = format!("{beside}:{}", std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("bash");
    shell.args(["-c", &command.text]).current_dir(workspace().join("fixtures/quickstart")).env("PATH", path);
    assert_eq!(run(&mut shell).success(), output.text);
}

/// Checks that the crates, folders and features in the manifest exist.
#[test]
fn manifest_of_an_embedding_program_resolves() {
    let text = std::fs::read_to_string(workspace().join("compiler/guide/embedding.md")).expect("the page is there");
    let blocks = blocks(&text);
    let manifest = blocks.iter().find(|block| block.file.as_deref() == Some("Cargo.toml")).expect("the page shows one");
    let folder = tempfile::tempdir().expect("a folder");
    let root = workspace().display().to_string();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("it can be written");
    std::fs::create_dir(folder.path().join("src")).expect("a folder");
    write("src/lib.rs", "");
    write("Cargo.toml", &manifest.text.replace("../ptc-compile", &root));
    std::fs::copy(workspace().join("Cargo.lock"), folder.path().join("Cargo.lock")).expect("the resolution is there");
    let mut tree = cargo();
    tree.args(["tree", "--offline", "--edges", "normal", "--prefix", "none", "--format", "{p}"]).current_dir(folder.path());
    let tree = run(&mut tree).success();
    for linked in ["ptc-lisp", "ptc-runtime", "ptc-macros", "hyper-rustls"] {
        assert!(tree.lines().any(|line| line.starts_with(&format!("{linked} "))), "no {linked} in\n{tree}");
    }
}

#[test]
fn every_page_has_a_test_and_valid_links() {
    let folder = workspace().join("compiler/guide");
    let source = std::fs::read_to_string(workspace().join("tests/tests/guides.rs")).expect("this file");
    for entry in std::fs::read_dir(&folder).expect("the folder is there").flatten() {
        let name = entry.file_name().into_string().expect("plain names");
        assert!(source.contains(&format!("(\"{name}\");")), "{name} is run by no test");
        let text = std::fs::read_to_string(entry.path()).expect("a page");
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let path = link.split('#').next().unwrap_or_default();
            assert!(link.starts_with("https://") || folder.join(path).exists(), "{name}: {link} leads nowhere");
        }
    }
}

#[test]
fn lines_match_expected_lines_with_ellipses() {
    for (line, wanted, yes) in [
        ("binary  a/b, 7 MB", "binary…", true),
        ("took 3 s", "took … s", true),
        ("took 3 s more", "took … s", false),
        ("exact", "exact", true),
        ("exactly", "exact", false),
    ] {
        assert_eq!(fits(line, wanted), yes, "{line} {wanted}");
    }
}
