//! The upstreams of the quickstart: a veterinary practice with three services, each over its own transport.
//!
//! - `--stdio`: an MCP server with notes, on standard input and output. Ends the program at end of input.
//! - `--http ADDRESS`: an MCP server with visits, over Streamable HTTP at `/mcp`.
//! - `--api ADDRESS`: a JSON API with pets, as `fixtures/quickstart/petstore.openapi.json` describes it.
//!
//! The flags can be combined, so that one process serves all three. If an address is taken, the program reports that on standard
//! error and does not serve it.

#![forbid(unsafe_code)]

mod api;
mod data;
mod http;
mod mcp;

use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::thread::JoinHandle;

const USAGE: &str = "usage: quickstart-upstreams [--stdio] [--http ADDRESS] [--api ADDRESS]";

#[derive(Default)]
struct Options {
    stdio: bool,
    http: Option<String>,
    api: Option<String>,
}

fn main() -> ExitCode {
    let options = match parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(message) => {
            complain(&format!("{message}\n{USAGE}"));
            return ExitCode::from(2);
        }
    };
    // Bind the addresses before the first response on stdio, since a client may use the other services immediately after it.
    let servers: Vec<JoinHandle<()>> = [
        options.http.and_then(|address| http::serve(&address, "MCP over HTTP", mcp::over_http)),
        options.api.and_then(|address| http::serve(&address, "JSON API", api::answer)),
    ]
    .into_iter()
    .flatten()
    .collect();
    if options.stdio {
        return match serve_stdio() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                complain(&format!("standard input or output failed: {error}"));
                ExitCode::FAILURE
            }
        };
    }
    if servers.is_empty() {
        complain(&format!("nothing to serve\n{USAGE}"));
        return ExitCode::from(2);
    }
    for server in servers {
        if server.join().is_err() {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options::default();
    while let Some(flag) = args.next() {
        let mut address = || args.next().ok_or_else(|| format!("{flag} needs an address such as 127.0.0.1:7411"));
        match flag.as_str() {
            "--stdio" => options.stdio = true,
            "--http" => options.http = Some(address()?),
            "--api" => options.api = Some(address()?),
            other => return Err(format!("unknown option {other}")),
        }
    }
    Ok(options)
}

fn serve_stdio() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        if let Some(answer) = mcp::answer(mcp::Server::Notes, line?.as_bytes()) {
            writeln!(out, "{answer}")?;
            out.flush()?;
        }
    }
    Ok(())
}

/// Writes a message to standard error; standard output belongs to the protocol.
fn complain(message: &str) {
    // If standard error is closed, the message cannot be reported.
    let _ = writeln!(std::io::stderr(), "quickstart-upstreams: {message}");
}
