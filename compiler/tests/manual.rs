//! Tests completions with a real bash, and man pages.

#![expect(clippy::unwrap_used, reason = "a test stops where anything is wrong")]

use std::process::Command;

use ptc_runtime::Parts;
use ptc_runtime::settings::{Flag, Purpose, flags};

/// The optional parts of `ptc-compile`.
static PARTS: Parts = Parts {
    viewer: Some(&ptc_viewer::VIEWER),
    access_tokens: Some(&ptc_resource_server::ACCESS_TOKENS),
    oauth_client: Some(&ptc_oauth_client::OAUTH_CLIENT),
    exporter: Some(&ptc_otlp::OTLP),
    recorder: Some(&ptc_cassette::RECORDER),
    ..Parts::NONE
};

fn ptc_compile(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_ptc-compile")).args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the completions that bash offers for the last of `words`.
fn offered(script: &str, words: &[&str]) -> Vec<String> {
    let (program, mut last) = (words.first().unwrap(), words.iter().rev());
    let (current, before) = (last.next().unwrap(), last.next().unwrap());
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let function = script.split_once("complete -F ").unwrap().1.split(' ').next().unwrap();
    let asking = format!(
        "{script}\nCOMP_WORDS=({})\nCOMP_CWORD={}\n{function} '{program}' '{current}' '{before}'\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
        quoted.join(" "),
        words.len() - 1,
    );
    let output = Command::new("bash").args(["--norc", "-c", &asking]).output().unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_ptc_compile() {
    let script = ptc_compile(&["completions", "bash"]);
    assert_eq!(offered(&script, &["ptc-compile", "check-"]), ["check-program"]);
    assert!(offered(&script, &["ptc-compile", "--"]).contains(&"--max-prompt-bytes".to_owned()));
    assert_eq!(offered(&script, &["ptc-compile", "diff", "--fail-on", "n"]), ["note", "never"]);
    // The options of `run` and `repl` come from the runtime's table.
    assert_eq!(offered(&script, &["ptc-compile", "repl", "--catalog-m"]), ["--catalog-mode"]);
    assert_eq!(offered(&script, &["ptc-compile", "repl", "--max-tool-c"]), ["--max-tool-calls"]);
    assert_eq!(offered(&script, &["ptc-compile", "run", "--catalog-mode", "i"]), ["inline"]);
    for flag in flags().filter(|flag| flag.is_built(PARTS.linked()) && flag.applies_to(Purpose::Serve)) {
        let name = format!("--{}", flag.name);
        assert!(offered(&script, &["ptc-compile", "run", &name]).contains(&name), "{name}");
    }
}

#[test]
fn bash_completes_a_pinned_binary() {
    let script = ptc_compile(&["completions", "bash", "--binary", "pet-gate"]);
    assert_eq!(offered(&script, &["pet-gate", "ev"]), ["eval"]);
    assert_eq!(offered(&script, &["pet-gate", "eval", "--js"]), ["--json"]);
    assert_eq!(offered(&script, &["pet-gate", "start", "--response-profile", "s"]), ["slim", "structured"]);
    assert!(offered(&script, &["pet-gate", "--upstreams-c"]).iter().all(String::is_empty), "its upstreams are fixed");
    for shell in ["zsh", "fish", "elvish", "powershell"] {
        assert!(ptc_compile(&["completions", shell, "--binary", "pet-gate"]).contains("response-profile"), "{shell}");
    }
}

/// Scripts and pages are named after the binary, so some names are refused.
#[test]
fn invalid_binary_names_are_refused() {
    for name in ["bad name", "", "..", "-x", "a/", "gr\u{fc}n", "x;y"] {
        let binary = format!("--binary={name}");
        for args in [&["completions", "bash"][..], &["man", "no-such-folder"]] {
            let args = [args, &[&binary]].concat();
            let output = Command::new(env!("CARGO_BIN_EXE_ptc-compile")).args(&args).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
            assert!(said.starts_with("error: ") && !said.contains("a fault of its own"), "{args:?}: {said}");
        }
    }
    assert!(!std::path::Path::new("no-such-folder").exists());
}

#[test]
fn every_command_and_setting_is_in_a_manual_page() {
    let folder = std::env::temp_dir().join(format!("ptc-man-{}", std::process::id()));
    let place = folder.to_str().unwrap();
    assert_eq!(ptc_compile(&["man", place]), "");
    ptc_compile(&["man", place, "--binary", "gate"]);
    let page = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap().replace("\\-", "-");
    let help = ptc_compile(&["--help"]);
    let commands = help.split_once("Commands:").unwrap().1.split_once("\n\n").unwrap().0;
    for line in commands.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   ")) {
        let name = line.split_whitespace().next().unwrap();
        assert!(page(&format!("ptc-compile-{name}.1")).contains(".TH"), "{name}");
    }
    assert!(page("ptc-compile.1").contains("--max-prompt-bytes"));
    let (run, gate) = (page("ptc-compile-run.1"), page("gate.1"));
    let plain = |flag: &Flag| flag.is_built_with(|needed| ["http", "http-server"].contains(&needed));
    for flag in flags() {
        let shown = format!("--{}\\fR", flag.name);
        let serves = flag.is_built(PARTS.linked()) && flag.applies_to(Purpose::Serve);
        assert_eq!(run.contains(&shown) && run.contains(flag.env), serves, "{}", flag.name);
        // A name alone means a binary that was built without further options.
        assert_eq!(gate.contains(&shown), !flag.is_of_config() && plain(flag), "{}", flag.name);
    }
    assert!(page("gate-eval.1").contains("--json"));
    std::fs::remove_dir_all(folder).unwrap();
}
