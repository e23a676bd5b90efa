//! Measures the cost of large catalogs: `cargo bench -p ptc-compiler --bench scale`.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a failure stops the bench, and the bench prints figures")]

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ptc_compiler::config;
use ptc_compiler::diag::Diagnostics;
use ptc_compiler::ir::Deployment;
use ptc_compiler::json::Json;
use ptc_compiler::lock::{self, Lock, LockedTool, LockedUpstream};
use ptc_compiler::source::Sources;
use ptc_compiler::{lower, render};

/// Returns a tool with six arguments and descriptions, similar to those of real servers.
fn definition(at: usize) -> Json {
    let text = format!(
        r#"{{"name":"tool_{at}","description":"Does the thing number {at} for the caller, and returns the outcome in a few short words.",
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

/// Returns a config with `tools` tools, a hundred in each upstream, and the lock file that pins them.
fn inputs(tools: usize) -> (String, Lock) {
    let per = 100.min(tools);
    let mut config = String::from("{\"upstreams\": {");
    let mut lock = Lock::default();
    for at in 0..tools / per {
        write!(config, "{}\"up{at:03}\": {{\"transport\":\"mcp_stdio\",\"command\":\"c\"}}", if at == 0 { "" } else { "," })
            .unwrap();
        let tools = (0..per).map(|t| (format!("tool_{t:04}"), LockedTool::new(definition(at * per + t)))).collect();
        let pinned = LockedUpstream { transport: "mcp_stdio".into(), tools, all_tools: true, ..LockedUpstream::default() };
        lock.upstreams.insert(format!("up{at:03}"), pinned);
    }
    config.push_str("}}");
    (config, lock)
}

fn deployment(tools: usize) -> Deployment {
    let (config, lock) = inputs(tools);
    let mut sources = Sources::default();
    let file = sources.add("upstreams.json", config);
    let config = config::read(&sources, file, &mut Diagnostics::default()).unwrap();
    lower::deployment(&config, &lock, "scale")
}

/// Renders a catalog, compiles it in a program that is built like a deployment, and prints the cost of both.
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
    fs::write(folder.join("main.rs"), "mod catalog;\n\nfn main() {\n    std::hint::black_box(&catalog::DEPLOYMENT);\n}\n")
        .unwrap();
    let rustc = |args: &[&str]| {
        let mut command = Command::new("rustc");
        command
            .current_dir(&folder)
            .args(["--edition", "2024", "-C", "opt-level=3", "-C", "codegen-units=1", "-C", "embed-bitcode=no"])
            .args(args);
        assert!(command.status().unwrap().success());
    };
    rustc(&["--crate-type", "lib", "--crate-name", "ptc_catalog", catalog.to_str().unwrap()]);
    let started = Instant::now();
    rustc(&["--crate-name", "scale", "--extern", "ptc_catalog=libptc_catalog.rlib", "main.rs"]);
    println!(
        "{tools} tools: lower {lowered:.2?}, render and format {rendered:.2?} ({:.1} MB), rustc {:.2?}",
        text.len() as f64 / 1e6,
        started.elapsed()
    );
}

/// A start of a binary, or the median of many.
struct Start {
    /// The time until its response to `initialize`.
    took: Duration,
    /// The resident memory after the response to `initialize`, in KiB.
    resident: u64,
}

fn start(binary: &Path) -> Start {
    let started = Instant::now();
    let mut server = Command::new(binary).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let request = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
    writeln!(server.stdin.as_ref().unwrap(), "{request}").unwrap();
    let mut answer = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut answer).unwrap();
    let took = started.elapsed();
    assert!(answer.contains("serverInfo"), "{answer}");
    let status = fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")).unwrap();
    drop(server.stdin.take());
    assert!(server.wait().unwrap().success());
    Start { took, resident: resident.parse().unwrap() }
}

/// Returns the medians of many starts of two binaries, which start in turns.
fn starts(binaries: [&Path; 2]) -> [Start; 2] {
    let rounds: Vec<[Start; 2]> = (0..41).map(|_| binaries.map(start)).collect();
    [0, 1].map(|binary| {
        let of_this = || rounds.iter().filter_map(move |round| round.get(binary));
        let (mut times, mut sizes): (Vec<_>, Vec<_>) = of_this().map(|start| (start.took, start.resident)).unzip();
        times.sort();
        sizes.sort_unstable();
        let middle = rounds.len() / 2;
        Start { took: *times.get(middle).unwrap(), resident: *sizes.get(middle).unwrap() }
    })
}

fn main() {
    for tools in [500, 5_000] {
        measure(tools);
    }
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    assert!(cargo.args(["build", "--quiet", "--release", "--package", "ptc-prebuilt"]).status().unwrap().success());
    for tools in [5, 500, 5_000] {
        builds_and_starts(tools);
    }
}

/// Compares the linkers: duration of a build, start, resident memory, and the time of two programs.
fn builds_and_starts(tools: usize) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("large");
    fs::create_dir_all(&folder).unwrap();
    let (config, pinned) = inputs(tools);
    fs::write(folder.join("large.lock.json"), lock::write::write(&pinned)).unwrap();
    let linkers = ["rust", "prebuilt"];
    for linker in linkers {
        // The first build may also compile the runtime. The second build, after an edit, is the one that counts.
        for edit in ["first", "edited"] {
            let edited = config.replacen("\"transport\"", &format!("\"description\":\"{edit}\",\"transport\""), 1);
            fs::write(folder.join("large.json"), edited).unwrap();
            let started = Instant::now();
            let mut build = Command::new(env!("CARGO_BIN_EXE_ptc-compile"));
            let built =
                build.current_dir(&folder).args(["large.json", "--locked", "--link", linker, "-o", linker]).output().unwrap();
            assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
            println!("{tools} tools, {linker}: {edit} build {:.2?}", started.elapsed());
        }
    }
    let binaries = linkers.map(|linker| folder.join(linker));
    let [rust, prebuilt] = starts(binaries.each_ref().map(PathBuf::as_path));
    println!("{tools} tools, rust: start to `initialize` {:.2?}, {} KiB resident", rust.took, rust.resident);
    println!(
        "{tools} tools, prebuilt: start to `initialize` {:.2?} ({:.2} times), {} KiB resident ({:.2} times)",
        prebuilt.took,
        prebuilt.took.as_secs_f64() / rust.took.as_secs_f64(),
        prebuilt.resident,
        prebuilt.resident as f64 / rust.resident as f64
    );
    for (linker, binary) in linkers.iter().zip(&binaries) {
        for program in ["(count (tool/servers))", "(count (apropos \"thing\"))"] {
            let started = Instant::now();
            let asked = Command::new(binary).args(["eval", program]).output().unwrap();
            let answer = String::from_utf8_lossy(&asked.stdout);
            println!("{tools} tools, {linker}: eval '{program}' {:.2?}: {}", started.elapsed(), answer.trim());
        }
    }
}
