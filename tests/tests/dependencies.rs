//! Checks the dependencies of a pinned binary in cargo's own resolution.

use std::collections::BTreeSet;

use ptc_tests::deployment::cargo;
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
const CRATES: [(&str, &[&str]); 10] = [
    ("ptc-catalog", &[]),
    ("ptc-text", &[]),
    ("ptc-lisp", &["ptc-text"]),
    ("ptc-search", &["ptc-catalog"]),
    ("ptc-secrets", &["ptc-catalog"]),
    ("ptc-json-schema", &["ptc-catalog", "ptc-lisp", "ptc-text"]),
    ("ptc-check", &["ptc-catalog", "ptc-json-schema", "ptc-lisp", "ptc-text"]),
    ("ptc-runtime", &["ptc-catalog", "ptc-check", "ptc-json-schema", "ptc-lisp", "ptc-search", "ptc-secrets", "ptc-text"]),
    ("ptc-compiler", &["ptc-catalog", "ptc-check", "ptc-lisp", "ptc-runtime", "ptc-search", "ptc-secrets", "ptc-text"]),
    ("ptc-macros", &["ptc-compiler"]),
];

#[test]
fn dependencies_between_crates_point_down() {
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
    for name in ["ptc-lisp", "ptc-check", "ptc-runtime", "tokio"] {
        assert!(!linked.contains(name), "{name}");
    }
}

#[test]
fn the_catalog_is_a_leaf() {
    assert_eq!(tree("ptc-catalog", &[]), BTreeSet::from(["ptc-catalog".to_owned()]));
}

#[test]
fn a_pinned_binary_holds_nothing_of_the_compiler() {
    let linked = packages(&[]);
    assert!(linked.contains("reqwest"), "the HTTP client is part of the default: {linked:?}");
    for name in ["ptc-compiler", "ptc-macros", "clap", "minijinja", "openapiv3", "jsonc-parser", "jsonschema"] {
        assert!(!linked.contains(name), "{name} is linked into pinned binaries");
    }
}

#[test]
fn without_http_upstreams_no_http_and_no_tls() {
    let linked = packages(&["--no-default-features"]);
    assert!(linked.contains("tokio"), "{linked:?}");
    for name in ["hyper", "rustls", "ring", "native-tls", "openssl"] {
        assert!(!linked.contains(name), "{name} is linked into a binary that cannot use it");
    }
}

/// Checks a deployment whose upstreams use standard input and output: it listens, but makes no requests over HTTP.
#[test]
fn a_listening_server_brings_no_client_and_no_tls() {
    let linked = packages(&["--no-default-features", "--features", "http-server"]);
    assert!(linked.contains("hyper"), "{linked:?}");
    for name in ["reqwest", "h2", "rustls", "ring", "native-tls", "openssl"] {
        assert!(!linked.contains(name), "{name} is linked into a binary that cannot use it");
    }
}

#[test]
fn one_tls_only() {
    let linked = packages(&[]);
    for name in ["native-tls", "openssl-sys", "aws-lc-rs", "aws-lc-sys"] {
        assert!(!linked.contains(name), "{name} is linked beside rustls with ring");
    }
}

#[test]
fn the_interpreter_stands_alone() {
    let linked = tree("ptc-lisp", &[]);
    for name in ["tokio", "ptc-catalog", "ptc-runtime", "serde_json"] {
        assert!(!linked.contains(name), "ptc-lisp depends on {name}");
    }
}
