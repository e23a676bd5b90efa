//! Adds a binary to the configs of clients and removes it again, with the configs in `fixtures/clients`.

#![expect(clippy::unwrap_used, reason = "a test stops where anything is wrong")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use ptc_compiler::clients::{Client, Format};
use ptc_compiler::diag::Diagnostics;
use ptc_compiler::install::{self, Error, Server};
use ptc_compiler::json::Json;
use ptc_compiler::source::Sources;
use ptc_compiler::tree;

const PROGRAM: &str = env!("CARGO_BIN_EXE_ptc-compile");

const SERVER: Server<'static> = Server { name: "office", command: "/opt/office/bin/office" };

/// The configs of clients that `install` can edit.
fn configs() -> Vec<(Client, PathBuf, String)> {
    let mut found = Vec::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/clients");
    collect(&root, &mut found);
    found.sort_by(|(_, a, _), (_, b, _)| a.cmp(b));
    found
}

fn collect(folder: &Path, found: &mut Vec<(Client, PathBuf, String)>) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            collect(&path, found);
            continue;
        }
        let name = path.to_str().unwrap();
        let client = if path.extension().is_some_and(|end| end == "toml") { Some(Client::Codex) } else { Client::of_path(name) };
        // Other settings of VS Code are not edited.
        let Some(client) =
            client.filter(|client| client.row().format != Format::Yaml && !name.ends_with(".vscode/settings.json"))
        else {
            continue;
        };
        found.push((client, path.clone(), fs::read_to_string(&path).unwrap()));
    }
}

fn value(client: Client, text: &str) -> Option<String> {
    let mut sources = Sources::default();
    let file = sources.add("", text);
    let mut diagnostics = Diagnostics::default();
    let node = match client.row().format {
        Format::Toml => tree::parse_toml(&sources, file, &mut diagnostics),
        _ => tree::parse(&sources, file, &mut diagnostics),
    };
    node.map(|node| Json::from(&node).canonical())
}

/// Configs whose bytes differ after a removal without the backup: their servers are on one line.
const REFORMATTED: usize = 8;

