//! Tests `init` without a terminal and without upstreams that answer: what it writes, what it refuses, and what it leaves alone.

#![expect(clippy::unwrap_used, reason = "a test stops where anything is wrong")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

const DOCUMENT: &str = r#"{
  "openapi": "3.0.3",
  "info": { "title": "Shop API", "version": "1" },
  "servers": [{ "url": "https://shop.example.com/v1" }],
  "paths": {
    "/orders": {
      "get": { "operationId": "listOrders", "summary": "All orders.", "responses": { "200": { "description": "ok" } } },
      "post": { "operationId": "addOrder", "summary": "Adds one.", "responses": { "201": { "description": "ok" } } }
    },
    "/health": { "get": { "responses": { "200": { "description": "ok" } } } }
  }
}"#;

/// An empty folder with the document, and without packages of the user.
struct Folder(TempDir);

impl Folder {
    fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        fs::write(folder.path().join("shop.json"), DOCUMENT).unwrap();
        folder
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ptc-compile"));
        for variable in ["HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "UV_CACHE_DIR", "npm_config_cache"] {
            command.env(variable, self.path().join("home"));
        }
        command.args(args).current_dir(self.path()).stdin(Stdio::null()).output().unwrap()
    }

    /// Runs `init`. Returns the exit code and the standard error.
    fn init(&self, args: &[&str]) -> (Option<i32>, String) {
        let output = self.run(&[&["init"], args].concat());
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).unwrap()
    }

    /// The names of the files, sorted.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path()).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

#[test]
fn missing_options_are_named_without_a_terminal() {
    let folder = Folder::new();
    fs::write(folder.path().join("nowhere.json"), DOCUMENT.replace("https://shop.example.com/v1", "/v1")).unwrap();
    for (args, message) in [
        (&[][..], "`--command LINE`, `--url URL` or `--openapi DOCUMENT`"),
        (&["--openapi", "nowhere.json"], "`--base-url` is missing, and there is no terminal to ask"),
        (&["--openapi", "https://shop.example.com/openapi.json", "--offline"], "`--base-url` is missing"),
        (&["--openapi", "missing.json"], "cannot read `missing.json`"),
        (&["--openapi", "shop.json", "--tools", "orders*"], "--tools: `orders*` matches none of the names"),
        (&["--command", "a | b"], "--command: no shell runs the command line"),
        (&["--command", "a", "--url", "https://example.com"], "cannot be used with"),
        (&["--url", "ftp://example.com"], "a URL starts with `https://`"),
        (&["--url", "https://example.com", "--credential-as", "bearer"], "--credential-env"),
        (&["--url", "https://example.com", "--credential-env", "A", "--credential-as", "body"], "expected `bearer`, `basic`"),
        (&["--url", "https://example.com", "--credential-env", "NO_SUCH_TOKEN"], "the variable `NO_SUCH_TOKEN` is not set"),
    ] {
        let (code, said) = folder.init(args);
        assert_eq!(code, Some(2), "{args:?}: {said}");
        assert!(said.contains(message), "{args:?} should say {message:?}, said: {said}");
    }
    assert_eq!(folder.names(), ["nowhere.json", "shop.json"]);
}

