//! `diff` and `--check --locked` agree about whether a lock file is stale, for the same pairs of documents and configs.

#![expect(clippy::unwrap_used, reason = "a test stops where anything is wrong")]

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A config of two operations.
const CONFIG: &str = r#"{"upstreams": {"shop": {"transport": "openapi", "base_url": "https://shop.test",
    "schema_file": "shop.json", "include_operations": ["list", "show"]}}}"#;

/// A document whose result schema is close to the size at which schemas are cut, so that counted white space would cut it.
fn document() -> String {
    let mut members = String::new();
    for at in 0..90 {
        write!(members, r#""member_{at:03}":{{"type":"string","enum":["first of {at}","second","third"]}},"#).unwrap();
    }
    let list = format!(
        r#"{{"operationId":"list","summary":"Lists.","parameters":[{{"name":"q","in":"query","schema":{{"type":"string"}}}}],
            "responses":{{"200":{{"description":"","content":{{"application/json":{{"schema":{{"type":"object",
            "properties":{{{members}"last":{{"type":"integer"}}}}}}}}}}}}}}}}"#
    );
    let other = |id: &str| format!(r#"{{"operationId":"{id}","responses":{{"204":{{"description":""}}}}}}"#);
    format!(
        r#"{{"openapi":"3.1.0","info":{{"title":"Shop","version":"1"}},"paths":{{"/list":{{"get":{list}}},"/show":{{"get":{}}},
            "/other":{{"get":{}}}}}}}"#,
        other("show"),
        other("other")
    )
}

fn spaced(text: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(text).unwrap();
    serde_json::to_string_pretty(&value).unwrap().replace("  ", "        ").replace(": ", "  :   ")
}

