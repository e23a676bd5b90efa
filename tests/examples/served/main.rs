//! Runs programs over the upstreams of a config that is read at run time. It needs no build and no lock file.
//!
//! `cargo run -p ptc-tests --example served -- CONFIG (frozen|live) PROGRAM…`. `frozen` lists the tools of MCP upstreams before
//! the first program runs, `live` when a program first needs them. Each answer is one line.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the example prints answers and warnings")]

use std::error::Error;
use std::process::ExitCode;

// The guide shows the text between the two marks.
// guide
use ptc_compiler::serve::{SnapshotMode, Source};
use ptc_runtime::embed::{Engine, Request};

/// An engine over the upstreams of a config.
pub(crate) async fn engine(config: &str, mode: SnapshotMode) -> Result<Engine, Box<dyn Error>> {
    let served = Source::file(config).snapshot(mode).open().await?;
    eprint!("{}", served.findings()); // warnings; errors are in the `Err`
    Ok(served.engine().preview_bytes(64 * 1024).build()?)
}

/// What a program answers, as text.
pub(crate) async fn answer(engine: &Engine, program: &str) -> String {
    match engine.run_async(Request::new(program)).await.value() {
        Ok(value) => ptc_lisp::print::readable(value),
        Err(failure) => failure.to_string(),
    }
}
// guide

/// Returns the mode with that name.
fn mode(name: &str) -> Option<SnapshotMode> {
    match name {
        "frozen" => Some(SnapshotMode::Frozen),
        "live" => Some(SnapshotMode::Live),
        _ => None,
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [config, name, programs @ ..] = args.as_slice() else {
        return Err("usage: served CONFIG (frozen|live) PROGRAM…".into());
    };
    let engine = engine(config, mode(name).ok_or("the mode is `frozen` or `live`")?).await?;
    for program in programs {
        println!("{}", answer(&engine, program).await);
    }
    engine.shut_down().await;
    Ok(ExitCode::SUCCESS)
}
