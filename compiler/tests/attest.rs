//! Tests `attest` and `verify` with scripts in place of binaries, which print the digests that `version --json` prints.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test stops where anything is wrong")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use ptc_compiler::diag::Diagnostics;
use ptc_compiler::input::Wanted;
use ptc_compiler::json::digest::sha256;
use ptc_compiler::source::Sources;
use ptc_compiler::{files, pinned};
use serde_json::{Value, json};

const CONFIG: &str = r#"{ "upstreams": { "shop": {
  "transport": "openapi", "schema_file": "shop.json", "base_url": "https://shop.example",
  "include_operations": ["listPets"], "auth": []
} } }"#;

const DOCUMENT: &str = r#"{ "openapi": "3.1.0", "info": { "title": "Shop", "version": "1" }, "paths": { "/pets": { "get": {
  "operationId": "listPets", "summary": "Lists pets", "responses": { "200": { "description": "ok" } }
} } } }"#;

/// Runs `ptc-compile` in a folder. Returns its exit code, its data and its messages.
fn run(folder: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_ptc-compile")).args(args).current_dir(folder).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Writes a script that prints these digests, and leaves a file when it is started.
fn write_binary(folder: &Path, config_digest: &str, catalog_digest: &str) {
    let version = json!({ "config_digest": config_digest, "catalog_digest": catalog_digest, "compiler": "0.1.0", "abilities": ["http"], "linker": "rust" });
    fs::write(folder.join("gate"), format!("#!/bin/sh\ntouch started\necho '{version}'\n")).unwrap();
    fs::set_permissions(folder.join("gate"), fs::Permissions::from_mode(0o755)).unwrap();
}

/// Returns a folder with a config, its lock file, and a binary that was built from them.
fn built() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("upstreams.json"), CONFIG).unwrap();
    fs::write(path.join("shop.json"), DOCUMENT).unwrap();
    let (code, _, messages) = run(path, &["update", "upstreams.json"]);
    assert_eq!(code, Some(0), "{messages}");
    let (mut sources, mut diagnostics) = (Sources::default(), Diagnostics::default());
    let read = &mut |wanted: &Wanted<'_>| files::read(path, wanted);
    let deployment = pinned::read("upstreams.json", "gate", &mut sources, &mut diagnostics, read).unwrap();
    write_binary(path, &deployment.config_digest, &deployment.catalog_digest);
    folder
}

#[test]
fn statement_has_the_digests_of_binary_config_lock_and_documents() {
    let folder = built();
    let path = folder.path();
    let (code, data, messages) = run(path, &["attest", "gate", "--builder", "https://ci.example/run"]);
    assert_eq!(code, Some(0), "{messages}");
    let statement: Value = serde_json::from_str(&data).unwrap();
    assert_eq!(statement["_type"], "https://in-toto.io/Statement/v1");
    assert_eq!(statement["predicateType"], "https://slsa.dev/provenance/v1");
    let digest = |name: &str| sha256(&fs::read(path.join(name)).unwrap()).replace("sha256:", "");
    assert_eq!(statement["subject"], json!([{ "name": "gate", "digest": { "sha256": digest("gate") } }]));
    let definition = &statement["predicate"]["buildDefinition"];
    let named = definition["resolvedDependencies"].as_array().unwrap();
    for name in ["upstreams.json", "upstreams.lock.json", "shop.json"] {
        assert!(named.contains(&json!({ "name": name, "digest": { "sha256": digest(name) } })), "{name}: {named:?}");
    }
    assert_eq!(definition["externalParameters"], json!({ "config": "upstreams.json", "abilities": ["http"], "linker": "rust" }));
    assert_eq!(statement["predicate"]["runDetails"]["builder"]["id"], "https://ci.example/run");
    // Equal inputs give equal statements.
    assert_eq!(run(path, &["attest", "gate", "--builder", "https://ci.example/run"]).1, data);
}

#[test]
fn binary_that_fits_is_verified() {
    let folder = built();
    assert_eq!(run(folder.path(), &["attest", "gate", "--output", "s.json"]).0, Some(0));
    for args in [
        &["--statement", "s.json"][..],
        &["--config", "upstreams.json"],
        &["--statement", "s.json", "--config", "upstreams.json"],
    ] {
        let (code, _, messages) = run(folder.path(), &[&["verify", "gate"], args].concat());
        assert_eq!(code, Some(0), "{args:?}: {messages}");
        assert!(messages.starts_with("gate fits ") || messages.starts_with("gate is the binary of "), "{messages}");
    }
}

#[test]
fn changed_binary_is_found_and_not_started() {
    let folder = built();
    let path = folder.path();
    assert_eq!(run(path, &["attest", "gate", "--output", "s.json"]).0, Some(0));
    let text = fs::read_to_string(path.join("gate")).unwrap();
    fs::write(path.join("gate"), text + "# changed\n").unwrap();
    fs::remove_file(path.join("started")).unwrap();
    let (code, _, messages) = run(path, &["verify", "gate", "--statement", "s.json", "--config", "upstreams.json"]);
    assert_eq!(code, Some(1));
    assert!(messages.contains("the statement is about another binary"), "{messages}");
    assert!(!path.join("started").exists());
}

#[test]
fn changed_config_is_found() {
    let folder = built();
    let path = folder.path();
    assert_eq!(run(path, &["attest", "gate", "--output", "s.json"]).0, Some(0));
    fs::write(path.join("upstreams.json"), CONFIG.replace("https://shop.example", "https://other.example")).unwrap();
    let (code, _, messages) = run(path, &["verify", "gate", "--statement", "s.json", "--config", "upstreams.json"]);
    assert_eq!(code, Some(1), "{messages}");
    assert!(messages.contains("`upstreams.json` is not the file of the statement"), "{messages}");
    let (code, _, messages) = run(path, &["verify", "gate", "--config", "upstreams.json"]);
    assert_eq!(code, Some(1), "{messages}");
    assert!(messages.contains("the binary was built from another config"), "{messages}");
    let (code, _, messages) = run(path, &["attest", "gate"]);
    assert_eq!(code, Some(2), "{messages}");
    assert!(messages.contains("the binary was built from another config"), "{messages}");
}

#[test]
fn files_of_another_kind_are_refused() {
    let folder = built();
    let path = folder.path();
    for (args, message) in [
        (&["verify", "gate", "--statement", "shop.json"][..], "`shop.json` is not a statement"),
        (&["verify", "gate"], "required arguments were not provided"),
        (&["verify", "nothing", "--config", "upstreams.json"], "cannot start `nothing`"),
        (&["attest", "gate", "--config", "nothing.json"], "cannot read `nothing.json`"),
        // It prints without end.
        (&["attest", "/usr/bin/yes"], "`/usr/bin/yes` is not a binary of ptc-compile"),
        (&["attest", "/bin/true"], "`/bin/true` is not a binary of ptc-compile"),
    ] {
        let (code, _, messages) = run(path, args);
        assert_eq!(code, Some(2), "{args:?}: {messages}");
        assert!(messages.contains(message), "{args:?}: {messages}");
    }
}
