//! Tests `ptc-compile init` with real upstreams: with options alone, and as a user answers its questions on a terminal.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::pty::{SIZE, Terminal};
use ptc_tests::deployment::ptc_compile;
use ptc_tests::process::{Background, free_port, run};
use serde_json::Value;
use tempfile::TempDir;

const INTERRUPT: &str = "\u{3}";
const END: &str = "\u{4}";

fn init(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(ptc_compile());
    command.arg("init").args(args).current_dir(folder);
    command
}

/// A run of `init` on a terminal, in an empty folder.
struct Session {
    folder: TempDir,
    terminal: Terminal,
}

impl Session {
    fn start(args: &[&str]) -> Session {
        Session::start_in(tempfile::tempdir().expect("a folder"), args, &[])
    }

    fn start_in(folder: TempDir, args: &[&str], variables: &[(&str, &str)]) -> Session {
        let command = pty_process::blocking::Command::new(ptc_compile()).arg("init").args(args).current_dir(folder.path());
        let command =
            variables.iter().fold(command.env("TERM", "xterm-256color"), |command, (name, value)| command.env(name, value));
        Session { folder, terminal: Terminal::start(command) }
    }

    /// Waits for a question, and types an answer with the key that ends it.
    fn answers(&mut self, question: &str, keys: &str) {
        self.terminal.shows(question);
        self.terminal.types(keys);
    }

    /// Waits for a line on the screen.
    fn screen_has(&self, wanted: &str) {
        self.terminal.until(&format!("{wanted:?} on the screen"), |text| {
            let mut parser = vt100::Parser::new(SIZE.0, SIZE.1, 1_000);
            parser.process(text.as_bytes());
            parser.screen().contents().contains(wanted)
        });
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn json(&self, name: &str) -> Value {
        json(&self.path(name))
    }
}

/// Reads a config without its comments.
fn json(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).expect("it was written");
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    serde_json::from_str(&lines.join("\n")).expect("JSON")
}

fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn options_alone_make_a_config_of_each_kind() {
    let folder = tempfile::tempdir().expect("a folder");
    let (http, api) = (free_port(), free_port());
    let mut upstreams = Command::new(ptc_compile());
    upstreams.args(["demo", "--http", &format!("127.0.0.1:{http}"), "--api", &format!("127.0.0.1:{api}")]);
    let _upstreams = Background::start(&mut upstreams).ready_on(http).ready_on(api);

    let command = format!("'{}' demo --stdio", ptc_compile().display());
    let run_init = |args: &[&str]| {
        let finished = run(&mut init(folder.path(), args));
        assert_eq!(finished.code, Some(0), "{args:?}: {}", finished.stderr);
        finished
    };
    let finished = run_init(&["--command", &command, "--name", "notes", "--tools", "read_*"]);
    assert!(finished.stderr.contains("2 tools, 2 declared read-only:"), "{}", finished.stderr);
    run_init(&["--url", &format!("http://127.0.0.1:{http}/mcp"), "--name", "visits", "--add"]);

    // The document is served by another server, which is not there any more when the config is checked.
    let document = include_str!("../../fixtures/quickstart/petstore.openapi.json").replace("7412", &api.to_string());
    let server = tiny_http::Server::http("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/petstore.json", server.server_addr());
    std::thread::spawn(move || {
        if let Ok(request) = server.recv() {
            // The client may have disconnected.
            let _ = request.respond(tiny_http::Response::from_string(document));
        }
    });
    run_init(&["--openapi", &url, "--add", "--tools", "listPets"]);

    let config = json(&folder.path().join("upstreams.json"));
    assert_eq!(config["upstreams"]["notes"]["include_tools"], serde_json::json!(["read_note"]), "{config}");
    assert_eq!(config["upstreams"]["visits"]["transport"], "mcp_http", "{config}");
    assert_eq!(config["upstreams"]["petstore"]["schema_url"], url.as_str(), "{config}");
    assert_eq!(config["upstreams"]["petstore"]["base_url"], format!("http://127.0.0.1:{api}"), "{config}");
    // The lock file covers all of them, and the tools can be called.
    run(Command::new(ptc_compile()).args(["--check", "--locked", "upstreams.json"]).current_dir(folder.path())).success();
    let program = "[(count (tool/value {:server \"petstore\" :tool \"list-pets\"})) (dir \"notes\")]";
    let mut repl = Command::new("sh");
    repl.args(["-c", "printf '%s\\n' \"$1\" | \"$0\" repl upstreams.json"]).arg(ptc_compile()).arg(program);
    let answer = run(repl.current_dir(folder.path())).success();
    assert!(answer.contains("notes/read_note - ") && !answer.contains("list_notes"), "{answer}");
}

