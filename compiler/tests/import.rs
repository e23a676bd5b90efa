//! Imports the configs in `fixtures/clients`, which are written after the shapes that MCP clients document and that public
//! repositories have. Each folder has one config and `expected.txt`: the findings, the result, and what `--check` reports about it.
//!
//! `UPDATE_EXPECT=1 cargo test -p ptc-compiler --test all import::` writes the expected outputs; review the difference before committing.

#![expect(clippy::unwrap_used, reason = "a test stops where anything is wrong")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ptc_compiler::config::keys;
use ptc_compiler::diag::Diagnostics;
use ptc_compiler::import::{self, Input, Installed, Machine, Options};
use ptc_compiler::source::Sources;
use ptc_compiler::tree::{self, Node};
use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_ptc-compile");

/// The codes of findings about an entry that does not become an upstream.
const NOT_IMPORTED: &[&str] = &["PTC1002", "PTC1003", "PTC1008"];

/// The errors that `--check` reports about a result, because the result cannot decide, or because a file is not there.
const OPEN: &[(&str, &str)] = &[("claude_code_unresolvable_url", "PTC0402"), ("ptc_runner", "PTC0510")];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/clients").canonicalize().unwrap()
}

/// The cases: the folder, and the path of the config in it.
fn cases() -> Vec<(PathBuf, String)> {
    let mut folders: Vec<PathBuf> = fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    folders.into_iter().map(|folder| (folder.clone(), config(&folder, &folder).unwrap())).collect()
}

fn config(root: &Path, folder: &Path) -> Option<String> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).find_map(|path| {
        if path.is_dir() {
            return config(root, &path);
        }
        let is_other = path.ends_with("expected.txt") || path.ends_with(".env");
        (!is_other).then(|| path.strip_prefix(root).unwrap().to_str().unwrap().to_owned())
    })
}

fn name(folder: &Path) -> &str {
    folder.file_name().unwrap().to_str().unwrap()
}

fn run(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(PROGRAM);
    // No package is installed, so that the results are the same on all machines.
    for variable in ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "UV_CACHE_DIR", "npm_config_cache"] {
        command.env(variable, folder.join("no-home"));
    }
    command.args(args).args(["--color", "never"]).current_dir(folder).output().unwrap()
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

/// Runs `--check` for a text as a config in an empty folder. `mcp_sse` has the keys of `mcp_http`, which stands for it in a compiler
/// without that transport.
fn check(config: &str, format: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let has_sse = keys::UPSTREAM.case("mcp_sse").is_some();
    let config = if has_sse { config.to_owned() } else { config.replace("\"mcp_sse\"", "\"mcp_http\"") };
    fs::write(folder.path().join("upstreams.json"), config).unwrap();
    run(folder.path(), &["--check", "upstreams.json", "--format", format])
}

#[test]
fn every_config_is_imported_as_expected() {
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let mut wrong = Vec::new();
    for (folder, config) in cases() {
        let output = run(&folder, &["import", &config, "--format", "short"]);
        let code = output.status.code().unwrap();
        let checked = text(check(&text(output.stdout.clone()), "short").stderr);
        let actual = [
            &format!("---- findings, exit {code}\n"),
            text(output.stderr).as_str(),
            "---- upstreams.json\n",
            text(output.stdout).as_str(),
            "---- check\n",
            checked.as_str(),
        ]
        .concat();
        let actual = actual.replace(folder.to_str().unwrap(), "/srv/project");
        assert!(code < 2, "{}: {actual}", name(&folder));
        let expected = folder.join("expected.txt");
        if update {
            fs::write(&expected, &actual).unwrap();
        } else if fs::read_to_string(&expected).ok().as_deref() != Some(actual.as_str()) {
            wrong.push(format!("== {}\n{actual}", name(&folder)));
        }
    }
    assert!(wrong.is_empty(), "not as expected (UPDATE_EXPECT=1 accepts):\n{}", wrong.join("\n"));
}

/// The keys under which the clients keep their servers.
const SECTIONS: &[&[&str]] = &[
    &["mcpServers"],
    &["servers"],
    &["mcp", "servers"],
    &["context_servers"],
    &["mcp_servers"],
    &["extensions"],
    &["experimental", "modelContextProtocolServers"],
    &["upstreams"],
];

