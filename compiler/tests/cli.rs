//! Tests `ptc-compile` as a process: exit codes, streams and formats.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

#[cfg(unix)]
use ptc_compiler::lock::{self, Lock, LockedUpstream};

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ptc-compile"))
        .args(args)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/check"))
        .env_remove("NO_COLOR")
        .output()
        .expect("ptc-compile can be started")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is UTF-8")
}

/// A file that is deleted when the test ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, content: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("ptc-cli-{}-{name}", std::process::id()));
        fs::write(&path, content).expect("a scratch file can be written");
        Scratch(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("scratch paths are UTF-8")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn exit_codes_distinguish_success_findings_and_failure() {
    let utf16 = Scratch::new("utf16.json", b"\xff\xfe{\0}\0");
    let latin1 = Scratch::new("latin1.json", b"{ \"upstreams\": { \"gr\xf6\xdfe\": {} } }");
    // The file is sparse, so that it takes no disk space, and it is never read.
    let endless = Scratch::new("endless.json", b"");
    let sparse = fs::File::options().write(true).open(endless.path()).and_then(|file| file.set_len((1 << 30) + 1));
    sparse.expect("a file can have a hole");
    let cases: &[(&[&str], i32, &str)] = &[
        (&["--check", endless.path()], 1, "error[PTC0104]: `"),
        (&["diff", endless.path()], 2, "there is no lock file"),
        (&["update", endless.path()], 1, "is larger than 1 GiB, the most that is read"),
        (&["--check", "good_minimal/upstreams.json"], 0, "no faults in 1 upstream"),
        (&["--check", "shape_repeated_items/upstreams.json"], 0, "found 2 warnings"),
        (&["--check", "--deny-warnings", "shape_repeated_items/upstreams.json"], 1, "found 2 warnings"),
        (&["--check", "json_empty_file/upstreams.json"], 1, "found 1 error"),
        (&["--check", "no-such-file.json"], 2, "cannot read `no-such-file.json`"),
        (&["--check", "good_minimal"], 2, "help: name a file in it, such as `good_minimal/upstreams.json`"),
        (&["--check", latin1.path()], 2, "byte 20 is not UTF-8"),
        (&["--check", utf16.path()], 2, "it is UTF-16"),
        (&[], 2, "<CONFIG>"),
        (&["--no-such-option"], 2, "--no-such-option"),
        (&["operations", "good_openapi/shop.openapi.json", "--base-url", "shop"], 2, "a URL starts with `https://`"),
        (&["--runtime-source", "registry", "good_minimal/upstreams.json"], 2, "[possible values: workspace, embedded]"),
        (&["--check", "good_minimal/upstreams.json", "other.json"], 2, "one config at a time"),
        (&["--check", "--check", "good_minimal/upstreams.json"], 2, "cannot be used multiple times"),
        (&["--check", "--eval", "1", "good_minimal/upstreams.json"], 2, "--eval"),
        (&["explain", "PTC9999"], 2, "there is no diagnostic code `PTC9999`"),
        (&["--help"], 0, ""),
        (&["--version"], 0, ""),
        (&["explain"], 0, ""),
        (&["viewr", "traces"], 2, "did you mean `ptc-compile viewer`?"),
        (&["chek-program"], 2, "did you mean `ptc-compile check-program`?"),
        (&["no-such-file.json"], 2, "cannot read `no-such-file.json`"),
        (&["help"], 0, ""),
        (&["help", "repl"], 0, ""),
        (&["version"], 0, ""),
    ];
    for (args, code, message) in cases {
        let output = run(args);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(*code), "{args:?}: {stderr}");
        assert!(stderr.contains(message), "{args:?} should say `{message}`, said: {stderr}");
    }
}

