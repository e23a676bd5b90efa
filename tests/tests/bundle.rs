//! Tests desktop bundles and their entries in the MCP registry with real binaries, and with the schemas and the code of their
//! publishers.
#![expect(clippy::indexing_slicing, reason = "a test stops where an answer lacks what it looks at")]

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use ptc_compiler::lock::{self, Lock, LockedUpstream};
use ptc_tests::deployment::{prebuilt_runtime, ptc_compile};
use ptc_tests::mcp::Client;
use ptc_tests::peers::{node_script, npm_file, npm_program, python_script, registry_schema};
use ptc_tests::process::{Finished, run};
use serde_json::{Value, json};
use zip::ZipArchive;

const TOKEN: &str = "a-token-of-this-test";

/// Writes a config with a credential and a variable, and its lock file.
fn config(folder: &Path) -> PathBuf {
    let config = json!({
        "name": "shop",
        "credentials": { "token": { "source": "env", "var": "SHOP_TOKEN" } },
        "upstreams": {
            "files": { "transport": "mcp_stdio", "command": "npx", "args": ["-y", "files@1.2.3"], "env": { "MODE": "${FILES_MODE}" } },
            "shop": { "transport": "mcp_http", "url": "https://shop.example/mcp", "auth": [{ "scheme": "bearer", "binding": "token" }] },
        },
        "programs": { "due": { "file": "due.clj", "description": "What is due." } },
    });
    std::fs::write(folder.join("due.clj"), "(+ 1 2)").expect("a program");
    let path = folder.join("upstreams.json");
    std::fs::write(&path, config.to_string()).expect("a config");
    let mut pinned = Lock::default();
    for (name, transport) in [("files", "mcp_stdio"), ("shop", "mcp_http")] {
        let none = LockedUpstream { transport: transport.into(), all_tools: true, ..LockedUpstream::default() };
        pinned.upstreams.insert(name.to_owned(), none);
    }
    std::fs::write(folder.join("upstreams.lock.json"), lock::write::write(&pinned)).expect("a lock file");
    path
}

/// Runs `ptc-compile` with the options of an output.
fn emit(config: &Path, options: &[&str]) -> Finished {
    run(Command::new(ptc_compile()).arg(config).args(["--locked", "--offline", "--emit"]).args(options))
}

/// Writes a bundle and returns its path.
fn bundle(config: &Path, name: &str, options: &[&str]) -> PathBuf {
    prebuilt_runtime();
    let output = config.with_file_name(name);
    let path = output.to_str().expect("a path of plain text");
    emit(config, &[&["mcpb", "--output", path][..], options].concat()).success();
    output
}

/// Writes the files of a bundle into a folder, with their permissions. Returns their names in the order of the bundle.
fn unpack(bundle: &Path, folder: &Path) -> Vec<String> {
    let mut zip = ZipArchive::new(std::fs::File::open(bundle).expect("a bundle")).expect("a zip");
    zip.extract(folder).expect("it can be unpacked");
    (0..zip.len()).map(|at| zip.by_index(at).expect("a file").name().to_owned()).collect()
}

fn json_file(path: &Path) -> Value {
    let mut text = String::new();
    std::fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text)).expect("a file of text");
    serde_json::from_str(&text).expect("JSON")
}

/// Starts the server of an unpacked bundle with a client's config, and checks what it offers.
fn offers_its_tools(config: &Value, manifest: &Value, elsewhere: &Path) {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let mut command = Command::new(text(&config["command"]));
    command.args(config["args"].as_array().expect("arguments").iter().map(text)).current_dir(elsewhere);
    command.env_clear().envs(config["env"].as_object().expect("variables").iter().map(|(name, value)| (name, text(value))));
    let mut client = Client::of(&mut command);
    assert_eq!(client.initialize()["serverInfo"]["name"], "shop");
    let listed = client.request("tools/list", &json!({}));
    let names =
        |tools: &Value| -> Vec<String> { tools.as_array().expect("tools").iter().map(|tool| text(&tool["name"])).collect() };
    assert_eq!(names(&listed["result"]["tools"]), names(&manifest["tools"]));
    assert_eq!(names(&manifest["tools"]), ["lisp_eval", "due"]);
    assert!(client.eval("(count (tool/servers))").contains('2'));
    assert_eq!(client.finish(), Some(0));
}

/// Replaces the placeholders of a manifest.
fn replaced(value: &Value, folder: &Path) -> Value {
    let text = value.to_string().replace("${__dirname}", folder.to_str().expect("a path of plain text"));
    let text = text.replace("${user_config.SHOP_TOKEN}", TOKEN).replace("${user_config.FILES_MODE}", "fast");
    assert!(!text.contains("${"), "{text}");
    serde_json::from_str(&text).expect("JSON")
}

/// Writes a bundle with a linker, and starts the server that is in it. Checks which files the bundle contains.
fn unpacked_binary_answers(link: &str, expected: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder");
    let config = config(folder.path());
    let bundle = bundle(&config, "shop.mcpb", &["--link", link]);
    let unpacked = folder.path().join("unpacked");
    assert_eq!(unpack(&bundle, &unpacked), expected);
    let manifest = json_file(&unpacked.join("manifest.json"));
    offers_its_tools(&replaced(&manifest["server"]["mcp_config"], &unpacked), &manifest, folder.path());
    let left: Vec<_> = std::fs::read_dir(folder.path()).expect("a folder").flatten().map(|entry| entry.file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with('.')), "{left:?}");
}