/// Returns the lines of all entries of a config, or `None` if it cannot be parsed.
fn entry_lines(path: &str, text: &str) -> Option<Vec<usize>> {
    let mut sources = Sources::default();
    let mut diagnostics = Diagnostics::default();
    let file = sources.add(path, text);
    let root = match path.rsplit('.').next().unwrap() {
        "toml" => tree::parse_toml(&sources, file, &mut diagnostics),
        "yaml" => tree::parse_yaml(&sources, file, &mut diagnostics),
        _ => tree::parse(&sources, file, &mut diagnostics),
    }?;
    let mut lines = Vec::new();
    let mut section = |node: &Node| {
        lines.extend(node.members().iter().map(|member| sources.position(file, member.key_range.start).0));
        let named = |element: &Node| element.get("name").unwrap_or(element).range.start;
        lines.extend(node.elements().unwrap_or(&[]).iter().map(|element| sources.position(file, named(element)).0));
    };
    for keys in SECTIONS {
        let node = keys.iter().try_fold(&root, |node, key| node.get(key));
        node.into_iter().for_each(&mut section);
    }
    for project in root.get("projects").map_or(&[][..], Node::members) {
        project.value.get("mcpServers").into_iter().for_each(&mut section);
    }
    lines.sort_unstable();
    Some(lines)
}

#[test]
fn every_entry_becomes_an_upstream_or_a_finding_at_its_line() {
    let cases = cases();
    assert!(cases.len() >= 60, "{} configs", cases.len());
    let mut entries = 0;
    for (folder, config) in cases {
        let name = name(&folder);
        let source = fs::read_to_string(folder.join(&config)).unwrap();
        let output = run(&folder, &["import", &config, "--check", "--format", "json"]);
        let findings: Vec<Value> = text(output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let Some(lines) = entry_lines(&config, &source) else {
            assert!(findings.iter().any(|finding| finding["severity"] == "error" && finding["at"]["line"].is_u64()), "{name}");
            continue;
        };
        entries += lines.len();
        let result = text(run(&folder, &["import", &config]).stdout);
        let from = result.lines().filter_map(|line| line.trim().strip_prefix(&format!("// from {config}:")));
        let mut found: Vec<usize> = from.map(|rest| rest.split(' ').next().unwrap().parse().unwrap()).collect();
        let is_about_entry = |finding: &&Value| NOT_IMPORTED.contains(&finding["code"].as_str().unwrap());
        let reported = findings.iter().filter(is_about_entry).map(|finding| finding["at"]["line"].as_u64().unwrap() as usize);
        found.extend(reported);
        found.sort_unstable();
        assert_eq!(found, lines, "{name}: {findings:?}\n{result}");
        if lines.is_empty() {
            assert!(findings.iter().any(|finding| finding["code"] == "PTC1001") || name.ends_with("empty"), "{name}");
        }
    }
    assert!(entries > 130, "{entries}");
}

/// Every secret in the configs contains this word, also in Base64.
#[test]
fn no_secret_is_copied_or_shown() {
    for (folder, config) in cases() {
        for format in ["full", "short", "json", "sarif", "github"] {
            let output = run(&folder, &["import", &config, "--check", "--format", format]);
            let result = run(&folder, &["import", &config, "--secret-files", "secrets"]);
            for stream in [output.stdout, output.stderr, result.stdout, result.stderr] {
                let text = text(stream);
                let is_shown = text.to_lowercase().contains("hunter") || text.contains("aHVudGVy");
                assert!(!is_shown, "{} shows a secret as {format}:\n{text}", name(&folder));
            }
        }
    }
}

#[test]
fn every_result_passes_the_check() {
    for (folder, config) in cases() {
        let name = name(&folder);
        for secrets in [&[][..], &["--secret-files", "secrets"]] {
            let args = [&["import", config.as_str()][..], secrets].concat();
            let result = text(run(&folder, &args).stdout);
            let findings = text(check(&result, "json").stdout);
            for line in findings.lines() {
                let finding: Value = serde_json::from_str(line).unwrap();
                let code = finding["code"].as_str().unwrap();
                let is_open = OPEN.contains(&(name, code));
                let is_secret = code == "PTC0314" || code == "PTC0303";
                assert!((finding["severity"] != "error" || is_open) && !is_secret, "{name}: {line}\n{result}");
            }
        }
    }
}

/// Writes a file with its folders.
fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Runs `import` in `project`, with a home.
fn import_in(project: &Path, home: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(PROGRAM);
    for variable in
        ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "UV_CACHE_DIR", "UV_TOOL_DIR", "npm_config_cache", "CODEX_HOME"]
    {
        command.env_remove(variable);
    }
    command.env("HOME", home).arg("import").args(args).args(["--color", "never"]).current_dir(project).output().unwrap()
}