#[test]
fn findings_are_written_to_stderr_and_json_to_stdout() {
    let full = run(&["--check", "credentials_unresolved/upstreams.json"]);
    assert!(full.stdout.is_empty());
    assert!(text(&full.stderr).contains(" --> credentials_unresolved/upstreams.json:10:42\n"), "{}", text(&full.stderr));

    let json = run(&["--check", "--format", "json", "credentials_unresolved/upstreams.json"]);
    assert!(json.stderr.is_empty(), "{}", text(&json.stderr));
    let stdout = text(&json.stdout);
    let first: serde_json::Value = serde_json::from_str(stdout.lines().next().expect("one line a finding")).expect("JSON");
    assert_eq!(first["code"], "PTC0304");
    assert_eq!(first["at"]["path"], "credentials_unresolved/upstreams.json");
    assert_eq!((&first["at"]["line"], &first["at"]["column"]), (&10.into(), &42.into()));
    assert_eq!(first["hints"][0], "did you mean `github-token`?");
}

/// `run` and `repl` leave their flags to the runtime, but they report findings like the other commands.
#[test]
fn run_and_repl_report_findings_in_the_requested_format() {
    let config = "credentials_unresolved/upstreams.json";
    for command in ["run", "repl"] {
        let plain = run(&[command, config]);
        assert_eq!((plain.status.code(), text(&plain.stdout).as_str()), (Some(1), ""));
        assert!(text(&plain.stderr).contains("PTC0304") && !text(&plain.stderr).contains('\u{1b}'), "{}", text(&plain.stderr));
        let colored = run(&[command, config, "--color", "always"]);
        assert!(text(&colored.stderr).contains("\u{1b}["), "{command}: {}", text(&colored.stderr));
        assert_eq!(text(&run(&[command, "--version"]).stdout), text(&run(&["--version"]).stdout));
    }
    let json = run(&["repl", config, "--json"]);
    assert_eq!((json.status.code(), text(&json.stderr).as_str()), (Some(1), ""));
    let first: serde_json::Value = serde_json::from_str(text(&json.stdout).lines().next().expect("a finding")).expect("JSON");
    assert_eq!(first["code"], "PTC0304");
    // A program's fault is coloured like a finding, its value like source text.
    let colored = run(&["repl", "--color", "always", "-e", "{:a \"z\"}", "-e", "(nope)"]);
    assert!(
        text(&colored.stdout).contains("\u{1b}[32m\"z\"") && text(&colored.stderr).contains("\u{1b}[1;31merror:"),
        "{colored:?}"
    );
    let plain = run(&["repl", "--color", "never", "-e", "{:a \"z\"}", "-e", "(nope)"]);
    assert!(![plain.stdout, plain.stderr].iter().any(|stream| text(stream).contains('\u{1b}')));
}

#[test]
fn colours_of_the_command_line_itself_follow_the_option() {
    for (args, colored) in [
        (&["--color", "always", "--nope"][..], true),
        (&["--color=never", "--nope"], false),
        (&["--nope"], false),
        (&["--color", "always", "viewr"], true),
    ] {
        let said = text(&run(args).stderr);
        assert_eq!(said.contains("\u{1b}["), colored, "{args:?}: {said}");
    }
}

#[test]
fn version_is_printed_as_json_on_request() {
    assert_eq!(text(&run(&["version"]).stdout), text(&run(&["--version"]).stdout));
    let told: serde_json::Value = serde_json::from_slice(&run(&["version", "--json"]).stdout).expect("JSON");
    assert_eq!(told["name"], "ptc-compile");
    assert!(told["runtime_digest"].as_str().is_some_and(|digest| digest.len() == "sha256:".len() + 64), "{told}");
}

#[test]
fn help_fits_the_width_of_a_terminal() {
    let commands = text(&run(&["--help"]).stdout);
    let commands = commands.split_once("Commands:").expect("a list").1.split_once("\n\n").expect("it ends").0;
    let names = commands.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names: Vec<&str> = names.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.contains(&"repl") && names.contains(&"version"), "{names:?}");
    for name in names {
        let help = text(&run(&["help", name]).stdout);
        assert_eq!(help, text(&run(&[name, "--help"]).stdout));
        assert!(!help.is_empty() && help.lines().all(|line| line.chars().count() <= 100), "{name}: {help}");
    }
}

