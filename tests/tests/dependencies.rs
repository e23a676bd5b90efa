//! Checks the dependencies of a pinned binary in cargo's own resolution.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ptc_tests::deployment::{cargo, workspace};
use ptc_tests::process::run;

/// Returns the names of the packages that a build of `ptc-runtime` links or runs.
fn packages(features: &[&str]) -> BTreeSet<String> {
    tree("ptc-runtime", features)
}

/// Returns the names of the packages that a build of `package` links or runs, including itself.
fn tree(package: &str, options: &[&str]) -> BTreeSet<String> {
    let mut command = cargo();
    command.args(["tree", "--quiet", "--package", package, "--edges", "normal,build", "--prefix", "none", "--format", "{p}"]);
    command.args(options);
    let tree = run(&mut command).success();
    tree.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

/// The crates of this workspace, each after the crates that it depends on, with its direct dependencies among them.
const CRATES: [(&str, &[&str]); 27] = [
    ("ptc-catalog", &[]),
    ("ptc-image", &["ptc-catalog"]),
    ("ptc-json", &["ptc-catalog"]),
    ("ptc-text", &[]),
    ("ptc-regex", &["ptc-text"]),
    ("ptc-lisp", &["ptc-regex", "ptc-text"]),
    ("ptc-search", &["ptc-catalog"]),
    ("ptc-secrets", &["ptc-catalog"]),
    ("ptc-log", &["ptc-secrets", "ptc-text"]),
    ("ptc-schedule", &["ptc-lisp", "ptc-log", "ptc-text"]),
    ("ptc-json-schema", &["ptc-catalog", "ptc-lisp", "ptc-text"]),
    ("ptc-check", &["ptc-catalog", "ptc-json-schema", "ptc-lisp", "ptc-text"]),
    (
        "ptc-upstream",
        &["ptc-catalog", "ptc-check", "ptc-lisp", "ptc-log", "ptc-schedule", "ptc-search", "ptc-secrets", "ptc-text"],
    ),
    ("ptc-oauth-client", &["ptc-catalog", "ptc-log", "ptc-secrets", "ptc-upstream"]),
    ("ptc-policy", &["ptc-catalog", "ptc-check", "ptc-lisp", "ptc-text", "ptc-upstream"]),
    (
        "ptc-engine",
        &["ptc-catalog", "ptc-check", "ptc-json-schema", "ptc-lisp", "ptc-schedule", "ptc-secrets", "ptc-text", "ptc-upstream"],
    ),
    (
        "ptc-isolation",
        &["ptc-catalog", "ptc-engine", "ptc-lisp", "ptc-log", "ptc-schedule", "ptc-secrets", "ptc-text", "ptc-upstream"],
    ),
    (
        "ptc-runtime",
        &[
            "ptc-catalog",
            "ptc-check",
            "ptc-engine",
            "ptc-isolation",
            "ptc-json-schema",
            "ptc-lisp",
            "ptc-log",
            "ptc-schedule",
            "ptc-secrets",
            "ptc-text",
            "ptc-upstream",
        ],
    ),
    ("ptc-session-redis", &["ptc-lisp", "ptc-runtime"]),
    ("ptc-viewer", &["ptc-runtime"]),
    ("ptc-otlp", &["ptc-runtime"]),
    ("ptc-resource-server", &["ptc-runtime"]),
    ("ptc-cassette", &["ptc-catalog", "ptc-json", "ptc-lisp", "ptc-runtime", "ptc-text"]),
    (
        "ptc-prebuilt",
        &[
            "ptc-cassette",
            "ptc-image",
            "ptc-oauth-client",
            "ptc-otlp",
            "ptc-policy",
            "ptc-resource-server",
            "ptc-runtime",
            "ptc-session-redis",
            "ptc-viewer",
        ],
    ),
    ("ptc-packages", &[]),
    (
        "ptc-compiler",
        &[
            "ptc-cassette",
            "ptc-catalog",
            "ptc-check",
            "ptc-image",
            "ptc-json",
            "ptc-lisp",
            "ptc-oauth-client",
            "ptc-otlp",
            "ptc-packages",
            "ptc-policy",
            "ptc-resource-server",
            "ptc-runtime",
            "ptc-search",
            "ptc-secrets",
            "ptc-text",
            "ptc-viewer",
        ],
    ),
    ("ptc-macros", &["ptc-compiler"]),
];

#[test]
fn crates_depend_only_on_lower_layers() {
    for (at, (name, expected)) in CRATES.iter().enumerate() {
        let all = tree(name, &["--depth", "1"]);
        let direct: BTreeSet<&str> = CRATES.iter().map(|(other, _)| *other).filter(|other| all.contains(*other)).collect();
        assert_eq!(direct.iter().copied().filter(|other| other != name).collect::<Vec<_>>(), *expected, "{name}");
        for other in *expected {
            assert!(CRATES[..at].iter().any(|(earlier, _)| earlier == other), "{name} depends on {other}, which comes later");
        }
    }
}

/// A program that reads a deployment from a lock file links neither the interpreter nor the runtime.
#[test]
fn compiler_without_features_links_no_runtime() {
    let linked = tree("ptc-compiler", &["--no-default-features"]);
    for name in ["ptc-lisp", "ptc-check", "ptc-runtime", "schemars", "tokio"] {
        assert!(!linked.contains(name), "{name}");
    }
}

/// Coverage is for `ptc-compile` only, and would add code to every binary. So would the recording of calls, which is an optional part.
#[test]
fn pinned_binary_has_no_feature_of_the_compiler() {
    let features = |package: &str| {
        let mut command = cargo();
        let options = ["--edges", "normal,build", "--prefix", "none", "--format", "{p} {f}"];
        command.args(["tree", "--quiet", "--package", package]).args(options);
        let tree = run(&mut command).success();
        tree.lines().filter(|line| line.starts_with("ptc-")).map(str::to_owned).collect::<Vec<_>>()
    };
    for (feature, package) in [("coverage", "ptc-prebuilt"), ("interception", "ptc-otlp")] {
        let enables = |line: &String| line.rsplit(' ').any(|part| part.split(',').any(|enabled| enabled == feature));
        assert!(features("ptc-compiler").iter().any(enables), "{feature}");
        assert_eq!(features(package).into_iter().find(enables), None, "{feature}");
    }
}

#[test]
fn catalog_crate_has_no_dependencies() {
    assert_eq!(tree("ptc-catalog", &[]), BTreeSet::from(["ptc-catalog".to_owned()]));
}

#[test]
fn pinned_binary_links_no_crate_of_the_compiler() {
    let linked = packages(&[]);
    assert!(linked.contains("reqwest"), "the HTTP client is part of the default: {linked:?}");
    for name in ["ptc-compiler", "ptc-macros", "clap", "minijinja", "openapiv3", "jsonc-parser", "jsonschema", "schemars"] {
        assert!(!linked.contains(name), "{name} is linked into pinned binaries");
    }
}

#[test]
fn binary_without_http_upstreams_links_no_http_or_tls() {
    let linked = packages(&["--no-default-features"]);
    assert!(linked.contains("tokio"), "{linked:?}");
    for name in ["hyper", "rustls", "ring", "native-tls", "openssl"] {
        assert!(!linked.contains(name), "{name} is linked into a binary that cannot use it");
    }
}

/// Checks a deployment whose upstreams use standard input and output: it listens, but makes no requests over HTTP.
#[test]
fn http_server_links_no_http_client_or_tls() {
    let linked = packages(&["--no-default-features", "--features", "http-server"]);
    assert!(linked.contains("hyper"), "{linked:?}");
    for name in ["reqwest", "h2", "rustls", "ring", "native-tls", "openssl"] {
        assert!(!linked.contains(name), "{name} is linked into a binary that cannot use it");
    }
}

#[test]
fn only_one_tls_library_is_linked() {
    let linked: BTreeSet<String> = packages(&[]).into_iter().chain(tree("ptc-session-redis", &["--features", "tls"])).collect();
    for name in ["native-tls", "openssl-sys", "aws-lc-rs", "aws-lc-sys"] {
        assert!(!linked.contains(name), "{name} is linked beside rustls with ring");
    }
}

#[test]
fn interpreter_does_not_depend_on_runtime_or_catalog() {
    let linked = tree("ptc-lisp", &[]);
    for name in ["tokio", "ptc-catalog", "ptc-runtime", "serde_json"] {
        assert!(!linked.contains(name), "ptc-lisp depends on {name}");
    }
}

/// The modules of two crates, each after the modules that it uses.
const MODULES: [(&str, &[&str]); 2] = [
    (
        "runtime/src",
        &[
            "digest",
            "build_info",
            "json_shape",
            "settings",
            "session",
            "description",
            "agentic",
            "diagnostics",
            "tools_list",
            "embed",
            "ptc_runner_compat",
            "recording",
            "server",
            "parts",
            "command",
            "fuzzing",
        ],
    ),
    (
        "compiler/src",
        &[
            "source",
            "diag",
            "http_token",
            "tree",
            "json",
            "tool_name",
            "config",
            "clients",
            "import",
            "install",
            "ir",
            "json_schema",
            "paging",
            "lock",
            "lower",
            "input",
            "openapi",
            "checks",
            "leak",
            "render",
            "drift",
            "files",
            "programs",
            "resolve",
            "pinned",
            "provenance",
            "serve",
            "cli",
        ],
    ),
];

#[test]
fn modules_depend_only_on_lower_layers() {
    for (sources, modules) in MODULES {
        let entries =
            std::fs::read_dir(workspace().join(sources)).expect("a folder").map(|entry| entry.expect("an entry").path());
        let mut found: BTreeSet<String> = BTreeSet::new();
        for path in entries {
            let module = path.file_stem().expect("a name").to_string_lossy().into_owned();
            if module == "lib" {
                continue;
            }
            let at = modules.iter().position(|name| *name == module).unwrap_or_else(|| panic!("{sources}: no row for {module}"));
            for (file, text) in rust_files(&path) {
                if let Some((name, line)) = used_modules(&text).find(|(name, _)| modules[at + 1..].contains(name)) {
                    panic!("{}: {module} uses {name}, which is above it: {line}", file.display());
                }
            }
            found.insert(module);
        }
        assert_eq!(found.len(), modules.len(), "{sources}: a row without a module");
    }
}

/// Iterates over the modules that a file uses by absolute paths, each with its line. Unit tests may use everything.
fn used_modules(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.flat_map(|line| {
        let after = line.split("crate::").skip(1);
        after.flat_map(move |rest| {
            let group = rest.strip_prefix('{').and_then(|group| group.split('}').next()).unwrap_or(rest);
            let names = group.split(',').take(if rest.starts_with('{') { usize::MAX } else { 1 });
            names.filter_map(move |name| Some((name.trim().split(|c: char| !c.is_alphanumeric() && c != '_').next()?, line)))
        })
    })
}

/// Returns the Rust files at a path with their texts.
pub(crate) fn rust_files(path: &Path) -> Vec<(PathBuf, String)> {
    if path.is_dir() {
        let entries = std::fs::read_dir(path).expect("a folder").map(|entry| entry.expect("an entry").path());
        return entries.flat_map(|entry| rust_files(&entry)).collect();
    }
    let is_rust = path.extension().is_some_and(|extension| extension == "rs");
    is_rust.then(|| (path.to_owned(), std::fs::read_to_string(path).expect("a text"))).into_iter().collect()
}

/// In a crate with one test program, cargo ignores a file of tests that is not a module of it.
#[test]
fn every_file_of_tests_is_compiled() {
    for package in ["compiler", "runtime/check", "runtime/lisp", "tests"] {
        let folder = workspace().join(package);
        let read = |path: &str| std::fs::read_to_string(folder.join(path)).expect("a text");
        let (manifest, root) = (read("Cargo.toml"), read("tests/main.rs"));
        for entry in std::fs::read_dir(folder.join("tests")).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            let name = entry.file_stem().expect("a name").to_string_lossy();
            let has_tests = entry.extension().is_some_and(|extension| extension == "rs") || entry.join("mod.rs").exists();
            let is_compiled = || root.contains(&format!("mod {name};")) || manifest.contains(&format!("name = \"{name}\""));
            assert!(!has_tests || ["main", "watched"].contains(&&*name) || is_compiled(), "{package}: nothing compiles {name}");
        }
    }
}
