//! What a pinned binary may be made of, asked of cargo's own resolution.

use std::collections::BTreeSet;

use ptc_tests::deployment::cargo;
use ptc_tests::process::run;

/// Names of the packages that a build of `ptc-runtime` links or runs.
fn packages(features: &[&str]) -> BTreeSet<String> {
    let mut command = cargo();
    command.args([
        "tree",
        "--quiet",
        "--package",
        "ptc-runtime",
        "--edges",
        "normal,build",
        "--prefix",
        "none",
        "--format",
        "{p}",
    ]);
    command.args(features);
    let tree = run(&mut command).success();
    tree.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
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
    for name in ["reqwest", "hyper", "rustls", "ring", "native-tls", "openssl"] {
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
    let mut command = cargo();
    command.args(["tree", "--quiet", "--package", "ptc-lisp", "--edges", "normal", "--prefix", "none", "--format", "{p}"]);
    let tree = run(&mut command).success();
    for name in ["tokio", "ptc-catalog", "ptc-runtime", "serde_json"] {
        assert!(!tree.lines().any(|line| line.split(' ').next() == Some(name)), "ptc-lisp depends on {name}");
    }
}