#[test]
fn sarif_log_has_locations_and_rules() {
    let output = run(&["--check", "--format", "sarif", "credentials_unresolved/upstreams.json"]);
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(1), ""));
    let log: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(log["version"], "2.1.0");
    let scan = &log["runs"][0];
    let result = &scan["results"][0];
    assert_eq!((&result["ruleId"], &result["level"]), (&"PTC0304".into(), &"error".into()));
    assert!(result["message"]["text"].as_str().is_some_and(|text| text.contains("help: did you mean `github-token`?")));
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "credentials_unresolved/upstreams.json");
    assert_eq!((&place["region"]["startLine"], &place["region"]["startColumn"]), (&10.into(), &42.into()));
    let rules: Vec<&serde_json::Value> =
        scan["tool"]["driver"]["rules"].as_array().expect("rules").iter().map(|rule| &rule["id"]).collect();
    assert!(rules.contains(&&"PTC0304".into()), "{rules:?}");
    // A run without findings writes a log too, because an upload without results closes old findings.
    let clean = run(&["--check", "--format", "sarif", "good_openapi/upstreams.json"]);
    let log: serde_json::Value = serde_json::from_slice(&clean.stdout).expect("JSON");
    assert_eq!(log["runs"][0]["results"], serde_json::json!([]));
}

#[test]
fn github_format_writes_annotations() {
    let output = run(&["--check", "--format", "github", "credentials_unresolved/upstreams.json"]);
    let stdout = text(&output.stdout);
    let first = stdout.lines().next().expect("one line a finding");
    assert!(
        first.starts_with("::error file=credentials_unresolved/upstreams.json,line=10,endLine=10,col=42,")
            && first.contains("%0Ahelp: "),
        "{first}"
    );
}

#[test]
fn list_of_operations_has_no_control_characters() {
    let output = run(&["operations", "openapi_hostile_text/shop.openapi.json", "--color", "never"]);
    let listed = text(&output.stdout);
    assert_eq!((listed.lines().count(), listed.contains(['\u{1b}', '\u{202e}'])), (1, false), "{listed}");
    assert!(listed.starts_with("list\\u{1b}[31mOrders\\n"), "{listed}");
}

#[test]
fn operations_are_listed_with_reasons_and_filters() {
    const SHOP: &str = "good_openapi_patterns/shop.openapi.json";
    let all = text(&run(&["operations", SHOP]).stdout);
    assert!(all.contains("listOrders   as list-orders"), "{all}");
    assert!(all.contains("getInvoice   as get-invoice"), "an answer of any type can be read:\n{all}");
    assert!(all.contains("listItems    no: PTC0524 an earlier operation is exposed as `list-items` too"), "{all}");
    assert!(all.contains("GET /health  as get-health"), "{all}");
    assert!(!all.contains("createOrder"), "only reads, unless asked for more:\n{all}");
    let writes = text(&run(&["operations", SHOP, "--all-methods", "--match", "createOrder"]).stdout);
    assert_eq!(writes, "createOrder  as create-order (needs `allow_writes` and its exact name)\n");
    for (filter, ids) in [
        (vec!["--tag", "items"], vec!["list_items", "listItems"]),
        (vec!["--path", "/orders/{id}"], vec!["getOrder", "getInvoice"]),
        (vec!["--match", "INVOICE"], vec!["getInvoice"]),
        (vec!["--refused", "--all-methods"], vec!["listItems"]),
        (vec!["--usable", "--tag", "orders"], vec!["listOrders", "getOrder", "getInvoice"]),
    ] {
        let output = run(&[vec!["operations", SHOP, "--format", "json"], filter.clone()].concat());
        let stdout = text(&output.stdout);
        let lines: Vec<serde_json::Value> =
            stdout.lines().map(|line| serde_json::from_str(line).expect("each line is one JSON object")).collect();
        let found: Vec<&str> = lines.iter().filter_map(|line| line["operationId"].as_str()).collect();
        assert_eq!(found, ids, "{filter:?}");
    }
}