/// The document names another host than its own for the service, or the host of the document is not to be trusted with the secret.
#[test]
fn host_of_a_document_gets_the_credential_only_if_it_is_the_service() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = tiny_http::Server::http("127.0.0.1:0").expect("a port");
    let origin = format!("http://{}", server.server_addr());
    let requests = std::thread::spawn(move || {
        let mut sent = Vec::new();
        while sent.len() < 3
            && let Ok(request) = server.recv()
        {
            let is_authorization = |header: &&tiny_http::Header| header.field.equiv("Authorization");
            sent.push(request.headers().iter().find(is_authorization).map(|header| header.value.to_string()));
            let document = include_str!("../../fixtures/quickstart/petstore.openapi.json");
            let status = if request.url().contains("closed") { 401 } else { 200 };
            // The client may have disconnected.
            let _ = request.respond(tiny_http::Response::from_string(document).with_status_code(status));
        }
        sent
    });
    let ask = |path: &str, options: &[&str]| {
        let url = format!("{origin}/{path}");
        let args = [&["--openapi", &url, "--credential-env", "SHOP_TOKEN", "--force"], options].concat();
        run(init(folder.path(), &args).env("SHOP_TOKEN", "not-a-secret-0001"))
    };
    let finished = ask("closed.json", &[]);
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    assert!(finished.stderr.contains(&format!("the credential was not sent to {origin}")), "{}", finished.stderr);
    assert!(files(folder.path()).is_empty());
    let finished = ask("open.json", &[]);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let finished = ask("open.json", &["--base-url", &origin]);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let sent = requests.join().expect("no panic");
    assert_eq!(sent, [None, None, Some("Bearer not-a-secret-0001".to_owned())]);
}

#[test]
fn questions_lead_to_a_checked_config() {
    let mut session = Session::start(&[]);
    session.answers("Kind [1]: ", "\r");
    session.answers("Command: ", "no'\r");
    session.screen_has("a quotation mark or a backslash at the end is not closed");
    session.answers("Command: ", &format!("{} demo --stdio\r", ptc_compile().display()));
    session.answers("(empty: none): ", "\r");
    session.answers("Name in programs [ptc-compile]: ", "notes\r");
    session.terminal.shows("Tools to grant");
    session.screen_has("   2  reads  read_note   The text of one note.");
    assert_eq!(files(session.folder.path()), [""; 0], "nothing is written before the last answer");
    session.terminal.types("nope\r");
    session.screen_has("the upstream has no `nope`");
    // The Tab key completes the last name.
    session.answers("[all]: ", "2,read_\t\r");
    session.answers("Build the binary?", "n\r");
    session.screen_has("(dir \"notes\")");
    assert_eq!(session.json("upstreams.json")["upstreams"]["notes"]["include_tools"], serde_json::json!(["read_note"]));
    assert_eq!(files(session.folder.path()), ["upstreams.json", "upstreams.lock.json"]);
    session.terminal.ends();
}

