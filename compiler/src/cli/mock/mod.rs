//! Runs `mock CONFIG`: serves the upstreams of a lock file, with recorded or generated answers.
//!
//! | module | purpose |
//! |---|---|
//! | `answers` | the answer to a call: recorded, an example, or generated |
//! | `examples` | the examples of OpenAPI documents |
//! | `observed` | the observed shapes of tools without an output schema |
//! | `rules` | the rules of `--fault` |
//! | `mcp` | the tools of an MCP upstream, with its definitions as they are pinned |
//! | `routes` | the addresses of all upstreams over HTTP |
//! | `operation` | finds the operation of a request, and reads its arguments |
//! | `links` | links of answers to other pages |
//! | `reply` | the reply to a request of an operation |
//!
//! A client sees the definitions that the lock file has, so that a config whose upstreams are the mock has the same catalog. No
//! upstream is contacted, and no secret is needed.

mod answers;
mod examples;
mod links;
mod mcp;
mod observed;
mod operation;
mod reply;
mod routes;
mod rules;

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use ptc_catalog::{Transport, Upstream};
use ptc_compiler::diag::suggest;
use ptc_compiler::lock::LockedUpstream;
use ptc_runtime::protocol::revision::Era;

use crate::console::{self, Console};
use crate::shared_args::Messages;
use crate::{Failure, Status, cassette, frozen, http_server, mcp_server};
use answers::Answers;
use examples::Examples;
use mcp::McpMock;
use observed::ObservedShapes;
use routes::{Routes, Served};
use rules::{FaultRule, Rules};

/// `ptc-compile mock`
///
/// Serves the upstreams that the lock file pins, without contacting them. A call is answered from a cassette, with an example of the
/// OpenAPI document or of the output schema, or with a generated value that matches the schema, or the observed shape of a tool
/// without one; the same seed and request give the same answer. `--upstream` serves one MCP server on standard input and output, and
/// `--listen` serves all upstreams over HTTP, until the process is ended.
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("transport").required(true).args(["upstream", "listen"])))]
pub(crate) struct Mock {
    /// The config, usually `upstreams.json`, with its lock file beside it
    #[arg(value_name = "CONFIG")]
    config: PathBuf,

    /// Serve this MCP upstream on standard input and output
    #[arg(long, value_name = "NAME")]
    upstream: Option<String>,

    /// Serve all upstreams over HTTP: MCP at `/NAME/mcp`, the operations of OpenAPI upstreams below `/NAME`; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,

    /// Answer calls from this cassette; a request that it does not have is an error
    #[arg(long, value_name = "FILE")]
    cassette: Option<PathBuf>,

    /// Generate answers to requests that the cassette does not have
    #[arg(long, requires = "cassette")]
    generate: bool,

    /// The seed of generated answers
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Give the calls of a tool a fault, all of them or every N-th one; can be repeated, and `*` matches any text
    ///
    /// The faults are those of `ptc-compile test --faults`. The first rule that applies to a call counts.
    #[arg(long, value_name = "UPSTREAM/TOOL=FAULT[:N]")]
    fault: Vec<FaultRule>,

    /// The protocol eras of MCP servers [default: the one that the lock file has]
    #[arg(long, value_name = "ERA", value_enum)]
    era: Option<Eras>,

    #[command(flatten)]
    pub(crate) messages: Messages,
}

/// `--era`
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Eras {
    /// Revisions with `initialize`, up to 2025-11-25
    Handshake,
    /// Revisions without a handshake, from 2026-07-28 on
    Stateless,
    /// All of these
    Both,
}

impl Eras {
    /// Returns the eras. Without an option they are those of the upstream.
    fn resolve(option: Option<Eras>, locked: Option<&LockedUpstream>) -> &'static [Era] {
        match (option, locked.and_then(|locked| locked.era)) {
            (Some(Eras::Handshake), _) | (None, Some(ptc_catalog::Era::Handshake)) => &[Era::Handshake],
            (Some(Eras::Stateless), _) | (None, Some(ptc_catalog::Era::Stateless)) => &[Era::Stateless],
            (Some(Eras::Both), _) | (None, None) => &[Era::Handshake, Era::Stateless],
        }
    }
}

/// Serves until the end of the input, or of the process.
///
/// # Errors
///
/// If an option names an upstream, a tool or a file that cannot be used, or the address cannot be bound.
pub(crate) fn run(args: &Mock, console: &Console) -> Result<Status, Failure> {
    let Some(frozen) = frozen::open_all(&args.config, console) else { return Ok(Status::Findings) };
    let catalog = frozen.deployment.catalog;
    let player = match &args.cassette {
        Some(path) => Some(cassette::open(path, &args.config, catalog)?),
        None => None,
    };
    let rules = Rules::new(&args.fault, catalog).map_err(|unmatched| {
        Failure::new(format!("the rule {unmatched} of --fault matches no tool")).hint("the lock file has the names of all tools")
    })?;
    let examples = Examples::read(&args.config, &frozen.lock);
    let observed = ObservedShapes::new(&frozen.lock);
    let answers = Arc::new(Answers::new(player.as_ref(), args.generate, examples, observed, args.seed, rules));
    let mcp = |upstream: &'static Upstream| {
        let locked = frozen.lock.upstreams.get(upstream.name);
        McpMock::new(upstream, locked, Eras::resolve(args.era, locked), Arc::clone(&answers))
    };
    if let Some(name) = &args.upstream {
        let known = || catalog.upstreams.iter().map(|upstream| upstream.name);
        let upstream = catalog.upstream(name).ok_or_else(|| match suggest::closest_match(name, known()) {
            Some(near) => Failure::new(format!("the config has no upstream `{name}`")).hint(format!("did you mean `{near}`?")),
            None => Failure::new(format!("the config has no upstream `{name}`"))
                .hint(format!("it has {}", known().collect::<Vec<_>>().join(", "))),
        })?;
        if matches!(upstream.transport, Transport::OpenApi(_)) {
            return Err(Failure::new(format!("the upstream `{name}` is an OpenAPI service, which is served over HTTP only"))
                .hint("use `--listen 127.0.0.1:0` instead of `--upstream`"));
        }
        mcp_server::over_stdio(&mcp(upstream))
            .map_err(|error| Failure::new(format!("standard input or output failed: {error}")))?;
        return Ok(Status::Clean);
    }
    let address = args.listen.as_deref().unwrap_or_default();
    let server = http_server::bind(address).map_err(|error| {
        Failure::new(format!("cannot listen on {address}: {error}")).hint("choose another address, such as `127.0.0.1:0`")
    })?;
    let served = catalog.upstreams.iter().map(|upstream| match &upstream.transport {
        Transport::OpenApi(_) => Served::Api(upstream),
        _ => Served::Mcp(Box::new(mcp(upstream))),
    });
    let routes = Routes::new(served.collect(), Arc::clone(&answers));
    console.data(&routes.addresses(&format!("http://{}", server.server_addr())));
    for thread in http_server::serve(server, Arc::new(move |request| routes.answer(request))) {
        if thread.join().is_err() {
            return Err(Failure::new("a thread of the server ended"));
        }
    }
    Ok(Status::Clean)
}

/// Writes a line to standard error; standard output belongs to the protocol.
fn report(message: &str) {
    console::to_stderr(&format!("ptc-compile mock: {message}\n"));
}