#[test]
fn document_becomes_a_config_with_its_reads() {
    let folder = Folder::new();
    let output = folder.run(&["init", "--openapi", "shop.json"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let list = "3 operations, 2 read-only:\n   1  reads  GET /health\n   2  reads  listOrders   All orders.\n   3         addOrder     Adds one.\n";
    assert!(said.starts_with(list), "{said}");
    assert!(
        said.ends_with("wrote upstreams.json\nwrote upstreams.lock.json\nupstreams.json: no faults in 1 upstream\n"),
        "{said}"
    );
    let next = String::from_utf8(output.stdout).unwrap();
    assert!(next.contains("ptc-compile repl upstreams.json") && next.contains("(dir \"shop\")"), "{next}");
    let config = folder.text("upstreams.json");
    let (_, written) = config.split_once('\n').unwrap();
    assert!(config.starts_with("// Written by `ptc-compile init` "), "{config}");
    assert_eq!(
        written,
        r#"{
  "upstreams": {
    "shop": {
      "transport": "openapi",
      "base_url": "https://shop.example.com/v1",
      "schema_file": "shop.json",
      "include_operations": ["*"]
    }
  }
}
"#
    );
    let lock = folder.text("upstreams.lock.json");
    assert!(lock.contains("list-orders") && !lock.contains("add-order"), "{lock}");
    // The lock file covers the config.
    assert_eq!(folder.run(&["--check", "--locked", "upstreams.json"]).status.code(), Some(0));
}

#[test]
fn operations_that_write_are_granted_by_name_only() {
    let folder = Folder::new();
    let (code, said) = folder.init(&["--openapi", "shop.json", "--tools", "*Order*", "--output", "reads.json"]);
    assert_eq!(code, Some(0), "{said}");
    let config = folder.text("reads.json");
    assert!(config.contains(r#""include_operations": ["listOrders"]"#) && !config.contains("allow_writes"), "{config}");
    let (code, said) = folder.init(&["--openapi", "shop.json", "--tools", "addOrder,GET /health", "--output", "writes.json"]);
    assert_eq!(code, Some(0), "{said}");
    let config = folder.text("writes.json");
    assert!(config.contains(r#""include_operations": ["addOrder", "GET /health"]"#), "{config}");
    assert!(config.contains(r#""allow_writes": true"#), "{config}");
}

#[test]
fn existing_config_stays_unless_an_option_says_otherwise() {
    let folder = Folder::new();
    let old = "// by hand\n{\n  \"upstreams\": {\n    // ours\n    \"Notes\": { \"transport\": \"mcp_stdio\", \"command\": \"notes\" },\n  },\n}\n";
    fs::write(folder.path().join("upstreams.json"), old).unwrap();
    let (code, said) = folder.init(&["--openapi", "shop.json"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("`upstreams.json` exists") && said.contains("`--add`") && said.contains("`--force`"), "{said}");
    // Names are compared as the config compares them.
    let (code, said) = folder.init(&["--openapi", "shop.json", "--add", "--name", "notes"]);
    assert!(code == Some(2) && said.contains("--name: the config has an upstream `notes`"), "{said}");
    assert_eq!(folder.text("upstreams.json"), old);
    assert_eq!(folder.names(), ["shop.json", "upstreams.json"]);

    let (code, said) = folder.init(&["--openapi", "shop.json", "--add", "--credential-env", "SHOP_TOKEN"]);
    assert_eq!(code, Some(0), "{said}");
    let added = folder.text("upstreams.json");
    assert!(added.starts_with(old.split_once("  },\n}").unwrap().0), "{added}");
    assert!(added.contains("\"shop\": {") && added.contains("\"var\": \"SHOP_TOKEN\""), "{added}");

    let (code, said) = folder.init(&["--openapi", "shop.json", "--force"]);
    assert_eq!(code, Some(0), "{said}");
    let replaced = folder.text("upstreams.json");
    assert!(replaced.contains("\"shop\"") && !replaced.contains("Notes"), "{replaced}");
}

#[test]
fn config_that_would_have_errors_is_not_written() {
    let folder = Folder::new();
    fs::write(folder.path().join("upstreams.json"), "{ \"upstreams\": { \"a\": {} } }").unwrap();
    for args in [
        &["--openapi", "shop.json", "--add"][..],
        &["--openapi", "shop.json", "--output", "other.json", "--base-url", "http://shop.example.com"],
        &["--url", "http://mcp.example.com/mcp", "--output", "other.json", "--offline"],
        &["--openapi", "shop.json", "--output", "other.json", "--name", "no good name!"],
    ] {
        let (code, said) = folder.init(args);
        assert_eq!(code, Some(1), "{args:?}: {said}");
        assert!(said.contains("error[PTC0") && said.contains("nothing was written"), "{args:?}: {said}");
    }
    assert_eq!(folder.text("upstreams.json"), "{ \"upstreams\": { \"a\": {} } }");
    assert_eq!(folder.names(), ["shop.json", "upstreams.json"]);
}

#[test]
fn upstream_that_cannot_be_asked_is_not_written() {
    let folder = Folder::new();
    for args in [
        &["--command", "/no/such/program --stdio"][..],
        &["--url", "http://127.0.0.1:9/mcp"],
        &["--openapi", "http://127.0.0.1:9/x.json"],
    ] {
        let (code, said) = folder.init(args);
        assert_eq!(code, Some(1), "{args:?}: {said}");
        assert!(said.contains("could not be asked for its") && said.contains("nothing was written"), "{args:?}: {said}");
        assert!(said.contains("with `--offline`, init writes the config"), "{args:?}: {said}");
    }
    assert_eq!(folder.names(), ["shop.json"]);
    let (code, said) = folder.init(&["--command", "/no/such/program --stdio", "--tools", "a,b", "--offline"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(folder.text("upstreams.json").contains(r#""include_tools": ["a", "b"]"#));
    assert_eq!(folder.names(), ["shop.json", "upstreams.json"], "nothing is pinned");
}

#[test]
fn package_without_a_version_is_pinned_as_import_pins_it() {
    let folder = Folder::new();
    let command = ["--command", "npx -y @scope/server-files .", "--offline", "--output"];
    let (code, said) = folder.init(&[&command[..], &["unpinned.json"]].concat());
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("warning[PTC0216]: `@scope/server-files` has no fixed version, and none is on this machine"), "{said}");
    let package = folder.path().join("home/_npx/1/node_modules/@scope/server-files");
    fs::create_dir_all(&package).unwrap();
    fs::write(package.join("package.json"), "{ \"version\": \"2.1.0\" }").unwrap();
    let (code, said) = folder.init(&[&command[..], &["pinned.json"]].concat());
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("PTC0216"), "{said}");
    let config = folder.text("pinned.json");
    for part in [
        "    \"files\": {\n",
        "// `@scope/server-files` was named without a version; 2.1.0 is the newest version in the cache of npx\n",
        r#""args": ["-y", "@scope/server-files@2.1.0", "."]"#,
        r#""cd": ".""#,
        r#""handshake_timeout_ms": 120000"#,
    ] {
        assert!(config.contains(part), "{part} in {config}");
    }
}

#[test]
fn secrets_are_named_and_never_written() {
    let folder = Folder::new();
    let secret = "ghp_0000aaaa1111bbbb2222cccc3333";
    let (code, said) = folder.init(&["--url", "https://boards.example.com/mcp", "--offline", "--credential-env", secret]);
    assert!(code == Some(2) && !said.contains(secret) && said.contains("the secret itself is never written"), "{said}");
    assert_eq!(folder.names(), ["shop.json"]);
    let line = format!("boards-server --token={secret}");
    let (code, said) = folder.init(&["--command", &line, "--offline"]);
    assert_eq!(code, Some(0), "{said}");
    let config = folder.text("upstreams.json");
    assert!(!said.contains(secret) && !config.contains(secret), "{said}{config}");
    assert!(config.contains("\"${BOARDS_TOKEN}\""), "{config}");
}

#[test]
fn credentials_are_sent_as_the_option_says() {
    let folder = Folder::new();
    for (how, sent) in [
        (None, r#""auth": [{ "scheme": "bearer", "binding": "boards-token" }]"#),
        (Some("basic"), r#""auth": [{ "scheme": "basic", "binding": "boards-user-password" }]"#),
        (
            Some("header:X-Key"),
            r#""auth": [{ "scheme": "api_key", "binding": "boards-token", "in": "header", "name": "X-Key" }]"#,
        ),
        (Some("query:key"), r#""auth": [{ "scheme": "api_key", "binding": "boards-token", "in": "query", "name": "key" }]"#),
    ] {
        let args = ["--url", "https://mcp.boards.example/mcp", "--offline", "--force", "--credential-env", "BOARDS_KEY"];
        let as_option: Vec<&str> = how.iter().flat_map(|how| ["--credential-as", how]).collect();
        let (code, said) = folder.init(&[&args[..], &as_option].concat());
        assert_eq!(code, Some(0), "{how:?}: {said}");
        let config = folder.text("upstreams.json");
        assert!(config.contains(sent) && config.contains(r#"{ "source": "env", "var": "BOARDS_KEY" }"#), "{how:?}: {config}");
    }
    let (code, said) = folder.init(&["--command", "boards-server", "--offline", "--force", "--credential-env", "BOARDS_KEY"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(folder.text("upstreams.json").contains(r#""env": { "BOARDS_KEY": "${BOARDS_KEY}" }"#));
}

#[test]
fn paths_lead_from_the_folder_of_the_config() {
    let folder = Folder::new();
    let (code, said) = folder.init(&["--openapi", "shop.json", "--output", "configs/shop.json"]);
    assert_eq!(code, Some(0), "{said}");
    let document = folder.path().canonicalize().unwrap().join("shop.json");
    assert!(folder.text("configs/shop.json").contains(document.to_str().unwrap()), "{}", folder.text("configs/shop.json"));
}