#[test]
fn interrupt_and_end_of_input_leave_nothing() {
    for key in [INTERRUPT, END] {
        let mut first = Session::start(&[]);
        first.answers("Kind [1]: ", key);
        first.screen_has("error: stopped before the end of the questions");
        assert!(first.terminal.is_canonical() && files(first.folder.path()).is_empty());

        let mut last = Session::start(&["--command", &format!("{} demo --stdio", ptc_compile().display()), "--name", "notes"]);
        last.answers("(empty: none): ", "\r");
        last.answers("[all]: ", key);
        last.screen_has("error: stopped before the end of the questions");
        assert!(last.terminal.is_canonical() && files(last.folder.path()).is_empty());
    }
}

#[test]
fn end_of_input_after_the_config_is_written_does_not_build() {
    let mut session =
        Session::start(&["--command", &format!("{} demo --stdio", ptc_compile().display()), "--name", "notes", "--tools", "all"]);
    session.answers("(empty: none): ", "\r");
    session.answers("Build the binary?", END);
    session.screen_has("next: ptc-compile repl upstreams.json");
    session.terminal.ends();
}

#[test]
fn existing_config_is_extended_after_a_question() {
    let folder = tempfile::tempdir().expect("a folder");
    let old =
        "{\n  // by hand\n  \"upstreams\": {\n    \"old\": { \"transport\": \"mcp_stdio\", \"command\": \"old\" }\n  }\n}\n";
    std::fs::write(folder.path().join("upstreams.json"), old).expect("a config");
    let args =
        ["--command", &format!("{} demo --stdio", ptc_compile().display()), "--name", "notes", "--tools", "all", "--no-build"];
    let mut kept = Session::start_in(folder, &args, &[]);
    kept.answers("Answer [a]: ", "s\r");
    kept.screen_has("stays as it is");
    let Session { folder, .. } = kept;
    assert_eq!(std::fs::read_to_string(folder.path().join("upstreams.json")).expect("it stays"), old);

    let mut added = Session::start_in(folder, &args, &[]);
    added.answers("Answer [a]: ", "\r");
    added.answers("(empty: none): ", "\r");
    added.screen_has("wrote upstreams.lock.json");
    let text = std::fs::read_to_string(added.path("upstreams.json")).expect("it was written");
    assert!(text.starts_with("{\n  // by hand\n") && text.contains("\"old\"") && text.contains("\"notes\""), "{text}");
}

#[test]
fn secret_that_is_typed_in_place_of_a_variable_is_not_taken() {
    let folder = tempfile::tempdir().expect("a folder");
    let args =
        ["--command", &format!("{} demo --stdio", ptc_compile().display()), "--name", "notes", "--tools", "all", "--no-build"];
    let mut session = Session::start_in(folder, &args, &[("NOTES_TOKEN", "not-a-secret-0001")]);
    session.answers("(empty: none): ", "ghp_0000aaaa1111bbbb2222cccc3333\r");
    session.screen_has("the secret itself is never written");
    session.answers("(empty: none): ", "NOTES_TOKEN\r");
    session.screen_has("no faults in 1 upstream");
    let text = std::fs::read_to_string(session.path("upstreams.json")).expect("it was written");
    assert!(text.contains("\"NOTES_TOKEN\": \"${NOTES_TOKEN}\"") && !text.contains("0001") && !text.contains("ghp_"), "{text}");
}

#[test]
#[ignore = "slow: builds a binary"]
fn binary_that_init_builds_answers_the_first_question() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("init-under-test.json");
    let args = ["--command", &format!("'{}' demo --stdio", ptc_compile().display()), "--name", "notes", "--build", "--output"];
    let said = run(init(folder.path(), &args).arg(&config)).success();
    let first = said.lines().find_map(|line| line.strip_prefix("try:  ")).expect("a first question");
    let answer = run(Command::new("sh").args(["-c", first]).current_dir(folder.path())).success();
    assert!(answer.contains("notes/read_note"), "{answer}");
    assert!(said.contains("ptc-compile install ") && said.contains("--client claude-code"), "{said}");
}
