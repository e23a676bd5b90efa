//! What large catalogs cost. Not part of an ordinary run, since it measures:
//! `cargo test --release -p ptc-compiler --test scale -- --ignored --nocapture`

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "it stops where anything is wrong, and prints figures")]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use ptc_compiler::config;
use ptc_compiler::diag::Diagnostics;
use ptc_compiler::ir::{Deployment, Json};
use ptc_compiler::lock::{Lock, LockedTool, LockedUpstream};
use ptc_compiler::source::Sources;
use ptc_compiler::{lower, render};

/// A tool of six arguments with prose, as real servers have them.
fn definition(at: usize) -> Json {
    let text = format!(
        r#"{{"name":"tool_{at}","description":"Does the thing number {at} for whoever asks, and says what came of it in a few words.",
            "inputSchema":{{"type":"object","required":["id","name"],"properties":{{
              "id":{{"type":"integer","description":"The id of the thing."}},
              "name":{{"type":"string","description":"What it is called."}},
              "state":{{"type":"string","enum":["open","closed","all"],"description":"Only things in this state."}},
              "limit":{{"type":"integer","minimum":1,"maximum":100,"default":30}},
              "tags":{{"type":"array","items":{{"type":"string"}}}},
              "since":{{"type":"string","format":"date-time"}}}}}},
            "outputSchema":{{"type":"object","properties":{{"items":{{"type":"array","items":{{"type":"object",
              "properties":{{"id":{{"type":"integer"}},"title":{{"type":"string"}}}},"required":["id"]}}}}}}}}}}"#
    );
    Json::from(&serde_json::from_str::<serde_json::Value>(&text).unwrap())
}

fn deployment(tools: usize) -> Deployment {
    let per = 100.min(tools);
    let mut config = String::from("{\"upstreams\": {");
    let mut lock = Lock::default();
    for at in 0..tools / per {
        write!(config, "{}\"up{at:03}\": {{\"transport\":\"mcp_stdio\",\"command\":\"c\"}}", if at == 0 { "" } else { "," })
            .unwrap();
        let tools = (0..per).map(|t| (format!("tool_{t:04}"), LockedTool::new(definition(at * per + t)))).collect();
        lock.upstreams
            .insert(format!("up{at:03}"), LockedUpstream { transport: "mcp_stdio".into(), tools, ..LockedUpstream::default() });
    }
    config.push_str("}}");
    let mut sources = Sources::default();
    let file = sources.add("upstreams.json", config);
    let config = config::read(&sources, file, &mut Diagnostics::default()).unwrap();
    lower::deployment(&config, &lock, "scale", "sha256:0")
}

/// Renders a catalog and compiles it as a library against `ptc-catalog`; prints what both cost.
fn measure(tools: usize) {
    let started = Instant::now();
    let deployment = deployment(tools);
    let lowered = started.elapsed();
    let text = render::catalog(&deployment).unwrap();
    let rendered = started.elapsed().saturating_sub(lowered);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("scale-{tools}"));
    let catalog = Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtime/catalog/src/lib.rs");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("catalog.rs"), &text).unwrap();
    let rustc = |args: &[&str]| {
        let mut command = Command::new("rustc");
        command.current_dir(&folder).args(["--edition", "2024", "-C", "opt-level=3", "--crate-type", "lib"]).args(args);
        assert!(command.status().unwrap().success());
    };
    rustc(&["--crate-name", "ptc_catalog", catalog.to_str().unwrap()]);
    let started = Instant::now();
    rustc(&["--crate-name", "scale", "--extern", "ptc_catalog=libptc_catalog.rlib", "catalog.rs"]);
    println!(
        "{tools} tools: lower {lowered:.2?}, render and format {rendered:.2?} ({:.1} MB), rustc {:.2?}",
        text.len() as f64 / 1e6,
        started.elapsed()
    );
}

#[test]
#[ignore = "measures"]
fn generated_crates_compile_in_linear_time() {
    for tools in [500, 5_000] {
        measure(tools);
    }
}