#[test]
fn configs_are_discovered_in_folders_of_clients() {
    let folder = tempfile::tempdir().unwrap();
    let (project, home) = (folder.path().join("project"), folder.path().join("home"));
    fs::create_dir_all(&project).unwrap();
    fs::create_dir_all(&home).unwrap();
    let nothing = import_in(&project, &home, &["--discover"]);
    assert_eq!(nothing.status.code(), Some(2), "{}", text(nothing.stderr));
    let json = |keys: &str, name: &str| format!("{{ \"{keys}\": {{ \"{name}\": {{ \"command\": \"{name}\" }} }} }}");
    let mut names = Vec::new();
    for (base, path, keys) in [
        (&project, ".mcp.json", "mcpServers"),
        (&project, ".cursor/mcp.json", "mcpServers"),
        (&project, ".vscode/mcp.json", "servers"),
        (&project, ".zed/settings.json", "context_servers"),
        (&project, ".gemini/settings.json", "mcpServers"),
        (&home, ".config/Claude/claude_desktop_config.json", "mcpServers"),
        (&home, "Library/Application Support/Claude/claude_desktop_config.json", "mcpServers"),
        (&home, ".claude.json", "mcpServers"),
        (&home, ".cursor/mcp.json", "mcpServers"),
        (&home, ".config/Code/User/mcp.json", "servers"),
        (&home, ".codeium/windsurf/mcp_config.json", "mcpServers"),
        (&home, ".config/zed/settings.json", "context_servers"),
        (&home, ".gemini/settings.json", "mcpServers"),
        (&home, ".config/ptc_runner_mcp/upstreams.json", "upstreams"),
    ] {
        let name = format!("server-{}", names.len());
        let entry = json(keys, &name);
        let entry =
            if keys == "upstreams" { entry.replace("\"command\"", "\"transport\": \"stdio\", \"command\"") } else { entry };
        write(&base.join(path), &entry);
        names.push(name);
    }
    for (path, entry) in [
        (".codex/config.toml", "[mcp_servers.codex-server]\ncommand = 'codex'\n"),
        (".config/goose/config.yaml", "extensions:\n  goose-server:\n    type: stdio\n    enabled: true\n    cmd: goose\n"),
        (".continue/config.yaml", "mcpServers:\n  - name: continue-server\n    command: continue\n"),
    ] {
        write(&home.join(path), entry);
    }
    names.extend(["codex-server", "goose-server", "continue-server", "block-server"].map(str::to_owned));
    write(&project.join(".continue/mcpServers/block.yaml"), "mcpServers:\n  - name: block-server\n    command: block\n");
    // Settings without servers are not a fault.
    write(&home.join(".config/Code/User/settings.json"), "{ \"editor.fontSize\": 12 }");

    let output = import_in(&project, &home, &["--discover"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(output.stderr));
    let result = text(output.stdout);
    for name in &names {
        assert!(result.contains(&format!("\"{name}\": {{")), "{name} in\n{result}");
    }
    let only = text(import_in(&project, &home, &["--discover", "--client", "codex"]).stdout);
    assert!(only.contains("codex-server") && !only.contains("goose-server"), "{only}");
}

#[test]
fn package_gets_its_installed_version() {
    let folder = tempfile::tempdir().unwrap();
    let (project, home) = (folder.path().join("project"), folder.path().join("home"));
    let npm = |folder: &Path, name: &str, version: &str| {
        write(
            &folder.join("node_modules").join(name).join("package.json"),
            &format!("{{ \"name\": \"{name}\", \"version\": \"{version}\" }}"),
        );
    };
    npm(&project, "in-project", "1.2.3");
    npm(&home.join(".npm/_npx/0a"), "@scope/cached", "2.9.0");
    npm(&home.join(".npm/_npx/0b"), "@scope/cached", "2.10.0");
    let tool = home.join(".local/share/uv/tools/my-tool/lib/python3.13/site-packages");
    fs::create_dir_all(tool.join("my_tool-0.4.1.dist-info")).unwrap();
    fs::create_dir_all(home.join(".cache/uv/archive-v0/x/cached_tool-3.0.dist-info")).unwrap();
    write(
        &project.join(".mcp.json"),
        r#"{ "mcpServers": {
            "a": { "command": "npx", "args": ["-y", "in-project"] },
            "b": { "command": "npx", "args": ["-y", "@scope/cached@latest"] },
            "c": { "command": "uvx", "args": ["My.Tool[extra]", "--flag"] },
            "d": { "command": "uvx", "args": ["--from", "cached-tool", "tool"] },
            "e": { "command": "npx", "args": ["-y", "unknown"] },
            "f": { "command": "npx", "args": ["-y", "../../escape"] }
        } }"#,
    );
    let output = import_in(&project, &home, &[".mcp.json", "--format", "short"]);
    let result = text(output.stdout);
    for part in [
        r#"["-y", "in-project@1.2.3"]"#,
        r#"["-y", "@scope/cached@2.10.0"]"#,
        r#"["My.Tool[extra]==0.4.1", "--flag"]"#,
        r#"["--from", "cached-tool==3.0", "tool"]"#,
        r#"["-y", "unknown"]"#,
        "// `@scope/cached` was named without a version; 2.10.0 is the newest version in the cache of npx",
    ] {
        assert!(result.contains(part), "{part} in\n{result}");
    }
    let findings = text(output.stderr);
    assert_eq!(findings.matches("[PTC0216]").count(), 1, "{findings}");
    assert!(findings.contains(".mcp.json:6:53: warning[PTC0216]: `unknown`"), "{findings}");
}