fn compile(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ptc-compile")).args(args).current_dir(folder).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Pins `old`, then replaces it. Returns what `diff` and `--check --locked` print.
fn compare(config: &str, document: &str) -> (Output, Output) {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("upstreams.json", CONFIG);
    write("shop.json", &self::document());
    let pinned = compile(folder.path(), &["update", "upstreams.json"]);
    assert!(pinned.status.success(), "{}", stderr(&pinned));
    write("upstreams.json", config);
    write("shop.json", document);
    write("moved.json", document);
    let diff = compile(folder.path(), &["diff", "upstreams.json", "--format", "short"]);
    let check = compile(folder.path(), &["upstreams.json", "--check", "--locked", "--format", "short"]);
    (diff, check)
}

#[test]
fn diff_and_locked_check_agree() {
    let plain = document();
    let pairs: &[(&str, String, String, bool)] = &[
        ("nothing", CONFIG.to_owned(), plain.clone(), false),
        ("white space", CONFIG.to_owned(), spaced(&plain), false),
        ("another path", CONFIG.replace("shop.json", "moved.json"), plain.clone(), false),
        ("an operation that is not included", CONFIG.to_owned(), plain.replace("/other", "/another"), false),
        ("the version of the document", CONFIG.to_owned(), plain.replace(r#""version":"1""#, r#""version":"2""#), false),
        ("the title of the document", CONFIG.to_owned(), plain.replace(r#""title":"Shop""#, r#""title":"Store""#), true),
        ("a description", CONFIG.to_owned(), plain.replace("Lists.", "Lists all."), true),
        ("a result", CONFIG.to_owned(), plain.replace(r#""last""#, r#""least""#), true),
        ("an argument", CONFIG.to_owned(), plain.replace(r#""name":"q""#, r#""name":"query""#), true),
        ("a new operation", CONFIG.replace(r#""show""#, r#""show", "other""#), plain.clone(), true),
        ("one operation less", CONFIG.replace(r#", "show""#, ""), plain.clone(), true),
        ("a removed operation", CONFIG.to_owned(), plain.replace(r#""operationId":"show""#, r#""operationId":"view""#), true),
    ];
    for (what, config, document, is_drift) in pairs {
        let (diff, check) = compare(config, document);
        let shown = format!("{what}\n{}{}", stderr(&diff), stderr(&check));
        assert_eq!(diff.status.code(), Some(i32::from(*is_drift)), "{shown}");
        assert_eq!(check.status.code(), Some(i32::from(*is_drift)), "{shown}");
        assert_eq!(stderr(&diff).ends_with("nothing changed\n"), !is_drift, "{shown}");
    }
}

/// Asserts that `diff` and `--check --locked` find drift, or that both find none.
fn assert_agreement(folder: &Path, what: &str, is_drift: bool) {
    let diff = compile(folder, &["diff", "upstreams.json", "--format", "short"]);
    let check = compile(folder, &["upstreams.json", "--check", "--locked", "--format", "short"]);
    let shown = format!("{what}\n{}{}", stderr(&diff), stderr(&check));
    assert_eq!(diff.status.code(), Some(i32::from(is_drift)), "diff of {shown}");
    assert_eq!(check.status.code(), Some(i32::from(is_drift)), "check of {shown}");
    assert_eq!(stderr(&diff).ends_with("nothing changed\n"), !is_drift, "{shown}");
}

/// Serves a file over HTTP until the process ends. Returns its URL.
fn serve(path: PathBuf) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/shop.json", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let request = BufReader::new(stream.try_clone().unwrap());
            let _head = request.lines().map_while(Result::ok).take_while(|line| !line.is_empty()).count();
            let text = fs::read_to_string(&path).unwrap();
            // A client that has disconnected is not an error.
            let _ = write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}", text.len());
        }
    });
    url
}

/// `--check` contacts nothing, so that both can only agree about changes of the config, and about documents that say the same.
#[test]
fn diff_and_locked_check_agree_about_a_schema_url() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let plain = document();
    write("shop.json", &plain);
    let url = serve(folder.path().join("shop.json"));
    let config =
        CONFIG.replace(r#""schema_file": "shop.json""#, &format!(r#""schema_url": "{url}", "allow_insecure_http": true"#));
    write("upstreams.json", &config);
    let pinned = compile(folder.path(), &["update", "upstreams.json"]);
    assert!(pinned.status.success(), "{}", stderr(&pinned));
    for (what, config, document, is_drift) in [
        ("nothing", config.clone(), plain.clone(), false),
        ("white space", config.clone(), spaced(&plain), false),
        ("an operation that is not included", config.clone(), plain.replace("/other", "/another"), false),
        ("a new operation", config.replace(r#""show""#, r#""show", "other""#), plain.clone(), true),
        ("one operation less", config.replace(r#", "show""#, ""), plain.clone(), true),
    ] {
        write("upstreams.json", &config);
        write("shop.json", &document);
        assert_agreement(folder.path(), what, is_drift);
    }
}

#[test]
fn diff_and_locked_check_agree_about_an_mcp_catalog() {
    const GRANTED: &str = r#"{"upstreams": {"shop": {"transport": "mcp_stdio", "command": "sh", "args": ["server.sh"], "cd": ".",
        "include_tools": ["list", "show"]}}}"#;
    const TOOLS: &str = r#"{"tools":[{"name":"list","description":"Lists.","inputSchema":{"type":"object"}},{"name":"show","inputSchema":{"type":"object"}},{"name":"other","inputSchema":{"type":"object"}}]}"#;
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("server.sh", include_str!("../../fixtures/shop.sh"));
    write("tools.json", &format!("{TOOLS}\n"));
    write("upstreams.json", GRANTED);
    let pinned = compile(folder.path(), &["update", "upstreams.json"]);
    assert!(pinned.status.success(), "{}", stderr(&pinned));
    let spaced = TOOLS.replace(':', " :  ").replace(',', " , ");
    let sorted = TOOLS.replace(r#""name":"list","description":"Lists.""#, r#""description":"Lists.","name":"list""#);
    for (what, config, tools, is_drift) in [
        ("nothing", GRANTED.to_owned(), TOOLS.to_owned(), false),
        ("white space", GRANTED.to_owned(), spaced, false),
        ("the order of members", GRANTED.to_owned(), sorted, false),
        ("a tool that is not granted", GRANTED.to_owned(), TOOLS.replace("other", "another"), false),
        ("a new tool", GRANTED.replace(r#""show""#, r#""show", "other""#), TOOLS.to_owned(), true),
        ("one tool less", GRANTED.replace(r#", "show""#, ""), TOOLS.to_owned(), true),
        ("all tools", GRANTED.replace(r#""include_tools": ["list", "show"]"#, r#""description": """#), TOOLS.to_owned(), true),
    ] {
        write("upstreams.json", &config);
        write("tools.json", &format!("{tools}\n"));
        assert_agreement(folder.path(), what, is_drift);
    }
}

#[test]
fn stale_lock_names_the_operation_and_the_command() {
    let (_, check) = compare(&CONFIG.replace(r#""show""#, r#""show", "other""#), &document());
    let shown = stderr(&check);
    assert!(shown.contains("now has `other`, which is not in the lock file"), "{shown}");
    assert!(shown.contains("`ptc-compile update upstreams.json shop`"), "{shown}");
}

#[test]
fn removed_operation_does_not_hide_other_changes() {
    let changed = document().replace(r#""operationId":"show""#, r#""operationId":"view""#).replace("Lists.", "Lists all.");
    let (diff, _) = compare(CONFIG, &changed);
    let shown = stderr(&diff);
    for expected in ["PTC0512", "`show` is gone", "`list` has another description", "2 tools changed"] {
        assert!(shown.contains(expected), "should contain {expected}:\n{shown}");
    }
}
