//! Checks that the library only transforms texts. Processes, network, clocks and the terminal are used only by the command line
//! and by
//! `serve`, which needs a feature. Files are read by `files` too.

use std::fs;
use std::path::{Path, PathBuf};

/// Paths that a module other than `files` outside `src/cli` and `src/serve` must not use.
const WORLD: &[&str] = &[
    "std::fs",
    "std::net",
    "std::process",
    "std::env",
    "std::io",
    "std::thread",
    "std::time",
    "println!",
    "eprintln!",
    "print!",
    "include_dir!",
    "tokio",
    "hyper",
    "ptc_runtime",
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the sources can be listed") {
        let path = entry.expect("an entry can be read").path();
        if path.is_dir() {
            if !path.ends_with("src/cli") && !path.ends_with("src/serve") {
                sources(&path, found);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("src/files.rs") {
            found.push(path);
        }
    }
}

#[test]
fn library_uses_no_files_network_or_clock() {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    assert!(files.len() > 20, "the sources are where they are expected");
    let mut wrong = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("sources are UTF-8");
        for (at, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or("");
            for word in WORLD.iter().filter(|word| code.contains(**word)) {
                wrong.push(format!("{}:{}: {word}", file.display(), at + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "the library reaches outside:\n{}", wrong.join("\n"));
}
