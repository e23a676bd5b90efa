//! `ptc-compile demo`: the upstreams of the quickstart, a veterinary practice with three services, each over its own transport. It
//! also writes the quickstart's files, so that the quickstart needs no checkout.

mod api;
mod data;
mod mcp;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use clap::Args;

use crate::console::{self, Console};
use crate::http_server::{self, Handler, HttpReply};
use crate::{Failure, Status, files, mcp_server};

/// The address of the MCP server over HTTP in the quickstart's config.
const HTTP: &str = "127.0.0.1:7411";

/// The address of the JSON API in the quickstart's config.
const API: &str = "127.0.0.1:7412";

/// The quickstart's files by name.
const FILES: [(&str, &str); 6] = [
    ("upstreams.json", include_str!("../../../../fixtures/quickstart/upstreams.json")),
    ("upstreams.lock.json", include_str!("../../../../fixtures/quickstart/upstreams.lock.json")),
    ("petstore.openapi.json", include_str!("../../../../fixtures/quickstart/petstore.openapi.json")),
    ("due.clj", include_str!("../../../../fixtures/quickstart/due.clj")),
    ("due.cassette.json", include_str!("../../../../fixtures/quickstart/due.cassette.json")),
    ("due_test.clj", include_str!("../../../../fixtures/quickstart/due_test.clj")),
];

/// `ptc-compile demo`
///
/// Without options it serves all three: notes over standard input and output, visits at http://127.0.0.1:7411/mcp, and pets at
/// http://127.0.0.1:7412. It ends at the end of its input.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Serve notes as an MCP server on standard input and output
    #[arg(long)]
    stdio: bool,

    /// Serve visits as an MCP server over Streamable HTTP at this address, under `/mcp`
    #[arg(long, value_name = "ADDRESS")]
    http: Option<String>,

    /// Serve pets as a JSON API at this address
    #[arg(long, value_name = "ADDRESS")]
    api: Option<String>,

    /// Serve nothing, and write the quickstart's config with its lock file, OpenAPI document, program and test into this folder
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["stdio", "http", "api"])]
    write: Option<PathBuf>,
}

/// Runs `demo`. An address that is in use is reported, and the other services are served.
///
/// # Errors
///
/// If nothing can be served, or a file cannot be written.
pub(crate) fn run(args: &Demo, console: &Console) -> Result<Status, Failure> {
    if let Some(folder) = &args.write {
        return write(folder, console);
    }
    let all = !args.stdio && args.http.is_none() && args.api.is_none();
    if all && std::io::stdin().is_terminal() {
        report("serves notes on standard input and output; Ctrl-D ends it; `--write FOLDER` writes a config for these services");
    }
    let address = |given: &Option<String>, default: &str| given.clone().or_else(|| all.then(|| default.to_owned()));
    // The addresses are bound before the first response on stdio, since a client may use the other services immediately after it.
    let servers: Vec<JoinHandle<()>> = [
        address(&args.http, HTTP).map(|address| serve(&address, "visits: MCP over HTTP", visits())),
        address(&args.api, API).map(|address| serve(&address, "pets: JSON API", Arc::new(|request| Some(api::answer(request))))),
    ]
    .into_iter()
    .flatten()
    .flatten()
    .collect();
    if all || args.stdio {
        mcp_server::over_stdio(&mcp::Server::Notes)
            .map_err(|error| Failure::new(format!("standard input or output failed: {error}")))?;
        return Ok(Status::Clean);
    }
    if servers.is_empty() {
        return Err(Failure::new("nothing is served").hint("choose other addresses, such as `--http 127.0.0.1:8411`"));
    }
    for server in servers {
        if server.join().is_err() {
            return Err(Failure::new("a service ended"));
        }
    }
    Ok(Status::Clean)
}

/// Returns the handler of the MCP server over HTTP.
fn visits() -> Arc<Handler> {
    Arc::new(|request| match request.url.as_str() {
        "/mcp" => mcp_server::over_http(&mcp::Server::Visits, request),
        _ => Some(HttpReply::empty(404)),
    })
}

/// Serves an address on separate threads. Returns none, with a message on standard error, if the address cannot be bound.
fn serve(address: &str, what: &str, handler: Arc<Handler>) -> Vec<JoinHandle<()>> {
    match http_server::bind(address) {
        Ok(server) => {
            report(&format!("{what} on http://{}", server.server_addr()));
            http_server::serve(server, handler)
        }
        Err(error) => {
            report(&format!("{what} not served on {address}: {error}"));
            Vec::new()
        }
    }
}

/// Writes the quickstart's files. A file with other content is not replaced.
fn write(folder: &Path, console: &Console) -> Result<Status, Failure> {
    let paths = FILES.map(|(name, text)| (folder.join(name), text));
    let differs = |(path, text): &&(PathBuf, &str)| std::fs::read(path).is_ok_and(|found| found != text.as_bytes());
    if let Some((path, _)) = paths.iter().find(differs) {
        return Err(Failure::new(format!("`{}` exists and has other content", path.display())).hint("choose an empty folder"));
    }
    for (path, text) in &paths {
        files::write_if_changed(path, text.as_bytes())?;
    }
    let folder = folder.display();
    console.message(&format!(
        "wrote {} files into {folder}\nnext: ptc-compile {folder}/upstreams.json --eval \"$(cat {folder}/due.clj)\"\n",
        paths.len()
    ));
    Ok(Status::Clean)
}

/// Writes a line to standard error; standard output belongs to the protocol.
fn report(message: &str) {
    console::to_stderr(&format!("ptc-compile demo: {message}\n"));
}