#[test]
fn operations_lists_reads_of_every_method_and_marks_writes() {
    let operation = serde_json::json!({ "responses": { "200": { "description": "ok" } } });
    let methods = ["get", "head", "options", "query", "put", "delete"];
    let item: serde_json::Map<_, _> = methods.iter().map(|method| ((*method).to_owned(), operation.clone())).collect();
    let document = serde_json::json!({ "openapi": "3.1.0", "info": { "title": "t", "version": "1" }, "paths": { "/a": item } });
    let document = Scratch::new("methods.openapi.json", document.to_string().as_bytes());
    let listed = |more: &[&str]| text(&run(&[&["operations", document.path()], more].concat()).stdout);
    let reads = ["GET /a      as get-a", "HEAD /a     as head-a", "OPTIONS /a  as options-a", "QUERY /a    as query-a"];
    assert_eq!(listed(&[]).lines().collect::<Vec<_>>(), reads);
    let all = listed(&["--all-methods"]);
    let writes: Vec<&str> = all.lines().filter(|line| line.ends_with("(needs `allow_writes` and its exact name)")).collect();
    assert_eq!((all.lines().count(), writes.len()), (6, 2), "{all}");
    assert!(writes.iter().all(|line| line.starts_with("DELETE") || line.starts_with("PUT")), "{all}");
}

/// Runs `ptc-compile` in the quickstart's folder.
fn quickstart(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ptc-compile"))
        .args(args)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/quickstart"))
        .output()
        .expect("ptc-compile can be started")
}

#[test]
fn programs_are_checked_against_the_frozen_catalog() {
    let good = quickstart(&["check-program", "upstreams.json", "due.clj"]);
    let stderr = text(&good.stderr);
    assert_eq!(good.status.code(), Some(0), "{stderr}");
    assert!(stderr.contains("at most 3 upstream calls, ") && stderr.ends_with("no faults in 1 program\n"), "{stderr}");
    let unchecked = Scratch::new("unchecked.clj", b"(map :id (:value (tool/call {:server \"petstore\" :tool \"list-pets\"})))");
    let output = quickstart(&["check-program", "upstreams.json", unchecked.path(), "--format", "short"]);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "a warning: {stderr}");
    for said in
        ["1:10: warning[PTC0805]: the value of petstore/list-pets is used", "note[PTC0806]: at most 1 upstream call, read-only"]
    {
        assert!(stderr.contains(said), "should say `{said}`:\n{stderr}");
    }
    let program = "(let [a (tool/call {:server \"petstor\" :tool \"get-pet\"})\n      b (tool/call {:server \"petstore\" :tool \"get-pet\" :args {}})]\n  [a b])\n";
    let wrong = Scratch::new("wrong.clj", program.as_bytes());
    let taken = Scratch::new("taken.clj", b"(map :id (:pets (tool/call {:server \"petstore\" :tool \"list-pets\"})))");
    let output = quickstart(&["check-program", "upstreams.json", taken.path(), "--format", "short"]);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("1:10: error[PTC0809]: the result of petstore/list-pets has no 'pets'"), "{stderr}");
    let broken = Scratch::new("broken.clj", b"(map inc [1 2]");
    let output = quickstart(&["check-program", "upstreams.json", wrong.path(), broken.path(), "--format", "short"]);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    for said in [
        "wrong.clj:1:29: error[PTC0802]: no upstream 'petstor' configured (did you mean 'petstore'?)",
        "wrong.clj:2:62: error[PTC0802]: tool 'petstore.get-pet' rejected args: missing required args",
        "broken.clj:1:",
        "error[PTC0801]: ",
        "found 3 errors",
    ] {
        assert!(stderr.contains(said), "should say `{said}`:\n{stderr}");
    }
}