#[test]
fn adding_and_removing_an_entry_changes_nothing_else() {
    let (mut edited, mut different) = (0, Vec::new());
    for (client, path, text) in configs() {
        let path = path.display();
        let Some(before) = value(client, &text) else {
            assert!(matches!(install::add(client, &text, SERVER), Err(Error::Syntax(..))), "{path}");
            continue;
        };
        if before.starts_with('[') {
            assert!(matches!(install::add(client, &text, SERVER), Err(Error::NotAnObject(_))), "{path}");
            continue;
        }
        let added = install::add(client, &text, SERVER).unwrap();
        let with = value(client, &added).unwrap();
        assert!(with.contains(r#""office":{"args":[],"command":"/opt/office/bin/office""#), "{path}\n{added}");
        for comment in text.lines().filter_map(|line| Some(line.split_once("//")?.1).filter(|_| !line.contains("://"))) {
            assert!(added.contains(comment), "{path} loses {comment}");
        }
        assert_eq!(install::add(client, &added, SERVER), Err(Error::Unchanged), "{path}");
        let other = Server { command: "/opt/other", ..SERVER };
        assert_eq!(install::add(client, &added, other), Err(Error::Taken), "{path}");
        assert_eq!(install::remove(client, &added, other), Err(Error::Taken), "{path}");
        let removed = install::remove(client, &added, SERVER).unwrap();
        assert_eq!(install::remove(client, &removed, SERVER), Err(Error::NotThere), "{path}");
        if removed != text {
            different.push(format!("{path}\n{removed}"));
        }
        edited += 1;
    }
    assert!(edited >= 40, "{edited}");
    assert!(different.len() <= REFORMATTED, "{}:\n{}", different.len(), different.join("\n"));
}

/// A folder with a binary and a config.
struct Case {
    folder: tempfile::TempDir,
    config: PathBuf,
}

impl Case {
    fn new(name: &str, text: Option<&str>) -> Case {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join(name);
        fs::create_dir_all(config.parent().unwrap()).unwrap();
        if let Some(text) = text {
            fs::write(&config, text).unwrap();
        }
        fs::write(folder.path().join("office"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(folder.path().join("office"), fs::Permissions::from_mode(0o755)).unwrap();
        Case { folder, config }
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(PROGRAM);
        command.args(args).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env("HOME", self.folder.path()).env_remove("XDG_CONFIG_HOME").env_remove("CODEX_HOME").env_remove("APPDATA");
        command.output().unwrap()
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.config).unwrap()
    }
}

fn message(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn uninstall_restores_every_byte_and_the_permissions() {
    for (client, path, text) in configs() {
        let name = path.file_name().unwrap().to_str().unwrap();
        if value(client, &text).is_none_or(|value| value.starts_with('[')) {
            continue;
        }
        let case = Case::new(name, Some(&text));
        fs::set_permissions(&case.config, fs::Permissions::from_mode(0o640)).unwrap();
        let args = ["office", "--client", client.row().name, "--config", name, "--yes"];
        let installed = case.run(&[&["install"], &args[..]].concat());
        assert!(installed.status.success(), "{}: {}", path.display(), message(&installed));
        assert_ne!(case.text(), text, "{}", path.display());
        assert_eq!(
            fs::read_to_string(case.folder.path().join(format!("{name}.office.bak"))).unwrap(),
            text,
            "{}",
            path.display()
        );
        let shown = message(&installed);
        assert!(shown.contains("  + ") && !shown.to_lowercase().contains("hunter"), "{}: {shown}", path.display());
        let removed = case.run(&[&["uninstall"], &args[..]].concat());
        assert!(removed.status.success(), "{}: {}", path.display(), message(&removed));
        assert!(!message(&removed).to_lowercase().contains("hunter"), "{}: {}", path.display(), message(&removed));
        assert_eq!(case.text(), text, "{}", path.display());
        assert_eq!(fs::metadata(&case.config).unwrap().permissions().mode() & 0o777, 0o640, "{}", path.display());
    }
}

const CURSOR: &str = r#"{
  // servers of the office
  "mcpServers": {
    "notes": { "command": "notes-server" }, // first

    "shop": { "command": "shop-server", "env": { "SHOP_TOKEN": "hunter2-hunter2" } }
  }
}
"#;

#[test]
fn change_is_shown_and_needs_confirmation() {
    let case = Case::new(".cursor/mcp.json", Some(CURSOR));
    let refused = case.run(&["install", "office", "--client", "cursor"]);
    assert_eq!(refused.status.code(), Some(2));
    let shown = message(&refused);
    assert!(shown.contains("+     \"office\": {") && shown.contains("--yes"), "{shown}");
    assert!(shown.contains("\"SHOP_TOKEN\": \"********\"") && !shown.contains("hunter"), "{shown}");
    assert_eq!(case.text(), CURSOR);
    assert_eq!(fs::read_dir(case.folder.path().join(".cursor")).unwrap().count(), 1, "no backup, no temporary file");
}

#[test]
fn uninstall_removes_one_entry_of_a_config_changed_after_install() {
    let case = Case::new(".cursor/mcp.json", Some(CURSOR));
    assert!(case.run(&["install", "office", "--client", "cursor", "-y"]).status.success());
    let changed = case.text().replace("notes-server", "other-server");
    fs::write(&case.config, &changed).unwrap();
    assert!(case.run(&["uninstall", "office", "--client", "cursor", "-y"]).status.success());
    assert_eq!(case.text(), CURSOR.replace("notes-server", "other-server"));
    let again = case.run(&["uninstall", "office", "--client", "cursor", "-y"]);
    assert_eq!((again.status.code(), message(&again).contains("no such entry")), (Some(2), true), "{}", message(&again));
}

#[test]
fn entry_of_another_program_is_not_replaced_or_removed() {
    let case = Case::new(".cursor/mcp.json", Some(CURSOR));
    for command in ["install", "uninstall"] {
        let output = case.run(&[command, "office", "--client", "cursor", "--name", "shop", "-y"]);
        assert_eq!(output.status.code(), Some(2));
        assert!(message(&output).contains("another server has this name"), "{}", message(&output));
    }
    assert_eq!(case.text(), CURSOR);
    let missing = case.run(&["install", "nothing", "--client", "cursor", "-y"]);
    assert!(message(&missing).contains("not a program"), "{}", message(&missing));
}

#[test]
fn missing_config_is_created_and_deleted_again() {
    for (client, path) in [
        ("cursor", ".cursor/mcp.json"),
        ("claude-code", ".claude.json"),
        ("claude-desktop", ".config/Claude/claude_desktop_config.json"),
        ("vscode", ".config/Code/User/mcp.json"),
        ("windsurf", ".codeium/windsurf/mcp_config.json"),
        ("zed", ".config/zed/settings.json"),
        ("gemini", ".gemini/settings.json"),
        ("codex", ".codex/config.toml"),
    ] {
        let case = Case::new(path, None);
        let output = case.run(&["install", "office", "--client", client, "-y"]);
        assert!(output.status.success(), "{client}: {}", message(&output));
        assert!(case.text().contains("office"), "{client}: {}", case.text());
        assert_eq!(fs::metadata(&case.config).unwrap().permissions().mode() & 0o777, 0o600, "{client}");
        // The importer finds what was installed.
        let imported = case.run(&["import", "--discover", "--client", client]);
        let result = String::from_utf8(imported.stdout).unwrap();
        assert!(result.contains("\"office\": {") && result.contains("/office\""), "{client}: {result}");
        assert!(case.run(&["uninstall", "office", "--client", client, "-y"]).status.success(), "{client}");
        assert!(!case.config.exists(), "{client}");
    }
}

#[test]
fn symbolic_link_to_a_config_is_preserved() {
    let case = Case::new("dotfiles/mcp.json", Some(CURSOR));
    let link = case.folder.path().join("mcp.json");
    std::os::unix::fs::symlink(&case.config, &link).unwrap();
    let output = case.run(&["install", "office", "--client", "cursor", "--config", "mcp.json", "-y"]);
    assert!(output.status.success(), "{}", message(&output));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink() && case.text().contains("office"));
}

#[test]
fn yaml_is_not_edited_and_the_lines_to_add_are_printed() {
    for (client, path, key) in
        [("goose", ".config/goose/config.yaml", "extensions"), ("continue", ".continue/config.yaml", "mcpServers")]
    {
        let case = Case::new(path, Some("# mine\nname: x\n"));
        let output = case.run(&["install", "office", "--client", client, "-y"]);
        assert_eq!(output.status.code(), Some(2));
        assert_eq!(case.text(), "# mine\nname: x\n");
        let lines = String::from_utf8(output.stdout).unwrap();
        let mut sources = Sources::default();
        let file = sources.add("a.yaml", lines.as_str());
        let node = tree::parse_yaml(&sources, file, &mut Diagnostics::default()).unwrap();
        assert!(node.get(key).is_some(), "{lines}");
    }
}