/// The prebuilt runtime of a checkout has no licence texts beside it.
#[test]
#[ignore = "slow: builds a binary"]
fn unpacked_binary_of_a_prebuilt_runtime_answers_a_client() {
    unpacked_binary_answers("prebuilt", &["manifest.json", "server/shop"]);
}

#[test]
#[ignore = "slow: builds a binary"]
fn unpacked_binary_that_cargo_built_answers_a_client() {
    unpacked_binary_answers("rust", &["manifest.json", "server/shop", "NOTICES"]);
}

#[test]
#[ignore = "slow: builds a binary"]
fn equal_inputs_give_equal_bundles() {
    let read = |version: &str| {
        let folder = tempfile::tempdir().expect("a folder");
        let options = ["--link", "prebuilt", "--bundle-version", version];
        std::fs::read(bundle(&config(folder.path()), "shop.mcpb", &options)).expect("it was written")
    };
    let first = read("1.0.0");
    assert!(first == read("1.0.0"));
    assert!(first != read("1.0.1"));
}

#[test]
#[ignore = "slow: builds a binary"]
fn entry_of_another_build_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = config(folder.path());
    let bundle = |name: &str, version: &str| {
        let path = bundle(&config, name, &["--link", "prebuilt", "--bundle-version", version]);
        format!("{}=https://example.com/{name}", path.display())
    };
    let (one, other) = (bundle("one.mcpb", "1.0.0"), bundle("other.mcpb", "2.0.0"));
    let entry = |bundles: &[&str]| {
        let mut options = vec!["server-json", "--registry-name", "io.github.user/shop"];
        options.extend(bundles.iter().flat_map(|bundle| ["--bundle", bundle]));
        emit(&config, &options)
    };
    assert_eq!(entry(&[&one]).code, Some(0));
    let differing = entry(&[&one, &other]);
    assert_eq!(differing.code, Some(2));
    assert!(differing.stderr.contains("have different versions: 1.0.0 and 2.0.0"), "{}", differing.stderr);
    std::fs::write(folder.path().join("due.clj"), "(+ 1 3)").expect("another program");
    let outdated = entry(&[&one]);
    assert_eq!(outdated.code, Some(2));
    assert!(outdated.stderr.contains("was built from another config"), "{}", outdated.stderr);
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn manifest_and_entry_match_the_published_schemas() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = config(folder.path());
    let bundle = bundle(&config, "shop.mcpb", &["--link", "prebuilt", "--bundle-description", "Orders of a shop."]);

    // The tools of the format unpack the bundle and accept its manifest.
    let unpacked = folder.path().join("unpacked");
    run(npm_program("mcpb").arg("unpack").arg(&bundle).arg(&unpacked)).success();
    let path = unpacked.join("manifest.json");
    let validated = run(npm_program("mcpb").arg("validate").arg(&path)).success();
    assert!(validated.contains("validation passes"), "{validated}");
    let schema = npm_file("@anthropic-ai/mcpb/schemas/mcpb-manifest-latest.schema.json");
    assert_eq!(run(python_script("json_schema.py").arg(&schema).arg(&path)).success(), "");

    // A client starts the server if the user has given every value.
    let client = |values: &Value| -> Value {
        let answer = run(node_script("bundle.mjs").arg(&unpacked).arg(values.to_string())).success();
        serde_json::from_str(&answer).expect("JSON")
    };
    assert_eq!(client(&json!({ "FILES_MODE": "fast" })), Value::Null);
    let config_of_client = client(&json!({ "FILES_MODE": "fast", "SHOP_TOKEN": TOKEN }));
    let manifest = json_file(&path);
    assert_eq!(config_of_client, replaced(&manifest["server"]["mcp_config"], &unpacked));
    offers_its_tools(&config_of_client, &manifest, folder.path());

    let published = format!("{}=https://github.com/user/shop/releases/download/v0.1.0/shop.mcpb", bundle.display());
    let entry = emit(&config, &["server-json", "--registry-name", "io.github.user/shop", "--bundle", &published]).success();
    let path = folder.path().join("server.json");
    std::fs::write(&path, &entry).expect("a file");
    let schema = registry_schema("2025-12-11");
    assert_eq!(json_file(&schema)["$id"], json_file(&path)["$schema"]);
    assert_eq!(run(python_script("json_schema.py").arg(&schema).arg(&path)).success(), "");
    let digest = run(Command::new("sha256sum").arg(&bundle)).success();
    let package = &json_file(&path)["packages"][0];
    assert_eq!(package["fileSha256"].as_str(), digest.split_whitespace().next());

    // The schemas refuse faulty documents.
    for (document, schema, from, to) in [
        (
            unpacked.join("manifest.json"),
            npm_file("@anthropic-ai/mcpb/schemas/mcpb-manifest-latest.schema.json"),
            "\"binary\"",
            "\"go\"",
        ),
        (path, schema, "\"fileSha256\": \"", "\"fileSha256\": \"x"),
    ] {
        let text = std::fs::read_to_string(&document).expect("a file");
        assert!(text.contains(from), "{from} is in {text}");
        std::fs::write(&document, text.replace(from, to)).expect("a file");
        assert_eq!(run(python_script("json_schema.py").arg(&schema).arg(&document)).code, Some(1), "{to}");
    }
}