#[cfg(unix)]
#[test]
fn upstream_that_links_to_the_compiler_is_detected() {
    let folder = std::env::temp_dir().join(format!("ptc-cli-{}-links", std::process::id()));
    fs::create_dir_all(&folder).expect("a scratch folder");
    for (link, to) in [("notes", "inner"), ("inner", env!("CARGO_BIN_EXE_ptc-compile"))] {
        std::os::unix::fs::symlink(to, folder.join(link)).expect("a link");
    }
    let config = folder.join("upstreams.json");
    for command in ["./notes", "notes"] {
        let text = format!(r#"{{"upstreams": {{"notes": {{"transport": "mcp_stdio", "command": "{command}"}}}}}}"#);
        fs::write(&config, text).expect("a config");
        let output = Command::new(env!("CARGO_BIN_EXE_ptc-compile"))
            .args(["--check", "--format", "short"])
            .arg(&config)
            .env("PATH", &folder)
            .output()
            .expect("ptc-compile can be started");
        let stderr = self::text(&output.stderr);
        assert!(stderr.contains("error[PTC0214]: the upstream `notes` is ptc-compile itself"), "{command}: {stderr}");
    }
    fs::remove_dir_all(&folder).expect("the scratch folder can be removed");
}

/// Makes a folder for a test, with a config in it.
#[cfg(unix)]
fn folder_with(name: &str, config: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("ptc-cli-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).expect("a scratch folder");
    fs::write(folder.join("upstreams.json"), config).expect("a config");
    folder
}

#[cfg(unix)]
#[test]
fn command_is_looked_up_in_the_path_variable_of_its_entry() {
    let folder = folder_with("own-path", "{}");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_ptc-compile"), folder.join("notes")).expect("a link");
    let entry =
        format!(r#"{{"transport": "mcp_stdio", "command": "notes", "env": {{"PATH": "{}:${{PATH}}"}}}}"#, folder.display());
    fs::write(folder.join("upstreams.json"), format!(r#"{{"upstreams": {{"notes": {entry}}}}}"#)).expect("a config");
    let output = run(&["--check", "--format", "short", folder.join("upstreams.json").to_str().expect("UTF-8")]);
    fs::remove_dir_all(&folder).expect("the scratch folder can be removed");
    let stderr = text(&output.stderr);
    assert!(stderr.contains("error[PTC0214]: the upstream `notes` is ptc-compile itself"), "{stderr}");
}

#[cfg(unix)]
#[test]
fn relative_command_is_also_looked_up_beside_the_binary() {
    let config = r#"{"upstreams": {"notes": {"transport": "mcp_stdio", "command": "./gate"}}}"#;
    let folder = folder_with("beside", config);
    let output = Command::new(env!("CARGO_BIN_EXE_ptc-compile"))
        .args(["--check", "--format", "short", "upstreams.json", "-o", "bin/gate"])
        .current_dir(&folder)
        .output()
        .expect("ptc-compile can be started");
    fs::remove_dir_all(&folder).expect("the scratch folder can be removed");
    let stderr = text(&output.stderr);
    assert!(stderr.contains("error[PTC0214]: the upstream `notes` is the binary that is being built"), "{stderr}");
}

#[cfg(unix)]
#[test]
fn finding_of_a_build_shows_no_adjacent_secret() {
    const SECRET: &str = "fake-but-secret-9313";
    let config = format!(
        r#"{{"credentials": {{"key": {{"source": "literal", "value": "{SECRET}"}}}}, "upstreams": {{"notes": {{"transport": "mcp_stdio", "command": "./target/ptc/clinic"}}, "web": {{"transport": "openapi", "base_url": "https://web.example", "schema_file": "web.json", "include_operations": ["a"], "auth": [{{"scheme": "bearer", "binding": "key"}}]}}}}}}"#
    );
    let folder = folder_with("secret", "");
    let document = r#"{"openapi": "3.0.3", "info": {"title": "t", "version": "1"}, "paths": {"/a": {"get": {"operationId": "a",
        "responses": {"200": {"description": "a", "content": {"application/json": {}}}}}}}}"#;
    let mut lock = Lock::default();
    let notes = LockedUpstream { transport: "mcp_stdio".into(), all_tools: true, ..LockedUpstream::default() };
    lock.upstreams.insert("notes".into(), notes);
    let lock = lock::write::write(&lock);
    for (name, text) in [("web.json", document), ("clinic.json", &config), ("clinic.lock.json", &lock)] {
        fs::write(folder.join(name), text).expect("a file");
    }
    let output = Command::new(env!("CARGO_BIN_EXE_ptc-compile"))
        .args(["clinic.json", "--offline", "--runtime-source", "embedded"])
        .current_dir(&folder)
        .env("PTC_COMPILE_CACHE", folder.join("cache"))
        .output()
        .expect("ptc-compile can be started");
    fs::remove_dir_all(&folder).expect("the scratch folder can be removed");
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("error[PTC0214]") && stderr.contains("is the binary that is being built"), "{stderr}");
    assert!(!stderr.contains(SECRET), "{stderr}");
}

