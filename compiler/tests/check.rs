//! Tests the output of `ptc-compile --check` for the config in every folder of `fixtures/check`. A file `options` lists further
//! options. A file `command` has the arguments of another command to run instead.
//!
//! `UPDATE_EXPECT=1 cargo test -p ptc-compiler check::` writes the expected outputs; review the difference before
//! committing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ptc_compiler::config::keys;
use ptc_compiler::diag::{Code, pages};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/check")
}

fn folders() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = fs::read_dir(fixtures())
        .expect("fixtures/check can be listed")
        .map(|entry| entry.expect("an entry of fixtures/check can be read").path())
        .collect();
    folders.sort();
    folders
}

fn check(folder: &Path, format: &str) -> Output {
    let options = fs::read_to_string(folder.join("options")).unwrap_or_default();
    let command = fs::read_to_string(folder.join("command")).unwrap_or_else(|_| "--check upstreams.json".to_owned());
    let program = Path::new(env!("CARGO_BIN_EXE_ptc-compile"));
    Command::new(program)
        .args(command.split_whitespace())
        .args(["--color", "never", "--format", format])
        .args(options.split_whitespace())
        .current_dir(folder)
        .env("PATH", program.parent().expect("the program has a folder"))
        .env_remove("NO_COLOR")
        .output()
        .expect("ptc-compile can be started")
}

/// Returns the required text of a fixture's `expected.txt`.
fn answer(folder: &Path) -> String {
    let mut text = String::new();
    for format in ["short", "full"] {
        let output = check(folder, format);
        assert!(output.stdout.is_empty(), "{}: messages belong on stderr", folder.display());
        let code = output.status.code().expect("ptc-compile ends by itself");
        let messages = String::from_utf8(output.stderr).expect("messages are UTF-8");
        assert!(code < 2, "{}: ptc-compile failed: {messages}", folder.display());
        // Trailing white space is removed from lines, since editors would remove it from the file.
        text.push_str(&["---- ", format, ", exit ", &code.to_string(), "\n"].concat());
        for line in messages.lines().filter(|line| !is_progress(line)) {
            text.push_str(&without_price(line.trim_end()));
            text.push('\n');
        }
    }
    text
}

/// Whether a line says that an upstream has answered, with the time that it took.
fn is_progress(line: &str) -> bool {
    line.split_once('/').is_some_and(|(done, _)| !done.is_empty() && done.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Removes the size of the tool descriptions from a line, because it changes with every word of the server's own texts.
fn without_price(line: &str) -> String {
    let bounds = line.split_once("clients would pay ").and_then(|(before, rest)| Some((before, rest.split_once(" bytes")?.1)));
    bounds.map_or_else(|| line.to_owned(), |(before, after)| format!("{before}clients would pay … bytes{after}"))
}

#[test]
fn every_fixture_has_the_expected_findings() {
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let mut wrong = Vec::new();
    for folder in folders() {
        let name = folder.display().to_string();
        assert!(folder.join("upstreams.json").is_file(), "{name} has no upstreams.json: an orphan");
        let actual = answer(&folder);
        let expected = folder.join("expected.txt");
        if update {
            fs::write(&expected, &actual).expect("expected.txt can be written");
        } else if fs::read_to_string(&expected).ok().as_deref() != Some(actual.as_str()) {
            wrong.push(format!("== {name}\n{actual}"));
        }
    }
    assert!(wrong.is_empty(), "not as expected (UPDATE_EXPECT=1 accepts):\n{}", wrong.join("\n"));
}

#[test]
fn only_fixtures_named_good_have_no_findings() {
    for folder in folders() {
        let name = folder.file_name().and_then(|name| name.to_str()).expect("names of fixtures are UTF-8").to_owned();
        let output = check(&folder, "json");
        let findings = String::from_utf8(output.stdout).expect("findings are UTF-8");
        if name.starts_with("good") {
            assert_eq!((findings.as_str(), output.status.code()), ("", Some(0)), "{name}");
        } else {
            assert!(!findings.is_empty(), "{name} provokes nothing");
        }
        for line in findings.lines() {
            let value: serde_json::Value = serde_json::from_str(line).expect("each line is one JSON object");
            assert!(value["code"].as_str().is_some_and(|code| code.starts_with("PTC")), "{name}: {line}");
        }
    }
}

/// These codes have no fixtures. One would need a file of 1 GiB: `cli.rs` makes a sparse one. The others would need a server over HTTP:
/// `drift.rs` compares lock files, and `authorization.rs` has a server.
const WITHOUT_FIXTURE: [Code; 4] =
    [Code::TooLarge, Code::TransportChanged, Code::AuthorizationServerChanged, Code::ScopesChanged];

#[test]
fn every_code_has_a_fixture_that_causes_it() {
    let expected: String =
        folders().iter().map(|folder| fs::read_to_string(folder.join("expected.txt")).unwrap_or_default()).collect();
    let provoked: BTreeSet<&str> = Code::ALL.iter().map(|code| code.name()).filter(|name| expected.contains(name)).collect();
    let missing: Vec<&str> = Code::ALL
        .iter()
        .filter(|code| !WITHOUT_FIXTURE.contains(code))
        .map(|code| code.name())
        .filter(|name| !provoked.contains(name))
        .collect();
    assert!(missing.is_empty(), "no fixture provokes {missing:?}");
}

/// A reader finds the page of a key by the name of the key: in the list of codes, in the page, and in the findings.
#[test]
fn every_key_of_an_oauth2_element_has_its_own_code_page_and_fixture() {
    let expected: String =
        folders().iter().map(|folder| fs::read_to_string(folder.join("expected.txt")).unwrap_or_default()).collect();
    let element = keys::AUTH.case("oauth2").expect("there is a table of the scheme");
    let mut owners = BTreeMap::new();
    for key in element.keys() {
        let code = key.own_code.unwrap_or_else(|| panic!("`{}` has no code of its own", key.name));
        if let Some(owner) = owners.insert(code, key.name) {
            panic!("`{}` and `{owner}` share {}", key.name, code.name());
        }
        let name = format!("`{}`", key.name);
        assert!(pages::page(code).is_some_and(|page| page.contains(&name)), "the page of {} does not name {name}", code.name());
        assert!(code.title().contains(key.name), "the title of {} does not name {name}", code.name());
        // A line of `--format short`.
        let finding = format!(": error[{}]: ", code.name());
        let is_found = expected.lines().any(|line| line.split_once(&finding).is_some_and(|(_, said)| said.contains(key.name)));
        assert!(is_found, "no fixture has {} for {name}", code.name());
    }
    for key in keys::IDENTITY_PROVIDER.keys() {
        let outer = element.key(key.name).and_then(|outer| outer.own_code);
        assert_eq!(key.own_code, outer, "`{}` of an identity provider has the same rules", key.name);
    }
}

/// Every secret in the fixtures contains this word. No rendering may show it, nor control characters that a terminal obeys.
#[test]
fn no_rendering_shows_a_secret() {
    for folder in folders() {
        for format in ["full", "short", "json", "sarif", "github"] {
            let output = check(&folder, format);
            for stream in [output.stdout, output.stderr] {
                let text = String::from_utf8_lossy(&stream).to_lowercase();
                assert!(!text.contains("hunter"), "{} shows a secret as {format}:\n{text}", folder.display());
                assert!(!text.contains('\u{1b}'), "{} moves a terminal as {format}:\n{text}", folder.display());
            }
        }
    }
}