#[test]
fn file_is_replaced_only_on_request() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join(".mcp.json"), r#"{ "mcpServers": { "a": { "command": "a" } } }"#);
    write(&folder.path().join("upstreams.json"), "mine");
    let refused = import_in(folder.path(), folder.path(), &[".mcp.json", "-o", "upstreams.json"]);
    assert_eq!((refused.status.code(), text(refused.stderr).contains("--force")), (Some(2), true));
    assert_eq!(fs::read_to_string(folder.path().join("upstreams.json")).unwrap(), "mine");
    let forced = import_in(folder.path(), folder.path(), &[".mcp.json", "-o", "upstreams.json", "--force"]);
    assert_eq!(forced.status.code(), Some(0));
    assert!(fs::read_to_string(folder.path().join("upstreams.json")).unwrap().contains("\"a\": {"));
    let mixed = import_in(folder.path(), folder.path(), &[".mcp.json", "--format", "json"]);
    assert_eq!((mixed.status.code(), mixed.stdout.is_empty()), (Some(2), true));
}

#[test]
fn entries_of_several_files_get_different_names() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("a.json"), r#"{ "mcpServers": { "notes": { "command": "one" }, "same": { "command": "same" } } }"#);
    write(&folder.path().join("b.json"), r#"{ "mcpServers": { "Notes": { "command": "two" }, "same": { "command": "same" } } }"#);
    let output = import_in(folder.path(), folder.path(), &["a.json", "b.json", "--format", "short"]);
    let (result, findings) = (text(output.stdout), text(output.stderr));
    assert!(result.contains("\"notes\": {") && result.contains("\"Notes-2\": {"), "{result}");
    assert_eq!(result.matches("\"same\": {").count(), 1, "{result}");
    assert!(findings.contains("b.json:1:50: note[PTC1008]"), "{findings}");
}

/// A machine without packages and files.
struct Nothing;

impl Machine for Nothing {
    fn version(&mut self, _: &str, _: bool, _: Option<&str>) -> Option<Installed> {
        None
    }

    fn variables(&mut self, _: &str) -> Option<Vec<String>> {
        None
    }
}

#[test]
fn no_mutilated_config_causes_a_panic() {
    let mut read = BTreeMap::new();
    for (folder, config) in cases() {
        let text = fs::read_to_string(folder.join(&config)).unwrap();
        for at in (0..text.len()).step_by(11).filter(|at| text.is_char_boundary(*at)) {
            let (before, after) = text.split_at(at);
            let rest: String = after.chars().skip(1).collect();
            for mutilated in
                [before.to_owned(), format!("{before}{rest}"), format!("{before}\"{after}"), format!("{before}${{{after}")]
            {
                let mut sources = Sources::default();
                let file = sources.add(config.as_str(), mutilated);
                let input = Input { file, client: None, project: Some("/srv".to_owned()), is_optional: false };
                let imported = import::import(&sources, &[input], &Options::default(), &mut Nothing, &mut Diagnostics::default());
                *read.entry(name(&folder).to_owned()).or_insert(0) += imported.upstreams;
            }
        }
    }
    assert!(read.values().filter(|upstreams| **upstreams > 0).count() > 50, "{read:?}");
}