#[test]
fn missing_secrets_are_reported_without_a_build() {
    let config = Scratch::new(
        "secrets.json",
        br#"{"credentials": {"a": {"source": "env", "var": "PTC_TEST_UNSET"}, "b": {"source": "file", "path": "no-such-secret"}},
             "upstreams": {"web": {"transport": "mcp_http", "url": "https://example.com/mcp",
               "auth": [{"scheme": "bearer", "binding": "a"}, {"scheme": "api_key", "header": "X-Key", "binding": "b"}]},
               "own": {"transport": "mcp_stdio", "command": "a", "env": {"X": "${PTC_TEST_UNSET_TOO}"}}}}"#,
    );
    assert_eq!(run(&["--check", config.path()]).status.code(), Some(0), "nothing is wrong with the config itself");
    let output = run(&["--check", "--check-env", "--format", "short", config.path()]);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert_eq!(stderr.matches("error[PTC0315]").count(), 3, "{stderr}");
    for name in ["PTC_TEST_UNSET,", "PTC_TEST_UNSET_TOO", "no-such-secret"] {
        assert!(stderr.contains(name.trim_end_matches(',')), "{name}: {stderr}");
    }
}

#[test]
fn offline_commands_contact_no_upstream() {
    let folder = folder_with("contact", "");
    let config = r#"{"upstreams": {"notes": {"transport": "mcp_stdio", "command": "touch", "args": ["contacted"]}}}"#;
    fs::write(folder.join("upstreams.json"), config).expect("a file");
    let contacted = |options: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ptc-compile"));
        let output = command.args(["upstreams.json", "--emit", "lock"]).args(options).current_dir(&folder).output();
        let output = output.expect("ptc-compile can be started");
        assert_eq!(output.status.code(), Some(1), "{options:?}: {}", text(&output.stderr));
        assert!(!folder.join("upstreams.lock.json").exists(), "{options:?}");
        (folder.join("contacted").exists(), text(&output.stderr))
    };
    for option in ["--locked", "--offline"] {
        let (contacted, said) = contacted(&[option]);
        assert!(
            !contacted
                && said.contains("there is no lock file `upstreams.lock.json`")
                && said.contains("ptc-compile update upstreams.json"),
            "{said}"
        );
    }
    let (contacted, said) = contacted(&[]);
    assert!(contacted && said.contains("notes"), "it is started where nothing forbids it: {said}");
    fs::remove_dir_all(&folder).expect("the scratch folder can be removed");
}

#[test]
fn signal_ends_processes_that_an_upstream_started() {
    let folder = folder_with("signal", "");
    // The upstream starts a child of its own, as `npx` does, and never completes the handshake.
    let config = r#"{"upstreams": {"notes": {"transport": "mcp_stdio", "command": "sh",
        "args": ["-c", "sleep 1000 & echo $! > grandchild.new; mv grandchild.new grandchild; sleep 1000"]}}}"#;
    fs::write(folder.join("upstreams.json"), config).expect("a file");
    for signal in ["-INT", "-TERM", "-HUP"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ptc-compile"));
        command.args(["update", "upstreams.json"]).current_dir(&folder).stderr(std::process::Stdio::piped());
        let child = command.spawn().expect("ptc-compile can be started");
        while !folder.join("grandchild").exists() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let grandchild = fs::read_to_string(folder.join("grandchild")).expect("a process");
        fs::remove_file(folder.join("grandchild")).expect("it is there");
        let id = child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().expect("kill can be started").success());
        let output = child.wait_with_output().expect("it ends");
        let stderr = text(&output.stderr);
        assert_eq!((output.status.code(), stderr.contains("nothing was written")), (Some(2), true), "{signal}: {stderr}");
        let stat = PathBuf::from(format!("/proc/{}/stat", grandchild.trim()));
        let lives = || fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
        for _ in 0..500 {
            if lives() {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
        }
        assert!(!lives(), "{signal}: what the upstream started lives on");
    }
    fs::remove_dir_all(&folder).expect("the scratch folder can be removed");
}

