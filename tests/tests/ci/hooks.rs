//! Runs the entries of the hooks as pre-commit does: without a shell, in the root of the repository, with the changed files as the
//! last arguments.

use ptc_tests::process::{Finished, run};
use serde_json::Value;

use super::checkout::{Checkout, HOSTILE};
use super::{file, pipelines_of_the_guide, yaml};

/// Runs a hook with its own arguments or with those of a `.pre-commit-config.yaml`.
fn hook(checkout: &Checkout, id: &str, args: Option<&[&str]>, files: &[&str]) -> Finished {
    let hooks = yaml(&file(".pre-commit-hooks.yaml"));
    let hook = hooks.as_array().expect("hooks").iter().find(|hook| hook["id"] == id).expect("a hook");
    assert_eq!(hook["language"], "system");
    let mut words = hook["entry"].as_str().expect("an entry").split(' ');
    let mut command = checkout.command(words.next().expect("a program"));
    command.args(words);
    match args {
        Some(args) => command.args(args),
        None => command.args(hook["args"].as_array().expect("arguments").iter().filter_map(Value::as_str)),
    };
    if hook["pass_filenames"] != false {
        command.args(files);
    }
    run(&mut command)
}

#[test]
fn hook_checks_the_config() {
    let checkout = Checkout::new("upstreams.json");
    let changed = ["petstore.openapi.json", "upstreams.lock.json"];
    let good = hook(&checkout, "ptc-compile-check", None, &changed);
    assert_eq!(good.code, Some(0), "{}", good.stderr);
    checkout.break_config();
    let faulty = hook(&checkout, "ptc-compile-check", None, &changed);
    assert!(faulty.code == Some(1) && faulty.stderr.contains("getPat"), "{}", faulty.stderr);
    assert_eq!(hook(&checkout, "ptc-compile-check", Some(&["missing.json"]), &changed).code, Some(2));
}

#[test]
fn hook_checks_a_config_of_any_name() {
    let checkout = Checkout::new(HOSTILE);
    let good = hook(&checkout, "ptc-compile-check", Some(&["--", HOSTILE]), &[]);
    assert_eq!(good.code, Some(0), "{}", good.stderr);
    assert!(!checkout.has_run_its_name());
}

#[test]
fn hook_checks_programs() {
    let checkout = Checkout::new("upstreams.json");
    let good = hook(&checkout, "ptc-compile-check-program", None, &["count.clj"]);
    assert_eq!(good.code, Some(0), "{}", good.stderr);
    let program = "faulty $(touch pasted).clj";
    std::fs::write(checkout.file(program), "(tool/value {:server \"notes\" :tool \"write_note\"})").expect("a program");
    let faulty = hook(&checkout, "ptc-compile-check-program", None, &["count.clj", program]);
    assert!(faulty.code == Some(1) && faulty.stderr.contains("write_note"), "{}", faulty.stderr);
    let hyphen = "--json.clj";
    std::fs::write(checkout.file(hyphen), "(tool/value {:server \"notes\" :tool \"write_note\"})").expect("a program");
    let faulty = hook(&checkout, "ptc-compile-check-program", None, &[hyphen]);
    assert!(faulty.code == Some(1) && faulty.stderr.contains("--json.clj:1:"), "{}", faulty.stderr);
    assert!(!checkout.has_run_its_name());
}

#[test]
fn hooks_of_the_guide_exist() {
    let config =
        pipelines_of_the_guide().into_iter().find(|pipeline| !pipeline["repos"].is_null()).expect("a config of pre-commit");
    let named = config["repos"][0]["hooks"].as_array().expect("hooks").iter().map(|hook| &hook["id"]);
    let hooks = yaml(&file(".pre-commit-hooks.yaml"));
    let exist = hooks.as_array().expect("hooks").iter().map(|hook| &hook["id"]);
    assert_eq!(named.collect::<Vec<_>>(), exist.collect::<Vec<_>>());
}
