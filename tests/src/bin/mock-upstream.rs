//! An MCP server over standard input and output. Its only argument is the file that describes it.

#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;

use ptc_tests::mock::mcp::Server;

fn main() -> ExitCode {
    let Some(file) = std::env::args_os().nth(1) else { return ExitCode::from(2) };
    match Server::read(Path::new(&file)).serve_stdio() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