#[test]
fn intermediate_outputs_of_a_config_can_be_printed() {
    let emitted = |what: &str| {
        let output = quickstart(&["upstreams.json", "--locked", "--offline", "--emit", what]);
        assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""), "{what}");
        text(&output.stdout)
    };
    let lock = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/quickstart/upstreams.lock.json"));
    assert_eq!(emitted("lock"), lock.expect("the quickstart is pinned"));
    let rust = emitted("rust");
    assert!(rust.contains("pub static DEPLOYMENT: ptc::Deployment") && rust.contains("\"get-pet\""), "{rust}");
    let docs = emitted("docs");
    assert!(docs.contains("# petstore\n") && docs.contains("petstore/get-pet"), "{docs}");
    let catalog: serde_json::Value = serde_json::from_str(&emitted("catalog-json")).expect("JSON");
    let upstreams = catalog["upstreams"].as_array().expect("upstreams");
    let petstore = upstreams.iter().find(|upstream| upstream["name"] == "petstore").expect("petstore");
    let pet = petstore["tools"].as_array().and_then(|tools| tools.iter().find(|tool| tool["name"] == "get-pet")).expect("a tool");
    assert_eq!((&pet["operationId"], &pet["args"][0]["required"]), (&"getPet".into(), &true.into()), "{pet}");
}

/// The two processes share only the config and the lock.
#[test]
fn same_lock_gives_the_same_output() {
    for what in ["rust", "args", "docs", "lock", "catalog-json", "html", "container", "k8s"] {
        let emitted = || quickstart(&["upstreams.json", "--locked", "--offline", "--emit", what]);
        let (one, other) = (emitted(), emitted());
        assert!(one.status.success() && !one.stdout.is_empty(), "{what}: {}", text(&one.stderr));
        assert_eq!(one.stdout, other.stdout, "{what}");
    }
}

#[test]
fn printed_schema_is_the_one_that_the_check_uses() {
    let output = run(&["schema"]);
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
    let printed: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(printed, ptc_compiler::config::schema::schema());
}

#[test]
fn prompt_size_above_the_maximum_fails_the_build() {
    let output = quickstart(&["upstreams.json", "--locked", "--offline", "--max-prompt-bytes", "100"]);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("error[PTC0901]: clients would pay ") && stderr.contains(", 100 are allowed"), "{stderr}");

    // A binary with a planner has one more tool, whose size is part of the reported size.
    let number = |text: &str, before: &str| -> u64 {
        let (_, rest) = text.split_once(before).unwrap_or_else(|| panic!("no {before:?} in {text}"));
        let digits: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == ',').filter(|c| *c != ',').collect();
        digits.parse().expect("a number")
    };
    let output = quickstart(&["upstreams.json", "--locked", "--offline", "--agentic", "--max-prompt-bytes", "100"]);
    let with_tasks = text(&output.stderr);
    let (plain, more) = (number(&stderr, "clients would pay "), number(&with_tasks, "whose tool takes "));
    assert!(more > 1000, "{with_tasks}");
    assert_eq!(number(&with_tasks, "clients would pay "), plain + more);
}

#[test]
fn colours_are_written_to_terminals_only_unless_requested() {
    let config = "credentials_unresolved/upstreams.json";
    assert!(!text(&run(&["--check", config]).stderr).contains('\u{1b}'));
    let always = text(&run(&["--check", "--color", "always", config]).stderr);
    assert!(always.contains('\u{1b}'));
    let mut bare = String::new();
    for (at, part) in always.split('\u{1b}').enumerate() {
        bare.push_str(if at == 0 { part } else { part.split_once('m').map_or(part, |(_, rest)| rest) });
    }
    assert_eq!(bare, text(&run(&["--check", "--color", "never", config]).stderr));
}

#[test]
fn explain_accepts_codes_in_common_spellings() {
    for code in ["PTC0204", "ptc0204", "204", "0204"] {
        let output = run(&["explain", code]);
        let stdout = text(&output.stdout);
        assert!(stdout.starts_with("PTC0204 (error): "), "{code}: {stdout}");
        assert!(stdout.contains("## Fix") && stdout.contains("mcp_stdio"), "{code}: {stdout}");
        assert!(output.stderr.is_empty());
    }
}
