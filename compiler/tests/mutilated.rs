//! Tests configs with missing parts: reading terminates, an error is reported if a value was lost, and secrets stay hidden.

use std::fs;
use std::path::Path;

use ptc_compiler::config;
use ptc_compiler::diag::Diagnostics;
use ptc_compiler::diag::render::{self, Style};
use ptc_compiler::source::Sources;
use ptc_compiler::tree::{self, Syntax};

fn configs() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/check");
    let mut configs: Vec<(String, String)> = fs::read_dir(folder)
        .expect("fixtures/check can be listed")
        .map(|entry| {
            let path = entry.expect("an entry can be read").path().join("upstreams.json");
            (path.display().to_string(), fs::read_to_string(path).expect("fixtures are UTF-8"))
        })
        .collect();
    configs.sort();
    configs
}

/// Returns variants of a text. From every third position on, one character, eight characters, or all the rest is removed.
fn holes(text: &str) -> impl Iterator<Item = String> {
    text.char_indices().step_by(3).flat_map(move |(at, _)| {
        let after = move |count: usize| text[at..].char_indices().nth(count).map_or("", |(skip, _)| &text[at + skip..]);
        [after(1), after(8), ""].map(|rest| format!("{}{rest}", &text[..at]))
    })
}

fn rendered(text: &str) -> (bool, Diagnostics, String) {
    let mut sources = Sources::default();
    let mut diagnostics = Diagnostics::default();
    let file = sources.add("upstreams.json", text);
    let read = config::read(&sources, file, &mut diagnostics).is_some();
    let full = render::full(&sources, &diagnostics, Style::Plain);
    (read, diagnostics, full)
}

#[test]
fn damaged_config_is_reported_without_secrets() {
    for (name, text) in configs().iter().filter(|(_, text)| text.contains("hunter") && text.len() < 1_500) {
        // In these configs only a name, or the length and form of a value, shows that it is secret. A hole in these makes the secret
        // undetectable.
        if name.contains("literal_secrets") || name.contains("oauth_secrets") {
            continue;
        }
        for mutilated in holes(text) {
            // A URL that has lost its `@` no longer shows where a password was.
            if name.contains("urls_") && mutilated.matches('@').count() < text.matches('@').count() {
                continue;
            }
            let (read, diagnostics, full) = rendered(&mutilated);
            assert!(read || diagnostics.has_errors(), "{name}: nothing read and nothing told:\n{mutilated}");
            assert!(!full.contains("unter2"), "{name} shows a secret:\n{full}\nof\n{mutilated}");
        }
    }
}

#[test]
fn strict_json_agrees_with_another_parser() {
    for (name, text) in configs().iter().filter(|(_, text)| text.len() < 600) {
        for mutilated in holes(text) {
            let mut sources = Sources::default();
            let mut diagnostics = Diagnostics::default();
            let file = sources.add("a.json", mutilated.as_str());
            let tree = tree::parse_as(&sources, file, Syntax::DOCUMENT, &mut diagnostics);
            let text = &sources.get(file).text;
            let strict = serde_json::from_str::<serde_json::Value>(text).is_ok();
            assert_eq!(tree.is_some() && !diagnostics.has_errors(), strict, "{name}: {mutilated}");
        }
    }
}
