//! Tasks of contributors: `cargo xtask TASK`.
//!
//! - `dist`: packages of `ptc-compile`

#![forbid(unsafe_code)]

mod dist;
mod error;

use std::process::ExitCode;

use clap::Parser;

/// Tasks of contributors.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
enum Task {
    /// Build packages of ptc-compile for this platform: npm, PyPI, Debian, a container and a tarball
    Dist(dist::Options),
}

#[expect(clippy::print_stderr, reason = "this is a command")]
fn main() -> ExitCode {
    let result = match Task::parse() {
        Task::Dist(options) => dist::run(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
